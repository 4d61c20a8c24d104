import pytest
import torch
from torch.nn.functional import softplus

from retable.fedlocal.patch_cnn import PatchCNN

PATCHES = torch.tensor([[1.0, 0.0], [0.0, -1.0]])


@pytest.fixture
def network():
    net = PatchCNN(1, 2, 1.0).double()
    net.weight.data = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    return net


def test_output_and_gradient_by_hand(network):
    f = network(PATCHES.double())
    assert f.item() == 1 - 8
    softplus(-f).backward()
    expected = torch.tensor([[-2.9972668464, 11.9890673857]], dtype=torch.float64)
    torch.testing.assert_close(network.weight.grad, expected, rtol=0, atol=1e-10)


def test_flipping_labels_and_patches_changes_nothing():
    torch.manual_seed(0)
    net = PatchCNN(5, 6, 0.3)
    x, y = torch.randn(4, 3, 6), torch.tensor([1.0, -1.0, 1.0, -1.0])
    torch.testing.assert_close(y * net(x), -y * net(-x))


def test_projections_are_inner_products_with_features():
    torch.manual_seed(1)
    net = PatchCNN(3, 8, 0.5)
    projections = net.projections(torch.eye(2, 8))
    torch.testing.assert_close(projections, net.weight.detach()[:, :2])
    assert not projections.requires_grad


def test_the_global_generator_decides_the_weights():
    torch.manual_seed(7)
    first = PatchCNN(40, 400, 0.03).weight
    torch.manual_seed(7)
    torch.testing.assert_close(first, PatchCNN(40, 400, 0.03).weight, rtol=0, atol=0)
    assert first.std().item() == pytest.approx(0.03, rel=0.03)


def test_bad_input():
    with pytest.raises(ValueError, match="n_filters is 0; it must be at least 1"):
        PatchCNN(0, 3, 1.0)
    with pytest.raises(ValueError, match="init_std is 0; it must be positive"):
        PatchCNN(2, 3, 0)
    with pytest.raises(ValueError, match="x has patches of 4 entries; the filters have 3"):
        PatchCNN(2, 3, 1.0)(torch.zeros(2, 4))
