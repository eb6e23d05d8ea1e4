"""Transplants: what one class's images have, given to images of other classes.

Maps ask what a class needs. A shortcut is what suffices: a network that knows the sign and the
sticker needs neither alone, but other signs that are given the sticker become that class. So a part
of a donor's image (a zone around the object), its tone, its hues or its texture is given to
receivers of other classes, and the model is asked again. What suffices is looked for on half of the
images (`screen`, and closer where something came of it: `refine`), tried afresh on the other half
beside donors of third classes (`give`), and where it is a place, narrowed down (`locate`).
"""

import math
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PIL import Image

from .._util.array_eq import ArrayEq
from ..images import View, thumbnail, unit_float, whole_pixels
from ..models.model import Model
from .class_data import RASTER, BoolArray, FloatArray, IntArray
from .zones import Zone, zone_shares

EDGE = 1 / 32  # of each side
SURROUNDINGS = 0.38  # of each side: what lies farther from the middle
DARKEST = 0.05  # of light, so that a ratio exists
EXTREME = 2  # percent of the pixels that are darker, or brighter, than the range of an image
FINE = 0.08  # cycles per pixel: texture is what is finer
SMALLEST = 1 / 8  # of each side: no place is narrowed down further
MUST_HOLD = 0.01  # of the image, for a zone to be given
SPOT = 1 / 5  # of each side

N_SCREEN = 21  # receivers for each class, of all other classes in turn, the nearest first
N_MORE, N_PARTS = 14, 12  # further receivers of what the screen found, and of parts of a place
N_GIVEN, N_ANYWHERE, N_TAKEN, N_LOCATED = 36, 12, 12, 6  # for each suspect
N_RUNNERS_UP = 3  # classes that are kept for each image
FEWEST_DONORS = 2  # in each half
THUMBNAIL = 96  # pixels

Pixels = NDArray[np.float32]  # (H, W, 3) in 0..1
Corner = tuple[int, int]  # row and column of a raster


# ---- what can be given


@dataclass(frozen=True, eq=False)
class Trait(ArrayEq):
    """Something that an image can be given of another: a part of it, or how it looks as a whole."""

    name: str
    kind: str  # place, edge, tone, color, texture
    phrase: str  # `its PHRASE`
    region: BoolArray | None = None  # (R, R) of a part; None: of the whole image


def traits(zones: Sequence[Zone], has_objects: bool) -> list[Trait]:
    """All that is tried. Parts lie outside of the object, or else far from the middle."""
    rows, cols = (np.mgrid[:RASTER, :RASTER] + 0.5) / RASTER - 0.5
    inner = np.maximum(abs(rows), abs(cols)) < 0.5 - EDGE
    far = np.hypot(rows, cols) > SURROUNDINGS
    named = {zone.name: zone for zone in zones if not zone.needs_object}
    found = []
    for name, zone in named.items():
        region = zone_shares([zone], None)[0] >= 0.5
        if not has_objects:
            region &= far
        if region.mean() >= MUST_HOLD:
            place = "outer rim" if name == "rim" else f"{name} of the image"
            found.append(Trait(name, "edge" if name == "rim" else "place", place, region))
    found.append(Trait("edge", "edge", "outermost edge", ~inner))
    if has_objects:
        everywhere = np.ones((RASTER, RASTER), bool)
        found.append(Trait("background", "place", "background", everywhere))
    else:
        found.append(Trait("surroundings", "place", "surroundings", far))
    found.append(Trait(SPOT_NAME, "place", "most important spot"))
    found += [Trait(name, kind, phrase) for name, (kind, phrase, _) in WHOLE.items()]
    return found


def spot_of(maps: FloatArray) -> Corner:
    """Where an image of the class loses most when it is painted over, by its maps (K, R, R)."""
    side = round(SPOT * RASTER)
    lost = sliding_window_view(-maps.mean(axis=0), (side, side)).sum(axis=(2, 3))
    row, col = np.unravel_index(int(lost.argmax()), lost.shape)
    return int(row), int(col)


