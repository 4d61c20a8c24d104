"""The unconstrained feature model: closed form against free optimisation, and the theorem."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from retable.mlabnc import (
    balanced_label_sets,
    nc_metrics,
    pick_all_label_loss,
    solve_ufm,
    tag_average,
    ufm_objective,
    ufm_optimum,
)


def phi(scalars, num_classes, counts, lam_w, lam_h):
    """The objective at a collapsed point, written out set size by set size."""
    tau, *coefficients = scalars
    k = num_classes
    sizes = {m: n * math.comb(k, m) for m, n in counts.items()}
    value = lam_w * tau**2 * (k - 1)
    for (m, size), c in zip(sizes.items(), coefficients, strict=True):
        loss = m * math.log(m + (k - m) * math.exp(-tau * c))
        value += size / sum(sizes.values()) * loss + lam_h * size * c**2 * m * (k - m) / k
    return value


def test_optimum_of_four_classes():
    optimum = ufm_optimum(4, {1: 6, 2: 4}, lam_w=5e-3, lam_h=5e-4)
    assert optimum.objective == pytest.approx(0.87750021094, abs=1e-11)
    # Digits of the stationary point solved with 40-digit arithmetic.
    assert optimum.tau == pytest.approx(2.224667472494, abs=1e-11)
    assert optimum.coef[1] == pytest.approx(2.017185044929, abs=1e-11)
    assert optimum.coef[2] == pytest.approx(1.770495714441, abs=1e-11)
    assert optimum.kappa[2] == pytest.approx(0.877706147431, abs=1e-11)
    assert optimum.kappa[1] == 1
    assert not optimum.degenerate


def test_optimum_with_triples():
    optimum = ufm_optimum(5, {1: 4, 2: 1, 3: 1}, lam_w=5e-3, lam_h=5e-4)
    assert optimum.objective == pytest.approx(1.38245965477, abs=1e-11)
    assert optimum.kappa[2] == pytest.approx(0.88188837, abs=1e-7)
    assert optimum.kappa[3] == pytest.approx(0.81448212, abs=1e-7)


def test_optimum_of_three_classes():
    optimum = ufm_optimum(3, {1: 10, 2: 10}, lam_w=1e-2, lam_h=1e-3)
    assert optimum.objective == pytest.approx(0.93131974343, abs=1e-11)
    assert optimum.kappa[2] == pytest.approx(0.85441478, abs=1e-7)


@pytest.mark.parametrize(
    ("num_classes", "counts", "lam_w", "lam_h"),
    [
        (2, {1: 5}, 1e-3, 1e-3),
        (3, {1: 1, 2: 40}, 1e-2, 1e-4),
        (6, {1: 3, 2: 1, 4: 2, 5: 7}, 1e-4, 1e-5),
        (10, {2: 3}, 1e-3, 1e-4),
    ],
)
def test_optimum_against_direct_minimisation(num_classes, counts, lam_w, lam_h):
    optimum = ufm_optimum(num_classes, counts, lam_w, lam_h)
    arguments = (num_classes, counts, lam_w, lam_h)
    rng = np.random.default_rng(0)
    starts = rng.uniform(0.5, 4, size=(5, 1 + len(counts)))
    found = [minimize(phi, s, arguments, tol=1e-12).fun for s in starts]
    assert optimum.objective == pytest.approx(min(found), abs=1e-10)
    at_optimum = phi([optimum.tau, *optimum.coef.values()], *arguments)
    assert at_optimum == pytest.approx(optimum.objective, abs=1e-14)


def test_optimum_is_continuous_up_to_collapse_and_reports_it():
    weights = np.geomspace(1e-3, 1, 40)
    optima = [ufm_optimum(4, {1: 6, 2: 4}, w, w / 10) for w in weights]
    collapsed = [o.degenerate for o in optima]
    assert not collapsed[0]
    assert collapsed[-1]
    assert collapsed == sorted(collapsed)
    value = (24 + 2 * 24) / 48 * math.log(4)
    for optimum in optima:
        if optimum.degenerate:
            assert optimum.objective == pytest.approx(value, abs=1e-14)
            assert optimum.tau == optimum.coef[1] == optimum.coef[2] == 0
            assert math.isnan(optimum.kappa[2])
        else:
            assert optimum.objective < value
    solved = solve_ufm(balanced_label_sets(4, {1: 6, 2: 4}), 4, 1.0, 0.1, 0.01)
    assert solved.objective == pytest.approx(value, abs=1e-9)
    assert solved.W.norm() < 1e-5


def test_kappa_without_single_labels_is_undefined():
    optimum = ufm_optimum(4, {2: 3}, 5e-3, 5e-4)
    assert optimum.tau > 0
    assert math.isnan(optimum.kappa[2])


@pytest.mark.parametrize(
    ("num_classes", "dim", "counts", "lam_w", "lam_h", "objective"),
    [
        (4, 4, {1: 6, 2: 4}, 5e-3, 5e-4, 0.87750021094),
        (4, 3, {1: 6, 2: 4}, 5e-3, 5e-4, 0.87750021094),
        (5, 4, {1: 4, 2: 1, 3: 1}, 5e-3, 5e-4, 1.38245965477),
        (5, 6, {1: 4, 2: 1, 3: 1}, 5e-3, 5e-4, 1.38245965477),
        (3, 2, {1: 10, 2: 10}, 1e-2, 1e-3, 0.93131974343),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_random_starts_reach_the_closed_form_and_collapse(
    num_classes, dim, counts, lam_w, lam_h, objective, seed
):
    targets = balanced_label_sets(num_classes, counts)
    result = solve_ufm(targets, dim, lam_w, lam_h, 1e-2, seed=seed)
    optimum = ufm_optimum(num_classes, counts, lam_w, lam_h)
    assert result.converged
    assert result.grad_norm <= 1e-6
    assert result.objective == pytest.approx(objective, abs=1e-10)
    assert result.objective == pytest.approx(optimum.objective, abs=1e-10)
    weight_norm, feature_norm = result.W.square().sum(), result.H.square().sum()
    assert (lam_w * weight_norm).item() == pytest.approx((lam_h * feature_norm).item(), rel=1e-6)
    assert weight_norm.item() == pytest.approx(optimum.tau**2 * (num_classes - 1), rel=1e-6)
    assert result.b.abs().max() < 1e-6
    # Twice each row: nc1 warns of label sets with one sample, rightly.
    metrics = nc_metrics(result.H.repeat(2, 1), targets.repeat(2, 1), result.W)
    for m in counts:
        assert metrics[f"nc1_m{m}"] < 1e-4
    for name in ("nc2_h", "nc2_w", "nc3", "angle_ratio", "residual", "kappa_std"):
        assert metrics[name] < 1e-4
    for m in counts:
        if m > 1:
            tags = tag_average(result.H, targets, multiplicity=m)
            assert tags.kappa_mean == pytest.approx(optimum.kappa[m], abs=1e-5)
            assert tags.residual < 1e-4


def test_same_seed_same_solution_and_a_prefix_of_the_path():
    targets = balanced_label_sets(3, {1: 4, 2: 4})
    runs = [solve_ufm(targets, 2, 5e-3, 5e-4, 1e-2, seed=3, max_iter=9) for _ in range(2)]
    assert torch.equal(runs[0].W, runs[1].W)
    path = [solve_ufm(targets, 2, 5e-3, 5e-4, 1e-2, seed=3, max_iter=i) for i in (0, 1, 5, 9)]
    objectives = [point.objective for point in path]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[-1] == runs[0].objective
    assert not path[0].converged
    assert (path[0].b == 0).all()


def test_single_precision():
    targets = balanced_label_sets(3, {1: 4, 2: 4})
    result = solve_ufm(targets, 2, 5e-3, 5e-4, 1e-2, dtype=torch.float32)
    assert result.W.dtype == torch.float32
    expected = ufm_optimum(3, {1: 4, 2: 4}, 5e-3, 5e-4).objective
    assert result.objective == pytest.approx(expected, abs=1e-5)


def test_objective_by_its_definition_and_its_gradient():
    generator = torch.Generator().manual_seed(0)
    targets = balanced_label_sets(4, {1: 1, 2: 1})
    W, H, b = (
        torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True)
        for shape in ((4, 3), (10, 3), (4,))
    )
    expected = pick_all_label_loss(H @ W.T + b, targets)
    expected = expected + 0.1 * (W**2).sum() + 0.01 * (H**2).sum() + 0.2 * (b**2).sum()
    torch.testing.assert_close(ufm_objective(W, H, b, targets, 0.1, 0.01, 0.2), expected)
    assert torch.autograd.gradcheck(
        lambda W, H, b: ufm_objective(W, H, b, targets, 0.1, 0.01, 0.2), (W, H, b)
    )


def test_balanced_label_sets_count_every_set_the_same():
    targets = balanced_label_sets(4, {2: 3, 1: 2})
    assert targets.shape == (2 * 4 + 3 * 6, 4)
    assert targets.dtype == torch.float64
    sets, counts = np.unique(targets.numpy(), axis=0, return_counts=True)
    assert len(sets) == 10
    assert set(zip(sets.sum(axis=1), counts, strict=True)) == {(1.0, 2), (2.0, 3)}
    assert targets[:3].tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]


def test_bad_input():
    with pytest.raises(ValueError, match="multiplicity 3, a row with all 3 labels"):
        balanced_label_sets(3, {3: 1})
    with pytest.raises(ValueError, match=r"multiplicities in 1\.\.2, got multiplicity 0"):
        ufm_optimum(3, {0: 1}, 1e-3, 1e-3)
    with pytest.raises(ValueError, match=r"counts\[2\] must be at least 1 sample .* got 0"):
        balanced_label_sets(3, {2: 0})
    with pytest.raises(ValueError, match="counts must name at least one multiplicity"):
        balanced_label_sets(3, {})
    with pytest.raises(ValueError, match="num_classes must be at least 2, got 1"):
        ufm_optimum(1, {1: 1}, 1e-3, 1e-3)
    full = torch.tensor([[1.0, 0, 0], [1, 1, 1]])
    with pytest.raises(ValueError, match="row 1 has all 3 labels"):
        solve_ufm(full, 2, 1e-3, 1e-3, 1e-3)
    targets = balanced_label_sets(3, {1: 1})
    with pytest.raises(ValueError, match=r"lam_h must be finite and above 0, got 0"):
        solve_ufm(targets, 2, 1e-3, 0.0, 1e-3)
    with pytest.raises(ValueError, match=r"lam_w must be finite and above 0, got -1"):
        ufm_optimum(3, {1: 1}, -1, 1e-3)
    with pytest.raises(ValueError, match=r"lam_b must be finite and at least 0, got nan"):
        solve_ufm(targets, 2, 1e-3, 1e-3, math.nan)
    with pytest.raises(ValueError, match="dim must be >= 1"):
        solve_ufm(targets, 0, 1e-3, 1e-3, 1e-3)
