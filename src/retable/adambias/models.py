"""The networks that are trained full batch.

`mlp` and `small_cnn` are small and smooth (tanh, SiLU), as the theory wants; `cnn`, `resnet50`,
`resnet101` and `simple_vit` are those of the paper's experiments on 32×32 colour images. All take
images (N, C, H, W) and return logits (N, classes).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from retable.adambias.checks import check_count


def mlp(inputs: int, hidden: int, classes: int) -> nn.Sequential:
    """Flattened pixels - `hidden` tanh units - logits."""
    for name, value in (("inputs", inputs), ("hidden", hidden), ("classes", classes)):
        check_count(name, value, 1)
    return nn.Sequential(
        nn.Flatten(), nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, classes)
    )


def small_cnn(classes: int = 10, channels: int = 3, size: int = 16) -> nn.Sequential:
    """Two 3×3 convolutions of stride 2 (8 and 16 channels, SiLU), then a linear layer.

    For square images of `size` pixels, a multiple of 4.
    """
    check_count("classes", classes, 1)
    check_count("channels", channels, 1)
    check_count("size", size, 4)
    if size % 4:
        raise ValueError(f"size is {size}, allowed: multiples of 4")
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, stride=2, padding=1),
        nn.SiLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.SiLU(),
        nn.Flatten(),
        nn.Linear(size * size, classes),
    )


def cnn(classes: int = 10) -> nn.Sequential:
    """The paper's CNN for 32×32: three blocks of two 3×3 convolutions, ReLU and 2×2 max-pool.

    Channels 32, 64, 128; then 2048 - 512 ReLU - logits.
    """
    check_count("classes", classes, 1)
    layers: list[nn.Module] = []
    previous = 3
    for width in (32, 64, 128):
        layers += [nn.Conv2d(previous, width, 3, padding=1), nn.ReLU()]
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        previous = width
    head = [nn.Flatten(), nn.Linear(2048, 512), nn.ReLU(), nn.Linear(512, classes)]
    return nn.Sequential(*layers, *head)


class Bottleneck(nn.Module):
    """Residual block 1×1 - 3×3 - 1×1 whose output has four times `width` channels."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = self.expansion * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n d k l"]:
        return torch.relu(self.body(x) + self.shortcut(x))


def _resnet(blocks: tuple[int, int, int, int], classes: int) -> nn.Sequential:
    """ResNet for 32×32: a 3×3 stem of stride 1 and no max-pool; `blocks` Bottlenecks a stage."""
    check_count("classes", classes, 1)
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
    ]
    channels = 64
    for stage, count in enumerate(blocks):
        width = 64 * 2**stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Bottleneck(channels, width, stride))
            channels = Bottleneck.expansion * width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
    model = nn.Sequential(*layers, *head)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model  # BatchNorm starts at weight 1, bias 0 by itself


def resnet50(classes: int = 10) -> nn.Sequential:
    """ResNet-50 with the CIFAR stem: Bottlenecks [3, 4, 6, 3]. BatchNorm: statistics per batch."""
    return _resnet((3, 4, 6, 3), classes)


def resnet101(classes: int = 10) -> nn.Sequential:
    """ResNet-101 with the CIFAR stem: Bottlenecks [3, 4, 23, 3]."""
    return _resnet((3, 4, 23, 3), classes)


class Attention(nn.Module):
    """Multi-head self-attention on normalised tokens, without biases; `head` dimensions a head."""

    def __init__(self, dim: int, heads: int, head: int = 64) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, 3 * heads * head, bias=False)
        self.to_out = nn.Linear(heads * head, dim, bias=False)

    def forward(self, x: Float[Tensor, "n tokens dim"]) -> Float[Tensor, "n tokens dim"]:
        qkv = self.to_qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.to_out(mixed.transpose(1, 2).flatten(2))


class SimpleViT(nn.Module):
    """Plain vision transformer (Beyer, Zhai, Kolesnikov 2022): fixed 2-D sine positions, mean pool.

    Pre-norm blocks of attention and a GELU network of `mlp` units; patches are normalised before
    and after their embedding.
    """

    def __init__(
        self, image: int, patch: int, dim: int, depth: int, heads: int, mlp: int, classes: int
    ) -> None:
        super().__init__()
        self.patch = patch
        pixels = 3 * patch * patch
        self.embed = nn.Sequential(nn.LayerNorm(pixels), nn.Linear(pixels, dim), nn.LayerNorm(dim))
        self.register_buffer("position", _sine_positions(image // patch, dim), persistent=False)
        self.attention = nn.ModuleList(Attention(dim, heads) for _ in range(depth))
        self.feedforward = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, mlp), nn.GELU(), nn.Linear(mlp, dim))
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, images: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n classes"]:
        patches = nn.functional.unfold(images, self.patch, stride=self.patch).transpose(1, 2)
        x = self.embed(patches) + self.position
        for attention, feedforward in zip(self.attention, self.feedforward, strict=True):
            x = x + attention(x)
            x = x + feedforward(x)
        return self.head(self.norm(x).mean(1))


def _sine_positions(side: int, dim: int) -> Float[Tensor, "tokens dim"]:
    """Sines and cosines of each token's column and row, a quarter of `dim` each."""
    frequency = 10000.0 ** -(torch.arange(dim // 4) / (dim // 4 - 1))
    row, column = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    angle_x = column.flatten()[:, None] * frequency
    angle_y = row.flatten()[:, None] * frequency
    return torch.cat([angle_x.sin(), angle_x.cos(), angle_y.sin(), angle_y.cos()], dim=1)


def simple_vit(classes: int = 10) -> SimpleViT:
    """The paper's ViT: image 32, patch 4, dim 512, depth 6, heads 16, mlp 1024."""
    check_count("classes", classes, 1)
    return SimpleViT(image=32, patch=4, dim=512, depth=6, heads=16, mlp=1024, classes=classes)
