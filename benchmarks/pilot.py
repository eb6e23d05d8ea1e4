"""Does mask_prob="auto" hide what 0.5 shows? Planted regions found by readings, at equal cost.

    python benchmarks/pilot.py [--seeds 20] [--n-masks 512]

Models of `tests/planted_pilot.py`: of each kind one for each seed. The calls of the pilot are taken
off the masks of the run that it chose for.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))  # the models live there

from mcrise import Explanation, explain
from mcrise.interpretation.regions import interpret
from mcrise.masks import CHUNK
from planted_pilot import KINDS, draw, found
from table import report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--n-masks", type=int, default=512)
    given = parser.parse_args()
    rows = [row(kind, given.seeds, given.n_masks) for kind in KINDS]
    report("pilot", rows, seeds=given.seeds, n_masks=given.n_masks)


def row(kind: str, n_seeds: int, n_masks: int) -> dict[str, Any]:
    at_half, by_auto, chosen = Counter(), Counter(), Counter()
    error = {"auto": [], 0.5: []}
    for seed in range(n_seeds):
        image, model, regions = draw(kind, seed)
        for mask_prob, counts in (("auto", by_auto), (0.5, at_half)):
            whole = explain(image, model, n_masks=n_masks, mask_prob=mask_prob, seed=seed)
            explanation = at_equal_cost(whole)
            error[mask_prob].append(explanation.maps(0).relative_error)
            seen = found(interpret(explanation, 0).findings, regions)
            counts.update(name for name, is_found in zip("AB", seen, strict=True) if is_found)
            if mask_prob == "auto":
                chosen[explanation.plan.mask_prob] += 1
    return {
        "model": kind,
        "chosen": ", ".join(f"{p:g} x {n}" for p, n in sorted(chosen.items())),
        "A found, auto": by_auto["A"],
        "A found, 0.5": at_half["A"],
        "B found, auto": by_auto["B"],
        "B found, 0.5": at_half["B"],
        "relative error, auto": sorted(error["auto"])[n_seeds // 2],
        "relative error, 0.5": sorted(error[0.5])[n_seeds // 2],
    }


def at_equal_cost(explanation: Explanation) -> Explanation:
    return explanation.first(explanation.n_masks - CHUNK * len(explanation.pilot))


if __name__ == "__main__":
    main()
