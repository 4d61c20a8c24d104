import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from retable.adambias import (
    adam_trajectory,
    bias_coefficient,
    bilinear,
    gd_modified_flow,
    gd_trajectory,
    global_error,
    log_cosh_batches,
    memory_coefficient,
    minibatch_flow,
    minibatch_rhs,
    minibatch_trajectory,
    modified_flow,
    modified_rhs,
    observed_order,
    perturbed_one_norm,
    softened_one_norm,
)

START = torch.tensor([2.8, 3.5], dtype=torch.float64)
THREE = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
SETTINGS = {"h": 0.1, "beta": 0.5, "rho": 0.8, "eps": 0.3}


def _vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def _quadratic(theta):
    return 0.5 * (4.0 * theta[0] ** 2 + theta[1] ** 2)


# c_n ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beta", "n", "expected"),
    [
        (0.9, 0, 1.0),
        (0.9, 1, 1.9473684211),
        (0.9, 2, 2.8597785978),
        (0.5, 1, 5 / 3),
        (0.0, 0, 1.0),
        (0.0, 7, 1.0),
        (0.0, None, 1.0),
        (0.5, None, 3.0),
        (0.9, None, 19.0),
        (0.99, None, 199.0),
        (0.999, None, 1999.0),
    ],
)
def test_memory_coefficient(beta, n, expected):
    assert memory_coefficient(beta, n) == pytest.approx(expected, abs=1e-9)


@given(st.floats(0.01, 0.999), st.integers(0, 60))
def test_memory_coefficient_is_the_mean_age(beta, n):
    weights = [beta ** (n - k) for k in range(n + 1)]
    age = sum(w * (n - k) for k, w in enumerate(weights)) / sum(weights)
    assert memory_coefficient(beta, n) == pytest.approx(1.0 + 2.0 * age, rel=1e-8)
    assert memory_coefficient(beta, n) <= memory_coefficient(beta) * (1 + 1e-12)


def test_memory_coefficient_far_from_its_limit_keeps_its_digits():
    # For β → 1 all past weighs alike: c_n → 1 + n.
    assert memory_coefficient(1.0 - 1e-9, 10) == pytest.approx(11.0, abs=1e-5)


# κ ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beta", "rho", "eps", "expected"),
    [
        (0.9, 0.999, 1e-12, 19.0 - 1999.0),
        (0.9, 0.5, 1e-12, 16.0),
        (0.9, 0.9, 1e-12, 0.0),
        (0.9, 0.99, 1e12, 19.0),
        (0.0, 0.9, 1e-12, 1.0 - 19.0),
        (0.0, 0.9, 1e12, 1.0),
    ],
)
def test_regimes(beta, rho, eps, expected):
    kappa = bias_coefficient(_vector(1.0, -2.0), beta=beta, rho=rho, eps=eps)
    torch.testing.assert_close(kappa, _vector(expected, expected), rtol=1e-9, atol=1e-7)


@given(st.floats(0.01, 0.9), st.floats(0.01, 0.999), st.one_of(st.none(), st.integers(1, 500)))
def test_the_sign_changes_where_the_closed_form_says(beta, rho, n):
    share = 1.0 - memory_coefficient(beta, n) / memory_coefficient(rho, n)
    if not 0.01 < share < 0.99:
        return
    eps = 0.5
    turn = math.sqrt(eps / share - eps)  # |g| at which ε / (g² + ε) = share
    kappa = bias_coefficient(_vector(turn * 0.99, -turn * 1.01), beta=beta, rho=rho, eps=eps, n=n)
    assert kappa[0] > 0 > kappa[1]


def test_kappa_for_eps_outside():
    kappa = bias_coefficient(
        _vector(3.0, -4.0), beta=0.5, rho=0.75, eps=1.0, eps_placement="outside"
    )
    torch.testing.assert_close(kappa, _vector(-2.25, -2.6))


# Full-batch right side ----------------------------------------------------------------------------


def test_right_side_inside():
    theta = _vector(1.0, 2.0)
    kwargs = {"beta": 0.5, "rho": 0.8, "eps": 9.0}
    kappa = bias_coefficient(_vector(4.0, 2.0), **kwargs)
    torch.testing.assert_close(kappa, _vector(-2.76, 0.2307692), rtol=0, atol=1e-7)
    got = modified_rhs(_quadratic, theta, h=0.1, **kwargs)
    torch.testing.assert_close(got, _vector(-0.71168, -0.5564753), rtol=0, atol=1e-7)
    plain = modified_rhs(_quadratic, theta, h=0.1, order=1, **kwargs)
    torch.testing.assert_close(plain, _vector(-4 / 5, -2 / math.sqrt(13)))


