"""Networks that return logits and last-layer features, with a learned or a fixed classifier.

`convnet` is small enough for a laptop; ResNet and VGG are the paper's, in their form for small
images (3x3 stem with stride 1, no max-pooling in the stem; global average pooling).
"""

from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from retable.mlabnc.etf import freeze_as_etf


class FeatureClassifier(nn.Module):
    """A backbone x -> h and a linear classifier h -> W h + b; `forward` returns (logits, h)."""

    def __init__(self, backbone: nn.Module, feature_dim: int, num_classes: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(feature_dim, num_classes)

    def forward(self, x: Float[Tensor, "N C H W"]) -> tuple[Tensor, Tensor]:
        features = self.backbone(x)
        return self.head(features), features


def convnet(
    in_channels: int,
    num_classes: int,
    feature_dim: int,
    fixed_etf: bool = False,
    *,
    image_size: int = 28,
    feature_relu: bool = False,
    generator: torch.Generator | None = None,
) -> FeatureClassifier:
    """Three strided convolutions (16, 32, 64 channels) and a hidden layer of 128, batch norm, ReLU.

    The features [N, feature_dim] are linear (any sign) unless `feature_relu`. `fixed_etf` freezes
    the classifier to a simplex ETF, which needs feature_dim >= K-1. `image_size` is the side of the
    square input in pixels; 28 and 32 give the same network. Weights are drawn from `generator`.
    Raises ValueError for sizes below 1.
    """
    _check_sizes(in_channels, num_classes, feature_dim)
    if image_size < 1:
        raise ValueError(f"image_size must be at least 1 pixel, got {image_size}")
    layers: list[nn.Module] = []
    widths = (in_channels, 16, 32, 64)
    for width_in, width_out in pairwise(widths):
        layers += [*_conv_bn(width_in, width_out, 3, stride=2), nn.ReLU()]
    side = -(-image_size // 8)
    layers += [nn.Flatten(), nn.Linear(64 * side**2, 128, bias=False), nn.BatchNorm1d(128)]
    layers += [nn.ReLU(), nn.Linear(128, feature_dim, bias=False)]
    if feature_relu:
        layers.append(nn.ReLU())
    return _finish(nn.Sequential(*layers), feature_dim, num_classes, fixed_etf, generator)


def resnet18(
    in_channels: int,
    num_classes: int,
    feature_dim: int | None = None,
    fixed_etf: bool = False,
    *,
    feature_relu: bool = True,
    generator: torch.Generator | None = None,
) -> FeatureClassifier:
    """ResNet-18 for small images; features of width 512, or `feature_dim` from the last block.

    With another width the second convolution of the last block and a 1x1 convolution on its
    shortcut change the number of channels. `feature_relu=False` leaves out the ReLU after the last
    block, so that features may have any sign. Options else as in `convnet`.
    """
    return _resnet(
        _BasicBlock,
        (2, 2, 2, 2),
        in_channels,
        num_classes,
        feature_dim,
        fixed_etf,
        feature_relu,
        generator,
    )


def resnet50(
    in_channels: int,
    num_classes: int,
    feature_dim: int | None = None,
    fixed_etf: bool = False,
    *,
    feature_relu: bool = True,
    generator: torch.Generator | None = None,
) -> FeatureClassifier:
    """ResNet-50 for small images; features of width 2048, or `feature_dim`. See `resnet18`."""
    return _resnet(
        _Bottleneck,
        (3, 4, 6, 3),
        in_channels,
        num_classes,
        feature_dim,
        fixed_etf,
        feature_relu,
        generator,
    )


def vgg16(
    in_channels: int,
    num_classes: int,
    feature_dim: int | None = None,
    fixed_etf: bool = False,
    *,
    feature_relu: bool = True,
    generator: torch.Generator | None = None,
) -> FeatureClassifier:
    """VGG-16 with batch norm and one linear classifier; the last convolution has the features.

    Their width is 512, or `feature_dim`. Inputs have at least 32 pixels a side. Options as in
    `resnet18`.
    """
    return _vgg(
        (2, 2, 3, 3, 3), in_channels, num_classes, feature_dim, fixed_etf, feature_relu, generator
    )


def vgg19(
    in_channels: int,
    num_classes: int,
    feature_dim: int | None = None,
    fixed_etf: bool = False,
    *,
    feature_relu: bool = True,
    generator: torch.Generator | None = None,
) -> FeatureClassifier:
    """VGG-19 with batch norm and one linear classifier. See `vgg16`."""
    return _vgg(
        (2, 2, 4, 4, 4), in_channels, num_classes, feature_dim, fixed_etf, feature_relu, generator
    )


def build(
    network: str,
    in_channels: int,
    num_classes: int,
    feature_dim: int | None,
    fixed_etf: bool,
    *,
    image_size: int,
    feature_relu: bool,
    generator: torch.Generator | None = None,
) -> FeatureClassifier:
    """A network by its name: convnet, resnet18, resnet50, vgg16 or vgg19.

    `image_size` matters to the convnet alone, which also needs a feature_dim. Raises ValueError for
    another name.
    """
    options = {"feature_relu": feature_relu, "generator": generator}
    if network == "convnet":
        if feature_dim is None:
            raise ValueError("feature_dim must be given for the network convnet, got None")
        return convnet(
            in_channels, num_classes, feature_dim, fixed_etf, image_size=image_size, **options
        )
    builders = {"resnet18": resnet18, "resnet50": resnet50, "vgg16": vgg16, "vgg19": vgg19}
    if network not in builders:
        raise ValueError(
            f"network must be convnet or one of {', '.join(builders)}, got {network!r}"
        )
    return builders[network](in_channels, num_classes, feature_dim, fixed_etf, **options)


def count_trainable(model: nn.Module) -> int:
    """The number of parameters that training changes; a frozen classifier does not count."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


class _BasicBlock(nn.Module):
    """Two 3x3 convolutions with a shortcut."""

    expansion = 1

    def __init__(self, width_in: int, width: int, width_out: int, stride: int, relu: bool) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            *_conv_bn(width_in, width, 3, stride), nn.ReLU(), *_conv_bn(width, width_out, 3)
        )
        self.shortcut = _shortcut(width_in, width_out, stride)
        self.activation = nn.ReLU() if relu else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.residual(x) + self.shortcut(x))


class _Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions with a shortcut."""

    expansion = 4

    def __init__(self, width_in: int, width: int, width_out: int, stride: int, relu: bool) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            *_conv_bn(width_in, width, 1),
            nn.ReLU(),
            *_conv_bn(width, width, 3, stride),
            nn.ReLU(),
            *_conv_bn(width, width_out, 1),
        )
        self.shortcut = _shortcut(width_in, width_out, stride)
        self.activation = nn.ReLU() if relu else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.residual(x) + self.shortcut(x))


