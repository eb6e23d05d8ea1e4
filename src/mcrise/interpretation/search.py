"""Search: the map proposes, trials decide.

A script is a generator: it yields lists of `Question`, gets the scores (C,) of each, and returns
`Findings`. It is a function of the explanation and of the answers, so that a search that was cut
short asks only for what is missing. What the trials say (`findings_from`) needs no ranking: the
letters of the findings are in the trials.
"""

import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from itertools import combinations, islice

import numpy as np

from ..explanation import Explanation
from ..fills import Fill
from ..maps import Maps
from .candidates import LARGEST, Candidate, Ranking
from .causes import may_be_veto, other_fills, same_place
from .combinations import ask_idle, ask_least, ask_needed
from .conclusions import counterfactual_of, findings_from, gives
from .controls import controls_of
from .findings import SEARCHED, Findings, Question, Trial, letter_of
from .inquiry import (
    AFRESH,
    DEFAULT_EFFORT,
    Asking,
    Effort,
    Inquiry,
    ask_about,
    ask_controls,
    ask_large,
    ask_whole,
    describe,
    merge_takes,
)
from .regions import find_regions
from .repaints import Repaint
from .score_change import LOST, Scores

ROUND = 8  # blocks asked about at a time
MOST_OF_IT = 0.8  # of the margin: a smaller block that does this much is the finding
MOST_ASKED_AGAIN = 10  # places, where answers differ each time
APART = 0.0  # of the smaller of two described places, that lies on the other
N_PAIRED = 6  # blocks that are tried two at a time on the way to another class
PATIENCE = 3  # rounds without anything new that are still followed by one
SHRINKING = 0.375  # of the budget: as many smaller blocks may be tried
WEAK = 0.5  # relative error of a map, from which on the image is scanned beside it
WRONG = 0.2  # of the trials that matter, against the sign of the map: then it is scanned too
ROOM = 1 / (1 + LOST)  # of the range: a lower score can rise, which maps show badly: then too


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
    n_rising = budget if effort.rising and can_rise(inquiry) else 0
    n_left = yield from look(inquiry, maps, lobes, budget - len(lobes), n_rising)
    yield from inquiry.ask_untouched()
    mains, described = yield from choose(inquiry, maps)
    for main in described[:1]:
        yield from describe(inquiry, main, effort.full > 0)
        if effort.several and lowers_anywhere(inquiry, main):  # what do the other colors do?
            tried = [one for one in inquiry.trials if one.role in SEARCHED]
            yield from look(inquiry, maps, tried, n_left, without=main.fill)
            mains, others = yield from choose(inquiry, maps, main.fill)
            described = [main, *others]
    for number, main in enumerate(described[1:], start=1):
        yield from describe(inquiry, main, number < effort.full)
    if effort.several:
        yield from ask_second_color(inquiry, mains[:1])
        yield from ask_idle(inquiry, maps, lobes)
        yield from ask_needed(inquiry, described)
    if not mains and effort.several:
        yield from ask_whole(inquiry)
        yield from ask_large(inquiry, maps)
        yield from ask_least(inquiry, maps)
    if wanted is not None:
        yield from reach(inquiry, wanted, budget)
    elif effort.several and target == inquiry.scale.predicted and len(inquiry.scale.before) > 1:
        yield from ask_pairs(inquiry, mains)
    if effort.several:
        yield from shrink(
            inquiry, maps if wanted is None else explanation.maps(wanted), wanted, budget
        )
    yield from confirm_change(inquiry, wanted)
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
    inquiry: Inquiry,
    maps: Maps,
    tried: Sequence[Trial],
    n_left: int,
    n_rising: int = 0,
    without: Fill | None = None,
) -> Generator[list[Question], list[Scores], int]:
    """Try blocks in the order of the map, until a round brings nothing new.

    `n_rising` more are for what raises the score. Returns how many more might be tried.
    """
    ranking = Ranking(inquiry.lattice, maps.values)
    if without is not None:
        ranking.taken[inquiry.fills.index(without)] = True

    def learn(trials: Iterable[Trial]) -> bool:
        new = [ranking.learn(one.region, inquiry.direction(one)) for one in trials]
        return any(new)

    opposite: list[bool] = []  # of trials that matter, whether the map has the other sign

    def rounds(order: Ranking, patience: int = 1) -> Generator[list[Question], list[Scores], None]:
        nonlocal n_left
        n_idle = 0  # rounds in a row that brought nothing new
        while n_idle < patience and n_left > 0:
            picked = order.next_round(min(ROUND, n_left))
            if not picked:
                break
            n_left -= len(picked)
            made = yield from inquiry.ask([inquiry.question(one) for one in picked])
            ways = [inquiry.direction(one) for one in made]
            opposite.extend(way == -one.direction for one, way in zip(picked, ways, strict=True)
                            if way)  # fmt: skip
            n_idle = 0 if learn(made) else n_idle + 1

    learn(one for one in tried if one.repaint.share <= LARGEST and one.fill != without)
    yield from rounds(ranking)
    wrong = sum(opposite) > WRONG * len(opposite) or not opposite
    n_left += n_rising
    if can_rise(inquiry):
        yield from rounds(ranking.upwards(), PATIENCE)
    if maps.relative_error > WEAK or wrong or can_rise(inquiry):
        n_left = yield from scan(inquiry, ranking, n_left)
    return n_left


