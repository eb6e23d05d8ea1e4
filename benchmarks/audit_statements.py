"""Do the statements of an audit hold on other images?

    python benchmarks/audit_statements.py [--per-class 12] [--audit FOLDER]

Audits signs of the GTSRB test set with default settings and takes what it printed with a 95%
interval: for each class the share that is right, in gray and with turned hues; what painting the
background does to the score; and what painting the region of each confirmed finding does. Then it
asks the model about all other images of the test set, painting with code of its own. A statement
holds if the mean of the other images lies in the printed interval. The other images are few too, so
the table also counts the statements from which they differ by more than both errors explain.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from numpy.typing import NDArray
from PIL import Image

import mcrise
from mcrise.batch.datasets import Example, open_dataset
from table import report

DATA = Path(os.environ.get("MCRISE_DATA", "../shared/data")) / "gtsrb"
COLORS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255),
          "white": (255, 255, 255), "black": (0, 0, 0)}  # fmt: skip
FEWEST = 8  # other images of a class, below which nothing is compared

Pixels = NDArray[np.uint8]


class Signs:
    """Other images of a class as the model sees them, and the scores of the class."""

    def __init__(self, model: mcrise.Model, target: int, examples: list[Example]) -> None:
        self.model, self.target = model, target
        pairs = [_read(example) for example in examples]
        self.images = np.stack([image for image, _ in pairs])  # (n, H, W, 3)
        self.outside = np.stack([outside for _, outside in pairs])  # (n, H, W)
        self.before = self.scores(self.images)

    def scores(self, images: Pixels) -> NDArray[np.floating[Any]]:  # (n, C)
        return np.concatenate([self.model(images[i : i + 32]) for i in range(0, len(images), 32)])

    def right(self, images: Pixels) -> NDArray[np.floating[Any]]:
        return (self.scores(images).argmax(1) == self.target).astype(float)

    def change(self, images: Pixels) -> NDArray[np.floating[Any]]:
        return (self.scores(images) - self.before)[:, self.target]


def _read(example: Example) -> tuple[Pixels, NDArray[np.bool_]]:
    """The image at the size of the network, and where its background is."""
    with Image.open(example.path) as file:
        picture = file.convert("RGB")
    assert example.box is not None
    top, left, bottom, right = (round(edge) for edge in example.box)
    inside = np.zeros((picture.height, picture.width), np.uint8)
    inside[top:bottom, left:right] = 255
    size = (96, 96)
    shown = picture.resize(size, Image.Resampling.BILINEAR)
    object_ = Image.fromarray(inside).resize(size, Image.Resampling.NEAREST)
    return np.asarray(shown), np.asarray(object_) == 0


def gray(images: Pixels) -> Pixels:
    levels = images @ np.array([0.299, 0.587, 0.114])
    return np.repeat(np.rint(levels)[..., None], 3, axis=-1).astype(np.uint8)


def turned(images: Pixels, degrees: float) -> Pixels:
    """Hues turned, in hue, saturation and value."""
    colors = rgb_to_hsv(images / 255)
    colors[..., 0] = (colors[..., 0] + degrees / 360) % 1
    return np.rint(255 * hsv_to_rgb(colors)).astype(np.uint8)


def painted(images: Pixels, where: NDArray[np.bool_], color: str) -> Pixels:
    """In a color, or each image in the mean color that is there."""
    result = images.copy()
    for image, region in zip(result, where, strict=True):
        if region.any():
            image[region] = COLORS.get(color) or np.rint(image[region].mean(0))
    return result


def statements(
    figures: dict[str, Any], signs: Signs
) -> Iterator[tuple[str, dict[str, float], Any]]:
    """What was printed of a class with an interval, and the same of the other images."""
    for name, images in {
        "accuracy": signs.images,
        "accuracy_gray": gray(signs.images),
        "accuracy_hue120": turned(signs.images, 120),
        "accuracy_hue240": turned(signs.images, 240),
    }.items():
        if figures[name]:
            yield name.removeprefix("accuracy_"), figures[name], signs.right(images)
    background = figures["background"]
    if background and background["zone"] == "background":
        for color, estimate in background["change"].items():
            yield "background", estimate, signs.change(painted(signs.images, signs.outside, color))
    for finding in figures["findings"]:
        if finding["verdict"] == "confirmed":
            rows = np.array([[mark == "#" for mark in row] for row in finding["region"]])
            region = np.kron(rows, np.ones((3, 3), bool))  # 32 x 32 to 96 x 96
            where = np.broadcast_to(region, signs.outside.shape)
            colors = [list(COLORS)[k] for k in finding["painted"]]
            changes = [signs.change(painted(signs.images, where, color)) for color in colors]
            yield "finding", finding["change"], np.mean(changes, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-class", type=int, default=12)
    parser.add_argument("--audit", help="a finished audit of the test set instead of a new one")
    args = parser.parse_args()
    model = mcrise.load_model("demo")
    with tempfile.TemporaryDirectory() as folder:
        out = args.audit or str(Path(folder) / "audit")
        if not args.audit:
            mcrise.audit(DATA, "demo", out=out, split="test", per_class=args.per_class)
        used = set(json.loads((Path(out) / "audit.json").read_text())["images"])
        classes = json.loads((Path(out) / "figures.json").read_text())["classes"]
    others = [one for one in open_dataset(DATA, "test") if one.name not in used]
    found: dict[str, list[tuple[bool, bool]]] = {}
    for figures in classes:
        target = figures["target"]
        mine = [one for one in others if one.label == str(target)]
        if len(mine) < FEWEST:
            continue
        for kind, estimate, values in statements(figures, Signs(model, target, mine)):
            low, high, mean = estimate["low"], estimate["high"], float(np.mean(values))
            error = 1.96 * float(np.std(values, ddof=1)) / len(values) ** 0.5
            inside = low - 1e-9 <= mean <= high + 1e-9
            found.setdefault(kind, []).append((inside, low - error <= mean <= high + error))
    found["all"] = [pair for pairs in found.values() for pair in pairs]
    report(
        "audit_statements",
        [{"statement": kind, "n": len(pairs), "held": np.mean([one for one, _ in pairs]),
          "held within both errors": np.mean([both for _, both in pairs])}
         for kind, pairs in found.items()],
        per_class=args.per_class,
    )  # fmt: skip


if __name__ == "__main__":
    main()
