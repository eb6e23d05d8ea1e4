"""The compact traffic-sign network that ships with mcrise."""

import torch
from torch import nn


class CompactNet(nn.Sequential):
    """Six 3 x 3 convolutions for 96 x 96 images; 1.3 million weights, logits out."""

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


def conv(n_in: int, n_out: int, stride: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(n_out),
        nn.ReLU(inplace=True),
    ]


class WithSoftmax(nn.Module):
    """A network as it is exported: probabilities, so that nobody has to remember the softmax."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.network(images).softmax(dim=1)