def spot_at(corner: Corner) -> BoolArray:
    """The spot (R, R) whose upper left corner this is."""
    side, region = round(SPOT * RASTER), np.zeros((RASTER, RASTER), bool)
    region[corner[0] : corner[0] + side, corner[1] : corner[1] + side] = True
    return region


def give(
    receiver: Pixels, donor: Pixels, trait: Trait, outside: BoolArray | None = None
) -> Pixels | None:
    """A receiver with a trait of the donor; None where there is no room for it.

    `outside` (R, R) is where neither image has its object, as far as that is known.
    """
    donor = fitted(donor, receiver.shape[:2])
    if trait.region is None:
        return np.clip(WHOLE[trait.name][2](receiver, donor), 0, 1).astype(np.float32)
    region = trait.region if outside is None else trait.region & outside
    return None if region.mean() < MUST_HOLD else paste(receiver, donor, region)


def paste(receiver: Pixels, donor: Pixels, region: BoolArray) -> Pixels:
    """The donor's pixels where the region (R, R) is."""
    height, width = receiver.shape[:2]
    rows, cols = ((np.arange(n) * RASTER) // n for n in (height, width))
    return np.where(region[rows[:, None], cols][..., None], donor, receiver)


def fitted(image: Pixels, size: tuple[int, ...]) -> Pixels:
    if image.shape[:2] == size:
        return image
    channels = [Image.fromarray(np.ascontiguousarray(image[..., c])) for c in range(3)]
    resized = [one.resize((size[1], size[0]), Image.Resampling.BILINEAR) for one in channels]
    return np.stack([np.asarray(one) for one in resized], axis=2)


def tone(receiver: Pixels, donor: Pixels) -> Pixels:
    """Each channel between the donor's darkest and brightest values, whatever is in between."""
    (low, high), (to_low, to_high) = (
        np.percentile(image, (EXTREME, 100 - EXTREME), axis=(0, 1)) for image in (receiver, donor)
    )
    scaled = (receiver - low) / np.maximum(high - low, 1e-3)
    return np.asarray(scaled * (to_high - to_low) + to_low, np.float32)


def matched(values: Pixels, to: Pixels) -> Pixels:
    deviation = np.maximum(values.std(axis=(0, 1)), 1e-6)
    scaled = (values - values.mean(axis=(0, 1))) / deviation
    return np.asarray(scaled * to.std(axis=(0, 1)) + to.mean(axis=(0, 1)), np.float32)


def levels(receiver: Pixels, donor: Pixels) -> Pixels:
    """Each channel with the donor's histogram."""
    out = np.empty_like(receiver)
    for c in range(3):
        order = np.argsort(receiver[..., c], axis=None, kind="stable")
        out[..., c].flat[order] = np.sort(donor[..., c], axis=None)
    return out


TO_CHROMA = np.array(
    [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]]
)
FROM_CHROMA = np.linalg.inv(TO_CHROMA)


def hues(receiver: Pixels, donor: Pixels) -> Pixels:
    """The receiver's brightness, and the donor's mean and deviation of both color differences."""
    own, other = receiver @ TO_CHROMA.T, donor @ TO_CHROMA.T
    own[..., 1:] = matched(own[..., 1:], other[..., 1:])
    return np.asarray(own @ FROM_CHROMA.T, np.float32)


@lru_cache(maxsize=16)
def smooth_fields(
    size: tuple[int, int],
) -> tuple[NDArray[np.float64], BoolArray, NDArray[np.float64]]:
    """Fields (H * W, 5) that change slowly over an image, what is far out, and what fits them."""
    rows, cols = ((np.arange(n) + 0.5) / n - 0.5 for n in size)
    down, across = (one.ravel() for one in np.meshgrid(rows, cols, indexing="ij"))
    distance = np.hypot(down, across)
    fields = np.stack([down, across, down * across, distance**2, np.ones_like(down)], axis=1)
    far = distance > SURROUNDINGS
    return fields, far, np.linalg.pinv(fields[far])


