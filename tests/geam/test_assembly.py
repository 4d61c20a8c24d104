"""The environment, the policy's factors and soft actor-critic, against direct computations."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator
from torch import nn

from retable.geam.actor_critic import MAX_POINTS, Interaction, draw, entropy, masked_probabilities
from retable.geam.assembly import (
    START,
    AssemblyEnv,
    Decision,
    FragmentLibrary,
    RandomAgent,
    SACAgent,
    Transition,
    attach,
    attachment_points,
    batch_graphs,
    cap,
    observe_graph,
)
from retable.geam.config import SACConfig
from retable.geam.vocabulary import Vocabulary

FRAGMENTS = [
    "CC(=O)[*:1]",
    "O([*:1])[*:1]",
    "N([*:1])[*:1]",
    "c1cc([*:1])ccc1[*:1]",
    "C1CCN([*:1])CC1",
    "c1cn([*:1])cc1[*:1]",
    "OC(C[*:1])C[*:1]",
]
VOCABULARY = Vocabulary({fragment: 1.0 - 0.1 * k for k, fragment in enumerate(FRAGMENTS)}, 10)


def start_graph():
    return observe_graph(Chem.MolFromSmiles(START))


def heavy(mol):
    return sum(atom.GetAtomicNum() > 1 for atom in mol.GetAtoms())


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 6), st.integers(0, 99)), max_size=6))
def test_attach_adds_heavy_atoms_and_removes_two_dummies(choices):
    mol = Chem.MolFromSmiles(START)
    for i, fragment, j in choices:
        points = len(attachment_points(mol))
        if points == 0:
            break
        piece = Chem.MolFromSmiles(FRAGMENTS[fragment])
        own = len(attachment_points(piece))
        joined = attach(mol, i % points, FRAGMENTS[fragment], j % own)
        assert heavy(joined) == heavy(mol) + heavy(piece)
        assert len(attachment_points(joined)) == points + own - 2
        assert len(Chem.GetMolFrags(joined)) == 1
        mol = joined
    closed = cap(mol)
    assert heavy(closed) == heavy(mol)
    assert not attachment_points(closed)
    assert Chem.MolFromSmiles(Chem.MolToSmiles(closed)) is not None


def test_attach_joins_the_points_that_are_named():
    mol = attach(Chem.MolFromSmiles("N([*:1])C[*:2]"), 1, "CC(=O)[*:1]", 0)
    assert Chem.MolToSmiles(cap(mol)) == Chem.CanonSmiles("NCC(C)=O")


def test_cap_gives_hydrogen_to_aromatic_nitrogen():
    mol = Chem.MolFromSmiles("c1ccn([*:1])c1")
    assert Chem.MolToSmiles(cap(mol)) == "c1cc[nH]c1"


@pytest.mark.parametrize(
    ("i", "fragment", "j", "message"),
    [
        (3, "CC(=O)[*:1]", 0, "point 3 of the molecule: it has 3"),
        (-1, "CC(=O)[*:1]", 0, "point -1 of the molecule"),
        (0, "CC(=O)[*:1]", 1, "it has 1"),
        (0, "CCO", 0, "'CCO' has no attachment point"),
        (0, "C1CC", 0, "no valid SMILES"),
    ],
)
def test_attach_names_what_does_not_exist(i, fragment, j, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        attach(Chem.MolFromSmiles(START), i, fragment, j)


def test_episode_ends_without_points_or_above_the_limit():
    env = AssemblyEnv(VOCABULARY, max_atoms=40)
    points, fragments = env.valid_actions()
    assert points == 3
    assert fragments.tolist() == [1, 2, 2, 2, 1, 2, 2]
    for step in range(3):
        _, reward, done = env.step((0, 0, 0))
        assert reward == pytest.approx(0.055)
        assert done == (step == 2)
    assert Chem.MolToSmiles(env.final_molecule()) == Chem.CanonSmiles(
        "CC(=O)c1ccc(C(C)=O)c(C(C)=O)c1"
    )
    with pytest.raises(ValueError, match="episode is over"):
        env.step((0, 0, 0))
    env = AssemblyEnv(VOCABULARY, max_atoms=13)
    env.reset()
    assert env.step((0, 3, 1))[2]  # 9 + 8 - 2 = 15 atoms, dummies included


def test_no_growth_no_growth_reward():
    env = AssemblyEnv(Vocabulary({"F[*:1]": 1.0}, 5))
    assert env.step((0, 0, 0))[1] == pytest.approx(0.05)


def test_step_refuses_an_unknown_fragment():
    with pytest.raises(ValueError, match="fragment 7: the vocabulary has 7"):
        AssemblyEnv(VOCABULARY).step((0, 7, 0))


def test_observation_features():
    graph = start_graph()
    assert graph.x.shape == (9, 28)
    dummy = graph.x[graph.points[0]]
    assert np.flatnonzero(dummy).tolist() == [9, 11, 16, 21]  # *, degree 1, no H, valence 0
    carbon = graph.x[0]  # aromatic carbon with three neighbours
    assert np.flatnonzero(carbon).tolist() == [0, 13, 16, 21, 27]
    assert graph.edge_index.shape == (2, 18)


@pytest.fixture
def interaction():
    torch.manual_seed(0)
    return Interaction(1024, 6, 5)


def test_bags_equal_the_bilinear_on_expanded_pairs(interaction):
    library = FragmentLibrary()
    numbers = library.numbers(FRAGMENTS)
    bits, offsets = library.bags(numbers)
    dense = torch.zeros(len(FRAGMENTS), 1024)
    ends = [*offsets.tolist()[1:], len(bits)]
    for row, (begin, end) in enumerate(zip(offsets.tolist(), ends, strict=True)):
        dense[row, bits[begin:end]] = 1.0
    v = torch.randn(4, 6)
    fast = interaction.over_bags(interaction.bag(bits, offsets), v)
    pairs = (4, len(FRAGMENTS), -1)
    u_all, v_all = dense[None].expand(pairs), v[:, None].expand(pairs)
    reference = nn.functional.bilinear(
        u_all.contiguous(), v_all.contiguous(), interaction.bilinear.weight,
        interaction.bilinear.bias,
    )  # fmt: skip
    reference = reference + interaction.first(u_all) + interaction.second(v_all)
    torch.testing.assert_close(fast, reference)


def test_rows_equal_the_bilinear_on_expanded_pairs():
    torch.manual_seed(1)
    f = Interaction(8, 7, 5)
    u, v = torch.randn(3, 4, 8), torch.randn(3, 7)
    torch.testing.assert_close(f.over_rows(u, v), f(u, v[:, None].expand(3, 4, 7).contiguous()))


def test_fingerprints_are_those_of_the_fragments_without_dummies():
    library = FragmentLibrary()
    generator = rdFingerprintGenerator.GetMorganGenerator(2, fpSize=1024)
    bits, _ = library.bags(library.numbers(["CC(=O)[*:1]"]))
    expected = generator.GetFingerprint(Chem.MolFromSmiles("CC=O")).GetOnBits()
    assert bits.tolist() == list(expected)


def agent(seed=0, **changes):
    config = SACConfig(width=8, batch=16, **changes)
    return SACAgent(config, VOCABULARY, seed)


def states():
    mol = Chem.MolFromSmiles(START)
    second = attach(mol, 0, FRAGMENTS[3], 0)
    third = attach(second, 0, FRAGMENTS[0], 0)
    return [observe_graph(m) for m in (mol, second, third)]


@pytest.mark.parametrize("stabilise", [True, False])
def test_probabilities_sum_to_one_and_vanish_on_padding(stabilise):
    a = agent(stabilise=stabilise)
    batch = batch_graphs(states())
    atoms, whole = a.critics.embedding(batch)
    pi1, z1 = a.policy.points(batch, atoms, whole)
    pi2 = a.policy.fragments(a.policy.bag(a._fragments), z1[:, 0])
    pi3 = a._pi3()
    assert pi1.shape == (3, MAX_POINTS)
    assert pi3.shape == (len(FRAGMENTS), MAX_POINTS)
    for probabilities, mask in ((pi1, batch.mask), (pi3, a._fragments.graphs.mask)):
        torch.testing.assert_close(probabilities.sum(1), torch.ones(len(probabilities)))
        assert (probabilities[~mask] == 0).all()
        assert (probabilities[mask] > 0).all()
    torch.testing.assert_close(pi2.sum(1), torch.ones(3))
    if stabilise:  # the first policy is uniform
        torch.testing.assert_close(pi2, torch.full_like(pi2, 1 / len(FRAGMENTS)))


def test_permuting_molecules_permutes_the_policy():
    a = agent(stabilise=False)
    graphs = states()
    order = [2, 0, 1]
    outputs = []
    for chosen in (graphs, [graphs[k] for k in order]):
        batch = batch_graphs(chosen)
        outputs.append(a.policy.points(batch, *a.critics.embedding(batch))[0])
    torch.testing.assert_close(outputs[1], outputs[0][order])


def test_entropy_by_factors_is_that_of_the_joint():
    a = agent(stabilise=False)
    batch = batch_graphs(states()[:1])
    atoms, whole = a.critics.embedding(batch)
    pi1, z1 = a.policy.points(batch, atoms, whole)
    pi2 = a.policy.fragments(a.policy.bag(a._fragments), z1[:, 1])  # of one chosen point
    pi3 = a._pi3()
    factors = entropy(pi1) + entropy(pi2) + pi2 @ entropy(pi3)
    joint = 0.0
    for i, f, j in itertools.product(range(3), range(len(FRAGMENTS)), range(2)):
        p = (pi1[0, i] * pi2[0, f] * pi3[f, j]).item()
        joint -= p * np.log(p) if p > 0 else 0.0
    assert factors.item() == pytest.approx(joint, abs=1e-5)


def test_all_fragments_equal_one_at_a_time():
    a = agent()
    batch = batch_graphs(states())
    _, whole = a.critics.embedding(batch)
    pi1, pi3 = torch.rand(3, MAX_POINTS), torch.rand(len(FRAGMENTS), MAX_POINTS)
    together = a.critics.q1.all_fragments(whole, pi1, a._fragments, pi3)
    for f in range(len(FRAGMENTS)):
        bags = a.library.bags(np.full(3, f))
        alone = a.critics.q1(whole, pi1, *bags, pi3[f].expand(3, -1))
        torch.testing.assert_close(together[:, f], alone)


def test_draws_follow_the_policy_and_avoid_padding():
    probabilities = torch.tensor([0.5, 0.3, 0.2, 0.0]).expand(20_000, 4)
    drawn = draw(probabilities, torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        drawn.mean(0), torch.tensor([0.5, 0.3, 0.2, 0.0]), atol=0.015, rtol=0
    )
    official = draw(probabilities, torch.Generator().manual_seed(0), "official").mean(0)
    assert official[0] > 0.999  # noise of 1e-3 on probabilities: the argmax


def test_straight_through_gradient_is_finite_and_zero_on_padding():
    logits = torch.tensor([[0.3, -0.2, 0.1, 0.0]], requires_grad=True)
    mask = torch.tensor([[True, True, True, False]])
    generator = torch.Generator().manual_seed(0)
    for sampling in ("categorical", "official"):
        probabilities = masked_probabilities(logits, mask)
        chosen = draw(probabilities, generator, sampling)
        value = (chosen * torch.tensor([1.0, 2.0, 3.0, 9.0])).sum() + entropy(probabilities).sum()
        (gradient,) = torch.autograd.grad(value, logits)
        assert torch.isfinite(gradient).all()
        assert gradient[0, 3] == 0
        assert gradient[0, :3].abs().max() > 0


def fill(a, count=40, y=lambda action: 0.5, rng_seed=0):
    """One-step episodes from the start with random actions."""
    random_agent = RandomAgent(VOCABULARY, rng_seed)
    graph = start_graph()
    actions = [random_agent.act([graph])[0] for _ in range(count)]
    decisions, _ = a.act([graph] * count, actions)
    for decision in decisions:
        a.observe(Transition(graph, decision, 0.05, None, y(decision.action)))


def test_the_buffer_holds_the_attached_fragment():
    a = agent()
    decisions, uncertainty = a.act([start_graph()], [(1, 4, 0)])
    assert decisions[0].action == (1, 4, 0)
    assert decisions[0].fragment == a.library.numbers([FRAGMENTS[4]])[0]
    assert torch.isnan(uncertainty).all()


def test_critic_loss_by_hand():
    a = agent(gamma=0.9)
    graph = states()[1]
    decisions, _ = a.act([start_graph()], [(0, 3, 0)])
    a.standardise([0.1, 0.3])
    items = [
        Transition(start_graph(), decisions[0], 0.055, None, 0.4),
        Transition(start_graph(), decisions[0], 0.055, graph),
    ]
    batch = batch_graphs([graph])
    pi1, z1 = a.policy.points(batch, *a.critics.embedding(batch))
    pi2 = a.policy.fragments(a.policy.bag(a._fragments), z1[:, 0])  # uniform: any point will do
    q = a.target.smaller(a.target.embedding(batch)[1], pi1, a._fragments, a._pi3())
    expected = [0.055 + (0.4 - 0.2) / 0.1, 0.055 + 0.9 * (pi2 * q).sum().item()]
    np.testing.assert_allclose(a._targets(items).numpy(), expected, rtol=1e-5)


def test_target_follows_slowly():
    a = agent(polyak=0.9)
    fill(a)
    before = [p.clone() for p in a.target.parameters()]
    a.update(actor=False)
    for old, new, online in zip(before, a.target.parameters(), a.critics.parameters(), strict=True):
        torch.testing.assert_close(new, 0.9 * old + 0.1 * online)


def test_actor_leaves_the_critics_alone_and_critics_the_policy():
    a = agent()
    fill(a)
    policy = [p.clone() for p in a.policy.parameters()]
    a.update(actor=False)
    assert all(torch.equal(x, y) for x, y in zip(policy, a.policy.parameters(), strict=True))
    critics = [p.clone() for p in a.critics.parameters()]
    a._update_actor(batch_graphs(states()), train_alpha=False)
    assert all(torch.equal(x, y) for x, y in zip(critics, a.critics.parameters(), strict=True))
    assert any(not torch.equal(x, y) for x, y in zip(policy, a.policy.parameters(), strict=True))


def test_policy_learns_which_fragment_pays():
    a = agent(lr=1e-2)
    fill(a, 200, y=lambda action: float(action[1] == 4))
    a.standardise([float(k % 7 == 4) for k in range(70)])
    for _ in range(60):
        a.update(actor=False)
    for _ in range(150):
        a.update()
    decisions, uncertainty = a.act([start_graph()] * 100)
    assert np.mean([decision.action[1] == 4 for decision in decisions]) > 0.7
    assert uncertainty.mean() < np.log(3 * 7 * 2)


def test_alpha_moves_towards_the_target_entropy_within_bounds():
    a = agent(alpha=1.0, alpha_lr=0.5, target_entropy=1.0, alpha_min=0.5)
    a._update_alpha(torch.tensor([3.0]))  # more entropy than wanted: less weight
    assert 0.5 <= a.alpha < 1.0
    for _ in range(5):
        a._update_alpha(torch.tensor([3.0]))
    assert a.alpha == pytest.approx(0.5)
    for _ in range(20):
        a._update_alpha(torch.tensor([0.0]))
    assert a.alpha > 0.5


def test_vocabulary_may_change_while_the_buffer_stays():
    a = agent()
    fill(a)
    a.set_vocabulary(Vocabulary({"FC(F)(F)[*:1]": 1.0, FRAGMENTS[2]: 0.5}, 10))
    assert np.isfinite(a.update()["actor_loss"])
    decisions, _ = a.act([start_graph()] * 20)
    assert {decision.action[1] for decision in decisions} <= {0, 1}


def test_same_seed_same_weights_and_draws():
    first, second = agent(seed=3), agent(seed=3)
    for a in (first, second):
        fill(a)
        a.update()
    for x, y in zip(first.policy.parameters(), second.policy.parameters(), strict=True):
        assert torch.equal(x, y)
    actions = [[d.action for d in a.act([start_graph()] * 9)[0]] for a in (first, second)]
    assert actions[0] == actions[1]


def test_random_agent_is_uniform_over_valid_actions():
    random_agent = RandomAgent(VOCABULARY, 0)
    actions = random_agent.act([start_graph()] * 7000)
    counts = np.bincount([fragment for _, fragment, _ in actions], minlength=7)
    assert counts.min() > 850
    assert counts.max() < 1150
    assert all(j < FRAGMENTS[f].count("*") and i < 3 for i, f, j in actions)


def test_decision_keeps_the_policys_vectors():
    a = agent(stabilise=False)
    decision = a.act([start_graph()])[0][0]
    assert isinstance(decision, Decision)
    assert decision.pi1[:3].sum() == pytest.approx(1, abs=1e-5)
    assert (decision.pi1[3:] == 0).all()
    points = FRAGMENTS[decision.action[1]].count("*")
    assert (decision.pi3[points:] == 0).all()
