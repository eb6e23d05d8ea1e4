"""A zoo of planted models: images, models and what a perfect reading should say of them.

Every model looks at fixed places of its image, so what is true of it is known by construction and
can be checked by calls (`judge`). Each kind is a function of a random generator and a size that
returns a `Plant`; `draw_case` makes a `Case` of it, with other classes and a little clutter that
every score depends on, as real networks have it. Kinds that the reading may not be developed on
are in `zoo_held`.
"""

import colorsys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion, zoom

from mcrise.colors import FULL
from mcrise.fills import LUMA, RGBWK

Region = NDArray[np.bool_]  # (H, W)
Images = NDArray[np.uint8]  # (N, H, W, 3)
Logit = Callable[[Images], NDArray[np.float32]]  # (N,), or (N, C) for all classes

PALETTE = tuple(fill.name for fill in RGBWK)
SIDES = (48, 56, 64, 80, 96, 112, 128, 144, 160)
CLUTTER = 0.8  # in logits, if every pixel changed by its whole range at random
N_SAMPLES = 12  # down and across, of the image as clutter sees it


@dataclass(frozen=True)
class Truth:
    """What a perfect reading should say."""

    kind: str  # of a claim: see judge.PREDICATES
    region: Region | None = None
    fills: tuple[str, ...] = ()
    other: Region | None = None  # of those kinds that are about two regions


@dataclass(frozen=True)
class Plant:
    """What a kind of model adds to the common ground."""

    image: NDArray[np.uint8]  # (H, W, 3)
    logit: Logit  # of the target, or (N, C) of all classes with the target first
    truths: tuple[Truth, ...]
    palette: str = "rgbwk"  # to be painted with
    against: int | None = None  # of all classes as `logit` has them
    clutter: float = CLUTTER


@dataclass(frozen=True)
class Case:
    """An image, a model and what is true of the two."""

    kind: str
    seed: int
    image: NDArray[np.uint8]  # (H, W, 3)
    model: Callable[[Images], NDArray[np.float32]] = field(repr=False)
    target: int
    truths: tuple[Truth, ...] = field(repr=False)
    labels: tuple[str, ...]
    palette: str = "rgbwk"
    against: int | None = None  # the class to compare with, where the kind is about two


# ---- from a kind and a seed to a case


def draw_case(
    kind: str,
    seed: int,
    kinds: "dict[str, Callable[..., Plant]] | None" = None,
    size: tuple[int, int] | None = None,
) -> Case:
    """The case of a kind and a seed; a size only where a test is about time."""
    rng = np.random.default_rng([zlib.crc32(kind.encode()), seed])
    plant = (kinds or KINDS)[kind](rng, size or draw_size(rng))
    n_classes = int(rng.integers(2, 11))
    if plant.against is None:
        target = int(rng.integers(n_classes))
        model = one_against_others(rng, plant, n_classes, target)
    else:
        target, model = 0, all_classes(rng, plant)
        n_classes = model(plant.image[None]).shape[1]
    labels = tuple(f"class {i}" for i in range(n_classes))
    return Case(kind, seed, plant.image, model, target, plant.truths, labels, plant.palette,
                plant.against)  # fmt: skip


def draw_size(rng: np.random.Generator) -> tuple[int, int]:
    rows, cols = (int(side) for side in rng.choice(SIDES, 2))
    return (rows, rows) if rng.random() < 0.4 else (rows, cols)


def one_against_others(rng: Any, plant: Plant, n_classes: int, target: int) -> Any:
    """The target by its logit; the rest of the probability is shared out among the others."""
    own = clutter(rng, plant.image, plant.clutter)
    others = [clutter(rng, plant.image, plant.clutter) for _ in range(n_classes - 1)]
    start = rng.normal(size=n_classes - 1)

    def model(images: Images) -> NDArray[np.float32]:
        score = 1 / (1 + np.exp(-(plant.logit(images) + own(images))))
        shares = np.exp(start + np.stack([other(images) for other in others], axis=1))
        shares *= ((1 - score) / shares.sum(axis=1))[:, None]
        return np.insert(shares, target, score, axis=1).astype(np.float32)

    return model


def all_classes(rng: Any, plant: Plant) -> Any:
    own = clutter(rng, plant.image, plant.clutter)

    def model(images: Images) -> NDArray[np.float32]:
        logits = plant.logit(images).astype(np.float64)
        logits[:, 0] += own(images)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)

    return model


