"""Reading: what maps say, in regions and sentences. Rules, then regions, then words.

Two standard errors find something in pure noise every time one looks at thousands of pixels. So a
region counts only when it exceeds what the largest value of a map would be if the scores had
nothing to do with the masks, which shuffling the scores tells without calling the model. Then the
paper's rules (section 4.2, "Interpretation") are applied to the mean of each fill's map over the
region. That mean is the effect of a patch of about two cells while others are painted too; what
painting the whole region does is only known by trying: `whatif`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError
from .estimate import blur_by_cell, centers, contrast, drawing_shape
from .fills import LUMA, Fill
from .images import unit_float
from .maps import Maps
from .masks import Masks, Plan
from .record import DEFAULT, Record
from .smooth import POOL

N_SHUFFLES = 200
CONFIDENCE = 0.95
MOST_FINDINGS = 5
SMALLEST = 0.25  # cells; a smaller region is not reported
SURE = 1.3  # margins; wider than one, since every region is judged for several fills
MINOR = 0.25  # of the region's strongest effect: below it, a fill is not said to move the score
ALIKE = 0.5  # of the same: if certainly below it, a fill leaves the score about as it is
LINEAR = 0.9  # share of the variance over colors that brightness must explain to be the reason

# What a fill that is not a color does, and what of the image it takes away.
DEEDS = {
    "blur": ("blurring this part", "sharpness"),
    "gray": ("taking the color out of this part", "saturation"),
    "hue": ("turning the hue of this part by {fill.degrees:g} degrees", "hue"),
    "noise": ("covering this part with noise", "texture"),
    "picture": ("showing {fill.label} in this part", "content"),
}


@dataclass(frozen=True)
class Effect:
    """What a patch of one fill does on average within a region."""

    fill: Fill
    value: float  # in units of score
    margin: float  # half of the 95 % interval
    verdict: str  # "raises", "lowers", "leaves" (about as it is), or "open" (not established)


@dataclass(frozen=True)
class Finding:
    """A region, and what the rules say of it."""

    region: NDArray[np.bool_]  # (H, W)
    place: str
    kind: str  # "missing color", "texture matters", ...
    direction: int  # of the strongest effect: +1 raises, -1 lowers
    effects: tuple[Effect, ...]  # one per fill
    sentence: str

    @property
    def share(self) -> float:
        """Of the image."""
        return float(self.region.mean())

    @property
    def strongest(self) -> Effect:
        return max(self.effects, key=lambda effect: self.direction * effect.value)

    def mover(self, direction: int) -> Effect | None:
        """The effect that moves the score most in a direction, if any is established."""
        verdict = "raises" if direction > 0 else "lowers"
        movers = [effect for effect in self.effects if effect.verdict == verdict]
        return max(movers, key=lambda effect: abs(effect.value), default=None)

    def to_json(self) -> dict[str, Any]:
        rows, cols = (np.flatnonzero(self.region.any(axis=axis)) for axis in (1, 0))
        return {
            "place": self.place,
            "share": self.share,
            "box": [int(rows[0]), int(cols[0]), int(rows[-1]) + 1, int(cols[-1]) + 1],
            "kind": self.kind,
            "fill": self.strongest.fill.name,
            "effect": self.strongest.value,
            "effects": [
                {"fill": e.fill.name, "value": e.value, "margin": e.margin, "verdict": e.verdict}
                for e in self.effects
            ],
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class Reading:
    """The findings about one class, strongest first, and what is not established."""

    maps: Maps
    limit: float  # the largest effect that chance alone would show in one map of twenty
    findings: tuple[Finding, ...]
    pending: str

    def lines(self, tried: Sequence[str] = ()) -> list[str]:
        """To print: each finding, followed by what came of trying it where that is known."""
        out = [f"Reading of {self.maps.label!r} (± is a 95 % interval):"]
        for i, found in enumerate(self.findings):
            out.append(f"{i + 1}. {found.sentence}")
            out += [f"   {line}" for line in tried[i : i + 1]]
        return [*out, *([] if self.findings else ["No finding."]), self.pending]

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.maps.target,
            "label": self.maps.label,
            "limit": self.limit,
            "findings": [found.to_json() for found in self.findings],
            "not_established": self.pending,
        }


def read(record: Record, target: int | str | None = None, estimator: str = DEFAULT) -> Reading:
    """Read the maps of one class: its index or label, or None for the image's top class."""
    maps = record.maps(target, estimator)
    if not maps.fills:
        raise InputError(
            f"The estimator {estimator!r} gives one map over all fills, but a reading needs one "
            "per fill: choose centered."
        )
    tested, limit = what_counts(record, maps)
    regions = find_regions(maps.values, tested.values, limit, record.plan.cell)
    found = [describe(maps, region, direction) for region, direction in regions]
    found.sort(key=lambda finding: -abs(finding.strongest.value))
    return Reading(maps, limit, tuple(found), pending(maps, found, limit))


