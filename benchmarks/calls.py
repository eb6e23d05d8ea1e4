"""How many model calls each estimator needs: errors and coverage on real networks.

    python benchmarks/calls.py [--data FOLDER] [--split dev] [--network NAME]... [--mask-prob P]

A case is one image and one class: the predicted one, and the three others whose scores vary most
under masks. Each estimator sees disjoint parts of a run of 8000 masks. Its error is measured
against a long run with other masks, and the noise of that long run, known from its standard
errors, is taken off. A gain is the error of `paper` over that of the estimator, at the same number
of masks. Anything tuned was tuned on the `dev` split: other images and other masks.
"""

import argparse
import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import networks
from mcrise import Explanation, Model, explain, iter_explain, load
from mcrise.batch.datasets import gtsrb
from mcrise.estimators import ESTIMATORS
from mcrise.masks import CHUNK
from table import report

SIZES = (256, 512, 1024, 8000)  # 250, 500, 1000 rounded up to whole chunks
N_OTHERS = 3  # classes beside the predicted one
MOST_PARTS = 4  # of a run, per size
DATA = Path(os.environ.get("MCRISE_DATA", Path(__file__).parents[2] / "shared" / "data"))


@dataclass(frozen=True)
class Setting:
    """A network, where its images are, and how long its runs are."""

    model: Callable[[], Model]
    collection: str
    n_images: dict[str, int]
    n_reference: dict[str, int]  # masks


SETTINGS = {
    "embedded": Setting(
        networks.embedded, "gtsrb", {"dev": 4, "reported": 8}, {"dev": 16_000, "reported": 8192}
    ),
    "second-seed": Setting(networks.second_seed, "gtsrb", {"reported": 8}, {"reported": 8192}),
    "efficientnet": Setting(
        networks.efficientnet,
        "imagenet",
        {"dev": 2, "reported": 6},
        {"dev": 8000, "reported": 8192},
    ),
}
RUN_MASKS = {"dev": 4032, "reported": 8000}
SEEDS = {"dev": (11, 12), "reported": (21, 22)}  # of the run, of its reference


def images(collection: str, data: Path) -> list[Path]:
    """All images in an order drawn once; `dev` takes from the start, `reported` from the end."""
    if collection == "gtsrb":
        paths = [example.path for example in gtsrb(data / "gtsrb", "test")]
    else:
        paths = sorted((data / "imagenet" / "images").glob("*.JPEG"))
    order = np.random.default_rng(3).permutation(len(paths))
    return [paths[i] for i in order]


def prepare(
    name: str, split: str, data: Path, mask_prob: Any
) -> Iterator[tuple[Explanation, Explanation]]:
    """The run and the reference of each image of a split, from the cache or computed into it."""
    setting = SETTINGS[name]
    n_images = setting.n_images.get(split, 0)
    paths = images(setting.collection, data)
    model = setting.model()
    for i in range(n_images):
        path = paths[i if split == "dev" else -1 - i]
        folder = networks.CACHE / "calls" / f"{name}-{mask_prob}"
        yield run_and_reference(setting, split, path, model, folder, i, mask_prob)


def run_and_reference(
    setting: Setting, split: str, path: Path, model: Model, folder: Path, i: int, mask_prob: Any
) -> tuple[Explanation, Explanation]:
    """The reference is a record of the classes of the cases only, the predicted one first."""
    run_file, reference_file = (folder / f"{split}-{i}-{part}.npz" for part in ("run", "ref"))
    seed, other_seed = SEEDS[split]
    if not run_file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        given = {"n_masks": RUN_MASKS[split], "mask_prob": mask_prob, "seed": seed}
        explain(path, model, **given).save(run_file)
    run = load(run_file)
    if not reference_file.exists():
        classes = pick_classes(run)
        narrow = None
        given = {"n_masks": setting.n_reference[split], "mask_prob": run.plan.mask_prob}
        for whole in iter_explain(path, model, **given, seed=other_seed):
            narrow = narrow or replace(
                whole, untouched=whole.untouched[classes], labels=None, scores={}, kind="any"
            )
            for chunk, scores in whole.scores.items():
                narrow.add(chunk, scores[:, classes])
            whole.scores.clear()  # all classes of all masks would be half a gigabyte
        assert narrow is not None
        narrow.save(reference_file)
    return run, load(reference_file)


def pick_classes(run: Explanation) -> list[int]:
    """The predicted class, then those whose scores vary most under the first masks."""
    spread = np.concatenate([run.scores[c] for c in range(16)]).std(axis=0)
    top = run.resolve(None)
    return [top, *(int(c) for c in np.argsort(-spread) if c != top)][: 1 + N_OTHERS]


