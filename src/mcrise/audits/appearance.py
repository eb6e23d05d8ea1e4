"""How a class's images look as a whole beside those of other classes, in words: `darker`."""

import io
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .class_data import FloatArray

CLEAR = 1.0  # standard deviations of images by which classes differ
MOST_LOOKED_AT = 48  # images of a class, and of all others

Looks = NDArray[np.float64]  # (H, W, 3) of an image in 0..1


def brightness(image: Looks) -> FloatArray:
    return np.asarray(image.mean(axis=2))


def balance(channel: int) -> Callable[[Looks], float]:
    return lambda image: float(image[..., channel].mean() - image.mean())


def colorfulness(image: Looks) -> float:
    return float((image.max(axis=2) - image.min(axis=2)).mean())


def detail(image: Looks) -> float:
    """How much neighbors differ."""
    gray = brightness(image)
    steps = [np.abs(np.diff(gray, axis=axis)).mean() for axis in (0, 1)]
    return float(np.log(sum(steps) + 1e-6))


def slope(axis: int) -> Callable[[Looks], float]:
    """How much brighter the first half of the image is than the second."""

    def difference(image: Looks) -> float:
        first, second = np.array_split(brightness(image), 2, axis=axis)
        return float(first.mean() - second.mean())

    return difference


def fall(image: Looks) -> float:
    """How much brighter the middle is than the rim."""
    gray = brightness(image)
    (top, left), (height, width) = (n // 8 for n in gray.shape), gray.shape
    inner = gray[top : height - top, left : width - left]
    rim = (gray.sum() - inner.sum()) / max(gray.size - inner.size, 1)
    return float(inner.mean() - rim)


# What is measured, and the words for less and for more of it.
Measure = tuple[Callable[[Looks], float], str, str]
TONES: tuple[Measure, ...] = (
    (lambda image: float(brightness(image).mean()), "darker", "brighter"),
    (lambda image: float(brightness(image).std()), "less contrast", "more contrast"),
)
COLORS: tuple[Measure, ...] = (
    (colorfulness, "less colorful", "more colorful"),
    (balance(0), "less red", "more red"),
    (balance(1), "less green", "more green"),
    (balance(2), "less blue", "more blue"),
)
LIGHT: tuple[Measure, ...] = (
    (slope(0), "brighter at the bottom", "brighter at the top"),
    (slope(1), "brighter at the right", "brighter at the left"),
    (fall, "brighter at the edges", "darker at the edges"),
)
BY_TRAIT: dict[str, tuple[Measure, ...]] = {
    "tone": (*TONES, *COLORS),
    "levels": (*TONES, *COLORS),
    "hues": COLORS,
    "light": (*LIGHT, TONES[0]),
    "texture": ((detail, "less fine detail", "more fine detail"),),
}


def differs(trait: str, own: Sequence[bytes], others: Sequence[bytes]) -> str:
    """What is most unlike in a class's thumbnails, of what a trait carries; empty: nothing is."""
    if min(len(own), len(others)) < 2:
        return ""
    found: dict[str, float] = {}
    images = [[opened(one) for one in some] for some in (own, others)]
    for measure, less, more in BY_TRAIT.get(trait, ()):
        here, there = (np.array([measure(image) for image in some]) for some in images)
        spread = np.sqrt((here.var() + there.var()) / 2) + 1e-6
        difference = (here.mean() - there.mean()) / spread
        found[more if difference > 0 else less] = abs(float(difference))
    best = max(found, key=lambda word: found[word], default="")
    return best if best and found[best] >= CLEAR else ""


def opened(thumbnail: bytes) -> Looks:
    with Image.open(io.BytesIO(thumbnail)) as picture:
        return np.asarray(picture.convert("RGB"), np.float64) / 255
