"""Confirmation: what is painted to see whether a finding of a class holds, and what came of it.

Two-fold cross-fitting. A region is found again on each half of the images. Painted there, it has to
do more than the same patch elsewhere; else it is seen under masks only and is no finding. Whether
a finding is confirmed is then asked of the other half, whose images had no part in any of this.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..interpretation.controls import FEWEST_PLACES
from ..interpretation.regions import dilate
from .class_data import AuditInfo, BoolArray, ClassData, FloatArray, IntArray
from .class_findings import FEWEST, Candidate, candidates, largest_by_chance, too_few
from .control_places import elsewhere
from .stats import Estimate, mean, share, threshold

MAX_TRIED = 24  # images of a half in which a region is painted
LENIENT = 2.0  # |z| in a half, where a region only has to be found again
SAME = 0.2  # of two regions, shared over covered: from here on they are the same place
NO_ROOM = 0.9  # a probability: from here on, little can raise it
LITTLE = 0.1  # of the score: a smaller change is none to speak of


@dataclass(frozen=True, eq=False)
class ConfirmationTask(ArrayEq):
    """A region that was found on one half of a class, to be painted in an image of either."""

    key: str  # the same for all images in which the same is painted
    target: int
    image: int  # number in the audit
    found_in: int  # the half that the region was found on
    fresh: bool  # the image is of the other half
    fill: int
    sign: int  # what is expected
    region: BoolArray  # (R, R)
    controls: tuple[BoolArray, ...]  # (R, R) each: the same patch elsewhere


@dataclass(frozen=True)
class ConfirmationAnswer:
    """What the model said to an attempt."""

    before: float  # score of the class
    after: float  # with the region painted
    predicted: int  # the class it then says
    controls: tuple[float, ...]  # scores of the class with the same patch in each other place


ConfirmationAnswers = Mapping[
    tuple[int, str], ConfirmationAnswer
]  # by number of the image and key of the attempt


def half_of(group: IntArray, seed: int) -> IntArray:
    """0 or 1 for each image (n,): two halves of the groups, each group whole."""
    codes, place = np.unique(group, return_inverse=True)
    order = np.random.default_rng((seed, len(codes))).permutation(len(codes))
    return np.asarray(order[place.ravel()] % 2, np.int64)


def regions_to_try(class_data: ClassData, info: AuditInfo, seed: int) -> list[ConfirmationTask]:
    """What to paint in which images, so that the findings of a class can be confirmed.

    More are tried than are told in the end: here a class is alone, and its findings have to exceed
    what chance shows in one class, not in all.
    """
    if too_few(len(class_data), len(np.unique(class_data.group))):
        return []
    limit = threshold(largest_by_chance(class_data, seed))
    found = candidates(class_data, limit, info.cell)
    return [confirmation for _, one in tries(class_data, info, found, seed) for confirmation in one]


def tries(
    class_data: ClassData, info: AuditInfo, found: Sequence[Candidate], seed: int
) -> Iterator[tuple[int, list[ConfirmationTask]]]:
    """For each of the regions found on all images, by number: what to paint in either half."""
    if not found:
        return
    half = half_of(class_data.group, seed)
    images = [tried_images(class_data, half == side, seed) for side in (0, 1)]
    for source in (0, 1):
        again = candidates(class_data, LENIENT, info.cell, half == source)
        for number, whole in enumerate(found):
            same = max(again, key=whole.shares, default=None)
            if same is None or whole.shares(same) < SAME:
                continue  # half of the images do not show it
            places = control_places(same, [one.region for one in found], info.cell)
            key = digest(class_data.target, same, places)
            yield (
                number,
                [
                    ConfirmationTask(key, class_data.target, n, source, side != source, same.fill,
                            same.sign,
                            same.region, places)
                    for side in (0, 1)
                    for n in images[side]
                ],
            )  # fmt: skip


def tried_images(class_data: ClassData, some: BoolArray, seed: int) -> list[int]:
    """The numbers of at most MAX_TRIED of some images, of as many groups as there are."""
    numbers, group = class_data.image[some], class_data.group[some]
    shuffled = np.random.default_rng((seed, class_data.target)).permutation(len(numbers))
    turns: Counter[int] = Counter()
    rounds = []  # how many of its group come before an image
    for n in shuffled.tolist():
        rounds.append(turns[int(group[n])])
        turns[int(group[n])] += 1
    chosen = shuffled[np.argsort(rounds, kind="stable")][:MAX_TRIED]
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
        places = elsewhere(found.region, [dilate(one, (down, across)) for one in taken], cell)
        if len(places) >= FEWEST_PLACES:
            return tuple(places)
    return ()


def digest(target: int, found: Candidate, places: Sequence[BoolArray]) -> str:
    content = hashlib.sha256(f"{target} {found.fill} {found.sign}".encode())
    for region in (found.region, *places):
        content.update(np.packbits(region).tobytes())
    return content.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Confirmation(ArrayEq):
    """What painting a finding came to."""

    verdict: str  # one of VERDICTS
    painted: tuple[int, ...] = ()  # the fills that it was tried with
    change: Estimate | None = None  # of the score, painted in images not used to find it
    control: Estimate | None = None  # the same in whichever other place does most
    flipped: Estimate | None = None  # share of decisions changed
    region: BoolArray | None = None  # (R, R) all that was painted: each half shows its own


def judge(
    class_data: ClassData,
    confirmations: Sequence[ConfirmationTask],
    answers: ConfirmationAnswers,
    kind: str,
) -> Confirmation:
    """Whether a region found on all images is a finding, and whether that holds in others.

    Each half that bears its own region out, painted, is then held against the other half.
    """
    if confirmations and not any((one.image, one.key) in answers for one in confirmations):
        return Confirmation("untried")
    own = [
        confirm(class_data, [c for c in confirmations if c.found_in == source and not c.fresh],
                answers, kind).verdict
        for source in (0, 1)
    ]  # fmt: skip
    if "confirmed" not in own:
        few = "too few images" in own
        return Confirmation("too few images" if few else "under masks only")
    fresh = [one for one in confirmations if one.fresh and own[one.found_in] == "confirmed"]
    return confirm(class_data, fresh, answers, kind)


def confirm(
    class_data: ClassData,
    confirmations: Sequence[ConfirmationTask],
    answers: ConfirmationAnswers,
    kind: str,
) -> Confirmation:
    """Whether painting a region does what was found, in the images of these attempts.

    Confirmed: the score moves as expected (95%), by a tenth of it at least, and by more than with
    the same patch in any of the other places (95%, of the difference within images to the place
    that does most).
    """
    said = [
        (one, answers[one.image, one.key])
        for one in confirmations
        if (one.image, one.key) in answers
    ]
    if not said:
        return Confirmation("untried")
    row = {number: n for n, number in enumerate(class_data.image.tolist())}
    rows = np.array([row[one.image] for one, _ in said])
    group, sign = class_data.group[rows], said[0][0].sign
    painted = tuple(sorted({one.fill for one, _ in said}))
    before = np.array([answer.before for _, answer in said])
    changes = np.array([answer.after for _, answer in said]) - before
    change = mean(changes, group, ends_of(kind))
    assert change is not None
    after = np.array([answer.predicted for _, answer in said])
    flipped = share(after != class_data.predicted[rows], group)
    region = np.any([one.region for one, _ in said], axis=0)
    if len(np.unique(group)) < FEWEST // 2:
        return Confirmation("too few images", painted, change, None, flipped, region)
    there = strongest_control(said, before)
    control = mean(there, group, ends_of(kind))
    little = abs(change.value) < LITTLE * size_of_scores(before, answers, kind)
    if little or not (sign * change.value > 0 and change.excludes_zero):
        full = sign > 0 and kind != "any" and before.mean() >= NO_ROOM
        return Confirmation(
            "no room" if full else "not confirmed", painted, change, control, flipped, region
        )
    beyond = mean(sign * (changes - there), group)
    if beyond is None:
        return Confirmation("no control possible", painted, change, None, flipped, region)
    verdict = "confirmed" if beyond.low > 0 else "not specific"
    return Confirmation(verdict, painted, change, control, flipped, region)


def size_of_scores(before: FloatArray, answers: ConfirmationAnswers, kind: str) -> float:
    """What a change is large or small beside.

    Scores that may be anything have no zero: theirs is the range of all that the model said.
    """
    if kind != "any":
        return abs(float(before.mean()))
    said = [(one.before, one.after) for one in answers.values()]
    return float(np.ptp(said))


def ends_of(kind: str) -> tuple[float, float] | None:
    """Beyond which no score can change."""
    return None if kind == "any" else (-1.0, 1.0)


def strongest_control(
    said: Sequence[tuple[ConfirmationTask, ConfirmationAnswer]], before: FloatArray
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