def test_right_side_outside():
    hessian = _vector(2.0, 1.0, 1.0, 3.0).view(2, 2)

    def loss(theta):
        return 0.5 * theta @ hessian @ theta + theta @ _vector(3.0, -4.0)

    got = modified_rhs(
        loss, _vector(0.0, 0.0), h=0.2, beta=0.5, rho=0.75, eps=1.0, eps_placement="outside"
    )
    torch.testing.assert_close(got, _vector(-0.710625, 0.7142), rtol=0, atol=1e-9)


@pytest.mark.parametrize("placement", ["inside", "outside"])
def test_the_bias_is_the_gradient_of_the_norm_through_autograd(placement):
    loss = log_cosh_batches()[0]
    theta = THREE.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(theta), theta, create_graph=True)
    norm = perturbed_one_norm if placement == "inside" else softened_one_norm
    (norm_gradient,) = torch.autograd.grad(norm(gradient, 0.3), theta)
    g = gradient.detach()
    root = (g**2 + 0.3).sqrt() if placement == "inside" else g.abs() + 0.3
    kappa = bias_coefficient(g, beta=0.5, rho=0.8, eps=0.3, n=4, eps_placement=placement)
    expected = -(g + 0.05 * kappa * norm_gradient) / root
    got = modified_rhs(loss, THREE, n=4, eps_placement=placement, **SETTINGS)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-13)


@settings(max_examples=25, deadline=None)
@given(st.floats(1e-3, 1e3), st.floats(0.0, 0.95), st.floats(0.0, 0.95), st.integers(0, 50))
def test_scaling_the_loss_and_eps_together_changes_nothing(c, beta, rho, n):
    loss = bilinear()

    def scaled(theta):
        return c * loss(theta)

    kwargs = {"h": 0.01, "beta": beta, "rho": rho}
    torch.testing.assert_close(
        modified_rhs(scaled, START, eps=0.3 * c * c, n=n, **kwargs),
        modified_rhs(loss, START, eps=0.3, n=n, **kwargs),
        rtol=1e-9,
        atol=1e-9,
    )
    torch.testing.assert_close(
        adam_trajectory(scaled, START, steps=5, eps=0.3 * c * c, **kwargs),
        adam_trajectory(loss, START, steps=5, eps=0.3, **kwargs),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("placement", ["inside", "outside"])
def test_permuting_coordinates_commutes(placement):
    loss = log_cosh_batches()[1]
    order = torch.tensor([2, 0, 1])
    back = torch.argsort(order)

    def permuted(theta):
        return loss(theta[back])

    for function, kwargs in (
        (modified_rhs, {"n": 3}),
        (adam_trajectory, {"steps": 8}),
        (modified_flow, {"steps": 4}),
    ):
        kwargs = {**SETTINGS, **kwargs, "eps_placement": placement}
        torch.testing.assert_close(
            function(permuted, THREE[order], **kwargs), function(loss, THREE, **kwargs)[..., order]
        )


def test_large_eps_without_memory_is_a_two_norm_penalty():
    loss, eps, h = bilinear(), 1e10, 0.5
    theta = START.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(theta), theta, create_graph=True)
    (penalty,) = torch.autograd.grad(gradient.square().sum(), theta)
    expected = -(gradient.detach() + h / (4 * math.sqrt(eps)) * penalty) / math.sqrt(eps)
    got = modified_rhs(loss, START, h=h, beta=0.0, rho=0.0, eps=eps)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=0)
    # the penalty itself, not only the gradient, is resolved at this tolerance
    assert (h / (4 * math.sqrt(eps)) * penalty / gradient).abs().min() > 1e-4


def test_a_linear_loss_has_no_bias():
    def loss(theta):
        return theta @ _vector(3.0, -4.0)

    theta = _vector(1.0, 1.0)
    for order in (1, 2):
        got = modified_rhs(loss, theta, order=order, **SETTINGS)
        torch.testing.assert_close(got, -_vector(3, -4) / (_vector(9, 16) + 0.3).sqrt())


def test_float32_stays_float32():
    theta = START.float()
    assert modified_rhs(bilinear(), theta, **SETTINGS).dtype == torch.float32
    assert modified_flow(bilinear(), theta, steps=2, **SETTINGS).dtype == torch.float32


