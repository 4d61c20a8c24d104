import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from retable.adambias import perturbed_one_norm, softened_one_norm


def _vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_values():
    assert perturbed_one_norm(_vector(3, -4), 0.01).item() == pytest.approx(7.0029160087, abs=1e-9)
    assert perturbed_one_norm(_vector(3, 4, 0), 16).item() == pytest.approx(14.6568542495, abs=1e-9)
    expected = 3 - 2 * math.log(2.5) + 4 - 2 * math.log(3)
    assert softened_one_norm(_vector(3, -4), 2.0).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("norm", [perturbed_one_norm, softened_one_norm])
def test_without_eps_it_is_the_one_norm(norm):
    assert norm(_vector(3, -4, 0), 0.0).item() == 7.0
    assert norm(_vector(3, -4), 1e-14).item() == pytest.approx(7.0, abs=1e-11)


def test_large_eps_is_the_squared_two_norm_up_to_a_constant():
    v, eps = _vector(3, -4, 1), 1e8
    expected = 3 * math.sqrt(eps) + 26 / (2 * math.sqrt(eps))
    assert perturbed_one_norm(v, eps).item() == pytest.approx(expected, abs=1e-9)
    assert softened_one_norm(v, 1e5).item() == pytest.approx(26 / 2e5, rel=1e-4)


@pytest.mark.parametrize("norm", [perturbed_one_norm, softened_one_norm])
def test_a_list_of_tensors_is_their_concatenation(norm):
    v = torch.randn(10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pieces = [v[:6].view(2, 3), v[6:]]
    assert norm(pieces, 0.3).item() == pytest.approx(norm(v, 0.3).item(), rel=1e-14)


@pytest.mark.parametrize("norm", [perturbed_one_norm, softened_one_norm])
def test_derivatives_agree_with_finite_differences(norm):
    v = _vector(3, -4, 0.2, -1e-3).requires_grad_()
    assert torch.autograd.gradcheck(lambda u: norm(u, 0.1), v)
    if norm is perturbed_one_norm:
        assert torch.autograd.gradgradcheck(lambda u: norm(u, 0.1), v)


def test_derivatives_in_closed_form():
    v = _vector(3, -4, 0).requires_grad_()
    (inside,) = torch.autograd.grad(perturbed_one_norm(v, 16.0), v)
    torch.testing.assert_close(inside, _vector(3 / 5, -4 / math.sqrt(32), 0))
    (outside,) = torch.autograd.grad(softened_one_norm(v, 1.0), v)
    torch.testing.assert_close(outside, _vector(3 / 4, -4 / 5, 0))


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8),
    st.floats(1e-8, 1e6),
)
def test_bounds(values, eps):
    v = _vector(*values)
    one_norm = v.abs().sum().item()
    perturbed = perturbed_one_norm(v, eps).item()
    slack = 1e-9 * (1.0 + one_norm)
    assert one_norm - slack <= perturbed <= one_norm + len(values) * math.sqrt(eps) + slack
    assert -slack <= softened_one_norm(v, eps).item() <= one_norm + slack


@pytest.mark.parametrize("norm", [perturbed_one_norm, softened_one_norm])
def test_bad_input(norm):
    with pytest.raises(ValueError, match=r"eps is -0\.1, allowed: finite and eps >= 0"):
        norm(_vector(1.0), -0.1)
    with pytest.raises(ValueError, match="v is empty"):
        norm([], 0.1)
    with pytest.raises(TypeError, match="v holds a float, allowed: tensors"):
        norm([3.0, -4.0], 0.1)
    with pytest.raises(ValueError, match=r"eps is 0\.0, allowed: eps > 0 where v needs a gradient"):
        norm(_vector(0.0).requires_grad_(), 0.0)
