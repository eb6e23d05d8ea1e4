"""Figures: what an audit comes to, per class and over all, each number with its interval.

They are made of `Looks`, one class at a time, so memory is that of one class and a few numbers an
image. Only what counts as a finding is known last: chance is that of all classes together.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..content import ByContent
from ..study.storage import Storage
from ..told import number, text, whole
from .attempts import Answers, Attempt, judge, tries
from .findings import (
    ClassFinding,
    candidates,
    describe,
    finding_sentence,
    largest_by_chance,
    too_few,
)
from .looks import Asked, BoolArray, FloatArray, IntArray, Looks
from .outer import Outer, outer_figures, outer_finding, outer_sentence
from .plain import array_of, plain, region_of, undamaged, unfinished
from .statistics import (
    Figure,
    by_group,
    count,
    mean,
    mean_maps,
    ratio,
    share,
    threshold,
    widened,
    z_maps,
)
from .unlike import Unlike, find_unlike

LEAST_OWN = 0.03  # of the pixels, two cells of 64: what is smaller is told by what is around it
FEWEST_OWN = 3  # images must have it, for a row of the table
MOST_UNLIKE = 20  # images over all classes
FILE = "figures.json"
ALL = -1  # as a class: all of them

SHARE = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class ClassFigures(ByContent):
    """What the images of a class come to."""

    target: int  # ALL: over all classes
    label: str
    n: int  # images
    n_groups: int
    accuracy: Figure | None  # None: no truth is known
    gray: Figure | None  # share decided as this class in gray; None: not measured
    hue120: Figure | None
    hue240: Figure | None
    color_share: Figure | None  # None: it depends on nothing that can be told from noise
    mean: NDArray[np.float32]  # (K, R, R)
    error: NDArray[np.float32]  # (K, R, R) over images
    beyond: BoolArray | None  # (K, R, R) where the mean exceeds chance; None: was not tested
    zones: dict[str, Figure]  # share of the effect (energy)
    zone_effect: dict[str, dict[str, Figure]]  # by zone and fill
    own: dict[str, dict[str, Figure]]  # by basic color and fill
    outer: Outer | None  # None: nothing lies outside of the objects, or it was not painted
    findings: tuple[ClassFinding, ...]  # confirmed ones first, then by what painting them does
    under_masks: tuple[ClassFinding, ...]  # what exceeds chance too, but not painted by itself
    unlike: tuple[Unlike, ...]  # most striking first
    mistakes: dict[str, int]  # "wrong", of them "righted" by a repaint, and these by kind
    too_few: str | None  # a sentence

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ClassFigures":
        made: dict[str, Any] = {
            name: Figure.from_json(data[name]) if data[name] else None
            for name in ("accuracy", "gray", "hue120", "hue240", "color_share")
        }
        made |= {name: array_of(data[name]) for name in ("mean", "error")}
        made["beyond"] = data["beyond"] and np.stack([region_of(one) for one in data["beyond"]])
        made["zones"] = table_of(data["zones"])
        for name in ("zone_effect", "own"):
            made[name] = {key: table_of(row) for key, row in data[name].items()}
        made["outer"] = Outer.from_json(data["outer"]) if data["outer"] else None
        for name in ("findings", "under_masks"):
            made[name] = tuple(map(ClassFinding.from_json, data[name]))
        made["unlike"] = tuple(map(Unlike.from_json, data["unlike"]))
        made["mistakes"] = {text(kind): count(n) for kind, n in data["mistakes"].items()}
        made |= {name: count(data[name]) for name in ("n", "n_groups")}
        made["label"] = text(data["label"])
        made["target"] = whole(data["target"], ALL, 10**9)
        made["too_few"] = data["too_few"] and text(data["too_few"])
        return cls(**{**data, **made})


def table_of(row: Mapping[str, Any]) -> dict[str, Figure]:
    return {text(key): Figure.from_json(figure) for key, figure in row.items()}


@dataclass(frozen=True, eq=False)
class Figures(ByContent):
    """What an audit comes to."""

    classes: tuple[ClassFigures, ...]  # in the order they came
    overall: ClassFigures  # over all images; it has no findings
    threshold: float  # of |z|: chance exceeds it in one audit of twenty; NaN: no class has enough

    def to_json(self) -> dict[str, Any]:
        return {one.name: plain(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Figures":
        limit = math.nan if data["threshold"] is None else number(data["threshold"])
        classes = tuple(map(ClassFigures.from_json, data["classes"]))
        if not classes or len({one.target for one in classes}) < len(classes):
            raise ValueError(f"it has {len(classes)} classes, but each once and one at least")
        return cls(classes, ClassFigures.from_json(data["overall"]), limit)


def write_figures(folder: Storage, figures: Figures) -> None:
    (folder / FILE).write(json.dumps(figures.to_json()).encode())


def read_figures(folder: Storage) -> Figures:
    try:
        content = (folder / FILE).read_bytes()
    except OSError:
        raise unfinished(folder) from None
    with undamaged(folder):
        return Figures.from_json(json.loads(content))


# ---- making them


def make_figures(
    asked: Asked, classes: Iterable[Looks], answers: Answers | None = None, seed: int = 0
) -> Figures:
    """All figures of an audit.

    `answers` are what the model said to `regions_to_try`; None: it was not asked.
    """
    made: list[ClassFigures] = []
    found: list[list[ClassFinding]] = []  # of each class
    tested: list[FloatArray | None] = []  # z (K, R, R) of each
    numbers: list[Looks] = []
    sums, largest = Sums(), np.zeros(0)
    for looks in classes:
        found.append([])
        tested.append(None)
        few = too_few(len(looks), len(np.unique(looks.group)))
        if few is None:
            own = largest_by_chance(looks, seed)
            largest = np.maximum(largest, own) if largest.size else own
            found[-1] = class_findings(looks, asked, threshold(own), answers, seed)
            tested[-1] = z_maps(looks.tested, looks.group)
        made.append(
            replace(
                figures_of(looks, asked, asked.label(looks.target)),
                unlike=find_unlike(looks, asked),
                too_few=few,
            )
        )
        sums.add(looks)
        numbers.append(without_maps(looks))
    limit = threshold(largest) if largest.size else math.nan
    n_judged = sum(one.too_few is None for one in made)
    made = [
        replace(
            with_findings(one, [finding for finding in own if exceeds(finding, limit, n_judged)]),
            beyond=None if z is None else np.abs(z) > limit,
        )
        for one, own, z in zip(made, found, tested, strict=True)
    ]
    unlike = sorted((image for one in made for image in one.unlike), key=lambda u: -u.distance)
    overall = replace(
        figures_of(joined(numbers), asked, "all classes"),
        mean=sums.mean,
        error=sums.error,
        unlike=tuple(unlike[:MOST_UNLIKE]),
    )
    return Figures(tuple(made), overall, limit)


def class_findings(
    looks: Looks, asked: Asked, limit: float, answers: Answers | None, seed: int
) -> list[ClassFinding]:
    """What exceeds chance in one class, with what came of trying it."""
    found = candidates(looks, limit, asked.cell)
    attempts: list[list[Attempt]] = [[] for _ in found]
    if answers is not None:
        for number, some in tries(looks, asked, found, seed):
            attempts[number] += some
    told = []
    for one, own in zip(found, attempts, strict=True):
        finding = describe(looks, one)
        if answers is not None:
            finding = replace(finding, **vars(judge(looks, own, answers, asked.kind)))
        told.append(replace(finding, sentence=finding_sentence(finding, asked)))
    if whole := outer_finding(looks, asked, seed):
        told.append(replace(whole, sentence=outer_sentence(whole, asked)))
    return told


def exceeds(finding: ClassFinding, limit: float, n_classes: int) -> bool:
    """Whether chance would show it in less than one audit of twenty.

    What lies outside is looked at twice in each class, for what lowers the score and what raises
    it, and its interval has to allow for that.
    """
    if finding.z is not None:
        return finding.z > limit
    assert finding.change
    return widened(finding.change, 2 * n_classes).excludes_zero


def with_findings(one: ClassFigures, found: Sequence[ClassFinding]) -> ClassFigures:
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


def figures_of(looks: Looks, asked: Asked, label: str) -> ClassFigures:
    """Everything that is a mean or a share over images."""
    group, whole = looks.group, looks.presence + looks.color
    middle, error = mean_maps(looks.maps, group)
    known = looks.truth >= 0
    return ClassFigures(
        target=looks.target,
        label=label,
        n=len(looks),
        n_groups=len(np.unique(group)),
        accuracy=share(looks.predicted[known] == looks.truth[known], group[known]),
        gray=still_decided(looks, looks.gray),
        hue120=still_decided(looks, looks.hue120),
        hue240=still_decided(looks, looks.hue240),
        color_share=color_share(looks.presence, looks.color, group, len(asked.fills)),
        mean=middle,
        error=error,
        beyond=None,
        zones=known_only(
            (zone, share_of(looks.zone_energy[:, z], whole, group))
            for z, zone in enumerate(asked.zones)
        ),
        zone_effect={
            zone: effects(looks.zone_effect[:, z], group, asked)
            for z, zone in enumerate(asked.zones)
        },
        own=own_table(looks, asked),
        outer=outer_figures(looks, asked),
        findings=(),
        under_masks=(),
        unlike=(),
        mistakes=mistakes(looks),
        too_few=None,
    )


def color_share(
    presence: FloatArray, color: FloatArray, group: IntArray, n_fills: int
) -> Figure | None:
    """How much of what images (n,) depend on is color, and not only something being painted.

    Of energies by `looking.energies`. None: there is but one fill, or nothing above noise.
    """
    return ratio(color, presence + color, group, SHARE) if n_fills > 1 else None


def still_decided(looks: Looks, codes: IntArray) -> Figure | None:
    """The share of images that some predictions (n,) decide as the class that they are of.

    Over images whose truth is known if there are any, so that it compares with the accuracy.
    """
    known = looks.truth >= 0
    judged = (codes >= 0) & (known | ~known.any())
    own = np.where(known, looks.truth, looks.predicted)
    return share((codes == own)[judged], looks.group[judged])


def share_of(energy: FloatArray, whole: FloatArray, group: IntArray) -> Figure | None:
    """Of the images that have the zone."""
    known = np.isfinite(energy)
    return ratio(energy[known], whole[known], group[known], SHARE)


def effects(values: FloatArray, group: IntArray, asked: Asked) -> dict[str, Figure]:
    """The mean over images of (n, K), by fill."""
    return known_only((fill, mean(values[:, k], group)) for k, fill in enumerate(asked.fills))


def known_only(pairs: Iterable[tuple[str, Figure | None]]) -> dict[str, Figure]:
    return {name: figure for name, figure in pairs if figure is not None}


def own_table(looks: Looks, asked: Asked) -> dict[str, dict[str, Figure]]:
    """What each fill does where the image has a basic color: over the images that have it."""
    table = {}
    for b, basic in enumerate(asked.basics):
        have = looks.own_share[:, b] >= LEAST_OWN
        if have.sum() >= FEWEST_OWN:
            table[basic] = effects(looks.own_effect[have, b], looks.group[have], asked)
    return table


def mistakes(looks: Looks) -> dict[str, int]:
    """How many are wrong, how many of these a repaint of a finding puts right, and by what kind."""
    wrong = np.flatnonzero((looks.truth >= 0) & (looks.predicted != looks.truth))
    kinds = Counter(kind for i in wrong if (kind := looks.righted[i]))
    return {"wrong": len(wrong), "righted": kinds.total(), **dict(sorted(kinds.items()))}


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

    def add(self, looks: Looks) -> None:
        sums = by_group(looks.maps, looks.group)  # (G, K, R, R)
        sizes = by_group(np.ones(len(looks)), looks.group)
        self.n += len(looks)
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


def without_maps(looks: Looks) -> Looks:
    """Only what is a few numbers an image."""
    none = np.zeros((len(looks), 0, 0, 0), np.float32)
    return replace(looks, maps=none, errors=none, ranks=None, pixels=None, outer_region=None)


def joined(parts: Sequence[Looks]) -> Looks:
    """The images of several classes, without maps, as one."""
    columns: dict[str, Any] = {}
    for one in fields(Looks):
        values = [getattr(part, one.name) for part in parts]
        if isinstance(values[0], np.ndarray):
            columns[one.name] = np.concatenate(values)
        elif isinstance(values[0], tuple):
            columns[one.name] = sum(values, ())
    return Looks(target=ALL, **columns)
