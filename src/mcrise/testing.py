"""For test suites: `assert_ignores` holds a model to what it must not depend on.

Only the zone is painted, so an image costs a dozen calls rather than a map's hundreds. Images come
in random order, and after each of them the mean over all of them is known to lie in an interval
that holds at every look (a betting martingale of sampling without replacement: Waudby-Smith and
Ramdas, 2020 and 2024). So it stops as soon as it can tell, and with the last image it can.
"""

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ._util.files import write_atomically
from .audits.suspects import Suspect
from .audits.transplants import fitted
from .audits.zones import KNOWN, Box, Zone, parse_box
from .errors import InputError, ModelError
from .fills import Fill
from .fills import parse as parse_fills
from .images import View, png, unit_float, whole_pixels
from .inspection import preprocessing_hint
from .interpretation.claims import join
from .interpretation.findings import box_of
from .interpretation.repaints import Repaint, Stroke
from .interpretation.text import box_words
from .models import ModelSettings, load_model
from .models.model import Model

__all__ = ["DependsOnZone", "IgnoreResult", "assert_ignores"]

CONFIDENCE = 0.95  # that the verdict is right
CANDIDATES = np.linspace(0, 1, 2001)  # means that are ruled out one by one
BOLDEST = 0.9  # share of its capital that a bet may risk
JITTER = 1e-3  # of a score: what rounding may make of one image asked about twice
N_DONORS = 2  # other images whose zone is given to one
N_AGAIN = 8  # answers that must be alike before a model is blamed
PARTS = (8, 8)  # cells, some of which are painted where a part of the zone is

ZoneLike = str | Box | Suspect | NDArray[np.bool_] | Sequence[NDArray[np.bool_]]


@dataclass(frozen=True)
class IgnoreResult:
    """What painting the zone does to the score, so far."""

    mean: float  # largest change by any of the colors, on average over the images painted
    low: float  # 95% interval of the mean over all images
    high: float
    n_images: int  # painted
    n_given: int
    n_calls: int
    worst: str = ""  # the image that changed most, and how

    def line(self, zone: str, at_most: float) -> str:
        """`Changing the rim moves the score by 0.31 on average (0.12 to 0.48 at 95%), ...`"""
        if self.n_given == 1:
            among = "in the one image"
        elif self.n_images == self.n_given:  # the mean is known
            among = f"on average in all {self.n_given} images"
        else:
            among = (
                f"on average ({self.low:.3f} to {self.high:.3f} at 95%, from {self.n_images} of "
                f"{self.n_given} images)"
            )
        return (
            f"Changing {zone} moves the score by {self.mean:.3f} {among}, and at most {at_most:g} "
            f"is allowed. Largest change: {self.worst}."
        )


class DependsOnZone(AssertionError):
    """The model depends on the zone; with the image that shows it best."""

    def __init__(
        self, sentence: str, seen: IgnoreResult, image: NDArray[np.uint8], path: Path | None
    ) -> None:
        super().__init__(sentence)
        self.seen = seen
        self.image = image  # (H, 2 W, 3): as it is, and painted
        self.path = path  # where it was saved, if that was asked for


