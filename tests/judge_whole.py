"""The strict judge of `zoo_whole`: it paints by itself and asks the model, and nothing else.

A *saying* is a statement about one case: a kind, the regions it is about and the names of colors.
`STRICT` has one predicate for each kind. The limits are those that a printed sentence has:
*lowered* by at least 20% of the score and 0.05, *raised* by at least 20% and 0.07, *kept* with at
least 93%, *unmoved* within 7%. Between these limits a statement is not true.

A saying without a region is about almost any place. It is true if it is true of 15 of 19 blocks of
two by two cells that are drawn at random and lie on none of the places that the case names.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

import judge
from zoo import PALETTE, Region, Truth

LUMA = np.array([0.299, 0.587, 0.114])
COLORS = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "white": (255, 255, 255),
    "black": (0, 0, 0),
}
LOWERED, RAISED, KEPT = 0.8, 1.2, 0.93  # of the score
FALL, RISE = 0.05, 0.07  # of the range: the least that counts
N_BLOCKS, ENOUGH = 19, 15
N_SHUFFLES = 5
N_ASKED = 128  # of a model that answers differently each time: its mean counts

Paint = str | tuple[int, int, int] | NDArray[np.uint8]  # an array is a picture (H, W, 3)
Stroke = tuple[Region, Paint]


@dataclass(frozen=True)
class Saying:
    """What a truthful and complete explanation says, or what it must not say."""

    kind: str  # of STRICT
    regions: tuple[Region, ...] = ()
    fills: tuple[str, ...] = ()

    @property
    def truth(self) -> Truth:
        """In the form of `zoo`: of more than two regions the place is left out."""
        first, second = (*self.regions, None, None)[:2]
        if len(self.regions) > 2:
            first = second = None
        return Truth(self.kind, first, self.fills, second)


@dataclass(frozen=True)
class Fact:
    """What happens to the score when all strokes are painted at once."""

    what: str
    strokes: tuple[Stroke, ...]
    outcome: str  # of OUTCOMES


class Asked(Protocol):
    """What the judge needs of a case."""

    @property
    def kind(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def image(self) -> NDArray[np.uint8]: ...
    @property
    def model(self) -> Callable[[NDArray[np.uint8]], NDArray[np.float32]]: ...
    @property
    def target(self) -> int: ...
    @property
    def places(self) -> tuple[Region, ...]: ...
    @property
    def jitters(self) -> bool: ...


# ---- painting and asking


def paint(image: NDArray[np.uint8], strokes: Iterable[Stroke], seed: int = 0) -> NDArray[np.uint8]:
    """The image with all strokes; what a stroke takes from the image, it takes untouched."""
    out = image.copy()
    for region, with_what in strokes:
        out[region] = painted_pixels(image, region, with_what, seed)
    return out


def painted_pixels(image: NDArray[np.uint8], region: Region, with_what: Paint, seed: int) -> Any:
    own = image[region]
    if isinstance(with_what, np.ndarray):
        return with_what[region]
    if isinstance(with_what, tuple):
        return np.array(with_what, np.uint8)
    if with_what in COLORS:
        return np.array(COLORS[with_what], np.uint8)
    if with_what == "own mean":
        return np.rint(own.mean(axis=0)).astype(np.uint8)
    if with_what == "own gray":  # each pixel at its own brightness
        return np.repeat(np.rint(own @ LUMA).astype(np.uint8)[:, None], 3, axis=1)
    if with_what == "shuffled":
        return np.random.default_rng([99, seed]).permutation(own)
    if with_what in ("mirrored", "upside down"):
        return turned(image, region, 1 if with_what == "mirrored" else 0)[region]
    raise ValueError(f"{with_what!r} is nothing to paint with: {[*COLORS, 'own mean', '...']}")


def turned(image: NDArray[np.uint8], region: Region, axis: int) -> NDArray[np.uint8]:
    """The bounding box of a region, turned over along an axis."""
    out = image.copy()
    rows, cols = (np.flatnonzero(region.any(axis=other)) for other in (1, 0))
    box = slice(rows[0], rows[-1] + 1), slice(cols[0], cols[-1] + 1)
    out[box] = np.flip(image[box], axis=axis)
    return out


def ask(case: Asked, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    """The target's scores; the mean of many answers where they differ each time."""
    n_times = N_ASKED if case.jitters else 1
    answers = [case.model(np.stack(images))[:, case.target] for _ in range(n_times)]
    return np.mean(np.asarray(answers, np.float64), axis=0)


def after(case: Asked, *painted: Iterable[Stroke]) -> NDArray[np.float64]:
    """Scores as a share of the score of the untouched image, one for each set of strokes."""
    images = [case.image, *(paint(case.image, strokes) for strokes in painted)]
    before, *scores = ask(case, images)
    return np.array([one / before for one in scores])


def base(case: Asked) -> float:
    return float(ask(case, [case.image])[0])


def lowered(case: Asked, share: Any) -> Any:
    return (share <= LOWERED) & ((1 - share) * base(case) >= FALL)