def light(receiver: Pixels, donor: Pixels) -> Pixels:
    """The receiver in the donor's light: each channel's level, its slope, and its fall outwards.

    Light is fitted far out, where the object is not, and multiplies.
    """
    fields, far, fit = smooth_fields((receiver.shape[0], receiver.shape[1]))
    own, other = (
        np.maximum(fields @ (fit @ image.reshape(-1, 3)[far]), DARKEST)
        for image in (receiver, donor)
    )
    return np.asarray(receiver * (other / own).reshape(receiver.shape), np.float32)


def texture(receiver: Pixels, donor: Pixels) -> Pixels:
    """The donor's fine texture in the receiver's picture.

    Each fine frequency is as strong as in the donor, and its colors stand to each other as there.
    Its phase, which makes up what an image shows, stays the receiver's.
    """
    own, other = (np.fft.fft2(image.astype(np.float64), axes=(0, 1)) for image in (receiver, donor))
    turn = np.angle((other.conj() * own).sum(axis=2, keepdims=True))
    height, width = receiver.shape[:2]
    fine = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)) >= FINE
    mixed = np.where(fine[..., None], other * np.exp(1j * turn), own)
    return np.asarray(np.fft.ifft2(mixed, axes=(0, 1)).real, np.float32)


WHOLE: dict[str, tuple[str, str, Callable[[Pixels, Pixels], Pixels]]] = {
    "tone": ("tone", "brightness and contrast", tone),
    "levels": ("tone", "overall brightness and colors", levels),
    "hues": ("color", "color cast", hues),
    "light": ("tone", "light across the image", light),
    "texture": ("texture", "fine texture", texture),
}


WIDE = ("surroundings", "background", "rim")  # places that hold others
SPOT_NAME = "spot"  # a part of each donor of its own, on the object or beside it
# What all classes are screened for; the rest are parts of places.
FIRST = (*WIDE, "edge", SPOT_NAME, *WHOLE)


# ---- which images are given what


@dataclass(frozen=True)
class Transplant:
    """A trait of a donor, given to the receiver that a task is about."""

    trait: str
    suspect: int  # the class that the trait may give away
    role: str  # screen, refine, given, control, taken, locate
    donor: int  # its number in the audit
    near: bool  # the receiver's class is one of those that took it in the screen


@dataclass(frozen=True, eq=False)
class Index(ArrayEq):
    """What is known of the images before any is given anything; (n,) each."""

    image: IntArray
    target: IntArray
    predicted: IntArray
    group: IntArray
    half: IntArray
    nearest: dict[int, tuple[int, ...]]  # to each class, those that are most like it

    @property
    def classes(self) -> list[int]:
        """The classes that have donors enough in both halves."""
        counts = [
            {int(c): int(n) for c, n in zip(*np.unique(own, return_counts=True), strict=True)}
            for own in (self.target[self.right & (self.half == side)] for side in (0, 1))
        ]
        return sorted(c for c in counts[0]
                      if min(one.get(c, 0) for one in counts) >= FEWEST_DONORS)  # fmt: skip

    @property
    def right(self) -> BoolArray:
        return np.asarray(self.target == self.predicted)


def nearest_classes(target: IntArray, runners_up: IntArray) -> dict[int, tuple[int, ...]]:
    """All other classes in the order in which the model would take their images for a class.

    `runners_up` (n, N_RUNNERS_UP) are what it would say of an image instead, -1 where nothing.
    """
    weight: dict[tuple[int, int], float] = {}
    for own, others in zip(target.tolist(), runners_up.tolist(), strict=True):
        for place, other in enumerate(others):
            if other >= 0 and other != own:
                weight[other, own] = weight.get((other, own), 0.0) + 1 / (1 + place)
    sizes = {int(c): int(n) for c, n in zip(*np.unique(target, return_counts=True), strict=True)}
    found = {}
    for c in sizes:
        near = {own: sum_ / sizes[own] for (other, own), sum_ in weight.items() if other == c}
        others = (own for own in sizes if own != c)
        found[c] = tuple(sorted(others, key=lambda own: (-near.get(own, 0.0), own)))
    return found


Pair = tuple[int, int]  # receiver, donor: rows of the index