def clutter(rng: Any, image: NDArray[np.uint8], amplitude: float) -> Logit:
    """A little of everything: a random sum over the image, zero where it is untouched."""
    rows, cols = (max(side // N_SAMPLES, 1) for side in image.shape[:2])
    untouched = image[::rows, ::cols].astype(np.float32).ravel()
    weight = rng.normal(size=untouched.size).astype(np.float32)
    weight *= amplitude / 255 / np.sqrt(untouched.size)
    start = untouched @ weight
    return lambda images: (
        images[:, ::rows, ::cols].astype(np.float32).reshape(len(images), -1) @ weight - start
    )


# ---- places


class NoRoom(AssertionError):
    """A case cannot be drawn with this seed."""


def draw_region(
    rng: Any,
    size: tuple[int, int],
    low: float = 0.04,
    high: float = 0.16,
    avoid: Sequence[Region] = (),
    box: bool | None = None,
) -> Region:
    """A rectangle or ellipse of a share of the image between low and high, apart from others."""
    for _ in range(2000):
        share, aspect = rng.uniform(low, high), np.exp(rng.uniform(-0.4, 0.4))
        is_box = rng.random() < 0.5 if box is None else box
        sides = np.sqrt(share * (1 if is_box else 4 / np.pi) * np.array([aspect, 1 / aspect]))
        rows, cols = (round(float(side * n)) for side, n in zip(sides, size, strict=True))
        if rows > size[0] - 2 or cols > size[1] - 2:
            continue
        top, left = rng.integers(1, size[0] - rows), rng.integers(1, size[1] - cols)
        region = np.zeros(size, bool)
        region[top : top + rows, left : left + cols] = True if is_box else ellipse(rows, cols)
        # A border of a cell apart: what is told of one place is not the other's.
        if not any((region & grown(other)).any() for other in avoid):
            return region
    raise NoRoom(f"no room for a region of {low:.0%} to {high:.0%} in {size}")


def ellipse(rows: int, cols: int) -> Region:
    down, across = np.ogrid[-1 + 1 / rows : 1 - 1 / rows : rows * 1j,
                            -1 + 1 / cols : 1 - 1 / cols : cols * 1j]  # fmt: skip
    return np.asarray(down**2 + across**2 <= 1)


def box_of(region: Region) -> tuple[slice, slice]:
    rows, cols = (np.flatnonzero(region.any(axis=axis)) for axis in (1, 0))
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(cols[0]), int(cols[-1]) + 1)


def grown(region: Region) -> Region:
    """The bounding box with a border of one cell of an 8 x 8 grid."""
    out = np.zeros_like(region)
    reach = [-(-side // 8) for side in region.shape]
    rows, cols = box_of(region)
    out[
        max(rows.start - reach[0], 0) : rows.stop + reach[0],
        max(cols.start - reach[1], 0) : cols.stop + reach[1],
    ] = True
    return out


# ---- pictures


def background(rng: Any, size: tuple[int, int]) -> NDArray[np.float64]:
    """Soft muted color fields, some things lying about, and grain: (H, W, 3) in 0..255."""
    coarse = rng.uniform(70, 185, (4, 4, 1)) + rng.normal(0, 18, (4, 4, 3))
    picture = zoom(coarse, (size[0] / 4, size[1] / 4, 1), order=1, mode="nearest", grid_mode=True)
    for _ in range(rng.integers(2, 6)):
        thing = draw_region(rng, size, 0.01, 0.06)
        picture[thing] = 0.5 * picture[thing] + 0.5 * rng.uniform(40, 215, 3)
    return grain(rng, picture, rng.uniform(3, 9))


def grain(rng: Any, picture: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    return picture + rng.normal(0, sigma, picture.shape)


def pixels(picture: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.rint(np.clip(picture, 0, 255)).astype(np.uint8)


def put(rng: Any, picture: NDArray[np.float64], region: Region, color: Any, sigma: float = 7.0):
    """A thing of one color, with grain, into the picture."""
    picture[region] = np.asarray(color, float) + rng.normal(0, sigma, (region.sum(), 3))


def put_pattern(rng: Any, picture: NDArray[np.float64], region: Region, amplitude: float):
    """A pattern of two to four pixels' period in the brightness of some color."""
    half = int(rng.integers(1, 3)) if min(region.shape) >= 64 else 1
    down, across = np.indices(region.shape) // half
    sign = 1 - 2 * ((down + across) % 2 if rng.random() < 0.5 else across % 2)
    base = rng.uniform(100, 155) + rng.normal(0, 25, 3)
    picture[region] = (base + amplitude * sign[..., None])[region]
    picture[region] += rng.normal(0, 5, (region.sum(), 3))


def muted(rng: Any) -> NDArray[np.float64]:
    """A color that is far from every color of the palette."""
    return np.asarray(rng.uniform(105, 150) + rng.uniform(-22, 22, 3))


def nearly(rng: Any, name: str) -> NDArray[np.float64]:
    """A color of the palette as a photograph has it: not quite."""
    full = np.array(FULL[name], float)
    return full + (128 - full) * rng.uniform(0.08, 0.2)


def any_of(rng: Any, words: Sequence[str]) -> str:
    return str(words[rng.integers(len(words))])


def all_but(*names: str) -> tuple[str, ...]:
    return tuple(name for name in PALETTE if name not in names)


# ---- what models see


@dataclass(frozen=True)
class Look:
    """A place that a model looks at."""

    box: tuple[slice, slice]
    weight: NDArray[np.float32]  # of the box's pixels; sums to one

    def at(self, images: Images) -> NDArray[np.float32]:
        """(N, h, w, 3) in 0..1."""
        return images[:, *self.box].astype(np.float32) / np.float32(255)

    def mean(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """(N,) of (N, h, w)."""
        return values.reshape(len(values), -1) @ self.weight.ravel()


def look(region: Region, step: int = 1) -> Look:
    """Every so many pixels of a region: one in four of a large one is as good, and faster."""
    rows, cols = box_of(region)
    box = slice(rows.start, rows.stop, step), slice(cols.start, cols.stop, step)
    weight = region[box].astype(np.float32)
    return Look(box, weight / weight.sum())


def near(seen: NDArray[np.float32], color: Any, width: float) -> NDArray[np.float32]:
    """1 where a pixel (..., 3) has a color (in 0..1), falling off with the distance."""
    away = seen - np.asarray(color, np.float32)
    return np.exp(np.einsum("...c,...c->...", away, away) / np.float32(-2 * width**2))


def alike(seen: NDArray[np.float32], color: Any, radius: float) -> NDArray[np.float32]:
    """1 where a pixel (..., 3) is within a distance of a color (in 0..1), and soon 0 beyond.

    Wide, so that a region taken a quarter of a cell too large still has its mean color within.
    """
    away = seen - np.asarray(color, np.float32)
    distance = np.sqrt(np.einsum("...c,...c->...", away, away))
    return 1 / (1 + np.exp((distance - radius) * np.float32(12 / radius)))


def sees_color(region: Region, name: str | Any, radius: float, step: int = 1) -> Logit:
    """How much of a region has a color: 0 to 1."""
    color = np.array(FULL[name] if isinstance(name, str) else name, np.float32) / 255
    place = look(region, step)
    return lambda images: place.mean(alike(place.at(images), color, radius))


def sees_luma(region: Region) -> Logit:
    place = look(region)
    return lambda images: place.mean(place.at(images) @ LUMA)


def sees_fine_texture(region: Region) -> Logit:
    """The mean step of brightness between neighbours."""
    place = look(region)
    weight = (place.weight[1:, 1:] / place.weight[1:, 1:].sum()).ravel()

    def energy(images: Images) -> NDArray[np.float32]:
        luma = place.at(images) @ LUMA
        steps = np.abs(luma[:, 1:, 1:] - luma[:, :-1, 1:])
        steps += np.abs(luma[:, 1:, 1:] - luma[:, 1:, :-1])
        return steps.reshape(len(images), -1) @ weight

    return energy


def sees_template(region: Region, template: NDArray[np.float64]) -> Logit:
    """How much the brightness follows a template (h, w) over the region's box."""
    place = look(region)
    centered = template - (template * place.weight).sum()
    weight = (centered * place.weight).astype(np.float32).ravel()
    return lambda images: np.maximum((place.at(images) @ LUMA).reshape(len(images), -1) @ weight, 0)


def sees_edges(region: Region, line: Region) -> Logit:
    """How many of the edges of a line (h, w) in the region's box are there, of either sign."""
    place = look(region)
    down, across = line[1:] != line[:-1], line[:, 1:] != line[:, :-1]

    def edges(images: Images) -> NDArray[np.float32]:
        luma = place.at(images) @ LUMA
        steps = [(luma[:, 1:] - luma[:, :-1])[:, down],
                 (luma[:, :, 1:] - luma[:, :, :-1])[:, across]]  # fmt: skip
        return np.tanh(np.abs(np.concatenate(steps, axis=1)) / np.float32(0.15)).mean(axis=1)

    return edges


def sees_intact(image: NDArray[np.uint8], region: Region) -> Logit:
    """How much of the rest of the image is as it was: 0 to 1."""
    rows, cols = (max(side // (2 * N_SAMPLES), 1) for side in region.shape)
    rest = ~region[::rows, ::cols]
    was = image[::rows, ::cols][rest].astype(np.float32) / 255
    return lambda images: near(
        images[:, ::rows, ::cols][:, rest].astype(np.float32) / 255, was, 0.3
    ).mean(axis=1)


def log_odds(score: float) -> float:
    return float(np.log(score / (1 - score)))


def between(low: float, high: float, evidence: Logit, image: NDArray[np.uint8]) -> Logit:
    """Scores `high` where there is as much evidence as in the image, and `low` without any."""
    now = float(evidence(image[None])[0])
    start, slope = log_odds(low), (log_odds(high) - log_odds(low)) / now
    return lambda images: start + slope * evidence(images)


# ---- the kinds: colors


def own_color(rng: Any, size: tuple[int, int], names: Sequence[str] = PALETTE[:3]) -> Plant:
    """A thing of a color of the palette, and that is what the model wants there."""
    name, region, picture = any_of(rng, names), draw_region(rng, size), background(rng, size)
    put(rng, picture, region, nearly(rng, name))
    image = pixels(picture)
    logit = between(0.05, rng.uniform(0.75, 0.95), sees_color(region, name, 0.62), image)
    return Plant(image, logit, (Truth("finds color", region, (name,)),))


def own_white_or_black(rng: Any, size: tuple[int, int]) -> Plant:
    return own_color(rng, size, PALETTE[3:])


OUTSIDE = {"orange": (255, 140, 0), "pink": (250, 130, 180), "teal": (0, 135, 130),
           "purple": (135, 30, 140), "brown": (130, 75, 30), "olive": (140, 140, 20)}  # fmt: skip


def outside_palette(rng: Any, size: tuple[int, int]) -> Plant:
    """A detector of orange pixels, or the like, without any texture."""
    color = OUTSIDE[any_of(rng, tuple(OUTSIDE))]
    region, picture = draw_region(rng, size), background(rng, size)
    put(rng, picture, region, color)
    image = pixels(picture)
    logit = between(0.04, rng.uniform(0.65, 0.95), sees_color(region, color, 0.36), image)
    return Plant(image, logit, (Truth("color", region, PALETTE),))


def own_gray(rng: Any, size: tuple[int, int]) -> Plant:
    """A thing with a strong pattern whose mean gray is all that counts."""
    region, picture = draw_region(rng, size, box=True), background(rng, size)
    put_pattern(rng, picture, region, 0)
    level, block = rng.uniform(115, 140), 4
    sign = rng.choice([-1.0, 1.0], size)
    picture[region] = (level + 45 * sign)[region][:, None] + rng.normal(0, 4, (region.sum(), 3))
    rows, cols = box_of(region)
    rows = slice(rows.start, rows.stop - (rows.stop - rows.start) % block)
    cols = slice(cols.start, cols.stop - (cols.stop - cols.start) % block)

    def evidence(images: Images) -> NDArray[np.float32]:
        seen = images[:, rows, cols].astype(np.float32) / 255
        n, height, width, _ = seen.shape
        blocks = seen.reshape(n, height // block, block, width // block, block, 3)
        return near(blocks.mean(axis=(2, 4)), [level / 255] * 3, 0.25).mean(axis=(1, 2))

    image = pixels(picture)
    logit = between(0.04, rng.uniform(0.7, 0.95), evidence, image)
    return Plant(image, logit, (Truth("color", region, PALETTE),))


def hue(rng: Any, size: tuple[int, int]) -> Plant:
    """Only the hue counts: neither how bright nor how vivid."""
    region, picture, angle = draw_region(rng, size), background(rng, size), rng.random()
    brightness = rng.uniform(0.6, 0.95)
    put(rng, picture, region, 255 * np.array(colorsys.hsv_to_rgb(angle, 0.85, brightness)))
    picture[region] *= rng.uniform(0.75, 1.0, (region.sum(), 1))
    wanted = np.array(colorsys.hsv_to_rgb(angle, 1, 1), np.float32)
    wanted = (wanted - wanted.mean()) / np.linalg.norm(wanted - wanted.mean())
    place = look(region)

    def evidence(images: Images) -> NDArray[np.float32]:
        seen = place.at(images)
        along = seen @ wanted  # the gray part falls out: it sums to zero
        gray = seen @ np.full(3, 1 / 3, np.float32)
        power = np.einsum("nhwc,nhwc->nhw", seen, seen) - 3 * gray**2
        chroma = np.sqrt(np.maximum(power, 0))
        return place.mean(np.maximum(along, 0) / (chroma + np.float32(0.08)))

    image = pixels(picture)
    logit = between(0.04, rng.uniform(0.7, 0.95), evidence, image)
    return Plant(image, logit, (Truth("hue", region, ("hue:120",)),), "rgbwk,hue:120")


def brightness(rng: Any, size: tuple[int, int]) -> Plant:
    """Only the brightness counts; the thing has a color that does not."""
    region, picture, bright = draw_region(rng, size), background(rng, size), rng.random() < 0.5
    luma = rng.uniform(0.7, 0.85) if bright else rng.uniform(0.15, 0.3)
    put(rng, picture, region, 255 * colored(rng, luma))
    image, seen = pixels(picture), sees_luma(region)
    logit = between(0.05, rng.uniform(0.7, 0.95), seen if bright else lambda i: 1 - seen(i), image)
    return Plant(image, logit, (Truth("brightness", region, ("black" if bright else "white",)),))


def colored(rng: Any, luma: float) -> NDArray[np.float64]:
    """A color (3,) of a brightness, half as vivid as it could be."""
    tint = rng.normal(size=3)
    tint -= tint @ LUMA
    room = np.where(tint > 0, (1 - luma) / np.abs(tint), luma / np.abs(tint)).min()
    return np.asarray(luma + 0.7 * room * tint)


def saturation(rng: Any, size: tuple[int, int]) -> Plant:
    """Only how vivid it is counts."""
    region, picture = draw_region(rng, size), background(rng, size)
    put(rng, picture, region, 255 * np.array(colorsys.hsv_to_rgb(rng.random(), 0.92, 0.9)))
    place = look(region)

    def evidence(images: Images) -> NDArray[np.float32]:
        red, green, blue = np.moveaxis(place.at(images), 3, 0)
        top = np.maximum(np.maximum(red, green), blue)
        return place.mean(top - np.minimum(np.minimum(red, green), blue))

    image = pixels(picture)
    logit = between(0.04, rng.uniform(0.7, 0.95), evidence, image)
    return Plant(image, logit, (Truth("saturation", region, ("gray",)),), "rgbwk,gray")


def ring(rng: Any, size: tuple[int, int]) -> Plant:
    """A ring of a color of the palette; what it encloses is irrelevant."""
    whole = draw_region(rng, size, 0.16, 0.24, box=False)
    rows, cols = box_of(whole)
    height, width = rows.stop - rows.start, cols.stop - cols.start
    top, left, thick, wide = rows.start, cols.start, height // 4, width // 4
    region = whole.copy()
    region[top + thick : rows.stop - thick, left + wide : cols.stop - wide] &= ~ellipse(
        height - 2 * thick, width - 2 * wide
    )
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    put(rng, picture, region, nearly(rng, name))
    image = pixels(picture)
    logit = between(0.04, rng.uniform(0.75, 0.95), sees_color(region, name, 0.62), image)
    return Plant(image, logit, (Truth("finds color", region, (name,)),))


def color_cast(rng: Any, size: tuple[int, int]) -> Plant:
    """The mean color of the image, wherever it comes from."""
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    wanted = np.array(FULL[name], np.float32) / 255
    picture = 0.6 * picture + 0.4 * 255 * wanted
    wanted -= wanted.mean()

    def evidence(images: Images) -> NDArray[np.float32]:
        # Every second pixel each way: a mean over all of them is no other and takes four times.
        return np.maximum(images[:, ::2, ::2].mean(axis=(1, 2), dtype=np.float32) @ wanted, 0)

    image = pixels(picture)
    logit = between(0.05, rng.uniform(0.8, 0.95), evidence, image)
    return Plant(image, logit, (Truth("color", np.ones(size, bool), all_but(name)),))


# ---- the kinds: structure


def fine_texture(rng: Any, size: tuple[int, int], palette: str = "rgbwk") -> Plant:
    """A fine pattern that paint of any color kills."""
    region, picture = draw_region(rng, size), background(rng, size)
    put_pattern(rng, picture, region, rng.uniform(45, 80))
    image = pixels(picture)
    logit = between(0.04, rng.uniform(0.7, 0.97), sees_fine_texture(region), image)
    if "blur" in palette:
        return Plant(image, logit, (Truth("sharpness", region, ("blur:4",)),), palette)
    return Plant(image, logit, (Truth("structure", region, PALETTE),))


def sharpness(rng: Any, size: tuple[int, int]) -> Plant:
    return fine_texture(rng, size, "rgbwk,blur:4")


def coarse_texture(rng: Any, size: tuple[int, int]) -> Plant:
    """A checkerboard whose squares are as large as a cell of the grid."""
    rows, cols = (-(-side // 8) for side in size)
    n_rows, n_cols = ((2, 2), (2, 3), (3, 2), (3, 3))[rng.integers(4)]
    checks = (1 - 2 * (np.indices((n_rows, n_cols)).sum(axis=0) % 2)).astype(float)
    template = np.kron(checks, np.ones((rows, cols)))
    top, left = (int(rng.integers(1, side - n)) for side, n in
                 zip(size, template.shape, strict=True))  # fmt: skip
    region = np.zeros(size, bool)
    region[top : top + template.shape[0], left : left + template.shape[1]] = True
    picture = background(rng, size)
    base, swing = rng.uniform(105, 150) + rng.normal(0, 15, 3), rng.uniform(55, 80)
    put(rng, picture, region, (base + swing * template[..., None]).reshape(-1, 3))
    image = pixels(picture)
    logit = between(0.04, rng.uniform(0.75, 0.95), sees_template(region, template), image)
    return Plant(image, logit, (Truth("structure", region),))


def shape(rng: Any, size: tuple[int, int]) -> Plant:
    """An outline or a cross, dark on bright or bright on dark, of any color: its edges count."""
    region, picture = draw_region(rng, size, 0.06, 0.18), background(rng, size)
    inside = region[box_of(region)]
    height, width = inside.shape
    thick = max(min(height, width) // 7, 1)
    if rng.random() < 0.6:  # a border around the line too, so that the region has all its edges
        outer = binary_erosion(inside, iterations=thick)
        line = outer & ~binary_erosion(outer, iterations=thick)
    else:
        line = np.zeros_like(inside)
        line[height // 2 - thick : height // 2 + thick] = True
        line[:, width // 2 - thick : width // 2 + thick] = True
        line &= inside
    base, swing = muted(rng), rng.choice([-1, 1]) * rng.uniform(70, 90)
    put(rng, picture, region, (base + swing * line[..., None])[inside])
    image = pixels(picture)
    logit = between(0.04, rng.uniform(0.75, 0.95), sees_edges(region, line), image)
    return Plant(image, logit, (Truth("structure", region, PALETTE),))


def presence(rng: Any, size: tuple[int, int]) -> Plant:
    """Anything that is not the (white or black) background counts, whatever its color."""
    name, region = any_of(rng, PALETTE[3:]), draw_region(rng, size)
    ground = np.array(FULL[name], float)
    picture = grain(rng, np.broadcast_to(ground, (*size, 3)) * 0.94 + 8, 4)
    for _ in range(3):
        picture[draw_region(rng, size, 0.01, 0.05, avoid=[region])] = muted(rng)
    put_pattern(rng, picture, region, 40)
    image, there = pixels(picture), sees_color(region, name, 0.3)
    logit = between(0.05, rng.uniform(0.75, 0.95), lambda images: 1 - there(images), image)
    truths = Truth("lowers", region, (name,)), Truth("as good", region, all_but(name))
    return Plant(image, logit, truths)


def saturated_high(rng: Any, size: tuple[int, int]) -> Plant:
    """Twice as much texture as is needed: a patch alone takes nothing away, all of it does."""
    region, picture = draw_region(rng, size, 0.2, 0.3), background(rng, size)
    put_pattern(rng, picture, region, rng.uniform(45, 80))
    image, seen = pixels(picture), sees_fine_texture(region)
    now = float(seen(image[None])[0])
    logit = between(0.02, 0.99, lambda images: np.tanh(2.5 * seen(images) / now), image)
    return Plant(image, logit, (Truth("structure", region, PALETTE),))


# ---- the kinds: what is not there


def missing_color(rng: Any, size: tuple[int, int]) -> Plant:
    """A low score that a color of the palette at one place would raise."""
    name, region, picture = any_of(rng, PALETTE), draw_region(rng, size), background(rng, size)
    put(rng, picture, region, muted(rng))
    logit = bonus(rng.uniform(0.03, 0.15), 4.5, sees_color(region, name, 0.45), pixels(picture))
    return Plant(pixels(picture), logit, (Truth("missing color", region, (name,)),))


def bonus(score: float, gain: float, evidence: Logit, image: NDArray[np.uint8]) -> Logit:
    """The score of the image as it is, and `gain` more in log odds with all evidence there is."""
    start = log_odds(score) - gain * float(evidence(image[None])[0])
    return lambda images: start + gain * evidence(images)


def obstacle(rng: Any, size: tuple[int, int]) -> Plant:
    """A textured thing in the way: covering it with anything helps."""
    region, picture = draw_region(rng, size), background(rng, size)
    put_pattern(rng, picture, region, rng.uniform(45, 80))
    image = pixels(picture)
    logit = between(
        rng.uniform(0.75, 0.95), rng.uniform(0.05, 0.2), sees_fine_texture(region), image
    )
    return Plant(image, logit, (Truth("obstacle", region, PALETTE),))


def unwanted_color(rng: Any, size: tuple[int, int]) -> Plant:
    """A color of the palette that is in the way: any other would do."""
    name, region, picture = any_of(rng, PALETTE), draw_region(rng, size), background(rng, size)
    put(rng, picture, region, nearly(rng, name))
    image = pixels(picture)
    logit = between(
        rng.uniform(0.75, 0.95), rng.uniform(0.05, 0.2), sees_color(region, name, 0.62), image
    )
    return Plant(image, logit, (Truth("raises", region, all_but(name)),))


def saturated_low(rng: Any, size: tuple[int, int]) -> Plant:
    """A color that is missing from half of the image: no patch of it is enough."""
    name, region, picture = (
        any_of(rng, PALETTE[:3]), draw_region(rng, size, 0.4, 0.5), background(rng, size)
    )  # fmt: skip
    seen = sees_color(region, name, 0.45, step=2)
    start = log_odds(0.01)
    return Plant(
        pixels(picture),
        lambda images: start + 20 * np.maximum(seen(images) - 0.6, 0),
        (Truth("nothing matters"),),
    )


# ---- the kinds: several places


def shortcut(rng: Any, size: tuple[int, int]) -> Plant:
    """A small mark in the background decides; the big thing in the picture is irrelevant."""
    thing = draw_region(rng, size, 0.15, 0.25)
    region = draw_region(rng, size, 0.025, 0.04, avoid=[thing], box=True)
    picture = background(rng, size)
    put(rng, picture, thing, 255 * np.array(colorsys.hsv_to_rgb(rng.random(), 0.8, 0.85)), 12)
    put_pattern(rng, picture, region, 75)
    image = pixels(picture)
    logit = between(0.04, rng.uniform(0.8, 0.95), sees_fine_texture(region), image)
    fill = any_of(rng, PALETTE)
    truths = Truth("structure", region, PALETTE), Truth("specific", region, (fill,))
    return Plant(image, logit, truths)


def two_things(rng: Any, size: tuple[int, int]) -> tuple[Any, ...]:
    """A color, the picture and two places that have it."""
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    first = draw_region(rng, size, 0.04, 0.1)
    second = draw_region(rng, size, 0.04, 0.1, avoid=[first])
    for region in (first, second):
        put(rng, picture, region, nearly(rng, name))
    image = pixels(picture)
    return name, image, first, second, *(
        share_of_now(sees_color(region, name, 0.62), image) for region in (first, second)
    )  # fmt: skip


def share_of_now(evidence: Logit, image: NDArray[np.uint8]) -> Logit:
    now = float(evidence(image[None])[0])
    return lambda images: np.minimum(evidence(images) / now, 1)


def either_or(rng: Any, size: tuple[int, int]) -> Plant:
    """Two things of a color, each of which suffices."""
    name, image, first, second, one, two = two_things(rng, size)
    logit = between(
        0.04,
        rng.uniform(0.8, 0.95),
        lambda images: 1 - (1 - one(images)) * (1 - two(images)),
        image,
    )
    fill = any_of(rng, all_but(name))
    return Plant(image, logit, (Truth("either suffices", first, (fill,), second),))


def both_needed(rng: Any, size: tuple[int, int]) -> Plant:
    """Two things of a color, none of which is enough without the other."""
    name, image, first, second, one, two = two_things(rng, size)
    logit = between(
        0.04, rng.uniform(0.8, 0.95), lambda images: (one(images) * two(images)) ** 2, image
    )
    fill = any_of(rng, all_but(name))
    return Plant(image, logit, (Truth("both needed", first, (fill,), second),))


def color_and_texture(rng: Any, size: tuple[int, int]) -> Plant:
    """The color of one thing and the texture of another, added."""
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    first = draw_region(rng, size, 0.05, 0.12)
    second = draw_region(rng, size, 0.05, 0.12, avoid=[first])
    put(rng, picture, first, nearly(rng, name))
    put_pattern(rng, picture, second, 70)
    image = pixels(picture)
    one = share_of_now(sees_color(first, name, 0.62), image)
    two = share_of_now(sees_fine_texture(second), image)
    logit = between(
        0.03, rng.uniform(0.8, 0.9), lambda images: 0.5 * one(images) + 0.5 * two(images), image
    )
    truths = Truth("finds color", first, (name,)), Truth("structure", second, PALETTE)
    return Plant(image, logit, truths)


# ---- the kinds: nothing


def nothing(rng: Any, size: tuple[int, int]) -> Plant:
    """Constant, a little clutter, or noise that only looks like an answer."""
    image, score = pixels(background(rng, size)), rng.uniform(0.1, 0.9)
    start, which = log_odds(score), rng.integers(3)

    def noise(images: Images) -> NDArray[np.float32]:
        # The same image gets the same answer, and the least change another one.
        sums = [zlib.crc32(np.ascontiguousarray(one)) for one in images]
        return np.asarray(start + 0.05 * (np.array(sums) / 2**31 - 1), np.float32)

    def constant(images: Images) -> NDArray[np.float32]:
        return np.full(len(images), start, np.float32)

    clutter = 0.0 if which == 0 else 0.2
    return Plant(
        image, noise if which == 2 else constant, (Truth("nothing matters"),), clutter=clutter
    )


def tiny_class(rng: Any, size: tuple[int, int]) -> Plant:
    """A class near zero that varies tenfold and never matters."""
    region, picture = draw_region(rng, size), background(rng, size)
    put_pattern(rng, picture, region, 70)
    image = pixels(picture)
    return Plant(
        image, between(3e-6, 3e-5, sees_fine_texture(region), image), (Truth("nothing matters"),)
    )


def below_the_floor(rng: Any, size: tuple[int, int]) -> Plant:
    """A texture that certainly counts, for four hundredths."""
    region, picture = draw_region(rng, size), background(rng, size)
    put_pattern(rng, picture, region, 70)
    image, score = pixels(picture), rng.uniform(0.7, 0.85)
    logit = between(score - 0.04, score, sees_fine_texture(region), image)
    return Plant(image, logit, (Truth("nothing matters"),), clutter=0.3)


# ---- the kinds: what misled readings of real networks


def ostrich(rng: Any, size: tuple[int, int]) -> Plant:
    """Black is harmless where other things are painted too, and fatal alone."""
    region, picture = draw_region(rng, size, 0.06, 0.16), background(rng, size)
    put(rng, picture, region, muted(rng))
    image = pixels(picture)
    place, intact = look(region), sees_intact(image, region)
    bright = np.array([FULL[name] for name in all_but("black")], np.float32) / 255

    def harm(images: Images) -> NDArray[np.float32]:
        seen = place.at(images)
        foreign = place.mean(sum(near(seen, color, 0.35) for color in bright))
        black = place.mean(near(seen, (0, 0, 0), 0.25))
        rest = intact(images)
        return np.asarray(7 * foreign + 10 * black * rest**6 + 6 * (1 - rest))

    start = log_odds(0.99) + float(harm(image[None])[0])

    truths = Truth("color", region, all_but("black")), Truth("lowers", region, ("black",))
    return Plant(image, lambda images: start - harm(images), truths)


def pool_table(rng: Any, size: tuple[int, int]) -> Plant:
    """Covering one thing helps the wanted class against the given one only, and harms it."""
    thing = draw_region(rng, size, 0.06, 0.14)
    region = draw_region(rng, size, 0.05, 0.1, avoid=[thing])
    name, picture = any_of(rng, PALETTE[:3]), background(rng, size)
    put_pattern(rng, picture, thing, 70)
    put(rng, picture, region, muted(rng))
    image = pixels(picture)
    texture = share_of_now(sees_fine_texture(thing), image)
    color = sees_color(region, name, 0.45)
    now = float(color(image[None])[0])

    def logits(images: Images) -> NDArray[np.float32]:
        gone, there = 1 - texture(images), color(images) - now
        wanted = np.log(0.2) - 5 * gone + 3.5 * there
        given = np.log(0.65) - 7.5 * gone
        others = np.log([0.08, 0.05, 0.02])[:, None] + 0 * gone
        return np.stack([wanted, given, *others], axis=1)

    truths = Truth("lowers", thing, PALETTE), Truth("missing color", region, (name,))
    return Plant(image, logits, truths, against=1)


def green_square(rng: Any, size: tuple[int, int]) -> Plant:
    """0.99 with a dull green that suffices; under masks a pure one does better."""
    region, picture = draw_region(rng, size, 0.05, 0.14, box=True), background(rng, size)
    put(rng, picture, region, (60, 190, 70))
    image = pixels(picture)
    place, intact = look(region), sees_intact(image, region)

    def green(images: Images) -> NDArray[np.float32]:
        return place.mean(near(place.at(images), (0, 1, 0), 0.4))

    now = float(green(image[None])[0])
    start = log_odds(0.99)

    def logit(images: Images) -> NDArray[np.float32]:
        return np.asarray(start + 6 * (green(images) / now - 1) - 9 * (1 - intact(images)))

    return Plant(image, logit, (Truth("finds color", region, ("green",)),))


KINDS: dict[str, Callable[..., Plant]] = {
    "own color": own_color,
    "own white or black": own_white_or_black,
    "outside the palette": outside_palette,
    "own gray": own_gray,
    "hue": hue,
    "brightness": brightness,
    "saturation": saturation,
    "ring": ring,
    "color cast": color_cast,
    "fine texture": fine_texture,
    "sharpness": sharpness,
    "coarse texture": coarse_texture,
    "shape": shape,
    "presence": presence,
    "saturated high": saturated_high,
    "missing color": missing_color,
    "obstacle": obstacle,
    "unwanted color": unwanted_color,
    "saturated low": saturated_low,
    "shortcut": shortcut,
    "either or": either_or,
    "both needed": both_needed,
    "color and texture": color_and_texture,
    "nothing": nothing,
    "tiny class": tiny_class,
    "below the floor": below_the_floor,
    "ostrich": ostrich,
    "pool table": pool_table,
    "green square": green_square,
}