# Mini-batch right side ----------------------------------------------------------------------------


def _reference_rhs(losses, schedule, theta, n, h, beta, rho, eps, corrected, placement):
    """The definitions word by word: double sums over steps, Hessians in full."""
    gradients = [torch.func.grad(losses[s])(theta) for s in schedule[: n + 1]]
    hessians = [torch.autograd.functional.hessian(losses[s], theta) for s in schedule[: n + 1]]

    def average(decay, terms, last):
        norm = 1 - decay ** (last + 1) if corrected else 1.0
        return sum(decay ** (last - k) * (1 - decay) / norm * terms[k] for k in range(last + 1))

    def root_of(last):
        v = average(rho, [g**2 for g in gradients], last)
        return (v + eps).sqrt() if placement == "inside" else v.sqrt() + eps

    def drift(last):
        return average(beta, gradients, last) / root_of(last)

    zero = torch.zeros_like(theta)
    past = [sum((drift(j) for j in range(k, n)), zero) for k in range(n + 1)]
    now = [drift(n)] * (n + 1)
    terms = {}
    for name, vectors in (("", past), ("bar", now)):
        hv = [hessian @ vector for hessian, vector in zip(hessians, vectors, strict=True)]
        terms["L" + name] = average(beta, hv, n)
        terms["P" + name] = average(
            rho, [g * product for g, product in zip(gradients, hv, strict=True)], n
        )
    m, v, root = average(beta, gradients, n), average(rho, [g**2 for g in gradients], n), root_of(n)
    cube = root**3 if placement == "inside" else v.sqrt() * root**2
    g2 = m * (2 * terms["P"] + terms["Pbar"]) / (2 * cube) - (2 * terms["L"] + terms["Lbar"]) / (
        2 * root
    )
    return -m / root + h * g2


@pytest.mark.parametrize("placement", ["inside", "outside"])
@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("n", [0, 1, 6])
def test_minibatch_right_side_is_the_defining_sums(placement, corrected, n):
    losses, schedule = log_cosh_batches(), [0, 2, 2, 1, 3, 0, 1, 2]
    expected = _reference_rhs(losses, schedule, THREE, n, 0.1, 0.6, 0.85, 0.3, corrected, placement)
    got = minibatch_rhs(
        losses,
        schedule,
        THREE,
        n,
        h=0.1,
        beta=0.6,
        rho=0.85,
        eps=0.3,
        bias_correction=corrected,
        eps_placement=placement,
    )
    torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("placement", ["inside", "outside"])
@pytest.mark.parametrize("order", [1, 2])
def test_identical_losses_are_the_full_batch(placement, order):
    loss = log_cosh_batches()[0]
    kwargs = {**SETTINGS, "order": order, "eps_placement": placement}
    for n in (0, 1, 17):
        full = modified_rhs(loss, THREE, n=n, **kwargs)
        schedule = [k % 3 for k in range(n + 1)]
        batches = minibatch_rhs([loss] * 3, schedule, THREE, n, **kwargs)
        torch.testing.assert_close(batches, full, rtol=0, atol=1e-10)


def test_losses_that_the_schedule_does_not_use_do_not_matter():
    def broken(theta):
        raise AssertionError("never called")

    loss = log_cosh_batches()[0]
    got = minibatch_rhs([broken, loss], [1, 1, 0], THREE, 1, **SETTINGS)
    expected = minibatch_rhs([loss], [0, 0], THREE, 1, **SETTINGS)
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


def test_a_coordinate_without_gradient_stays_where_it_is():
    losses = [lambda theta: theta[0] ** 2, lambda theta: (theta[0] - 1.0) ** 4]
    for placement in ("inside", "outside"):
        got = minibatch_rhs(losses, [0, 1, 0], START, 2, eps_placement=placement, **SETTINGS)
        assert got[1].item() == 0.0
        assert torch.isfinite(got).all()


def test_minibatch_trajectory_takes_the_scheduled_gradients():
    losses = [lambda theta: theta.sum(), lambda theta: -theta.sum()]
    path = minibatch_trajectory(
        losses, [0, 1, 1], _vector(0.0), h=0.5, steps=3, beta=0.0, rho=0.0, eps=1e-20
    )
    torch.testing.assert_close(path[:, 0], _vector(0.0, -0.5, 0.0, 0.5), rtol=0, atol=1e-9)


# Orders -------------------------------------------------------------------------------------------


