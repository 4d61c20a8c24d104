"""Properties that hold for any molecule and any vocabulary."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from retable.geam.assembly import AssemblyEnv, RandomAgent, observe_graph
from retable.geam.fgib import FGIB, bottleneck_kl, score_fragments
from retable.geam.fragments import brics_fragments, collate, fragment_molecule
from retable.geam.metrics import auc_top_k, fingerprints, n_circles, top_k_curve
from retable.geam.vocabulary import Vocabulary

FRAGMENTS = [
    "CC(=O)[*:1]", "O([*:1])[*:1]", "N([*:1])[*:1]", "c1cc([*:1])ccc1[*:1]", "C1CCN([*:1])CC1",
    "c1cn([*:1])cc1[*:1]", "OC(C[*:1])C[*:1]", "CC(C)C[*:1]", "O=C([*:1])C[*:1]",
    "FC(F)(F)[*:1]", "O=S(=O)([*:1])[*:1]", "C[N+](C)(C)[*:1]", "Clc1ccc([*:1])s1",
    "O=C([*:1])N([*:1])[*:1]", "C(C#C[*:1])[*:1]", "[O-][N+](=O)c1ccccc1[*:1]",
]  # fmt: skip
VOCABULARY = Vocabulary(dict.fromkeys(FRAGMENTS, 0.0), len(FRAGMENTS))


def assembled(seed):
    """A molecule of random fragments."""
    agent, env = RandomAgent(VOCABULARY, seed), AssemblyEnv(VOCABULARY, 30)
    while not env.done:
        (action,) = agent.act([observe_graph(env.mol)])
        env.step(action)
    return Chem.CanonSmiles(Chem.MolToSmiles(env.final_molecule()))


def heavy(smiles):
    return sum(atom.GetAtomicNum() > 0 for atom in Chem.MolFromSmiles(smiles).GetAtoms())


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**31))
def test_fragments_share_out_a_molecule(seed):
    smiles = assembled(seed)
    mol = Chem.MolFromSmiles(smiles)
    graph = fragment_molecule(smiles)
    if graph is None:
        assert brics_fragments(smiles) == []
        return
    sizes = [heavy(fragment) for fragment in graph.fragments]
    assert sum(sizes) == mol.GetNumHeavyAtoms() == len(graph.x)
    assert np.bincount(graph.node2frag, minlength=len(sizes)).tolist() == sizes
    # Each cut leaves two attachment points; the other bonds stay within a fragment.
    points = sum(fragment.count("*") for fragment in graph.fragments)
    within = graph.node2frag[graph.edge_index[0]] == graph.node2frag[graph.edge_index[1]]
    assert points == (~within).sum()
    assert graph.edge_index.shape == (2, 2 * mol.GetNumBonds())
    assert all("*" in fragment for fragment in graph.fragments)
    assert brics_fragments(smiles) == list(graph.fragments)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 40), min_size=2, max_size=6, unique=True), st.randoms())
def test_a_molecule_means_the_same_in_any_batch(seeds, random):
    graphs = [graph for seed in seeds if (graph := fragment_molecule(assembled(seed)))]
    if not graphs:
        return
    torch.manual_seed(0)
    model = FGIB().eval()
    order = random.sample(range(len(graphs)), len(graphs))
    with torch.no_grad():
        whole = model(collate([graphs[k] for k in order]))
        alone = [model(collate([graphs[k]])) for k in order]
    torch.testing.assert_close(whole.prediction, torch.cat([one.prediction for one in alone]))
    torch.testing.assert_close(whole.importance, torch.cat([one.importance for one in alone]))
    torch.testing.assert_close(whole.kl, torch.stack([one.kl for one in alone]).mean())
    y = np.linspace(0, 1, len(graphs))
    first = score_fragments(model, graphs, y)
    second = score_fragments(model, [graphs[k] for k in order], y[order])
    assert first.keys() == second.keys()
    np.testing.assert_allclose(list(first.values()), [second[f] for f in first], rtol=1e-5)


@given(
    st.lists(st.floats(0, 1, width=32), min_size=1, max_size=8),
    st.lists(st.integers(0, 3), min_size=8, max_size=8),
    st.integers(0, 2**31),
)
def test_information_is_never_negative(weights, owners, seed):
    frag2mol = torch.tensor(sorted(owners[: len(weights)]))
    frag2mol = torch.unique(frag2mol, return_inverse=True)[1]
    embedding = torch.randn(len(weights), 5, generator=torch.Generator().manual_seed(seed))
    for kind in ("official", "exact"):
        value = bottleneck_kl(embedding, torch.tensor(weights), frag2mol, kind).item()
        assert np.isfinite(value)
        assert value >= -1e-6
    nothing = torch.zeros(len(weights))
    assert abs(bottleneck_kl(embedding, nothing, frag2mol, "exact").item()) < 1e-6


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1), max_size=6),
    st.lists(st.dictionaries(st.sampled_from("abcdefghijklm"), st.floats(0, 1)), max_size=5),
    st.integers(1, 6),
    st.integers(1, 4),
)
def test_a_vocabulary_only_gets_better(first, offers, limit, max_update):
    vocabulary = Vocabulary(first, limit)
    for new in offers:
        before = vocabulary.scores
        added = vocabulary.update(new, max_update)
        after = vocabulary.scores
        assert len(after) <= limit
        joined, lost = after.keys() - before.keys(), before.keys() - after.keys()
        assert added == len(joined) <= max_update
        if lost:
            assert len(after) == limit
            assert min(after.values()) >= max(before[f] for f in lost)
        assert all(after[f] == before.get(f, new.get(f)) for f in after)
        assert list(after.values()) == sorted(after.values(), reverse=True)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(1, 10), st.integers(1, 15))
def test_areas_lie_below_the_last_mean(scores, k, every):
    calls, means = top_k_curve(scores, k, len(scores), every)
    assert calls[0] == 0
    assert calls[-1] == len(scores)
    full = means[calls >= k]
    assert (np.diff(full) >= -1e-12).all()  # from k calls on the mean never falls
    assert 0 <= auc_top_k(scores, k, len(scores), every) <= max(scores) + 1e-12
    assert np.isclose(means[-1], np.sort(scores)[::-1][:k].mean())


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.integers(0, 100))
def test_circles_are_apart_and_cover_all(seeds, order):
    fps = fingerprints([assembled(seed) for seed in seeds])
    count = n_circles(fps, seed=order)
    assert 1 <= count <= len({fp.tobytes() for fp in fps})
    assert n_circles(fps, threshold=1.0, seed=order) == 1  # no distance exceeds 1
    assert n_circles(np.concatenate([fps, fps]), threshold=0.0) == len({fp.tobytes() for fp in fps})
