"""What would change its mind: repaint a region and ask again; compare two classes.

A map's value is the mean effect of a patch while other cells are painted too. What painting a
whole region does is another number, known only by trying. So each finding is tried, and one that
fails its own test is shown as such.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, ModelError
from .fills import Fill
from .images import unit_float
from .maps import Maps
from .model import Model
from .reading import Effect, Finding, Reading, join, read
from .record import DEFAULT, Record

ROOM = 0.02  # a score this near to its bound has no room to move
SMALL = 0.01  # of the range of scores: less is no movement
EDGE = 0.25  # cells; how soft the edge of a painted region is


@dataclass(frozen=True)
class Stroke:
    """A region to paint and what with."""

    region: NDArray[np.bool_]  # (H, W)
    fill: Fill
    place: str = "the region"

    @property
    def words(self) -> str:
        return f"all of {self.place} with {self.fill.name}"


@dataclass(frozen=True)
class Trial:
    """A repaint and what the model said of it."""

    strokes: tuple[Stroke, ...]
    target: int
    against: int | None  # where the score is a difference of two classes
    before: NDArray[np.float32]  # (C,)
    after: NDArray[np.float32]  # (C,)
    expected: float | None  # the map's mean effect there; None where no map says
    verdict: str  # "confirmed", "weaker", "refuted", "no room"; "" where nothing was expected

    @property
    def share(self) -> float:
        """Of the image."""
        return float(sum(stroke.region.mean() for stroke in self.strokes))

    @property
    def flips(self) -> bool:
        return bool(self.before.argmax() != self.after.argmax())

    def score(self, scores: NDArray[np.float32]) -> float:
        return float(scores[self.target] - (0 if self.against is None else scores[self.against]))

    def line(self, record: Record) -> str:
        """`Painting all of the center with green: 'stop' 0.99 → 0.04 (tried: confirmed)`."""
        shown = [self.target] + ([] if self.against is None else [self.against])
        moved = ", ".join(
            f"{record.label(c)!r} {self.before[c]:.2f} → {self.after[c]:.2f}" for c in shown
        )
        words = join([stroke.words for stroke in self.strokes], "and")
        flip = f"; the model then says {record.label(int(self.after.argmax()))!r}"
        verdict = f" (tried: {self.verdict})" if self.verdict else ""
        return f"Painting {words}: {moved}{flip if self.flips else ''}{verdict}."

    def to_json(self, record: Record) -> dict[str, Any]:
        top = np.argsort(-np.maximum(self.before, self.after), kind="stable")[:5]
        shown = dict.fromkeys([self.target, *(int(c) for c in top)])
        return {
            "strokes": [
                {"place": s.place, "share": float(s.region.mean()), "fill": s.fill.name}
                for s in self.strokes
            ],
            "before": self.score(self.before),
            "after": self.score(self.after),
            "expected": self.expected,
            "verdict": self.verdict or None,
            "flips": self.flips,
            "scores": [
                {"target": c, "label": record.label(c),
                 "before": float(self.before[c]), "after": float(self.after[c])}
                for c in shown
            ],
        }  # fmt: skip


# ---- painting and asking


def repaint(record: Record, strokes: Sequence[Stroke]) -> NDArray[Any]:
    """The image of a record with some regions painted, soft at the edges; same dtype."""
    from scipy.ndimage import gaussian_filter

    image = record.view.pixels
    untouched = unit_float(image)
    painted = untouched
    sigma = [EDGE * side for side in record.plan.cell]
    for stroke in strokes:
        weight = gaussian_filter(stroke.region.astype(np.float32), sigma)[..., None]
        painted = painted * (1 - weight) + stroke.fill.render(untouched) * weight
    if image.dtype == np.uint8:
        return np.rint(painted * 255).astype(np.uint8)
    return painted.astype(np.float32)


def try_out(
    record: Record,
    model: Model,
    strokes: Sequence[Sequence[Stroke]],
    target: int,
    against: int | None = None,
    expected: Sequence[float | None] | None = None,
) -> list[Trial]:
    """Paint each group of strokes together and ask the model what it makes of it."""
    if not strokes:
        return []
    images = np.stack([repaint(record, group) for group in strokes])
    try:
        answers = model(images)
    except ModelError as error:
        raise ModelError(f"Failed at the repainted image: {error}.") from error
    hopes = expected or [None] * len(strokes)
    trials = [
        Trial(tuple(group), target, against, record.untouched, after, hope, "")
        for group, after, hope in zip(strokes, answers, hopes, strict=True)
    ]
    return [replace(trial, verdict=judge(record, trial)) for trial in trials]


def judge(record: Record, trial: Trial) -> str:
    """Did it move as the map said, and at least as much?"""
    if trial.expected is None:
        return ""
    before, after = trial.score(trial.before), trial.score(trial.after)
    moved, direction = after - before, np.sign(trial.expected)
    scale = 1.0
    if record.kind == "any":
        scale = max(float(np.ptp(record.scores_of(trial.target))), 1e-12)
    else:
        bound = 1.0 if direction > 0 else (0.0 if trial.against is None else -1.0)
        if abs(bound - before) <= ROOM:
            return "no room"
    if direction * moved < SMALL * scale:
        return "refuted"
    return "confirmed" if abs(moved) >= abs(trial.expected) else "weaker"


def stroke_of(finding: Finding, effect: Effect | None = None) -> Stroke:
    """What a finding suggests to paint."""
    return Stroke(finding.region, (effect or finding.strongest).fill, f"the {finding.place}")


def try_findings(record: Record, model: Model, reading: Reading) -> list[Trial]:
    """Test every finding: paint its region with the fill that moves the score most."""
    return try_out(
        record,
        model,
        [[stroke_of(finding)] for finding in reading.findings],
        reading.maps.target,
        expected=[finding.strongest.value for finding in reading.findings],
    )


def try_region(
    record: Record, model: Model, region: NDArray[np.bool_], fill: Fill, maps: Maps, place: str
) -> Trial:
    """Paint any region with any fill; the map is held to it where it has that fill."""
    if region.shape != record.plan.size:
        raise InputError(
            f"The region is {region.shape[0]} x {region.shape[1]} pixels, but the image of the "
            f"record is {record.plan.size[0]} x {record.plan.size[1]}: give one of that size."
        )
    if not region.any():
        raise InputError("The region is empty: mark it white on black.")
    expected = None
    if fill in maps.fills:
        expected = float(maps.values[maps.fills.index(fill)][region].mean())
    stroke = Stroke(region, fill, place)
    return try_out(record, model, [[stroke]], maps.target, expected=[expected])[0]


def smallest_flip(record: Record, model: Model, reading: Reading) -> Trial | None:
    """The smallest repaint that changes the decision, among the findings and all together.

    Findings against the predicted class, or for another class, are combined in every way: five
    make 31 calls at most.
    """
    target = reading.maps.target
    direction = -1 if target == record.untouched.argmax() else 1
    movers = [(finding, finding.mover(direction)) for finding in reading.findings]
    strokes = [stroke_of(finding, effect) for finding, effect in movers if effect is not None]
    groups = [group for n in range(1, len(strokes) + 1) for group in combinations(strokes, n)]
    groups.sort(key=lambda group: sum(int(stroke.region.sum()) for stroke in group))
    trials = try_out(record, model, groups, target)
    return next((trial for trial in trials if trial.flips), None)


# ---- comparing two classes


@dataclass(frozen=True)
class Comparison:
    """Two classes under the same masks, and how their difference responds."""

    wanted: Maps
    given: Maps
    difference: Reading  # of wanted minus given


def compare(
    record: Record, wanted: int | str, given: int | str | None = None, estimator: str = DEFAULT
) -> Comparison:
    """Compare two classes; `given` None is the one the model predicts."""
    first, second = record.resolve(wanted), record.resolve(given)
    if first == second:
        raise InputError(
            f"Both classes are {record.label(first)!r}: name two different ones, such as the "
            "right one and the one predicted."
        )
    difference = read(subtract(record, first, second), 0, estimator)
    return Comparison(record.maps(first, estimator), record.maps(second, estimator), difference)


def subtract(record: Record, first: int, second: int) -> Record:
    """The difference of two classes as a record of one class.

    Estimators are linear in the scores, so its maps are the difference of the maps (`smooth` fits
    the difference itself). Both classes saw the same masks, so their errors go together: its own
    standard error is smaller than the two combined where they rise and fall together, and larger
    where one gains what the other loses.
    """
    columns = {c: scores[:, [first]] - scores[:, [second]] for c, scores in record.scores.items()}
    return replace(
        record,
        untouched=record.untouched[[first]] - record.untouched[[second]],
        labels=(f"{record.label(first)} − {record.label(second)}",),
        kind="any",
        scores=columns,
    )


def try_comparison(record: Record, model: Model, comparison: Comparison) -> list[Trial]:
    """Try what would move the decision towards the wanted class, strongest first."""
    movers = [(found, found.mover(+1)) for found in comparison.difference.findings]
    helpful = [(found, effect) for found, effect in movers if effect is not None]
    helpful.sort(key=lambda pair: -pair[1].value)
    return try_out(
        record,
        model,
        [[stroke_of(found, effect)] for found, effect in helpful],
        comparison.wanted.target,
        comparison.given.target,
        [effect.value for _, effect in helpful],
    )
