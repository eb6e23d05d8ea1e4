"""How time and peak memory grow with the number of masks, image size, fills and classes.

    python benchmarks/growth.py

The model costs nothing, so what is seen is ours: drawing, painting, recording and the maps. Each
run is a process of its own. Slopes are fitted on log-log axes: 1 means proportional, 0 means flat.
"""

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from memory import peak, reset_peak
from table import report

BASE = {"n_masks": 2048, "size": 96, "fills": 5, "classes": 43}
SWEEPS = {
    "n_masks": (512, 2048, 8192, 32768),
    "size": (48, 96, 192, 384),
    "fills": (1, 5, 20, 80),
    "classes": (2, 43, 1000),
}


def main() -> None:
    rows = []
    for name, values in SWEEPS.items():
        found = [measure_apart(BASE | {name: value}) for value in values]
        for value, result in zip(values, found, strict=True):
            rows.append({"varied": name, "value": value, **result})
        rows.append({"varied": name, "value": "slope", **slopes(values, found)})
    report("growth", rows, base=BASE)


def slopes(values: tuple[int, ...], found: list[dict[str, float]]) -> dict[str, float]:
    x = np.log(values)
    return {
        column: float(np.polyfit(x, np.log([row[column] for row in found]), 1)[0])
        for column in found[0]
    }


def measure_apart(case: dict[str, int]) -> dict[str, float]:
    command = [sys.executable, __file__, json.dumps(case)]
    out = subprocess.run(command, check=True, capture_output=True)
    return dict(json.loads(out.stdout.splitlines()[-1]))


def measure(n_masks: int, size: int, fills: int, classes: int) -> dict[str, float]:
    import mcrise
    from mcrise.fills import Solid

    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (size, size, 3), np.uint8)
    answers = rng.dirichlet(np.ones(classes), 64).astype(np.float32)
    model: Any = mcrise.Model(
        lambda batch: answers[: len(batch)], dtype="float32", layout="NCHW", identity="free"
    )
    palette = tuple(Solid((k, 2 * k, 255 - k)) for k in range(fills))
    mcrise.explain(image, model, fills=palette, n_masks=64).maps()  # compile and load once
    before = reset_peak()
    started = time.perf_counter()
    record = mcrise.explain(image, model, fills=palette, n_masks=n_masks)
    explained = time.perf_counter() - started
    started = time.perf_counter()
    record.maps(estimator="centered")
    mapped = time.perf_counter() - started
    return {
        "explain s": explained,
        "map s": mapped,
        "peak MB": max((peak() - before) / 1e6, 0.1),
    }


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(json.dumps(measure(**json.loads(sys.argv[1]))))
    else:
        main()
