import math

import pytest
import torch

from retable.adambias import Adam, bilinear, rmsprop


def _parameter(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def _run(theta, optimizer, loss, steps):
    iterates = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss(theta).backward()
        optimizer.step()
        iterates.append(theta.detach().clone())
    return torch.stack(iterates)


def test_first_iterates_on_the_bilinear_problem():
    theta = _parameter(2.8, 3.5)
    loss = bilinear()
    assert loss(theta).item() == pytest.approx(163.805)
    (gradient,) = torch.autograd.grad(loss(theta), theta)
    torch.testing.assert_close(gradient, torch.tensor([126.7, 101.36], dtype=torch.float64))
    got = _run(theta, Adam([theta], 0.01, (0.9, 0.99), 0.01), loss, 3)
    first = [s - 0.01 * g / math.sqrt(g * g + 0.01) for s, g in ((2.8, 126.7), (3.5, 101.36))]
    expected = [first, [2.78000247, 3.48000266], [2.77000904, 3.47000974]]
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=6e-9)


def test_outside_with_bias_correction_is_torch_adam():
    loss = bilinear()
    ours, theirs = _parameter(2.8, 3.5), _parameter(2.8, 3.5)
    got = _run(ours, Adam([ours], 0.02, (0.8, 0.95), 0.3, eps_placement="outside"), loss, 60)
    reference = torch.optim.Adam([theirs], 0.02, (0.8, 0.95), 0.3, foreach=False)
    torch.testing.assert_close(got, _run(theirs, reference, loss, 60), rtol=1e-12, atol=1e-12)


def test_outside_without_bias_correction_and_momentum_is_torch_rmsprop():
    loss = bilinear()
    ours, theirs = _parameter(2.8, 3.5), _parameter(2.8, 3.5)
    got = _run(ours, rmsprop([ours], 0.01, 0.9, 0.3, "outside"), loss, 40)
    reference = torch.optim.RMSprop([theirs], 0.01, alpha=0.9, eps=0.3, foreach=False)
    torch.testing.assert_close(got, _run(theirs, reference, loss, 40), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("placement", ["inside", "outside"])
@pytest.mark.parametrize("corrected", [True, False])
def test_all_variants_follow_the_defining_sums(placement, corrected):
    """m and v written out as weighted sums over the past, with plain numbers."""
    beta, rho, eps, h = 0.7, 0.9, 0.2, 0.05
    gradients = [1.5, -0.4, 2.0, 0.1, -3.0]
    theta = _parameter(0.0)
    optimizer = Adam(
        [theta], h, (beta, rho), eps, bias_correction=corrected, eps_placement=placement
    )
    expected = 0.0
    for n, gradient in enumerate(gradients):
        theta.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        m = sum((1 - beta) * beta ** (n - k) * g for k, g in enumerate(gradients[: n + 1]))
        v = sum((1 - rho) * rho ** (n - k) * g * g for k, g in enumerate(gradients[: n + 1]))
        if corrected:
            m, v = m / (1 - beta ** (n + 1)), v / (1 - rho ** (n + 1))
        expected -= h * m / (math.sqrt(v + eps) if placement == "inside" else math.sqrt(v) + eps)
        assert theta.item() == pytest.approx(expected, abs=1e-13)


def test_first_step_is_the_sign_of_the_gradient_for_tiny_eps():
    theta = _parameter(1.0, -2.0, 3.0)
    theta.grad = torch.tensor([5.0, -0.01, 1e3], dtype=torch.float64)
    Adam([theta], 0.1, (0.9, 0.999), 1e-16).step()
    torch.testing.assert_close(
        theta.detach(), torch.tensor([0.9, -1.9, 2.9], dtype=torch.float64), rtol=0, atol=1e-12
    )


def test_resumes_from_its_state_to_the_same_bytes():
    loss = bilinear()
    whole = _parameter(2.8, 3.5)
    expected = _run(whole, Adam([whole], 0.01), loss, 20)[-1]
    first = _parameter(2.8, 3.5)
    optimizer = Adam([first], 0.01)
    _run(first, optimizer, loss, 9)
    second = first.detach().clone().requires_grad_()
    resumed = Adam([second], 0.01)
    resumed.load_state_dict(optimizer.state_dict())
    assert torch.equal(_run(second, resumed, loss, 11)[-1], expected)


def test_closure_gives_the_loss_and_groups_keep_their_settings():
    a, b = _parameter(1.0), _parameter(1.0)
    optimizer = Adam([{"params": [a], "lr": 0.5}, {"params": [b]}], lr=0.25, eps=0.0)

    def closure():
        optimizer.zero_grad()
        loss = (a + b).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2.0
    assert (a.item(), b.item()) == (0.5, 0.75)


def test_skips_parameters_without_a_gradient():
    a, b = _parameter(1.0), _parameter(1.0)
    optimizer = Adam([a, b], lr=0.25)
    a.grad = torch.ones_like(a)
    optimizer.step()
    assert a.item() < 1.0
    assert b.item() == 1.0


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"lr": -0.1}, r"lr is -0\.1, allowed: finite and lr >= 0"),
        ({"lr": math.nan}, r"lr is nan"),
        ({"betas": (1.0, 0.9)}, r"beta is 1\.0, allowed: 0 <= beta < 1"),
        ({"betas": (-0.1, 0.9)}, r"beta is -0\.1"),
        ({"betas": (0.9, 1.5)}, r"rho is 1\.5, allowed: 0 <= rho < 1"),
        ({"betas": (0.9, 0.9, 0.9)}, r"betas is .*allowed: a pair"),
        ({"eps": -1e-8}, r"eps is -1e-08, allowed: finite and eps >= 0"),
        ({"eps_placement": "beside"}, r"eps_placement is 'beside', allowed: inside, outside"),
    ],
)
def test_bad_settings(kwargs, message):
    with pytest.raises(ValueError, match=message):
        Adam([_parameter(1.0)], **kwargs)


def test_bad_settings_of_a_later_group():
    optimizer = Adam([_parameter(1.0)])
    with pytest.raises(ValueError, match=r"lr is -1\.0"):
        optimizer.add_param_group({"params": [_parameter(1.0)], "lr": -1.0})


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_parameters_must_be_real_floats(dtype):
    with pytest.raises(TypeError, match=f"params hold a tensor of {dtype}, allowed: real float"):
        Adam([torch.zeros(2, dtype=dtype)])


def test_sparse_gradients_are_refused():
    theta = torch.zeros(3, requires_grad=True)
    theta.grad = torch.sparse_coo_tensor([[1]], [2.0], (3,), check_invariants=True)
    with pytest.raises(RuntimeError, match="dense gradients"):
        Adam([theta]).step()
