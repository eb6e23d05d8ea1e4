"""Peak memory of an explanation, with the maps of all estimators, above the loaded model.

    python benchmarks/memory.py

Each run is a process of its own; the peak is the kernel's (VmHWM), reset after the model has loaded
and answered once.
"""

import json
import subprocess
import sys
from typing import Any

from table import report

CASES = {  # what the model is, and the numbers of masks
    "free model, 43 classes": ("43", (8192, 16384)),
    "free model, 1000 classes": ("1000", (2048, 8192)),
    "EfficientNet-lite0": ("efficientnet", (2048,)),
}


def main() -> None:
    rows = []
    for name, (model, sizes) in CASES.items():
        before: dict[str, Any] = {}
        for n_masks in sizes:
            out = subprocess.run(
                [sys.executable, __file__, model, str(n_masks)], check=True, capture_output=True
            )
            row = {"model": name, **json.loads(out.stdout.splitlines()[-1])}
            if before:
                more = row["peak MB"] - before["peak MB"]
                row["KB a mask"] = 1000 * more / (n_masks - before["n_masks"])
            rows.append(row)
            before = row
    report("memory", rows, size=224, fills=5)


def measure(name: str, n_masks: int) -> dict[str, Any]:
    import numpy as np

    import mcrise
    from mcrise.estimators import ESTIMATORS
    from networks import efficientnet

    image = np.random.default_rng(0).integers(0, 256, (224, 224, 3), np.uint8)
    if name == "efficientnet":
        model = efficientnet()
    else:
        rng = np.random.default_rng(0)
        model = mcrise.Model(
            lambda batch: rng.dirichlet(np.ones(int(name)), len(batch)),
            dtype="float32",
            layout="NCHW",
        )
    mcrise.explain(image, model, n_masks=64).maps()  # load and compile everything once
    before = reset_peak()
    explanation = mcrise.explain(image, model, n_masks=n_masks)
    for estimator in ESTIMATORS:
        explanation.maps(estimator=estimator)
    return {"n_masks": n_masks, "peak MB": (peak() - before) / 1e6}


def reset_peak() -> int:
    """Bytes in use now, from which the peak is counted."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return status("VmRSS")


def peak() -> int:
    return status("VmHWM")


def status(field: str) -> int:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
