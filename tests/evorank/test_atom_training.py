"""The atom-level network: pairs at once, objectives, checkpoints, fine-tuning."""

import copy

import numpy as np
import pytest
import torch

from retable.common.checkpoints import Checkpoints
from retable.evorank.atom_data import AtomPositions, save_environments
from retable.evorank.atom_networks import load_atom_networks, save_atom_networks
from retable.evorank.atom_training import (
    Stability,
    atom_embeddings,
    atom_logits,
    drawn_pairs,
    finetune_atom_network,
    new_atom_network,
    score_atom_positions,
    train_atom_network,
)
from retable.evorank.atoms import environment_table
from retable.evorank.config import AtomConfig, AtomFinetuneSettings, AtomTrainSettings, Method
from retable.evorank.losses import evorank_loss, pair_loss

from .structures import structure

TINY = AtomConfig(width=16, depth=1, heads=2, atoms=24)
METHODS = {
    "wildtype": Method(objective="wildtype"),
    "soft": Method(objective="soft"),
    "evorank": Method(objective="evorank"),
    "all": Method(objective="evorank", pairs="all"),
    "log_ratio": Method(objective="evorank", label="log_ratio"),
    "noenv": Method(objective="evorank", environment=False),
}


def settings(method, **changes):
    return AtomTrainSettings(
        **{"method": METHODS[method], "network": TINY, "steps": 20, "batch": 16, "lr": 3e-3}
        | changes
    )


@pytest.fixture(scope="module")
def positions(tmp_path_factory):
    """60 positions of two proteins; leucine is liked everywhere, tryptophan nowhere."""
    path = tmp_path_factory.mktemp("atoms") / "positions.safetensors"
    tables = {}
    for name in ("5p21", "2grn"):
        table = environment_table(structure(name), np.arange(40, 70), most=24)
        p = np.full((30, 20), 0.03)
        p[:, 9] = 0.42
        p[:, 18] = 0.04 - 1e-3
        p /= p.sum(1, keepdims=True)
        tables[name] = table | {"p": p}
    save_environments(path, tables)
    return AtomPositions([path])


def test_pairs_at_once_are_those_one_by_one(positions):
    network = new_atom_network(settings("evorank"), 0).eval()
    batch = positions.batch(torch.arange(3))
    first, second = torch.tensor([[0], [4], [7]]), torch.tensor([[1, 2], [4, 5], [9, 3]])
    with torch.no_grad():
        together = network(*batch.inputs, first, second)
        assert together.shape == (3, 1, 2)
        for column in range(2):
            alone = network(*batch.inputs, first[:, 0], second[:, column])
            assert torch.allclose(together[:, 0, column], alone, atol=1e-6)
        square = network(*batch.inputs, second, second)
        assert square.shape == (3, 2, 2)
        again = network(*batch.inputs, second, second.clone())
        assert torch.allclose(square, again, atol=1e-6)
    with pytest.raises(ValueError, match=r"from_index, to_index: shapes \(3, 1\) and \(3,\)"):
        network(*batch.inputs, first, second[:, 0])


def test_the_loss_over_all_letters_is_that_of_the_laptop():
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(5, 20, generator=generator, dtype=torch.float64)
    p = p / p.sum(1, keepdim=True)
    wildtype = torch.tensor([0, 3, 9, 19, 3])
    every = torch.arange(20).expand(5, 20)
    for label in ("difference", "log_ratio", "sign"):
        scores = torch.randn(5, 20, generator=generator, dtype=torch.float64)
        found = pair_loss(scores[:, None], p, wildtype[:, None], every, label)
        assert torch.allclose(found, evorank_loss(scores, p, wildtype, label))
        scores = torch.randn(5, 20, 20, generator=generator, dtype=torch.float64)
        found = pair_loss(scores, p, every, every, label)
        assert torch.allclose(found, evorank_loss(scores, p, wildtype, label, "all"))
    with pytest.raises(ValueError, match=r"scores: shape \(5, 20, 20\), must be \(5, 1, 20\)"):
        pair_loss(scores, p, wildtype[:, None], every)


def test_drawn_pairs():
    torch.manual_seed(0)
    wildtype = torch.arange(20).repeat(50)
    first, second = drawn_pairs(wildtype, 4, "wildtype")
    assert torch.equal(first[:, 0], wildtype)
    assert second.shape == (1000, 4)
    assert not (second == first).any()
    assert (second.sort(1).values.diff(dim=1) > 0).all()
    # Evenly: 19 others, 4 of them drawn 1000 times.
    counts = second.flatten().bincount(minlength=20)
    assert counts.min() > 150
    first, second = drawn_pairs(wildtype, 4, "all")
    assert first is second
    assert first.shape == (1000, 5)


