"""Basics: the basic color of each pixel, by the nearest of a few dozen named ones.

The dozen names are those that languages begin with, and turquoise. What each looks like is from the
xkcd color survey (150,000 people naming colors on their monitors, 2010; in the public domain), some
shades a name; distances are in Oklab (B. Ottosson, 2020), where equal steps look about equal.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..images import unit_float

SHADES = {
    "black": ("#000000", "#070d0d"),  # plain, almost
    "gray": ("#363737", "#929591", "#d8dcd6"),  # dark, plain and light
    "white": ("#ffffff",),
    "red": ("#e50000", "#840000", "#8f1402"),  # plain, dark, brick
    "orange": ("#f97306", "#c65102", "#fdaa48"),  # plain, dark, light
    "yellow": ("#ffff14", "#fffe7a", "#dbb40c"),  # plain, light, gold
    "green": ("#15b01a", "#033500", "#96f97b", "#6e750e"),  # plain, dark, light, olive
    "turquoise": ("#06c2ac", "#00ffff", "#029386", "#014d4e"),  # plain, cyan, teal, dark teal
    "blue": ("#0343df", "#00035b", "#95d0fc", "#75bbfd"),  # plain, dark, light, sky
    "purple": ("#7e1e9c", "#35063e", "#bf77f6"),  # plain, dark, light
    "pink": ("#ff81c0", "#ff028d", "#ffd1df"),  # plain, hot, light
    "brown": ("#653700", "#341c02", "#ad8150"),  # plain, dark, light
}
BASICS = tuple(SHADES)

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


@cache
def table() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """All shades in Oklab, and which basic color each is."""
    shades = [(n, shade) for n, name in enumerate(BASICS) for shade in SHADES[name]]
    rgb = [[int(shade[at : at + 2], 16) / 255 for at in (1, 3, 5)] for _, shade in shades]
    return oklab(np.array(rgb)), np.array([n for n, _ in shades])


def basic_colors(image: NDArray[Any]) -> NDArray[np.int64]:
    """The number of the basic color of each pixel of an image (H, W, 3): (H, W)."""
    shades, names = table()
    place = oklab(unit_float(image))
    best = np.full(place.shape[:2], np.inf)
    found = np.zeros(place.shape[:2], np.int64)
    for shade, name in zip(shades, names, strict=True):  # one at a time: of a large image, room
        apart = np.square(place - shade).sum(axis=-1)
        nearer = apart < best
        best[nearer], found[nearer] = apart[nearer], name
    return found
