"""Does a map say what painting a place alone does? With mask_prob "auto" and 0.5.

    python benchmarks/alone.py [--images 20] [--n-masks 512] [--data FOLDER]

On signs and photographs that nothing was tuned on. Each map is averaged over 100 patches of one
cell, 20 places for each of five colors, drawn at random; each patch is painted alone, with hard
edges, and the model asked. The figure is the correlation of the two over the patches of an image,
the predicted class's score being what moves.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import calls
from mcrise import Model, explain
from mcrise.images import unit_float
from stopping import MASK_PROBS, images
from table import report

N_PLACES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=calls.DATA)
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--n-masks", type=int, default=512)
    given = parser.parse_args()
    rows = []
    for name, what in (("embedded", "signs"), ("efficientnet", "photographs")):
        model = calls.SETTINGS[name].model()
        paths = [path for group, _, path in images(name, given.images, given.data)
                 if group == "further"]  # fmt: skip
        found = {p: [] for p in MASK_PROBS}
        for i, path in enumerate(paths):
            for mask_prob, one in correlations(path, model, given.n_masks, i).items():
                found[mask_prob].append(one)
        gain = np.subtract(found["auto"], found[0.5])
        rows += [
            {"what": f"{len(paths)} {what}", "mask_prob": mask_prob, **spread(found[mask_prob])}
            for mask_prob in MASK_PROBS
        ]
        rows[-2] |= {"better in": int((gain > 0).sum()), "mean gain": float(gain.mean())}
    report("alone", rows, n_masks=given.n_masks, n_patches=5 * N_PLACES)


def correlations(path: Path, model: Model, n_masks: int, seed: int) -> dict[Any, float]:
    """By mask_prob, with the same patches."""
    explanations = {
        p: explain(path, model, n_masks=n_masks, mask_prob=p, seed=7) for p in MASK_PROBS
    }
    explanation = explanations[0.5]
    target, fills = explanation.resolve(None), explanation.plan.fills
    (height, width), (down, across) = explanation.plan.size, explanation.plan.cell
    chance = np.random.default_rng(seed)
    corners = chance.integers([height - down + 1, width - across + 1], size=(N_PLACES, 2))
    boxes = [np.s_[top : top + down, left : left + across] for top, left in corners]
    whole = unit_float(explanation.view.pixels)
    effects = []
    for fill in fills:
        painted = np.repeat(explanation.view.pixels[None], N_PLACES, axis=0)
        color = np.rint(255 * np.asarray(fill.render(whole))).astype(np.uint8)
        for picture, box in zip(painted, boxes, strict=True):
            picture[box] = color[box]
        effects.append(model(painted)[:, target] - explanation.untouched[target])
    out = {}
    for mask_prob, one in explanations.items():
        values = one.maps(target).values
        shown = [[float(values[(k, *box)].mean()) for box in boxes] for k in range(len(fills))]
        out[mask_prob] = float(np.corrcoef(np.ravel(shown), np.ravel(effects))[0, 1])
    return out


def spread(values: list[float]) -> dict[str, float]:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return {"median correlation": middle, "lower quarter": low, "upper quarter": high}


if __name__ == "__main__":
    main()
