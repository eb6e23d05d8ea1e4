"""Peak memory of an explanation above that of the loaded model, at 2,000 and 8,000 masks.

    python benchmarks/memory.py

Each run is a process of its own; the peak is the kernel's (VmHWM), reset after the model has loaded
and answered once.
"""

import json
import subprocess
import sys
from typing import Any

from table import report

CASES = {
    "free model, 1000 classes": "free",
    "EfficientNet-lite0": "efficientnet",
}


def main() -> None:
    rows = []
    for name, model in CASES.items():
        sizes = (2048, 8192) if model == "free" else (2048,)
        for n_masks in sizes:
            out = subprocess.run(
                [sys.executable, __file__, model, str(n_masks)], check=True, capture_output=True
            )
            rows.append({"model": name, **json.loads(out.stdout.splitlines()[-1])})
    report("memory", rows, size=224, fills=5)


def measure(name: str, n_masks: int) -> dict[str, Any]:
    import numpy as np

    import mcrise
    from networks import efficientnet

    image = np.random.default_rng(0).integers(0, 256, (224, 224, 3), np.uint8)
    if name == "free":
        rng = np.random.default_rng(0)
        model: Any = mcrise.Model(
            lambda batch: rng.dirichlet(np.ones(1000), len(batch)), dtype="float32", layout="NCHW"
        )
    else:
        model = efficientnet()
    mcrise.explain(image, model, n_masks=64).maps()  # load and compile everything once
    before = reset_peak()
    record = mcrise.explain(image, model, n_masks=n_masks)
    for estimator in mcrise.record.ESTIMATORS:
        record.maps(estimator=estimator)
    return {"n_masks": n_masks, "peak MB above the model": (peak() - before) / 1e6}


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