def raised(case: Asked, share: Any) -> Any:
    return (share >= RAISED) & ((share - 1) * base(case) >= RISE)


def kept(case: Asked, share: Any) -> Any:
    return share >= KEPT


def unmoved(case: Asked, share: Any) -> Any:
    return np.abs(share - 1) <= np.maximum(1 - KEPT, 0.02 / base(case))


OUTCOMES = {"lowered": lowered, "raised": raised, "kept": kept, "unmoved": unmoved}


def holds(case: Asked, fact: Fact) -> bool:
    return bool(OUTCOMES[fact.outcome](case, after(case, fact.strokes))[0])


# ---- places


def blocks(case: Asked, n_cells: int = 2, n: int = N_BLOCKS) -> list[Region]:
    """Random blocks that touch none of the places that the case names."""
    size = case.image.shape[:2]
    taken = np.logical_or.reduce([np.zeros(size, bool), *case.places])
    apart = binary_dilation(taken, iterations=2) if taken.any() else taken
    rng = np.random.default_rng([zlib.crc32(case.kind.encode()), case.seed, 55])
    rows, cols = (max(n_cells * side // 8, 1) for side in size)
    found: list[Region] = []
    for _ in range(4000):
        top, left = rng.integers(size[0] - rows + 1), rng.integers(size[1] - cols + 1)
        block = np.zeros(size, bool)
        block[top : top + rows, left : left + cols] = True
        if not (block & apart).any():
            found.append(block)
        if len(found) == n:
            break
    return found


def halves(case: Asked) -> list[Region]:
    """Left, right, upper and lower half, and the whole."""
    size = case.image.shape[:2]
    out = [np.zeros(size, bool) for _ in range(4)]
    out[0][:, : size[1] // 2] = True
    out[1][:, size[1] // 2 :] = True
    out[2][: size[0] // 2] = True
    out[3][size[0] // 2 :] = True
    return [*out, np.ones(size, bool)]


# ---- the predicates


def outcome_of_each(outcome: str) -> Callable[[Asked, Saying], bool]:
    """Each named color does this to each region, or to 15 of 19 blocks elsewhere."""

    def predicate(case: Asked, saying: Saying) -> bool:
        if not saying.fills:
            return False
        did = OUTCOMES[outcome]
        if saying.regions:
            return all(
                did(case, after(case, *([(region, name)] for name in saying.fills))).all()
                for region in saying.regions
            )
        places = blocks(case)
        return len(places) == N_BLOCKS and all(
            did(case, after(case, *([(place, name)] for place in places))).sum() >= ENOUGH
            for name in saying.fills
        )

    return predicate


lowers, raises, as_good = (outcome_of_each(one) for one in ("lowered", "raised", "kept"))


def by_color(case: Asked, region: Region) -> NDArray[np.float64]:
    """What is left with each color of the palette."""
    return after(case, *([(region, name)] for name in PALETTE))


def color(case: Asked, saying: Saying) -> bool:
    """Flat color is enough, and most colors are not: with only one that lowers, it is a veto."""
    (region,) = saying.regions
    own = after(case, [(region, "own mean")])
    return bool(kept(case, own)[0]) and lowered(case, by_color(case, region)).sum() >= 2


def finds_color(case: Asked, saying: Saying) -> bool:
    """Flat color is enough, the named colors are, and at least two others are not."""
    return color(case, saying) and as_good(case, saying)


def structure(case: Asked, saying: Saying) -> bool:
    """No flat color keeps the score, neither of the palette nor its mean color."""
    (region,) = saying.regions
    own = after(case, [(region, "own mean")])
    return bool(lowered(case, np.append(by_color(case, region), own)).all())


def mixture(case: Asked, saying: Saying) -> bool:
    """No flat color keeps the score, and its pixels do in each of five orders."""
    region = saying.regions[0] if saying.regions else np.ones(case.image.shape[:2], bool)
    images = [paint(case.image, [(region, "shuffled")], seed) for seed in range(N_SHUFFLES)]
    shares = ask(case, images) / base(case)
    whole = Saying("structure", (region,))
    return structure(case, whole) and bool(kept(case, shares).all())


def brightness(case: Asked, saying: Saying) -> bool:
    """Each color does what the gray of its brightness does; flat color and gray keep the score."""
    (region,) = saying.regions
    colors = by_color(case, region)
    levels = [round(float(np.array(COLORS[name]) @ LUMA)) for name in PALETTE]
    grays = after(case, *([(region, (level, level, level))] for level in levels))
    own = after(case, [(region, "own gray")], [(region, "own mean")])
    moved = lowered(case, colors) | raised(case, colors)
    return bool(moved.any() and (np.abs(colors - grays) < 0.1).all() and unmoved(case, own).all())


def saturation(case: Asked, saying: Saying) -> bool:
    """Gray at its own brightness lowers the score; the three pure colors keep it."""
    (region,) = saying.regions
    gray, *pure = after(case, *([(region, one)] for one in ("own gray", *PALETTE[:3])))
    return bool(lowered(case, gray) and kept(case, np.array(pure)).all())


def veto(case: Asked, saying: Saying) -> bool:
    """The named color lowers the score; nothing that is there is needed, whatever covers it."""
    others = tuple(name for name in PALETTE if name not in saying.fills)
    more = () if not saying.regions else ("own mean", "own gray", "shuffled")
    harmless = Saying("as good", saying.regions, (*others, *more))
    return lowers(case, saying) and as_good(case, harmless)


def pair(case: Asked, saying: Saying, name: str) -> NDArray[np.float64]:
    """What is left with the one painted, the other, and both."""
    first, second = saying.regions
    return after(case, [(first, name)], [(second, name)], [(first | second, name)])


def must_match(case: Asked, saying: Saying) -> bool:
    """Each named color on one of two places lowers the score; on both it keeps it."""
    shares = np.array([pair(case, saying, name) for name in saying.fills])
    return bool(lowered(case, shares[:, :2]).all() and kept(case, shares[:, 2]).all())


def either_suffices(case: Asked, saying: Saying) -> bool:
    shares = np.array([pair(case, saying, name) for name in saying.fills])
    return bool(kept(case, shares[:, :2]).all() and lowered(case, shares[:, 2]).all())


def both_needed(case: Asked, saying: Saying) -> bool:
    """Painting one of the two costs at least 80% of what painting both costs."""
    lost = 1 - np.array([pair(case, saying, name) for name in saying.fills])
    return bool((lost[:, 2] >= 0.3).all() and (lost[:, :2] >= 0.8 * lost[:, 2:]).all())


def together(case: Asked, saying: Saying) -> bool:
    """The score is kept while any one of them is there, and lost without all of them."""
    regions = saying.regions
    for name in saying.fills:
        all_but_one = [np.logical_or.reduce([r for r in regions if r is not one])
                       for one in regions]  # fmt: skip
        fewer = after(case, *([(region, name)] for region in (*regions, *all_but_one)))
        everything = after(case, [(np.logical_or.reduce(regions), name)])
        if not (kept(case, fewer).all() and lowered(case, everything).all()):
            return False
    return bool(saying.fills)


def all_together(case: Asked, saying: Saying) -> bool:
    """No block of two cells matters in the named colors; the whole image and half of it do."""
    for name in saying.fills:
        small = after(case, *([(block, name)] for block in blocks(case)))
        large = after(case, *([(half, name)] for half in halves(case)))
        if not (unmoved(case, small).all() and lowered(case, large).all()):
            return False
    return bool(saying.fills)


def nothing_matters(case: Asked, saying: Saying) -> bool:
    """No color moves the score: neither on 19 random blocks, nor on a half, nor on the whole."""
    places = [*blocks(case), *halves(case), *case.places]
    shares = [after(case, *([(place, name)] for place in places)) for name in PALETTE]
    return bool(unmoved(case, np.array(shares)).all())


STRICT: dict[str, Callable[[Asked, Saying], bool]] = {
    "lowers": lowers,
    "raises": raises,
    "as good": as_good,
    "color": color,
    "finds color": finds_color,
    "structure": structure,
    "mixture": mixture,
    "brightness": brightness,
    "saturation": saturation,
    "veto": veto,
    "must match": must_match,
    "either suffices": either_suffices,
    "both needed": both_needed,
    "together": together,
    "all together": all_together,
    "nothing matters": nothing_matters,
}


def is_true(case: Asked, saying: Saying) -> bool:
    return bool(STRICT[saying.kind](case, saying))


# ---- whether an explanation says it

# A saying is said by a claim of its kind, or by one that says it and more.
SAID_BY = judge.SAID_BY | {"lowers": ("lowers", "color", "veto")}
ABOUT_FILLS = (*judge.ABOUT_FILLS, "veto")


def is_said(saying: Saying, claims: Sequence[judge.Claimed]) -> bool:
    """Whether a claim has its kind, one of its colors where they are the point, and its place.

    A claim about a part of a long place (a frame, a line) speaks of it: the centers may differ.
    """
    return any(says(claim, saying) for claim in claims)


def says(claim: judge.Claimed, saying: Saying) -> bool:
    if claim.kind not in SAID_BY.get(saying.kind, (saying.kind,)):
        return False
    named = {fill.name for fill in claim.fills}
    if saying.kind in ABOUT_FILLS and not named & set(saying.fills):
        return False
    return all(any(is_there(region, one) for one in claim.regions) for region in saying.regions)


def is_there(region: Region, claimed: Region) -> bool:
    """Whether 30% of the smaller one is shared, the region grown by half a cell (of 8 x 8)."""
    if not (region.any() and claimed.any()):
        return False
    reach = max(round(min(region.shape) / 16), 1)
    shared = (binary_dilation(region, np.ones((3, 3)), reach) & claimed).sum()
    return bool(shared >= 0.3 * min(region.sum(), claimed.sum()))