# ---- what counts


def what_counts(record: Record, maps: Maps) -> tuple[Maps, float]:
    """Maps to be held against chance, and the limit that their largest |value| must exceed.

    Smooth maps have a limit of their own, about half as high. Where few classes decide on their
    prior, it was fitted to the very scores in question, and shuffling these afterwards no longer
    tells what chance does: then the centered maps must exceed theirs.
    """
    if maps.estimator == "smooth" and record.n_classes >= POOL:
        by_chance = record.fit().by_chance(maps.target, N_SHUFFLES)
        if by_chance is not None:
            peaks, rest = by_chance
            through_residual = chance_limit(record.plan, record.masks(), rest)
            return maps, math.hypot(float(np.quantile(peaks, CONFIDENCE)), through_residual)
    limit = chance_limit(record.plan, record.masks(), record.scores_of(maps.target))
    return record.maps(maps.target, "centered"), limit


def chance_limit(plan: Plan, masks: Masks, scores: NDArray[np.float64]) -> float:
    """The 95 % point of the largest |value| of the centered maps if scores ignored the masks.

    All pixels and fills have the same variance by construction of the masks, so their values
    compare as they are. Maps are smooth over a cell: four points a cell each way are enough.
    """
    from scipy.sparse import csr_array

    fine = np.minimum(plan.cell, 4)
    coarse = replace(plan, size=(fine[0] * plan.grid[0], fine[1] * plan.grid[1]))
    place = centers(coarse, Masks(masks.cells, masks.shifts * fine // plan.cell))
    shape, n_masks = drawing_shape(coarse), len(scores)
    ones, starts = np.ones(place.size, np.float32), np.arange(0, place.size + 1, place.shape[1])
    cells = csr_array((ones, place.ravel(), starts), shape=(n_masks, math.prod(shape)))
    centered = (scores - scores.mean()) / (n_masks - 1)
    shuffle = np.random.default_rng(plan.seed).permuted
    largest: list[float] = []
    while len(largest) < N_SHUFFLES:
        some = np.tile(centered.astype(np.float32), (20, 1))
        sums = (cells.T @ shuffle(some, axis=1).T).T.astype(np.float64)  # (20, pixels)
        means = blur_by_cell(coarse, sums.reshape(-1, *shape[1:]))
        for one in means.reshape(20, shape[0], *coarse.size):
            largest.append(float(np.abs(contrast(coarse, one, 0.0)).max()))
    return max(float(np.quantile(largest, CONFIDENCE)), 1e-6)


def find_regions(
    values: NDArray[np.float32],
    tested: NDArray[np.float32],
    limit: float,
    cell: tuple[int, int],
) -> Iterator[tuple[NDArray[np.bool_], int]]:
    """Regions (H, W) where some fill raises (+1) or lowers (-1) the score, highest peak first.

    A peak counts when a patch of the `tested` maps exceeds the limit. Its region is what is joined
    to it in the maps to be read and at least half as high, so that it does not grow with the number
    of masks. A map spreads over about two cells, so a border of one cell around a region is no
    finding of its own.
    """
    from scipy.ndimage import binary_dilation, label

    read_sides, tested_sides = (
        np.stack([maps.max(axis=0), (-maps).max(axis=0)]) for maps in (values, tested)
    )  # (2, H, W) each
    border = np.ones((2 * cell[0] + 1, 2 * cell[1] + 1), bool)
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
            lobes, _ = label(free & (strength >= strength[top] / 2))
            region = lobes == lobes[top]
            n_found += 1
            yield region, 1 if side == 0 else -1
        free &= ~binary_dilation(region, border)
        free[*peak] = False  # in case it lies apart from its region


# ---- the rules


def describe(maps: Maps, region: NDArray[np.bool_], direction: int) -> Finding:
    """Apply the rules to the mean effects in a region."""
    values = maps.values[:, region].mean(axis=1)
    # Neighbouring pixels err together: the error of a mean is at most the mean of the errors.
    margins = 1.96 * maps.se[:, region].mean(axis=1)
    scale = float((direction * values).max())
    # The strongest is established by the region's own test; the others are judged next to it.
    moves = "raises" if direction > 0 else "lowers"
    effects = tuple(
        Effect(
            fill,
            float(value),
            float(margin),
            moves if direction * value == scale else judge(value, margin, scale),
        )
        for fill, value, margin in zip(maps.fills, values, margins, strict=True)
    )
    bare = Finding(region, place_of(region), "", direction, effects, "")
    kind = kind_of(bare, maps.image)
    return replace(bare, kind=kind, sentence=sentence(replace(bare, kind=kind), maps.label))


def judge(value: float, margin: float, scale: float) -> str:
    if abs(value) > max(SURE * margin, MINOR * scale):
        return "raises" if value > 0 else "lowers"
    return "leaves" if abs(value) + margin < ALIKE * scale else "open"


def kind_of(found: Finding, image: NDArray[Any]) -> str:
    """The rule that applies. Texture and color are told apart by what *all* colors do."""
    strongest = found.strongest.fill
    if strongest.kind in DEEDS:
        noun = DEEDS[strongest.kind][1]
        return f"{noun} matters" if found.direction < 0 else f"{noun} is an obstacle"
    colors = [effect for effect in found.effects if effect.fill.kind not in DEEDS]
    alike = "raises" if found.direction > 0 else "lowers"
    if len(colors) > 1 and all(effect.verdict == alike for effect in colors):
        return "texture is an obstacle" if found.direction > 0 else "texture matters"
    if any(effect.verdict not in (alike, "open") for effect in colors):
        if follows_brightness(colors, image):
            return "brightness matters"
        return "missing color" if found.direction > 0 else "own color matters"
    return "an obstacle" if found.direction > 0 else "matters"


def follows_brightness(effects: Sequence[Effect], image: NDArray[Any]) -> bool:
    """Whether the brightness of the colors explains their effects."""
    if len(effects) < 4:  # a line through three points proves nothing
        return False
    whole = unit_float(image)
    luma = [float((effect.fill.render(whole) @ LUMA).mean()) for effect in effects]
    values = [effect.value for effect in effects]
    if np.ptp(luma) < 0.5 or np.ptp(values) == 0:
        return False
    return float(np.corrcoef(luma, values)[0, 1]) ** 2 >= LINEAR


def place_of(region: NDArray[np.bool_]) -> str:
    """Where a region lies, in words."""
    if region.mean() > 0.6:
        return "most of the image"
    height, width = region.shape
    middle = np.argwhere(region).mean(axis=0)
    down, across = 2 * (middle + 0.5) / (height, width) - 1  # -1..1 from top left
    if max(abs(down), abs(across)) < 1 / 3:
        rows, cols = (int(m) for m in middle)
        reach = math.ceil(min(height, width) / 16)
        heart = region[rows - reach : rows + reach + 1, cols - reach : cols + reach + 1]
        return "center" if heart.mean() > 0.5 else "around the center"
    words = []
    if abs(down) >= 1 / 3:
        words.append("upper" if down < 0 else "lower")
    if abs(across) >= 1 / 3:
        words.append("left" if across < 0 else "right")
    words.append("rim" if max(abs(down), abs(across)) > 2 / 3 else "part")
    return " ".join(words)


# ---- the words

MEANINGS = {
    "texture matters": "Whatever the color, covering it hurts: its texture matters.",
    "texture is an obstacle": "Whatever the color, covering it helps: its texture is an obstacle.",
    "own color matters": "Its color matters{alike}.",
    "missing color": "The model misses {colors} here.",
    "brightness matters": "Its brightness matters, not its hue.",
    "matters": "It matters; whether by its color or its texture is not established.",
    "an obstacle": "It is an obstacle; whether by its color or its texture is not established.",
}


def sentence(found: Finding, label: str) -> str:
    """What the map says of a region."""
    main, other = ("raises", "lowers") if found.direction > 0 else ("lowers", "raises")
    clauses: list[str] = []
    for verdict in (main, other, "leaves"):
        for subject, group in subjects(found.effects, verdict):
            what = "it" if clauses else repr(label)
            rest = "about as it is" if verdict == "leaves" else f"by {amount(group)} on average"
            clauses.append(f"{subject} {verdict} {what} {rest}")
    where = found.place[0].upper() + found.place[1:]
    share = f"{100 * found.share:.0f} % of the image"
    return f"{where} ({share}): {'; '.join(clauses)}. {meaning(found, main)}"


def subjects(effects: Sequence[Effect], verdict: str) -> Iterator[tuple[str, list[Effect]]]:
    """The colors of a verdict together, and each other fill by what it does."""
    if colors := colors_that(verdict, effects):
        yield f"a patch of {join([effect.fill.name for effect in colors], 'or')}", colors
    for effect in effects:
        if effect.verdict == verdict and effect.fill.kind in DEEDS:
            yield DEEDS[effect.fill.kind][0].format(fill=effect.fill), [effect]


def colors_that(verdict: str, effects: Sequence[Effect]) -> list[Effect]:
    """The colors of a verdict, strongest first."""
    colors = [e for e in effects if e.verdict == verdict and e.fill.kind not in DEEDS]
    return sorted(colors, key=lambda effect: -abs(effect.value))


def meaning(found: Finding, main: str) -> str:
    if found.strongest.fill.kind in DEEDS:
        return f"Its {found.kind}."
    colors, alike = (
        join([effect.fill.name for effect in colors_that(verdict, found.effects)], "or")
        for verdict in (main, "leaves")
    )
    return MEANINGS[found.kind].format(
        colors=colors, alike=f": {alike} is as good as the original" if alike else ""
    )


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


def join(words: Sequence[str], conjunction: str) -> str:
    """`red, green or blue`."""
    return f" {conjunction} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
