"""Train a traffic-sign network and export it.

    python recipes/gtsrb/train.py --data FOLDER --network resnet50 --preset quick --out model.onnx

FOLDER holds the official GTSRB/. Prints the test accuracy after each epoch and, at the end, that
of the exported file as ONNX Runtime sees it, which is the figure on the model card. Beside the
model a checkpoint is kept: stopped at any moment, the same command goes on from there.
"""

import argparse
import math
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

from export import export_onnx
from mcrise import demo
from mcrise.batch.datasets import Example, gtsrb
from network import NETWORKS, WithSoftmax

SIZE = 96
MEAN, STD = 0.5, 0.5  # of all channels, after scaling to 0..1
CHECKPOINT_SECONDS = 60


@dataclass(frozen=True)
class Preset:
    """How to train: SGD with weight decay 5e-4."""

    # Of each cycle of the learning rate its stages: epochs, and the image size in them.
    cycles: tuple[tuple[tuple[float, int], ...], ...]
    steps: bool = False  # no cycle, but a tenth of the rate every 30 epochs, as in the paper
    peak_rate: float = 0.1
    batch_size: int = 64
    smoothing: float = 0.05  # of the labels

    @property
    def epochs(self) -> list[tuple[float, int, int]]:
        """Of each epoch: the share of the images that it sees, their size, and its cycle."""
        return [
            (min(n_epochs - before, 1.0), size, cycle)
            for cycle, stages in enumerate(self.cycles)
            for n_epochs, size in stages
            for before in range(math.ceil(n_epochs))
        ]

    def pace(self, progress: float, epoch: int) -> dict[str, float]:
        """Learning rate and momentum at a share of a cycle: up for 30% of it, then down."""
        if self.steps:
            return {"lr": self.peak_rate * 0.1 ** (epoch // 30), "momentum": 0.9}
        turn = 0.3
        rise = progress / turn if progress < turn else (1 - progress) / (1 - turn)
        wave = 0.5 - 0.5 * math.cos(math.pi * rise)
        least = self.peak_rate / (25 if progress < turn else 250_000)
        return {"lr": least + wave * (self.peak_rate - least), "momentum": 0.95 - 0.1 * wave}


PRESETS = {
    "embedded": Preset(cycles=(((10, SIZE),),)),
    "quick": Preset(cycles=(((3, 64), (1, SIZE)), ((1, SIZE),)), peak_rate=0.05),
    "paper": Preset(cycles=(((90, SIZE),),), steps=True, batch_size=128, smoothing=0.0),
}
# A pixel costs VGG-16 four times what it costs ResNet-50.
QUICK_VGG16 = replace(PRESETS["quick"], cycles=(((3, 32), (1, 64)), ((1, SIZE),)))


def main() -> None:
    args = arguments()
    torch.manual_seed(args.seed)
    preset = PRESETS[args.preset]
    if (args.network, args.preset) == ("vgg16", "quick"):
        preset = QUICK_VGG16
    images, labels = load(gtsrb(args.data, "train"))
    test_images, test_labels = load(gtsrb(args.data, "test"))
    network = NETWORKS[args.network]().to(memory_format=torch.channels_last)
    checkpoint = Checkpoint(
        args.out.with_suffix(".checkpoint"), f"{args.network} {args.preset} {args.seed}"
    )
    started = time.perf_counter()
    for epoch, loss in train(network, images, labels, preset, args.seed, checkpoint):
        size = preset.epochs[epoch][1]
        correct = accuracy(network, test_images, test_labels, size)
        spent = time.perf_counter() - started
        print(
            f"epoch {epoch + 1}/{len(preset.epochs)} at {size} pixels: loss {loss:.3f}, test "
            f"{correct:.2%}, {spent:.0f} s",
            flush=True,
        )
    export_onnx(WithSoftmax(network).eval(), (3, SIZE, SIZE), args.out)
    # What goes in and what comes out is the same for all of these networks.
    shutil.copy(demo.MODEL.with_suffix(".toml"), args.out.with_suffix(".toml"))
    shutil.copy(demo.MODEL.with_suffix(".txt"), args.out.parent)
    print(
        f"{args.out}: {args.out.stat().st_size / 1e6:.2f} MB, test accuracy "
        f"{onnx_accuracy(args.out, test_images, test_labels):.2%}"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train and export a traffic-sign network.")
    parser.add_argument("--data", type=Path, required=True, help="folder that contains GTSRB/")
    parser.add_argument("--network", choices=NETWORKS, default="compact")
    parser.add_argument("--preset", choices=PRESETS, default="embedded")
    parser.add_argument("--out", type=Path, default=Path("gtsrb.onnx"))
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def load(examples: list[Example]) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (N, 3, SIZE, SIZE) as bytes, labels (N,)."""
    images = np.empty((len(examples), SIZE, SIZE, 3), np.uint8)
    for row, example in zip(images, examples, strict=True):
        picture = Image.open(example.path).convert("RGB")
        row[:] = picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    labels = torch.tensor([int(example.label) for example in examples])
    return torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(), labels


@dataclass
class Checkpoint:
    """Where training stands, on disk."""

    path: Path
    run: str  # which network, preset and seed it is of
    saved: float = 0.0  # when

    def save(self, **state: object) -> None:
        """By atomic rename, so that a kill leaves either the old or the new one."""
        part = self.path.with_suffix(".part")
        torch.save({"run": self.run, **state}, part)
        os.replace(part, self.path)
        self.saved = time.monotonic()

    def load(self) -> dict:
        if not self.path.exists():
            return {}
        state = torch.load(self.path, weights_only=True)
        if state["run"] != self.run:
            raise SystemExit(f"{self.path} is of {state['run']!r}: choose another --out.")
        return state

    @property
    def due(self) -> bool:
        return time.monotonic() - self.saved > CHECKPOINT_SECONDS


def train(
    network: nn.Module,
    images: torch.Tensor,
    labels: torch.Tensor,
    preset: Preset,
    seed: int,
    checkpoint: Checkpoint,
) -> Iterator[tuple[int, float]]:
    """Yields each epoch as it ends, and its mean loss.

    The order and the changes made to images follow from (seed, epoch, step), so that a training
    that was interrupted sees what it would have seen.
    """
    optimizer = torch.optim.SGD(
        network.parameters(), momentum=0.9, weight_decay=5e-4, nesterov=not preset.steps
    )
    n_whole = math.ceil(len(images) / preset.batch_size)  # steps in a whole epoch
    n_steps = [math.ceil(share * n_whole) for share, _, _ in preset.epochs]
    parts = {"network": network, "optimizer": optimizer}
    state = checkpoint.load()
    for name, part in parts.items():
        if state:
            part.load_state_dict(state[name])
    done, losses = state.get("done", 0), state.get("losses", [])
    checkpoint.saved = time.monotonic()
    for epoch, (_, size, cycle) in enumerate(preset.epochs):
        before = sum(n_steps[:epoch])
        if done >= before + n_steps[epoch]:
            continue
        same = [e for e, other in enumerate(preset.epochs) if other[2] == cycle]
        began, length = sum(n_steps[: same[0]]), sum(n_steps[e] for e in same)
        network.train()
        order = torch.randperm(len(images), generator=generator(seed, epoch))
        batches = order.split(preset.batch_size)[: n_steps[epoch]]
        for step in range(max(done - before, 0), len(batches)):
            optimizer.param_groups[0].update(preset.pace((before + step - began) / length, epoch))
            rows = batches[step]
            torch.manual_seed(generator(seed, epoch, step).initial_seed())
            batch = augment(images[rows], size).to(memory_format=torch.channels_last)
            logits = network(batch)
            loss = functional.cross_entropy(logits, labels[rows], label_smoothing=preset.smoothing)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            last = step + 1 == len(batches)
            if last or checkpoint.due:
                states = {name: part.state_dict() for name, part in parts.items()}
                kept = [] if last else losses
                checkpoint.save(**states, done=before + step + 1, losses=kept)
        yield epoch, float(np.mean(losses))
        losses = []


def generator(*numbers: int) -> torch.Generator:
    seed = int(np.random.SeedSequence(numbers).generate_state(1)[0])
    return torch.Generator().manual_seed(seed)


def augment(images: torch.Tensor, size: int) -> torch.Tensor:
    """Turn, zoom, move and relight each image; no flips, because signs have a handedness."""
    n = len(images)
    angle = (torch.rand(n) - 0.5) * math.radians(30)
    zoom = 1 + (torch.rand(2, n) - 0.5) * 0.4
    move = (torch.rand(n, 2) - 0.5) * 0.25
    turn = torch.stack(
        [
            torch.stack([angle.cos() * zoom[0], -angle.sin() * zoom[0], move[:, 0]], dim=1),
            torch.stack([angle.sin() * zoom[1], angle.cos() * zoom[1], move[:, 1]], dim=1),
        ],
        dim=1,
    )
    grid = functional.affine_grid(turn, [n, 3, size, size], align_corners=False)
    moved = functional.grid_sample(images / 255.0, grid, padding_mode="border", align_corners=False)
    contrast = 1 + (torch.rand(n, 1, 1, 1) - 0.5) * 0.8
    light = (torch.rand(n, 1, 1, 1) - 0.5) * 0.5
    tint = (torch.rand(n, 3, 1, 1) - 0.5) * 0.1
    middle = moved.mean(dim=(1, 2, 3), keepdim=True)
    return normalize(((moved - middle) * contrast + middle + light + tint).clamp(0, 1))


def normalize(images: torch.Tensor) -> torch.Tensor:
    return (images - MEAN) / STD


@torch.no_grad()
def accuracy(network, images, labels, size: int) -> float:
    """At the size it is being trained at: another is as strange to it as another camera."""
    network.eval()
    hits = [
        (network(functional.interpolate(normalize(some / 255.0), size)).argmax(dim=1) == truth)
        for some, truth in zip(images.split(256), labels.split(256), strict=True)
    ]
    return torch.cat(hits).float().mean().item()


def onnx_accuracy(path: Path, images, labels) -> float:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs = normalize(images / 255.0).numpy()
    name = session.get_inputs()[0].name
    scores = np.concatenate(
        [session.run(None, {name: inputs[i : i + 100]})[0] for i in range(0, len(inputs), 100)]
    )
    return float((scores.argmax(axis=1) == labels.numpy()).mean())


if __name__ == "__main__":
    main()
