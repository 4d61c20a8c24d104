"""The bottleneck: noise, KL, scores, and that it learns."""

import dataclasses

import numpy as np
import pytest
import torch

from retable.geam.config import FGIBConfig
from retable.geam.fgib import FGIB, bottleneck_kl, noisy_error, score_fragments, train_fgib
from retable.geam.fragments import MolGraph, collate, fragment_molecule
from retable.geam.vocabulary import Vocabulary

SMILES = [
    "CC(=O)Nc1ccc(OCC(O)CN2CCCCC2)cc1",
    "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F",
    "COc1ccccc1OCC(O)CN2CCN(CC(=O)Nc3c(C)cccc3C)CC2",
    "O=C(OCC)C(NC(C(=O)N1C(C(=O)O)CC2CCCCC12)C)CCC",
    "CCOC(=O)c1ccc(N)cc1",
    "CC(C)Cc1ccc(C(C)C(=O)NCC)cc1",
]
GRAPHS = [fragment_molecule(text) for text in SMILES]


def test_official_kl_by_hand():
    embedding = torch.tensor([[0.0], [2.0]])
    kl = bottleneck_kl(embedding, torch.tensor([0.5, 1.0]), torch.tensor([0, 0]))
    assert kl.item() == pytest.approx(0.75, abs=1e-5)
    twice = bottleneck_kl(
        embedding.repeat(2, 3), torch.tensor([0.5, 1.0] * 2), torch.tensor([0, 0, 1, 1])
    )
    assert twice.item() == pytest.approx(0.75, abs=1e-5)  # a mean over molecules and dimensions


def test_exact_kl_is_that_of_two_normals():
    embedding = torch.tensor([[0.0, 1.0], [2.0, 4.0], [1.0, 0.0]])
    w = torch.tensor([0.5, 0.2, 0.7])
    kl = bottleneck_kl(embedding, w, torch.tensor([0, 0, 0]), "exact")
    mu, sigma = embedding.mean(0), embedding.std(0)
    mean = w[:, None] * embedding + (1 - w[:, None]) * mu
    ours = torch.distributions.Normal(mean, (1 - w[:, None]) * sigma)
    reference = torch.distributions.kl_divergence(ours, torch.distributions.Normal(mu, sigma))
    assert kl.item() == pytest.approx(reference.mean(1).sum().item(), abs=1e-5)


def test_kl_of_a_single_fragment_is_finite():
    for kind in ("official", "exact"):
        kl = bottleneck_kl(torch.ones(1, 4), torch.tensor([0.0]), torch.tensor([0]), kind)
        assert torch.isfinite(kl)
        assert kl.item() == pytest.approx(0.0, abs=1e-6)


def test_noise_leaves_important_fragments_alone():
    torch.manual_seed(0)
    model = FGIB().eval()
    batch = collate(GRAPHS[:3])
    embedding = model._embed(batch)
    noise = torch.randn_like(embedding) * 100
    ones = torch.ones(len(embedding))
    quiet = model._predict(embedding, ones, batch, None)
    assert torch.equal(model._predict(embedding, ones, batch, noise), quiet)
    blurred = model._predict(embedding, 0 * ones, batch, noise)
    assert not torch.allclose(blurred, quiet)


def test_messages_equal_one_matrix_an_edge():
    torch.manual_seed(0)
    model = FGIB().eval()
    batch = collate(GRAPHS[:2])
    theta = model.edge(batch.edge_attr).view(-1, 44, 44)
    source, target = batch.edge_index
    h = torch.relu(model.inputs(batch.x))
    for _ in range(3):
        sent = torch.einsum("eij,ej->ei", theta, h[source])
        m = torch.relu(model.root(h) + torch.zeros_like(h).index_add_(0, target, sent))
        h = model.message(torch.cat([m, h], 1))
    atoms = torch.nn.functional.normalize(h + batch.x, dim=1)
    expected = torch.stack(
        [atoms[batch.node2frag == k].mean(0) for k in range(len(batch.frag2mol))]
    )
    torch.testing.assert_close(model._embed(batch), expected, atol=1e-5, rtol=1e-4)