def measure(run: Explanation, reference: Explanation) -> Iterator[dict[str, Any]]:
    """One row per class, size and estimator: squared error, and coverage of two standard errors.

    Errors are means over the parts of the run; `paper` and `smooth` aim at what the reference
    estimates by `centered`, which is the same with less noise.
    """
    truths = {
        (target, estimator): reference.maps(column, estimator)
        for column, target in enumerate(pick_classes(run))
        for estimator in ("centered", "rise", "debiased")
    }
    for n_masks in SIZES:
        if n_masks > run.n_masks:
            continue
        errors, covers = defaultdict(list), defaultdict(list)
        for part in parts(run, n_masks):
            for target, estimator in itertools.product(pick_classes(run), ESTIMATORS):
                truth = truths.get((target, estimator), truths[target, "centered"])
                maps = part.maps(target, estimator)
                off = np.square(maps.values - truth.values, dtype=np.float64)
                noise = np.square(truth.se, dtype=np.float64)
                errors[target, estimator].append(float((off - noise).mean()))
                inside = off <= 4 * (np.square(maps.se, dtype=np.float64) + noise)
                covers[target, estimator].append(float(inside.mean()))
        for (target, estimator), error in errors.items():
            yield {
                "class": target,
                "n_masks": n_masks,
                "estimator": estimator,
                "error": float(np.mean(error)),
                "coverage": float(np.mean(covers[target, estimator])),
            }


def parts(run: Explanation, n_masks: int) -> Iterator[Explanation]:
    """Disjoint parts of a run, each a record of its own."""
    n_chunks = n_masks // CHUNK
    for part in range(min(MOST_PARTS, len(run.chunks) // n_chunks)):
        chunks = run.chunks[part * n_chunks : (part + 1) * n_chunks]
        yield replace(run, scores={chunk: run.scores[chunk] for chunk in chunks})


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per network, size and estimator, over the cases."""
    errors = {
        (row["network"], row["image"], row["class"], row["n_masks"], row["estimator"]): row["error"]
        for row in rows
    }
    table = []
    for network, n_masks, estimator in dict.fromkeys(
        (row["network"], row["n_masks"], row["estimator"]) for row in rows
    ):
        some = [
            row for row in rows
            if (row["network"], row["n_masks"], row["estimator"]) == (network, n_masks, estimator)
        ]  # fmt: skip
        line = {"network": network, "n_masks": n_masks, "estimator": estimator}
        line["cases"] = len(some)
        line["coverage"] = float(np.mean([row["coverage"] for row in some]))
        if estimator not in ("rise", "debiased"):  # these aim at another map
            line |= ratios(some, errors)
        table.append(line)
    return table


def ratios(
    rows: list[dict[str, Any]], errors: dict[tuple[str, int, int, int, str], float]
) -> dict[str, float]:
    """How the errors of some cases compare with those of `paper` and `centered`."""
    ours, paper, centered, long_paper = [], [], [], []
    for row in rows:
        case = (row["network"], row["image"], row["class"])
        ours.append(row["error"])
        paper.append(errors[(*case, row["n_masks"], "paper")])
        centered.append(errors[(*case, row["n_masks"], "centered")])
        # Only where the run is that long: the runs of `dev` are not.
        long_paper.append(errors.get((*case, SIZES[-1], "paper"), np.nan))
    gain = np.array(paper) / ours
    return {
        "gain": geometric_mean(gain),
        "least_gain": float(gain.min()),
        "most_gain": float(gain.max()),
        "over_paper_8000": geometric_mean(np.array(ours) / long_paper),
        "worst_over_centered": float((np.array(ours) / centered).max()),
    }


def geometric_mean(values: Any) -> float:
    # An error below the reference's noise can come out negative: it counts as a tiny one.
    return float(np.exp(np.log(np.maximum(values, 1e-3)).mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="holds gtsrb/ and imagenet/")
    parser.add_argument("--split", choices=["dev", "reported"], default="reported")
    parser.add_argument("--network", choices=list(SETTINGS), action="append")
    parser.add_argument("--images", type=int, default=8, help="of each network, at most")
    parser.add_argument("--mask-prob", choices=["auto", "0.5"], help="[default: both]")
    args = parser.parse_args()
    rows = []
    for name, mask_prob in itertools.product(
        args.network or SETTINGS, [args.mask_prob] if args.mask_prob else ["auto", "0.5"]
    ):
        asked = "auto" if mask_prob == "auto" else float(mask_prob)
        pairs = prepare(name, args.split, args.data, asked)
        for image, pair in enumerate(itertools.islice(pairs, args.images)):
            case = {"network": f"{name}, {mask_prob}", "image": image}
            rows += [case | row for row in measure(*pair)]
    some = [*(args.network or []), *(["dev"] if args.split == "dev" else [])]
    report("-".join(["calls", *some]), summarise(rows), cases=rows)


if __name__ == "__main__":
    main()
