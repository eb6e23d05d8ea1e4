"""The judge: the closed list of claims that may be printed, with a predicate for each.

It knows nothing of how a reading came to its claims. It repaints regions exactly, with hard edges,
and asks the model itself. A claim is anything with `kind`, `regions` (each (H, W) bool), `fills`
and `target`; the score s is that of the target on the untouched image, and the range of a score
is one. A movement counts from a tenth of s, and from a floor of the range: 0.02 down, 0.05 up.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mcrise.fills import LUMA, RGBWK, Blur, Fill, Gray, Hue, Solid, parse_fill
from zoo import Case, Region, Truth

KEPT = 0.9  # of the score: what is as good
FALL, RISE = 0.02, 0.05  # of the range: the least that counts
N_PLACES, MOST_AS_MUCH = 19, 1
N_PATCHES, PATCH = 20, 0.1  # of the image
MOST_SHARED = 0.25  # of a place that is to be elsewhere
OVERLAP, NEAR = 0.3, 1.5  # of the smaller region; cells of an 8 x 8 grid
GRAYS = tuple(Solid((level, level, level)) for level in (0, 64, 128, 192, 255))
TINTS = np.array([(1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0), (1.0, 1.0, 0), (0, 1.0, 1.0), (1.0, 0, 1)])


@dataclass(frozen=True)
class Claim:
    """What the judge takes; a reading's own claims need only look like it."""

    kind: str
    regions: tuple[Region, ...]
    fills: tuple[Fill, ...]
    target: int


