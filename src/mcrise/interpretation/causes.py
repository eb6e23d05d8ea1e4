"""Describing: what is painted to tell why a place matters, and what the answers say of it.

The questions of a place are asked in two steps, since most places need only the first: each color,
its own mean color, its two dominant colors and the gray of its brightness; then, where these leave
it open, the grays and tints that tell brightness from hue, or its own pixels in another order.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..colors import dominant
from ..fills import LUMA, Fill, Gray, Solid
from ..images import unit_float
from .claims import CLAIM_KINDS, Claim
from .findings import Control, Finding, Question, Trial
from .repaints import Region, Repaint, Stroke, own_mean, shuffled, tinted, turned_hue
from .score_change import LEAST_RISE, Scale

MOST_COLORS = 7  # tried on a place, beside the one that was painted first
N_SHUFFLES, MOST_FALL = 5, 4  # of these, where the order of the pixels matters
N_DOMINANT = 2
NEAR = 0.7  # distance in color space, of at most 1.7: a color further away is another one
TINTS = tuple(color for color in product((0.0, 1.0), repeat=3) if len(set(color)) > 1)  # six hues
FLAT = ("color", "own mean", "dominant", "gray")  # roles of trials that may paint a flat color
FEWEST_OTHERS = 3  # colors that keep the score, where only one or only grays lower it
HALF = 0.45  # of the image: a part that is larger is a half, where sides are odd
MIXED = 0.1  # of that difference: pixels that are so much more vivid than their mean color
VIVID = 0.8  # difference of the largest and the smallest channel of a color
NEARLY_ALL = 0.85  # of what two places lose together: what each of two that are needed loses


# ---- what to ask


def other_fills(fills: Sequence[Fill], main: Trial) -> list[Fill]:
    """The fills of the run in which a place is tried beside that of its own trial."""
    return [fill for fill in fills if fill != main.fill][:MOST_COLORS]


def first_questions(
    image: NDArray[Any], main: Trial, fills: Sequence[Fill], full: bool
) -> list[Question]:
    """Each color and the own mean color; where a place is described in full, more flat colors."""
    region, place = main.region, main.repaint.strokes[0].place
    mean = own_mean(image, region)
    roles: list[tuple[str, Fill]] = [("color", fill) for fill in fills]
    roles.append(("own mean", mean))
    if full:
        pixels = unit_float(image)[region][:, None]
        roles += [("dominant", Solid(rgb)) for rgb in dominant(pixels, N_DOMINANT)]
        roles.append(("gray", gray_of(np.array(mean.rgb) / 255)))
    return [Question(Repaint((Stroke(region, fill, place),)), role, main.letter)
            for role, fill in roles]  # fmt: skip


def second_questions(
    scale: Scale, image: NDArray[Any], main: Trial, tests: Sequence[Trial], full: bool
) -> list[Question]:
    """What settles the cause, where the first answers leave several."""
    region, place = main.region, main.repaint.strokes[0].place
    asked: list[tuple[str, Fill]] = []
    if may_be_veto(scale, main, tests):
        asked += [("gray", Gray()), ("shuffle", shuffled(image, region, 0))]
    if full and scale.falls(main.score):
        if may_be_saturation(scale, image, main, tests):
            asked.append(("gray", Gray()))
        if may_be_brightness(scale, image, main, tests):
            whole = unit_float(image)
            falling = [fill.color(whole) for fill in falling_colors(scale, main, tests)]
            asked += [("gray", gray_of(color)) for color in falling if color is not None]
            asked.append(("gray", Gray()))
            asked += [("tint", tinted(image, tint)) for tint in TINTS]
        if may_be_structure(scale, main, tests):
            asked += [("shuffle", shuffled(image, region, n)) for n in range(N_SHUFFLES)]
    asked += [("tint", turned_hue(image, one.fill)) for one in [main, *tests]
              if full and one.fill.removes == "hue"]  # fmt: skip
    return [Question(Repaint((Stroke(region, fill, place),)), role, main.letter)
            for role, fill in dict.fromkeys(asked)]  # fmt: skip


def gray_of(color: NDArray[Any]) -> Solid:
    """The gray that is as bright as a color (3,) in 0..1."""
    level = int(np.rint(255 * float(np.clip(np.dot(color, LUMA), 0, 1))))
    return Solid((level, level, level))


# ---- what the answers say


def colors_of(main: Trial, tests: Iterable[Trial]) -> dict[Fill, float]:
    """The score under each fill of the run."""
    known = {main.fill: main.score}
    return known | {one.fill: one.score for one in tests if one.role == "color"}


def falling_colors(scale: Scale, main: Trial, tests: Sequence[Trial]) -> list[Fill]:
    after = colors_of(main, tests)
    return [fill for fill, score in after.items() if fill.is_color and scale.falls(score)]


def flat_scores(main: Trial, tests: Sequence[Trial]) -> list[float]:
    """The scores under all flat colors that were tried."""
    return [one.score for one in (main, *tests)
            if one.fill.is_color and (one is main or one.role in FLAT)]  # fmt: skip


def own_score(tests: Sequence[Trial]) -> float | None:
    """The score under the place's own mean color."""
    return next((one.score for one in tests if one.role == "own mean"), None)


