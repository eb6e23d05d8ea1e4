"""The summary of a run: what summary.json holds and what is printed."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..maps import Maps
from ..record import Record


def summarise(record: Record, maps: Sequence[Maps], notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """The run in numbers and sentences."""
    top = np.argsort(-record.untouched, kind="stable")[:5]
    return {
        "model": record.model,
        "n_masks": record.n_masks,
        "verdict": record.verdict,
        "mask_prob": record.plan.mask_prob,
        "grid": list(record.plan.grid),
        "seed": record.plan.seed,
        "fills": [fill.name for fill in record.plan.fills],
        "scores": record.kind,
        "size": list(record.plan.size),
        "predicted": [
            {"target": int(k), "label": record.label(int(k)), "score": float(record.untouched[k])}
            for k in top
        ],
        "maps": [summarise_maps(one) for one in maps],
        "notes": [*record.view.notes, *notes],
    }


def summarise_maps(maps: Maps) -> dict[str, Any]:
    error = maps.relative_error
    return {
        "target": maps.target,
        "label": maps.label,
        "estimator": maps.estimator,
        "unit": maps.unit,
        "relative_error": error if math.isfinite(error) else None,
        "strongest": [extreme(maps, panel, name) for panel, name in enumerate(maps.names)],
        "notes": list(maps.notes),
    }


def extreme(maps: Maps, panel: int, name: str) -> dict[str, Any]:
    """The pixel of a map where it is farthest from zero."""
    values, se = maps.values[panel], maps.se[panel]
    row, column = np.unravel_index(np.abs(values).argmax(), values.shape)
    return {
        "fill": name,
        "row": int(row),
        "column": int(column),
        "value": float(values[row, column]),
        "se": float(se[row, column]),
    }


def tell(summary: dict[str, Any]) -> list[str]:
    """The summary as lines to print."""
    best = summary["predicted"][0]
    decided = len(summary["predicted"]) > 1  # a similarity or another single score decides nothing
    lines = [f"{'Predicted: ' if decided else ''}{best['label']} ({best['score']:.3f})"]
    if summary["verdict"]:
        lines.append(summary["verdict"].capitalize() + ".")
    for maps in summary["maps"]:
        error = maps["relative_error"]
        quality = "not above noise" if error is None else f"relative error {error:.2f}"
        lines.append(
            f"{maps['label']}: {summary['n_masks']:,} masks, {maps['estimator']} estimator, "
            f"{quality}"
        )
        lines += [f"Note: {note}." for note in maps["notes"]]
    return lines + [f"Note: {note}." for note in summary["notes"]]
