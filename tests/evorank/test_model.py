"""Networks: shapes, sets, what the scores are, training, fine-tuning, the atom-level network."""

from pathlib import Path

import numpy as np
import pytest
import torch

from retable.common.checkpoints import Checkpoints
from retable.evorank.config import AtomConfig, EncoderConfig, FinetuneSettings, TrainSettings
from retable.evorank.model import (
    AtomGraphTransformer,
    EnvironmentEncoder,
    MutationHead,
    MutationScorer,
    ResidueHead,
)
from retable.evorank.networks import embeddings, load_scorers, save_scorers
from retable.evorank.structure import Environments, microenvironments, wildtype_of
from retable.evorank.training import (
    Measured,
    Positions,
    finetune,
    new_scorer,
    rank_transform,
    train_scorer,
)

from .test_structure import chain_of

SMALL = EncoderConfig(width=16, layers=2, heads=2, feedforward=32, dropout=0.1)
BACKBONE = chain_of(40, seed=3)
ENVIRONMENTS = microenvironments(BACKBONE)
WILDTYPE = torch.from_numpy(wildtype_of(BACKBONE))
METHODS = {
    "wildtype": {"objective": "wildtype"},
    "soft": {"objective": "soft"},
    "evorank": {"objective": "evorank"},
    "all": {"objective": "evorank", "pairs": "all"},
    "log_ratio": {"objective": "evorank", "label": "log_ratio"},
    "sign": {"objective": "evorank", "label": "sign"},
    "noenv": {"objective": "evorank", "environment": False},
}


def settings(method: str, **changes) -> TrainSettings:
    values = {"method": METHODS[method], "encoder": SMALL, "epochs": 3, "batch": 16}
    return TrainSettings(**(values | changes))


def positions(seed: int = 0) -> Positions:
    generator = torch.Generator().manual_seed(seed)
    p = torch.softmax(torch.randn(40, 20, generator=generator), dim=1)
    return Positions(ENVIRONMENTS, WILDTYPE, p)


def test_shapes():
    encoder = EnvironmentEncoder(SMALL)
    e = encoder(ENVIRONMENTS)
    assert e.shape == (40, 16)
    assert ResidueHead(16)(e).shape == (40, 20)
    head = MutationHead(16)
    one = head(e, WILDTYPE)
    assert one.shape == (40, 20)
    several = head(e, torch.stack([WILDTYPE, (WILDTYPE + 1) % 20], dim=1))
    assert several.shape == (40, 2, 20)
    assert torch.allclose(several[:, 0], one, atol=1e-6)
    with pytest.raises(ValueError, match=r"from_index: shape \(3,\), must be \(40,\) or"):
        head(e, torch.zeros(3))


def test_neighbours_are_a_set():
    encoder = EnvironmentEncoder(SMALL).eval()
    order = torch.randperm(16)
    mixed = Environments(ENVIRONMENTS.neighbours[:, order], ENVIRONMENTS.density)
    assert torch.allclose(encoder(mixed), encoder(ENVIRONMENTS), atol=1e-5)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_last_layer_is_that_of_a_whole_encoder(layers):
    """Only the first token is computed in it: the same as computing all of them."""
    encoder = EnvironmentEncoder(SMALL.model_copy(update={"layers": layers})).eval()
    tokens = encoder.tokens(ENVIRONMENTS)
    for layer in encoder.layers:
        tokens = layer(tokens)
    assert torch.allclose(encoder(ENVIRONMENTS), encoder.norm(tokens[:, 0]), atol=1e-5)


@pytest.mark.parametrize("head", [ResidueHead, MutationHead])
def test_score_matrix(head):
    torch.manual_seed(0)
    scorer = MutationScorer(EnvironmentEncoder(SMALL), head(16))
    scores = scorer.score_matrix(ENVIRONMENTS, WILDTYPE.numpy())
    assert scores.shape == (40, 20)
    assert scores[torch.arange(40), WILDTYPE].tolist() == [0] * 40
    e = scorer.embed(ENVIRONMENTS)
    if head is ResidueHead:
        logits = scorer.head(e)
        expected = logits[3, 7] - logits[3, WILDTYPE[3]]
    else:
        expected = scorer.head(e, WILDTYPE)[3, 7]
    if WILDTYPE[3] != 7:
        assert scores[3, 7].item() == pytest.approx(expected.item(), abs=1e-5)
    with pytest.raises(ValueError, match=r"wildtype: shape \(3,\), must be \(40,\)"):
        scorer.score_matrix(ENVIRONMENTS, WILDTYPE[:3])
    with pytest.raises(ValueError, match=r"wildtype: from 20 to 20, must be within 0\.\.19"):
        scorer.score_matrix(ENVIRONMENTS, torch.full_like(WILDTYPE, 20))


def test_without_environment_the_score_is_a_table_of_letters():
    scorer = new_scorer(settings("noenv"), 0)
    scores = scorer.score_matrix(ENVIRONMENTS, WILDTYPE)
    for letter in WILDTYPE.unique():
        rows = scores[letter == WILDTYPE]
        assert torch.equal(rows, rows[:1].expand(len(rows), -1))


@pytest.mark.parametrize("method", list(METHODS))
def test_training_learns_and_depends_on_the_seed(method):
    first, history = train_scorer(positions(), settings(method, epochs=25, lr=1e-2), 0)
    assert history[-1]["loss"] < history[0]["loss"]
    short = [train_scorer(positions(), settings(method), seed)[0] for seed in (0, 0, 1)]
    states = [scorer.state_dict() for scorer in short]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not all(torch.equal(states[0][name], states[2][name]) for name in states[0])
    assert not first.training


