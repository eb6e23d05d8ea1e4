"""Findings of a class: where the mean of its images' maps exceeds chance.

A place counts when |z| of the mean map exceeds what the largest |z| over all classes, fills and
places would be by chance, which flipping the signs of images tells. Maps are of `centered`: linear
in the scores, so their noise averages out over images and few masks an image are enough.
`smooth` is not pooled: its maps are shrunken towards zero, those of unclear images most, and that
does not average out, so a class of few masks would seem to depend on less than it does.

Whether it holds when it is painted by itself, the attempts tell.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..colors import BASICS, basic_colors
from ..interpretation.claims import join, sentence_case
from ..interpretation.regions import MINOR, find_regions, place_of
from .class_data import AuditInfo, BoolArray, ClassData, FloatArray, IntArray
from .stats import Estimate, bonferroni, largest_by_flips, mean, z_maps

FEWEST = 12  # images, or groups of them: with fewer, flipping signs can tell nothing
LARGEST = 0.1  # of the image: a region that is larger fits nowhere else as a control
TOLD = 2.0  # |z| of a fill that is told from nothing
CORE = 0.8  # of the peak: where the own color of a place is looked at
MOSTLY = 0.5  # of the images have it: then a place has a color of its own
ALL_IMAGES = slice(None)

VERDICTS = (
    "confirmed",
    "under masks only",  # painted by itself it does no more than the same patch elsewhere
    "not specific",  # the same patch elsewhere does as much
    "not confirmed",  # painted alone, it does nothing that can be told from nothing
    "no control possible",  # the patch fits elsewhere too seldom
    "no room",  # it raises scores under masks, but of whole images they are at the top already
    "too few images",
    "untried",
)


@dataclass(frozen=True, eq=False)
class ClassFinding(ArrayEq):
    """A place where painting moves the score of a class, over its images."""

    target: int
    fill: int  # the strongest
    fills: tuple[int, ...]  # all that move the score the same way there
    sign: int  # +1 raises, -1 lowers
    region: BoolArray  # (R, R)
    effect: Estimate  # of the strongest fill, under masks: mean map value over the region
    effects: tuple[Estimate, ...]  # of each fill
    peak: float  # the largest mean map value there
    z: float | None  # distance from zero in standard errors; None: not found by maps but given,
    #                  and the effects are of painting all of it
    place: str  # in words
    own: str  # the basic color that most images have there; empty: none, or not known
    own_share: float  # of the images that have it
    sentence: str
    verdict: str  # one of VERDICTS
    painted: tuple[int, ...] = ()  # the fills that it was tried with
    change: Estimate | None = None  # of the score, painted in images not used to find it
    control: Estimate | None = None  # the same in whichever other place does most
    flipped: Estimate | None = None  # share of decisions changed

    @property
    def weight(self) -> float:
        """What findings are ordered by: what painting it by itself does, where that was tried."""
        return abs((self.change or self.effect).value)

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"the verdict {self.verdict!r:.60}")


# ---- finding


@dataclass(frozen=True, eq=False)
class Candidate:
    """A region (R, R) and what the fills do there."""

    region: BoolArray
    sign: int
    z: float
    effects: NDArray[np.float64]  # (K,) means over the region
    told: BoolArray  # (K,) which of them move the score this way, and not by noise

    @property
    def fill(self) -> int:
        """The one that does most: of those that are told, else it might be the noisiest."""
        return int(np.where(self.told, self.sign * self.effects, -np.inf).argmax())

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


def largest_by_chance(class_data: ClassData, seed: int) -> NDArray[np.float64]:
    """The largest |z| of a class under each flip of signs."""
    return largest_by_flips(class_data.tested, class_data.group, (seed, class_data.target))


def candidates(
    class_data: ClassData, limit: float, cell: tuple[int, int], some: BoolArray | slice = ALL_IMAGES
) -> list[Candidate]:
    """Where the mean map of some images exceeds a limit of |z|, highest first."""
    maps, group = class_data.maps[some], class_data.group[some]
    z = z_maps(class_data.tested[some], group)
    regions = find_regions(maps.mean(axis=0), z.astype(np.float32), limit, cell, LARGEST)
    return [candidate(region, z, effects_in(region, maps, group)) for region, _ in regions]


def candidate(region: BoolArray, z: FloatArray, stats: Sequence[Estimate]) -> Candidate:
    """A region and the way that the score moves most there.

    Where one fill raises it and another lowers it, the surest one need not be the one that matters:
    that a region counts is known from it, so another only has to be told from nothing, at some
    place of the region and on average over it, in spite of how many fills there are.
    """
    effects = np.array([estimate.value for estimate in stats])
    ways = np.where(effects < 0, -1, 1)
    highest = np.abs(z[:, region]).max(axis=1)
    told = (ways[:, None] * z[:, region]).max(axis=1) > TOLD
    told &= [bonferroni(estimate, len(stats)).excludes_zero for estimate in stats]
    told[highest.argmax()] = True
    sign = int(ways[np.where(told, np.abs(effects), -1.0).argmax()])
    return Candidate(region, sign, float(highest.max()), effects, told & (ways == sign))


def effects_in(region: BoolArray, maps: FloatArray, group: IntArray) -> tuple[Estimate, ...]:
    """Of each fill: the mean over a region of the maps (n, K, R, R) of images."""
    inside = maps[:, :, region].mean(axis=2, dtype=np.float64)  # (n, K)
    return tuple(effect for column in inside.T if (effect := mean(column, group)))


def describe(class_data: ClassData, found: Candidate) -> ClassFinding:
    """A candidate as a finding that nobody has tried."""
    effects = effects_in(found.region, class_data.maps, class_data.group)
    strength = found.sign * class_data.maps[:, found.fill].mean(axis=0, dtype=np.float64)
    strength = np.where(found.region, strength, -np.inf)
    own, own_share = own_color(class_data, strength >= CORE * strength.max())
    return ClassFinding(
        class_data.target,
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


def moving(effects: Sequence[Estimate], main: int, sign: int) -> tuple[int, ...]:
    """The fills that move the score up (+1) or down (-1), by a quarter of the main one or more."""
    least = MINOR * abs(effects[main].value)
    return tuple(
        k
        for k, effect in enumerate(effects)
        if sign * effect.value >= least and (effect.excludes_zero or k == main)
    )


def own_color(class_data: ClassData, core: BoolArray) -> tuple[str, float]:
    """The basic color that most images have in a region, and the share of them that do."""
    if class_data.pixels is None:
        return "", 0.0
    colors = np.rint(class_data.pixels[:, core].mean(axis=1)).astype(np.uint8)  # (n, 3)
    code, times = Counter(basic_colors(colors[:, None]).ravel().tolist()).most_common(1)[0]
    return (BASICS[code] if times >= MOSTLY * len(class_data) else ""), times / len(class_data)


# ---- the words


def finding_sentence(finding: ClassFinding, info: AuditInfo) -> str:
    """What a class depends on at a place, and what came of trying it."""
    label, share_ = repr(info.label(finding.target)), 100 * finding.region.mean()
    verb = "raises" if finding.sign > 0 else "lowers"
    own = f", {finding.own} in {100 * finding.own_share:.0f}% of the images" if finding.own else ""
    opposed = moving(finding.effects, finding.fill, -finding.sign)
    but = f", {names(info, opposed)} {'lowers' if finding.sign > 0 else 'raises'} it"
    return (
        f"{sentence_case(finding.place)} ({share_:.0f}% of the image{own}): under random masks, "
        f"painting it {names(info, finding.fills)} {verb} {label} by {size(finding.effect)} "
        f"({finding.effect.n} images){but * bool(opposed)}. {trial_sentence(finding, info)}"
    )


def trial_sentence(finding: ClassFinding, info: AuditInfo) -> str:
    if finding.verdict == "under masks only":
        return "Painted alone, it does not do significantly more than the same patch elsewhere."
    if finding.change is None:
        return f"{sentence_case(finding.verdict)}."
    change, flipped = finding.change, finding.flipped
    painted, moved = names(info, finding.painted), "rises" if change.value > 0 else "falls"
    said = (
        f"{sentence_case(finding.verdict)}: painted {painted} in images that it was not found on "
        f"({change.n} images), the score {moved} by {size(change)}"
    )
    if finding.control:
        said += f", with the same patch elsewhere by {signed(finding.control, change)} at most"
    if flipped:
        said += f"; {100 * flipped.value:.0f}% of decisions change"
    return f"{said}."


def names(info: AuditInfo, fills: Sequence[int]) -> str:
    """`red, green or blue`."""
    if len(fills) == len(info.fills) > 3:
        return f"any of the {len(fills)} colors"
    return join([info.fills[k] for k in fills], "or")


def size(estimate: Estimate) -> str:
    """`0.21 [0.19, 0.23]`, without the sign of the value."""
    ends = sorted(
        (estimate.low, estimate.high) if estimate.value >= 0 else (-estimate.high, -estimate.low)
    )
    sides = f" [{ends[0]:.2g}, {ends[1]:.2g}]" if np.isfinite(ends).all() else ""
    return f"{abs(estimate.value):.2g}{sides}"


def signed(estimate: Estimate, like: Estimate) -> str:
    """How much in the direction of another: `0.03`, `-0.01`."""
    value = f"{estimate.value * (1 if like.value >= 0 else -1):.2g}"
    return "0" if float(value) == 0 else value