def may_be_brightness(
    scale: Scale, image: NDArray[Any], main: Trial, tests: Sequence[Trial]
) -> bool:
    """The mean color keeps the score, and so does its gray, but some gray lowers it."""
    own, whole = own_score(tests), unit_float(image)
    colors = [fill.color(whole) for fill in falling_colors(scale, main, tests)]
    grays = [one.score for one in tests if one.role == "gray"]
    keeps = own is not None and scale.keeps(own) and bool(grays) and scale.keeps(grays[0])
    return keeps and any(color is not None and np.ptp(color) < 0.02 for color in colors)


def may_be_veto(scale: Scale, main: Trial, tests: Sequence[Trial]) -> bool:
    """One color lowers the score; all other flat colors keep it."""
    if not main.fill.is_color or not scale.falls(main.score):
        return False
    others = [one.score for one in tests if one.role in FLAT and one.fill.is_color]
    n_colors = sum(one.role == "color" and one.fill.is_color for one in tests)
    return n_colors >= FEWEST_OTHERS and all(map(scale.keeps, others))


def is_veto(scale: Scale, main: Trial, tests: Sequence[Trial]) -> bool:
    """Nor does it matter that what is there has its hue or its order."""
    same = [one.score for one in tests if one.fill == Gray() or one.role == "shuffle"]
    return may_be_veto(scale, main, tests) and len(same) > 1 and all(map(scale.keeps, same))


def may_be_saturation(
    scale: Scale, image: NDArray[Any], main: Trial, tests: Sequence[Trial]
) -> bool:
    """Three vivid colors keep the score and only grays lower it.

    Its mean color keeps it too, unless its pixels are more vivid than that.
    """
    own, whole = own_score(tests), unit_float(image)
    pixels = whole[main.region]
    mixed = np.ptp(pixels, axis=1).mean() > np.ptp(pixels.mean(axis=0)) + MIXED
    colors = {fill: color for fill in colors_of(main, tests)
              if (color := fill.color(whole)) is not None}  # fmt: skip
    after = colors_of(main, tests)
    vivid = [after[fill] for fill, color in colors.items() if np.ptp(color) > VIVID]
    falling = [colors[fill] for fill in falling_colors(scale, main, tests)]
    return (
        own is not None
        and len(vivid) >= FEWEST_OTHERS
        and all(map(scale.keeps, vivid))
        and (scale.keeps(own) or (mixed and scale.falls(own)))
        and all(np.ptp(color) < 1 - VIVID for color in falling)
    )


def is_saturation(scale: Scale, image: NDArray[Any], main: Trial, tests: Sequence[Trial]) -> bool:
    """So does gray of its own brightness."""
    gray = [one.score for one in tests if one.fill == Gray()]
    return may_be_saturation(scale, image, main, tests) and any(map(scale.falls, gray))


def may_be_structure(scale: Scale, main: Trial, tests: Sequence[Trial]) -> bool:
    """Every flat color lowers the score."""
    enough = any(one.role == "dominant" for one in tests)
    return enough and all(map(scale.falls, flat_scores(main, tests)))


def claims_of(
    scale: Scale, image: NDArray[Any], main: Trial, tests: Sequence[Trial], control: Control | None
) -> tuple[Claim, ...]:
    """All that the tests of a place support."""
    after = colors_of(main, tests)
    falling = [fill for fill, score in after.items() if scale.falls(score)]
    rising = [fill for fill, score in after.items() if scale.rises(score)]
    down = main.score < scale.score
    said: list[tuple[str, list[Fill]]] = []
    if down and falling:
        said += claims_from_fall(scale, image, main, tests)
        said += [("raises", rising)] if rising else []
    elif rising and not down:
        said += claims_from_rise(scale, main, tests)
    for one in (main, *(test for test in tests if test.role == "color")):
        moves = scale.falls(one.score) if down else scale.rises(one.score)
        if moves and takes_away(scale, one, tests, down):
            said.append((f"{one.fill.removes}{'' if down else ' obstacle'}", [one.fill]))
    if said and control is not None and control.verdict == "only here":
        said.append(("specific", [main.fill]))
    numbers = {"before": scale.score, "own mean": own_score(tests)}
    known = {name: value for name, value in numbers.items() if value is not None}
    return tuple(
        Claim(kind, (main.region,), tuple(fills), scale.target,
              known | {fill.name: after[fill] for fill in fills})
        for kind, fills in said
    )  # fmt: skip