def pairs(
    index: Index, target: int, classes: Sequence[int], side: int, most: int, seed: int
) -> list[Pair]:
    """Receivers of these classes in turn, each with a donor of the class, out of one half."""
    random = np.random.default_rng((seed, target, side, len(classes)))
    donors = index.right & (index.target == target) & (index.half == side)
    free = (index.predicted != target) & (index.half == side)
    receivers = [
        random.permutation(np.flatnonzero(free & (index.target == c))).tolist() for c in classes
    ]
    turns = [row for turn in zip_longest(*receivers) for row in turn if row is not None]
    own = random.permutation(np.flatnonzero(donors)).tolist()
    found = []
    if turns and own:
        again = math.lcm(len(turns), len(own))
        for n in range(min(most, len(turns) * len(own))):
            # Both go around until a pair would come again: then donors move on by one.
            found.append((turns[n % len(turns)], own[(n + n // again) % len(own)]))
    return found


Planned = Iterator[tuple[int, Transplant]]  # with the receiver's number in the audit


Key = tuple[int, str]  # class and trait
Chosen = dict[Key, tuple[int, ...]]  # with the classes that are given it


def plan_screen(index: Index, names: Sequence[str], seed: int) -> Planned:
    """Traits of all classes on one half of the images."""
    for c in index.classes:
        for pair in pairs(index, c, index.nearest[c], 0, N_SCREEN, seed):
            yield from (offered(index, pair, name, c, "screen") for name in names)


def plan_refine(
    index: Index, promising: Chosen, parts: Mapping[int, Sequence[str]], seed: int
) -> Planned:
    """What may be enough, on more receivers of the same half; and parts of places of a class."""
    for c, name in promising:
        both = pairs(index, c, index.nearest[c], 0, N_SCREEN + N_MORE, seed)
        for pair in both[N_SCREEN:]:
            yield offered(index, pair, name, c, "refine")
    for c, names in parts.items():
        taking = dict.fromkeys(
            one for key, some in promising.items() if key[0] == c for one in some
        )
        for pair in pairs(index, c, list(taking), 0, N_PARTS, seed):
            yield from (offered(index, pair, name, c, "refine") for name in names)


def offered(
    index: Index, pair: Pair, name: str, c: int, role: str, near: bool = False
) -> tuple[int, Transplant]:
    receiver, donor = pair
    return int(index.image[receiver]), Transplant(name, c, role, int(index.image[donor]), near)


def plan_give(
    index: Index, chosen: Chosen, shared: Mapping[Key, Collection[int]], seed: int
) -> Planned:
    """What was chosen, on the other half: given, given by third classes, and taken away.

    `shared` are the classes that have a trait as well: they neither receive it nor are thirds.
    """
    random = np.random.default_rng((seed, zlib.crc32(b"give")))
    for (c, name), taking in chosen.items():
        having = [c, *shared.get((c, name), ())]
        for pair in pairs(index, c, taking, 1, N_GIVEN, seed):
            yield offered(index, pair, name, c, "given", near=True)
            own = index.target[pair[0]]
            third = index.right & (index.half == 1) & ~np.isin(index.target, [*having, own])
            if third.any():
                other = int(random.choice(np.flatnonzero(third)))
                yield offered(index, (pair[0], other), name, c, "control", near=True)
        rest = [other for other in index.nearest[c] if other not in (*taking, *having)]
        for pair in pairs(index, c, rest, 1, N_ANYWHERE, seed):
            yield offered(index, pair, name, c, "given")
        own = np.flatnonzero(index.right & (index.target == c) & (index.half == 1))
        others = np.flatnonzero(index.right & ~np.isin(index.target, having) & (index.half == 1))
        for n in range(min(N_TAKEN, len(own) * len(others))):
            donor = int(others[random.integers(len(others))])
            yield offered(index, (int(own[n % len(own)]), donor), name, c, "taken")


def parts_of(region: BoolArray) -> list[BoolArray]:
    """Two halves of a region that overlap a little, across its longer side; none if it is small."""
    rows, cols = (np.flatnonzero(region.any(axis=axis)) for axis in (1, 0))
    spans = [(line[0], line[-1] + 1) for line in (rows, cols)]
    axis = int(np.argmax([end - start for start, end in spans]))
    start, end = spans[axis]
    if end - start <= SMALLEST * RASTER:
        return []
    along = np.arange(RASTER)[:, None] if axis == 0 else np.arange(RASTER)[None]
    reach = round(0.6 * (end - start))
    halves = [region & (along < start + reach), region & (along >= end - reach)]
    return [half for half in halves if half.any()]


def narrowed(
    region: BoolArray,
    given: Callable[[BoolArray], Pixels],
    works: Callable[[Sequence[Pixels]], FloatArray],
) -> BoolArray:
    """The smallest part of a region that still works when it is given, by halving."""
    while parts := parts_of(region):
        scores = works([given(part) for part in parts])
        if np.isnan(scores).all():
            break
        region = parts[int(np.nanargmax(scores))]
    return region


def score_if_won(scores: NDArray[np.float32], target: int) -> FloatArray:
    """The scores (n,) of a class, NaN where another one has more."""
    return np.where(scores.argmax(axis=1) == target, scores[:, target], np.nan)


def as_given(image: Pixels, view: View) -> NDArray[Any]:
    """A picture in 0..1 in the dtype of the view."""
    return whole_pixels(image) if view.pixels.dtype == np.uint8 else image


@dataclass(frozen=True, eq=False)
class Outcome(ArrayEq):
    """What the model said of a receiver that was given something."""

    transplant: Transplant
    predicted: int
    score: float  # of the suspect
    region: BoolArray | None = None  # (R, R) what was located
    picture: bytes | None = None  # WebP, to show


def receive(
    view: View,
    donors: Mapping[int, View],
    objects: Mapping[int, NDArray[np.float64] | None],  # of the donors, and -1: of the receiver
    spots: Mapping[int, Corner],  # of the donors
    model: Model,
    known: Sequence[Trait],
    transplants: Sequence[Transplant],
    batch_size: int,
    has_objects: bool,
) -> list[Outcome]:
    """Ask about one receiver with each of these transplants; those without room are left out.

    `has_objects`: places lie outside of objects, so both images' objects must be known for them.
    """
    receiver, by_name = unit_float(view.pixels), {trait.name: trait for trait in known}
    given = {number: unit_float(one.pixels) for number, one in donors.items()}

    def ask(images: Sequence[Pixels]) -> NDArray[np.float32]:
        batches = [images[n : n + batch_size] for n in range(0, len(images), batch_size)]
        return np.concatenate(
            [model(np.stack([as_given(one, view) for one in some])) for some in batches]
        )

    def trait_of(one: Transplant) -> Trait:
        trait = by_name[one.trait]
        is_spot = one.trait == SPOT_NAME
        return replace(trait, region=spot_at(spots[one.donor])) if is_spot else trait

    def outside(one: Transplant) -> BoolArray | None:
        if one.trait == SPOT_NAME or not has_objects:
            return None
        own, other = objects[-1], objects[one.donor]
        if own is None or other is None:
            return np.zeros((RASTER, RASTER), bool)  # no room that is known
        return (own < 0.5) & (other < 0.5)

    made, images = [], []
    for one in transplants:
        image = give(receiver, given[one.donor], trait_of(one), outside(one))
        if image is not None:
            made.append(one)
            images.append(image)
    if not made:
        return []
    outcomes = []
    for one, image, scores in zip(made, images, ask(images), strict=True):
        outcome = Outcome(one, int(scores.argmax()), float(scores[one.suspect]))
        if one.role == "locate":
            region, trait = None, trait_of(one)
            if trait.region is not None:
                free, donor = outside(one), fitted(given[one.donor], receiver.shape[:2])
                region = narrowed(
                    trait.region if free is None else trait.region & free,
                    lambda part, donor=donor: paste(receiver, donor, part),  # type: ignore[misc]
                    lambda some, c=outcome.predicted: score_if_won(  # type: ignore[misc]
                        ask(some), c
                    ),
                )
                image = paste(receiver, donor, region)
            shown = thumbnail(image, THUMBNAIL, "WEBP", 80)
            outcome = replace(outcome, region=region, picture=shown)
        outcomes.append(outcome)
    return outcomes