def _resnet(
    block: type[_BasicBlock] | type[_Bottleneck],
    depths: tuple[int, ...],
    in_channels: int,
    num_classes: int,
    feature_dim: int | None,
    fixed_etf: bool,
    feature_relu: bool,
    generator: torch.Generator | None,
) -> FeatureClassifier:
    feature_dim = 512 * block.expansion if feature_dim is None else feature_dim
    _check_sizes(in_channels, num_classes, feature_dim)
    layers: list[nn.Module] = [*_conv_bn(in_channels, 64, 3), nn.ReLU()]
    width_in = 64
    for stage, depth in enumerate(depths):
        width = 64 * 2**stage
        for place in range(depth):
            last = stage == len(depths) - 1 and place == depth - 1
            width_out = feature_dim if last else width * block.expansion
            stride = 2 if stage > 0 and place == 0 else 1
            layers.append(block(width_in, width, width_out, stride, not last or feature_relu))
            width_in = width_out
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return _finish(nn.Sequential(*layers), feature_dim, num_classes, fixed_etf, generator)


def _vgg(
    depths: tuple[int, ...],
    in_channels: int,
    num_classes: int,
    feature_dim: int | None,
    fixed_etf: bool,
    feature_relu: bool,
    generator: torch.Generator | None,
) -> FeatureClassifier:
    feature_dim = 512 if feature_dim is None else feature_dim
    _check_sizes(in_channels, num_classes, feature_dim)
    layers: list[nn.Module] = []
    width_in = in_channels
    for stage, depth in enumerate(depths):
        for place in range(depth):
            last = stage == len(depths) - 1 and place == depth - 1
            width_out = feature_dim if last else min(64 * 2**stage, 512)
            layers += _conv_bn(width_in, width_out, 3, bias=True)
            if not last or feature_relu:
                layers.append(nn.ReLU())
            width_in = width_out
        layers.append(nn.MaxPool2d(2))
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return _finish(nn.Sequential(*layers), feature_dim, num_classes, fixed_etf, generator)


def _conv_bn(
    width_in: int, width_out: int, kernel: int, stride: int = 1, bias: bool = False
) -> list[nn.Module]:
    return [
        nn.Conv2d(width_in, width_out, kernel, stride, padding=kernel // 2, bias=bias),
        nn.BatchNorm2d(width_out),
    ]


def _shortcut(width_in: int, width_out: int, stride: int) -> nn.Module:
    if stride == 1 and width_in == width_out:
        return nn.Identity()
    return nn.Sequential(*_conv_bn(width_in, width_out, 1, stride))


def _finish(
    backbone: nn.Module,
    feature_dim: int,
    num_classes: int,
    fixed_etf: bool,
    generator: torch.Generator | None,
) -> FeatureClassifier:
    """Attach the classifier and draw all weights: He initialisation by fan-out for convolutions."""
    model = FeatureClassifier(backbone, feature_dim, num_classes)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(
                module.weight, mode="fan_out", nonlinearity="relu", generator=generator
            )
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            nn.init.uniform_(module.weight, -bound, bound, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    if fixed_etf:
        freeze_as_etf(model.head)
    return model


def _check_sizes(in_channels: int, num_classes: int, feature_dim: int) -> None:
    if in_channels < 1 or feature_dim < 1:
        raise ValueError(
            f"in_channels and feature_dim must be at least 1, got {in_channels} and {feature_dim}"
        )
    if num_classes < 2:
        raise ValueError(f"num_classes must be at least 2, got {num_classes}")