def can_rise(inquiry: Inquiry) -> bool:
    """Whether there is room above the score."""
    return inquiry.scale.score < ROOM * inquiry.scale.range


def scan(
    inquiry: Inquiry, ranking: Ranking, n_left: int
) -> Generator[list[Question], list[Scores], int]:
    """Try blocks all over the image, then those around each that matters."""
    asked = ranking.scan()[: max(n_left, 0)]
    while asked:
        n_left -= len(asked)
        made = yield from inquiry.ask([inquiry.question(one) for one in asked])
        hits = [(one, way) for one, trial in zip(asked, made, strict=True)
                if (way := inquiry.direction(trial))
                and ranking.learn(trial.region, way)]  # fmt: skip
        asked = ranking.around(hits, n_left)
    return n_left


def choose(
    inquiry: Inquiry, maps: Maps, without: Fill | None = None
) -> Generator[list[Question], list[Scores], tuple[list[Trial], list[Trial]]]:
    """Give letters to the places that matter: first those to be described, then all others.

    Returns all, and those to be described. `without`: those in other fills, beside what was found.
    """
    had = [one for one in merge_takes(inquiry.trials) if one.role == "finding"]
    mains, tested = list(had), {one.letter for one in inquiry.trials if one.role == "own mean"}
    described = [one for one in had if one.letter in tested and without is None]
    n_full = inquiry.effort.full

    def found_now() -> list[Trial]:
        return [one for one in inquiry.found if one.fill != without]

    def chosen_now() -> list[Trial]:
        return pick(inquiry, maps, found_now(), described)

    for _ in range(n_full):  # a block that does most of it in a part becomes that part
        parts = [smaller(inquiry, maps, one) for one in chosen_now()[:n_full]]
        asked = {one.repaint.digest for one in inquiry.trials}
        new = [one for some in parts for one in some if one.repaint.digest not in asked]
        if not new:
            break
        yield from inquiry.ask(new)
    if not inquiry.is_noisy:  # a finding is in the color that does most
        yield from inquiry.ask(in_other_colors(inquiry, chosen_now()))
    found, chosen = found_now(), chosen_now()
    taken = [one for one in had if one.fill != without]
    order = [*chosen, *others(inquiry, found, [*taken, *chosen])]
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


def pick(inquiry: Inquiry, maps: Maps, found: Sequence[Trial], had: Sequence[Trial]) -> list[Trial]:
    """Up to five places that differ; of each the smallest block that does most of it.

    Of its colors that do most of it, one that changes the decision comes first.

    Of several that do nearly as much, the first is where the map is strongest: which of them does
    most depends on which happened to be tried.
    """

    def is_apart(one: Trial, others: Sequence[Trial]) -> bool:
        way = inquiry.direction(one)
        return not any(
            inquiry.direction(two) == way and same_place(one, two, APART) for two in others
        )

    def on_map(one: Trial) -> float:
        mean = maps.values[inquiry.fills.index(one.fill)][one.region].mean()
        return abs(float(mean)) * math.sqrt(one.repaint.share)

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
        nearly = [one for one in left if inquiry.direction(one) == inquiry.direction(best)
                  and inquiry.margin(one) >= MOST_OF_IT * inquiry.margin(best)]  # fmt: skip
        best = best if had or chosen else max(nearly, key=on_map)
        alike = [one for one in nearly if same_place(one, best, 0.5)
                 and inquiry.margin(one) >= MOST_OF_IT * inquiry.margin(best)]  # fmt: skip
        chosen.append(min(alike, key=lambda one: (
            one.repaint.share,
            not inquiry.scale.changes_decision(one.scores),
            -inquiry.margin(one),
        )))  # fmt: skip
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


