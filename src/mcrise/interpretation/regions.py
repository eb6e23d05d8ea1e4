"""Regions: the areas of a map that exceed chance, and what the map says of them, untested.

A region counts only when it exceeds what the largest value of a map would be if the scores had
nothing to do with the masks (`chance`). The mean of each fill's map over it is the effect of a
patch of about two cells while others are painted too; what painting the whole region does, and why,
only a trial shows. So a sentence here is about the map and says that it is not tested.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..errors import InputError
from ..estimators import DEFAULT
from ..explanation import Explanation, Target
from ..fills import Fill
from ..maps import Maps
from .claims import in_words, join, sentence_case

MOST_FINDINGS = 5
SMALLEST = 0.25  # cells; a smaller region is not reported
SURE = 1.3  # margins; wider than one, since every region is judged for several fills
MINOR = 0.25  # of the region's strongest effect: below it, a fill is not said to move the score
ALIKE = 0.5  # of the same: if certainly below it, a fill leaves the score about as it is
PADS = ((1, 0), (0, 0)), ((0, 0), (1, 0))  # a row, or a column, before the first


@dataclass(frozen=True)
class Effect:
    """What a patch of one fill does on average within a region."""

    fill: Fill
    value: float  # in units of score
    margin: float  # half of the 95% interval
    verdict: str  # "raises", "lowers", "leaves" (about as it is), or "open" (not established)


@dataclass(frozen=True, eq=False)
class Finding(ArrayEq):
    """A region, and what each fill does there on average."""

    region: NDArray[np.bool_]  # (H, W)
    place: str  # in words: "the center"
    direction: int  # of the strongest effect: +1 raises, -1 lowers
    effects: tuple[Effect, ...]  # one per fill

    @property
    def share(self) -> float:
        """Of the image."""
        return float(self.region.mean())

    @property
    def strongest(self) -> Effect:
        return max(self.effects, key=lambda effect: self.direction * effect.value)

    @property
    def is_sure(self) -> bool:
        """Whether the interval of the strongest effect leaves out zero."""
        return abs(self.strongest.value) > self.strongest.margin

    @property
    def where(self) -> str:
        """Its place, to begin a sentence with."""
        return f"{sentence_case(self.place)} ({100 * self.share:.0f}% of the image)"

    def line(self, label: str) -> str:
        """What the map says of it, and no more."""
        main, other = ("raises", "lowers") if self.direction > 0 else ("lowers", "raises")
        clauses: list[str] = []
        for verdict in (main, other, "leaves"):
            for subject, group in subjects(self.effects, verdict):
                what = "it" if clauses else repr(label)
                rest = "about as it is" if verdict == "leaves" else f"by {amount(group)} on average"
                clauses.append(f"{subject} {verdict} {what} {rest}")
        return f"{self.where}: under masks {'; '.join(clauses)} (not tested)."

    def to_json(self) -> dict[str, Any]:
        rows, cols = (np.flatnonzero(self.region.any(axis=axis)) for axis in (1, 0))
        return {
            "place": self.place,
            "share": self.share,
            "box": [int(rows[0]), int(cols[0]), int(rows[-1]) + 1, int(cols[-1]) + 1],
            "fill": self.strongest.fill.name,
            "effect": self.strongest.value,
            "effects": [
                {"fill": e.fill.name, "value": e.value, "margin": e.margin, "verdict": e.verdict}
                for e in self.effects
            ],
        }


@dataclass(frozen=True, eq=False)
class Interpretation(ArrayEq):
    """The findings about one class, strongest first, and what is not established."""

    maps: Maps
    limit: float  # the largest effect that chance alone would show in one map of twenty
    findings: tuple[Finding, ...]
    pending: str

    def lines(self) -> list[str]:
        """To print: what the maps say, not tested."""
        found = [f"{n}. {one.line(self.maps.label)}" for n, one in enumerate(self.findings, 1)]
        return [heading(self.maps), *(found or ["No finding."]), self.pending]

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.maps.target,
            "label": self.maps.label,
            "limit": self.limit,
            "findings": [
                {**one.to_json(), "sentence": one.line(self.maps.label)} for one in self.findings
            ],
            "not_established": self.pending,
        }


def heading(maps: Maps) -> str:
    return f"What the maps say of {maps.label!r} (± is a 95% interval):"


def interpret(
    explanation: Explanation,
    target: Target = None,
    estimator: str = DEFAULT,
    against: Target = None,
    unsure: bool = False,
) -> Interpretation:
    """Read the maps of one class: its index or label, or None for the image's top class.

    With `against`, those of its score less that of this other class. With `unsure`, also regions
    that exceed chance but whose effect has an interval that holds zero: to be tested by repainting.
    """
    maps = explanation.maps(target, estimator, against)
    if not maps.fills:
        raise InputError(
            f"The estimator {estimator!r} gives one map over all fills, but a reading needs one "
            "per fill: choose centered."
        )
    chance = explanation.chance(maps)
    regions = find_regions(maps.values, chance.values, chance.limit, explanation.plan.cell)
    there = [describe(maps, region, direction) for region, direction in regions]
    there.sort(key=lambda finding: -abs(finding.strongest.value))
    found = [finding for finding in there if unsure or finding.is_sure]
    open_to = max([chance.limit, *(abs(o.strongest.value) for o in there if o not in found)])
    maps = maps.beside(chance)
    return Interpretation(maps, chance.limit, tuple(found), pending(maps, found, open_to))


def find_regions(
    values: NDArray[np.float32],
    tested: NDArray[np.float32],
    limit: float,
    cell: tuple[int, int],
    largest: float = 1.0,
) -> Iterator[tuple[NDArray[np.bool_], int]]:
    """Regions (H, W) where some fill raises (+1) or lowers (-1) the score, highest peak first.

    A peak counts when a patch of the `tested` maps exceeds the limit. Its region is what is joined
    to it in the maps to be read and at least half as high, so that it does not grow with the number
    of masks; less of it where that is more than the share `largest` of the image. A map spreads
    over about two cells, so a border of one cell around a region is no finding of its own.
    """
    from scipy.ndimage import label

    read_sides, tested_sides = (
        np.stack([maps.max(axis=0), -maps.min(axis=0)]) for maps in (values, tested)
    )  # (2, H, W) each
    free = np.ones(values.shape[1:], bool)
    n_found = 0
    while n_found < MOST_FINDINGS:
        side, *peak = np.unravel_index((tested_sides * free).argmax(), tested_sides.shape)
        if tested_sides[side][*peak] <= limit:
            return
        patches, _ = label(free & (tested_sides[side] > limit))
        region = patches == patches[*peak]
        strength = read_sides[side]
        top = np.unravel_index(np.where(region, strength, -np.inf).argmax(), strength.shape)
        if region.sum() >= SMALLEST * math.prod(cell) and strength[top] > 0:
            for height in (0.5, 0.6, 0.7, 0.8, 0.9):
                lobes, _ = label(free & (strength >= height * strength[top]))
                region = lobes == lobes[top]
                if region.mean() <= largest:
                    break
            n_found += 1
            yield region, 1 if side == 0 else -1
        free &= ~dilate(region, cell)
        free[*peak] = False  # in case it lies apart from its region


def dilate(region: NDArray[np.bool_], cell: tuple[int, int]) -> NDArray[np.bool_]:
    """A region (H, W) and a border of one cell around it, at a cost that no cell changes."""
    for axis, reach in enumerate(cell):
        # Sums run along: pixels i - reach to i + reach hold some of the region if it has grown.
        ends = np.pad(region.cumsum(axis=axis, dtype=np.int32), PADS[axis])
        n = region.shape[axis]
        high = np.minimum(np.arange(n) + reach + 1, n)
        low = np.maximum(np.arange(n) - reach, 0)
        region = ends.take(high, axis=axis) > ends.take(low, axis=axis)
    return region


# ---- the rules


def describe(maps: Maps, region: NDArray[np.bool_], direction: int) -> Finding:
    """Apply the rules to the mean effects in a region."""
    values = maps.values[:, region].mean(axis=1)
    # Neighbouring pixels err together: the error of a mean is at most the mean of the errors.
    margins = maps.half_width_95 * maps.se[:, region].mean(axis=1)
    scale = float((direction * values).max())
    # The strongest is established by the region's own test; the others are judged next to it.
    moves = "raises" if direction > 0 else "lowers"
    effects = tuple(
        Effect(
            fill,
            float(value),
            float(margin),
            moves if direction * value == scale else verdict_on(value, margin, scale),
        )
        for fill, value, margin in zip(maps.fills, values, margins, strict=True)
    )
    return Finding(region, place_of(region), direction, effects)


def verdict_on(value: float, margin: float, scale: float) -> str:
    if abs(value) > max(SURE * margin, MINOR * scale):
        return "raises" if value > 0 else "lowers"
    return "leaves" if abs(value) + margin < ALIKE * scale else "open"


def place_of(region: NDArray[np.bool_]) -> str:
    """Where a region lies, in words."""
    from scipy.ndimage import binary_fill_holes

    if region.mean() > 0.6:
        return "most of the image"
    height, width = region.shape
    middle = np.argwhere(region).mean(axis=0)
    down, across = 2 * (middle + 0.5) / (height, width) - 1  # -1..1 from top left
    if max(abs(down), abs(across)) < 1 / 3:
        rows, cols = (int(m) for m in middle)
        reach = math.ceil(min(height, width) / 16)
        heart = region[rows - reach : rows + reach + 1, cols - reach : cols + reach + 1]
        is_ring = heart.mean() <= 0.5 and binary_fill_holes(region)[rows, cols]
        return "a ring around the center" if is_ring else "the center"
    words = []
    if abs(down) >= 1 / 3:
        words.append("upper" if down < 0 else "lower")
    if abs(across) >= 1 / 3:
        words.append("left" if across < 0 else "right")
    is_corner = len(words) == 2 and min(abs(down), abs(across)) > 1 / 2
    outer = "corner" if is_corner else "part" if len(words) == 2 else "rim"
    words.append(outer if max(abs(down), abs(across)) > 2 / 3 else "part")
    return f"the {' '.join(words)}"


# ---- the words


def subjects(effects: Sequence[Effect], verdict: str) -> Iterator[tuple[str, list[Effect]]]:
    """The colors of a verdict together, and each other fill by what it does."""
    of_colors = [effect for effect in effects if effect.fill.is_color]
    if colors := [effect for effect in of_colors if effect.verdict == verdict]:
        colors.sort(key=lambda effect: -abs(effect.value))
        among = [effect.fill for effect in of_colors]
        yield f"a patch of {in_words([one.fill for one in colors], among, 'or')}", colors
    for effect in effects:
        if effect.verdict == verdict and not effect.fill.is_color:
            yield effect.fill.action_text, [effect]


def amount(effects: Sequence[Effect]) -> str:
    """`0.13 ± 0.01`, or `0.08 to 0.13 ± 0.02` for several: no more digits than are known."""
    low, high = min(abs(e.value) for e in effects), max(abs(e.value) for e in effects)
    margin = max(effect.margin for effect in effects)
    digits = min(max(1 - math.floor(math.log10(margin) + 1), 2), 6) if margin > 0 else 3
    first, last = f"{low:.{digits}f}", f"{high:.{digits}f}"
    span = last if first == last else f"{first} to {last}"
    return f"{span} ± {margin:.{digits}f}"


def pending(maps: Maps, found: Sequence[Finding], limit: float) -> str:
    """What is not established yet, and how many more masks would settle it."""
    open_fills = [
        f"{join([e.fill.name for e in finding.effects if e.verdict == 'open'], 'and')} in {i}"
        for i, finding in enumerate(found, start=1)
        if any(e.verdict == "open" for e in finding.effects)
    ]
    where = "elsewhere" if found else "anywhere"
    hidden = f"effects below {limit:.2g} {where}"
    more = f"{3 * maps.n_masks:,} more masks would halve this limit"
    if not open_fills:
        return f"Not established: {hidden}; {more}."
    # An effect counts as settled when its interval is half as wide as the line between verdicts.
    need = max(
        (2 * e.margin / (MINOR * abs(finding.strongest.value))) ** 2 - 1
        for finding in found
        for e in finding.effects
        if e.verdict == "open"
    )
    settle = 64 * math.ceil(max(need, 0.1) * maps.n_masks / 64)
    return (
        f"Not established: {'; '.join(open_fills)} (about {settle:,} more masks would settle it), "
        f"and {hidden} ({more})."
    )
