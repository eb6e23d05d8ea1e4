"""What painting any block does to an image, known by trying all of them.

A block is 1, 2 or 3 cells a side, a cell an eighth of the image; it starts at any half cell and is
painted alone, with hard edges, in red, green, blue, white or black. That makes 515 blocks and 2,575
model calls for an image. The answers are kept in a folder (MCRISE_WHOLE_CACHE, else build/whole),
one file for each image and network, and depend on nothing that mcrise concludes: from mcrise come
the network, the list of images and the pixels that the network is shown.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

import networks
from mcrise import Model
from mcrise.batch.datasets import Example, gtsrb, open_dataset

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("MCRISE_DATA", HERE.parents[1] / "shared" / "data"))
CACHE = Path(os.environ.get("MCRISE_WHOLE_CACHE", HERE.parent / "build" / "whole"))

GRID = 8  # cells a side
SIDES = (1, 2, 3)  # of a block, in cells
COLORS = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "white": (255, 255, 255),
    "black": (0, 0, 0),
}
BATCH = 64
VERSION = "1"  # of the files

Pixels = NDArray[np.uint8]  # (H, W, 3)
Region = NDArray[np.bool_]  # (H, W)


# ---- networks and images


@dataclass(frozen=True)
class Image:
    """A file and its true class."""

    path: str
    truth: int

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def order(self) -> str:
        """Where it stands in an order that has nothing to do with what it shows."""
        return hashlib.sha256(self.name.encode()).hexdigest()

    @property
    def half(self) -> str:
        """`dev` or `test`: for good, and whichever network is asked."""
        return "dev" if int(self.order[-1], 16) % 2 else "test"


NETWORKS = ("embedded", "seed1", "photographs")


def open_network(name: str, threads: int | None = 1) -> Model:
    if name == "embedded":
        return networks.embedded(threads)
    if name == "seed1":
        return networks.second_seed(threads)
    if name == "photographs":
        lines = (DATA / "imagenet" / "classes.txt").read_text(encoding="utf-8").splitlines()
        return networks.efficientnet([line.strip() for line in lines if line.strip()], threads)
    raise SystemExit(f"There is no network {name!r}: give some of {', '.join(NETWORKS)}.")


def all_images(name: str, model: Model) -> list[Image]:
    """The images of a network, in the order of their hash."""
    if name == "photographs":  # files are named after the class: n01443537_goldfish.JPEG
        numbers = {label.split()[0]: n for n, label in enumerate(model.labels or ())}
        found = [
            Image(one.path, numbers[Path(one.path).name.split("_")[0]])
            for one in open_dataset(DATA / "imagenet" / "images")
        ]
    else:
        found = [Image(one.path, truth_of(one)) for one in gtsrb(DATA / "gtsrb", "test")]
    return sorted(found, key=lambda image: image.order)


def truth_of(example: Example) -> int:
    assert example.label is not None
    return int(example.label)


def predictions(name: str, model: Model, images: Sequence[Image], cache: Path) -> NDArray[np.int64]:
    """The class that a network says of each image, kept like the answers to blocks."""
    names = "\n".join(image.path for image in images)
    file = cache / name / f"predictions-{digest(names.encode(), model.origin.digest.encode())}.npz"
    if not file.exists():
        tops = []
        for start in range(0, len(images), BATCH):
            some = images[start : start + BATCH]
            tops.append(model(np.stack([shown(model, one) for one in some])).argmax(axis=1))
        write(file, tops=np.concatenate(tops))
    return np.asarray(np.load(file)["tops"])


def shown(model: Model, image: Image) -> Pixels:
    pixels = model.view(image.path).pixels
    assert pixels.dtype == np.uint8
    return pixels


def choose(
    name: str, model: Model, part: str, right: bool, n_images: int | None, cache: Path
) -> list[Image]:
    """The first images of `dev`, `test` or `all` that a network gets right, or wrong."""
    images = all_images(name, model)
    tops = predictions(name, model, images, cache)
    found = [
        image
        for image, top in zip(images, tops, strict=True)
        if part in ("all", image.half) and bool(top == image.truth) == right
    ]
    return found[:n_images]


# ---- painting


def lattice(size: tuple[int, int]) -> NDArray[np.int64]:
    """All blocks (B, 5): side in cells, top, left, bottom, right in pixels."""
    rows, columns = (np.rint(np.arange(2 * GRID + 1) * side / (2 * GRID)).astype(int)
                     for side in size)  # fmt: skip
    return np.array(
        [
            (side, rows[i], columns[j], rows[i + 2 * side], columns[j + 2 * side])
            for side in SIDES
            for i in range(2 * (GRID - side) + 1)
            for j in range(2 * (GRID - side) + 1)
        ]
    )


def region_of(size: tuple[int, int], box: Sequence[int]) -> Region:
    """The pixels of a box: top, left, bottom, right."""
    region = np.zeros(size, bool)
    top, left, bottom, right = box
    region[top:bottom, left:right] = True
    return region


def paint(pixels: Pixels, weight: NDArray[Any], fill: NDArray[Any]) -> Pixels:
    """An image under a fill, (3,) or (H, W, 3) in 0..255, where `weight` (H, W) is 1."""
    if weight.dtype == bool:
        out = pixels.copy()
        out[weight] = fill[weight] if fill.ndim == 3 else fill
        return out
    part = weight[..., None].astype(np.float64)
    return np.rint(pixels * (1 - part) + fill * part).astype(np.uint8)


def ask(model: Model, pictures: Sequence[Pixels]) -> NDArray[np.float32]:
    """The scores (N, C) of pictures, in batches."""
    parts = [
        model(np.stack(pictures[start : start + BATCH])) for start in range(0, len(pictures), BATCH)
    ]
    return np.concatenate(parts)


# ---- all blocks of an image


@dataclass(frozen=True, eq=False)
class Answers:
    """What a network says of an image with each block in each color."""

    untouched: NDArray[np.float32]  # (C,)
    truth: int
    blocks: NDArray[np.int64]  # (B, 5)
    says: NDArray[np.int64]  # (B, 5 colors): the class with the highest score
    score: NDArray[np.float32]  # (B, 5 colors): of the class predicted for the untouched image
    truth_score: NDArray[np.float32]  # (B, 5 colors)

    @property
    def predicted(self) -> int:
        return int(self.untouched.argmax())

    @property
    def before(self) -> float:
        return float(self.untouched[self.predicted])


def answers_of(name: str, model: Model, image: Image, cache: Path) -> Answers:
    """From the folder, or asked and then kept there."""
    pixels = shown(model, image)
    key = digest(VERSION.encode(), model.origin.digest.encode(), repr(pixels.shape).encode(),
                 pixels.tobytes(), str(image.truth).encode())  # fmt: skip
    file = cache / name / f"{Path(image.path).stem}-{key}.npz"
    if not file.exists():
        blocks = lattice(pixels.shape[:2])
        untouched = model(pixels[None])[0]
        predicted = int(untouched.argmax())
        says, score, truth_score = [], [], []
        for start in range(0, len(blocks), BATCH // len(COLORS)):
            scores = model(
                np.stack(list(painted(pixels, blocks[start : start + BATCH // len(COLORS)])))
            )
            says.append(scores.argmax(axis=1))
            score.append(scores[:, predicted])
            truth_score.append(scores[:, image.truth])
        shape = len(blocks), len(COLORS)
        write(
            file,
            untouched=untouched,
            truth=image.truth,
            blocks=blocks,
            says=np.concatenate(says).reshape(shape).astype(np.int16),
            score=np.concatenate(score).reshape(shape),
            truth_score=np.concatenate(truth_score).reshape(shape),
        )
    with np.load(file) as kept:
        return Answers(
            kept["untouched"], int(kept["truth"]), kept["blocks"],
            kept["says"].astype(np.int64), kept["score"], kept["truth_score"],
        )  # fmt: skip


def painted(pixels: Pixels, blocks: NDArray[np.int64]) -> Iterator[Pixels]:
    """An image with each block in each color, block by block."""
    for _, top, left, bottom, right in blocks:
        for color in COLORS.values():
            out = pixels.copy()
            out[top:bottom, left:right] = color
            yield out


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def write(file: Path, **arrays: Any) -> None:
    """Whole or not at all, so that a run that was stopped goes on."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".part", delete=False) as part:
        np.savez_compressed(part, **arrays)
    os.replace(part.name, file)


def dot() -> None:
    """A sign of life on stderr."""
    print(".", end="", flush=True, file=sys.stderr)