def assert_ignores(
    model: Any,
    images: Iterable[Any],
    *,
    zone: ZoneLike,
    colors: str | Sequence[Any] = "rgbwk",
    at_most: float = 0.05,
    target: int | str | None = None,
    seed: int = 0,
    save: Path | str | None = None,
    **settings: Unpack[ModelSettings],
) -> IgnoreResult:
    """Assert that changing a zone moves the score by no more than `at_most` on average.

    In each image the zone is painted, whole and in parts, with each of the colors, and is given
    what two other images have there. The largest change of the score counts: that of `target`, or
    of the class that the model predicts. The assertion is that the mean of these changes over all
    `images` is at most `at_most`. Images come in random order, and only until that is decided,
    which is wrong in at most one of twenty tests.

    `model` and `settings` are what `load_model` takes; `images` are paths, Pillow images or arrays.
    `zone` is a name (`rim`, `center`, `lower right`, ...), a box (top, left, bottom, right, from 0
    to 1), as a string too (`"0.7:0.7:1:1"`), a mask (H, W) of the model's input, a mask for each
    image, or a suspect of an audit, whose place is the zone. A score must lie in 0..1. With `save`,
    the worst image is written there as a PNG.

    Raises
    ------
    DependsOnZone
        An AssertionError with the sentence, `seen`, and the worst `image` as it is and painted.
    """
    __tracebackhide__ = True  # pytest then shows the sentence, and where it was asserted
    if not is_number(at_most) or not 0 < at_most < 1:
        raise InputError(f"at_most is {at_most!r}, but a change between 0 and 1 is needed.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"The seed is {seed!r}, but a whole number from 0 on is needed.")
    if save is not None and Path(save).is_dir():
        raise InputError(f"The worst image cannot be saved as {save}: that is a folder.")
    if isinstance(images, str | Path | Image.Image):
        raise InputError(f"images is {images!r:.60}, but a list of them is needed: put it into [].")
    images = list(images)
    if not images:
        raise InputError("No images were given: give at least one.")
    opened, fills = load_model(model, **settings), parse_fills(colors)
    if opened.kind == "any":
        raise InputError(
            "The scores of the model may be any numbers, but at_most is a change of a score in "
            "0..1: give softmax=True or sigmoid=True."
        )
    hint, n_asked = preprocessing_hint(opened, opened.view(images[0]))
    if hint:
        warnings.warn(f"Assumed: {'; '.join((*opened.notes, hint))}.", stacklevel=2)
    worst: Change | None = None
    places: set[str] = set()
    for seen, change in looks(opened, images, zone, fills, target, seed):
        seen = replace(seen, n_calls=seen.n_calls + n_asked)
        places.add(change.place)
        worst = change if worst is None or change.size > worst.size else worst
        seen = replace(seen, worst=worst.words)
        if seen.low > at_most:
            refuse_random(opened, worst)
            seen = replace(seen, n_calls=seen.n_calls + N_AGAIN)
            sentence, path = seen.line(zone_words(zone, places), at_most), None
            if save is None:
                sentence += ' Give save="worst.png" to see it.'
            else:
                try:
                    path = worst.save(save)
                    sentence += f" It is shown in {path}."
                except OSError as error:
                    sentence += f" Its picture could not be saved as {save} ({error.strerror})."
            raise DependsOnZone(sentence, seen, worst.picture, path)
        if seen.high <= at_most:
            break
    return seen


# ---- painting


@dataclass(frozen=True, eq=False)
class Change:
    """The largest change of the score that painting the zone of an image made."""

    size: float
    words: str  # "stop.png, 'stop' 0.98 → 0.03 painted yellow"
    picture: NDArray[np.uint8]  # (H, 2 W, 3)
    n_calls: int
    n_classes: int
    pixels: NDArray[Any]  # (H, W, 3) of the image as it is
    place: str  # of the zone, in words

    def save(self, where: Path | str) -> Path:
        path = Path(where)
        write_atomically(path, png(self.picture))
        return path


def looks(
    model: Model,
    images: Sequence[Any],
    zone: ZoneLike,
    fills: tuple[Fill, ...],
    target: int | str | None,
    seed: int,
) -> Iterator[tuple[IgnoreResult, Change]]:
    """Image by image in random order: what is known after it, and what it showed."""
    interval, total, n_calls, n_classes = Interval(len(images)), 0.0, 0, 0
    order = np.random.default_rng(seed).permutation(len(images))
    for n, number in enumerate(order.tolist(), start=1):
        view = model.view(images[number])
        region = region_of(zone, number, len(images), view.pixels.shape[:2])
        random = np.random.default_rng([seed, number])
        others = [other for other in range(len(images)) if other != number]
        donors = [model.view(images[k]) for k in random.permutation(others)[:N_DONORS].tolist()]
        change = largest_change(model, view, region, fills, donors, target, random, number)
        if n > 1 and change.n_classes != n_classes:
            raise InputError(
                f"The model gave {n_classes} scores for one image and {change.n_classes} for "
                "another: it must give one score for each class, always as many."
            )
        n_classes = change.n_classes
        interval.add(change.size)
        total += change.size
        n_calls += change.n_calls
        yield IgnoreResult(total / n, *interval.ends, n, len(images), n_calls), change


def largest_change(
    model: Model,
    view: View,
    region: NDArray[np.bool_],
    fills: tuple[Fill, ...],
    donors: Sequence[View],
    target: int | str | None,
    random: np.random.Generator,
    number: int,
) -> Change:
    pixels = view.pixels
    strokes = [Stroke(part, f) for part in (region, some_of(region, random)) for f in fills]
    painted = [Repaint((stroke,)).render(pixels, (1, 1)) for stroke in strokes]
    ways = [f"painted {stroke.fill.name}" for stroke in strokes]
    for donor in donors:
        other = fitted(unit_float(donor.pixels), pixels.shape[:2])
        given = np.where(region[..., None], other, unit_float(pixels))
        painted.append(whole_pixels(given) if pixels.dtype == np.uint8 else given)
        ways.append(f"given the zone of {donor.name or 'another image'}")
    # The image as it is comes twice: a model that answers differently each time has changed
    # nothing by as much as that.
    scores = ask(model, [pixels, *painted, pixels])
    again, scores = scores[-1], scores[:-1]
    index = class_of(model, target, scores)
    if abs(float(again[index] - scores[0, index])) > JITTER:
        raise InputError(
            f"The model answers {view.name or f'image {number}'} differently each time "
            f"({scores[0, index]:.3f}, then {again[index]:.3f}), so a change tells nothing of the "
            "zone: switch off what is random in it (dropout, augmentation)."
        )
    changes = np.abs(scores[1:, index] - scores[0, index])
    most = int(changes.argmax())
    label = model.labels[index] if model.labels else f"class {index}"
    words = (
        f"{view.name or f'image {number}'}, {label!r} {scores[0, index]:.2f} → "
        f"{scores[most + 1, index]:.2f} {ways[most]}"
    )
    picture = whole_pixels(np.concatenate([pixels, painted[most]], axis=1))
    size, (n_asked, n_classes) = min(float(changes[most]), 1.0), scores.shape
    return Change(size, words, picture, n_asked + 1, n_classes, pixels, place_words(region))


def ask(model: Model, images: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
    """The scores of images; a model that ends the program has failed."""
    try:
        return model(np.stack(images))
    except SystemExit as error:
        raise ModelError(f"The model ended the program (exit code {error.code}).") from error


def refuse_random(model: Model, worst: Change) -> None:
    """Before a model is blamed: ask about one image as it is once more, several times."""
    said = ask(model, N_AGAIN * [worst.pixels])
    if float(np.ptp(said, axis=0).max()) > JITTER:
        raise InputError(
            "The model answers the same image differently each time, so a change tells nothing of "
            "the zone: switch off what is random in it (dropout, augmentation)."
        )


def class_of(model: Model, target: int | str | None, scores: NDArray[np.float32]) -> int:
    if target is None:
        return int(scores[0].argmax())
    if isinstance(target, str):
        named = [c for c, label in enumerate(model.labels or ()) if label.lower() == target.lower()]
        if len(named) != 1:
            several = f"{len(named)} classes" if named else "no class"
            raise InputError(
                f"The model has {several} {target!r}: give one of its labels, or its index."
            )
        return named[0]
    if isinstance(target, bool) or not isinstance(target, int | np.integer):
        raise InputError(f"The target is {target!r}, but a label or an index is needed.")
    if not 0 <= target < scores.shape[1]:
        raise InputError(
            f"The target is {target}, but the model has classes 0 to {scores.shape[1] - 1}."
        )
    return target


# ---- zones


def place_words(region: NDArray[np.bool_]) -> str:
    """`rows 64-96, columns 64-96 of 96 x 96`; of what is no block, its share of the image."""
    top, left, bottom, right = box_of(region)
    size = f"{region.shape[0]} x {region.shape[1]}"
    if region[top:bottom, left:right].all():
        return f"{box_words(region)} of {size}"
    return f"{100 * region.mean():.0f}% of the image"


def zone_words(zone: ZoneLike, places: set[str]) -> str:
    """What a zone is called in a sentence, and where it is if that is the same in all images."""
    name = f"the {zone}" if isinstance(zone, str) and zone in ZONES else "the zone"
    name = f"what {zone.classes} may follow" if isinstance(zone, Suspect) else name
    return f"{name} ({min(places)})" if len(places) == 1 else name


ZONES = {zone.name: zone for some in KNOWN.values() for zone in some if not zone.needs_object}


def region_of(
    zone: ZoneLike, number: int, n_images: int, size: tuple[int, ...]
) -> NDArray[np.bool_]:
    """The pixels (H, W) of a zone in one image."""
    one: Any = zone
    if isinstance(zone, str) or is_box(zone):
        one = box_region(as_zone(zone), size)
    elif isinstance(zone, Suspect):
        one = suspect_region(zone, size)
    elif not isinstance(zone, list | tuple | np.ndarray) or not len(zone):
        raise InputError(f"The zone is {zone!r:.60}, but a name, a box or masks are needed.")
    elif np.ndim(zone[0]) == 2:
        if len(zone) != n_images:
            raise InputError(f"{len(zone)} masks came for {n_images} images: give one for each.")
        one = zone[number]
    if np.shape(one) != tuple(size):
        raise InputError(
            f"The mask is of shape {np.shape(one)}, but the model is shown {size[0]} x {size[1]} "
            "pixels: give one of that size."
        )
    region = np.asarray(one, bool)
    if not region.any():
        raise InputError("The zone is empty: mark what must be ignored.")
    return region


def suspect_region(suspect: Suspect, size: tuple[int, ...]) -> NDArray[np.bool_]:
    """The pixels (H, W) of the place that a suspect is about."""
    if suspect.region is None:
        raise InputError(
            f"The suspect {suspect.headline!r} is about the whole image, but a zone is needed: "
            "give one that has a place."
        )
    rows, cols = (np.arange(n) * len(suspect.region) // n for n in size)
    return np.asarray(suspect.region[np.ix_(rows, cols)])


def is_box(zone: Any) -> bool:
    return isinstance(zone, list | tuple) and len(zone) > 0 and all(map(is_number, zone))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_zone(zone: Any) -> Zone:
    if not isinstance(zone, str):
        zone = ":".join(map(str, zone))
    if zone in ZONES:
        return ZONES[zone]
    if ":" not in zone:
        raise InputError(
            f"The zone {zone!r} is unknown: give {join(list(ZONES), 'or')}, a box as in "
            "0.7:0.7:1:1 (top:left:bottom:right), or a mask."
        )
    return Zone("zone", parse_box(zone, zone))


def box_region(zone: Zone, size: tuple[int, ...]) -> NDArray[np.bool_]:
    """The pixels whose middle lies in a zone."""
    assert zone.box is not None
    top, left, bottom, right = zone.box
    rows, cols = ((np.arange(n) + 0.5) / n for n in size)
    inside = np.outer((rows > top) & (rows < bottom), (cols > left) & (cols < right))
    return inside if zone.inside else ~inside


def some_of(region: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.bool_]:
    """About half of a region, in cells; all of it where no cell meets it."""
    cells = random.random(PARTS) < 0.5
    rows, cols = (np.arange(n) * p // n for n, p in zip(region.shape, PARTS, strict=True))
    part = region & cells[np.ix_(rows, cols)]
    return part if part.any() else region


# ---- what is known after each image


class Interval:
    """An interval for the mean of N numbers in 0..1 that come in random order, at every look.

    A gambler bets that the next one lies above what a candidate mean leaves for it, another that it
    lies below. If the candidate is the mean, neither gains on average. So it is too low when the
    first one's capital has grown as it would in one case of forty, and too high by the second's.
    """

    def __init__(self, n_given: int, confidence: float = CONFIDENCE) -> None:
        self.n_given, self.goal = n_given, 2 / (1 - confidence)
        self.seen: list[float] = []
        self.capital = np.ones((2, len(CANDIDATES)))  # of who bets above, below
        self.ruled_out = np.zeros(self.capital.shape, bool)

    def add(self, value: float) -> None:
        n, total = len(self.seen), sum(self.seen)
        left = np.clip((self.n_given * CANDIDATES - total) / (self.n_given - n), 1e-9, 1 - 1e-9)
        # As bold as the spread so far allows; only what came before decides a bet.
        middle = (0.5 + total) / (n + 1)
        spread = (0.25 + sum((one - middle) ** 2 for one in self.seen)) / (n + 1)
        bold = math.sqrt(2 * math.log(self.goal) / (spread * (n + 1) * math.log(n + 2)))
        self.capital[0] *= 1 + np.minimum(bold, BOLDEST / left) * (value - left)
        self.capital[1] *= 1 - np.minimum(bold, BOLDEST / (1 - left)) * (value - left)
        self.ruled_out |= self.capital >= self.goal
        self.seen.append(value)

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest possible mean; the mean itself after the last one."""
        sure = sum(self.seen) / self.n_given  # whatever is to come
        rest = 1 - len(self.seen) / self.n_given
        if not rest:
            return sure, sure
        step = CANDIDATES[1]  # the mean may lie between two candidates
        low = CANDIDATES[~self.ruled_out[0]].min(initial=1.0) - step
        high = CANDIDATES[~self.ruled_out[1]].max(initial=0.0) + step
        return max(float(low), sure), min(float(high), sure + rest)
