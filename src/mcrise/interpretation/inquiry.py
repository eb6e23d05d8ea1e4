"""Inquiry: what a search knows and has asked so far, and what it asks about one place.

Where a model answers differently each time, all that is reported is asked five times afresh; the
answers that chose a place are not used again.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..explanation import Explanation
from ..fills import Fill
from ..maps import Maps
from .candidates import LARGEST, Candidate, Lattice, lattice_of, region_of
from .causes import first_questions, other_fills, second_questions
from .controls import FEWEST_PLACES, FIRST_PLACES, control_of, control_regions, is_settled
from .findings import SEARCHED, Control, Question, Trial
from .regions import find_regions, place_of
from .repaints import Region, Repaint, Stroke
from .score_change import Scale, Scores, scale_of

N_TAKES = 5  # answers to one repaint, where they differ each time
FIRST = range(1, N_TAKES + 1)  # of these; what they have chosen is asked afresh
AFRESH = range(N_TAKES + 1, 2 * N_TAKES + 1)
SETTLING = range(N_TAKES + 1, 4 * N_TAKES + 1)  # where five leave open whether nothing matters
MOST_UNSETTLED = 12  # repaints: of more, some matter
LARGE = "*"  # in place of a letter: an area that is too large for a place
N_PIECES = 5  # times that as much of the image is painted elsewhere


@dataclass(frozen=True)
class Effort:
    """How much a search may ask."""

    search: int = 64  # blocks
    rising: bool = True  # whether as many more are tried where the score can rise
    described: int = 5  # places
    full: int = 2  # of these, with all tests
    controls: int = 19  # other places
    parts: int = 4  # of a block, that are tried in its place
    several: bool = True  # whether places are tried together


DEFAULT_EFFORT = Effort()
Asking = Generator[list[Question], list[Scores], list[Trial]]


@dataclass(eq=False)
class Inquiry:
    """What a script knows and has asked so far."""

    explanation: Explanation
    target: int
    trials: list[Trial] = field(default_factory=list)
    effort: Effort = DEFAULT_EFFORT
    scale: Scale = field(init=False)
    lattice: Lattice = field(init=False)

    def __post_init__(self) -> None:
        plan = self.explanation.plan
        self.scale = scale_of(self.explanation, self.target)
        self.lattice = lattice_of(plan.size, plan.grid)

    @property
    def fills(self) -> tuple[Fill, ...]:
        return self.explanation.plan.fills

    @property
    def image(self) -> NDArray[Any]:
        return self.explanation.view.pixels

    @property
    def is_noisy(self) -> bool:
        """Whether the model answers differently each time."""
        return self.explanation.nondeterminism > 0

    def ask(self, questions: Sequence[Question]) -> Asking:
        """Trials of some questions."""
        if not questions:
            return []
        answers = yield list(questions)
        made = [
            Trial(one.repaint, one.role, np.asarray(scores), self.target, one.letter)
            for one, scores in zip(questions, answers, strict=True)
        ]
        self.trials += made
        return made

    def ask_surely(self, questions: Sequence[Question], takes: range = FIRST) -> Asking:
        """The same; where answers differ, each is asked several times afresh."""
        if not self.is_noisy:
            return (yield from self.ask(questions))
        asked = [
            one._replace(repaint=replace(one.repaint, take=take))
            for one in questions
            for take in takes
        ]
        return merge_takes((yield from self.ask(asked)))

    def ask_untouched(self, takes: range = FIRST) -> Asking:
        """The image as it is, several times, where answers differ; the scale is of their mean."""
        if not self.is_noisy:
            return []
        made = yield from self.ask_surely([Question(Repaint(()), "untouched")], takes)
        answers = [one.scores for one in self.trials if one.role == "untouched"]
        self.scale = scale_of(self.explanation, self.target, answers)
        return made

    def question(self, candidate: Candidate, role: str = "search") -> Question:
        region = self.lattice.region(candidate.block)
        return ask_about(region, self.fills[candidate.fill], role)

    def direction(self, trial: Trial) -> int:
        return self.scale.direction(trial.scores)

    def margin(self, trial: Trial) -> float:
        return abs(self.scale.margin(trial.score))

    @property
    def found(self) -> list[Trial]:
        """What was searched for, matters and is small enough, the strongest first."""
        found = [one for one in self.trials if one.role in SEARCHED and self.direction(one)
                 and one.repaint.share <= LARGEST]  # fmt: skip
        return sorted(found, key=lambda one: (-self.margin(one), one.repaint.share))


def ask_about(region: Region, fill: Fill, role: str, letter: str = "") -> Question:
    return Question(Repaint((Stroke(region, fill, place_of(region)),)), role, letter)


def merge_takes(trials: Iterable[Trial]) -> list[Trial]:
    """Trials with all answers to the same question as one."""
    groups: dict[tuple[str, str, str], list[Trial]] = {}
    for one in trials:
        repaint = replace(one.repaint, take=0) if one.repaint.take else one.repaint
        groups.setdefault((one.role, one.letter, repaint.digest), []).append(one)
    merged = []
    for some in groups.values():
        takes = [one for one in some if one.repaint.take]
        if not takes:
            merged.append(some[0])
            continue
        repeats = np.stack([one.scores for one in takes])
        mean = repeats.mean(axis=0, dtype=np.float64).astype(np.float32)
        whole = replace(some[0].repaint, take=0)
        merged.append(replace(some[0], repaint=whole, scores=mean, repeats=repeats))
    return merged


def answers_before(trials: Iterable[Trial]) -> NDArray[np.float32] | None:
    """The answers (R, C) to the image as it is, where they differ each time."""
    return next((one.repeats for one in trials if one.role == "untouched"), None)


def surely_says(scale: Scale, before: NDArray[np.float32] | None, trial: Trial) -> bool:
    """Whether what the model says after a repaint has surely gained on what it says of the image.

    Always, where it answers alike each time.
    """
    if before is None or trial.repeats is None:
        return True
    rival = trial.says if trial.says != scale.target else scale.predicted
    return scale.is_sure(before, trial.repeats, None if rival == scale.target else rival)


# ---- describing a place


def describe(
    inquiry: Inquiry, main: Trial, full: bool
) -> Generator[list[Question], list[Scores], None]:
    """Each color, flat colors of its own, and the same block elsewhere."""
    scale, image = inquiry.scale, inquiry.image
    fills = other_fills(inquiry.fills, main)
    tests = yield from inquiry.ask_surely(first_questions(image, main, fills, full))
    yield from inquiry.ask_surely(second_questions(scale, image, main, tests, full))
    yield from ask_controls(inquiry, main)


def ask_controls(inquiry: Inquiry, main: Trial) -> Generator[list[Question], list[Scores], Control]:
    """The same block and color in other places, until the verdict is known.

    A block that fits into too few of them is compared with as much of the rest, in pieces.
    """
    places = control_regions(main.region, main.fill, inquiry.lattice)
    if len(places) < FEWEST_PLACES:
        asked = [ask_about(one, main.fill, "pieces", main.letter)
                 for one in pieces(inquiry, main.region)]  # fmt: skip
        return control_of(inquiry.scale, main, (), (yield from inquiry.ask_surely(asked)))
    asked = [ask_about(one, main.fill, "control", main.letter) for one in places][
        : inquiry.effort.controls
    ]
    trials = yield from inquiry.ask_surely(asked[:FIRST_PLACES])
    if not is_settled(control_of(inquiry.scale, main, trials)):
        trials = [*trials, *(yield from inquiry.ask_surely(asked[FIRST_PLACES:]))]
    return control_of(inquiry.scale, main, trials)


# ---- more than a place


def ask_whole(inquiry: Inquiry) -> Generator[list[Question], list[Scores], None]:
    """Halves and quarters of the image, and all of it, in each fill."""
    height, width = inquiry.lattice.size
    down, across = (height + 1) // 2, (width + 1) // 2
    rows, columns = [(0, height), (0, down), (down, height)], [(0, width), (0, across),
                                                               (across, width)]  # fmt: skip
    boxes = [(top, left, bottom, right) for top, bottom in rows for left, right in columns]
    regions = [region_of((height, width), box) for box in boxes if box[0] < box[2]
               and box[1] < box[3]]  # fmt: skip
    asked = [ask_about(region, fill, "whole") for region in regions for fill in inquiry.fills]
    yield from inquiry.ask_surely(asked)
    yield from settle(inquiry)


def settle(inquiry: Inquiry) -> Generator[list[Question], list[Scores], None]:
    """Where answers differ each time: the largest changes are asked more often, if they are few.

    Of many repaints of which none matters, some change the mean of five answers.
    """
    if inquiry.is_noisy:
        yield from inquiry.ask_untouched(SETTLING)
    settled: set[tuple[str, str]] = set()
    while inquiry.is_noisy and len(settled) < MOST_UNSETTLED:
        scale = inquiry.scale
        unsettled = [one for one in merge_takes(inquiry.trials)
                     if one.repeats is not None and one.repaint.strokes
                     and (one.role, one.repaint.digest) not in settled
                     and not (scale.is_negligible(one.score) and not inquiry.direction(one))
                     ]  # fmt: skip
        if not 0 < len(unsettled) <= MOST_UNSETTLED:
            return
        again = [Question(one.repaint, one.role, one.letter) for one in unsettled]
        yield from inquiry.ask_surely(again, SETTLING)
        settled |= {(one.role, one.repaint.digest) for one in unsettled}


def ask_large(inquiry: Inquiry, maps: Maps) -> Generator[list[Question], list[Scores], None]:
    """Describe the strongest area of the map that is too large for a place, if it matters.

    It is compared with as much of the rest of the image, in pieces of two by two cells.
    """
    chance, cell = inquiry.explanation.chance(maps), inquiry.explanation.plan.cell
    regions = find_regions(maps.values, chance.values, chance.limit, cell)
    large = [(region, way) for region, way in regions if region.mean() > LARGEST][:1]
    for region, direction in large:
        fill = inquiry.fills[int((direction * maps.values[:, region].mean(axis=1)).argmax())]
        (main,) = yield from inquiry.ask_surely([ask_about(region, fill, "large", LARGE)])
        if not inquiry.direction(main):
            continue
        fills = other_fills(inquiry.fills, main)
        scale, image = inquiry.scale, inquiry.image
        tests = yield from inquiry.ask_surely(first_questions(image, main, fills, True))
        yield from inquiry.ask_surely(second_questions(scale, image, main, tests, True))
        scattered = [ask_about(one, fill, "pieces", LARGE) for one in pieces(inquiry, region)]
        yield from inquiry.ask_surely(scattered)


def pieces(inquiry: Inquiry, region: Region) -> list[Region]:
    """As much of the image outside a region, in pieces of two by two cells; none if no room."""
    lattice = inquiry.lattice
    if region.mean() > 0.5:
        return []
    inside = lattice.means(region[None])[0]
    free = np.flatnonzero((lattice.blocks[:, 0] == min(2, lattice.blocks[:, 0].max()))
                          & (inside == 0))  # fmt: skip
    found = []
    for number in range(N_PIECES):
        some = np.zeros(lattice.size, bool)
        for block in np.random.default_rng([int(region.sum()), number]).permutation(free):
            some |= lattice.region(int(block))
            if some.sum() >= region.sum():
                found.append(some)
                break
    return found