def test_encoders_start_alike():
    weights = [new_scorer(settings(m), 5).encoder.neighbour.weight for m in ("soft", "evorank")]
    assert torch.equal(*weights)


def test_a_restart_gives_the_same_network(tmp_path: Path):
    expected, _ = train_scorer(positions(), settings("all"), 0)

    class Stopped(Exception):
        pass

    checkpoints = Checkpoints(tmp_path, "same", seconds=0)
    saved = checkpoints.save
    calls = []

    def save_and_stop(*arguments):
        saved(*arguments)
        calls.append(1)
        if len(calls) == 4:
            raise Stopped

    checkpoints.save = save_and_stop
    with pytest.raises(Stopped):
        train_scorer(positions(), settings("all"), 0, checkpoints=checkpoints, name="run")
    again, _ = train_scorer(
        positions(), settings("all"), 0, checkpoints=Checkpoints(tmp_path, "same"), name="run"
    )
    for name, value in expected.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


def test_networks_on_disk(tmp_path: Path):
    scorers = {seed: new_scorer(settings("evorank"), seed).eval() for seed in (0, 3)}
    save_scorers(tmp_path / "m.safetensors", scorers, settings("evorank"))
    found = load_scorers(tmp_path / "m.safetensors")
    assert list(found) == [0, 3]
    for seed, scorer in scorers.items():
        assert torch.equal(
            found[seed].score_matrix(ENVIRONMENTS, WILDTYPE),
            scorer.score_matrix(ENVIRONMENTS, WILDTYPE),
        )
    assert embeddings(found[0], ENVIRONMENTS).shape == (40, 16)


def test_rank_transform():
    assert rank_transform(np.array([3.0, -1, 7])).tolist() == [0, -1, 1]
    assert rank_transform(np.array([1.0, 1, 2])).tolist() == [-0.5, -0.5, 1]


def test_fine_tuning_learns_what_two_proteins_share():
    """Hydrophobic letters are fitter, in every protein: the third one shows it."""
    fitness = np.linspace(-1, 1, 20)
    assays = []
    for seed in range(3):
        backbone = chain_of(40, seed=seed)
        places = np.repeat(np.arange(40), 20)
        letters = np.tile(np.arange(20), 40)
        noise = np.random.default_rng(seed).normal(size=800)
        assays.append(
            Measured(
                f"a{seed}",
                f"p{seed}",
                microenvironments(backbone),
                torch.from_numpy(wildtype_of(backbone)),
                places,
                letters,
                rank_transform(fitness[letters] + 0.1 * noise),
            )
        )
    encoder = EnvironmentEncoder(SMALL)
    first = encoder.layers[0].linear1.weight.clone()
    last = encoder.layers[1].linear1.weight.clone()
    choice = FinetuneSettings(rounds=40, steps=4, positions=16, lr=3e-3)
    scorer = finetune(encoder, assays[:2], choice, 0)
    assert torch.equal(scorer.encoder.layers[0].linear1.weight, first)
    assert not torch.equal(scorer.encoder.layers[1].linear1.weight, last)
    scores = scorer.score_matrix(assays[2].environments, assays[2].wildtype)
    order = scores.mean(0).numpy()
    assert np.corrcoef(order, fitness)[0, 1] > 0.8


def atoms(count: int = 30, batch: int = 2, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randint(0, 9, (batch, count), generator=generator),
        torch.randn(batch, count, 2, generator=generator),
        5 * torch.randn(batch, count, 3, generator=generator),
        torch.ones(batch, count, dtype=torch.bool),
    )


def test_atom_network():
    torch.manual_seed(0)
    network = AtomGraphTransformer(AtomConfig(width=16, depth=2, heads=4)).eval()
    element, properties, xyz, mask = atoms()
    logits = network(element, properties, xyz, mask)
    assert logits.shape == (2, 20)
    # Padding, the order of the atoms and a rotation change nothing.
    padded = [torch.cat([part, part[:, :5]], dim=1) for part in (element, properties, xyz)]
    wider = torch.cat([mask, ~mask[:, :5]], dim=1)
    assert torch.allclose(network(*padded, wider), logits, atol=1e-5)
    order = torch.randperm(30)
    moved = network(element[:, order], properties[:, order], xyz[:, order], mask)
    assert torch.allclose(moved, logits, atol=1e-5)
    turned = network(element, properties, xyz[..., [1, 2, 0]], mask)
    assert torch.allclose(turned, logits, atol=1e-5)
    # The mask token stands at the origin, the CA: atoms that move from it are seen.
    assert not torch.allclose(network(element, properties, xyz + 2, mask), logits, atol=1e-4)
    # Twice the same letter is no mutation; the other way round is the opposite before the head.
    a, b = torch.tensor([3, 20]), torch.tensor([5, 1])
    same = network(element, properties, xyz, mask, a, a)
    assert torch.allclose(same, same[:1].expand(2), atol=1e-6)
    score = network(element, properties, xyz, mask, a, b)
    assert score.shape == (2,)
    assert torch.isfinite(score).all()
    network.train()
    network(element, properties, xyz, mask, a, b).sum().backward()
    assert network.residue.weight.grad.abs().sum() > 0


def test_atom_network_bad_input():
    network = AtomGraphTransformer(AtomConfig(width=8, depth=1, heads=2, atoms=10))
    with pytest.raises(ValueError, match="element: 30 atoms; at most 10"):
        network(*atoms())
    with pytest.raises(ValueError, match="from_index, to_index: give both or neither"):
        network(*atoms(5), from_index=torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="heads: 3, must divide width = 16"):
        EncoderConfig(width=16, heads=3)
