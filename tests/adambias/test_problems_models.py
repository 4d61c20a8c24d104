import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from retable.adambias import (
    bilinear,
    cnn,
    flat_classifier,
    log_cosh_batches,
    mlp,
    resnet50,
    resnet101,
    simple_vit,
    small_cnn,
)
from retable.adambias.models import Attention, Bottleneck, SimpleViT


def _count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_bilinear():
    theta = torch.tensor([2.0, 3.0], dtype=torch.float64)
    assert bilinear(x=1.0, y=4.0)(theta).item() == pytest.approx(2.0)


def test_log_cosh_batches_follow_their_formula():
    rng = np.random.default_rng(0)
    matrices, shifts = 0.6 * rng.standard_normal((4, 3, 3)), 2 * rng.standard_normal((4, 3))
    theta = np.array([1.0, -2.0, 0.5])
    for k, loss in enumerate(log_cosh_batches()):
        u = matrices[k] @ theta - shifts[k]
        expected = np.log(np.cosh(u)).sum() + 0.05 * theta @ theta + 0.3 * theta.sum()
        assert loss(torch.from_numpy(theta)).item() == pytest.approx(expected, rel=1e-12)
    far = torch.full((3,), 1e4, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(log_cosh_batches()[0](far), far)
    assert torch.isfinite(gradient).all()


def test_flat_classifier_is_the_module():
    generator = torch.Generator().manual_seed(3)
    images = torch.randn(12, 1, 3, 3, generator=generator, dtype=torch.float64)
    labels = torch.arange(12) % 4
    model = mlp(9, 5, 4).double()
    loss, start = flat_classifier(model, images, labels, generator)
    assert start.shape == (9 * 5 + 5 + 5 * 4 + 4,)
    assert start.dtype == torch.float64
    assert torch.equal(start[45:50], torch.zeros(5, dtype=torch.float64))
    nn.utils.vector_to_parameters(start, model.parameters())
    expected = nn.functional.cross_entropy(model(images), labels)
    assert loss(start).item() == pytest.approx(expected.item(), rel=1e-14)
    theta = start.clone().requires_grad_()
    (flat,) = torch.autograd.grad(loss(theta), theta)
    pieces = torch.autograd.grad(expected, list(model.parameters()))
    torch.testing.assert_close(flat, torch.cat([piece.flatten() for piece in pieces]))


def test_flat_classifier_starts_with_variance_one_over_fan_in():
    generator = torch.Generator().manual_seed(0)
    images, labels = torch.zeros(2, 400, dtype=torch.float64), torch.tensor([0, 1])
    _, start = flat_classifier(mlp(400, 50, 2), images, labels, generator)
    assert start[:20000].std().item() == pytest.approx(1 / math.sqrt(400), rel=0.02)


def test_flat_classifier_needs_one_label_an_image():
    with pytest.raises(ValueError, match="labels has 2 entries, allowed: one an image, 3"):
        flat_classifier(mlp(4, 2, 2), torch.zeros(3, 4), torch.tensor([0, 1]), torch.Generator())


def test_flat_classifier_needs_two_classes():
    with pytest.raises(ValueError, match="needs at least 2 classes"):
        flat_classifier(
            mlp(4, 2, 2), torch.zeros(3, 4), torch.zeros(3, dtype=torch.int64), torch.Generator()
        )


@pytest.mark.parametrize(
    ("build", "shape", "count"),
    [
        (lambda: mlp(49, 8, 10), (49,), 490),
        (lambda: mlp(196, 32, 10), (1, 14, 14), 196 * 32 + 32 + 330),
        (lambda: small_cnn(10), (3, 16, 16), 224 + 1168 + 2570),
        (lambda: cnn(10), (3, 32, 32), 1_341_226),
        # the published counts of CIFAR ResNets with ten classes
        (lambda: resnet50(10), (3, 32, 32), 23_520_842),
        (lambda: resnet101(10), (3, 32, 32), 42_512_970),
        (lambda: simple_vit(100), (3, 32, 32), None),
    ],
)
def test_models(build, shape, count):
    torch.manual_seed(0)
    model = build().eval()
    with torch.no_grad():
        logits = model(torch.zeros(2, *shape))
    assert logits.shape == (2, 100 if count is None else 10)
    if count is not None:
        assert _count(model) == count


def test_activations():
    def kinds(model):
        return [type(m) for m in model.modules() if not list(m.children())]

    assert kinds(mlp(4, 3, 2)) == [nn.Flatten, nn.Linear, nn.Tanh, nn.Linear]
    smooth = [nn.Conv2d, nn.SiLU, nn.Conv2d, nn.SiLU, nn.Flatten, nn.Linear]
    assert kinds(small_cnn()) == smooth
    block = [nn.Conv2d, nn.ReLU, nn.Conv2d, nn.ReLU, nn.MaxPool2d]
    assert kinds(cnn()) == 3 * block + [nn.Flatten, nn.Linear, nn.ReLU, nn.Linear]
    assert kinds(simple_vit()).count(nn.GELU) == 6


def test_resnet_initialisation():
    torch.manual_seed(0)
    model = resnet50(10)
    stem = model[0].weight
    assert stem.std().item() == pytest.approx(math.sqrt(2 / (64 * 9)), rel=0.05)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert torch.equal(module.weight, torch.ones_like(module.weight))
            assert torch.equal(module.bias, torch.zeros_like(module.bias))


def test_bottleneck_adds_its_input():
    block = Bottleneck(16, 4, 1).eval()
    nn.init.zeros_(block.body[-1].weight)
    x = torch.randn(2, 16, 5, 5, generator=torch.Generator().manual_seed(0))
    assert torch.equal(block(x), torch.relu(x))


def test_vit_size():
    def linear(inputs, outputs, bias=True):
        return inputs * outputs + bias * outputs

    dim, inner = 512, 16 * 64
    attention = 2 * dim + linear(dim, 3 * inner, False) + linear(inner, dim, False)
    feedforward = 2 * dim + linear(dim, 1024) + linear(1024, dim)
    embed = 2 * 48 + linear(48, dim) + 2 * dim
    assert _count(simple_vit(10)) == embed + 6 * (attention + feedforward) + 2 * dim + linear(
        dim, 10
    )


def test_vit_reads_patches_in_place():
    """A patch's token depends on that patch alone, and its order follows rows, then columns."""
    torch.manual_seed(0)
    model = SimpleViT(image=8, patch=4, dim=16, depth=0, heads=2, mlp=8, classes=3)
    image = torch.randn(1, 3, 8, 8)
    tokens = nn.functional.unfold(image, 4, stride=4).transpose(1, 2)
    torch.testing.assert_close(tokens[0, 1], image[0, :, :4, 4:].flatten())
    changed = image.clone()
    changed[0, :, :4, 4:] = 0.0
    embedded = model.embed(nn.functional.unfold(changed, 4, stride=4).transpose(1, 2))
    differs = (embedded - model.embed(tokens)).abs().amax((0, 2)) > 0
    assert differs.tolist() == [False, True, False, False]
    assert model.position.shape == (4, 16)
    assert len({tuple(row.tolist()) for row in model.position}) == 4


def test_vit_positions_are_sines_of_column_and_row():
    model = SimpleViT(image=12, patch=4, dim=16, depth=0, heads=2, mlp=8, classes=3)
    frequencies = 1 / 10000 ** (np.arange(4) / 3)
    for token, (row, column) in enumerate(np.ndindex(3, 3)):
        x, y = column * frequencies, row * frequencies
        expected = np.concatenate([np.sin(x), np.cos(x), np.sin(y), np.cos(y)])
        np.testing.assert_allclose(model.position[token].numpy(), expected, atol=1e-6)


def test_attention_is_the_softmax_average():
    torch.manual_seed(0)
    layer = Attention(6, heads=2, head=4).double()
    x = torch.randn(1, 5, 6, dtype=torch.float64)
    q, k, v = layer.to_qkv(layer.norm(x)).view(5, 3, 2, 4).unbind(1)
    heads = []
    for h in range(2):
        weights = torch.softmax(q[:, h] @ k[:, h].T / 2.0, dim=-1)
        heads.append(weights @ v[:, h])
    expected = layer.to_out(torch.cat(heads, dim=-1))
    torch.testing.assert_close(layer(x)[0], expected)


def test_bad_sizes():
    with pytest.raises(ValueError, match="hidden is 0, allowed: whole numbers >= 1"):
        mlp(4, 0, 2)
    with pytest.raises(ValueError, match="size is 18, allowed: multiples of 4"):
        small_cnn(size=18)
    with pytest.raises(ValueError, match="channels is -1, allowed: whole numbers >= 1"):
        small_cnn(channels=-1)
    for build in (small_cnn, cnn, resnet50, resnet101, simple_vit):
        for classes in (0, 1.5):
            with pytest.raises(ValueError, match=f"classes is {classes}, allowed: whole numbers"):
                build(classes)
    with pytest.raises(ValueError, match="count is 0, allowed: whole numbers >= 1"):
        log_cosh_batches(0)


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, retable.adambias as a\n"
        "assert 'torch' not in sys.modules\n"
        "assert set(a.__all__) >= {'Adam', 'modified_flow', 'simple_vit'}\n"
        "assert a.memory_coefficient(0.5) == 3.0\n"
        "assert 'matplotlib' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
