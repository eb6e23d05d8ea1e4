"""Does n_masks="auto" keep its promise? Calls used and error reached, over 20 images.

    python benchmarks/stopping.py --data FOLDER

FOLDER holds gtsrb/ and imagenet/. Each image has a long run of another seed as its reference, whose
own noise is taken off. The true relative error of a map is its distance from the reference over the
size of the reference; a promise is kept when it is within 1.25 times what was promised.
"""

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

import mcrise
from mcrise import Model, Record
from mcrise.datasets import gtsrb
from mcrise.explain import last
from networks import CACHE, efficientnet, embedded
from table import report

TOLERANCES = (0.5, 0.25, 0.1)
CAP = 8000


def main() -> None:
    parser = argparse.ArgumentParser()
    default = os.environ.get("MCRISE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--seed", type=int, default=2000)  # other images than calls.py has
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    signs = [example.path for example in gtsrb(args.data / "gtsrb", "test")]
    photos = sorted((args.data / "imagenet" / "images").iterdir())
    cases = [
        ("embedded", embedded(), signs, 16, 32_000),
        ("EfficientNet", efficientnet(), photos, 4, 16_000),
    ]
    found = []
    for name, model, paths, n_images, n_reference in cases:
        for index in rng.choice(len(paths), n_images, replace=False):
            found += explain_one(f"{name}-{index}", model, paths[index], n_reference)
    rows = [
        summary(tolerance, [f for f in found if f["tolerance"] == tolerance])
        for tolerance in TOLERANCES
    ]
    report("stopping", rows, cap=CAP, cases=found)


def explain_one(name: str, model: Model, path: Path, n_reference: int) -> list[dict[str, Any]]:
    """All tolerances on one image; looser runs are the beginning of stricter ones."""
    reference = cached(f"stopping-{name}-reference", path, model, n_reference, seed=1)
    truth = reference.maps(estimator="centered")
    noise = float(np.mean(np.square(truth.se, dtype=np.float64)))
    signal = float(np.mean(np.square(truth.values, dtype=np.float64))) - noise
    record = cached(f"stopping-{name}", path, model, CAP, seed=0)
    rows = []
    for tolerance in TOLERANCES:
        # Every chunk is in the record already, so no call is made.
        run = mcrise.steps(path, model, n_masks="auto", tolerance=tolerance, cap=CAP, resume=record)
        grown = last(run)
        maps = record.first(grown.goal).maps()
        squared = float(np.mean(np.square(maps.values - truth.values, dtype=np.float64))) - noise
        true = float(np.sqrt(max(squared, 0) / max(signal, 1e-12)))
        rows.append({"case": name, "tolerance": tolerance, "n_masks": grown.goal,
                     "promised": min(maps.relative_error, 99.0), "true": true})  # fmt: skip
    return rows


def cached(name: str, path: Path, model: Model, n_masks: int, seed: int) -> Record:
    return mcrise.explain(path, model, n_masks=n_masks, seed=seed, save=CACHE / f"{name}.npz")


def summary(tolerance: float, cases: list[dict[str, Any]]) -> dict[str, Any]:
    kept = [case["true"] <= 1.25 * case["promised"] for case in cases]
    return {
        "tolerance": tolerance,
        "images": len(cases),
        "median masks": float(np.median([case["n_masks"] for case in cases])),
        "most masks": max(case["n_masks"] for case in cases),
        "median true error": float(np.median([case["true"] for case in cases])),
        "promise kept": float(np.mean(kept)),
    }


if __name__ == "__main__":
    main()
