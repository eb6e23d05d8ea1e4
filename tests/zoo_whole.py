"""Planted models that judge whether an explanation at default settings says the whole truth.

They were drawn up from the outside: nobody who wrote them had read how an explanation comes about,
and nobody who develops it looks at them but for figures. Use seeds from 3000 on for figures; the
tests use 0 to 2. `draw_whole(kind, seed)` gives a `WholeCase`, which is a `zoo.Case` with more:

    sayings   what a truthful and complete explanation must say (`judge_whole.STRICT` verifies it)
    untrue    what it must not say, though it may look so (the same predicates refute it)
    facts     what single repaints do to the score, in support of both
    places    the pixels that the model looks at; none where it looks at all of them
    quiet     whether no repaint outside the places matters

The kinds of saying are those of `judge`, in stricter form, and three more: a *veto* (one color
lowers the score, and nothing that is there is needed), *must match* (two places need the same
color, whichever it is) and *all together* (no patch matters, the whole does). A saying without a
region is about almost any place of the image. Each docstring says in words what must be said.

All images have 64 to 128 pixels a side, colors of the palette are the default ones, and the target
is the class that the model predicts, before a clear runner-up.
"""

import colorsys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from judge_whole import LUMA, Fact, Paint, Saying
from mcrise.colors import FULL
from zoo import (
    PALETTE,
    Case,
    Images,
    Logit,
    NoRoom,
    Plant,
    Region,
    alike,
    all_but,
    any_of,
    background,
    between,
    box_of,
    clutter,
    colored,
    draw_region,
    log_odds,
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

SIDES = (64, 72, 80, 96, 112, 128)
N_TRIES = 50  # of drawing a case whose places find room
CLUTTER = 0.3  # in logits: see zoo.clutter
NOISE = 0.05  # of the score, on each call


@dataclass(frozen=True)
class WholePlant(Plant):
    sayings: tuple[Saying, ...] = ()
    untrue: tuple[Saying, ...] = ()
    facts: tuple[Fact, ...] = ()
    places: tuple[Region, ...] = ()
    quiet: bool = False
    noise: float = 0.0


@dataclass(frozen=True)
class WholeCase(Case):
    sayings: tuple[Saying, ...] = ()
    untrue: tuple[Saying, ...] = ()
    facts: tuple[Fact, ...] = ()
    places: tuple[Region, ...] = ()
    quiet: bool = False
    jitters: bool = False


def draw_whole(kind: str, seed: int, kinds: "dict[str, Any] | None" = None) -> WholeCase:
    """The case of a kind and a seed; drawn again where its places find no room in the image."""
    for attempt in range(N_TRIES):
        rng = np.random.default_rng([zlib.crc32(kind.encode()), seed, attempt])
        rows, cols = (int(side) for side in rng.choice(SIDES, 2))
        size = (rows, rows) if rng.random() < 0.4 else (rows, cols)
        try:
            plant = (kinds or WHOLE)[kind](rng, size)
        except NoRoom:
            continue
        n_classes = int(rng.integers(5, 11))
        target, runner_up = (int(one) for one in rng.choice(n_classes, 2, replace=False))
        return WholeCase(
            kind, seed, plant.image, model_of(rng, plant, n_classes, target, runner_up), target,
            plant.truths, tuple(f"class {i}" for i in range(n_classes)), sayings=plant.sayings,
            untrue=plant.untrue, facts=plant.facts, places=plant.places, quiet=plant.quiet,
            jitters=plant.noise > 0,
        )  # fmt: skip
    raise NoRoom(f"no room for {kind!r} with seed {seed}")


def model_of(rng: Any, plant: WholePlant, n_classes: int, target: int, runner_up: int) -> Any:
    """The target by its logit; the others share the rest, the runner-up has most of it."""
    own = clutter(rng, plant.image, plant.clutter)
    start = 0.3 * rng.normal(size=n_classes)
    start[runner_up] = np.delete(start, (target, runner_up)).max() + 0.7
    shares = np.delete(np.exp(start), target)
    shares /= shares.sum()
    noise = np.random.default_rng(rng.integers(2**32))

    def model(images: Images) -> NDArray[np.float32]:
        score = 1 / (1 + np.exp(-(plant.logit(images) + own(images))))
        if plant.noise:
            score = np.clip(score + noise.normal(0, plant.noise, len(images)), 0, 1)
        return np.insert((1 - score)[:, None] * shares, target, score, axis=1).astype(np.float32)

    return model


def plant_of(
    image: NDArray[np.uint8],
    logit: Logit,
    sayings: Sequence[Saying],
    untrue: Sequence[Saying] = (),
    facts: Sequence[Fact] = (),
    places: Sequence[Region] = (),
    quiet: bool = False,
    clutter: float = CLUTTER,
    noise: float = 0.0,
) -> WholePlant:
    return WholePlant(
        image, logit, tuple(one.truth for one in sayings), clutter=clutter, noise=noise,
        sayings=tuple(sayings), untrue=tuple(untrue), facts=tuple(facts), places=tuple(places),
        quiet=quiet,
    )  # fmt: skip


def say(kind: str, *regions: Region, fills: Sequence[str] = ()) -> Saying:
    return Saying(kind, regions, tuple(fills))


def fact(what: str, outcome: str, *strokes: tuple[Region, Paint]) -> Fact:
    return Fact(what, strokes, outcome)


def high(rng: Any) -> float:
    """The score of a model that is sure, but not more than usual."""
    return float(rng.uniform(0.75, 0.93))


def box_at(size: tuple[int, int], top: float, left: float, bottom: float, right: float) -> Region:
    """A rectangle by its edges in pixels."""
    region = np.zeros(size, bool)
    region[round(top) : round(bottom), round(left) : round(right)] = True
    return region


def everywhere(size: tuple[int, int]) -> Region:
    return np.ones(size, bool)


def half_of(region: Region, axis: int, second: bool) -> Region:
    """The upper or lower (axis 0), the left or right half (axis 1) of a region's box."""
    along = box_of(region)[axis]
    middle, half = (along.start + along.stop) // 2, np.zeros_like(region)
    part = slice(middle, along.stop) if second else slice(along.start, middle)
    half[(part, slice(None)) if axis == 0 else (slice(None), part)] = True
    return half & region


def share_of_color(name: str, radius: float = 0.5) -> Logit:
    """How much of the whole image has a color of the palette: 0 to 1."""
    color = np.array(FULL[name], np.float32) / 255
    return lambda images: alike(
        images[:, ::2, ::2].astype(np.float32) / np.float32(255), color, radius
    ).mean(axis=(1, 2))


# ---- kinds that the plan names


def veto(rng: Any, size: tuple[int, int]) -> WholePlant:
    """One color anywhere in one place kills the score; nothing else matters.

    To say: at this place a patch of that color lowers the score, and it is a veto: any other color
    there, its mean color, gray and its own pixels in any order keep the score. Not to say: the
    color that is there matters, or its texture; that the model looks for some other color there.
    """
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    region = draw_region(rng, size, 0.07, 0.15)
    put(rng, picture, region, muted(rng), 9)
    image, seen = pixels(picture), sees_color(region, name, 0.5)
    top = log_odds(high(rng))
    halves = [half_of(region, axis, second) for axis in (0, 1) for second in (False, True)]
    return plant_of(
        image,
        lambda images: top - 5 * (1 - np.exp(-seen(images) / 0.12)),
        [say("veto", region, fills=[name]), say("lowers", region, fills=[name])],
        untrue=[
            say("color", region, fills=[name]),
            say("finds color", region, fills=all_but(name)),
            say("structure", region),
            say("nothing matters"),
        ],
        facts=[
            *(fact("half of the place is enough", "lowered", (half, name)) for half in halves),
            *(fact("others are harmless", "unmoved", (region, one))
              for one in (*all_but(name), "own mean", "own gray", "shuffled")),
        ],
        places=[region],
        quiet=True,
    )  # fmt: skip


def frame(rng: Any, size: tuple[int, int]) -> WholePlant:
    """A frame of three pixels around the image must have its color, along all four sides.

    To say: the edge of the image matters on all sides, by its color: that color keeps the score,
    others lower it, in patches too. Not to say: the center matters, or a corner alone.
    """
    name, picture = any_of(rng, PALETTE), background(rng, size)
    rim = everywhere(size)
    rim[3:-3, 3:-3] = False
    put(rng, picture, rim, nearly(rng, name))
    image, color = pixels(picture), np.array(FULL[name], np.float32) / 255

    def seen(images: Images) -> Any:
        at_rim = images[:, rim].astype(np.float32) / np.float32(255)  # (N, n, 3)
        return alike(at_rim, color, 0.62).mean(axis=1) ** 2

    rows, cols = size
    sides = [
        rim & box_at(size, 0, 0, 3, cols), rim & box_at(size, rows - 3, 0, rows, cols),
        rim & box_at(size, 0, 0, rows, 3), rim & box_at(size, 0, cols - 3, rows, cols),
    ]  # fmt: skip
    return plant_of(
        image,
        between(0.02, high(rng), seen, image),
        [say("finds color", rim, fills=[name]), *(say("lowers", side, fills=all_but(name)) for
         side in sides)],
        untrue=[say("structure", rim), say("either suffices", *sides[:2], fills=all_but(name)),
                say("nothing matters")],
        facts=[
            *(fact("no color in the middle matters", "unmoved", (~rim, one)) for one in PALETTE),
            fact("a corner", "lowered",
                 (box_at(size, 0, 0, 3 * rows / 8, 3 * cols / 8), all_but(name)[0])),
        ],
        places=[rim],
        quiet=True,
        clutter=0.1,
    )  # fmt: skip


def symmetric_pair(rng: Any, size: tuple[int, int]) -> WholePlant:
    """Two places, mirror images of each other, must be equal, whichever color they have.

    To say: both places matter by their color, any other color on one of them lowers the score, and
    the same color on both keeps it: they must match. Not to say: both are needed as they are, or
    the texture matters, or one particular color is wanted.
    """
    rows, cols = size
    part = draw_region(rng, (rows, cols * 7 // 16), 0.1, 0.22)
    first = np.zeros(size, bool)
    first[:, : part.shape[1]] = part
    second = first[:, ::-1].copy()
    picture, color = background(rng, size), rng.uniform(70, 185, 3)
    put(rng, picture, first, color)
    put(rng, picture, second, color)
    image, place = pixels(picture), look(first)

    def equal(images: Images) -> Any:
        apart = place.at(images) - place.at(images[:, :, ::-1])
        return np.exp(-place.mean((apart**2).sum(axis=3)) / (2 * 0.22**2))

    return plant_of(
        image,
        between(0.04, high(rng), equal, image),
        [say("must match", first, second, fills=PALETTE),
         say("lowers", first, fills=PALETTE), say("lowers", second, fills=PALETTE)],
        untrue=[
            say("both needed", first, second, fills=PALETTE),
            say("structure", first),
            say("structure", second),
            say("nothing matters"),
        ],
        facts=[fact("different colors on the two", "lowered", (first, "red"), (second, "blue")),
               fact("a color that is in no palette on both", "kept",
                    (first | second, (150, 90, 40)))],
        places=[first, second],
        quiet=True,
    )  # fmt: skip


def counting(rng: Any, size: tuple[int, int]) -> WholePlant:
    """The number of separate blobs of one color must be three; where they are does not matter.

    To say: each of the blobs matters by its color; painting one over in another color lowers the
    score; a further blob of that color almost anywhere lowers it too. Not to say: that the place
    of a blob counts, or that one blob is enough.
    """
    name, picture, n_wanted = any_of(rng, PALETTE[:3]), background(rng, size), 3
    blobs: list[Region] = []
    for _ in range(n_wanted):
        blobs.append(draw_region(rng, size, 0.018, 0.03, avoid=blobs))
    for blob in blobs:
        put(rng, picture, blob, nearly(rng, name))
    image, color = pixels(picture), np.array(FULL[name], np.float32) / 255
    steps = [max(side // 32, 1) for side in size]
    flat = np.zeros((3, 3, 3), int)
    flat[1] = 1  # neighbors within an image, not between images

    def seen(images: Images) -> Any:
        there = images[:, :: steps[0], :: steps[1]].astype(np.float32) / np.float32(255)
        numbers, n_found = label(alike(there, color, 0.6) > 0.5, flat)
        sizes = np.bincount(numbers.ravel(), minlength=n_found + 1)
        sizes[0] = 0
        owners = np.zeros(n_found + 1, int)
        owners[numbers.ravel()] = np.repeat(np.arange(len(images)), numbers[0].size)
        counts = np.bincount(owners[sizes >= 5], minlength=len(images))
        return np.exp(-0.6 * np.abs(counts - n_wanted))

    free = free_block(rng, size, blobs)
    others = all_but(name)
    return plant_of(
        image,
        between(0.03, high(rng), seen, image),
        [*(say("finds color", blob, fills=[name]) for blob in blobs),
         say("lowers", fills=[name])],
        untrue=[say("either suffices", *blobs[:2], fills=others), say("structure", blobs[0]),
                say("as good", fills=[name]), say("nothing matters")],
        facts=[
            fact("one blob more", "lowered", (free, name)),
            fact("one blob less", "lowered", (blobs[0], others[0])),
            fact("one blob moved", "unmoved", (blobs[0], (128, 128, 128)), (free, name)),
        ],
        places=blobs,
        quiet=False,
    )  # fmt: skip


def free_block(rng: Any, size: tuple[int, int], taken: Sequence[Region]) -> Region:
    """A block of about a cell, apart from the places that are taken."""
    return draw_region(rng, size, 0.02, 0.03, avoid=taken, box=True)


def entropy(rng: Any, size: tuple[int, int]) -> WholePlant:
    """The more different colors, evenly spread, the higher the score; where they are is the same.

    To say: no single patch matters, but the whole does: with half of the image in one color the
    score is lost. The mix of colors counts and not how they are arranged. Not to say: nothing here
    matters; a place, a color or a shape is what the model looks at.
    """
    levels = (42, 128, 213)
    cube = [(r, g, b) for r in levels for g in levels for b in levels]
    pure = [tuple(min(levels, key=lambda level: abs(level - c)) for c in FULL[name])
            for name in PALETTE]  # fmt: skip
    rest = [one for one in cube if one not in pure]
    colors = np.array([*pure, *(rest[i] for i in rng.choice(len(rest), 8, replace=False))])
    tile = int(rng.integers(4, 8))
    n_tiles = [-(-side // tile) for side in size]
    order = rng.permutation(np.arange(n_tiles[0] * n_tiles[1]) % len(colors)).reshape(n_tiles)
    picture = np.kron(colors[order], np.ones((tile, tile, 1)))[: size[0], : size[1]]
    image = pixels(picture + rng.normal(0, 6, picture.shape))

    def seen(images: Images) -> Any:
        thirds = (images[:, ::2, ::2].astype(np.uint16) * 3) >> 8  # 0, 1, 2
        codes = (thirds @ np.array([9, 3, 1], np.uint16)).reshape(len(images), -1)
        where = codes + 27 * np.arange(len(images))[:, None]
        counts = np.bincount(where.ravel(), minlength=27 * len(images)).reshape(-1, 27)
        shares = counts / codes.shape[1]
        return -(shares * np.log2(np.maximum(shares, 1e-12))).sum(axis=1)

    now = float(seen(image[None])[0])
    top = log_odds(high(rng))
    whole = everywhere(size)
    return plant_of(
        image,
        lambda images: top + 4 * (seen(images) - now),
        [say("all together", fills=PALETTE), say("mixture")],
        untrue=[say("nothing matters"), say("lowers", fills=PALETTE), say("structure", box_at(
            size, size[0] / 4, size[1] / 4, size[0] / 2, size[1] / 2))],
        facts=[fact("all pixels in another order", "unmoved", (whole, "shuffled")),
               fact("the image in gray", "lowered", (whole, "own gray")),
               fact("upside down", "unmoved", (whole, "upside down"))],
        clutter=0.1,
    )  # fmt: skip


def either_of_four(rng: Any, size: tuple[int, int]) -> WholePlant:
    """Four places have a color, and any one of them is enough.

    To say: the score is kept while one of the four has the color, and lost without all of them.
    Not to say: nothing matters; one of them, or two, are needed.
    """
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    regions: list[Region] = []
    for _ in range(4):
        regions.append(draw_region(rng, size, 0.025, 0.05, avoid=regions))
    for region in regions:
        put(rng, picture, region, nearly(rng, name))
    image = pixels(picture)
    parts = [share_of_now(sees_color(region, name, 0.62), image) for region in regions]

    def seen(images: Images) -> Any:
        gone = np.prod([1 - np.minimum(1.6 * part(images), 1) for part in parts], axis=0)
        return 1 - gone

    others = all_but(name)
    return plant_of(
        image,
        between(0.04, high(rng), seen, image),
        [say("together", *regions, fills=others)],
        untrue=[
            say("nothing matters"),
            *(say("lowers", region, fills=others[:1]) for region in regions),
            say("both needed", *regions[:2], fills=others[:1]),
            say("either suffices", *regions[:2], fills=others[:1]),
        ],
        facts=[
            fact("without all, in two colors", "lowered",
                 *((region, others[i % 2]) for i, region in enumerate(regions))),
            fact("without three", "unmoved", *((region, others[0]) for region in regions[:3])),
        ],
        places=regions,
        quiet=True,
    )  # fmt: skip


def ratio(rng: Any, size: tuple[int, int]) -> WholePlant:
    """The amount of one color divided by the amount of another, wherever they are.

    To say: painting over the first thing lowers the score, painting over the second raises it;
    more of the first color almost anywhere raises it, more of the second lowers it. Not to say:
    that only the two things count, or that the second has no effect.
    """
    wanted, unwanted = (str(one) for one in rng.choice(PALETTE[:3], 2, replace=False))
    picture = background(rng, size)
    first = draw_region(rng, size, 0.08, 0.12)
    second = draw_region(rng, size, 0.05, 0.08, avoid=[first])
    put(rng, picture, first, nearly(rng, wanted))
    put(rng, picture, second, nearly(rng, unwanted))
    image = pixels(picture)
    much, little = share_of_color(wanted, 0.6), share_of_color(unwanted, 0.6)

    def seen(images: Images) -> Any:
        return 2.4 * np.log((much(images) + 0.01) / (little(images) + 0.01))

    start = log_odds(rng.uniform(0.48, 0.56)) - float(seen(image[None])[0])
    neutral = [one for one in PALETTE if one not in (wanted, unwanted)]
    return plant_of(
        image,
        lambda images: start + seen(images),
        [
            say("lowers", first, fills=all_but(wanted)),
            say("raises", second, fills=all_but(unwanted)),
            say("raises", fills=[wanted]),
            say("lowers", fills=[unwanted]),
        ],
        untrue=[say("lowers", second, fills=neutral), say("structure", second),
                say("both needed", first, second, fills=neutral), say("nothing matters")],
        facts=[fact("the first in the color of the second", "lowered", (first, unwanted)),
               fact("flat in their own colors", "kept", (first, "own mean"), (second, "own mean"))],
        places=[first, second],
    )  # fmt: skip


# ---- kinds of our own


def gradient_direction(rng: Any, size: tuple[int, int]) -> WholePlant:
    """The brightness at one place must rise in one direction; the hue there is irrelevant.

    To say: the structure of that place matters: no flat color keeps the score, its pixels in
    another order neither. Not to say: its color, its mix of colors or its mean brightness matters.
    """
    region, picture = draw_region(rng, size, 0.08, 0.15, box=True), background(rng, size)
    rows, cols = box_of(region)
    axis, sign = int(rng.integers(2)), int(rng.choice([-1, 1]))
    shape = rows.stop - rows.start, cols.stop - cols.start
    line = sign * np.linspace(-1, 1, shape[axis])
    ramp = np.broadcast_to(line[:, None] if axis == 0 else line[None, :], shape)
    base = rng.uniform(115, 140) + rng.uniform(-20, 20, 3)
    put(rng, picture, region, (base + 75 * ramp[..., None]).reshape(-1, 3))
    image, place = pixels(picture), look(region)
    weight = (ramp / (ramp**2).sum()).astype(np.float32).ravel()

    def seen(images: Images) -> Any:
        luma = place.at(images) @ LUMA.astype(np.float32)
        return np.maximum(luma.reshape(len(images), -1) @ weight, 0)

    backwards = "upside down" if axis == 0 else "mirrored"
    across = "mirrored" if axis == 0 else "upside down"
    bright = half_of(region, axis, second=sign > 0)
    return plant_of(
        image,
        between(0.04, high(rng), lambda images: np.minimum(seen(images), 0.32), image),
        [say("structure", region, fills=PALETTE)],
        untrue=[say("mixture", region), say("color", region, fills=PALETTE),
                say("brightness", region), say("nothing matters")],
        facts=[
            fact("backwards", "lowered", (region, backwards)),
            fact("turned over the other way", "unmoved", (region, across)),
            fact("in gray", "unmoved", (region, "own gray")),
            fact("the bright half white", "kept", (bright, "white")),
            fact("the bright half black", "lowered", (bright, "black")),
        ],
        places=[region],
        quiet=True,
    )  # fmt: skip


def tint(rng: Any, size: tuple[int, int]) -> WholePlant:
    """How much of the whole image is warm: more red than blue.

    To say: blue almost anywhere lowers the score, in proportion to its area, and red keeps it; no
    place is special. Not to say: one place matters, texture matters.
    """
    picture = 0.55 * background(rng, size) + 0.45 * np.array([215.0, 130, 40])
    image, whole = pixels(picture), everywhere(size)

    def seen(images: Images) -> Any:
        some = images[:, ::2, ::2].astype(np.float32) / np.float32(255)
        return np.maximum(np.tanh((some[..., 0] - some[..., 2]) / 0.15).mean(axis=(1, 2)), 0)

    return plant_of(
        image,
        between(3e-4, rng.uniform(0.75, 0.85), seen, image),
        [say("lowers", fills=["blue"]), say("as good", fills=["red"])],
        untrue=[say("nothing matters"), say("structure", whole), say("as good", fills=["blue"])],
        facts=[
            fact("all in gray", "lowered", (whole, "own gray")),
            fact("all pixels in another order", "unmoved", (whole, "shuffled")),
            fact("its mean color", "kept", (whole, "own mean")),
            *(fact("nothing warm", "lowered", (whole, one)) for one in all_but("red")),
        ],
        clutter=0.1,
    )


def help_and_harm(rng: Any, size: tuple[int, int]) -> WholePlant:
    """One place supports the class by its color, another holds it down by its texture.

    To say: the first is needed in its color; covering the second raises the score, whatever covers
    it. Both directions belong in one explanation. Not to say: the second is needed, or its color.
    """
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    helping = draw_region(rng, size, 0.05, 0.11)
    harming = draw_region(rng, size, 0.05, 0.11, avoid=[helping])
    put(rng, picture, helping, nearly(rng, name))
    put_pattern(rng, picture, harming, 65)
    image = pixels(picture)
    one = share_of_now(sees_color(helping, name, 0.62), image)
    two = share_of_now(sees_fine_texture(harming), image)
    start = log_odds(rng.uniform(0.45, 0.55))
    return plant_of(
        image,
        lambda images: start + 3 * (one(images) - 1) + 3 * (1 - two(images)),
        [say("finds color", helping, fills=[name]), say("raises", harming, fills=PALETTE)],
        untrue=[say("structure", helping), say("lowers", harming, fills=PALETTE),
                say("structure", harming), say("nothing matters")],
        facts=[fact("its mean color raises it too", "raised", (harming, "own mean")),
               fact("in gray it harms as much", "unmoved", (harming, "own gray"))],
        places=[helping, harming],
        quiet=True,
    )  # fmt: skip


def two_and(rng: Any, size: tuple[int, int]) -> WholePlant:
    """One color at one place and another color at another: without one of them all is lost.

    To say: both places are needed, each in its own color. Not to say: either of them is enough.
    """
    names = [str(one) for one in rng.choice(PALETTE, 2, replace=False)]
    picture = background(rng, size)
    first = draw_region(rng, size, 0.04, 0.1)
    second = draw_region(rng, size, 0.04, 0.1, avoid=[first])
    put(rng, picture, first, nearly(rng, names[0]))
    put(rng, picture, second, nearly(rng, names[1]))
    image = pixels(picture)
    parts = [share_of_now(sees_color(region, name, 0.62), image)
             for region, name in zip((first, second), names, strict=True)]  # fmt: skip
    others = all_but(*names)
    return plant_of(
        image,
        between(0.04, high(rng), lambda i: (parts[0](i) * parts[1](i)) ** 2, image),
        [
            say("both needed", first, second, fills=others),
            say("finds color", first, fills=names[:1]),
            say("finds color", second, fills=names[1:]),
        ],
        untrue=[
            say("either suffices", first, second, fills=others),
            say("must match", first, second, fills=others),
            say("structure", first),
        ],
        facts=[fact("exchanged", "lowered", (first, names[1]), (second, names[0]))],
        places=[first, second],
        quiet=True,
    )


def checkerboard_frequency(rng: Any, size: tuple[int, int]) -> WholePlant:
    """A checkerboard of one width of squares; finer and coarser ones do not count.

    To say: the structure of that place matters: no flat color keeps the score, shuffled pixels
    neither. Not to say: its colors or their mix matter.
    """
    half, region = int(rng.integers(2, 4)), draw_region(rng, size, 0.08, 0.15, box=True)
    picture, base = background(rng, size), rng.uniform(115, 140) + rng.uniform(-20, 20, 3)

    def board(width: int, shift: int = 0) -> NDArray[np.float64]:
        down, across = (np.indices(size) + shift) // width
        return base + 60 * (1 - 2 * ((down + across) % 2))[..., None]

    put(rng, picture, region, board(half)[region])
    image, place = pixels(picture), look(region)
    down, across = (np.pi * np.arange(n) / half for n in place.weight.shape)
    phases = [(a, b) for a in (np.cos, np.sin) for b in (np.cos, np.sin)]
    waves = np.stack([np.outer(a(down), b(across)).ravel() for a, b in phases], axis=1)
    waves = (waves / place.weight.size).astype(np.float32)

    def seen(images: Images) -> Any:
        luma = (place.at(images) @ LUMA.astype(np.float32)).reshape(len(images), -1)
        centered = luma - luma.mean(axis=1, keepdims=True)
        return np.sqrt(((centered @ waves) ** 2).sum(axis=1))

    return plant_of(
        image,
        between(0.04, high(rng), seen, image),
        [say("structure", region, fills=PALETTE)],
        untrue=[say("mixture", region), say("color", region, fills=PALETTE),
                say("nothing matters")],
        facts=[
            fact("finer", "lowered", (region, pixels(board(1)))),
            fact("coarser", "lowered", (region, pixels(board(2 * half)))),
            fact("moved by a pixel", "kept", (region, pixels(board(half, 1)))),
            fact("dark and bright exchanged", "kept", 
                 (region, pixels(2 * base - board(half)))),
            fact("in gray", "unmoved", (region, "own gray")),
        ],
        places=[region],
        quiet=True,
    )  # fmt: skip


def corner_brightness(rng: Any, size: tuple[int, int]) -> WholePlant:
    """The mean brightness of one corner must be above (or below) a threshold; hue is irrelevant.

    To say: the brightness of that corner matters and not its hue: dark colors lower the score and
    bright ones keep it, or the reverse, as grays of the same brightness do. Not to say: texture;
    that a hue is wanted.
    """
    rows, cols = size[0] * 3 // 8, size[1] * 3 // 8
    top, left = (int(rng.integers(2)) * (n - m) for n, m in zip(size, (rows, cols), strict=True))
    region, bright = box_at(size, top, left, top + rows, left + cols), rng.random() < 0.5
    luma = rng.uniform(0.66, 0.8) if bright else rng.uniform(0.12, 0.24)
    picture = background(rng, size)
    put(rng, picture, region, 255 * colored(rng, luma))
    image, seen = pixels(picture), sees_luma(region)
    sign, limit = (1, 0.43) if bright else (-1, 0.45)

    def enough(images: Images) -> Any:
        return 1 / (1 + np.exp(-sign * (seen(images) - limit) / 0.028))

    dark = ("red", "blue", "black")
    lowering = dark if bright else ("green", "white")
    return plant_of(
        image,
        between(0.04, high(rng), enough, image),
        [
            say("brightness", region, fills=lowering),
            say("lowers", region, fills=lowering),
            say("as good", region, fills=all_but(*lowering)),
        ],
        untrue=[say("structure", region), say("saturation", region), say("nothing matters")],
        facts=[
            fact("in gray", "unmoved", (region, "own gray")),
            fact("shuffled", "unmoved", (region, "shuffled")),
            fact("its mean color", "unmoved", (region, "own mean")),
        ],
        places=[region],
        quiet=True,
    )


def saturation(rng: Any, size: tuple[int, int]) -> WholePlant:
    """One place must be vivid; which hue and how bright it is do not matter.

    To say: white and black lower the score, red, green and blue keep it: its saturation matters
    (gray of its own brightness lowers it). Not to say: brightness, texture, or one hue.
    """
    region, picture = draw_region(rng, size, 0.06, 0.15), background(rng, size)
    put(rng, picture, region, 255 * np.array(colorsys.hsv_to_rgb(rng.random(), 0.9, 0.85)))
    image, place = pixels(picture), look(region)

    def vivid(images: Images) -> Any:
        some = place.at(images)
        return place.mean(np.minimum(some.max(axis=3) - some.min(axis=3), 0.8))

    return plant_of(
        image,
        between(0.04, high(rng), vivid, image),
        [
            say("saturation", region),
            say("lowers", region, fills=["white", "black"]),
            say("as good", region, fills=PALETTE[:3]),
        ],
        untrue=[say("brightness", region), say("structure", region),
                say("veto", region, fills=["white"]), say("nothing matters")],
        facts=[
            fact("in gray", "lowered", (region, "own gray")),
            fact("another vivid color", "kept", (region, (255, 160, 0))),
            fact("a vivid dark color", "kept", (region, (205, 0, 200))),
        ],
        places=[region],
        quiet=True,
    )  # fmt: skip


def distance(rng: Any, size: tuple[int, int]) -> WholePlant:
    """Two spots of one color must be far apart.

    To say: both spots are needed in their color, and painting over either costs as much as both.
    Not to say: either of them is enough, their texture matters, nothing else can change it (a spot
    between the two lowers the score).
    """
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    for _ in range(200):
        first = draw_region(rng, size, 0.02, 0.035)
        second = draw_region(rng, size, 0.02, 0.035, avoid=[first])
        ends = [np.argwhere(one).mean(axis=0) / size for one in (first, second)]
        if np.hypot(*(ends[0] - ends[1])) > 0.55:
            break
    else:
        raise NoRoom("no two spots that are far apart")
    for spot in (first, second):
        put(rng, picture, spot, nearly(rng, name))
    image, color = pixels(picture), np.array(FULL[name], np.float32) / 255
    down, across = (np.linspace(0, 1, len(range(0, n, 2)), dtype=np.float32) for n in size)

    def spread(images: Images) -> Any:
        there = alike(images[:, ::2, ::2].astype(np.float32) / np.float32(255), color, 0.5)
        there = np.where(there > 0.3, there, 0)
        mass = there.sum(axis=(1, 2)) + 0.004 * there[0].size
        out = np.zeros(len(images))
        for share, along in ((there.sum(axis=2), down), (there.sum(axis=1), across)):
            middle = (share @ along) / np.maximum(share.sum(axis=1), 1e-6)
            out += (share * (along - middle[:, None]) ** 2).sum(axis=1)
        return out / mass

    now = float(spread(image[None])[0])
    nearer = moved_towards(first, second, 0.8)
    others = all_but(name)
    return plant_of(
        image,
        between(0.03, high(rng), lambda images: np.minimum(spread(images), 1.1 * now), image),
        [
            say("both needed", first, second, fills=others),
            say("finds color", first, fills=[name]),
            say("finds color", second, fills=[name]),
        ],
        untrue=[say("either suffices", first, second, fills=others), say("structure", first),
                say("nothing matters")],
        facts=[
            fact("one moved near the other", "lowered",
                 (second, (128, 128, 128)), (nearer, name)),
            fact("other colors on the way do not matter", "unmoved",
                 (moved_towards(first, second, 0.5), others[-1])),
        ],
        places=[first, second],
    )  # fmt: skip


def moved_towards(first: Region, second: Region, share: float) -> Region:
    """The second spot, moved a share of the way to the first."""
    ends = [np.argwhere(one).mean(axis=0) for one in (first, second)]
    step = np.rint(share * (ends[0] - ends[1])).astype(int)
    moved = np.zeros_like(second)
    moved[tuple((np.argwhere(second) + step).T)] = True
    return moved


def veto_anywhere(rng: Any, size: tuple[int, int]) -> WholePlant:
    """One color kills the score wherever it is; the image has none of it.

    To say: a patch of that color almost anywhere lowers the score, and no other color does: it is
    a veto, no place is special. Not to say: that the place that was tried first matters.
    """
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    image, seen, top = pixels(picture), share_of_color(name, 0.45), log_odds(high(rng))
    whole = everywhere(size)
    middle = box_at(size, size[0] / 3, size[1] / 3, size[0] * 2 / 3, size[1] * 2 / 3)
    return plant_of(
        image,
        lambda images: top - 5 * (1 - np.exp(-seen(images) / 0.015)),
        [say("veto", fills=[name]), say("lowers", fills=[name])],
        untrue=[say("nothing matters"), say("color", middle, fills=[name]),
                say("structure", middle), say("lowers", fills=all_but(name))],
        facts=[
            *(fact("all in one color", "kept", (whole, one)) for one in all_but(name)),
            fact("all shuffled", "unmoved", (whole, "shuffled")),
            fact("a single cell", "lowered",
                 (box_at(size, 0, 0, size[0] / 8, size[1] / 8), name)),
        ],
        clutter=0.1,
    )  # fmt: skip


def horizon(rng: Any, size: tuple[int, int]) -> WholePlant:
    """At one row, along the whole width, it must be bright above and dark below.

    To say: a narrow band across the image matters by its structure: any flat color across it lowers
    the score, in patches too. What lies farther above and below does not matter. Not to say: the
    color of the sky or the ground matters.
    """
    rows, cols = size
    reach, row = max(3, rows // 24), round(rows * float(rng.uniform(0.35, 0.65)))
    picture = background(rng, size) - 128
    picture[:row] = 0.35 * picture[:row] + 178 + rng.uniform(-20, 20, 3)
    picture[row:] = 0.35 * picture[row:] + 75 + rng.uniform(-20, 20, 3)
    image = pixels(picture)
    band = box_at(size, row - reach, 0, row + reach, cols)
    upper, lower = slice(row - reach, row), slice(row, row + reach)

    def seen(images: Images) -> Any:
        above, below = (images[:, at].mean(axis=1, dtype=np.float32) @ LUMA / 255
                        for at in (upper, lower))  # fmt: skip
        return np.clip((above - below) / 0.18, 0, 1).mean(axis=1) ** 1.5

    part = band & box_at(size, 0, cols * 0.4, rows, cols * 0.75)
    return plant_of(
        image,
        between(0.02, high(rng), seen, image),
        [say("structure", band, fills=PALETTE), say("lowers", part, fills=PALETTE)],
        untrue=[say("mixture", band), say("color", band, fills=PALETTE),
                say("either suffices", part, band & ~part, fills=["red"]),
                say("nothing matters")],
        facts=[
            *(fact("the rest of the sky", "unmoved", (box_at(size, 0, 0, row - reach, cols), one))
              for one in PALETTE),
            *(fact("the rest of the ground", "unmoved",
                   (box_at(size, row + reach, 0, rows, cols), one)) for one in PALETTE),
            fact("upside down", "lowered", (band, "upside down")),
            fact("in gray", "unmoved", (band, "own gray")),
            fact("white above", "kept", (box_at(size, row - reach, 0, row, cols), "white")),
        ],
        places=[band],
        quiet=True,
        clutter=0.1,
    )  # fmt: skip


def brightest_of_four(rng: Any, size: tuple[int, int]) -> WholePlant:
    """One of four places must be the brightest of them.

    To say: this place must stay bright (black and blue lower the score, white keeps it), and white
    on one of the three others lowers it too, a veto there. Not to say: texture; that what is at the
    three others is needed.
    """
    picture, regions = background(rng, size), []
    for _ in range(4):
        regions.append(draw_region(rng, size, 0.03, 0.055, avoid=regions))
    winner, *rivals = regions
    put(rng, picture, winner, 255 * colored(rng, float(rng.uniform(0.8, 0.85))))
    for rival in rivals:
        put(rng, picture, rival, 255 * colored(rng, float(rng.uniform(0.28, 0.36))))
    image, lumas = pixels(picture), [sees_luma(region) for region in regions]

    def wins(images: Images) -> Any:
        odds = np.exp(np.stack([one(images) for one in lumas], axis=1) / 0.05)
        return odds[:, 0] / odds.sum(axis=1)

    return plant_of(
        image,
        between(0.04, high(rng), wins, image),
        [
            say("lowers", winner, fills=["blue", "black"]),
            say("as good", winner, fills=["white"]),
            *(say("veto", rival, fills=["white"]) for rival in rivals),
        ],
        untrue=[say("structure", winner), *(say("color", rival) for rival in rivals),
                say("nothing matters")],
        facts=[
            fact("all four white", "lowered", (np.logical_or.reduce(regions), "white")),
            fact("all four in gray", "unmoved", (np.logical_or.reduce(regions), "own gray")),
            fact("the three others black", "kept", (np.logical_or.reduce(rivals), "black")),
        ],
        places=regions,
        quiet=True,
    )  # fmt: skip


def grain_everywhere(rng: Any, size: tuple[int, int]) -> WholePlant:
    """The grain of the image must be everywhere: paint of any color, anywhere, kills the score.

    To say first: painting almost anywhere destroys this score, in every color. Not to say: that a
    place is special; that a color matters.
    """
    picture = background(rng, size)
    image = pixels(picture + rng.normal(0, 9, picture.shape))
    rows, cols = (side - side % 4 for side in size)

    def seen(images: Images) -> Any:
        luma = images[:, :rows, :cols].astype(np.float32) @ LUMA.astype(np.float32)
        blocks = luma.reshape(len(images), rows // 4, 4, cols // 4, 4)
        flat = blocks.std(axis=(2, 4)) < 1.5
        return 1 - np.exp(-flat.mean(axis=(1, 2)) / 0.03)

    top, whole = log_odds(high(rng)), everywhere(size)
    middle = box_at(size, size[0] / 3, size[1] / 3, size[0] * 2 / 3, size[1] * 2 / 3)
    return plant_of(
        image,
        lambda images: top - 5 * seen(images),
        [say("lowers", fills=PALETTE)],
        untrue=[say("nothing matters"), say("color", middle, fills=PALETTE),
                say("veto", fills=["red"])],
        facts=[
            fact("all shuffled", "unmoved", (whole, "shuffled")),
            fact("the middle in its mean color", "lowered", (middle, "own mean")),
            fact("the middle shuffled", "unmoved", (middle, "shuffled")),
        ],
        clutter=0.1,
    )  # fmt: skip


def unbroken_line(rng: Any, size: tuple[int, int]) -> WholePlant:
    """A line of one color from the left edge to the right must not be interrupted.

    To say: the line matters along its whole length by its color; any interruption lowers the score,
    paint of its own color keeps it. Not to say: one part of it is the place, or one part is enough.
    """
    rows, cols = size
    name, thick = any_of(rng, PALETTE[:3]), max(4, rows // 16)
    across = np.arange(cols) / cols
    swing = np.sin(2 * np.pi * (rng.uniform(0.5, 1) * across + rng.random()))
    middle = rows * (rng.uniform(0.35, 0.65) + rng.uniform(0.08, 0.2) * swing)
    middle = np.clip(middle, thick, rows - thick)
    line = np.abs(np.arange(rows)[:, None] - middle[None, :]) <= thick / 2
    picture = background(rng, size)
    put(rng, picture, line, nearly(rng, name))
    image = pixels(picture)
    edges = np.linspace(0, cols, 13).astype(int)
    pieces = [line & box_at(size, 0, a, rows, b) for a, b in pairwise(edges)]
    seen = [sees_color(piece, name, 0.6) for piece in pieces]

    def weakest(images: Images) -> Any:
        return np.min([one(images) for one in seen], axis=0)

    others = all_but(name)
    parts = [np.logical_or.reduce(pieces[i : i + 2]) for i in (0, 5, 10)]
    return plant_of(
        image,
        between(0.04, high(rng), weakest, image),
        [say("finds color", line, fills=[name]),
         *(say("lowers", part, fills=others) for part in parts)],
        untrue=[say("either suffices", parts[0], parts[2], fills=others[:1]),
                say("structure", line), say("nothing matters")],
        facts=[
            *(fact("off the line", "unmoved", (~line, one)) for one in others),
            fact("one short break", "lowered", (pieces[7], others[0])),
        ],
        places=[line],
        quiet=True,
        clutter=0.1,
    )  # fmt: skip


# ---- controls: nothing to find


def constant(rng: Any, size: tuple[int, int]) -> WholePlant:
    """The answer is always the same. To say: nothing matters, neither in parts nor as a whole."""
    start = log_odds(high(rng))
    return control(pixels(background(rng, size)), lambda images: np.full(len(images), start))


def noisy(rng: Any, size: tuple[int, int]) -> WholePlant:
    """The answer does not depend on the image, and noise of 0.05 is added on each call.

    To say: the model answers differently each time, and nothing was found that matters. Not to say:
    any finding, least of all one that is only here.
    """
    start = log_odds(rng.uniform(0.5, 0.85))
    return control(pixels(background(rng, size)), lambda images: np.full(len(images), start), NOISE)


def faint_mean_color(rng: Any, size: tuple[int, int]) -> WholePlant:
    """The mean color of the image moves the score by a hundredth at most. To say: nothing matters
    by as much as is reported; a map may show a faint trend everywhere."""
    image, toward = pixels(background(rng, size)), rng.normal(size=3)
    toward *= 0.06 / np.abs(toward).sum()
    now, start = image.mean(axis=(0, 1)) / 255, log_odds(rng.uniform(0.6, 0.85))
    return control(image, lambda images: start + (images.mean(axis=(1, 2)) / 255 - now) @ toward)


def control(image: NDArray[np.uint8], logit: Logit, noise: float = 0.0) -> WholePlant:
    middle = box_at(image.shape[:2], *(np.array([*image.shape[:2]] * 2) * [0.3, 0.3, 0.7, 0.7]))
    return plant_of(
        image, logit, [say("nothing matters")],
        untrue=[say("lowers", fills=PALETTE), say("color", middle), say("structure", middle),
                say("veto", fills=["red"])],
        quiet=True, clutter=0.0, noise=noise,
    )  # fmt: skip


NAMED: dict[str, Callable[..., WholePlant]] = {
    "veto": veto,
    "frame": frame,
    "symmetric pair": symmetric_pair,
    "counting": counting,
    "entropy": entropy,
    "either of four": either_of_four,
    "ratio": ratio,
}
OWN: dict[str, Callable[..., WholePlant]] = {
    "gradient direction": gradient_direction,
    "tint": tint,
    "help and harm": help_and_harm,
    "two and": two_and,
    "checkerboard frequency": checkerboard_frequency,
    "corner brightness": corner_brightness,
    "saturation": saturation,
    "distance": distance,
    "veto anywhere": veto_anywhere,
    "horizon": horizon,
    "brightest of four": brightest_of_four,
    "grain everywhere": grain_everywhere,
    "unbroken line": unbroken_line,
}
CONTROLS: dict[str, Callable[..., WholePlant]] = {
    "constant": constant,
    "noisy": noisy,
    "faint mean color": faint_mean_color,
}
WHOLE = NAMED | OWN | CONTROLS
