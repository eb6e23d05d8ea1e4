"""Whether what a reading says of real networks is true, judged by calls of the benchmark's own.

    python benchmarks/findings.py                    # signs and photographs, mask_prob 0.5 and 0.2
    python benchmarks/findings.py --sets signs --images 10

The reading finds and tries its claims with one seed of masks. The judge paints with hard edges the
region moved by a quarter of a cell at an angle drawn at random, and in places that the reading
did not use: how often does a fresh place as much as a confirmed finding; do regions whose texture
is said to matter lose more than a tenth of the score under their own mean color; do fills called as
good as the original keep nine tenths; and does `compare` help on wrong images? Intervals are over
images (bootstrap). Prints tables and writes benchmarks/results/findings.json.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

import mcrise
from mcrise.batch.datasets import gtsrb, open_dataset
from mcrise.demo.signs import SIGNS
from mcrise.explanation import Explanation
from mcrise.fills import Fill
from mcrise.images import unit_float
from mcrise.interpretation.regions import interpret
from mcrise.interpretation.trials import compare, try_findings
from mcrise.models.model import Model
from networks import efficientnet
from table import report

DATA = Path(os.environ.get("MCRISE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
N_FRESH = 12  # places for each confirmed finding
Region = NDArray[np.bool_]


@dataclass
class Counts:
    """Of one image: how many were judged, and how many of them were hits."""

    images: list[dict[str, tuple[int, int]]] = field(default_factory=list)

    def share(self, name: str) -> str:
        rows = np.array([image.get(name, (0, 0)) for image in self.images], float)
        judged, hits = rows.sum(axis=0)
        if not judged:
            return "none"
        chance = np.random.default_rng(0)
        means = []
        for _ in range(2000):
            some = rows[chance.integers(len(rows), size=len(rows))].sum(axis=0)
            if some[0]:
                means.append(some[1] / some[0])
        low, high = np.percentile(means, [2.5, 97.5])
        return f"{100 * hits / judged:.0f}% of {judged:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


# ---- the judge's own painting


def moved(region: Region, cell: tuple[int, int], chance: np.random.Generator) -> Region:
    """A region moved by a quarter of a cell at any angle, what leaves the image cut off."""
    angle = 2 * np.pi * chance.random()
    pad = max(cell)
    top = pad - round(np.sin(angle) * cell[0] / 4)
    left = pad - round(np.cos(angle) * cell[1] / 4)
    out = np.pad(region, pad)[top : top + region.shape[0], left : left + region.shape[1]]
    return out if out.any() else region


def painted(image: NDArray[Any], region: Region, color: NDArray[Any]) -> NDArray[Any]:
    """Hard edges; `color` (3,) or a picture (H, W, 3) in 0..1."""
    out = unit_float(image).copy()
    out[region] = color[region] if color.ndim == 3 else color
    return np.rint(255 * out).astype(np.uint8)


def render(fill: Fill, image: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(fill.render(unit_float(image)))


def fresh_places(region: Region, avoid: list[Region], chance: np.random.Generator) -> Iterator[Any]:
    """Random places of the same shape, mirrored or turned, that share a quarter at most."""
    rows, cols = (np.flatnonzero(region.any(axis=axis)) for axis in (1, 0))
    shape = region[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    n_found = 0
    for _ in range(3000):
        one = np.rot90(shape, chance.integers(4))
        one = one[:, ::-1] if chance.random() < 0.5 else one
        free = np.array(region.shape) - one.shape
        if (free < 0).any():
            continue
        top, left = chance.integers(free + 1)
        place = np.zeros_like(region)
        place[top : top + one.shape[0], left : left + one.shape[1]] = one
        if all((place & other).sum() <= 0.25 * region.sum() for other in avoid):
            n_found += 1
            yield place
        if n_found == N_FRESH:
            return


def judged(explanation: Explanation, model: Model, calls: list[int], seed: int) -> dict[str, Any]:
    """Try a record's reading, and judge what it says."""
    n_before = len(explanation.answers)
    tried = try_findings(explanation, interpret(explanation), model)
    calls.append(len(explanation.answers) - n_before)
    image, cell, chance = (
        explanation.view.pixels,
        explanation.plan.cell,
        np.random.default_rng(seed),
    )
    target = explanation.resolve(None)
    before = float(explanation.untouched[target])
    regions = [finding.region for finding in tried.reading.findings]

    def score(*pictures: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray(model(np.stack(pictures))[:, target])

    counts: dict[str, list[bool]] = {name: [] for name in COLUMNS}
    for verdict in filter(None, tried.verdicts):
        region = moved(verdict.finding.region, cell, chance)
        if verdict.confirmed:
            assert verdict.control is not None
            fill = render(verdict.control.fill, image)
            (here,) = score(painted(image, region, fill)) - before
            places = list(fresh_places(verdict.finding.region, regions, chance))
            if places:
                there = score(*(painted(image, place, fill) for place in places)) - before
                counts["fresh places that do as much"] += list(np.sign(here) * there >= abs(here))
        for claim in verdict.claims:
            if claim.kind == "structure":
                mean = unit_float(image)[region].mean(axis=0)
                (after,) = score(painted(image, region, mean))
                counts["texture claims that lose a tenth"].append(bool(after < 0.9 * before))
            if claim.kind == "as good":
                for fill_ in claim.fills:
                    (after,) = score(painted(image, region, render(fill_, image)))
                    counts["as good claims that keep nine tenths"].append(
                        bool(after >= 0.9 * before)
                    )
            if claim.kind in ("color", "finds color"):
                mean = unit_float(image)[region].mean(axis=0)
                (after,) = score(painted(image, region, mean))
                counts["color claims whose mean keeps nine tenths"].append(
                    bool(after >= 0.9 * before)
                )
    found = [verdict for verdict in tried.verdicts if verdict]
    counts["findings confirmed"] = [verdict.confirmed for verdict in found]
    kinds = ("color", "finds color", "brightness", "missing color")
    counts["findings about color"] = [
        any(verdict.claim(kind) for kind in kinds) for verdict in found
    ]
    return {name: (len(hits), sum(hits)) for name, hits in counts.items()}


COLUMNS = (
    "findings confirmed",
    "findings about color",
    "fresh places that do as much",
    "texture claims that lose a tenth",
    "as good claims that keep nine tenths",
    "color claims whose mean keeps nine tenths",
)


# ---- the images


def signs(n_images: int, seed: int) -> list[tuple[str, int | None]]:
    examples = gtsrb(DATA / "gtsrb", "test")
    chosen = np.random.default_rng(seed).choice(len(examples), n_images, replace=False)
    return [(examples[i].path, int(examples[i].label or 0)) for i in sorted(chosen)]


def photographs(n_images: int, model: Model) -> list[tuple[str, int | None]]:
    """Their files are named after the class: `n01443537_goldfish.JPEG`.

    The last 40 were looked at when the rules were made: figures are of the first.
    """
    numbers = {label.split()[0]: n for n, label in enumerate(model.labels or ())}
    examples = open_dataset(DATA / "imagenet" / "images")[:n_images]
    return [(one.path, numbers.get(Path(one.path).name.split("_")[0])) for one in examples]


def photograph_model() -> Model:
    lines = (DATA / "imagenet" / "classes.txt").read_text(encoding="utf-8").splitlines()
    return efficientnet([line.strip() for line in lines if line.strip()])


def washed_out(n_images: int) -> list[Any]:
    """Drawn signs, faded towards white by half and more, that the embedded network gets wrong."""
    made = []
    for name, draw in SIGNS.items():
        picture = np.asarray(draw(), np.float32)
        truth = {"turn-right-ahead": "turn right ahead"}.get(name, name.replace("-", " "))
        for fade in (0.35, 0.5, 0.6, 0.7, 0.75, 0.8):
            faded = picture * (1 - fade) + 235 * fade
            made.append((np.rint(faded).astype(np.uint8), truth.removeprefix("washed out ")))
    return made[:n_images]


# ---- comparing on wrong images


def compared(model: Model, images: list[tuple[Any, Any]], mask_prob: float, n_masks: int) -> Any:
    """Of wrong images: for how many a suggestion raises the truth, and for how many it is reached.

    The judge paints the best suggestion itself, with hard edges and moved by a quarter of a cell.
    """
    chance, rows = np.random.default_rng(0), []
    for source, truth in images:
        view = model.view(source)
        scores = model(view.pixels[None])[0]
        labels = model.labels or ()
        index = truth if isinstance(truth, int) else None
        if isinstance(truth, str) and truth in labels:
            index = labels.index(truth)
        if index is None or int(scores.argmax()) == index:
            continue
        explanation = mcrise.explain(source, model, n_masks=n_masks, mask_prob=mask_prob)
        result = compare(explanation, index, None, model=model)
        raises = reaches = False
        if result.suggestions:
            best = result.suggestions[0].stroke
            region = moved(best.region, explanation.plan.cell, chance)
            after = model(painted(view.pixels, region, render(best.fill, view.pixels))[None])[0]
            raises = bool(after[index] > scores[index])
        if result.flip is not None:
            picture = view.pixels
            for stroke in result.flip.repaint.strokes:
                region = moved(stroke.region, explanation.plan.cell, chance)
                picture = painted(picture, region, render(stroke.fill, view.pixels))
            reaches = int(model(picture[None])[0].argmax()) == index
        rows.append((bool(result.suggestions), raises, reaches))
    n = len(rows)
    suggested, raised, reached = (sum(row[k] for row in rows) for k in range(3))
    return {"wrong images": n, "with a suggestion": suggested, "truth raised": raised,
            "truth reached": reached}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--sets", default="signs,photographs")
    parser.add_argument("--images", type=int, help="of each set  [default: 50 and 40]")
    parser.add_argument("--n-masks", type=int, default=512)
    parser.add_argument("--mask-probs", default="0.5,0.2")
    parser.add_argument("--seed", type=int, default=2, help="chooses the signs; 0 is development")
    parser.add_argument("--skip-compare", action="store_true")
    given = parser.parse_args()
    rows, comparisons = [], []
    for name in given.sets.split(","):
        model = mcrise.load_model("demo") if name == "signs" else photograph_model()
        images = (
            signs(given.images or 50, given.seed)
            if name == "signs"
            else photographs(given.images or 40, model)
        )
        for mask_prob in map(float, given.mask_probs.split(",")):
            counts, calls = Counts(), []
            for n, (path, _) in enumerate(images):
                explanation = mcrise.explain(
                    path, model, n_masks=given.n_masks, mask_prob=mask_prob, seed=7
                )
                counts.images.append(judged(explanation, model, calls, n))
                print(".", end="", flush=True, file=sys.stderr)
            rows.append(
                {"set": f"{name}, {len(images)} images", "mask_prob": mask_prob,
                 **{column: counts.share(column) for column in COLUMNS},
                 "calls on trials, median": float(np.median(calls))}
            )  # fmt: skip
        if not given.skip_compare:
            wrong = signs(1200, given.seed) if name == "signs" else photographs(100, model)
            if name == "signs":
                wrong = [*wrong[:600], *washed_out(36)]
            comparisons.append({"set": name, **compared(model, wrong, 0.2, given.n_masks)})
    report("findings", rows, **vars(given))
    if comparisons:
        report("findings-compare", comparisons, **vars(given))


if __name__ == "__main__":
    main()
