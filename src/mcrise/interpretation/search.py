"""Search: the map proposes, trials decide.

A script is a generator: it yields lists of `Question`, gets the scores (C,) of each, and returns
`Findings`. It is a function of the explanation and of the answers, so that a search that was cut
short asks only for what is missing. What the trials say (`findings_from`) needs no ranking: the
letters of the findings are in the trials.

Where a model answers differently each time, all that is reported is asked five times afresh; the
answers that chose a place are not used again.
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..explanation import Explanation
from ..fills import Fill
from ..maps import Maps
from .candidates import LARGEST, Candidate, Lattice, Ranking, lattice_of, region_of
from .claims import Claim
from .controls import FEWEST_PLACES, FIRST_PLACES, control_of, control_regions, is_settled
from .describe import (
    MOST_COLORS,
    all_together,
    claims_of,
    first_questions,
    is_nothing,
    key_of,
    pair_claims,
    same_place,
    scores_alone,
    second_questions,
)
from .findings import Control, Finding, Findings, Question, Trial, letter_of
from .regions import find_regions, place_of
from .repaints import Region, Repaint, Stroke
from .scale import LOST, Scale, Scores, scale_of
from .text import Words

ROUND = 8  # blocks asked about at a time
MOST_OF_IT = 0.8  # of the margin: a smaller block that does this much is the finding
N_TAKES = 5  # answers to one repaint, where they differ each time
MOST_ASKED_AGAIN = 10  # places, where answers differ each time
N_PAIRED = 6  # blocks that are tried two at a time on the way to another class
LARGE = "*"  # in place of a letter: an area that is too large for a place
N_PIECES = 5  # times that as much of the image is painted elsewhere
WEAK = 0.5  # relative error of a map, from which on the image is scanned beside it
WRONG = 0.2  # of the trials that matter, against the sign of the map: then it is scanned too
ROOM = 1 / (1 + LOST)  # of the range: a lower score can rise, which maps show badly: then too


@dataclass(frozen=True)
class Effort:
    """How much a search may ask."""

    search: int = 64  # blocks
    described: int = 5  # places
    full: int = 2  # of these, with all tests
    controls: int = 19  # other places
    parts: int = 4  # of a block, that are tried in its place
    several: bool = True  # whether places are tried together


DEFAULT_EFFORT = Effort()
Asking = Generator[list[Question], list[Scores], list[Trial]]
SEARCHED = ("search", "smaller", "lobe")  # roles of trials that may be findings


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

    def ask_surely(self, questions: Sequence[Question]) -> Asking:
        """The same; where answers differ, each is asked five times afresh."""
        if not self.is_noisy:
            return (yield from self.ask(questions))
        takes = [
            one._replace(repaint=replace(one.repaint, take=take))
            for one in questions
            for take in range(1, N_TAKES + 1)
        ]
        return merge_takes((yield from self.ask(takes)))

    def question(self, candidate: Candidate, role: str = "search") -> Question:
        region = self.lattice.region(candidate.block)
        return ask_about(region, self.fills[candidate.fill], role)

    def direction(self, trial: Trial) -> int:
        return self.scale.direction(trial.scores)

    def margin(self, trial: Trial) -> float:
        return abs(self.scale.margin(trial.score))

    def matter(self, trials: Iterable[Trial]) -> list[Trial]:
        """Those that matter and are small enough, the strongest first."""
        found = [one for one in trials if self.direction(one) and one.repaint.share <= LARGEST]
        return sorted(found, key=lambda one: (-self.margin(one), one.repaint.share))


def ask_about(region: Region, fill: Fill, role: str, letter: str = "") -> Question:
    return Question(Repaint((Stroke(region, fill, place_of(region)),)), role, letter)


# ---- the script


def search(
    explanation: Explanation,
    target: int,
    budget: int,
    wanted: int | None = None,
    known: Sequence[Trial] = (),
    effort: Effort = DEFAULT_EFFORT,
) -> Generator[list[Question], list[Scores], Findings]:
    """Find the places that matter to a class, describe the first of them, and list the others.

    `budget` is for the search alone. With `wanted`, a repaint is searched for that makes the model
    say this class. Findings among `known` trials of an earlier search keep their letters.
    """
    inquiry = Inquiry(explanation, target, list(known), effort)
    maps = explanation.maps(target)
    lobes = yield from ask_lobes(inquiry, maps)
    yield from look(inquiry, maps, lobes, budget)
    if inquiry.is_noisy:
        again = [Question(Repaint((), take=take), "untouched") for take in range(1, N_TAKES + 1)]
        inquiry.scale = scale_of(
            explanation, target, [one.scores for one in (yield from inquiry.ask(again))]
        )
    mains, described = yield from choose(inquiry, maps)
    for number, main in enumerate(described):
        yield from describe(inquiry, main, number < effort.full)
    if effort.several:
        yield from ask_second_color(inquiry, mains[:1])
        yield from ask_several(inquiry, maps, mains, lobes)
    if not mains and effort.several:
        yield from ask_whole(inquiry)
        yield from ask_large(inquiry, maps)
    if wanted is not None:
        yield from reach(inquiry, wanted, budget)
    elif effort.several and target == inquiry.scale.predicted and len(inquiry.scale.before) > 1:
        yield from ask_pairs(inquiry, mains)
    return findings_from(explanation, target, inquiry.trials, wanted)


def ask_lobes(inquiry: Inquiry, maps: Maps) -> Asking:
    """The significant areas of the map, each in the fill that should do most."""
    chance = inquiry.explanation.chance(maps)
    cell = inquiry.explanation.plan.cell
    regions = find_regions(maps.values, chance.values, chance.limit, cell, LARGEST)
    questions = []
    for region, direction in regions:
        effects = direction * maps.values[:, region].mean(axis=1)
        questions.append(ask_about(region, inquiry.fills[int(effects.argmax())], "lobe"))
    return (yield from inquiry.ask(questions))


def look(
    inquiry: Inquiry, maps: Maps, lobes: Sequence[Trial], budget: int
) -> Generator[list[Question], list[Scores], None]:
    """Try blocks in the order of the map, until a round brings nothing new."""
    ranking = Ranking(inquiry.lattice, maps.values)

    def learn(trials: Iterable[Trial]) -> bool:
        new = [ranking.learn(one.region, inquiry.direction(one)) for one in trials]
        return any(new)

    n_left = budget - len(lobes)
    opposite: list[bool] = []  # of trials that matter, whether the map has the other sign

    def rounds() -> Generator[list[Question], list[Scores], None]:
        nonlocal n_left
        is_new = True
        while is_new and n_left > 0:
            picked = ranking.next_round(min(ROUND, n_left))
            if not picked:
                break
            n_left -= len(picked)
            made = yield from inquiry.ask([inquiry.question(one) for one in picked])
            ways = [inquiry.direction(one) for one in made]
            opposite.extend(way == -one.direction for one, way in zip(picked, ways, strict=True)
                            if way)  # fmt: skip
            is_new = learn(made)

    learn(one for one in lobes if one.repaint.share <= LARGEST)
    yield from rounds()
    wrong = sum(opposite) > WRONG * len(opposite) or not opposite
    if maps.relative_error > WEAK or wrong or inquiry.scale.score < ROOM * inquiry.scale.range:
        yield from scan(inquiry, ranking, n_left)


def scan(
    inquiry: Inquiry, ranking: Ranking, n_left: int
) -> Generator[list[Question], list[Scores], None]:
    """Try blocks all over the image, then those around each that matters."""
    asked = ranking.scan()[: max(n_left, 0)]
    while asked:
        n_left -= len(asked)
        made = yield from inquiry.ask([inquiry.question(one) for one in asked])
        hits = [(one, way) for one, trial in zip(asked, made, strict=True)
                if (way := inquiry.direction(trial))
                and ranking.learn(trial.region, way)]  # fmt: skip
        asked = ranking.around(hits, n_left)


def choose(
    inquiry: Inquiry, maps: Maps
) -> Generator[list[Question], list[Scores], tuple[list[Trial], list[Trial]]]:
    """Give letters to the places that matter: first those to be described, then all others.

    Returns all, and those to be described.
    """
    had = [one for one in merge_takes(inquiry.trials) if one.role == "finding"]
    mains, tested = list(had), {one.letter for one in inquiry.trials if one.role == "own mean"}
    described = [one for one in had if one.letter in tested]
    n_full = inquiry.effort.full
    for _ in range(n_full):  # a block that does most of it in a part becomes that part
        found = inquiry.matter(one for one in inquiry.trials if one.role in SEARCHED)
        chosen = pick(inquiry, found, described)
        parts = [smaller(inquiry, maps, one) for one in chosen[:n_full]]
        asked = {one.repaint.digest for one in inquiry.trials}
        new = [one for some in parts for one in some if one.repaint.digest not in asked]
        if not new:
            break
        yield from inquiry.ask(new)
    found = inquiry.matter(one for one in inquiry.trials if one.role in SEARCHED)
    chosen = pick(inquiry, found, described)
    order = [*chosen, *others(inquiry, found, [*had, *chosen])]
    order = [one for one in order if one.repaint.digest not in {two.repaint.digest for two in had}]
    if inquiry.is_noisy:
        order = order[:MOST_ASKED_AGAIN]
        untouched = np.stack([one.scores for one in inquiry.trials if one.role == "untouched"])
    for main in order:
        letter = letter_of(len(mains))
        question = Question(main.repaint, "finding", letter)
        if inquiry.is_noisy:
            (sure,) = yield from inquiry.ask_surely([question._replace(role="again")])
            assert sure.repeats is not None
            if inquiry.direction(sure) != inquiry.direction(main) or not inquiry.scale.is_sure(
                untouched, sure.repeats
            ):
                continue
        (lettered,) = yield from inquiry.ask_surely([question])
        mains.append(lettered)
        described += [lettered] if main in chosen else []
    return mains, described


def pick(inquiry: Inquiry, found: Sequence[Trial], had: Sequence[Trial]) -> list[Trial]:
    """Up to five places that differ; of each the smallest block that does most of it."""

    def is_apart(one: Trial, others: Sequence[Trial]) -> bool:
        way = inquiry.direction(one)
        return not any(inquiry.direction(two) == way and same_place(one, two) for two in others)

    chosen: list[Trial] = []
    n_most = inquiry.effort.described
    while len(had) + len(chosen) < n_most:
        left = [one for one in found if is_apart(one, [*had, *chosen])]
        if not left:
            break
        ways = {inquiry.direction(one) for one in chosen}
        other = [one for one in left if inquiry.direction(one) not in ways]
        is_last = len(had) + len(chosen) == n_most - 1
        best = other[0] if is_last and other else left[0]
        alike = [
            one
            for one in left
            if inquiry.direction(one) == inquiry.direction(best)
            and same_place(one, best, 0.5)
            and inquiry.margin(one) >= MOST_OF_IT * inquiry.margin(best)
        ]
        chosen.append(min(alike, key=lambda one: (one.repaint.share, -inquiry.margin(one))))
    return chosen


def smaller(inquiry: Inquiry, maps: Maps, main: Trial) -> list[Question]:
    """The parts of a block that should do most of what it does."""
    inside = inquiry.lattice.within(main.region)
    sides = inquiry.lattice.blocks[inside, 0]
    inside = inside[sides == sides.max(initial=0)]
    values = maps.values[inquiry.fills.index(main.fill)][None]
    effects = inquiry.lattice.means(values)[0, inside] * inquiry.direction(main)
    best = inside[np.argsort(-effects, kind="stable")[: inquiry.effort.parts]]
    return [ask_about(inquiry.lattice.region(int(one)), main.fill, "smaller") for one in best]


def others(inquiry: Inquiry, found: Sequence[Trial], taken: Sequence[Trial]) -> list[Trial]:
    """The places that are only listed: all that show more of the image to matter."""
    known = {-1: np.zeros(inquiry.lattice.size, bool), 1: np.zeros(inquiry.lattice.size, bool)}
    for one in taken:
        known[inquiry.direction(one) or -1] |= one.region
    listed = []
    for one in found:
        on = known[inquiry.direction(one)]
        if not on[one.region].all():
            on |= one.region
            listed.append(one)
    return listed


# ---- describing a place


def describe(
    inquiry: Inquiry, main: Trial, full: bool
) -> Generator[list[Question], list[Scores], None]:
    """Each color, flat colors of its own, and the same block elsewhere."""
    scale, image = inquiry.scale, inquiry.image
    fills = [fill for fill in inquiry.fills if fill != main.fill][:MOST_COLORS]
    tests = yield from inquiry.ask_surely(first_questions(scale, image, main, fills, full))
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


def ask_second_color(
    inquiry: Inquiry, mains: Sequence[Trial]
) -> Generator[list[Question], list[Scores], None]:
    """Where one color does as much almost anywhere: does another as well?"""
    for main in mains:
        known = merge_takes(inquiry.trials)
        control = controls_of(inquiry.scale, main, known)
        if control is None or control.verdict != "almost anywhere":
            continue
        moving = [
            one
            for one in known
            if one.letter == main.letter and one.role == "color"
            and inquiry.direction(one) == inquiry.direction(main)
        ]  # fmt: skip
        if moving:
            yield from ask_controls(inquiry, max(moving, key=inquiry.margin))


# ---- several places, and none


def ask_several(
    inquiry: Inquiry, maps: Maps, mains: Sequence[Trial], lobes: Sequence[Trial]
) -> Generator[list[Question], list[Scores], None]:
    """Whether places are needed together, or stand in for each other."""
    scale = inquiry.scale
    idle = [one for one in lobes if scale.keeps(one.score) and not inquiry.direction(one)]
    if len(idle) > 1:  # nothing alone: two or all of them, in a color that keeps the score alone
        colors = [fill for fill in inquiry.fills if fill.is_color]
        yield from inquiry.ask([ask_about(one.region, fill, "lobe")
                                for one in idle for fill in colors])  # fmt: skip
        alone = scores_alone(inquiry.trials)

        def keeping(some: Sequence[Trial]) -> list[Fill]:
            kept = [fill for fill in colors
                    if all(scale.keeps(alone[key_of(one.region)][fill.name])
                           for one in some)]  # fmt: skip
            effects = {fill: sum(float(maps.values[inquiry.fills.index(fill)][one.region].mean())
                                 for one in some) for fill in kept}  # fmt: skip
            return sorted(kept, key=lambda fill: effects[fill])[:1]

        pairs = [together(two, fill) for two in combinations(idle, 2) for fill in keeping(two)]
        answers = yield from inquiry.ask(pairs)
        if len(idle) > 2 and not any(scale.falls(one.score) for one in answers):
            yield from ask_fewest(inquiry, idle, keeping(idle))
    for one, other in combinations(mains[: inquiry.effort.full], 2):
        ways = inquiry.direction(one), inquiry.direction(other)
        if ways == (-1, -1) and not same_place(one, other, 0.0):
            alone = scores_alone(inquiry.trials)
            shared = [fill for fill in inquiry.fills if fill.is_color
                      and all(scale.falls(alone[key_of(two.region)].get(fill.name, np.inf))
                              for two in (one, other))]  # fmt: skip
            yield from inquiry.ask([together((one, other), fill) for fill in shared[:1]])


def ask_fewest(
    inquiry: Inquiry, idle: Sequence[Trial], fills: Sequence[Fill]
) -> Generator[list[Question], list[Scores], None]:
    """Leave out, one by one, whatever is not needed to lower the score together."""
    for fill in fills:
        without = [list(idle)]
        while without and len(without[0]) > 1:
            asked = [together(some, fill) for some in without]
            answers = yield from inquiry.ask(asked)
            losing = [n for n, one in enumerate(answers) if inquiry.scale.falls(one.score)]
            if not losing:
                break
            needed = without[losing[-1]]
            without = [[one for one in needed if one is not left] for left in needed]


def together(places: Sequence[Trial], fill: Fill, role: str = "pair") -> Question:
    strokes = [Stroke(one.region, fill, one.repaint.strokes[0].place) for one in places]
    return Question(Repaint(tuple(strokes)), role)


def ask_whole(inquiry: Inquiry) -> Asking:
    """Halves and quarters of the image, and all of it, in each fill."""
    height, width = inquiry.lattice.size
    down, across = (height + 1) // 2, (width + 1) // 2
    rows, columns = [(0, height), (0, down), (down, height)], [(0, width), (0, across),
                                                               (across, width)]  # fmt: skip
    boxes = [(top, left, bottom, right) for top, bottom in rows for left, right in columns]
    regions = [region_of((height, width), box) for box in boxes if box[0] < box[2]
               and box[1] < box[3]]  # fmt: skip
    asked = [ask_about(region, fill, "whole") for region in regions for fill in inquiry.fills]
    return (yield from inquiry.ask_surely(asked))


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
        fills = [one for one in inquiry.fills if one != fill][:MOST_COLORS]
        scale, image = inquiry.scale, inquiry.image
        tests = yield from inquiry.ask_surely(first_questions(scale, image, main, fills, True))
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


# ---- another decision


def ask_pairs(
    inquiry: Inquiry, mains: Sequence[Trial]
) -> Generator[list[Question], list[Scores], None]:
    """Two places at once, where none alone changes the decision."""
    single = [one for one in inquiry.trials if one.role not in ("whole", "untouched")]
    lowering = [one for one in mains if inquiry.direction(one) < 0][:4]
    if any(inquiry.scale.changes_decision(one.scores) for one in single):
        return
    pairs = [both(one, other) for one, other in combinations(lowering, 2)
             if not same_place(one, other, 0.0)]  # fmt: skip
    yield from inquiry.ask(pairs)


def both(one: Trial, other: Trial) -> Question:
    return Question(Repaint((*one.repaint.strokes, *other.repaint.strokes)), "counterfactual")


def reach(
    inquiry: Inquiry, wanted: int, budget: int
) -> Generator[list[Question], list[Scores], None]:
    """The smallest block, then two blocks, that make the model say another class.

    Blocks are ranked by the map of that class.
    """
    if len(inquiry.scale.before) < 2 or inquiry.scale.predicted == wanted:
        return
    maps = inquiry.explanation.maps(wanted)
    ranking = Ranking(inquiry.lattice, maps.values, upwards=True)
    tried: list[Trial] = []
    n_singles = max(budget // 2, 1)
    while len(tried) < n_singles and not reached(tried, wanted):
        picked = ranking.next_round(min(ROUND, n_singles - len(tried)))
        if not picked:
            break
        tried += yield from inquiry.ask([inquiry.question(one, "counterfactual") for one in picked])
    if not reached(tried, wanted):
        near = sorted(tried, key=lambda one: -lead(one.scores, wanted))[:N_PAIRED]
        pairs = sorted(
            (two for two in combinations(near, 2) if not same_place(*two, 0.0)),
            key=lambda two: -sum(lead(one.scores, wanted) for one in two),
        )
        while pairs and len(tried) < budget and not reached(tried, wanted):
            n_now = min(ROUND, budget - len(tried))
            tried += yield from inquiry.ask([both(*two) for two in pairs[:n_now]])
            pairs = pairs[n_now:]
    single = [one for one in reached(tried, wanted) if len(one.repaint.strokes) == 1]
    if single:  # a part of it may do
        best = min(single, key=lambda one: one.repaint.share)
        aimed = Inquiry(inquiry.explanation, wanted)
        parts = smaller(aimed, maps, replace(best, target=wanted))
        yield from inquiry.ask([one._replace(role="counterfactual") for one in parts])


def lead(scores: Scores, wanted: int) -> float:
    """How far a class is before all others; below zero: behind."""
    return float(scores[wanted] - np.delete(scores, wanted).max())


def reached(trials: Iterable[Trial], wanted: int) -> list[Trial]:
    return [one for one in trials if one.says == wanted]


# ---- what the trials say


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


def controls_of(scale: Scale, main: Trial, trials: Iterable[Trial]) -> Control | None:
    """The control of a trial: the same fill under the same letter elsewhere."""
    there = [one for one in trials if one.role == "control" and one.letter == main.letter
             and one.fill == main.fill]  # fmt: skip
    scattered = [one for one in trials if one.role == "pieces" and one.letter == main.letter]
    asked = any(one.role == "own mean" and one.letter == main.letter for one in trials)
    return control_of(scale, main, there, scattered) if there or asked else None


TESTS = ("color", "own mean", "dominant", "gray", "tint", "shuffle")


def findings_from(
    explanation: Explanation,
    target: int,
    trials: Sequence[Trial],
    wanted: int | None = None,
) -> Findings:
    """What trials say of a class, without a model; the letters are those of the trials."""
    untouched = [one.scores for one in trials if one.role == "untouched"]
    scale = scale_of(explanation, target, untouched)
    known = merge_takes(trials)
    maps = explanation.maps(target)
    words = Words(explanation, scale, known, maps, explanation.chance(maps).limit)
    found = []
    for main in (one for one in known if one.role == "finding"):
        tests = tuple(one for one in known if one.letter == main.letter and one.role in TESTS)
        control = controls_of(scale, main, known)
        finding = Finding(
            letter=main.letter,
            trial=main,
            before=scale.score,
            says=explanation.label(main.says),
            changes_decision=scale.changes_decision(main.scores),
            tests=tests,
            control=control,
            claims=claims_of(scale, explanation.view.pixels, main, tests, control),
            described=bool(tests),
        )
        sentence, *lines = words.about(finding)
        found.append(replace(finding, sentence=sentence, lines=tuple(lines)))
    claims = several_claims(scale, known, found)
    large = next(
        (one for one in known if one.role == "large" and scale.direction(one.scores)), None
    )
    if large is not None:
        own = tuple(one for one in known if one.letter == LARGE and one.role in TESTS)
        claims += claims_of(scale, explanation.view.pixels, large, own, None)
    smallest = counterfactual_of(scale, known, wanted)
    disagreements = words.disagreements(claims)
    return Findings(
        target=target,
        label=explanation.label(target),
        findings=tuple(found),
        opening=(*disagreements, *words.opening(found)),
        remarks=(*words.remarks(found, claims, smallest, wanted), *words.large(large)),
        closing=words.closing(),
        counterfactual=smallest,
        trials=tuple(trials),
        claims=tuple(claims),
        disagrees=bool(disagreements),
    )


def several_claims(scale: Scale, known: Sequence[Trial], found: Sequence[Finding]) -> list[Claim]:
    """What is true of several regions, or of none."""
    claims = pair_claims(scale, known, scores_alone(known))
    paired = {key_of(region) for claim in claims for region in claim.regions}
    by_region: dict[str, list[Trial]] = {}
    for one in known:
        if one.role == "lobe":
            by_region.setdefault(key_of(one.region), []).append(one)
    for key, some in by_region.items():
        if key not in paired and len(some) > 1 and all(scale.stays(one.score) for one in some):
            fills = tuple(one.fill for one in some)
            numbers = {"before": scale.score} | {one.fill.name: one.score for one in some}
            claims.append(Claim("saturated", (some[0].region,), fills, scale.target, numbers))
    if not found and not paired:
        claims += filter(None, [is_nothing(scale, known) or all_together(scale, known)])
    return claims


def counterfactual_of(scale: Scale, trials: Iterable[Trial], wanted: int | None) -> Trial | None:
    """The smallest repaint that changes the answer, or makes the model say the class wanted."""

    def does(one: Trial) -> bool:
        return one.says == wanted if wanted is not None else scale.changes_decision(one.scores)

    changing = [one for one in trials if one.repaint.strokes and one.role != "whole" and does(one)]
    return min(changing, key=lambda one: one.repaint.share, default=None)