def in_other_colors(inquiry: Inquiry, places: Sequence[Trial]) -> list[Question]:
    """The tests in each color that describing these places asks for anyway."""
    return [ask_about(one.region, fill, "recolored") for one in places
            for fill in other_fills(inquiry.fills, one)]  # fmt: skip


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


def lowers_anywhere(inquiry: Inquiry, main: Trial) -> bool:
    """Whether a color lowers the score almost anywhere, and what is there does not matter."""
    known = merge_takes(inquiry.trials)
    control = controls_of(inquiry.scale, main, known)
    tests = [one for one in known if one.letter == main.letter]
    return (
        control is not None
        and control.verdict in ("in many places", "almost anywhere")
        and may_be_veto(inquiry.scale, main, tests)
    )


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


def confirm_change(
    inquiry: Inquiry, wanted: int | None
) -> Generator[list[Question], list[Scores], None]:
    """Where answers differ each time: the smallest repaints that changed the answer, asked afresh.

    Until one of them does it surely.
    """
    if not inquiry.is_noisy:
        return
    changing = [one for one in merge_takes(inquiry.trials) if one.repaint.strokes
                and one.role != "whole" and gives(inquiry.scale, one, wanted)]  # fmt: skip
    known: set[str] = set()
    for one in sorted(changing, key=lambda one: one.repaint.share):
        if len(known) == MOST_ASKED_AGAIN or counterfactual_of(
            inquiry.scale, merge_takes(inquiry.trials), wanted
        ):
            break
        if one.repaint.digest not in known:
            known.add(one.repaint.digest)
            yield from inquiry.ask_surely([Question(one.repaint, "counterfactual")], AFRESH)


def shrink(
    inquiry: Inquiry, maps: Maps, wanted: int | None, budget: int
) -> Generator[list[Question], list[Scores], None]:
    """Try blocks that are smaller than the smallest repaint which changes the answer.

    In the fills that did: a few of its own parts, then others in the order of the map.
    """
    n_left = int(SHRINKING * budget)
    while n_left > 0:
        changing = [one for one in inquiry.trials if one.repaint.strokes and one.role != "whole"
                    and gives(inquiry.scale, one, wanted)]  # fmt: skip
        if not changing:
            return
        best = min(changing, key=lambda one: one.repaint.share)
        known = {one.repaint.digest for one in inquiry.trials}
        asked = (inquiry.question(one, "counterfactual")
                 for one in smaller_blocks(inquiry, maps, best, changing, wanted))  # fmt: skip
        untried = (one for one in asked if one.repaint.digest not in known)
        new = list(islice(untried, min(ROUND, n_left)))
        if not new:
            return
        n_left -= len(new)
        yield from inquiry.ask(new)


def smaller_blocks(
    inquiry: Inquiry, maps: Maps, best: Trial, changing: Sequence[Trial], wanted: int | None
) -> list[Candidate]:
    """Blocks that are smaller than a repaint: some of its parts, then in the order of the map."""
    lattice, fills = inquiry.lattice, inquiry.fills
    way = -1 if wanted is None and inquiry.target == inquiry.scale.predicted else 1
    used = [k for k, fill in enumerate(fills)
            if any(fill == stroke.fill for one in changing for stroke in one.repaint.strokes)
            ]  # fmt: skip
    effects = way * lattice.means(maps.values[used]) * lattice.blocks[:, 0]  # (used, B)
    small = np.flatnonzero(lattice.areas < best.repaint.share * math.prod(lattice.size))
    inside = lattice.means(best.region[None])[0, small] > 1 - 1e-9
    order = [(k, int(block)) for k, block in
             zip(*np.unravel_index(np.argsort(-effects[:, small], axis=None, kind="stable"),
                                   (len(used), len(small))), strict=True)]  # fmt: skip
    parts = [one for one in order if inside[one[1]]][: inquiry.effort.parts]
    return [Candidate(int(small[block]), used[k], way)
            for k, block in dict.fromkeys([*parts, *order])]  # fmt: skip


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
