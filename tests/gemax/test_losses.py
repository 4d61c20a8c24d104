"""The learned approximation: known values, padding, permutations, the factored form."""

import copy

import numpy as np
import pytest
import torch

from retable.gemax.losses import (
    orthogonality_loss,
    packing_entropy,
    packing_loss,
    vertex_distribution,
)
from retable.gemax.objectives import PackingWeights
from retable.gemax.train import converge_weights

PATH = torch.tensor([[[0, 1, 0], [1, 0, 1], [0, 1, 0]]], dtype=torch.float64)
Z = torch.tensor([[[1, 0], [0.6, 0.8], [0, 1]]], dtype=torch.float64)
G = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
MASK = torch.ones(1, 3, dtype=torch.bool)
HALVES = torch.full((1, 3), 0.5, dtype=torch.float64)
FALLING = torch.tensor([[1, 0.5, 0.25]], dtype=torch.float64)


def random_batch(graphs: int = 4, largest: int = 7, dim: int = 5, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(2, largest + 1, (graphs,), generator=generator)
    mask = torch.arange(largest) < sizes[:, None]
    upper = torch.rand(graphs, largest, largest, generator=generator).triu(1) > 0.6
    adj = (upper | upper.mT) & mask[:, :, None] & mask[:, None, :]
    z = torch.randn(graphs, largest, dim, generator=generator, dtype=torch.float64)
    g = torch.randn(graphs, dim, generator=generator, dtype=torch.float64)
    a = torch.rand(graphs, largest, generator=generator, dtype=torch.float64)
    return z, g, a, adj.double(), mask


@pytest.mark.parametrize("factored", [True, False, None])
def test_known_losses(factored):
    assert orthogonality_loss(Z, PATH, MASK, factored=factored).item() == pytest.approx(0, abs=1e-9)
    assert packing_loss(Z, HALVES, MASK, factored).item() == pytest.approx(0.125)
    assert packing_loss(Z, FALLING, MASK, factored).item() == pytest.approx(0.2)


def test_known_distribution_and_entropy():
    p = vertex_distribution(Z, G, MASK)
    assert p[0].tolist() == pytest.approx([0.631049, 0.283548, 0.085403], abs=1e-6)
    assert packing_entropy(p, HALVES, MASK).item() == pytest.approx(0.693147, abs=1e-6)
    assert packing_entropy(p, FALLING, MASK).item() == pytest.approx(0.314935, abs=1e-6)


@pytest.mark.parametrize("factored", [True, False])
def test_self_loops_free_the_norms(factored):
    z = torch.tensor([[[2, 0], [0, 1], [0, 1]]], dtype=torch.float64)
    assert orthogonality_loss(z, PATH, MASK, factored=factored).item() == pytest.approx(9)
    assert orthogonality_loss(z, PATH, MASK, True, factored).item() == pytest.approx(0, abs=1e-9)


def test_weights_converge_to_the_penalty_not_to_the_polytope():
    z = torch.zeros(1, 3, 2, dtype=torch.float64)
    z[..., 0] = 1
    p = torch.full((1, 3), 1 / 3, dtype=torch.float64)
    a = converge_weights(z, p, p.clone(), MASK, gamma=0.5, steps=1500, lr=1e-2)
    assert a[0].tolist() == pytest.approx([12**-0.25] * 3, abs=1e-4)
    entropy, packing = packing_entropy(p, a, MASK).item(), packing_loss(z, a, MASK).item()
    assert entropy == pytest.approx(0.621227, abs=1e-4)
    assert entropy + 0.5 * packing == pytest.approx(0.871227, abs=1e-6)


def test_dense_and_factored_agree():
    z, _, a, adj, mask = random_batch()
    for self_loops in (False, True):
        both = [orthogonality_loss(z, adj, mask, self_loops, way) for way in (True, False)]
        assert both[0] == pytest.approx(both[1], rel=1e-5)
    both = [packing_loss(z, a, mask, way) for way in (True, False)]
    assert both[0] == pytest.approx(both[1], rel=1e-5)


def test_losses_by_loops():
    z, _, a, adj, mask = random_batch(seed=3)
    for k in range(len(z)):
        n = int(mask[k].sum())
        orthogonality = packing = 0.0
        for i in range(n):
            for j in range(n):
                product = float(z[k, i] @ z[k, j])
                if not adj[k, i, j]:
                    orthogonality += (product - (i == j)) ** 2
                weighted = float(a[k, i] * a[k, j]) * product
                packing += (weighted - (i == j) * float(a[k, i]) ** 2) ** 2
        assert orthogonality_loss(z, adj, mask)[k].item() == pytest.approx(orthogonality)
        assert packing_loss(z, a, mask)[k].item() == pytest.approx(packing)


def test_padding_changes_nothing():
    z, g, a, adj, mask = random_batch()
    for k in range(len(z)):
        n = int(mask[k].sum())
        alone = (z[k : k + 1, :n], g[k : k + 1], a[k : k + 1, :n], adj[k : k + 1, :n, :n])
        real = torch.ones(1, n, dtype=torch.bool)
        p, q = vertex_distribution(z, g, mask)[k], vertex_distribution(*alone[:2], real)[0]
        assert p[:n].tolist() == pytest.approx(q.tolist())
        assert p[n:].sum() == 0
        for factored in (True, False):
            assert orthogonality_loss(z, adj, mask, factored=factored)[k].item() == pytest.approx(
                orthogonality_loss(alone[0], alone[3], real).item()
            )
            assert packing_loss(z, a, mask, factored)[k].item() == pytest.approx(
                packing_loss(alone[0], alone[2], real).item()
            )


def test_order_of_the_vertices_is_irrelevant():
    z, g, a, adj, _ = random_batch(largest=6)
    mask = torch.ones(z.shape[:2], dtype=torch.bool)
    order = torch.randperm(6, generator=torch.Generator().manual_seed(1))
    moved = (z[:, order], a[:, order], adj[:, order][:, :, order])
    p = vertex_distribution(z, g, mask)
    assert torch.allclose(vertex_distribution(moved[0], g, mask), p[:, order])
    assert torch.allclose(
        orthogonality_loss(moved[0], moved[2], mask), orthogonality_loss(z, adj, mask)
    )
    assert torch.allclose(packing_loss(moved[0], moved[1], mask), packing_loss(z, a, mask))
    assert torch.allclose(packing_entropy(p[:, order], moved[1], mask), packing_entropy(p, a, mask))


def test_gradients():
    z, g, a, adj, mask = random_batch(graphs=2, largest=4, dim=3)
    for tensor in (z, g, a):
        tensor.requires_grad_()
    for factored in (True, False):
        assert torch.autograd.gradcheck(
            lambda z, f=factored: orthogonality_loss(z, adj, mask, factored=f), z
        )
        assert torch.autograd.gradcheck(
            lambda z, a, f=factored: packing_loss(z, a, mask, f), (z, a)
        )
    assert torch.autograd.gradcheck(
        lambda z, g, a: packing_entropy(vertex_distribution(z, g, mask), a, mask), (z, g, a)
    )


def test_each_graph_has_an_adam_of_its_own():
    sizes = [2, 3, 4]
    weights = PackingWeights(torch.tensor(sizes), lr=0.02)
    assert [row.tolist() for row in weights.rows()] == [
        pytest.approx([1 / size] * size) for size in sizes
    ]
    reference = [torch.full((size,), 1 / size, requires_grad=True) for size in sizes]
    optimizers = [torch.optim.Adam([row], lr=0.02) for row in reference]
    generator = torch.Generator().manual_seed(0)
    # Graph 1 joins late and graph 0 rarely: their steps are as large as in a training of their own.
    for batch in ([2, 0], [2], [2], [1, 2], [2, 1], [0, 2], [1]):
        index = torch.tensor(batch)
        gradient = torch.randn(len(batch), 4, generator=generator)
        weights.step(index, gradient)
        for row, graph in zip(gradient, batch, strict=True):
            reference[graph].grad = row[: sizes[graph]].clone()
            optimizers[graph].step()
            with torch.no_grad():
                reference[graph].clamp_(1e-6, 1)
    for row, expected in zip(weights.rows(), reference, strict=True):
        assert row.tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_weights_stay_within_their_range_and_in_a_checkpoint():
    weights = PackingWeights(torch.tensor([2, 3]), lr=0.1)
    index, up = torch.tensor([1]), torch.ones(1, 3)
    for _ in range(12):
        weights.step(index, up)
    assert [row.tolist() for row in weights.rows()] == [[0.5] * 2, pytest.approx([1e-6] * 3)]
    other = PackingWeights(torch.tensor([2, 3]), lr=0.1)
    other.load_state_dict(copy.deepcopy(weights.state_dict()))
    for module in (weights, other):
        module.step(index, -up)
    assert all(torch.equal(a, b) for a, b in zip(weights.rows(), other.rows(), strict=True))
    for _ in range(40):
        weights.step(index, -up)
    assert weights.rows()[1].tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: packing_entropy(HALVES, HALVES + 1, MASK),
            r"a: values from 1\.5 to 1\.5, must be",
        ),
        (lambda: packing_loss(Z, -HALVES, MASK), r"a: values from -0\.5 to -0\.5"),
        (lambda: packing_loss(Z, HALVES[:, :2], MASK), r"a: shape \(1, 2\), must be \(1, 3\)"),
        (lambda: orthogonality_loss(Z, PATH + torch.eye(3), MASK), "adj: has self-loops"),
        (lambda: vertex_distribution(Z[..., :0], G, MASK), r"z: shape \(1, 3, 0\)"),
        (lambda: vertex_distribution(Z, G, MASK & False), "mask: graph 0 has no vertices"),
        (lambda: vertex_distribution(Z, G, MASK[:, :2]), r"mask: torch\.bool \(1, 2\), must be"),
        (lambda: packing_loss(Z, HALVES * np.nan, MASK), "a: values from nan"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vertex_distribution(Z, G[:, :1], MASK), r"g: shape \(1, 1\), must be \(1, 2\)"),
        (lambda: vertex_distribution(Z, G.expand(2, 2), MASK), r"g: shape \(2, 2\), must be"),
        (lambda: orthogonality_loss(Z, PATH[0], MASK), r"adj: shape \(3, 3\), must be \(1, 3, 3\)"),
        (lambda: packing_entropy(HALVES[0], HALVES, MASK), r"p: shape \(3,\), must be \(1, 3\)"),
        (lambda: packing_entropy(HALVES, HALVES, MASK), r"p: entries from 0.5, sums from 1.5"),
        (
            lambda: packing_entropy(torch.tensor([[-1.0, 1, 1]]), HALVES, MASK),
            r"p: entries from -1.0",
        ),
    ],
)
def test_shapes_and_distributions_that_do_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()
