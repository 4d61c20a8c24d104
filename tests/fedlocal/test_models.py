import pytest
import torch

from retable.fedlocal.models import resnet18, small_cnn


def test_small_cnn():
    torch.manual_seed(0)
    net = small_cnn()
    assert net(torch.randn(5, 3, 16, 16)).shape == (5, 2)
    assert [tuple(p.shape) for p in net.parameters()] == [
        (12, 3, 3, 3),
        (12,),
        (24, 12, 3, 3),
        (24,),
        (2, 384),
        (2,),
    ]
    assert not net[0].bias.any()
    assert net[2].weight.std().item() == pytest.approx((2 / (12 * 9)) ** 0.5, rel=0.05)


def test_resnet18_has_the_known_size_and_names():
    net = resnet18()
    assert sum(p.numel() for p in net.parameters()) == 11_689_512
    state = net.state_dict()
    assert len(state) == 122
    assert state["conv1.weight"].shape == (64, 3, 7, 7)
    assert state["layer2.0.downsample.0.weight"].shape == (128, 64, 1, 1)
    assert state["layer4.1.bn2.running_var"].shape == (512,)
    assert state["fc.weight"].shape == (1000, 512)


def test_resnet18_takes_small_images():
    net = resnet18(num_outputs=2)
    assert net(torch.randn(2, 3, 32, 32)).shape == (2, 2)
    assert sum(p.numel() for p in net.parameters()) == 11_689_512 - 998 * 513


def test_bad_input():
    with pytest.raises(ValueError, match="image is 10; it must be a positive multiple of 4"):
        small_cnn(image=10)
    with pytest.raises(ValueError, match="num_outputs is 1; it must be at least 2"):
        resnet18(num_outputs=1)
    with pytest.raises(ValueError, match="num_outputs is 0; it must be at least 2"):
        small_cnn(num_outputs=0)
