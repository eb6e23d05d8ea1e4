"""Does n_masks="auto" keep its promise? Calls and error, with mask_prob "auto" and 0.5.

    python benchmarks/stopping.py [--data FOLDER] [--tolerance T]... [--images N] [--at-half N]

On the images that `calls.py` reports on, and as many further signs and photographs as asked for. A
call is a mask, those of the pilot included. The true relative error of a map is its distance from
that of 4096 other masks, with the same mask_prob, over the size of the latter, whose own noise is
taken off both. A promise is kept when the true error is within 1.25 times the promised one.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import calls
import networks
from mcrise import Explanation, Maps, Model, grow, iter_explain, load
from mcrise.masks import CHUNK
from mcrise.sampling import last
from table import report

TOLERANCES = (0.5, 0.25)  # 0.1 takes the cap of nearly every image
CAP = 8000
N_REFERENCE = 4096
N_FURTHER = 20
SEEDS = (21, 22)  # of the run, of its reference
MASK_PROBS = ("auto", 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=calls.DATA)
    parser.add_argument("--tolerance", type=float, action="append")
    parser.add_argument("--images", type=int, default=N_FURTHER, help="further ones of each kind")
    parser.add_argument("--at-half", type=int, default=N_FURTHER, help="of them, also at 0.5")
    given = parser.parse_args()
    tolerances = sorted(given.tolerance or TOLERANCES, reverse=True)
    cases = []
    for mask_prob in MASK_PROBS:
        for name in calls.SETTINGS:
            model = calls.SETTINGS[name].model()
            n_further = given.images if mask_prob == "auto" else given.at_half
            for group, i, path in images(name, n_further, given.data):
                file = networks.CACHE / "stopping" / f"{name}-{group}-{i}-{mask_prob}.npz"
                about = {"network": name, "images": group, "image": i, "mask_prob": mask_prob}
                cases += [about | row for row in stop(path, model, mask_prob, file, tolerances)]
    rows = [
        summary(some)
        for kind in ("signs", "photographs")
        for group in ("calls", "further")
        for mask_prob in MASK_PROBS
        for tolerance in tolerances
        if (some := pick(cases, kind, group, mask_prob, tolerance))
    ]
    report("stopping", rows, max_masks=CAP, n_reference=N_REFERENCE, cases=cases)


def images(name: str, n_further: int, data: Path) -> Iterator[tuple[str, int, Path]]:
    """Those that `calls.py` reports on, and others before them that nothing was tuned on."""
    n_known = calls.SETTINGS[name].n_images["reported"]
    paths = calls.images(calls.SETTINGS[name].collection, data)[::-1]
    yield from (("calls", i, path) for i, path in enumerate(paths[:n_known]))
    if name != "second-seed":
        further = paths[n_known : n_known + n_further]
        yield from (("further", i, path) for i, path in enumerate(further))


def stop(
    path: Path, model: Model, mask_prob: Any, file: Path, tolerances: list[float]
) -> Iterator[dict[str, Any]]:
    """Where each tolerance stops, the largest first, and the true error there."""
    run = (
        load(file)
        if file.exists()
        else last(iter_explain(path, model, n_masks=CHUNK, mask_prob=mask_prob, seed=SEEDS[0]))
    )
    found = []
    for tolerance in tolerances:
        run = last(grow(run, model, n_masks="auto", tolerance=tolerance, max_masks=CAP))
        found.append((tolerance, run.goal, run.first(run.goal).maps()))
    run.save(file)
    truth = reference(path, model, run, file.with_name(f"{file.stem}-reference.npz"))
    noise = float(np.square(truth.se, dtype=np.float64).mean())
    signal = float(np.square(truth.values, dtype=np.float64).mean()) - noise
    for tolerance, n_masks, maps in found:
        off = float(np.square(maps.values - truth.values, dtype=np.float64).mean()) - noise
        yield {
            "tolerance": tolerance,
            "chosen": run.plan.mask_prob,
            "n_masks": n_masks,
            "calls": n_masks + CHUNK * len(run.pilot),
            "promised": min(maps.relative_error, 99.0),
            "true": float(np.sqrt(max(off, 0) / max(signal, 1e-12))),
        }


def reference(path: Path, model: Model, run: Explanation, file: Path) -> Maps:
    """The maps of the run's class from other masks, by plain sums; only its scores are kept."""
    if not file.exists():
        top, narrow = run.resolve(None), None
        given = {"n_masks": N_REFERENCE, "mask_prob": run.plan.mask_prob, "seed": SEEDS[1]}
        for whole in iter_explain(path, model, **given):
            narrow = narrow or replace(
                whole, untouched=whole.untouched[[top]], labels=None, scores={}, kind="any"
            )
            for chunk, scores in whole.scores.items():
                narrow.add(chunk, scores[:, [top]])
            whole.scores.clear()
        narrow.save(file)
    return load(file).maps(0, "centered")


def pick(
    cases: list[dict[str, Any]], kind: str, group: str, mask_prob: Any, tolerance: float
) -> list[dict[str, Any]]:
    return [
        {**case, "kind": kind}
        for case in cases
        if (case["network"] == "efficientnet") == (kind == "photographs")
        and (case["images"], case["mask_prob"], case["tolerance"]) == (group, mask_prob, tolerance)
    ]


def summary(cases: list[dict[str, Any]]) -> dict[str, Any]:
    kept = [case["true"] <= 1.25 * case["promised"] for case in cases]
    return {
        "what": f"{len(cases)} {cases[0]['kind']} ({cases[0]['images']})",
        "mask_prob": cases[0]["mask_prob"],
        "chosen": ", ".join(f"{p:g}" for p in sorted({case["chosen"] for case in cases})),
        "tolerance": cases[0]["tolerance"],
        "median calls": float(np.median([case["calls"] for case in cases])),
        "mean calls": float(np.mean([case["calls"] for case in cases])),
        "most calls": max(case["calls"] for case in cases),
        "at the cap": sum(case["n_masks"] >= CAP for case in cases),
        "median true error": float(np.median([case["true"] for case in cases])),
        "promise kept": float(np.mean(kept)),
    }


if __name__ == "__main__":
    main()
