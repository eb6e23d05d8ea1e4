"""Several places: whether they stand in for each other, are needed together, or must match."""

from collections.abc import Generator, Sequence
from itertools import combinations, pairwise

import numpy as np

from ..fills import Fill
from ..maps import Maps
from .candidates import region_of
from .causes import key_of, may_be_veto, same_place, scores_alone
from .findings import Question, Trial
from .inquiry import Inquiry, ask_about, merge_takes
from .regions import dilate, place_of
from .repaints import Region, Repaint, Stroke, own_mean
from .score_change import Scores

N_APART = 4  # places that are tried two at a time
REGAINED = 0.3  # of what one of two places loses: if both lose so much less, they may have to match
MOST_PARTS = 6  # that stand in for each other


def ask_idle(
    inquiry: Inquiry, maps: Maps, lobes: Sequence[Trial]
) -> Generator[list[Question], list[Scores], None]:
    """Whether areas of the map that do nothing alone stand in for each other."""
    scale = inquiry.scale
    idle = [one for one in lobes if scale.keeps(one.score) and not inquiry.direction(one)]
    if len(idle) < 2:
        return
    colors = [fill for fill in inquiry.fills if fill.is_color]
    yield from inquiry.ask([ask_about(one.region, fill, "lobe")
                            for one in idle for fill in colors])  # fmt: skip
    alone = scores_alone(inquiry.trials)

    def keeping(some: Sequence[Trial]) -> list[Fill]:
        """The color that keeps the score on each alone and should do most on all."""
        kept = [fill for fill in colors
                if all(scale.keeps(alone[key_of(one.region)][fill.name]) for one in some)
                ]  # fmt: skip
        effects = {fill: sum(float(maps.values[inquiry.fills.index(fill)][one.region].mean())
                             for one in some) for fill in kept}  # fmt: skip
        return sorted(kept, key=lambda fill: effects[fill])[:1]

    pairs = [together([one.region for one in two], fill)
             for two in combinations(idle, 2) for fill in keeping(two)]  # fmt: skip
    answers = yield from inquiry.ask(pairs)
    if len(idle) > 2 and not any(scale.falls(one.score) for one in answers):
        for fill in keeping(idle):
            yield from ask_fewest(inquiry, [one.region for one in idle], fill)


def ask_needed(
    inquiry: Inquiry, described: Sequence[Trial]
) -> Generator[list[Question], list[Scores], None]:
    """Two places at a time, in a color that lowers the score on each.

    Two that are near may be one thing: where each keeps the score in another color, they are asked
    in all of them and in the mean color of both. Where two at once lower the score less than one,
    they may have to match, and are asked again somewhat larger.
    """
    scale, cell = inquiry.scale, inquiry.explanation.plan.cell
    colors = [fill for fill in inquiry.fills if fill.is_color]
    apart: list[Trial] = []
    for main in described:
        tests = [one for one in merge_takes(inquiry.trials) if one.letter == main.letter]
        if inquiry.direction(main) < 0 and not may_be_veto(scale, main, tests):
            apart += [main] if not any(same_place(main, one, 0.0) for one in apart) else []
    for one, other in combinations(apart[:N_APART], 2):
        alone = scores_alone(inquiry.trials)
        single = [alone[key_of(two.region)] for two in (one, other)]
        shared = [fill for fill in colors
                  if all(scale.falls(scores.get(fill.name, np.inf)) for scores in single)
                  ][:1]  # fmt: skip
        kept = [[fill for fill in colors if scale.keeps(scores.get(fill.name, -np.inf))]
                for scores in single]  # fmt: skip
        differ = all(kept) and not set(kept[0]) & set(kept[1])
        if differ and (dilate(dilate(one.region, cell), cell) & other.region).any():
            shared = [*colors, own_mean(inquiry.image, one.region | other.region)]
        regions = [one.region, other.region]
        answers = yield from inquiry.ask([together(regions, fill) for fill in shared])
        if len(shared) == 1:
            least = max(scores[shared[0].name] for scores in single)
            regained = (answers[0].score - least) / (scale.score - least)
            if regained >= REGAINED and not scale.stays(answers[0].score):
                half = (-(-cell[0] // 2), -(-cell[1] // 2))
                grown = [dilate(region, half) for region in regions]
                asked = [ask_about(region, shared[0], "larger") for region in grown]
                yield from inquiry.ask([*asked, together(grown, shared[0])])


def ask_least(inquiry: Inquiry, maps: Maps) -> Generator[list[Question], list[Scores], None]:
    """Where only a large part lowers the score: as few cells of it as still do.

    If they lie apart, none of them is needed alone.
    """
    large = [one for one in inquiry.trials
             if one.role == "whole" and one.fill.is_color and inquiry.scale.falls_far(one.score)
             ]  # fmt: skip
    known = any(one.role == "pair" and inquiry.scale.falls(one.score) for one in inquiry.trials)
    if not large or known or inquiry.is_noisy:
        return
    start = min(large, key=lambda one: (one.repaint.share, one.score))
    effect = maps.values[inquiry.fills.index(start.fill)]
    region = start.region
    for side in (2, 1):
        tiles = tiles_of(inquiry, region, side)
        tiles.sort(key=lambda tile: -float(effect[tile].mean()))
        for tile in tiles:
            fewer = region & ~tile
            if not fewer.any():
                break
            (answer,) = yield from inquiry.ask([ask_about(fewer, start.fill, "larger")])
            region = fewer if inquiry.scale.falls_far(answer.score) else region
    parts = components(region)
    if 1 < len(parts) <= MOST_PARTS:
        yield from inquiry.ask([ask_about(part, start.fill, "larger") for part in parts])
        yield from ask_fewest(inquiry, parts, start.fill)


def tiles_of(inquiry: Inquiry, region: Region, side: int) -> list[Region]:
    """The parts of a region on a grid of tiles of so many cells a side."""
    rows, columns = inquiry.lattice.rows[:: 2 * side], inquiry.lattice.columns[:: 2 * side]
    size = inquiry.lattice.size
    tiles = [
        region & region_of(size, (top, left, bottom, right))
        for top, bottom in pairwise([*rows.tolist(), size[0]])
        for left, right in pairwise([*columns.tolist(), size[1]])
    ]
    return [tile for tile in tiles if tile.any()]


def components(region: Region) -> list[Region]:
    from scipy.ndimage import label

    labels, n = label(region)
    return [labels == number for number in range(1, n + 1)]


def ask_fewest(
    inquiry: Inquiry, regions: Sequence[Region], fill: Fill
) -> Generator[list[Question], list[Scores], None]:
    """Leave out, one by one, whatever is not needed to lower the score together."""
    without = [list(regions)]
    while len(without[0]) > 1:
        answers = yield from inquiry.ask([together(some, fill) for some in without])
        losing = [n for n, one in enumerate(answers) if inquiry.scale.falls_far(one.score)]
        if not losing:
            break
        needed = without[losing[-1]]
        without = [[one for one in needed if one is not left] for left in needed]


def together(regions: Sequence[Region], fill: Fill) -> Question:
    return Question(Repaint(tuple(Stroke(one, fill, place_of(one)) for one in regions)), "pair")