@pytest.mark.parametrize("method", list(METHODS))
def test_training_learns(positions, method):
    network, history = train_atom_network(positions, settings(method, steps=30), 0)
    assert len(history) == 10  # 30 steps of 3 a pass
    assert history[-1]["loss"] < history[0]["loss"]
    mutations = METHODS[method].objective == "evorank"
    environment = METHODS[method].environment
    scores = score_atom_positions(
        network, positions, mutations=mutations, environment=environment, batch=32
    )
    assert scores.shape == (60, 20)
    assert (scores[np.arange(60), positions.wildtype] == 0).all()
    if method != "wildtype":
        best = scores.mean(0)
        assert best[9] == best.max()


def test_training_depends_on_the_seed_alone(positions):
    first, again, other = (
        train_atom_network(positions, settings("all", steps=2), seed)[0].state_dict()
        for seed in (0, 0, 1)
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["element.weight"], other["element.weight"])


def test_every_parameter_that_is_trained_has_a_gradient(positions):
    batch = positions.batch(torch.arange(8))
    for method in ("wildtype", "evorank"):
        network = new_atom_network(settings(method), 0)
        if method == "wildtype":
            network(*batch.inputs).square().sum().backward()
        else:
            pairs = drawn_pairs(batch.wildtype, 4, "wildtype")
            network(*batch.inputs, *pairs).square().sum().backward()
        for name, parameter in network.named_parameters():
            assert (parameter.grad is not None) == parameter.requires_grad, (method, name)


def test_a_cut_last_pass_and_a_restart(positions, tmp_path):
    choice = settings("evorank", steps=7)
    network, history = train_atom_network(positions, choice, 0)
    assert len(history) == 3  # two passes of three steps and one step
    checkpoints = Checkpoints(tmp_path, "same", 0.0)
    train_atom_network(positions, settings("evorank", steps=6), 0, checkpoints=checkpoints)
    resumed, _ = train_atom_network(positions, choice, 0, checkpoints=checkpoints)
    for name, value in network.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name


def test_without_environment_the_score_is_a_table_of_letters(positions):
    network = new_atom_network(settings("noenv"), 0).eval()
    scores = score_atom_positions(network, positions, mutations=True, environment=False)
    wildtype = positions.wildtype.numpy()
    for letter in np.unique(wildtype):
        own = scores[wildtype == letter]
        assert np.allclose(own, own[0], atol=1e-6)
    seen = score_atom_positions(network, positions, mutations=True)
    assert not np.allclose(seen, scores, atol=1e-6)


def test_embeddings_do_not_depend_on_batches(positions):
    network = new_atom_network(settings("wildtype"), 0).eval()
    found = atom_embeddings(network, positions, batch=60)
    assert found.shape == (60, 16)
    assert np.allclose(found, atom_embeddings(network, positions, batch=7), atol=1e-5)
    logits = atom_logits(network, positions)
    scores = score_atom_positions(network, positions, mutations=False)
    own = logits[np.arange(60), positions.wildtype][:, None]
    assert np.allclose(scores, logits - own, atol=1e-5)


def test_networks_on_disk(positions, tmp_path):
    choice = settings("soft")
    networks = {seed: new_atom_network(choice, seed).eval() for seed in (0, 2)}
    save_atom_networks(tmp_path / "x", networks, choice, mutations=False)
    found, about, mutations = load_atom_networks(tmp_path / "x")
    assert (list(found), about, mutations) == ([0, 2], choice, False)
    batch = positions.batch(torch.arange(4))
    for seed, network in networks.items():
        with torch.no_grad():
            assert torch.equal(found[seed](*batch.inputs), network(*batch.inputs))


def test_fine_tuning_learns_what_proteins_share(positions):
    network = new_atom_network(settings("wildtype"), 0)
    places = np.repeat(np.arange(60), 3)
    letters = np.tile([9, 18, 0], 60)
    values = np.tile([2.0, -2.0, 0.0], 60)
    measured = Stability(places, letters, values)
    choice = AtomFinetuneSettings(epochs=8, batch=30, lr=3e-3, held_out=0.5)
    before = copy.deepcopy(network.state_dict())
    found = finetune_atom_network(network, positions, measured, choice, 0)
    scores = score_atom_positions(found, positions, mutations=True)[places, letters]
    moved = letters != positions.wildtype.numpy()[places]
    assert np.corrcoef(scores[moved], values[moved])[0, 1] > 0.8
    assert torch.equal(found.residue.bias, before["residue.bias"])
    assert not torch.equal(found.element.weight, before["element.weight"])
    one = Stability(places[:30], letters[:30], values[:30])
    with pytest.raises(ValueError, match="measured: one protein only"):
        finetune_atom_network(network, positions, one, choice, 0)
