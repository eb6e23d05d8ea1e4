"""Examining: which repaints would tell whether a finding is true, and what their answers say.

A script is a generator: it yields repaints, gets the scores of each, and returns what can be said.
It is a pure function of the reading and of the answers, so that whoever has the answers (a record
that was tried before) needs no model, and a run that was cut short asks only for what is missing.

Every finding is painted with each color. To tell color from texture its own mean color is tried,
and to tell whether the place is special, the same patch elsewhere. A threshold has a margin on
either side where nothing is said: other edges, or a region a little beside, should not refute it.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fills import Fill, Gray, Solid
from ..images import unit_float
from .claims import CLAIM_KINDS, Claim
from .regions import Finding
from .repaints import (
    Region,
    Repaint,
    Stroke,
    beside,
    elsewhere,
    own_mean,
    shuffled,
    tinted,
    turned_hue,
)

LOST, KEPT = 0.15, 0.93  # of the score: more is certainly lost, more is certainly kept
LEAST_FALL, LEAST_RISE = 0.03, 0.065  # of the range of scores: less does not matter
FEWEST_PLACES = 9  # to compare with: with fewer, being beyond all of them says little
MOST_COLORS = 6  # tried on a finding
PLACES_AT_ONCE = 5  # the first that does as much decides, and the rest need not be asked
NEAR = 0.7  # distance in color space, of at most 1.7: a color further away is another one


@dataclass(frozen=True, eq=False)
class FindingContext:
    """What all scripts of a reading share."""

    image: NDArray[Any]  # (H, W, 3)
    cell: tuple[int, int]
    fills: tuple[Fill, ...]
    target: int
    before: NDArray[np.float32]  # (C,) scores of the untouched image
    range: float  # of scores
    regions: tuple[Region, ...]  # of all findings

    @property
    def score(self) -> float:
        return float(self.before[self.target])

    @property
    def share(self) -> float:
        """What a share of the score is taken of: of scores of any kind, their range."""
        return abs(self.score) if self.range == 1 else self.range

    def falls(self, after: float) -> bool:
        return self.score - after >= max(LOST * self.share, LEAST_FALL * self.range)

    def rises(self, after: float) -> bool:
        return after - self.score >= max(LOST * self.share, LEAST_RISE * self.range)

    def keeps(self, after: float) -> bool:
        return after >= self.score - (1 - KEPT) * self.share

    def all_of(self, *after: float) -> frozenset[str]:
        """Which of the three all these scores do."""
        kinds = {"keeps": self.keeps, "falls": self.falls, "rises": self.rises}
        return frozenset(name for name, does in kinds.items() if all(map(does, after)))

    def stays(self, after: float) -> bool:
        return abs(after - self.score) <= (1 - KEPT) * max(self.share, 0.2 * self.range)


@dataclass(frozen=True, eq=False)
class PlaceboControl:
    """The same repaint in other places."""

    fill: Fill
    before: float  # score of the untouched image
    here: float
    there: tuple[float, ...]  # scores, in the order tried
    verdict: str  # "confirmed": beyond all others; "not specific"; or "no control possible"

    @property
    def most(self) -> float:
        """The score where another place does most of what is done here."""
        down = self.here < self.before
        return min(self.there) if down else max(self.there)

    def to_json(self) -> dict[str, Any]:
        low, middle, high = np.quantile(self.there, [0, 0.5, 1]) if self.there else [None] * 3
        return {"fill": self.fill.name, "here": self.here, "verdict": self.verdict,
                "places": len(self.there), "low": low, "median": middle, "high": high}  # fmt: skip


@dataclass(frozen=True, eq=False)
class FindingOutcome:
    """What trying a finding came to."""

    finding: Finding
    before: float
    after: Mapping[Fill, float]  # score under each fill tried
    own_color: Solid  # the region's own mean color
    own_mean: float  # score under it
    mixed: float  # score under the region's own pixels, shuffled
    claims: tuple[Claim, ...]
    control: PlaceboControl | None = None

    @property
    def confirmed(self) -> bool:
        return self.control is not None and self.control.verdict == "confirmed"

    @property
    def moved(self) -> bool:
        """Whether painting it alone moves the score enough to matter."""
        return self.control is not None

    def claim(self, kind: str) -> Claim | None:
        return next((claim for claim in self.claims if claim.kind == kind), None)

    def to_json(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": {fill.name: score for fill, score in self.after.items()},
            "own_color": self.own_color.name,
            "own_mean": self.own_mean,
            "shuffled": self.mixed,
            "claims": [claim.to_json() for claim in self.claims],
            "control": self.control.to_json() if self.control else None,
            "verdict": self.control.verdict if self.control else "moves nothing alone",
        }


# ---- one finding


def examine(setting: FindingContext, finding: Finding) -> Generator[Any, Any, FindingOutcome]:
    """Try a finding: every color, its own mean color, the same patch elsewhere."""
    region, image = finding.region, setting.image
    fills, color = chosen_fills(setting, finding), own_mean(image, region)
    scores = yield from paint_each(setting, region, [*fills, color, shuffled(image, region)])
    after, mean, mixed = dict(zip(fills, scores, strict=False)), scores[-2], scores[-1]
    own = yield from try_own_color(setting, region, color, mean, mixed)
    falling = [fill for fill in fills if setting.falls(after[fill])]
    rising = [fill for fill in fills if setting.rises(after[fill])]
    # As the map says, if it moves that way alone; at a high score only down has room.
    down = bool(falling) if finding.direction < 0 else not rising
    moving = falling if down else rising
    said: list[tuple[str, list[Fill]]] = []
    if not moving:
        if all(setting.stays(score) for score in after.values()):
            said.append(("saturated", fills))
        claims = make_claims(setting, region, said, after, mean)
        return FindingOutcome(finding, setting.score, after, color, mean, mixed, claims)
    if down:
        said += yield from claims_from_drop(setting, region, after, falling, own)
    else:
        said += told_by_gain(setting, after, rising, own)
    for fill in moving:
        kind = what_it_takes(fill)
        if kind and (yield from effect_is_from_removed_property(setting, region, fill, down, own)):
            said.append((kind if down else f"{kind} obstacle", [fill]))
    main = (min if down else max)(moving, key=lambda fill: after[fill])
    strokes = (Stroke(region, main, finding.place),)
    control = yield from compare_places(setting, strokes, after[main])
    if control.verdict == "confirmed":
        said.append(("specific", [main]))
    claims = make_claims(setting, region, said, after, mean)
    return FindingOutcome(finding, setting.score, after, color, mean, mixed, claims, control)


@dataclass(frozen=True)
class OwnColorTest:
    """A region's own mean color, and what painting it with that does, whatever the edges."""

    color: Solid
    score: float
    mixed: float  # score under its own pixels, shuffled
    does: frozenset[str]  # of "keeps", "falls", "rises"


