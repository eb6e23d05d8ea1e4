"""Summary: a run in numbers and sentences, as summary.json keeps it and as it is printed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .maps import Maps
from .record import Prediction, Record


@dataclass(frozen=True)
class Extreme:
    """The pixel of a map where it is farthest from zero."""

    fill: str
    row: int
    column: int
    value: float
    se: float


@dataclass(frozen=True)
class MapsSummary:
    """What the maps of one class come to."""

    target: int
    label: str
    estimator: str
    unit: str
    relative_error: float | None  # None: not above noise
    strongest: tuple[Extreme, ...]  # of each map
    notes: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)  # as `Reading.to_json` has it


@dataclass(frozen=True)
class Summary:
    """A run, and what its maps of some classes come to."""

    model: str
    n_masks: int
    verdict: str
    mask_prob: float
    grid: tuple[int, int]
    seed: int
    fills: tuple[str, ...]
    scores: str  # their kind
    size: tuple[int, int]
    predicted: tuple[Prediction, ...]  # best first
    maps: tuple[MapsSummary, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        content = asdict(self)
        content["predicted"] = [one._asdict() for one in self.predicted]
        return content

    def lines(self) -> list[str]:
        """To print."""
        best = self.predicted[0]
        decided = len(self.predicted) > 1  # a similarity or another single score decides nothing
        lines = [f"{'Predicted: ' if decided else ''}{best.label} ({best.score:.3f})"]
        if self.verdict:
            lines.append(self.verdict.capitalize() + ".")
        for maps in self.maps:
            error = maps.relative_error
            quality = "not above noise" if error is None else f"relative error {error:.2f}"
            lines.append(
                f"{maps.label}: {self.n_masks:,} masks, {maps.estimator} estimator, {quality}"
            )
            lines += [f"Note: {note}." for note in maps.notes]
        return lines + [f"Note: {note}." for note in self.notes]


def summarise(
    record: Record,
    maps: Sequence[Maps],
    readings: Sequence[Mapping[str, Any]],
    notes: tuple[str, ...] = (),
) -> Summary:
    """The summary of a run; readings as JSON, one for each class."""
    plan = record.plan
    return Summary(
        model=record.model,
        n_masks=record.n_masks,
        verdict=record.verdict,
        mask_prob=plan.mask_prob,
        grid=plan.grid,
        seed=plan.seed,
        fills=tuple(fill.name for fill in plan.fills),
        scores=record.kind,
        size=plan.size,
        predicted=tuple(record.top()),
        maps=tuple(summarise_maps(*both) for both in zip(maps, readings, strict=True)),
        notes=(*record.notes, *notes),
    )


def summarise_maps(maps: Maps, reading: Mapping[str, Any]) -> MapsSummary:
    error = maps.relative_error
    return MapsSummary(
        maps.target,
        maps.label,
        maps.estimator,
        maps.unit,
        error if math.isfinite(error) else None,
        tuple(extreme(maps, panel, name) for panel, name in enumerate(maps.names)),
        maps.notes,
        reading,
    )


def extreme(maps: Maps, panel: int, name: str) -> Extreme:
    values, se = maps.values[panel], maps.se[panel]
    row, column = (int(at) for at in np.unravel_index(np.abs(values).argmax(), values.shape))
    return Extreme(name, row, column, float(values[row, column]), float(se[row, column]))
