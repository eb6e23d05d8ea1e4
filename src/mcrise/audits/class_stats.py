"""Statistics of classes: what an audit comes to, per class and over all, with intervals.

They are made of `ClassData`, one class at a time, so memory is that of one class and a few numbers
per image. Only what counts as a finding is known last: chance is that of all classes together.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..batch.storage import Storage
from .background import BackgroundEffect, background_effect, background_finding, background_sentence
from .class_data import AuditInfo, BoolArray, ClassData, FloatArray, IntArray
from .class_findings import (
    ClassFinding,
    candidates,
    describe,
    finding_sentence,
    largest_by_chance,
    too_few,
)
from .confirmation import ConfirmationAnswers, ConfirmationTask, judge, tries
from .figures_json import from_jsonable, reporting_damage, to_jsonable, unfinished_error
from .outliers import Outlier, find_unlike
from .stats import (
    Estimate,
    bonferroni,
    by_group,
    mean,
    mean_maps,
    ratio,
    share,
    threshold,
    z_maps,
)
from .suspects import SuspectSearch

LEAST_OWN = 0.03  # of the pixels, two cells of 64: what is smaller is told by what is around it
FEWEST_OWN = 3  # images must have it, for a row of the table
MOST_UNLIKE = 20  # images over all classes
FILE = "figures.json"
ALL = -1  # as a class: all of them

SHARE = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class ClassStats(ArrayEq):
    """What the images of a class come to."""

    target: int  # ALL: over all classes
    label: str
    n: int  # images
    n_groups: int
    accuracy: Estimate | None  # None: no truth is known
    accuracy_gray: Estimate | None  # share decided as this class in gray; None: not measured
    accuracy_hue120: Estimate | None
    accuracy_hue240: Estimate | None
    color_share: Estimate | None  # None: it depends on nothing that can be told from noise
    mean: NDArray[np.float32]  # (K, R, R)
    error: NDArray[np.float32]  # (K, R, R) over images
    beyond: BoolArray | None  # (K, R, R) where the mean exceeds chance; None: was not tested
    zones: dict[str, Estimate]  # share of the effect (energy)
    zone_effect: dict[str, dict[str, Estimate]]  # by zone and fill
    color_area_effect: dict[str, dict[str, Estimate]]  # by basic color and fill
    background: BackgroundEffect | None  # None: there is none, or it was not painted
    findings: tuple[ClassFinding, ...]  # confirmed ones first, then by what painting them does
    under_masks: tuple[ClassFinding, ...]  # what exceeds chance too, but not painted by itself
    outliers: tuple[Outlier, ...]  # most striking first
    mistakes: dict[str, int]  # "wrong", of them "corrected" by a repaint, and these by kind
    too_few: str | None  # a sentence


@dataclass(frozen=True, eq=False)
class AuditStats(ArrayEq):
    """What an audit comes to."""

    classes: tuple[ClassStats, ...]  # in the order they came
    overall: ClassStats  # over all images; it has no findings
    threshold: float  # of |z|: chance exceeds it in one audit of twenty; NaN: no class has enough
    search: SuspectSearch | None = None  # for suspects; None: there was none

    def to_json(self) -> dict[str, Any]:
        return {one.name: to_jsonable(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "AuditStats":
        found: AuditStats = from_jsonable(cls, data)
        n = len(found.classes)
        if not n or len({one.target for one in found.classes}) < n:
            raise ValueError(f"it has {n} classes, but each once and one at least")
        return found


def write_stats(folder: Storage, stats: AuditStats) -> None:
    (folder / FILE).write(json.dumps(stats.to_json()).encode())


def read_stats(folder: Storage) -> AuditStats:
    try:
        content = (folder / FILE).read_bytes()
    except OSError:
        raise unfinished_error(folder) from None
    with reporting_damage(folder):
        return AuditStats.from_json(json.loads(content))


# ---- making them


def make_stats(
    info: AuditInfo,
    classes: Iterable[ClassData],
    answers: ConfirmationAnswers | None = None,
    seed: int = 0,
) -> AuditStats:
    """All figures of an audit.

    `answers` are what the model said to `regions_to_try`; None: it was not asked.
    """
    made: list[ClassStats] = []
    found: list[list[ClassFinding]] = []  # of each class
    tested: list[FloatArray | None] = []  # z (K, R, R) of each
    numbers: list[ClassData] = []
    sums, largest = Sums(), np.zeros(0)
    for class_data in classes:
        found.append([])
        tested.append(None)
        few = too_few(len(class_data), len(np.unique(class_data.group)))
        if few is None:
            own = largest_by_chance(class_data, seed)
            largest = np.maximum(largest, own) if largest.size else own
            found[-1] = class_findings(class_data, info, threshold(own), answers, seed)
            tested[-1] = z_maps(class_data.tested, class_data.group)
        made.append(
            replace(
                stats_of(class_data, info, info.label(class_data.target)),
                outliers=find_unlike(class_data, info),
                too_few=few,
            )
        )
        sums.add(class_data)
        numbers.append(without_maps(class_data))
    limit = threshold(largest) if largest.size else math.nan
    n_judged = sum(one.too_few is None for one in made)
    made = [
        replace(
            with_findings(one, [finding for finding in own if exceeds(finding, limit, n_judged)]),
            beyond=None if z is None else np.abs(z) > limit,
        )
        for one, own, z in zip(made, found, tested, strict=True)
    ]
    unlike = sorted((image for one in made for image in one.outliers), key=lambda u: -u.distance)
    overall = replace(
        stats_of(joined(numbers), info, "all classes"),
        mean=sums.mean,
        error=sums.error,
        outliers=tuple(unlike[:MOST_UNLIKE]),
    )
    return AuditStats(tuple(made), overall, limit)


def class_findings(
    class_data: ClassData,
    info: AuditInfo,
    limit: float,
    answers: ConfirmationAnswers | None,
    seed: int,
) -> list[ClassFinding]:
    """What exceeds chance in one class, with what came of trying it."""
    found = candidates(class_data, limit, info.cell)
    confirmations: list[list[ConfirmationTask]] = [[] for _ in found]
    if answers is not None:
        for number, some in tries(class_data, info, found, seed):
            confirmations[number] += some
    told = []
    for one, own in zip(found, confirmations, strict=True):
        judged = None if answers is None else judge(class_data, own, answers, info.kind)
        tried = {} if judged is None else {**vars(judged)}
        painted = tried.pop("region", None)  # what is drawn is what was painted
        drawn = one if painted is None else replace(one, region=painted)
        finding = replace(describe(class_data, drawn), **tried)
        told.append(replace(finding, sentence=finding_sentence(finding, info)))
    if whole := background_finding(class_data, info, seed):
        told.append(replace(whole, sentence=background_sentence(whole, info)))
    return told


def exceeds(finding: ClassFinding, limit: float, n_classes: int) -> bool:
    """Whether chance would show it in less than one audit of twenty.

    What lies outside is looked at twice in each class, for what lowers the score and what raises
    it, and its interval has to allow for that.
    """
    if finding.z is not None:
        return finding.z > limit
    assert finding.change
    return bonferroni(finding.change, 2 * n_classes).excludes_zero


def with_findings(one: ClassStats, found: Sequence[ClassFinding]) -> ClassStats:
    """Confirmed ones first, and those apart that only masks show.

    All of what lies outside comes after a place in it that does as much.
    """
    places = [one for one in found if one.z is not None and one.verdict == "confirmed"]
    order = sorted(
        found,
        key=lambda one: (
            one.verdict != "confirmed",
            any(does_as_much(place, one) for place in places),
            -one.weight,
        ),
    )
    only = [finding for finding in order if finding.verdict == "under masks only"]
    told = [finding for finding in order if finding not in only]
    return replace(one, findings=tuple(told), under_masks=tuple(only))


def does_as_much(place: ClassFinding, whole: ClassFinding) -> bool:
    """Whether painting a place moves the score as far as painting all of what lies outside."""
    if whole.z is not None or place.sign != whole.sign or not whole.change:
        return False
    return place.weight >= min(abs(whole.change.low), abs(whole.change.high))


def stats_of(class_data: ClassData, info: AuditInfo, label: str) -> ClassStats:
    """Everything that is a mean or a share over images."""
    group, whole = class_data.group, class_data.presence_energy + class_data.color_energy
    middle, error = mean_maps(class_data.maps, group)
    known = class_data.truth >= 0
    return ClassStats(
        target=class_data.target,
        label=label,
        n=len(class_data),
        n_groups=len(np.unique(group)),
        accuracy=share(class_data.predicted[known] == class_data.truth[known], group[known]),
        accuracy_gray=still_decided(class_data, class_data.gray),
        accuracy_hue120=still_decided(class_data, class_data.hue120),
        accuracy_hue240=still_decided(class_data, class_data.hue240),
        color_share=color_share(
            class_data.presence_energy, class_data.color_energy, group, len(info.fills)
        ),
        mean=middle,
        error=error,
        beyond=None,
        zones=known_only(
            (zone, share_of(class_data.zone_energy[:, z], whole, group))
            for z, zone in enumerate(info.zones)
        ),
        zone_effect={
            zone: effects(class_data.zone_effect[:, z], group, info)
            for z, zone in enumerate(info.zones)
        },
        color_area_effect=own_table(class_data, info),
        background=background_effect(class_data, info),
        findings=(),
        under_masks=(),
        outliers=(),
        mistakes=mistakes(class_data),
        too_few=None,
    )


def color_share(
    presence: FloatArray, color: FloatArray, group: IntArray, n_fills: int
) -> Estimate | None:
    """How much of what images (n,) depend on is color, and not only something being painted.

    Of energies by `measure.energies`. None: there is but one fill, or nothing above noise.
    """
    return ratio(color, presence + color, group, SHARE) if n_fills > 1 else None


def still_decided(class_data: ClassData, codes: IntArray) -> Estimate | None:
    """The share of images that some predictions (n,) decide as the class that they are of.

    Over images whose truth is known if there are any, so that it compares with the accuracy.
    """
    known = class_data.truth >= 0
    judged = (codes >= 0) & (known | ~known.any())
    own = np.where(known, class_data.truth, class_data.predicted)
    return share((codes == own)[judged], class_data.group[judged])


def share_of(energy: FloatArray, whole: FloatArray, group: IntArray) -> Estimate | None:
    """Of the images that have the zone."""
    known = np.isfinite(energy)
    return ratio(energy[known], whole[known], group[known], SHARE)


def effects(values: FloatArray, group: IntArray, info: AuditInfo) -> dict[str, Estimate]:
    """The mean over images of (n, K), by fill."""
    return known_only((fill, mean(values[:, k], group)) for k, fill in enumerate(info.fills))


def known_only(pairs: Iterable[tuple[str, Estimate | None]]) -> dict[str, Estimate]:
    return {name: estimate for name, estimate in pairs if estimate is not None}


def own_table(class_data: ClassData, info: AuditInfo) -> dict[str, dict[str, Estimate]]:
    """What each fill does where the image has a basic color: over the images that have it."""
    table = {}
    for b, basic in enumerate(info.basics):
        have = class_data.color_area[:, b] >= LEAST_OWN
        if have.sum() >= FEWEST_OWN:
            table[basic] = effects(
                class_data.color_area_effect[have, b], class_data.group[have], info
            )
    return table


def mistakes(class_data: ClassData) -> dict[str, int]:
    """How many are wrong, how many of these a repaint of a finding puts right, and by what kind."""
    wrong = np.flatnonzero((class_data.truth >= 0) & (class_data.predicted != class_data.truth))
    kinds = Counter(kind for i in wrong if (kind := class_data.corrected_by[i]))
    return {"wrong": len(wrong), "corrected": kinds.total(), **dict(sorted(kinds.items()))}


# ---- over all classes


class Sums:
    """The mean of all maps and its error, class by class: the maps themselves are not kept.

    A group that has images of several classes counts once in each.
    """

    def __init__(self) -> None:
        self.n = self.n_groups = self.sizes = 0
        self.total: Any = 0.0  # sums over groups g of s_g, s_g**2 and n_g * s_g
        self.squares: Any = 0.0
        self.crossed: Any = 0.0

    def add(self, class_data: ClassData) -> None:
        sums = by_group(class_data.maps, class_data.group)  # (G, K, R, R)
        sizes = by_group(np.ones(len(class_data)), class_data.group)
        self.n += len(class_data)
        self.n_groups += len(sizes)
        self.sizes += int(np.square(sizes).sum())
        self.total = self.total + sums.sum(axis=0)
        self.squares = self.squares + np.square(sums).sum(axis=0)
        self.crossed = self.crossed + np.tensordot(sizes, sums, 1)

    @property
    def mean(self) -> NDArray[np.float32]:
        return np.asarray(self.total / self.n, np.float32)

    @property
    def error(self) -> NDArray[np.float32]:
        middle = self.total / self.n
        spread = self.squares - 2 * middle * self.crossed + middle**2 * self.sizes
        if self.n_groups < 2:
            return np.full(middle.shape, np.nan, np.float32)
        factor = self.n_groups / (self.n_groups - 1)
        return np.asarray(np.sqrt(factor * np.maximum(spread, 0)) / self.n, np.float32)


def without_maps(class_data: ClassData) -> ClassData:
    """Only what is a few numbers an image."""
    none = np.zeros((len(class_data), 0, 0, 0), np.float32)
    return replace(
        class_data, maps=none, errors=none, ranks=None, pixels=None, background_region=None
    )


def joined(parts: Sequence[ClassData]) -> ClassData:
    """The images of several classes, without maps, as one."""
    columns: dict[str, Any] = {}
    for one in fields(ClassData):
        values = [getattr(part, one.name) for part in parts]
        if isinstance(values[0], np.ndarray):
            columns[one.name] = np.concatenate(values)
        elif isinstance(values[0], tuple):
            columns[one.name] = sum(values, ())
    return ClassData(target=ALL, **columns)
