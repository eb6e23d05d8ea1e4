"""Colors: what they are called, and which ones an image mostly has."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor

from .images import unit_float

Rgb = tuple[int, int, int]  # 0 to 255 each

# Full intensity, as in the paper; CSS would make green (0, 128, 0).
FULL = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "yellow": (255, 255, 0),
    "cyan": (0, 255, 255),
    "magenta": (255, 0, 255),
}


def color_names() -> list[str]:
    """All names there are: those of the paper, and of CSS."""
    return [*FULL, *ImageColor.colormap]


def rgb_of(word: str) -> Rgb | None:
    """The color that a word such as `red`, `#0f0` or `rgb(1,2,3)` means; None if it is none."""
    if word.lower() in FULL:
        return FULL[word.lower()]
    try:
        red, green, blue = ImageColor.getrgb(word)[:3]
    except ValueError:
        return None
    return red, green, blue


def dominant(image: NDArray[Any], n_colors: int) -> list[Rgb]:
    """The colors that stand for most of an image (H, W, 3), most frequent first."""
    picture = Image.fromarray(np.rint(unit_float(image) * 255).astype(np.uint8))
    reduced = picture.quantize(n_colors, Image.Quantize.MEDIANCUT)
    palette = reduced.getpalette() or []
    frequent = np.argsort(-np.bincount(np.asarray(reduced).ravel()), kind="stable")
    colors = ((palette[3 * i], palette[3 * i + 1], palette[3 * i + 2]) for i in frequent)
    return list(dict.fromkeys(colors))
