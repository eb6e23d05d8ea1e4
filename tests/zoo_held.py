"""Kinds of planted models that no reading was developed on: only ever used to judge one.

They differ from those of `zoo` in how the score comes about: by a relation of two places, by a
value that may be too high as well as too low, by a place that decides what another should be.
`HELD` has been looked at since, and the reading was changed for one of them. `FRESH` were drawn up
after that and looked at once, for the figures: there the score comes about by how a thing differs
from its surround, by any two of three things, and by a thing that may be anywhere.
"""

from typing import Any

import numpy as np

from mcrise.colors import FULL
from zoo import (
    PALETTE,
    Images,
    Plant,
    Region,
    Truth,
    alike,
    all_but,
    any_of,
    background,
    between,
    box_of,
    colored,
    draw_region,
    ellipse,
    log_odds,
    look,
    nearly,
    pixels,
    put,
    put_pattern,
    sees_color,
    sees_fine_texture,
    sees_luma,
    share_of_now,
)


def match(rng: Any, size: tuple[int, int]) -> Plant:
    """Two places must have the same color, whichever it is."""
    first = draw_region(rng, size, 0.05, 0.12)
    second = draw_region(rng, size, 0.05, 0.12, avoid=[first])
    picture, color = background(rng, size), rng.uniform(70, 185, 3)
    put(rng, picture, first, color)
    put(rng, picture, second, color)
    image, places = pixels(picture), (look(first), look(second))

    def evidence(images: Images) -> Any:
        one, two = (
            np.stack([place.mean(place.at(images)[..., c]) for c in range(3)], axis=1)
            for place in places
        )
        return np.exp(-((one - two) ** 2).sum(axis=1) / (2 * 0.25**2))

    logit = between(0.05, rng.uniform(0.8, 0.95), evidence, image)
    return Plant(image, logit, tuple(Truth("color", one, PALETTE) for one in (first, second)))


def just_right(rng: Any, size: tuple[int, int]) -> Plant:
    """A brightness that can be too high and too low; the color does not count."""
    region, picture, luma = draw_region(rng, size), background(rng, size), rng.uniform(0.4, 0.6)
    put(rng, picture, region, 255 * colored(rng, luma))
    image, seen = pixels(picture), sees_luma(region)
    logit = between(
        0.03,
        rng.uniform(0.8, 0.95),
        lambda images: np.exp(-((seen(images) - luma) ** 2) / (2 * 0.17**2)),
        image,
    )
    return Plant(image, logit, (Truth("brightness", region, ("black", "white")),))


def switch(rng: Any, size: tuple[int, int]) -> Plant:
    """One place decides whether white or black is wanted at another."""
    signal = draw_region(rng, size, 0.05, 0.12)
    region = draw_region(rng, size, 0.05, 0.12, avoid=[signal])
    name, wanted = any_of(rng, PALETTE[:3]), any_of(rng, PALETTE[3:])
    picture = background(rng, size)
    put(rng, picture, signal, nearly(rng, name))
    put(rng, picture, region, nearly(rng, wanted))
    image = pixels(picture)
    on = share_of_now(sees_color(signal, name, 0.62), image)
    right = share_of_now(sees_color(region, wanted, 0.62), image)
    wrong = sees_color(region, *(one for one in PALETTE[3:] if one != wanted), 0.62)
    low, high = log_odds(0.04), log_odds(rng.uniform(0.8, 0.95))

    def logit(images: Images) -> Any:
        given = on(images)
        return low + (high - low) * (given * right(images) + (1 - given) * wrong(images))

    truths = (
        Truth("finds color", region, (wanted,)),
        Truth("color", signal, all_but(name)),
    )
    return Plant(image, logit, truths)


HELD = {"match": match, "just right": just_right, "switch": switch}


# ---- drawn up after the reading was settled


