"""Networks: parameter counts, shapes, frozen classifiers, and that a seed fixes every weight."""

import pytest
import torch
from torch import nn

from retable.mlabnc import (
    convnet,
    count_trainable,
    nc2,
    resnet18,
    resnet50,
    simplex_etf,
    vgg16,
    vgg19,
)

PAPER_NETS = (resnet18, resnet50, vgg16, vgg19)


def test_convnet_counts():
    assert count_trainable(convnet(1, 10, 64)) == 163_578
    assert count_trainable(convnet(1, 10, 10, fixed_etf=True)) == 156_026


@pytest.mark.parametrize(
    ("build", "learned", "fixed", "saving"),
    [
        (resnet18, 11_173_962, 8_859_762, 20.71),
        (resnet50, 23_520_842, 22_473_330, 4.45),
        (vgg16, 14_728_266, 12_408_424, 15.75),
        (vgg19, 20_040_522, 17_720_680, 11.58),
    ],
)
def test_counts_of_the_papers_networks(build, learned, fixed, saving):
    with torch.device("meta"):
        counts = count_trainable(build(3, 10))
        assert counts == learned
    counts = count_trainable(build(3, 10, feature_dim=10, fixed_etf=True))
    assert counts == fixed
    assert 100 * (1 - fixed / learned) == pytest.approx(saving, abs=0.005)


@pytest.mark.parametrize("size", [28, 32, 56])
def test_convnet_shapes_and_signs(size):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(5, 3, size, size, generator=generator)
    for feature_relu in (False, True):
        model = convnet(3, 10, 12, image_size=size, feature_relu=feature_relu, generator=generator)
        logits, features = model(x)
        assert logits.shape == (5, 10)
        assert features.shape == (5, 12)
        torch.testing.assert_close(logits, features @ model.head.weight.T + model.head.bias)
        assert (features.min() < 0) is not feature_relu


@pytest.mark.parametrize("build", PAPER_NETS)
def test_paper_nets_shapes_and_signs(build):
    x = torch.rand(2, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    for feature_relu in (False, True):
        generator = torch.Generator().manual_seed(1)
        model = build(1, 9, 9, fixed_etf=True, feature_relu=feature_relu, generator=generator)
        logits, features = model.eval()(x)
        assert logits.shape == features.shape == (2, 9)
        assert bool((features >= 0).all()) is feature_relu


@pytest.mark.parametrize(("build", "width"), [(resnet18, 512), (vgg16, 512)])
def test_native_width_with_a_frozen_classifier(build, width):
    model = build(1, 10, fixed_etf=True, generator=torch.Generator().manual_seed(0))
    assert model.head.weight.shape == (10, width)
    torch.testing.assert_close(model.head.weight, simplex_etf(10, width).float())
    assert nc2(model.head.weight) < 1e-6
    assert model.head.bias.requires_grad


def test_a_seed_fixes_every_weight_and_the_global_generator_is_left_alone():
    states = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(states))
        model = convnet(1, 10, 64, generator=torch.Generator().manual_seed(seed))
        states.append([p.detach() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(states[0], states[1], strict=True))
    differ = [not torch.equal(a, b) for a, b in zip(states[0], states[2], strict=True)]
    assert any(differ)


def test_convolutions_are_scaled_by_fan_out():
    model = resnet18(3, 10, generator=torch.Generator().manual_seed(0))
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels * module.kernel_size[0] ** 2
            expected = (2 / fan_out) ** 0.5
            assert module.weight.std().item() == pytest.approx(expected, rel=0.1)


def test_training_leaves_the_frame_alone_and_moves_the_rest():
    generator = torch.Generator().manual_seed(0)
    model = convnet(1, 4, 4, fixed_etf=True, generator=generator)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimiser = torch.optim.SGD(
        [p for p in model.parameters() if p.requires_grad], lr=0.1, weight_decay=5e-4
    )
    logits, features = model(torch.rand(8, 1, 28, 28, generator=generator))
    (logits.square().mean() + features.square().mean()).backward()
    optimiser.step()
    moved = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    assert moved == before.keys() - {"head.weight"}


def test_bad_sizes():
    with pytest.raises(ValueError, match="needs dim >= K-1"):
        convnet(1, 10, 8, fixed_etf=True)
    with pytest.raises(ValueError, match="at least 1, got 0 and 64"):
        convnet(0, 10, 64)
    with pytest.raises(ValueError, match="num_classes must be at least 2, got 1"):
        resnet18(1, 1)
    with pytest.raises(ValueError, match="image_size must be at least 1 pixel, got 0"):
        convnet(1, 10, 64, image_size=0)
