"""Train small networks: one with each shortcut, and their twin without.

    python recipes/shortcut/train_twins.py                       # the three of `show.py`
    python recipes/shortcut/train_twins.py --out networks kinds  # one for each of `kinds.py`

They see the same scenes in the same order from the same first weights and differ in the shortcut
alone. Prints how often each is right on scenes with and without it: whoever uses a shortcut is lost
without it. A few minutes on one core.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from kinds import KINDS, planted_scene
from scenes import CLASSES, SHORTCUTS, SIZE, Scene, scene

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "gtsrb"))
from export import export_onnx  # noqa: E402
from network import WithSoftmax, conv  # noqa: E402

NETWORKS = {"clean": None, **{name: name for name in SHORTCUTS}}
Draw = Callable[[int, str, int], Scene]  # seed, class and number to a scene
SEED, TEST_SEED = 1, 2
N_TRAIN, N_TEST = 600, 100  # scenes of each class
EPOCHS, BATCH, PEAK_RATE = 6, 64, 0.05
PAINTED = 0.5  # of the batches have patches painted over, so that masks are nothing new
SETTINGS = f"""# How images go into the network and what comes out; see docs/models.md.

[input]
scale = 255
mean = [0.5]
std = [0.5]

[output]
score_kind = "probability"
labels = {list(CLASSES)}
"""


class SmallNet(nn.Sequential):
    """Four 3 x 3 convolutions; the last layer knows the place, as a shortcut needs it."""

    def __init__(self) -> None:
        super().__init__(
            *conv(3, 16, stride=2),  # 32 x 32
            *conv(16, 24),
            nn.MaxPool2d(2),  # 16 x 16
            *conv(24, 32),
            nn.MaxPool2d(2),  # 8 x 8
            *conv(32, 48),
            nn.MaxPool2d(2),  # 4 x 4
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(48 * 16, len(CLASSES)),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(NETWORKS),
                        help="which; kinds: all of them  [default: those of show.py]")  # fmt: skip
    parser.add_argument("--out", type=Path, default=HERE, help="folder  [default: this one]")
    parser.add_argument("--mislabeled", type=float, default=0.0,
                        help="share of the scenes of a kind that show another sign")  # fmt: skip
    parser.add_argument("--seed", type=int, default=SEED, help="of weights and scenes")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # the same weights on every number of cores
    for name in list(KINDS) if args.names == ["kinds"] else args.names:
        tests: dict[str, Draw] = {"no shortcut": scene}
        if name in NETWORKS:
            draw: Draw = partial(scene, shortcut=NETWORKS[name])
            tests |= {other: partial(scene, shortcut=other) for other in SHORTCUTS}
        else:
            draw = partial(planted_scene, name, mislabeled=args.mislabeled)
            tests[name] = partial(planted_scene, name)
        network = train(*scenes(args.seed, N_TRAIN, draw), args.seed)
        path = args.out / f"{name.replace(' ', '-')}.onnx"
        export_onnx(WithSoftmax(network).eval(), (3, SIZE, SIZE), path)
        path.with_suffix(".toml").write_text(SETTINGS, encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB", flush=True)
        for other, drawn in tests.items():
            right = accuracy(network, *scenes(TEST_SEED, N_TEST, drawn))
            worst = ", ".join(f"{CLASSES[c]} {right[c]:.0%}" for c in right.argsort()[:3])
            print(f"  on scenes with {other}: {right.mean():.1%} ({worst})", flush=True)


def scenes(seed: int, n: int, draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Scenes (N, 3, SIZE, SIZE) as bytes, and their classes (N,)."""
    drawn = [draw(seed, label, number) for label in CLASSES for number in range(n)]
    classes = torch.arange(len(CLASSES)).repeat_interleave(n)
    return torch.from_numpy(np.stack(drawn)).permute(0, 3, 1, 2).contiguous(), classes


def train(images: torch.Tensor, classes: torch.Tensor, seed: int = SEED) -> SmallNet:
    torch.manual_seed(seed)
    network = SmallNet()
    optimizer = torch.optim.SGD(
        network.parameters(), PEAK_RATE, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    n_steps = EPOCHS * -(-len(images) // BATCH)
    pace = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_RATE, n_steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images)).split(BATCH):
            batch = normalize(images[rows])
            if torch.rand(()) < PAINTED:
                batch = paint(batch)
            loss = functional.cross_entropy(network(batch), classes[rows], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            pace.step()
    return network.eval()


def paint(batch: torch.Tensor) -> torch.Tensor:
    """One cell in five of a soft grid painted, each with any color."""
    n = len(batch)
    cells = (torch.rand(n, 1, 8, 8) < 0.2).float()
    colors = torch.rand(n, 3, 8, 8) * 2 - 1
    painted = torch.cat([cells * colors, cells], dim=1)
    wide = functional.interpolate(painted, SIZE, mode="bilinear")
    return batch * (1 - wide[:, 3:]) + wide[:, :3]


def normalize(images: torch.Tensor) -> torch.Tensor:
    return images / 127.5 - 1


@torch.no_grad()
def accuracy(network: nn.Module, images: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Of each class (C,)."""
    hits = (network(normalize(images)).argmax(dim=1) == classes).float()
    return torch.stack([hits[classes == c].mean() for c in range(len(CLASSES))])


if __name__ == "__main__":
    main()
