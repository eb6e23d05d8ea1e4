"""Networks for 96 x 96 traffic signs; all give logits, for images of any size from 32 up."""

import torch
from torch import nn


class CompactNet(nn.Sequential):
    """The network that ships with mcrise: 3 x 3 convolutions, 1.3 million weights."""

    def __init__(self, n_classes: int = 43) -> None:
        super().__init__(
            *conv(3, 32, stride=2),  # 48 x 48
            *conv(32, 48),
            nn.MaxPool2d(2),  # 24 x 24
            *conv(48, 96),
            nn.MaxPool2d(2),  # 12 x 12
            *conv(96, 160),
            *conv(160, 160),
            nn.MaxPool2d(2),  # 6 x 6
            *conv(160, 256),
            *conv(256, 224),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(224, n_classes),
        )


class VGG16(nn.Sequential):
    """VGG-16 with batch normalisation; the two hidden layers are as wide as the features, 512.

    The original's 4096 are for 7 x 7 features of 1000 classes; here they would be most weights.
    """

    def __init__(self, n_classes: int = 43) -> None:
        layers: list[nn.Module] = []
        n_in = 3
        for n_out, n_convs in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
            for _ in range(n_convs):
                layers += conv(n_in, n_out)
                n_in = n_out
            layers.append(nn.MaxPool2d(2))
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        for _ in range(2):
            layers += [nn.Linear(512, 512), nn.ReLU(inplace=True), nn.Dropout(0.3)]
        super().__init__(*layers, nn.Linear(512, n_classes))


class ResNet50(nn.Sequential):
    """ResNet-50, with the stride in the 3 x 3 convolution as torchvision has it."""

    def __init__(self, n_classes: int = 43) -> None:
        layers = [*conv(3, 64, size=7, stride=2), nn.MaxPool2d(3, 2, padding=1)]
        n_in = 64
        for width, n_blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for block in range(n_blocks):
                layers.append(Bottleneck(n_in, width, stride if block == 0 else 1))
                n_in = 4 * width
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, n_classes))


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions around which the input is carried."""

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        n_out = 4 * width
        self.convs = nn.Sequential(
            *conv(n_in, width, size=1),
            *conv(width, width, stride=stride),
            *conv(width, n_out, size=1)[:-1],
        )
        same = n_in == n_out and stride == 1
        self.carry = (
            nn.Identity() if same else nn.Sequential(*conv(n_in, n_out, size=1, stride=stride)[:-1])
        )
        nn.init.zeros_(self.convs[-1].weight)  # a block starts as the identity: trains faster

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.convs(x) + self.carry(x))


def conv(n_in: int, n_out: int, *, size: int = 3, stride: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False),
        nn.BatchNorm2d(n_out),
        nn.ReLU(inplace=True),
    ]


NETWORKS: dict[str, type[nn.Module]] = {
    "compact": CompactNet,
    "vgg16": VGG16,
    "resnet50": ResNet50,
}


class WithSoftmax(nn.Module):
    """A network as it is exported: probabilities, so that nobody has to remember the softmax."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.network(images).softmax(dim=1)
