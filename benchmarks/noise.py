"""What is found in a model that answers differently each time and depends on nothing.

    python benchmarks/noise.py --runs 100

The score of such a model is 0.6 with noise of 0.05 on each call. A run fails if a finding is called
*only here*, which is what one would believe. Prints a table, writes benchmarks/results/noise.json.
"""

import argparse
from typing import Any

import numpy as np

import mcrise
from table import report


def noisy(seed: int, noise: float) -> Any:
    """A model of noise alone."""
    rng = np.random.default_rng(seed)

    def model(images: Any) -> Any:
        score = np.clip(0.6 + rng.normal(0, noise, len(images)), 0, 1)
        return np.stack([score, 0.3 * (1 - score), 0.7 * (1 - score)], axis=1).astype(np.float32)

    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    given = parser.parse_args()
    rows = []
    for noise in (0.05, 0.02):
        n_found, n_only, calls = 0, 0, []
        for seed in range(given.runs):
            image = np.random.default_rng([7, seed]).integers(0, 256, (48, 48, 3), np.uint8)
            explanation = mcrise.explain(image, noisy(seed, noise), seed=seed, max_masks=2048)
            found = explanation.findings
            n_found += bool(len(found))
            n_only += any(one.control and one.control.verdict == "only here" for one in found)
            calls.append(explanation.n_calls.total)
        rows.append({
            "noise": noise, "runs": given.runs, "with a finding": n_found,
            "with one only here": n_only, "calls, median": float(np.median(calls)),
        })  # fmt: skip
    report("noise", rows)


if __name__ == "__main__":
    main()