def make_claims(
    setting: FindingContext,
    region: Region,
    said: Sequence[tuple[str, Sequence[Fill]]],
    after: Mapping[Fill, float],
    mean: float,
) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            kind,
            (region,),
            tuple(fills),
            setting.target,
            {"before": setting.score, "own mean": mean} | {f.name: after[f] for f in fills},
        )
        for kind, fills in said
    )


def claims_from_drop(
    setting: FindingContext,
    region: Region,
    after: Mapping[Fill, float],
    falling: list[Fill],
    own: OwnColorTest,
) -> Generator[Any, Any, list[tuple[str, list[Fill]]]]:
    """What follows where paint lowers the score: is it the color there, or the structure?"""
    said = [("lowers", falling)]
    colors = {fill: score for fill, score in after.items() if fill.is_color}
    falling_colors = [fill for fill in falling if fill.is_color]
    kept = [fill for fill, score in colors.items() if setting.keeps(score)]
    kept = yield from kept_nearby(setting, region, kept)
    if "keeps" in own.does and falling_colors:
        near = [fill for fill in kept if fill == nearest(list(colors), own.color, setting.image)]
        if (yield from is_brightness(setting, region, falling_colors)):
            said.append(("brightness", falling_colors))
        else:
            if near and len(kept) <= 2:
                said.append(("finds color", near))
            said.append(("color", falling_colors))
    elif "falls" in own.does and not kept:  # else some one color would do
        said.append(("mixture" if setting.keeps(own.mixed) else "structure", falling_colors))
    better = [fill for fill in kept if setting.rises(after[fill])]
    as_good = [fill for fill in kept if fill not in better]
    return [*said, *((kind, some) for kind, some in (("raises", better), ("as good", as_good))
                     if some)]  # fmt: skip


