"""How time and peak memory grow with the number of masks, image size, fills and classes.

    python benchmarks/growth.py [--most SIDE] [--stages]

The model costs nothing, so what is seen is ours. The first table has drawing, painting, recording
and the maps; the second, alone with `--stages`, all that follows the calls, by the side of the
image: maps of every estimator, reading, plots, packing and report, on planted scores. Each run is a
process of its own, and so is each stage at 1,024 x 1,024. What follows the calls is in seconds of
CPU, which other work on the machine changes less. Slopes are fitted on log-log axes: 1 means
proportional, 0 means flat; proportional to pixels is 2 in the side.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
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
SIDES = (96, 192, 384, 512, 768, 1024, 1536)
AFTER = {"n_masks": 1024, "size": 1024, "fills": 5, "classes": 43}
STAGES = (
    "rise", "debiased", "paper", "centered", "smooth", "reading", "plot maps", "plot explanation",
    "packing", "report",
)  # fmt: skip


def main(most: int, stages_only: bool) -> None:
    if not stages_only:
        rows = []
        for name, values in SWEEPS.items():
            found = [measure_apart("calls", BASE | {name: value}) for value in values]
            for value, result in zip(values, found, strict=True):
                rows.append({"varied": name, "value": value, **result})
            rows.append({"varied": name, "value": "slope", **slopes(values, found)})
        report("growth", rows, base=BASE)
    after_calls(tuple(side for side in SIDES if side <= most))


def after_calls(sides: tuple[int, ...]) -> None:
    """All stages by the side of the image, then each alone at the largest that is 1,024 or less."""
    found = [measure_apart("all", AFTER | {"size": side}) for side in sides]
    rows: list[dict[str, Any]] = [
        {"side": side, **result} for side, result in zip(sides, found, strict=True)
    ]
    rows.append({"side": "slope", **slopes(sides, found)})
    many = [side for side in sides if side >= 512]
    if len(many) > 1:
        rows.append({"side": "slope from 512 on", **slopes(many, found[-len(many) :])})
    report("growth-after", rows, base=AFTER)
    side = max(side for side in sides if side <= AFTER["size"])
    alone = [{"stage": stage, **measure_apart(stage, AFTER | {"size": side})} for stage in STAGES]
    alone.append(
        {"stage": "30 fills, smooth", **measure_apart("smooth", AFTER | {"size": 224, "fills": 30})}
    )
    report("growth-stages", alone, base=AFTER | {"size": side})


def slopes(values: Any, found: list[dict[str, float]]) -> dict[str, float]:
    x = np.log(values)
    return {
        column: float(np.polyfit(x, np.log([row[column] for row in found]), 1)[0])
        for column in found[0]
    }


def measure_apart(what: str, case: dict[str, int]) -> dict[str, float]:
    command = [sys.executable, __file__, what, json.dumps(case)]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return dict(json.loads(out.stdout.splitlines()[-1]))


def palette(n_fills: int) -> Any:
    from mcrise.fills import Solid

    return tuple(Solid((k, 2 * k, 255 - k)) for k in range(n_fills))


def measure_calls(n_masks: int, size: int, fills: int, classes: int) -> dict[str, float]:
    import mcrise

    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (size, size, 3), np.uint8)
    answers = rng.dirichlet(np.ones(classes), 64).astype(np.float32)
    model: Any = mcrise.Model(
        lambda batch: answers[: len(batch)], dtype="float32", layout="NCHW", identity="free"
    )
    chosen = palette(fills)
    mcrise.explain(image, model, fills=chosen, n_masks=64).maps()  # compile and load once
    before = reset_peak()
    started = time.perf_counter()
    explanation = mcrise.explain(image, model, fills=chosen, n_masks=n_masks)
    explained = time.perf_counter() - started
    started = time.perf_counter()
    explanation.maps(estimator="centered")
    mapped = time.perf_counter() - started
    return {
        "explain s": explained,
        "map s": mapped,
        "peak MB": max((peak() - before) / 1e6, 0.1),
    }


# ---- what follows the calls


def planted(n_masks: int, size: int, fills: int, classes: int) -> Any:
    """A record of a model that likes the first fill in the middle, without painting anything."""
    from mcrise.explanation import Explanation
    from mcrise.images import View
    from mcrise.masks import Plan, draw
    from mcrise.models.provenance import UNKNOWN

    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (16, 16, 3), np.uint8)
    image = np.kron(small, np.ones((-(-size // 16), -(-size // 16), 1), np.uint8))[:size, :size]
    image = np.clip(image + rng.normal(0, 8, image.shape), 0, 255).astype(np.uint8)
    plan = Plan((size, size), palette(fills), mask_prob=0.3)
    view = View(image, (size, size), (0.0, 0.0, float(size), float(size)))
    untouched = np.full(classes, 1 / classes, np.float32)
    explanation = Explanation(plan, view, untouched, None, "probability", 32, "planted", UNKNOWN)
    taste = rng.normal(size=classes)
    for chunk in range(n_masks // 64):
        cells = draw(plan, chunk).cells
        first = (cells == 1)[:, 4:6, 4:6].mean(axis=(1, 2))
        kept = (cells == 0)[:, 1:4, 1:4].mean(axis=(1, 2))
        evidence = 3 * np.outer(first, taste) + 2 * np.outer(kept, np.roll(taste, 1))
        scores = np.exp(evidence + np.random.default_rng(chunk).normal(0, 0.3, evidence.shape))
        explanation.add(chunk, (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32))
    return explanation


def stages(explanation: Any) -> dict[str, Callable[[], Any]]:
    """Each stage by name; those after the reading share one."""
    from functools import cache

    from mcrise.interpretation.findings import Findings
    from mcrise.interpretation.regions import interpret
    from mcrise.output.figure import plot_explanation
    from mcrise.output.html import Chapter, render
    from mcrise.output.plots import figure_png, plot_maps
    from mcrise.output.web_maps import pack

    @cache
    def reading() -> Any:
        return interpret(explanation, 1)

    estimators = ("rise", "debiased", "paper", "centered", "smooth")
    return {
        **{name: lambda name=name: explanation.maps(1, name) for name in estimators},
        "reading": reading,
        "plot maps": lambda: figure_png(plot_maps([reading().maps])),
        "plot explanation": lambda: figure_png(
            plot_explanation(explanation, Findings(1, explanation.label(1), ()))
        ),
        "packing": lambda: pack(reading().maps, explanation.plan.grid),
        "report": lambda: render([Chapter("planted", explanation, [1])]),
    }


def measure_after(what: str, **case: int) -> dict[str, float]:
    """CPU seconds of all stages, or of one after those it needs, and the peak above the record."""
    for size in (32, 520):  # load and compile once; from 513 on, maps come from points
        for work in stages(planted(**{**case, "n_masks": 128, "size": size})).values():
            work()
    todo = stages(planted(**case))
    if what in ("plot maps", "plot explanation", "packing"):
        todo["reading"]()
    before, seconds = reset_peak(), {}
    for name, work in todo.items():
        if what in ("all", name):
            started = time.process_time()
            work()
            seconds[name] = time.process_time() - started
    used = {"peak MB": max((peak() - before) / 1e6, 0.1)}
    if what != "all":
        return {"s": seconds[what], **used}
    plots = seconds.pop("plot maps") + seconds.pop("plot explanation")
    formulas = sum(seconds.pop(name) for name in ("rise", "debiased", "paper", "centered"))
    both = {"four formulas s": formulas, "smooth s": seconds.pop("smooth")}
    rest = {f"{name} s": value for name, value in seconds.items()}
    return {
        **both,
        "plots s": plots,
        **rest,
        "all s": sum((plots, *both.values(), *rest.values())),
        **used,
    }


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2].startswith("{"):
        case = json.loads(sys.argv[2])
        found = (
            measure_calls(**case) if sys.argv[1] == "calls" else measure_after(sys.argv[1], **case)
        )
        print(json.dumps(found))
    else:
        parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
        parser.add_argument("--most", type=int, default=max(SIDES), help="largest side")
        parser.add_argument("--stages", action="store_true", help="only what follows the calls")
        given = parser.parse_args()
        main(given.most, given.stages)
