"""What must never change: the masks of a plan, and what records of earlier commits say."""

import json
import zlib
from itertools import product

import numpy as np
from internals import ESTIMATORS, draw
from snapshots import DATA

import mcrise

RECORDS = sorted(path.stem for path in (DATA / "records").glob("*.npz"))
PLANS = {
    f"{rows}x{cols} {fills} {down}x{across} {mask_prob} seed {seed}": mcrise.Plan(
        (rows, cols), mcrise.parse_fills(fills), (down, across), mask_prob, seed
    )
    for ((rows, cols), fills, (down, across), seed), mask_prob in product(
        [
            ((48, 48), "rgbwk", (8, 8), 0),
            ((224, 224), "rgbwk", (8, 8), 7),
            ((37, 61), "red,blur:8,gray", (5, 9), 2**64 - 1),
            ((16, 20), "black", (1, 128), 1),
        ],
        (0.1, 0.3, 0.5),
    )
}
CHUNKS = (0, 1, 1000, 2**40)


def checksum(masks):
    """Worked out here too, so that it is the masks that are compared, and not how."""
    return zlib.crc32(masks.shifts.astype("<i4").tobytes(), zlib.crc32(masks.cells.tobytes()))


def masks_text():
    found = {
        name: {str(chunk): checksum(draw(plan, chunk)) for chunk in CHUNKS}
        for name, plan in PLANS.items()
    }
    return json.dumps(found, indent=1) + "\n"


def describe(explanation):
    """Checksums of every kind of maps of every class; of smooth ones some numbers as well."""
    found = {
        "n_masks": explanation.n_masks,
        "mask_prob": explanation.plan.mask_prob,
        "seed": explanation.plan.seed,
        "fills": [fill.name for fill in explanation.plan.fills],
        "labels": list(explanation.labels),
        "n_answers": len(explanation.answers),
        "pilot": list(explanation.pilot),
        "scores": [
            int(zlib.crc32(explanation.scores[chunk].tobytes())) for chunk in explanation.chunks
        ],
        "maps": {},
        "smooth": {},
    }
    for estimator, target in product(sorted(ESTIMATORS), range(explanation.n_classes)):
        maps = explanation.maps(target, estimator)
        sums = [zlib.crc32(array.tobytes()) for array in (maps.values, maps.se)]
        found["maps"][f"{estimator} {target}"] = sums
        if estimator == "smooth":
            found["smooth"][str(target)] = numbers(maps)
    return found


def numbers(maps):
    """A few values of a smooth map, for machines whose linear algebra rounds otherwise."""
    some = np.concatenate([maps.values.ravel()[::97], maps.se.ravel()[::97]])
    return [float(f"{value:.5g}") for value in some]


def records_text():
    found = {name: describe(mcrise.load(DATA / "records" / f"{name}.npz")) for name in RECORDS}
    return json.dumps(found, indent=1) + "\n"