def told_by_gain(
    setting: FindingContext, after: Mapping[Fill, float], rising: list[Fill], own: OwnColorTest
) -> list[tuple[str, list[Fill]]]:
    """What follows where paint raises the score: is something in the way, or missing?"""
    said = [("raises", rising)]
    n_colors = sum(fill.is_color for fill in after)
    rising_colors = [fill for fill in rising if fill.is_color]
    flat = own.score - setting.score < 0.5 * LEAST_RISE * setting.range
    if "rises" in own.does and rising_colors:
        said.append(("obstacle", rising_colors))
    elif flat and rising_colors:
        few = len(rising_colors) <= max(n_colors // 2, 1)
        said.append(("missing color" if few else "unwanted color", rising_colors))
    return said


def chosen_fills(setting: FindingContext, finding: Finding) -> list[Fill]:
    """The fills to try: all, or the strongest of many either way."""
    effects = sorted(finding.effects, key=lambda effect: effect.value)
    some = [effect.fill for effect in effects]
    if len(some) > MOST_COLORS:
        half = MOST_COLORS // 2
        some = some[:half] + some[-half:]
    return [fill for fill in setting.fills if fill in some]


def paint_each(
    setting: FindingContext, region: Region, fills: Sequence[Fill], soft: bool = False
) -> Generator[Any, Any, list[float]]:
    """The score of the target with a region painted with each fill alone."""
    if not fills:
        return []
    answers = yield [Repaint((Stroke(region, fill),), soft) for fill in fills]
    return [float(scores[setting.target]) for scores in answers]


def try_own_color(
    setting: FindingContext, region: Region, color: Solid, mean: float, mixed: float
) -> Generator[Any, Any, OwnColorTest]:
    """Paint a region with its own mean color softly and, if that is kept too, a little beside."""
    (softly,) = yield from paint_each(setting, region, [color], soft=True)
    does = setting.all_of(mean, softly)
    if "keeps" in does:
        for place in beside(region, setting.cell):
            (after,) = yield from paint_each(setting, place, [own_mean(setting.image, place)])
            if not setting.keeps(after):
                return OwnColorTest(color, mean, mixed, does - {"keeps"})
    return OwnColorTest(color, mean, mixed, does)


def kept_nearby(
    setting: FindingContext, region: Region, fills: Sequence[Fill]
) -> Generator[Any, Any, list[Fill]]:
    """Those fills that keep the score with soft edges too, and a little beside."""
    after = yield from paint_each(setting, region, fills, soft=True)
    kept = [fill for fill, score in zip(fills, after, strict=True) if setting.keeps(score)]
    for place in beside(region, setting.cell):
        after = yield from paint_each(setting, place, kept)
        kept = [fill for fill, score in zip(kept, after, strict=True) if setting.keeps(score)]
    return kept


def is_brightness(
    setting: FindingContext, region: Region, falling: Sequence[Fill]
) -> Generator[Any, Any, bool]:
    """Whether a gray lowers the score, while no color of the brightness that is there moves it."""
    whole = unit_float(setting.image)
    colors = [color for fill in falling if (color := fill.color(whole)) is not None]
    if not any(np.ptp(color) < 0.02 for color in colors):
        return False
    tints = [tinted(setting.image, tint) for tint in TINTS]
    after = yield from paint_each(setting, region, [Gray(), *tints])
    return all(setting.stays(score) for score in after)


TINTS = tuple(color for color in product((0.0, 1.0), repeat=3) if len(set(color)) > 1)  # six hues


def nearest(colors: Sequence[Fill], own: Solid, image: NDArray[Any]) -> Fill | None:
    """The color that a region has, among those tried; None if it is like none of them."""
    whole = unit_float(image)
    away = {
        fill: float(np.linalg.norm(color - np.array(own.rgb) / 255))
        for fill in colors
        if (color := fill.color(whole)) is not None
    }
    best = min(away, key=lambda fill: away[fill])
    return best if away[best] < NEAR else None


def what_it_takes(fill: Fill) -> str | None:
    """The claim that a fill which is no color can support, if there is one."""
    return fill.removes if not fill.is_color and fill.removes in CLAIM_KINDS else None


def effect_is_from_removed_property(
    setting: FindingContext, region: Region, fill: Fill, down: bool, own: OwnColorTest
) -> Generator[Any, Any, bool]:
    """Whether a fill moves the score by what it takes away, and not by what comes with it."""
    if fill.removes == "sharpness":  # a blur brings colors from around; a flat color has no detail
        return ("falls" if down else "rises") in own.does
    if fill.removes == "hue":  # turned, it is brighter or darker too
        (after,) = yield from paint_each(setting, region, [turned_hue(setting.image, fill)])
        return setting.falls(after) if down else setting.rises(after)
    return True


def compare_places(
    setting: FindingContext, strokes: Sequence[Stroke], here: float
) -> Generator[Any, Any, PlaceboControl]:
    """Paint the same patches elsewhere, a few places at a time, until one does as much."""
    found = [elsewhere(stroke.region, setting.regions, setting.cell) for stroke in strokes]
    left = list(zip(*found, strict=False))
    if len(left) < FEWEST_PLACES:
        return PlaceboControl(strokes[0].fill, setting.score, here, (), "no control possible")
    there: list[float] = []
    direction, effect = np.sign(here - setting.score), abs(here - setting.score)
    while left:
        some, left = left[:PLACES_AT_ONCE], left[PLACES_AT_ONCE:]
        answers = yield [
            Repaint(tuple(replace(s, region=place) for s, place in zip(strokes, them, strict=True)))
            for them in some
        ]
        there += [float(scores[setting.target]) for scores in answers]
        if max(direction * (score - setting.score) for score in there) >= effect:
            return PlaceboControl(
                strokes[0].fill, setting.score, here, tuple(there), "not specific"
            )
    return PlaceboControl(strokes[0].fill, setting.score, here, tuple(there), "confirmed")


# ---- two findings together


def examine_pairs(
    setting: FindingContext, verdicts: Sequence[FindingOutcome]
) -> Generator[Any, Any, list[Claim]]:
    """Whether two regions stand in for each other, or are both needed."""
    claims = []
    for pair in combinations(verdicts, 2):
        for kind, alike in (("either suffices", setting.keeps), ("both needed", setting.falls)):
            fills = [
                fill
                for fill in pair[0].after
                if fill.is_color and all(alike(one.after.get(fill, np.nan)) for one in pair)
            ]
            if not fills:
                continue
            fill = min(fills, key=lambda fill: sum(one.finding.effect(fill) for one in pair))
            strokes = tuple(Stroke(one.finding.region, fill, one.finding.place) for one in pair)
            (scores,) = yield [Repaint(strokes)]
            both, alone = float(scores[setting.target]), [one.after[fill] for one in pair]
            lost = setting.score - both
            # Without either nearly all is lost that is lost without both, and that is a lot.
            needed = lost >= 0.35 * setting.share and min(setting.score - x for x in alone) >= (
                0.85 * lost
            )
            if setting.falls(both) and (kind == "either suffices" or needed):
                numbers = {"before": setting.score, "first": alone[0], "second": alone[1]}
                regions = pair[0].finding.region, pair[1].finding.region
                claims.append(
                    Claim(kind, regions, (fill,), setting.target, numbers | {"both": both})
                )
    return claims


def examine_together(
    setting: FindingContext, verdicts: Sequence[FindingOutcome]
) -> Generator[Any, Any, Claim | None]:
    """Whether regions of which none matters alone, nor any two, do all together."""
    fills = [
        fill
        for fill in setting.fills
        if fill.is_color and all(setting.keeps(one.after.get(fill, np.nan)) for one in verdicts)
    ]
    if len(verdicts) < 3 or not fills:
        return None
    fill = min(fills, key=lambda fill: sum(one.finding.effect(fill) for one in verdicts))
    strokes = {one: Stroke(one.finding.region, fill, one.finding.place) for one in verdicts}
    needed, without = list(verdicts), [list(verdicts)]
    while True:  # leave out, one by one, whatever is not needed for that
        answers = yield [Repaint(tuple(strokes[one] for one in some)) for some in without]
        losing = [n for n, scores in enumerate(answers) if setting.falls(scores[setting.target])]
        if not losing:
            break
        needed, together = without[losing[-1]], float(answers[losing[-1]][setting.target])
        without = [[one for one in needed if one is not left] for left in needed]
    if len(without) == 1:  # not even all
        return None
    alone = [one.after[fill] for one in needed]
    regions = tuple(strokes[one].region for one in needed)
    numbers = {"before": setting.score, "least": min(alone), "most": max(alone), "all": together}
    if len(needed) == 2:
        numbers = {"before": setting.score, "first": alone[0], "second": alone[1], "both": together}
    kind = "either suffices" if len(needed) == 2 else "together"
    return Claim(kind, regions, (fill,), setting.target, numbers)


# ---- no finding at all


def examine_nothing(setting: FindingContext) -> Generator[Any, Any, Claim | None]:
    """Whether nothing matters: each quarter of the image is painted with each color."""
    height, width = setting.image.shape[:2]
    repaints = []
    for top in (0, height // 2):
        for left in (0, width // 2):
            region = np.zeros((height, width), bool)
            region[top : top + (height + 1) // 2, left : left + (width + 1) // 2] = True
            repaints += [Repaint((Stroke(region, fill),)) for fill in setting.fills]
    answers = yield repaints
    moved = [float(scores[setting.target]) - setting.score for scores in answers]
    most = max(moved, key=abs)
    if abs(most) >= max(0.1 * setting.share, 0.02 * setting.range):
        return None
    numbers = {"before": setting.score, "most": most}
    return Claim("nothing matters", (), (), setting.target, numbers)
