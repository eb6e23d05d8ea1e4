"""Do maps depend on what the network has learned? (Adebayo et al., sanity checks, 2018)

    python benchmarks/sanity.py [--data FOLDER]

The embedded network against itself with the weights of its last layer shuffled, and with those of
all layers: the rank correlation of their maps on the same images, for the same class, under the
same masks and under others. Beside it that of two runs of the untouched network with other masks,
which is what mere noise would leave.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from scipy.stats import spearmanr

from calls import DATA
from mcrise import Explanation, Model, demo, explain, load_model
from mcrise.batch.datasets import open_dataset, sample
from table import report

N_IMAGES, N_MASKS = 12, 2048
ESTIMATORS = ("rise", "paper", "centered", "smooth")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA, help="holds gtsrb/")
    examples = sample(open_dataset(parser.parse_args().data / "gtsrb"), N_IMAGES, 0)
    model = load_model("demo")
    with tempfile.TemporaryDirectory() as folder:
        last = randomised(Path(folder, "last.onnx"), only_last=True)
        every = randomised(Path(folder, "all.onnx"), only_last=False)
        others = {  # the network, and the seed of its masks
            "itself, other masks": (model, 1),
            "last layer random, same masks": (last, 0),
            "last layer random, other masks": (last, 1),
            "all layers random, same masks": (every, 0),
            "all layers random, other masks": (every, 1),
        }
        found: dict[tuple[str, str], list[float]] = {}
        for example in examples:
            before = explain(example.path, model, n_masks=N_MASKS, seed=0)
            target = before.resolve(None)
            for what, (other, seed) in others.items():
                after = explain(example.path, other, n_masks=N_MASKS, seed=seed)
                for name in ESTIMATORS:
                    found.setdefault((what, name), []).append(likeness(before, after, target, name))
    rows = []
    for what in others:
        row: dict[str, Any] = {"compared with": what}
        for name in ESTIMATORS:
            values = np.array(found[what, name])
            row[name] = float(values.mean())
            row[f"{name} ±"] = float(values.std() / np.sqrt(len(values)))
        rows.append(row)
    report("sanity", rows, images=N_IMAGES, masks=N_MASKS)


def likeness(before: Explanation, after: Explanation, target: int, estimator: str) -> float:
    """The rank correlation of two maps over pixels and fills."""
    maps = (explanation.maps(target, estimator).values.ravel() for explanation in (before, after))
    return float(spearmanr(*maps).statistic)


def randomised(path: Path, only_last: bool) -> Model:
    """The embedded network with weights shuffled within each layer, which keeps their scale."""
    network = onnx.load(demo.MODEL)
    rng = np.random.default_rng(0)
    weights = [w for w in network.graph.initializer if numpy_helper.to_array(w).ndim >= 2]
    last = [w for w in weights if numpy_helper.to_array(w).ndim == 2][-1:]
    for weight in last if only_last else weights:
        values = numpy_helper.to_array(weight)
        mixed = rng.permutation(values.ravel()).reshape(values.shape)
        weight.CopyFrom(numpy_helper.from_array(mixed, weight.name))
    onnx.save(network, path)
    shutil.copy(demo.MODEL.with_suffix(".toml"), path.with_suffix(".toml"))
    shutil.copy(demo.MODEL.with_suffix(".txt"), path.parent)
    return load_model(path)


if __name__ == "__main__":
    main()
