"""Do class findings that an audit calls confirmed hold, and would other places be called so too?

    mcrise audit ../shared/data/gtsrb --per-class 20 --n-masks 256 --out audit/
    python benchmarks/audit_controls.py audit/ ../shared/data/gtsrb

Judged from outside, by paint of its own on images of the collection that the audit has not seen:
each confirmed place is painted in up to 20 of them, with hard edges, and so are 20 patches of the
same shape at places drawn at random that share little with any finding of the class. A finding
holds if the score moves as was said, with a 95% interval over images; a patch does as much if it
moves the score as far.
Findings of what lies outside of the object are judged on the whole rim or background alone.
"""

import sys
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mcrise
from mcrise.audits.class_findings import ClassFinding
from mcrise.audits.class_stats import read_stats
from mcrise.audits.tables import read_asked
from mcrise.batch.datasets import Example, open_dataset
from mcrise.batch.storage import Storage
from mcrise.fills import parse
from table import report

N_IMAGES, N_PLACES = 20, 20
MOST_SHARED = 0.25  # of a patch, with any place that was found

Region = NDArray[np.bool_]


def main() -> None:
    folder = Storage(sys.argv[1])
    asked, figures = read_asked(folder), read_stats(folder)
    model = mcrise.load_model(asked.model)
    seen = {row["name"] for row in all_images(folder)}
    unseen: dict[int, list[Example]] = {}
    for example in open_dataset(sys.argv[2]):
        if example.name not in seen and example.label is not None:
            unseen.setdefault(int(example.label), []).append(example)
    verdicts: Counter[str] = Counter()
    held, places, as_much, classes = 0, 0, 0, set()
    tried = 0
    for one in figures.classes:
        verdicts.update(finding.verdict for finding in one.findings)
        verdicts.update(finding.verdict for finding in one.under_masks)
        fresh = unseen.get(one.target, [])[:N_IMAGES]
        for finding in one.findings:
            if finding.verdict != "confirmed" or finding.z is None or len(fresh) < 6:
                continue
            taken = [other.region for other in (*one.findings, *one.under_masks) if other.z]
            here, there = judged(model, finding, taken, fresh, asked.fills)
            reach = 2.1 * here.std(ddof=1) / np.sqrt(len(here))
            tried += 1
            classes.add(one.target)
            held += bool(finding.sign * here.mean() > reach)
            places += there.shape[1]
            as_much += int((finding.sign * there.mean(axis=0) >= finding.sign * here.mean()).sum())
    n_findings = sum(len(one.findings) for one in figures.classes)
    rows = [
        {"what": "class findings", "n": n_findings, "confirmed": verdicts["confirmed"],
         "share": verdicts["confirmed"] / max(n_findings, 1)},
        {"what": "places seen under masks only", "n": verdicts["under masks only"]},
        {"what": f"confirmed, on other images of {len(classes)} classes", "n": tried,
         "confirmed": held, "share": held / max(tried, 1)},
        {"what": "patches elsewhere that do as much", "n": places, "confirmed": as_much,
         "share": as_much / max(places, 1)},
    ]  # fmt: skip
    report("audit_controls", rows, verdicts=dict(verdicts), images=asked.n_images)


def all_images(folder: Storage) -> list[dict[str, Any]]:
    from mcrise.audits.tables import class_numbers, read_rows

    return [row for target in class_numbers(folder) for row in read_rows(folder, "images", target)]


def judged(
    model: mcrise.Model,
    finding: ClassFinding,
    taken: list[Region],
    images: list[Example],
    fills: tuple[str, ...],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Changes of the score (n,) with the place painted, and (n, places) with a patch elsewhere."""
    (color,) = parse(fills[finding.painted[0]])
    generator = np.random.default_rng([finding.target, int(finding.region.sum())])
    regions = [finding.region, *random_places(finding.region, taken, generator)]
    here, there = [], []
    for example in images:
        pixels = model.view(example.path).pixels
        painted = [pixels]
        for region in regions:
            rows, cols = ((np.arange(n) * len(region)) // n for n in pixels.shape[:2])
            other = pixels.copy()
            other[region[rows[:, None], cols]] = np.array(color.rgb, np.uint8)
            painted.append(other)
        untouched, first, *rest = model(np.stack(painted))[:, finding.target].tolist()
        here.append(first - untouched)
        there.append([score - untouched for score in rest])
    return np.array(here), np.array(there)


def random_places(
    region: Region, taken: list[Region], generator: np.random.Generator
) -> list[Region]:
    """The same shape shifted to places drawn at random, all of it inside of the image."""
    rows, cols = np.nonzero(region)
    found: list[Region] = []
    for _ in range(10_000):
        down = generator.integers(-rows.min(), len(region) - rows.max())
        across = generator.integers(-cols.min(), len(region) - cols.max())
        moved = np.zeros_like(region)
        moved[rows + down, cols + across] = True
        if all((moved & other).sum() <= MOST_SHARED * region.sum() for other in taken):
            found.append(moved)
        if len(found) == N_PLACES:
            break
    return found


if __name__ == "__main__":
    main()