def test_permuting_molecules_permutes_outputs():
    torch.manual_seed(0)
    model = FGIB().eval()
    order = [3, 0, 5, 1, 4, 2]
    first = model(collate(GRAPHS)).prediction
    second = model(collate([GRAPHS[k] for k in order])).prediction
    torch.testing.assert_close(second, first[order])


class _Fixed:
    """A bottleneck with given importances."""

    training = True

    def __init__(self, w):
        self._w = torch.tensor(w)

    def eval(self):
        self.training = False

    def train(self, mode):
        self.training = mode

    def importance(self, batch):
        return self._w[: len(batch.frag2mol)]


def one_fragment(name):
    zero = np.zeros
    return MolGraph(
        "C", zero((1, 44), np.float32), zero((2, 0), np.int32), zero((0, 10), np.float32),
        zero(1, np.int32), (name,),
    )  # fmt: skip


def test_scores_by_hand():
    graphs = [one_fragment("CCO[*:1]")] * 3
    y = [0.8, 0.2, 0.4]
    model = _Fixed([0.5, 1.0, 0.25])
    assert score_fragments(model, graphs, y)["CCO[*:1]"] == pytest.approx(0.7 / 6)
    assert model.training  # the mode is restored
    assert score_fragments(None, graphs, y, "property") == {"CCO[*:1]": pytest.approx(1.4 / 3)}
    sized = score_fragments(None, graphs, y, "property_size")
    assert sized["CCO[*:1]"] == pytest.approx(1.4 / 6)
    assert score_fragments(None, [one_fragment("CCO")], [0.5], "property") == {}


def test_a_fragment_twice_in_a_molecule_counts_twice():
    graph = dataclasses.replace(one_fragment(""), fragments=("C[*:1]", "C[*:1]"))
    other = one_fragment("C[*:1]")
    scores = score_fragments(None, [graph, other], [0.9, 0.0], "property")
    assert scores["C[*:1]"] == pytest.approx(0.6)


def test_training_learns_and_repeats_itself():
    graphs, y = GRAPHS * 20, np.tile([0.9, 0.1, 0.8, 0.2, 0.5, 0.4], 20)
    config = FGIBConfig(epochs=25, batch=30)
    model = train_fgib(graphs, y, config, seed=0)
    assert not model.training
    assert noisy_error(model, graphs, y, 0) < 0.5 * np.var(y)
    again = train_fgib(graphs, y, config, seed=0)
    for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert score_fragments(model, graphs, y) == score_fragments(again, graphs, y)


def test_bad_input():
    with pytest.raises(ValueError, match=r"y\[1\] is 1\.5"):
        score_fragments(None, GRAPHS[:2], [0.5, 1.5], "property")
    with pytest.raises(ValueError, match=r"y\[0\] is nan"):
        train_fgib(GRAPHS[:2], [np.nan, 0.5], FGIBConfig(), 0)
    with pytest.raises(ValueError, match="needs a model"):
        score_fragments(None, GRAPHS[:1], [0.5])
    with pytest.raises(ValueError, match="width is 32"):
        FGIB(32)


def test_vocabulary_keeps_the_best_within_its_limit():
    vocabulary = Vocabulary({"a": 0.5, "b": 0.3, "c": 0.1}, 3)
    assert vocabulary.fragments == ("a", "b", "c")
    assert vocabulary.update({"d": 0.4, "e": 0.05, "a": 0.9, "f": 0.2}, max_update=3) == 1
    assert vocabulary.fragments == ("a", "d", "b")  # f joined and fell out; a keeps its score
    assert vocabulary.scores["a"] == 0.5
    assert len(Vocabulary({"a": 1.0, "b": 2.0}, 1)) == 1
    with pytest.raises(ValueError, match="'a' is NaN"):
        Vocabulary({"a": float("nan")}, 3)
    with pytest.raises(ValueError, match="size_limit is 0"):
        Vocabulary({}, 0)