def _orders(trajectory, flow, losses, start, time, hs, **kwargs):
    errors = {1: [], 2: []}
    for h in hs:
        steps = round(time / h)
        args = losses(steps)
        path = trajectory(*args, start, h=h, steps=steps, **kwargs)
        for order in errors:
            flowed = flow(*args, start, h=h, steps=steps, order=order, **kwargs)
            errors[order].append(global_error(path, flowed))
    return observed_order(hs, errors[1]), observed_order(hs, errors[2])


# The order shows only where 1/(1-β) and 1/(1-ρ) steps are a small part of the time horizon.
HS = (1 / 100, 1 / 200)


@pytest.mark.parametrize(
    ("beta", "rho", "eps", "placement"),
    [(0.7, 0.5, 1e5, "inside"), (0.5, 0.8, 1.0, "inside"), (0.7, 0.8, 0.3, "outside")],
)
def test_order_of_full_batch_flows(beta, rho, eps, placement):
    plain, corrected = _orders(
        adam_trajectory,
        modified_flow,
        lambda steps: (bilinear(),),
        START,
        1.0,
        HS,
        beta=beta,
        rho=rho,
        eps=eps,
        eps_placement=placement,
    )
    assert 0.7 < plain < 1.3
    assert 1.7 < corrected < 2.3


@pytest.mark.parametrize("placement", ["inside", "outside"])
def test_order_of_minibatch_flows(placement):
    losses = log_cosh_batches()
    plain, corrected = _orders(
        minibatch_trajectory,
        minibatch_flow,
        lambda steps: (losses, [k % 4 for k in range(steps)]),
        THREE,
        0.8,
        (0.04, 0.02),
        beta=0.7,
        rho=0.8,
        eps=0.05 if placement == "inside" else 0.3,
        eps_placement=placement,
    )
    assert 0.8 < plain < 1.2
    assert 1.8 < corrected < 2.3


def test_order_of_rmsprop_without_bias_correction():
    plain, corrected = _orders(
        minibatch_trajectory,
        minibatch_flow,
        lambda steps: ([bilinear()], [0] * steps),
        START,
        0.5,
        (1 / 50, 1 / 100),
        beta=0.0,
        rho=0.8,
        eps=0.05,
        bias_correction=False,
    )
    assert 0.7 < plain < 1.3
    assert 1.7 < corrected < 2.3


def test_equal_decays_and_tiny_eps_have_no_bias():
    kwargs = {"h": 0.01, "steps": 30, "beta": 0.9, "rho": 0.9, "eps": 1e-12}
    plain = modified_flow(bilinear(), START, order=1, **kwargs)
    corrected = modified_flow(bilinear(), START, order=2, **kwargs)
    assert global_error(plain, corrected) < 1e-6


def test_gradient_descent():
    loss, one = (lambda theta: theta[0] ** 2), _vector(1.0)
    iterate = gd_trajectory(loss, one, h=0.05, steps=20)[-1].item()
    assert iterate == pytest.approx(0.1215766546, abs=1e-10)
    plain = gd_modified_flow(loss, one, h=0.05, steps=20, order=1)[-1].item()
    assert plain == pytest.approx(0.1353352832, abs=1e-6)
    modified = gd_modified_flow(loss, one, h=0.05, steps=20)[-1].item()
    assert modified == pytest.approx(0.1224564283, abs=1e-6)


