"""Does n_masks="auto" keep its promise? Calls used and error reached, on the images of `calls.py`.

    python benchmarks/stopping.py [--data FOLDER]

Uses the runs of 8000 masks and the long references that `calls.py` made: no model is called twice.
The true relative error of a map is its distance from the reference over the size of the reference,
the reference's own noise taken off. A promise is kept when that is within 1.25 times the promise.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import calls
import mcrise
from mcrise import Model, Record
from mcrise.estimate import estimate
from mcrise.loop import last
from table import report

TOLERANCES = (0.5, 0.25, 0.1)
CAP = 8000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=calls.DATA)
    data = parser.parse_args().data
    cases = [
        {"case": f"{name} {i}", **row}
        for name, setting in calls.SETTINGS.items()
        for i, (run, reference) in enumerate(calls.prepare(name, "reported", data))
        for row in stop(run, reference, setting.model())
    ]
    rows = [summary(t, [case for case in cases if case["tolerance"] == t]) for t in TOLERANCES]
    report("stopping", rows, cap=CAP, cases=cases)


def stop(run: Record, reference: Record, model: Model) -> Iterator[dict[str, Any]]:
    """Where each tolerance stops, and the true error there."""
    truth, se = estimate(reference.plan, reference.masks(), reference.scores_of(0), "centered")
    noise = float(np.square(se, dtype=np.float64).mean())
    signal = float(np.square(truth, dtype=np.float64).mean()) - noise
    for tolerance in TOLERANCES:
        # Every chunk is in the record already, so this asks the model nothing.
        grown = last(mcrise.grow(run, model, n_masks="auto", tolerance=tolerance, cap=CAP))
        maps = grown.first(grown.goal).maps()
        squared = float(np.square(maps.values - truth, dtype=np.float64).mean()) - noise
        yield {
            "tolerance": tolerance,
            "n_masks": grown.goal,
            "promised": min(maps.relative_error, 99.0),
            "true": float(np.sqrt(max(squared, 0) / max(signal, 1e-12))),
        }


def summary(tolerance: float, cases: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "tolerance": tolerance,
        "images": len(cases),
        "median masks": float(np.median([case["n_masks"] for case in cases])),
        "most masks": max(case["n_masks"] for case in cases),
        "at the cap": sum(case["n_masks"] >= CAP for case in cases),
        "median true error": float(np.median([case["true"] for case in cases])),
        "promise kept": float(np.mean([case["true"] <= 1.25 * case["promised"] for case in cases])),
    }


if __name__ == "__main__":
    main()