class Claimed(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def regions(self) -> tuple[Region, ...]: ...
    @property
    def fills(self) -> tuple[Fill, ...]: ...
    @property
    def target(self) -> int: ...


def judge(case: Case, claim: Claimed) -> bool:
    """Whether a claim is true of a case."""
    if claim.kind not in PREDICATES:
        raise ValueError(f"{claim.kind!r} is not a claim that may be printed: {list(PREDICATES)}")
    n_regions = 2 if claim.kind in PAIRS else 0 if claim.kind in REGIONLESS else 1
    if claim.kind == "together":
        n_regions = max(len(claim.regions), 3)
    if len(claim.regions) != n_regions:
        raise ValueError(f"{claim.kind!r} came with {len(claim.regions)} regions, not {n_regions}")
    return bool(PREDICATES[claim.kind](case, claim))


def claim_of(case: Case, truth: Truth) -> Claim:
    """A truth as a claim, region as planted."""
    regions = tuple(region for region in (truth.region, truth.other) if region is not None)
    return Claim(truth.kind, regions, tuple(parse_fill(name) for name in truth.fills), case.target)


# ---- painting and asking


def unit(case: Case) -> NDArray[np.float32]:
    return case.image.astype(np.float32) / np.float32(255)


def painted(case: Case, region: Region, fill: Fill) -> NDArray[np.uint8]:
    """The image with a region painted, hard at the edges."""
    shown = np.rint(fill.render(unit(case)) * 255).astype(np.uint8)
    return np.where(region[..., None], shown, case.image)


def own_mean(case: Case, region: Region) -> Solid:
    red, green, blue = (int(v) for v in np.rint(case.image[region].mean(axis=0)))
    return Solid((red, green, blue))


def scores(case: Case, target: int, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    return np.asarray(case.model(np.stack(images))[:, target], np.float64)


def before(case: Case, claim: Claimed) -> float:
    return float(scores(case, claim.target, [case.image])[0])


def moves(
    case: Case, claim: Claimed, fills: Sequence[Fill], region: Region | None = None
) -> NDArray[np.float64]:
    """How much painting a region (the claim's own) with each fill changes the score."""
    where = claim.regions[0] if region is None else region
    if not fills:
        return np.zeros(0)
    after = scores(case, claim.target, [painted(case, where, fill) for fill in fills])
    return after - before(case, claim)


def own_move(case: Case, claim: Claimed) -> float:
    return float(moves(case, claim, [own_mean(case, claim.regions[0])])[0])


def falls(case: Case, claim: Claimed, moved: Any) -> Any:
    return moved <= -max((1 - KEPT) * before(case, claim), FALL)


def rises(case: Case, claim: Claimed, moved: Any) -> Any:
    return moved >= max((1 - KEPT) * before(case, claim), RISE)


def keeps(case: Case, claim: Claimed, moved: Any) -> Any:
    return moved >= -(1 - KEPT) * before(case, claim)


def stays(case: Case, claim: Claimed, moved: Any) -> Any:
    return np.abs(moved) < max((1 - KEPT) * before(case, claim), FALL)


# ---- the predicates


def lowers(case: Case, claim: Claimed) -> bool:
    """Painting the region with each named fill lowers the score."""
    moved = moves(case, claim, claim.fills)
    return moved.size > 0 and falls(case, claim, moved).all()


def raises(case: Case, claim: Claimed) -> bool:
    """Painting the region with each named fill raises the score."""
    moved = moves(case, claim, claim.fills)
    return moved.size > 0 and rises(case, claim, moved).all()


def as_good(case: Case, claim: Claimed) -> bool:
    """Each named fill keeps nine tenths of the score."""
    moved = moves(case, claim, claim.fills)
    return moved.size > 0 and keeps(case, claim, moved).all()


def color(case: Case, claim: Claimed) -> bool:
    """Its color matters and not its texture: its mean color suffices, some named fill does not."""
    own = keeps(case, claim, own_move(case, claim))
    return own and falls(case, claim, moves(case, claim, claim.fills)).any()


def structure(case: Case, claim: Claimed) -> bool:
    """Texture or shape matters: its mean color does not suffice."""
    return bool(falls(case, claim, own_move(case, claim)))


def mixture(case: Case, claim: Claimed) -> bool:
    """Its colors matter and not how they are arranged: its pixels suffice in any order."""
    pixels, region = case.image.copy(), claim.regions[0]
    pixels[region] = randomness(case, region).permutation(pixels[region])
    moved = scores(case, claim.target, [pixels])[0] - before(case, claim)
    return structure(case, claim) and bool(keeps(case, claim, moved))


def missing_color(case: Case, claim: Claimed) -> bool:
    """Each named fill raises the score, and its own mean color does not."""
    return raises(case, claim) and not rises(case, claim, own_move(case, claim))


def obstacle(case: Case, claim: Claimed) -> bool:
    """Covering it raises the score: each named fill does, and so does its own mean color."""
    return raises(case, claim) and bool(rises(case, claim, own_move(case, claim)))


def finds_color(case: Case, claim: Claimed) -> bool:
    """A named color is looked for and found: it suffices, as the own mean color does, and some
    other color of the palette does not."""
    others = [fill for fill in RGBWK if fill not in claim.fills]
    own = keeps(case, claim, own_move(case, claim))
    return as_good(case, claim) and own and falls(case, claim, moves(case, claim, others)).any()


def brightness(case: Case, claim: Claimed) -> bool:
    """Some gray moves the score; other colors of the same brightness do not."""
    moved = moves(case, claim, GRAYS)
    by_gray = (falls(case, claim, moved) | rises(case, claim, moved)).any()
    images = [np.where(claim.regions[0][..., None], one, case.image) for one in same_luma(case)]
    turned = scores(case, claim.target, images) - before(case, claim)
    return by_gray and (np.abs(turned) < (1 - KEPT) * before(case, claim) + FALL).all()


def same_luma(case: Case) -> list[NDArray[np.uint8]]:
    """The image without its colors, with its hues turned, and tinted; its brightness untouched.

    Tints, because a gray thing has no hue to turn: it must survive getting one.
    """
    whole = unit(case)
    hues = [Hue(degrees).render(whole) for degrees in (90.0, 180.0, 270.0)]
    tints = [np.broadcast_to(tint, whole.shape) for tint in TINTS]
    return [at_own_luma(case, one) for one in (Gray().render(whole), *hues, *tints)]


def at_own_luma(case: Case, picture: NDArray[Any]) -> NDArray[np.uint8]:
    """The colors of a picture (H, W, 3) in 0..1 at the brightness of the image."""
    luma = np.repeat((unit(case) @ LUMA)[..., None], 3, axis=2)
    chroma = picture - (picture @ LUMA)[..., None]
    vivid = luma + chroma * room(luma, chroma)[..., None]
    return np.rint(np.clip(vivid, 0, 1) * 255).astype(np.uint8)


def room(luma: NDArray[np.float32], chroma: NDArray[Any]) -> NDArray[np.float64]:
    """The most of a chroma that fits in between black and white at each pixel, one at most."""
    size = np.maximum(np.abs(chroma), 1e-6)
    fits = np.where(chroma > 0, 1 - luma, luma) / size
    return np.minimum(fits.min(axis=2), 1.0)


def veto(case: Case, claim: Claimed) -> bool:
    """Each named fill lowers the score in 15 of 20 random patches, and its own mean does not."""
    rng = randomness(case)
    patches = [random_patch(rng, case.image.shape[:2]) for _ in range(N_PATCHES)]
    for fill in claim.fills:
        images = [painted(case, patch, fill) for patch in patches]
        moved = scores(case, claim.target, images) - before(case, claim)
        if falls(case, claim, moved).sum() < 0.75 * N_PATCHES:
            return False
    return bool(keeps(case, claim, own_move(case, claim)))


def without(kind: type[Fill], usual: Fill, upwards: bool) -> Callable[[Case, Claimed], bool]:
    """Fills that take something away and leave the rest: its hue, saturation or sharpness."""

    def predicate(case: Case, claim: Claimed) -> bool:
        fills = [fill for fill in claim.fills if isinstance(fill, kind)] or [usual]
        moved = moves(case, claim, fills)
        if kind is Hue:  # turning it changes the brightness too, which must not be the reason
            turned = [at_own_luma(case, fill.render(unit(case))) for fill in fills]
            images = [np.where(claim.regions[0][..., None], one, case.image) for one in turned]
            at_luma = scores(case, claim.target, images) - before(case, claim)
            moved = np.concatenate([moved, at_luma])
        return bool((rises if upwards else falls)(case, claim, moved).all())

    return predicate


def specific(case: Case, claim: Claimed) -> bool:
    """The same repaint elsewhere does less, in all but one of 19 fresh places at most."""
    places = elsewhere(case, claim.regions[0])
    if len(places) < N_PLACES or not claim.fills:
        return False  # nothing to compare with: it cannot be said
    for fill in claim.fills:
        here = float(moves(case, claim, [fill])[0])
        if not (falls(case, claim, here) or rises(case, claim, here)):
            return False
        images = [painted(case, place, fill) for place in places]
        there = scores(case, claim.target, images) - before(case, claim)
        if (np.sign(here) * there >= abs(here)).sum() > MOST_AS_MUCH:
            return False
    return True


def elsewhere(case: Case, region: Region) -> list[Region]:
    """Random places of the same shape, shifted, mirrored or turned; a quarter shared at most."""
    rng = randomness(case, region)
    rows, cols = (np.flatnonzero(region.any(axis=axis)) for axis in (1, 0))
    shape = region[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    places: list[Region] = []
    for _ in range(2000):
        one = np.rot90(shape, rng.integers(4))
        one = one[:, ::-1] if rng.random() < 0.5 else one
        free = np.array(region.shape) - one.shape
        if (free < 0).any():
            continue
        top, left = rng.integers(free + 1)
        place = np.zeros_like(region)
        place[top : top + one.shape[0], left : left + one.shape[1]] = one
        if (place & region).sum() <= MOST_SHARED * region.sum():
            places.append(place)
        if len(places) == N_PLACES:
            break
    return places


def randomness(case: Case, *regions: Region) -> np.random.Generator:
    """The judge's own, the same whenever it is asked the same."""
    said = [zlib.crc32(np.packbits(region)) for region in regions]
    return np.random.default_rng([zlib.crc32(case.kind.encode()), case.seed, 77, *said])


def pair_moves(case: Case, claim: Claimed, fill: Fill) -> tuple[float, float, float]:
    """One alone, the other alone, both together."""
    first, second = claim.regions
    one, other, both = (
        float(moves(case, claim, [fill], region)[0]) for region in (first, second, first | second)
    )
    return one, other, both


def either_suffices(case: Case, claim: Claimed) -> bool:
    """Without one of the two the score is kept, without both it is not."""
    pairs = [pair_moves(case, claim, fill) for fill in claim.fills]
    return bool(pairs) and all(
        keeps(case, claim, one) and keeps(case, claim, other) and falls(case, claim, both)
        for one, other, both in pairs
    )


def must_match(case: Case, claim: Claimed) -> bool:
    """Each of the two, painted alone, lowers the score, and both at once do not."""
    pairs = [pair_moves(case, claim, fill) for fill in claim.fills]
    return bool(pairs) and all(
        falls(case, claim, one) and falls(case, claim, other) and keeps(case, claim, both)
        for one, other, both in pairs
    )


def both_needed(case: Case, claim: Claimed) -> bool:
    """Without one of the two nearly as much is lost as without both, and that is a lot."""
    pairs = [pair_moves(case, claim, fill) for fill in claim.fills]
    much = max(0.3 * before(case, claim), FALL)
    return bool(pairs) and all(
        -both >= much and min(-one, -other) >= 0.8 * -both for one, other, both in pairs
    )


def together(case: Case, claim: Claimed) -> bool:
    """Without any one of them the score is kept, without all it is lost, and not before."""

    def moved(regions: Sequence[Region]) -> Any:
        return moves(case, claim, claim.fills, np.logical_or.reduce(regions))

    alone = np.array([moved([region]) for region in claim.regions])
    fewer = [moved([one for one in claim.regions if one is not left]) for left in claim.regions]
    much = -max(0.2 * before(case, claim), FALL)  # what fewer of them may not lose
    return (
        keeps(case, claim, alone).all()
        and falls(case, claim, moved(claim.regions)).all()
        and (np.array(fewer) > much).all()
    )


def nothing_matters(case: Case, claim: Claimed) -> bool:
    """No color on any of 20 random patches of a tenth of the image moves the score."""
    rng = randomness(case)
    images = [
        painted(case, patch, fill)
        for patch in (random_patch(rng, case.image.shape[:2]) for _ in range(N_PATCHES))
        for fill in RGBWK
    ]
    moved = scores(case, claim.target, images) - before(case, claim)
    return bool(stays(case, claim, moved).all())


def all_together(case: Case, claim: Claimed) -> bool:
    """With each named fill no random patch matters, and each half of the image does."""
    rng = randomness(case)
    height, width = case.image.shape[:2]
    rows, columns = np.indices((height, width))
    halves = [rows < height // 2, rows >= height // 2, columns < width // 2, columns >= width // 2]
    patches = [random_patch(rng, (height, width)) for _ in range(N_PATCHES)]
    for fill in claim.fills:
        moved = [scores(case, claim.target, [painted(case, one, fill) for one in some])
                 - before(case, claim) for some in (patches, halves)]  # fmt: skip
        if falls(case, claim, moved[0]).any() or not falls(case, claim, moved[1]).all():
            return False
    return bool(claim.fills)


def random_patch(rng: np.random.Generator, size: tuple[int, ...]) -> Region:
    aspect = np.exp(rng.uniform(-0.7, 0.7))
    sides = np.sqrt(PATCH * np.array([aspect, 1 / aspect])) * size
    rows, cols = (round(float(side)) for side in sides)
    top, left = rng.integers(size[0] - rows + 1), rng.integers(size[1] - cols + 1)
    patch = np.zeros(size, bool)
    patch[top : top + rows, left : left + cols] = True
    return patch


def saturated(case: Case, claim: Claimed) -> bool:
    """Painting the region alone, with each named fill or any of the palette, moves nothing."""
    moved = moves(case, claim, claim.fills or RGBWK)
    return bool(stays(case, claim, moved).all())


PREDICATES: dict[str, Callable[[Case, Claimed], bool]] = {
    "lowers": lowers,
    "raises": raises,
    "as good": as_good,
    "color": color,
    "structure": structure,
    "mixture": mixture,
    "missing color": missing_color,
    "unwanted color": missing_color,
    "obstacle": obstacle,
    "finds color": finds_color,
    "brightness": brightness,
    "veto": veto,
    "hue": without(Hue, Hue(120.0), upwards=False),
    "saturation": without(Gray, Gray(), upwards=False),
    "sharpness": without(Blur, Blur(4.0), upwards=False),
    "hue obstacle": without(Hue, Hue(120.0), upwards=True),
    "saturation obstacle": without(Gray, Gray(), upwards=True),
    "sharpness obstacle": without(Blur, Blur(4.0), upwards=True),
    "specific": specific,
    "either suffices": either_suffices,
    "both needed": both_needed,
    "must match": must_match,
    "together": together,
    "nothing matters": nothing_matters,
    "all together": all_together,
    "saturated": saturated,
}
PAIRS = ("either suffices", "both needed", "must match")
REGIONLESS = ("nothing matters", "all together")

# ---- whether a truth was said

# A truth is said by a claim of its kind, or by one that says it and more.
SAID_BY = {
    "lowers": ("lowers", "color"),  # which names the fills that lower it
    "color": ("color", "finds color"),
    "as good": ("as good", "finds color"),
    "structure": ("structure", "mixture", "sharpness"),
    "raises": ("raises", "missing color", "unwanted color", "obstacle"),
    "nothing matters": ("nothing matters", "saturated"),
}
# Kinds that are nothing without their fills: one at least must be the truth's.
ABOUT_FILLS = ("lowers", "raises", "as good", "missing color", "finds color")


def is_said(truth: Truth, claims: Sequence[Claimed]) -> bool:
    """Whether a truth is among the claims: its kind, its fills where they are the point, its place.

    "Its color matters" and "red is as good", of one place, together say that it finds red.
    """
    if any(says(claim, truth) for claim in claims):
        return True
    parts = [replace(truth, kind=kind) for kind in ("color", "as good")]
    return truth.kind == "finds color" and all(
        any(says(claim, part) for claim in claims) for part in parts
    )


def says(claim: Claimed, truth: Truth) -> bool:
    if claim.kind not in SAID_BY.get(truth.kind, (truth.kind,)):
        return False
    named = {fill.name for fill in claim.fills}
    if truth.kind in ABOUT_FILLS and not named & set(truth.fills):
        return False
    if truth.region is None:
        return True
    if truth.other is None:
        return same_place(truth.region, claim.regions[0])
    pairs = (claim.regions, claim.regions[::-1])
    return any(
        same_place(truth.region, first) and same_place(truth.other, second)
        for first, second in pairs
    )


def same_place(first: Region, second: Region) -> bool:
    """Enough of the smaller one is shared, and the centers are near each other."""
    if not (first.any() and second.any()):
        return False
    shared = (first & second).sum() / min(first.sum(), second.sum())
    apart = np.argwhere(first).mean(axis=0) - np.argwhere(second).mean(axis=0)
    cells = apart * 8 / np.array(first.shape)
    return bool(shared >= OVERLAP and np.hypot(*cells) <= NEAR)
