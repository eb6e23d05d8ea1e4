"""Planted models whose score comes about by several places: to develop the search on.

Things that stand in for each other, that must be alike, that are counted, compared or far apart;
and of single places those that a flat color cannot show. Truths are sayings of `judge_whole`, and
`zoo_whole.draw_whole(kind, seed, SEVERAL)` draws a case.
"""

import colorsys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge_whole import Saying
from mcrise.colors import FULL
from mcrise.fills import LUMA
from zoo import (
    PALETTE,
    Images,
    Region,
    alike,
    all_but,
    any_of,
    background,
    between,
    box_of,
    draw_region,
    look,
    muted,
    nearly,
    pixels,
    put,
    put_pattern,
    sees_color,
    sees_fine_texture,
    sees_luma,
    share_of_now,
)
from zoo_whole import WholePlant, plant_of


def things(rng: Any, size: tuple[int, int], n: int, low: float, high: float) -> tuple[Any, ...]:
    """A color, the image, places that have it, and how much of it each has."""
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    regions: list[Region] = []
    for _ in range(n):
        regions.append(draw_region(rng, size, low, high, avoid=regions))
    for region in regions:
        put(rng, picture, region, nearly(rng, name))
    image = pixels(picture)
    seen = [share_of_now(sees_color(region, name, 0.62), image) for region in regions]
    return name, image, regions, seen


def planted(image: Any, evidence: Any, sayings: Any, places: Any, **more: Any) -> WholePlant:
    return plant_of(image, between(0.04, 0.9, evidence, image), sayings, places=places, **more)


def any_of_four(rng: Any, size: tuple[int, int]) -> WholePlant:
    """Four things of a color; one of them is enough."""
    name, image, regions, seen = things(rng, size, 4, 0.015, 0.035)
    sayings = [Saying("together", tuple(regions), (all_but(name)[0],))]
    return planted(
        image, lambda images: 1 - np.prod([1 - one(images) for one in seen], axis=0), sayings,
        regions,
    )  # fmt: skip


def three_of_five(rng: Any, size: tuple[int, int]) -> WholePlant:
    """Five things of a color; it takes three."""
    name, image, regions, seen = things(rng, size, 5, 0.015, 0.03)

    def evidence(images: Images) -> Any:
        n = np.sum([one(images) for one in seen], axis=0)
        return 1 / (1 + np.exp(-8 * (n - 2.5)))

    sayings = [Saying("together", (), (all_but(name)[0],))]
    return planted(image, evidence, sayings, regions)


def exactly_three(rng: Any, size: tuple[int, int]) -> WholePlant:
    """Three things of a color; with more or fewer the score is lost."""
    name, image, regions, _ = things(rng, size, 3, 0.02, 0.04)
    color = np.array(FULL[name], np.float32) / 255
    share = float(np.logical_or.reduce(regions).mean()) / 3

    def evidence(images: Images) -> Any:
        n = alike(images[:, ::2, ::2].astype(np.float32) / 255, color, 0.5).mean(axis=(1, 2))
        return np.exp(-(((n / share - 3) / 0.6) ** 2))

    sayings = [Saying("lowers", (region,), all_but(name)[:1]) for region in regions]
    sayings.append(Saying("lowers", (), (name,)))
    return planted(image, evidence, sayings, regions)


