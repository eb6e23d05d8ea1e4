"""Whether an explanation says the same of an image whatever the number of masks.

    python benchmarks/stability.py

Six drawn signs and, where ../shared/data is there, six photographed ones, explained with 64, 256,
1,024 and 4,096 masks. Each block that any of the four runs describes is tried in all four, with its
controls, and must have the same verdict; finding A must lie by half where it lay before, from 256
masks on. Then the stop sign with grids of 1 to 13 cells, with 1 to 8 colors, and with 32 to 1,024
pixels a side: every printed score is asked again, and A is compared with A at the defaults. Prints
tables and writes benchmarks/results/stability*.json.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from PIL import Image

import exhaustive as judge
import mcrise
from mcrise.demo.signs import SIGNS
from mcrise.interpretation.trials import intervene
from table import report

MASKS = (64, 256, 1024, 4096)
COLORS = ("red", "red,green,blue", "cube8")


def images(model: mcrise.Model) -> dict[str, Any]:
    found: dict[str, Any] = {name: draw() for name, draw in SIGNS.items()}
    try:
        known = judge.all_images("embedded", model)
    except (OSError, mcrise.InputError):
        return found
    return found | {one.name: judge.shown(model, one) for one in known[::97][:6]}


def overlap(one: Any, other: Any) -> float:
    """Of the smaller of two regions."""
    return float((one & other).sum() / min(one.sum(), other.sum()))


def same_verdicts(runs: list[Any], model: mcrise.Model) -> tuple[int, int]:
    """Blocks that some run describes; and those with the same verdict in all."""
    described = {
        one.trial.repaint.digest: one for run in runs for one in run.findings if one.control
    }
    n_same = 0
    for one in described.values():
        said = {one.control.verdict}
        for run in runs:
            own = next((other for other in run.findings if other.control and
                        other.trial.repaint.digest == one.trial.repaint.digest), None)  # fmt: skip
            again = own or intervene(run, model, one.region, one.fill, control=True)
            said.add(again.control.verdict)
        n_same += len(said) == 1
    return len(described), n_same


def verdict_of(finding: Any) -> str:
    return finding.control.verdict if finding and finding.control else "-"


def by_masks(model: mcrise.Model) -> list[dict[str, Any]]:
    rows = []
    for name, image in images(model).items():
        runs = [mcrise.explain(image, model, n_masks=n) for n in MASKS]
        first = [run.findings[0] if len(run.findings) else None for run in runs]
        blocks, same = same_verdicts(runs, model)
        kept = [overlap(a.region, b.region) if a and b else 1.0 * (a is b)
                for a, b in pairwise(first[1:])]  # fmt: skip
        rows.append({
            "image": name, "blocks": blocks, "same verdict": same,
            "A overlaps from 256 on": min(kept),
            "verdicts of A": ", ".join(map(verdict_of, first)),
        })  # fmt: skip
    return rows


def reproduced(explanation: Any, model: mcrise.Model) -> tuple[int, int]:
    """How many printed scores come again when the picture is painted and asked afresh."""
    again = total = 0
    for one in explanation.findings:
        pixels = one.trial.repaint.render(explanation.view.pixels, explanation.plan.cell)
        score = model(pixels[None])[0, explanation.findings.target]
        again += abs(score - one.after) < 1e-3
        total += 1
    return int(again), total


def resized(region: Any, size: tuple[int, int]) -> Any:
    rows, columns = (np.arange(n) * side // n for n, side in zip(size, region.shape, strict=True))
    return region[np.ix_(rows, columns)]


def enlarged(model: mcrise.Model, side: int) -> mcrise.Model:
    """The model of pictures of another size."""
    rows, columns = 96, 96

    def predict(pictures: Any) -> Any:
        small = [np.asarray(Image.fromarray(one).resize((columns, rows), Image.Resampling.BOX))
                 for one in pictures]  # fmt: skip
        return model(np.stack(small))

    return mcrise.load_model(predict, labels=model.labels)


def by_settings(model: mcrise.Model) -> list[dict[str, Any]]:
    stop = SIGNS["stop"]()
    rows = []
    usual = mcrise.explain(stop, model).findings[0].region

    def add(what: str, image: Any, asked: mcrise.Model, **settings: Any) -> None:
        explanation = mcrise.explain(image, asked, **settings)
        again, total = reproduced(explanation, asked)
        first = explanation.findings[0] if total else None
        rows.append({
            "setting": what, "findings": total, "scores reproduced": again,
            "A": f"{first.place}, {first.fill.name} {first.after:.2f}" if first else "-",
            "of the usual A": overlap(resized(first.region, usual.shape), usual) if first else 0.0,
            "verdict": verdict_of(first),
            "calls": explanation.n_calls.total,
        })  # fmt: skip

    for grid in (1, 2, 4, 8, 13):
        add(f"grid {grid}", stop, model, grid=grid, max_masks=1024)
    for colors in COLORS:
        add(f"colors {colors}", stop, model, colors=colors, max_masks=1024)
    for side in (32, 64, 256, 1024):
        picture = np.asarray(stop.resize((side, side)))
        add(f"{side} pixels", picture, enlarged(model, side), n_masks=256)
    return rows


def main() -> None:
    model = mcrise.load_model("demo")
    report("stability", by_masks(model))
    report("stability-settings", by_settings(model))


if __name__ == "__main__":
    main()