def claims_from_fall(
    scale: Scale, image: NDArray[Any], main: Trial, tests: Sequence[Trial]
) -> list[tuple[str, list[Fill]]]:
    """Where paint lowers the score: is it the color there, its structure, or the paint itself?"""
    after = colors_of(main, tests)
    falling = [fill for fill, score in after.items() if scale.falls(score)]
    colors = [fill for fill in falling if fill.is_color]
    kept = [fill for fill, score in after.items()
            if fill.is_color and scale.keeps(score) and not scale.rises(score)]  # fmt: skip
    firm = [fill for fill in falling
            if fill == main.fill or scale.falls_far(after[fill])]  # fmt: skip
    said, own = [("lowers", firm)], own_score(tests)
    if is_saturation(scale, image, main, tests):
        said.append(("saturation", colors))
    elif own is not None and scale.keeps(own) and colors:
        veto = is_veto(scale, main, tests)
        said += [("veto", [main.fill])] if veto else []
        if is_brightness(scale, image, main, tests):
            said.append(("brightness", colors))
        elif not veto and len(colors) > 1:  # one color alone may be a veto
            near = [nearest([f for f in after if f.is_color], own_mean(image, main.region), image)]
            found = len(kept) <= 2 and any(fill in near for fill in kept)
            said += [("finds color", kept)] if found else []
            said.append(("color", colors))
    elif may_be_structure(scale, main, tests):
        shuffles = [one.score for one in tests if one.role == "shuffle"]
        if len(shuffles) == N_SHUFFLES and all(map(scale.keeps, shuffles)):
            said.append(("mixture", colors))
        elif sum(map(scale.falls, shuffles)) >= MOST_FALL:
            said.append(("structure", colors))
    return [*said, *([("as good", kept)] if kept else [])]