def test_runge_kutta_is_of_fourth_order():
    loss, one = (lambda theta: theta[0] ** 2), _vector(1.0)
    errors = []
    for substeps in (8, 16, 32):
        end = gd_modified_flow(loss, one, h=1.0, steps=1, order=1, substeps=substeps)[-1].item()
        errors.append(abs(end - math.exp(-2.0)))
    assert 3.9 < observed_order([1 / 8, 1 / 16, 1 / 32], errors) < 4.2


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"h": -0.1}, r"h is -0\.1, allowed: finite and h >= 0"),
        ({"beta": 1.0}, r"beta is 1\.0, allowed: 0 <= beta < 1"),
        ({"rho": -0.5}, r"rho is -0\.5, allowed: 0 <= rho < 1"),
        ({"eps": 0.0}, r"eps is 0\.0, allowed: finite and eps > 0 \(the denominator may vanish\)"),
        ({"eps": -1.0}, r"eps is -1\.0"),
        ({"order": 3}, r"order is 3, allowed: 1 \(plain flow\) or 2"),
        ({"n": -1}, r"n is -1, allowed: whole numbers >= 0"),
        ({"n": -1, "order": 1}, r"n is -1, allowed: whole numbers >= 0"),
        ({"n": math.nan}, r"n is nan, allowed: whole numbers >= 0"),
        ({"eps_placement": "in"}, r"eps_placement is 'in', allowed: inside, outside"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(ValueError, match=message):
        modified_rhs(bilinear(), START, **{**SETTINGS, **change})
    n = change.pop("n", 0)
    with pytest.raises(ValueError, match=message):
        minibatch_rhs([bilinear()], [0], START, n, **{**SETTINGS, **change})


@pytest.mark.parametrize("function", [modified_rhs, modified_flow, adam_trajectory])
def test_theta_must_be_a_vector_of_floats(function):
    steps = {} if function is modified_rhs else {"steps": 2}
    with pytest.raises(ValueError, match=r"theta has shape \(1, 2\), allowed: 1-D"):
        function(bilinear(), START[None], **SETTINGS, **steps)
    with pytest.raises(TypeError, match=r"theta is of torch.int64, allowed: a tensor of real"):
        function(bilinear(), torch.tensor([1, 2]), **SETTINGS, **steps)
    with pytest.raises(TypeError, match="theta is of list, allowed: a tensor of real float"):
        function(bilinear(), [2.8, 3.5], **SETTINGS, **steps)
    leaf = START.clone().requires_grad_()  # its graph stays out of the result
    assert not function(bilinear(), leaf, **SETTINGS, **steps).requires_grad


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (lambda theta: theta**2, r"tensor of shape \(2,\) with a graph"),
        (lambda theta: torch.tensor(1.0), r"tensor of shape \(\) without a graph"),
        (lambda theta: 1.0, "float"),
    ],
)
def test_the_loss_must_be_a_scalar_of_theta(loss, kind):
    with pytest.raises(ValueError, match=f"loss gives a {kind}, allowed: a scalar that depends"):
        modified_rhs(loss, START, **SETTINGS)


@pytest.mark.parametrize(
    ("losses", "schedule", "message"),
    [
        ([], [0, 0, 0], "losses is empty, allowed: at least 1 loss"),
        ([bilinear()], [0, 0], "schedule has 2 entries, allowed: at least 3"),
        ([bilinear()], [0, 1, 0], "schedule holds 1, allowed: 0 to 0"),
        ([bilinear()], [0, 0, -1], "schedule holds -1, allowed: 0 to 0"),
        ([bilinear()], [0, 0.7, 0], "schedule holds torch.float32 in shape"),
        ([bilinear()], torch.zeros(3, 2, dtype=torch.int64), r"torch.int64 in shape \(3, 2\)"),
    ],
)
def test_bad_schedules(losses, schedule, message):
    with pytest.raises(ValueError, match=message):
        minibatch_rhs(losses, schedule, START, 2, **SETTINGS)
    for function in (minibatch_flow, minibatch_trajectory):
        with pytest.raises(ValueError, match=message):
            function(losses, schedule, START, steps=3, **SETTINGS)


def test_bad_counts_and_coefficients():
    with pytest.raises(ValueError, match="steps is 0, allowed: whole numbers >= 1"):
        modified_flow(bilinear(), START, steps=0, **SETTINGS)
    for steps in (-1, 2.5, math.nan, math.inf):
        for function in (adam_trajectory, modified_flow):
            with pytest.raises(ValueError, match=f"steps is {steps}, allowed: whole numbers >= 1"):
                function(bilinear(), START, steps=steps, **SETTINGS)
    with pytest.raises(ValueError, match="substeps is 0, allowed: whole numbers >= 1"):
        modified_flow(bilinear(), START, steps=1, substeps=0, **SETTINGS)
    with pytest.raises(ValueError, match=r"h is 0\.0, allowed: finite and h > 0"):
        gd_trajectory(bilinear(), START, h=0.0, steps=1)
    with pytest.raises(ValueError, match="order is 0"):
        gd_modified_flow(bilinear(), START, h=0.1, steps=1, order=0)
    with pytest.raises(ValueError, match=r"beta is 1\.2"):
        memory_coefficient(1.2)
    with pytest.raises(ValueError, match=r"n is -1"):
        memory_coefficient(0.9, -1)
    with pytest.raises(ValueError, match=r"eps is 0\.0"):
        bias_coefficient(START, beta=0.9, rho=0.9, eps=0.0)
