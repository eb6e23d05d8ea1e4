"""Findings of a class: where the mean of its images' maps exceeds chance, and whether it holds.

A place counts when |z| of the mean map exceeds what the largest |z| over all classes, fills and
places would be by chance, which flipping the signs of images tells. Maps are of `centered`: linear
in the scores, so their noise averages out over images and few masks an image are enough.
`smooth` is not pooled: its maps are shrunken towards zero, those of unclear images most, and that
does not average out, so a class of few masks would seem to depend on less than it does.

A finding is confirmed on images that had no part in it (two-fold cross-fitting): its region is
found again on one half of them and painted in the other, and the same patch elsewhere as a control.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..claims import join, sentence_case
from ..content import ByContent
from ..examining import FEWEST_PLACES
from ..reading import MINOR, find_regions, place_of, widened
from ..repaints import elsewhere
from .basics import BASICS, basic_colors
from .looks import Asked, BoolArray, FloatArray, IntArray, Looks
from .plain import region_of
from .statistics import Figure, largest_by_flips, mean, share, threshold, z_maps

FEWEST = 12  # images, or groups of them: with fewer, flipping signs can tell nothing
MAX_TRIED = 24  # images of a half in which a region is painted
LARGEST = 0.1  # of the image: a region that is larger fits nowhere else as a control
LENIENT = 2.0  # |z| in a half, where a region only has to be found again
SAME = 0.2  # of two regions, shared over covered: from here on they are the same place
CORE = 0.8  # of the peak: where the own color of a place is looked at
MOSTLY = 0.5  # of the images have it: then a place has a color of its own
NO_ROOM = 0.9  # a probability: from here on, little can raise it
ALL_IMAGES = slice(None)

VERDICTS = (
    "confirmed",
    "not specific",  # the same patch elsewhere does as much
    "not confirmed",  # painted alone, it does nothing that can be told from nothing
    "no control possible",  # the patch fits elsewhere too seldom
    "no room",  # it raises scores under masks, but of whole images they are at the top already
    "too few images",
    "untried",
)


@dataclass(frozen=True, eq=False)
class ClassFinding(ByContent):
    """A place where painting moves the score of a class, over its images."""

    target: int
    fill: int  # the strongest
    fills: tuple[int, ...]  # all that move the score the same way there
    sign: int  # +1 raises, -1 lowers
    region: BoolArray  # (R, R)
    effect: Figure  # of the strongest fill, under masks: mean map value over the region
    effects: tuple[Figure, ...]  # of each fill
    peak: float  # the largest mean map value there
    z: float  # its distance from zero in standard errors, as if there were many images
    place: str  # in words
    own: str  # the basic color that most images have there; empty: none, or not known
    own_share: float  # of the images that have it
    sentence: str
    verdict: str  # one of VERDICTS
    painted: tuple[int, ...] = ()  # the fills that it was tried with
    change: Figure | None = None  # of the score, the region painted in images of the other half
    control: Figure | None = None  # the same in whichever other place does most
    flipped: Figure | None = None  # share of decisions changed

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ClassFinding":
        figures = {
            name: Figure.from_json(data[name]) if data[name] else None
            for name in ("effect", "change", "control", "flipped")
        }
        arrays = {
            "region": region_of(data["region"]),
            "effects": tuple(map(Figure.from_json, data["effects"])),
            "fills": tuple(data["fills"]),
            "painted": tuple(data["painted"]),
        }
        return cls(**{**data, **figures, **arrays})


# ---- finding


@dataclass(frozen=True, eq=False)
class Candidate:
    """A region (R, R) and what the fills do there."""

    region: BoolArray
    sign: int
    z: float
    effects: NDArray[np.float64]  # (K,) means over the region

    @property
    def fill(self) -> int:
        return int((self.sign * self.effects).argmax())

    def shares(self, other: "Candidate") -> float:
        """What two regions have in common, over what they cover together."""
        both = (self.region & other.region).sum() / (self.region | other.region).sum()
        return float(both) if self.sign == other.sign else 0.0


def too_few(n: int, n_groups: int) -> str | None:
    """A sentence where there are not enough images for findings."""
    if n_groups >= FEWEST:
        return None
    if n == n_groups:
        images = f"{n} image{'s' if n > 1 else ''}"
        return f"Too few images: {images}, and {FEWEST} are needed ({FEWEST - n} more)."
    return (
        f"Too few images: {n} in {n_groups} group{'s' if n_groups > 1 else ''}, and images of "
        f"{FEWEST} groups are needed ({FEWEST - n_groups} more)."
    )


def largest_by_chance(looks: Looks, seed: int) -> NDArray[np.float64]:
    """The largest |z| of a class under each flip of signs."""
    return largest_by_flips(looks.tested, looks.group, (seed, looks.target))


def candidates(
    looks: Looks, limit: float, cell: tuple[int, int], some: BoolArray | slice = ALL_IMAGES
) -> list[Candidate]:
    """Where the mean map of some images exceeds a limit of |z|, highest first."""
    z = z_maps(looks.tested[some], looks.group[some])
    middle = looks.maps[some].mean(axis=0)
    return [
        Candidate(
            region,
            sign,
            float((sign * z[:, region]).max()),
            middle[:, region].mean(axis=1, dtype=np.float64),
        )
        for region, sign in find_regions(middle, z.astype(np.float32), limit, cell, LARGEST)
    ]


def describe(looks: Looks, found: Candidate) -> ClassFinding:
    """A candidate as a finding that nobody has tried."""
    inside = looks.maps[:, :, found.region].mean(axis=2, dtype=np.float64)  # (n, K)
    effects = tuple(effect for column in inside.T if (effect := mean(column, looks.group)))
    strength = found.sign * looks.maps[:, found.fill].mean(axis=0, dtype=np.float64)
    strength = np.where(found.region, strength, -np.inf)
    own, own_share = own_color(looks, strength >= CORE * strength.max())
    return ClassFinding(
        looks.target,
        found.fill,
        moving(effects, found.fill, found.sign),
        found.sign,
        found.region,
        effects[found.fill],
        effects,
        float(found.sign * strength.max()),
        found.z,
        place_of(found.region),
        own,
        own_share,
        "",
        "untried",
    )


def moving(effects: Sequence[Figure], main: int, sign: int) -> tuple[int, ...]:
    """The fills that move the score up (+1) or down (-1), by a quarter of the main one or more."""
    least = MINOR * abs(effects[main].value)
    return tuple(
        k
        for k, effect in enumerate(effects)
        if sign * effect.value >= least and (effect.excludes_zero or k == main)
    )


def own_color(looks: Looks, core: BoolArray) -> tuple[str, float]:
    """The basic color that most images have in a region, and the share of them that do."""
    if looks.pixels is None:
        return "", 0.0
    colors = np.rint(looks.pixels[:, core].mean(axis=1)).astype(np.uint8)  # (n, 3)
    code, times = Counter(basic_colors(colors[:, None]).ravel().tolist()).most_common(1)[0]
    return (BASICS[code] if times >= MOSTLY * len(looks) else ""), times / len(looks)


# ---- trying on the other half


@dataclass(frozen=True, eq=False)
class Attempt(ByContent):
    """A region that was found on one half of a class, to be painted in an image of the other."""

    key: str  # the same for all images in which the same is painted
    target: int
    image: int  # number in the audit
    half: int  # that the image belongs to
    fill: int
    sign: int  # what is expected
    region: BoolArray  # (R, R)
    controls: tuple[BoolArray, ...]  # (R, R) each: the same patch elsewhere


@dataclass(frozen=True)
class Answer:
    """What the model said to an attempt."""

    before: float  # score of the class
    after: float  # with the region painted
    predicted: int  # the class it then says
    controls: tuple[float, ...]  # scores of the class with the same patch in each other place


Answers = Mapping[tuple[int, str], Answer]  # by number of the image and key of the attempt


def half_of(group: IntArray, seed: int) -> IntArray:
    """0 or 1 for each image (n,): two halves of the groups, each group whole."""
    codes, place = np.unique(group, return_inverse=True)
    order = np.random.default_rng((seed, len(codes))).permutation(len(codes))
    return np.asarray(order[place.ravel()] % 2, np.int64)


def regions_to_try(looks: Looks, asked: Asked, seed: int) -> list[Attempt]:
    """What to paint in which images, so that the findings of a class can be confirmed.

    More are tried than are told in the end: here a class is alone, and its findings have to exceed
    what chance shows in one class, not in all.
    """
    if too_few(len(looks), len(np.unique(looks.group))):
        return []
    limit = threshold(largest_by_chance(looks, seed))
    found = candidates(looks, limit, asked.cell)
    return [attempt for _, one in tries(looks, asked, found, seed) for attempt in one]


def tries(
    looks: Looks, asked: Asked, found: Sequence[Candidate], seed: int
) -> Iterator[tuple[int, list[Attempt]]]:
    """For each of the regions found on all images, by number: what to paint in either half."""
    if not found:
        return
    half = half_of(looks.group, seed)
    for own in (0, 1):
        again = candidates(looks, LENIENT, asked.cell, half != own)
        for number, whole in enumerate(found):
            same = max(again, key=whole.shares, default=None)
            if same is None or whole.shares(same) < SAME:
                continue  # half of the images do not show it
            places = control_places(same, [one.region for one in found], asked.cell)
            key = digest(looks.target, same, places)
            images = tried_images(looks, half == own, seed)
            yield (
                number,
                [
                    Attempt(key, looks.target, n, own, same.fill, same.sign, same.region, places)
                    for n in images
                ],
            )


def tried_images(looks: Looks, some: BoolArray, seed: int) -> list[int]:
    """The numbers of at most MAX_TRIED of some images."""
    numbers = looks.image[some]
    chosen = np.random.default_rng((seed, looks.target)).permutation(len(numbers))[:MAX_TRIED]
    return sorted(numbers[chosen].tolist())


def control_places(
    found: Candidate, taken: Sequence[BoolArray], cell: tuple[int, int]
) -> tuple[BoolArray, ...]:
    """The same patch elsewhere, as far from all findings as there is room; none if there is none.

    A map spreads over a cell, so next to a finding is not elsewhere: first a border of one cell is
    kept free, then of half a cell, then none.
    """
    for border in (1.0, 0.5, 0.0):
        down, across = (int(border * side) for side in cell)
        places = elsewhere(found.region, [widened(one, (down, across)) for one in taken], cell)
        if len(places) >= FEWEST_PLACES:
            return tuple(places)
    return ()


def digest(target: int, found: Candidate, places: Sequence[BoolArray]) -> str:
    content = hashlib.sha256(f"{target} {found.fill} {found.sign}".encode())
    for region in (found.region, *places):
        content.update(np.packbits(region).tobytes())
    return content.hexdigest()[:16]


@dataclass(frozen=True)
class Confirmation:
    """What painting a finding came to."""

    verdict: str  # one of VERDICTS
    painted: tuple[int, ...] = ()
    change: Figure | None = None
    control: Figure | None = None
    flipped: Figure | None = None


def confirm(looks: Looks, attempts: Sequence[Attempt], answers: Answers) -> Confirmation:
    """Whether a finding holds in images that had no part in it.

    Confirmed: the score moves as expected (95 %), and by more than with the same patch in any of
    the other places (95 %, of the difference within images to the place that does most).
    """
    said = [
        (one, answers[one.image, one.key]) for one in attempts if (one.image, one.key) in answers
    ]
    if not said:  # where there was nothing to try, neither half of the images shows it
        return Confirmation("untried" if attempts else "not confirmed")
    row = {number: n for n, number in enumerate(looks.image.tolist())}
    rows = np.array([row[one.image] for one, _ in said])
    group, sign = looks.group[rows], said[0][0].sign
    painted = tuple(sorted({one.fill for one, _ in said}))
    before = np.array([answer.before for _, answer in said])
    changes = np.array([answer.after for _, answer in said]) - before
    change = mean(changes, group)
    assert change is not None
    after = np.array([answer.predicted for _, answer in said])
    flipped = share(after != looks.predicted[rows], group)
    if len(np.unique(group)) < FEWEST // 2:
        return Confirmation("too few images", painted, change, None, flipped)
    there = strongest_control(said, before)
    control = mean(there, group)
    if not (sign * change.value > 0 and change.excludes_zero):
        full = sign > 0 and NO_ROOM <= before.mean() <= 1
        return Confirmation(
            "no room" if full else "not confirmed", painted, change, control, flipped
        )
    beyond = mean(sign * (changes - there), group)
    if beyond is None:
        return Confirmation("no control possible", painted, change, None, flipped)
    verdict = "confirmed" if beyond.low > 0 else "not specific"
    return Confirmation(verdict, painted, change, control, flipped)


def strongest_control(
    said: Sequence[tuple[Attempt, Answer]], before: FloatArray
) -> NDArray[np.float64]:
    """The changes (n,) in that control place which does most in the direction of the finding.

    The halves have regions and places of their own, so each has its own strongest; NaN where the
    patch fits nowhere else.
    """
    there = np.full(len(said), np.nan)
    keys = np.array([one.key for one, _ in said])
    for key in set(keys.tolist()):
        own = np.flatnonzero(keys == key).tolist()
        moved = np.array([said[n][1].controls for n in own]) - before[own][:, None]
        if moved.size:
            there[own] = moved[:, int((said[own[0]][0].sign * moved.mean(axis=0)).argmax())]
    return there


# ---- the words


def finding_sentence(finding: ClassFinding, asked: Asked) -> str:
    """What a class depends on at a place, and what came of trying it."""
    label, share_ = repr(asked.label(finding.target)), 100 * finding.region.mean()
    verb = "raises" if finding.sign > 0 else "lowers"
    own = f", {finding.own} in {100 * finding.own_share:.0f} % of the images" if finding.own else ""
    opposed = moving(finding.effects, finding.fill, -finding.sign)
    but = f", {names(asked, opposed)} {'lowers' if finding.sign > 0 else 'raises'} it"
    return (
        f"{sentence_case(finding.place)} ({share_:.0f} % of the image{own}): under masks painting "
        f"it {names(asked, finding.fills)} {verb} {label} by {size(finding.effect)} "
        f"({finding.effect.n} images){but * bool(opposed)}. {trial_sentence(finding, asked)}"
    )


def trial_sentence(finding: ClassFinding, asked: Asked) -> str:
    if finding.change is None:
        more = ": neither half of the images shows it alone" * (finding.verdict != "untried")
        return f"{sentence_case(finding.verdict)}{more}."
    change, flipped = finding.change, finding.flipped
    moved = "rises" if change.value > 0 else "falls"
    told = (
        f"{sentence_case(finding.verdict)}: painted {names(asked, finding.painted)} in "
        f"{change.n} images not used to find it, the score {moved} by {size(change)}"
    )
    if finding.control:
        told += f", with the same patch elsewhere by at most {signed(finding.control, change)}"
    if flipped:
        told += f"; {100 * flipped.value:.0f} % of decisions change"
    return f"{told}."


def names(asked: Asked, fills: Sequence[int]) -> str:
    """`red, green or blue`."""
    if len(fills) == len(asked.fills) > 3:
        return f"any of the {len(fills)} colors"
    return join([asked.fills[k] for k in fills], "or")


def size(figure: Figure) -> str:
    """`0.21 [0.19, 0.23]`, without the sign of the value."""
    ends = sorted((figure.low, figure.high) if figure.value >= 0 else (-figure.high, -figure.low))
    sides = f" [{ends[0]:.2g}, {ends[1]:.2g}]" if np.isfinite(ends).all() else ""
    return f"{abs(figure.value):.2g}{sides}"


def signed(figure: Figure, like: Figure) -> str:
    """How much in the direction of another: `0.03`, `-0.01`."""
    return f"{figure.value * (1 if like.value >= 0 else -1):.2g}"