def claims_from_rise(
    scale: Scale, main: Trial, tests: Sequence[Trial]
) -> list[tuple[str, list[Fill]]]:
    """Where paint raises the score: does something there lower it, or is a color missing?"""
    after, own = colors_of(main, tests), own_score(tests)
    rising = [fill for fill, score in after.items() if scale.rises(score)]
    said, colors = [("raises", rising)], [fill for fill in rising if fill.is_color]
    n_colors = sum(fill.is_color for fill in after)
    if own is None or not colors:
        return said
    if scale.rises(own):
        said.append(("obstacle", colors))
    elif own - scale.score < 0.5 * LEAST_RISE * scale.range:
        few = len(colors) <= max(n_colors // 2, 1)
        said.append(("missing color" if few else "unwanted color", colors))
    return said


def is_brightness(scale: Scale, image: NDArray[Any], main: Trial, tests: Sequence[Trial]) -> bool:
    """A gray as bright as each falling color lowers the score; tints of its own brightness do not.

    Nor does taking its color away.
    """
    if not may_be_brightness(scale, image, main, tests):
        return False
    whole = unit_float(image)
    scores = {one.fill: one.score for one in tests if one.role == "gray"}
    colors = [fill.color(whole) for fill in falling_colors(scale, main, tests)]
    grays = [scores.get(gray_of(color), np.nan) for color in colors if color is not None]
    same = [one.score for one in tests if one.role == "tint" or one.fill == Gray()]
    return len(same) > len(TINTS) and all(map(scale.falls, grays)) and all(map(scale.stays, same))


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


def takes_away(scale: Scale, trial: Trial, tests: Sequence[Trial], down: bool) -> bool:
    """Whether a fill that is no color moves the score by what it takes away."""
    moves = scale.falls if down else scale.rises
    fill, own = trial.fill, own_score(tests)
    if fill.is_color or fill.removes not in CLAIM_KINDS:
        return False
    if fill.removes == "sharpness":  # a blur brings colors from around; a flat color has no detail
        return own is not None and moves(own)
    if fill.removes == "hue":  # turned, it is brighter or darker too
        turned = [one.score for one in tests if one.role == "tint"]
        return bool(turned) and all(map(moves, turned))
    return True


# ---- several findings


def pair_claims(
    scale: Scale, trials: Sequence[Trial], alone: Mapping[str, Mapping[str, float]]
) -> list[Claim]:
    """What two or more regions are to each other, by trials that painted them together.

    `alone` has the score of each region, by its digest, with each fill, by its name.
    """
    claims: list[Claim] = []
    several = [one for one in trials if one.role == "pair"]
    for one in several:
        fill, regions = one.fill, tuple(stroke.region for stroke in one.repaint.strokes)
        single = [alone.get(key_of(region), {}).get(fill.name) for region in regions]
        known = [score for score in single if score is not None]
        if len(known) < len(regions):
            continue
        numbers = {"before": scale.score, "first": known[0], "second": known[1], "both": one.score}
        kept, lost = all(map(scale.keeps, known)), all(map(scale.falls, known))
        kind = ""
        if len(regions) > 2:
            if kept and scale.falls(one.score) and is_least(scale, one, several):
                kind = "together"
                numbers = {"before": scale.score, "least": min(known), "most": max(known),
                           "all": one.score}  # fmt: skip
        elif kept and scale.falls(one.score):
            kind = "either suffices"
        elif lost and scale.stays(one.score):
            kind = "must match"
        elif lost and scale.falls_far(one.score):
            nearly_all = scale.score - max(known) >= NEARLY_ALL * (scale.score - one.score)
            kind = "both needed" if nearly_all else ""
        keys = {(claim.kind, *map(key_of, claim.regions)) for claim in claims}
        if kind and (kind, *map(key_of, regions)) not in keys:  # in one color is enough
            claims.append(Claim(kind, regions, (fill,), scale.target, numbers))
    return [*claims, *contrast_claims(scale, several, alone)]


def contrast_claims(
    scale: Scale, pairs: Sequence[Trial], alone: Mapping[str, Mapping[str, float]]
) -> list[Claim]:
    """Of two places that each keep the score in some color: no flat color keeps it on both."""
    claims, groups = [], dict[str, list[Trial]]()
    for one in pairs:
        if len(one.repaint.strokes) == 2:
            groups.setdefault(key_of(one.region), []).append(one)
    for some in groups.values():
        fills = tuple(one.fill for one in some)
        single = [alone.get(key_of(stroke.region), {}) for stroke in some[0].repaint.strokes]
        enough = len(set(fills)) > FEWEST_OTHERS and all(
            any(map(scale.keeps, scores.values())) for scores in single
        )
        if enough and all(scale.falls(one.score) for one in some):
            numbers = {"before": scale.score, "least": min(one.score for one in some),
                       "most": max(one.score for one in some)}  # fmt: skip
            claims.append(Claim("structure", (some[0].region,), fills, scale.target, numbers))
    return claims


def is_least(scale: Scale, trial: Trial, trials: Sequence[Trial]) -> bool:
    """Whether each of the regions is needed: without any one of them the score is kept."""
    keys = [key_of(stroke.region) for stroke in trial.repaint.strokes]
    fewer = [
        one.score for one in trials
        if len(one.repaint.strokes) == len(keys) - 1 and one.fill == trial.fill
        and {key_of(stroke.region) for stroke in one.repaint.strokes} < set(keys)
    ]  # fmt: skip
    return len(fewer) == len(keys) and all(map(scale.keeps, fewer))


def key_of(region: Region) -> str:
    return np.packbits(region).tobytes().hex()


def scores_alone(trials: Iterable[Trial]) -> dict[str, dict[str, float]]:
    """The score of each region that was painted alone, by its key and the name of the fill."""
    found: dict[str, dict[str, float]] = {}
    for one in trials:
        if len(one.repaint.strokes) == 1 and not one.repaint.soft:
            found.setdefault(key_of(one.region), {})[one.fill.name] = one.score
    return found


def is_nothing(scale: Scale, trials: Sequence[Trial]) -> Claim | None:
    """Whether nothing matters: no block, no half and not the whole image, in any color.

    Where answers differ each time, only those count that were asked several times.
    """
    halves = [one for one in trials if one.role == "whole"]
    is_noisy = any(one.repeats is not None for one in halves)
    moved = [one.score - scale.score for one in trials
             if one.repaint.strokes and not (is_noisy and one.repeats is None)]  # fmt: skip
    most = max(moved, key=abs, default=0.0)
    if not halves or not scale.is_negligible(scale.score + most):
        return None
    return Claim("nothing matters", (), (), scale.target, {"before": scale.score, "most": most})


def all_together(scale: Scale, trials: Sequence[Trial]) -> Claim | None:
    """Which fills lower the score on each half of the image, where no place matters."""
    halves: dict[Fill, list[float]] = {}
    for one in trials:
        if one.role == "whole" and one.repaint.share > HALF:
            halves.setdefault(one.fill, []).append(one.score)
    fills = tuple(fill for fill, scores in halves.items() if all(map(scale.falls, scores)))
    if not fills:
        return None
    left = [score for fill in fills for score in halves[fill]]
    numbers = {"before": scale.score, "least": min(left), "most": max(left)}
    return Claim("all together", (), fills, scale.target, numbers)


def same_place(one: Finding | Trial, other: Finding | Trial, most: float = 0.25) -> bool:
    """Whether more than this part of the smaller region lies on the other."""
    shared = (one.region & other.region).sum()
    return bool(shared > most * min(one.region.sum(), other.region.sum()))