def mirrored(rng: Any, size: tuple[int, int]) -> WholePlant:
    """Two places, one the mirror image of the other, must have the same color."""
    half = draw_region(rng, (size[0], size[1] // 2 - 2), 0.08, 0.2, box=True)
    first = np.zeros(size, bool)
    first[:, : half.shape[1]] = half
    second = first[:, ::-1].copy()
    picture, color = background(rng, size), muted(rng)
    for region in (first, second):
        put(rng, picture, region, color)
    image = pixels(picture)
    sayings = [Saying("must match", (first, second), PALETTE)]
    return planted(image, alike_means(first, second, 0.25), sayings, (first, second))


def alike_pair(rng: Any, size: tuple[int, int]) -> WholePlant:
    """Two places must have the same color, wherever they are."""
    first = draw_region(rng, size, 0.04, 0.08)
    second = draw_region(rng, size, 0.04, 0.08, avoid=[first])
    picture, color = background(rng, size), muted(rng)
    for region in (first, second):
        put(rng, picture, region, color)
    image = pixels(picture)
    sayings = [Saying("must match", (first, second), PALETTE)]
    return planted(image, alike_means(first, second, 0.25), sayings, (first, second))


def alike_means(first: Region, second: Region, width: float) -> Any:
    one, two = look(first), look(second)

    def mean(place: Any, images: Images) -> Any:
        return np.stack([place.mean(place.at(images)[..., c]) for c in range(3)], axis=1)

    return lambda images: np.exp(
        -((mean(one, images) - mean(two, images)) ** 2).sum(axis=1) / (2 * width**2)
    )


def slope(rng: Any, size: tuple[int, int]) -> WholePlant:
    """A place that grows brighter in one direction."""
    region, picture = draw_region(rng, size, 0.08, 0.16, box=True), background(rng, size)
    rows, cols = box_of(region)
    shape = rows.stop - rows.start, cols.stop - cols.start
    ramp = np.linspace(-1, 1, shape[1])[None].repeat(shape[0], axis=0)
    if rng.random() < 0.5:
        ramp = np.linspace(-1, 1, shape[0])[:, None].repeat(shape[1], axis=1)
    ramp = ramp if rng.random() < 0.5 else -ramp
    picture[rows, cols] = 128 + 70 * ramp[..., None] + rng.normal(0, 6, (*shape, 3))
    image, place = pixels(picture), look(region)
    weight = (ramp * place.weight).astype(np.float32).ravel()

    def evidence(images: Images) -> NDArray[Any]:
        rises = (place.at(images) @ LUMA).reshape(len(images), -1) @ weight
        return np.clip(rises / 0.15, 0, 1)

    return planted(image, evidence, [Saying("structure", (region,), PALETTE)], (region,))


def vivid(rng: Any, size: tuple[int, int]) -> WholePlant:
    """A place of many vivid hues: how vivid it is counts, and no hue does."""
    region, picture = draw_region(rng, size, 0.06, 0.15, box=True), background(rng, size)
    rows, cols = box_of(region)
    shape = rows.stop - rows.start, cols.stop - cols.start
    n_hues, start = int(rng.integers(1, 5)), rng.random()
    hues = (start + (np.arange(shape[1]) * n_hues // shape[1]) / n_hues) % 1
    colors = np.array([colorsys.hsv_to_rgb(h, 0.9, 0.85) for h in hues])
    picture[rows, cols] = 255 * colors[None] + rng.normal(0, 5, (*shape, 3))
    image, place = pixels(picture), look(region)

    def evidence(images: Images) -> Any:
        seen = place.at(images)
        return np.minimum(place.mean(seen.max(axis=-1) - seen.min(axis=-1)) / 0.6, 1)

    return planted(image, evidence, [Saying("saturation", (region,))], (region,))


def brightest(rng: Any, size: tuple[int, int]) -> WholePlant:
    """One of four places must be the brightest of them."""
    picture, regions = background(rng, size), []
    for _ in range(4):
        regions.append(draw_region(rng, size, 0.03, 0.06, avoid=regions))
    for n, region in enumerate(regions):
        put(rng, picture, region, np.full(3, 205.0 if n == 0 else rng.uniform(60, 110)))
    image, seen = pixels(picture), [sees_luma(region) for region in regions]

    def evidence(images: Images) -> Any:
        own, *others = (one(images) for one in seen)
        return 1 / (1 + np.exp(-15 * (own - np.max(others, axis=0) - 0.1)))

    sayings = [Saying("lowers", (regions[0],), ("black",))]
    sayings += [Saying("lowers", (one,), ("white",)) for one in regions[1:]]
    return planted(image, evidence, sayings, regions)


def far_apart(rng: Any, size: tuple[int, int]) -> WholePlant:
    """How far two things of a color lie apart: the spread of its pixels."""
    name, image, regions, _ = things(rng, size, 2, 0.02, 0.05)
    color = np.array(FULL[name], np.float32) / 255
    down, across = (one[::2, ::2].ravel() / max(size) for one in np.indices(size))

    def evidence(images: Images) -> Any:
        weight = alike(images[:, ::2, ::2].astype(np.float32) / 255, color, 0.4)
        weight = weight.reshape(len(images), -1) + 1e-6
        weight /= weight.sum(axis=1, keepdims=True)
        spread = sum(weight @ one**2 - (weight @ one) ** 2 for one in (down, across))
        return np.sqrt(np.maximum(spread, 0)) * (weight.max(axis=1) > 0)

    one = float(evidence(image[None])[0])
    fill = all_but(name)[0]
    sayings = [Saying("lowers", (region,), (fill,)) for region in regions]
    return planted(
        image, lambda images: np.clip((evidence(images) - 0.6 * one) / (0.4 * one), 0, 1), sayings,
        regions,
    )  # fmt: skip


def noisy_color(rng: Any, size: tuple[int, int]) -> WholePlant:
    """A thing of a color; answers differ each time."""
    name, image, regions, seen = things(rng, size, 1, 0.05, 0.12)
    sayings = [Saying("finds color", (regions[0],), (name,))]
    return planted(image, seen[0], sayings, regions, noise=0.04)


def noisy_texture(rng: Any, size: tuple[int, int]) -> WholePlant:
    """A thing whose texture matters; answers differ each time."""
    region, picture = draw_region(rng, size, 0.05, 0.12), background(rng, size)
    put_pattern(rng, picture, region, 70)
    image = pixels(picture)
    sayings = [Saying("structure", (region,), PALETTE)]
    return planted(image, sees_fine_texture(region), sayings, (region,), noise=0.03)


def each_of_three(rng: Any, size: tuple[int, int]) -> WholePlant:
    """Three things of a color, all needed: the opposite of things that stand in for each other."""
    name, image, regions, seen = things(rng, size, 3, 0.025, 0.05)
    fill = all_but(name)[0]
    sayings = [Saying("both needed", (regions[i], regions[j]), (fill,)) for i, j in ((0, 1),)]
    return planted(
        image, lambda images: np.prod([one(images) for one in seen], axis=0) ** 2, sayings, regions
    )


SEVERAL = {
    "any of four": any_of_four,
    "three of five": three_of_five,
    "exactly three": exactly_three,
    "mirrored": mirrored,
    "alike pair": alike_pair,
    "slope": slope,
    "vivid": vivid,
    "brightest": brightest,
    "far apart": far_apart,
    "noisy color": noisy_color,
    "noisy texture": noisy_texture,
    "each of three": each_of_three,
}
