"""Train the embedded traffic-sign model and export it.

    python recipes/gtsrb/train.py --data FOLDER --out model.onnx

FOLDER holds the official GTSRB/. Prints the test accuracy after each epoch and, at the end, that
of the exported file as ONNX Runtime sees it, which is the figure on the model card.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

from export import export_onnx
from mcrise.datasets import Example, gtsrb
from network import CompactNet, WithSoftmax

SIZE = 96
MEAN, STD = 0.5, 0.5  # of all channels, after scaling to 0..1


def main() -> None:
    args = arguments()
    torch.manual_seed(args.seed)
    train_images, train_labels = load(gtsrb(args.data, "train"))
    test_images, test_labels = load(gtsrb(args.data, "test"))
    network = CompactNet().to(memory_format=torch.channels_last)
    started = time.perf_counter()
    for epoch, loss in enumerate(train(network, train_images, train_labels, args), start=1):
        correct = accuracy(network, test_images, test_labels)
        spent = time.perf_counter() - started
        print(f"epoch {epoch}/{args.epochs}: loss {loss:.3f}, test {correct:.2%}, {spent:.0f} s")
    export_onnx(WithSoftmax(network.eval()), (3, SIZE, SIZE), args.out)
    print(
        f"{args.out}: {args.out.stat().st_size / 1e6:.2f} MB, test accuracy "
        f"{onnx_accuracy(args.out, test_images, test_labels):.2%}"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train and export the embedded model.")
    parser.add_argument("--data", type=Path, required=True, help="folder that contains GTSRB/")
    parser.add_argument("--out", type=Path, default=Path("gtsrb.onnx"))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--peak-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def load(examples: list[Example]) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (N, 3, SIZE, SIZE) as bytes, labels (N,)."""
    images = np.empty((len(examples), SIZE, SIZE, 3), np.uint8)
    for row, example in zip(images, examples, strict=True):
        picture = Image.open(example.path).convert("RGB")
        row[:] = picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    labels = torch.tensor([example.label for example in examples])
    return torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(), labels


def train(network, images, labels, args):
    """One-cycle SGD; yields the mean loss of each epoch."""
    optimizer = torch.optim.SGD(
        network.parameters(), lr=args.peak_rate, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    n_steps = args.epochs * math.ceil(len(images) / args.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.peak_rate, total_steps=n_steps)
    for _ in range(args.epochs):
        network.train()
        losses = []
        for rows in torch.randperm(len(images)).split(args.batch_size):
            batch = augment(images[rows]).to(memory_format=torch.channels_last)
            logits = network(batch)
            loss = functional.cross_entropy(logits, labels[rows], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        yield float(np.mean(losses))


def augment(images: torch.Tensor) -> torch.Tensor:
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
    grid = functional.affine_grid(turn, [n, 3, SIZE, SIZE], align_corners=False)
    moved = functional.grid_sample(images / 255.0, grid, padding_mode="border", align_corners=False)
    contrast = 1 + (torch.rand(n, 1, 1, 1) - 0.5) * 0.8
    light = (torch.rand(n, 1, 1, 1) - 0.5) * 0.5
    tint = (torch.rand(n, 3, 1, 1) - 0.5) * 0.1
    middle = moved.mean(dim=(1, 2, 3), keepdim=True)
    return normalize(((moved - middle) * contrast + middle + light + tint).clamp(0, 1))


def normalize(images: torch.Tensor) -> torch.Tensor:
    return (images - MEAN) / STD


@torch.no_grad()
def accuracy(network, images, labels) -> float:
    network.eval()
    hits = [
        (network(normalize(some / 255.0)).argmax(dim=1) == truth).float()
        for some, truth in zip(images.split(256), labels.split(256), strict=True)
    ]
    return torch.cat(hits).mean().item()


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
