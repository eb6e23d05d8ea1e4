"""Colors: what they are called, and which ones an image mostly has."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor

from .images import whole_pixels

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
    picture = Image.fromarray(whole_pixels(image))
    reduced = picture.quantize(n_colors, Image.Quantize.MEDIANCUT)
    palette = reduced.getpalette() or []
    frequent = np.argsort(-np.bincount(np.asarray(reduced).ravel()), kind="stable")
    colors = ((palette[3 * i], palette[3 * i + 1], palette[3 * i + 2]) for i in frequent)
    return list(dict.fromkeys(colors))


# ---- the basic color of each pixel
#
# The dozen names are those that languages begin with, and turquoise. What each looks like is
# from the xkcd color survey (150,000 people naming colors on their monitors, 2010; in the public
# domain; Matplotlib ships it): some 480 of its shades are named after one basic color, as `dusty
# blue` is. A pixel is called what the nearest of them is, in Oklab (B. Ottosson, 2020), where
# equal steps look about equal; lightness counts half, since names follow hues. Left out in turn,
# 96% of these shades are called what people call them.

WORDS = {  # of the survey, for each name
    "black": ("black",),
    "gray": ("grey",),
    "white": ("white",),
    "red": ("red",),
    "orange": ("orange",),
    "yellow": ("yellow",),
    "green": ("green",),
    "turquoise": ("turquoise", "teal", "cyan", "aqua", "aquamarine"),
    "blue": ("blue",),
    "purple": ("purple", "violet"),
    "pink": ("pink",),
    "brown": ("brown",),
}
BASICS = tuple(WORDS)
LEFT_OUT = "pale grey"  # #fdfdfe
NAME_STEP = 8  # of 256: colors that are nearer to each other have one name
LIGHTNESS = 0.5  # of a step in hue
GRAYS = 0x24, 0xEC  # without any hue: darker is black, lighter is white; the survey has few grays

TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def oklab(colors: NDArray[Any]) -> NDArray[np.float64]:
    """Colors (..., 3) in 0..1 as lightness, green to red, and blue to yellow."""
    srgb = np.asarray(colors, np.float64)
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.cbrt(linear @ TO_CONES.T) @ TO_LAB.T)


def shades() -> dict[str, tuple[str, str]]:
    """Those of the survey that are of one basic color, and which: by their names, in hex.

    `dark teal`, but neither `teal blue`, which is of two, nor `bluish grey`, nor `rust`.
    """
    from matplotlib.colors import XKCD_COLORS

    basic_of = {word: name for name, words in WORDS.items() for word in words}
    stems = {word[:3] for word in basic_of}  # of bluish, reddish, greeny
    found = {}
    for name, color in XKCD_COLORS.items():
        words = name.removeprefix("xkcd:").replace("/", " ").split()
        named = {basic_of[word] for word in words if word in basic_of}
        tinged = any(word.endswith(("ish", "y")) and word[:3] in stems for word in words[:-1])
        if words[-1] in basic_of and len(named) == 1 and not tinged:
            found[" ".join(words)] = basic_of[words[-1]], str(color)
    del found[LEFT_OUT]
    return found


@cache
def _basic_by_step() -> NDArray[np.uint8]:
    """The number of the basic color of each color, by steps of red, green and blue."""
    from scipy.spatial import KDTree

    known = list(shades().values())
    rgb = [[int(color[at : at + 2], 16) for at in (1, 3, 5)] for _, color in known]
    names = [BASICS.index(name) for name, _ in known]
    for level in range(0, 256, NAME_STEP):
        rgb.append([level] * 3)
        names.append(
            BASICS.index(("black", "gray", "white")[np.searchsorted(GRAYS, level, "right")])
        )
    levels = np.arange(0, 256, NAME_STEP) + (NAME_STEP - 1) / 2
    every = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1)
    weights = np.array([LIGHTNESS, 1, 1])
    tree = KDTree(weights * oklab(np.array(rgb) / 255))
    return np.array(names, np.uint8)[tree.query(weights * oklab(every / 255))[1]]


def basic_colors(image: NDArray[Any]) -> NDArray[np.int64]:
    """The number of the basic color of each pixel of an image (H, W, 3): (H, W)."""
    red, green, blue = np.moveaxis(whole_pixels(image) // NAME_STEP, -1, 0)
    return np.asarray(_basic_by_step()[red, green, blue], np.int64)
