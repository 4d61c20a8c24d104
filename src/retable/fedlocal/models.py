"""The networks of the image experiments."""

import torch
from torch import nn


def _he_normal(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        nn.init.zeros_(module.bias)


def small_cnn(image: int = 16, num_outputs: int = 2) -> nn.Sequential:
    """Two strided 3×3 convolutions (3→12→24 channels) with ReLU, and a linear layer.

    For RGB images of `image`×`image` pixels, a multiple of 4. He-normal weights, zero biases.
    """
    if image < 4 or image % 4:
        raise ValueError(f"image is {image}; it must be a positive multiple of 4")
    if num_outputs < 2:
        raise ValueError(f"num_outputs is {num_outputs}; it must be at least 2")
    net = nn.Sequential(
        nn.Conv2d(3, 12, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * (image // 4) ** 2, num_outputs),
    )
    return net.apply(_he_normal)


class _BasicBlock(nn.Module):
    """Two 3×3 convolutions with batch normalisation around a shortcut."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = (
            nn.Sequential(
                nn.Conv2d(width_in, width, 1, stride=stride, bias=False), nn.BatchNorm2d(width)
            )
            if stride != 1 or width_in != width
            else None
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(x)) + shortcut)


class _ResNet18(nn.Module):
    """The residual network with 18 layers; its parameters have the usual names."""

    def __init__(self, num_outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        widths = (64, 64, 128, 256, 512)
        for i in range(1, 5):
            stride = 1 if i == 1 else 2
            stage = nn.Sequential(
                _BasicBlock(widths[i - 1], widths[i], stride), _BasicBlock(widths[i], widths[i], 1)
            )
            self.add_module(f"layer{i}", stage)
        self.fc = nn.Linear(512, num_outputs)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def resnet18(num_outputs: int = 1000) -> nn.Module:
    """ResNet-18 with the ImageNet stem (7×7 convolution with stride 2, max-pooling).

    Layout, parameter names and initialisation are torchvision's, so its state dictionaries fit. The
    published runs keep the 1000 outputs although the labels are 0 and 1.
    """
    if num_outputs < 2:
        raise ValueError(f"num_outputs is {num_outputs}; it must be at least 2")
    return _ResNet18(num_outputs)
