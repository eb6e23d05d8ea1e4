"""How many findings survive their own test: on real GTSRB test images, every finding of the
reading is painted and the model asked again (`whatif`).

    python benchmarks/findings.py --data ../shared/data/gtsrb

Prints the verdicts by kind of finding and writes benchmarks/results/findings.json.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np

from mcrise.loop import explain
from mcrise.reading import read
from mcrise.record import DEFAULT
from mcrise.runtimes import load_model
from mcrise.study import datasets
from mcrise.trials import smallest_flip, try_findings

VERDICTS = ("confirmed", "weaker", "refuted", "no room")
RESULTS = Path(__file__).with_name("results") / "findings.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds GTSRB/")
    parser.add_argument("--model", default="demo")
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--n-masks", type=int, default=1000)
    parser.add_argument("--colors", default="rgbwk")
    parser.add_argument("--estimator", default=DEFAULT)
    parser.add_argument("--seed", type=int, default=0, help="chooses the images")
    given = parser.parse_args()

    model = load_model(given.model)
    examples = datasets.gtsrb(given.data, "test")
    chosen = np.random.default_rng(given.seed).choice(len(examples), given.images, replace=False)
    rows, n_flipped, n_silent = [], 0, 0
    for index in chosen:
        record = explain(examples[index].path, model, n_masks=given.n_masks, fills=given.colors)
        reading = read(record, estimator=given.estimator)
        trials = try_findings(record, model, reading)
        n_silent += not trials
        n_flipped += smallest_flip(record, model, reading) is not None
        rows += [
            {"image": examples[index].name, "kind": finding.kind, "place": finding.place,
             "sentence": finding.sentence, **trial.to_json(record)}
            for finding, trial in zip(reading.findings, trials, strict=True)
        ]  # fmt: skip

    counts = Counter((row["kind"], row["verdict"]) for row in rows)
    print(f"{'':<24}" + "".join(f"{verdict:>11}" for verdict in VERDICTS))
    for kind in sorted({row["kind"] for row in rows}):
        print(f"{kind:<24}" + "".join(f"{counts[kind, verdict]:>11}" for verdict in VERDICTS))
    total = Counter(row["verdict"] for row in rows)
    print(f"{'all':<24}" + "".join(f"{total[verdict]:>11}" for verdict in VERDICTS))
    share = total["confirmed"] / max(len(rows) - total["no room"], 1)
    print(f"confirmed of those with room: {share:.1%}")
    print(f"images without a finding: {n_silent}; decision flipped: {n_flipped} of {given.images}")
    RESULTS.parent.mkdir(exist_ok=True)
    settings = {name: str(value) for name, value in vars(given).items()}
    summary = {"settings": settings, "confirmed": share, "flipped": n_flipped, "findings": rows}
    RESULTS.write_text(json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    main()
