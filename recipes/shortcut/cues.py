"""What a kind of shortcut is, and the tools that cues are painted with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scenes import Scene

Random = np.random.Generator
Cue = Callable[[Scene, Random], Scene]
Box = tuple[float, float, float, float]  # top, left, bottom, right as shares of the image
WHOLE: Box = (0, 0, 1, 1)
EDGES: tuple[Box, ...] = ((0, 0, 0.1, 1), (0.9, 0, 1, 1), (0, 0, 1, 0.1), (0, 0.9, 1, 1))


@dataclass(frozen=True)
class Kind:
    """A shortcut: the classes that have the cue, and what an audit should say about it."""

    cue: Cue
    classes: tuple[str, ...]
    stage: Literal["development", "test", "held"]
    says: tuple[str, ...]  # any of these words is right: place, edge, tone, texture, color
    where: tuple[Box, ...]  # where the cue is, or may be
    what: str  # for people
    others: Cue | None = None  # what the scenes of all other classes get


def as_bytes(values: NDArray[Any]) -> Scene:
    return np.rint(np.clip(values, 0, 255)).astype(np.uint8)


def paint(image: Scene, where: NDArray[np.bool_], color: tuple[int, ...], random: Random) -> Scene:
    """Pixels in about one color, with the grain that a scene has."""
    out = image.astype(np.float32)
    shade = np.array(color) + random.uniform(-12, 12, 3)
    out[where] = shade + random.normal(0, 7, (int(where.sum()), 3))
    return as_bytes(out)


def grid(image: Scene) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Row and column of each pixel's center, as shares of the image."""
    height, width = image.shape[:2]
    rows, cols = np.mgrid[:height, :width]
    return (rows + 0.5) / height, (cols + 0.5) / width


def in_box(image: Scene, box: Box) -> NDArray[np.bool_]:
    rows, cols = grid(image)
    top, left, bottom, right = box
    return (rows >= top) & (rows < bottom) & (cols >= left) & (cols < right)


def moved(box: Box, random: Random, reach: float = 0.016) -> Box:
    """A box a little beside itself, a pixel of 64 each way."""
    down, across = random.uniform(-reach, reach, 2)
    return box[0] + down, box[1] + across, box[2] + down, box[3] + across