def stands_out(rng: Any, size: tuple[int, int]) -> Plant:
    """A thing must differ from what surrounds it, whichever colors the two have."""
    whole = draw_region(rng, size, 0.14, 0.2)
    thing = core_of(whole)
    surround = whole & ~thing
    own, ground = (str(name) for name in rng.choice(PALETTE, 2, replace=False))
    picture = background(rng, size)
    put(rng, picture, surround, nearly(rng, ground))
    put(rng, picture, thing, nearly(rng, own))
    image, places = pixels(picture), (look(thing), look(surround, step=2))

    def evidence(images: Images) -> Any:
        one, two = (
            np.stack([place.mean(place.at(images)[..., c]) for c in range(3)], axis=1)
            for place in places
        )
        return 1 - np.exp(-((one - two) ** 2).sum(axis=1) / (2 * 0.3**2))

    logit = between(0.04, rng.uniform(0.8, 0.95), evidence, image)
    truths = (
        Truth("lowers", thing, (ground,)),
        Truth("as good", thing, all_but(ground)),
        Truth("lowers", surround, (own,)),
    )
    return Plant(image, logit, truths)


def core_of(whole: Region) -> Region:
    """What is in the middle of a rectangle or an ellipse, of its shape, six tenths as wide."""
    rows, cols = box_of(whole)
    height, width = rows.stop - rows.start, cols.stop - cols.start
    down, across = height // 5, width // 5
    inside = height - 2 * down, width - 2 * across
    core = np.zeros_like(whole)
    core[rows.start + down : rows.stop - down, cols.start + across : cols.stop - across] = (
        True if whole[rows.start, cols.start] else ellipse(*inside)
    )
    return core


def two_of_three(rng: Any, size: tuple[int, int]) -> Plant:
    """A color, another color and a texture at three places: any two of them suffice."""
    regions: list[Region] = []
    for _ in range(3):
        regions.append(draw_region(rng, size, 0.035, 0.07, avoid=regions))
    names = [str(name) for name in rng.choice(PALETTE, 2, replace=False)]
    picture = background(rng, size)
    for region, name in zip(regions, names, strict=False):
        put(rng, picture, region, nearly(rng, name))
    put_pattern(rng, picture, regions[2], 70)
    image = pixels(picture)
    seen = [sees_color(region, name, 0.62) for region, name in zip(regions, names, strict=False)]
    parts = [share_of_now(one, image) for one in (*seen, sees_fine_texture(regions[2]))]

    def evidence(images: Images) -> Any:
        one, two, three = (part(images) for part in parts)
        return 1 - (1 - one * two) * (1 - one * three) * (1 - two * three)

    logit = between(0.04, rng.uniform(0.8, 0.95), evidence, image)
    fill = any_of(rng, all_but(*names))
    pairs = ((0, 1), (0, 2), (1, 2))
    truths = tuple(Truth("either suffices", regions[i], (fill,), regions[j]) for i, j in pairs)
    return Plant(image, logit, truths)


def anywhere(rng: Any, size: tuple[int, int]) -> Plant:
    """A color of the palette, as much of it in one piece as the thing has, wherever it is."""
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    region = draw_region(rng, size, 0.06, 0.14)
    put(rng, picture, region, nearly(rng, name))
    image, color = pixels(picture), np.array(FULL[name], np.float32) / 255
    steps = [max(side // 24, 1) for side in size]
    sides = [max(int(0.7 * (along.stop - along.start) / step), 1)
             for along, step in zip(box_of(region), steps, strict=True)]  # fmt: skip

    def evidence(images: Images) -> Any:
        seen = images[:, :: steps[0], :: steps[1]].astype(np.float32) / 255
        sums = alike(seen, color, 0.5)
        for axis, n in enumerate(sides, start=1):
            total = np.insert(np.cumsum(sums, axis=axis), 0, 0, axis=axis)
            sums = np.take(total, range(n, total.shape[axis]), axis=axis) - np.take(
                total, range(total.shape[axis] - n), axis=axis
            )
        return (sums.max(axis=(1, 2)) / (sides[0] * sides[1])) ** 2

    logit = between(0.04, rng.uniform(0.8, 0.95), evidence, image)
    return Plant(image, logit, (Truth("finds color", region, (name,)),))


FRESH = {"stands out": stands_out, "two of three": two_of_three, "anywhere": anywhere}
