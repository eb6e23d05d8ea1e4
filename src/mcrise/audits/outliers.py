"""Outliers: the images of a class whose maps lie far from those of the others.

Each image is compared with the mean of all others. What counts is the distance for its noise: over
what its own error and the usual spread in the class would make. All places of a map err alike by
the way masks are drawn, so the error of an image is one number, well known even from few masks
unless scores seldom change; so it counts as no smaller than is usual in the class.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..interpretation.regions import place_of
from ..maps import mean_square
from .class_data import AuditInfo, ClassData

FEWEST = 6  # images, to tell what is usual
FAR = 3.5  # usual deviations of a distance; more is unlike
LEAST_SPREAD = 0.1  # of the logarithm of distances; less is not usual, even if the class has less
MOST = 10  # images of a class


@dataclass(frozen=True)
class Outlier:
    """An image that is decided differently from the rest of its class."""

    image: int  # number in the audit
    name: str
    target: int
    distance: float  # root of mean square, over what is usual; 1 is usual
    fill: int  # and the place where the difference is largest
    place: str
    sentence: str


def find_unlike(class_data: ClassData, info: AuditInfo) -> tuple[Outlier, ...]:
    """Most striking first; none where there are too few images to tell what is usual."""
    n = len(class_data)
    if n < FEWEST:
        return ()
    total = class_data.maps.sum(axis=0, dtype=np.float64)
    noise = np.array([mean_square(one) for one in class_data.errors])
    distance = distances(class_data.maps, noise)
    far = np.log(np.maximum(distance, 1e-9))
    middle = np.median(far)
    spread = max(1.4826 * float(np.median(np.abs(far - middle))), LEAST_SPREAD)
    order = np.argsort(-far, kind="stable")[:MOST]
    return tuple(
        describe(class_data, info, int(i), float(distance[i]), total)
        for i in order
        if far[i] - middle > FAR * spread
    )


def distances(maps: NDArray[np.floating[Any]], noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far the maps (N, K, R, C) of each image are from the mean of the others; 1 is usual.

    `noise` (N,) is the mean square error of each image's maps.
    """
    n = len(maps)
    total = maps.sum(axis=0, dtype=np.float64)
    apart = np.array([mean_square(one - (total - one) / (n - 1)) for one in maps])
    noise = noise + (noise.sum() - noise) / (n - 1) ** 2  # that of the others' mean
    distance = np.empty(n)
    for i in range(n):
        others = np.arange(n) != i
        # A score that no mask of its own flipped seems to have no noise at all, by chance.
        own = max(noise[i], float(np.median(noise[others])))
        usual = max(float(np.median(apart[others] - noise[others])), 0.0) + own
        distance[i] = math.sqrt(apart[i] / usual) if usual > 0 else 1.0
    return distance


def describe(
    class_data: ClassData, info: AuditInfo, i: int, distance: float, total: NDArray[np.float64]
) -> Outlier:
    """Where an image differs most from the mean of the others, and how."""
    from scipy.ndimage import label

    own, others = class_data.maps[i], (total - class_data.maps[i]) / (len(class_data) - 1)
    difference = own - others
    fill, *peak = np.unravel_index(np.abs(difference).argmax(), difference.shape)
    top = difference[fill][*peak]
    lobes, _ = label(difference[fill] / top >= 0.5)
    region = lobes == lobes[*peak]
    here, there = (float(maps[fill][region].mean()) for maps in (own, others))
    name, place = class_data.names[i], place_of(region)
    sentence = (
        f"{name}: under random masks, {info.fills[fill]} on {place} "
        f"{moves(repr(info.label(class_data.target)), here, there)}, in the others of its class it "
        f"{moves('it', there, here)}."
    )
    return Outlier(
        int(class_data.image[i]), name, class_data.target, distance, int(fill), place, sentence
    )


def moves(what: str, effect: float, other: float) -> str:
    """`lowers it by 0.21`; what is a tenth of another effect leaves it."""
    if abs(effect) < 0.1 * abs(other):
        return f"leaves {what} as it is"
    return f"{'raises' if effect > 0 else 'lowers'} {what} by {abs(effect):.2g}"
