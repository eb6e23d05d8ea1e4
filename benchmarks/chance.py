"""What chance does to a reading: findings on pure noise, and the coverage of class differences.

    python benchmarks/chance.py

Prints both and writes benchmarks/results/chance.json.
"""

import json
import time
from pathlib import Path

import numpy as np

from mcrise.demo.signs import washed_out_priority_road
from mcrise.explanation import Explanation
from mcrise.images import View
from mcrise.interpretation.regions import interpret
from mcrise.masks import CHUNK, Plan
from mcrise.models import load_model
from mcrise.sampling import explain

RESULTS = Path(__file__).with_name("results") / "chance.json"
SIZE = (96, 96)


def noise_record(seed: int, n_masks: int, n_classes: int) -> Explanation:
    """Scores that have nothing to do with the masks."""
    view = View(np.full((*SIZE, 3), 128, np.uint8), SIZE, (0.0, 0.0, 96.0, 96.0))
    untouched = np.full(n_classes, 0.5, np.float32)
    explanation = Explanation(Plan(SIZE, seed=seed), view, untouched, kind="independent")
    generator = np.random.default_rng(10_000 + seed)
    for chunk in range(n_masks // CHUNK):
        explanation.add(chunk, generator.random((CHUNK, n_classes)))
    return explanation


def difference_coverage(n_masks: int, n_seeds: int, n_long: int) -> dict[str, float]:
    """How often nominal 95% intervals of a difference hold the value of a long run."""
    model, sign = load_model("demo"), washed_out_priority_road()
    long = explain(sign, model, n_masks=n_long, mask_prob=0.15, seed=99)
    pair = long.resolve("priority road"), long.resolve("no vehicles")
    truth = long.maps(pair[0], "centered", against=pair[1])
    inside, own, apart = [], [], []
    for seed in range(n_seeds):
        explanation = explain(sign, model, n_masks=n_masks, mask_prob=0.15, seed=seed)
        maps = explanation.maps(pair[0], "centered", against=pair[1])
        error = np.hypot(maps.se, truth.se)
        inside.append(np.abs(maps.values - truth.values) <= 1.96 * error)
        own.append(np.mean(maps.se**2))
        apart.append(sum(np.mean(explanation.maps(target, "centered").se ** 2) for target in pair))
    ratio = float(np.sqrt(np.mean(own) / np.mean(apart)))
    return {"coverage": float(np.mean(inside)), "error_over_that_of_independent_runs": ratio}


def main() -> None:
    figures: dict[str, float] = {}
    for estimator, n_classes in (("centered", 1), ("smooth", 1), ("smooth", 10)):
        explanations = [noise_record(seed, 1024, n_classes) for seed in range(100)]
        started = time.perf_counter()
        silent = sum(
            not interpret(explanation, 0, estimator).findings for explanation in explanations
        )
        seconds = (time.perf_counter() - started) / len(explanations)
        name = f"{estimator} of {n_classes}"
        print(f"pure noise, {name}: no finding in {silent} of 100 seeds, {seconds:.2f} s a reading")
        figures |= {f"silent, {name}": silent, f"seconds, {name}": seconds}
    difference = difference_coverage(n_masks=512, n_seeds=6, n_long=6400)
    for name, value in difference.items():
        print(f"{name.replace('_', ' ')}: {value:.3f}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures | difference, indent=2) + "\n")


if __name__ == "__main__":
    main()
