"""How to spend calls on an audit: many images with few masks, or few with many?

    python benchmarks/audit_budget.py [--calls 64000] [--signs stop] [--masks 64,256,1024]

Signs that the project draws, each in another size, place, light and haze, and the embedded network.
Each design is carried out: 64,000 calls are 1,000 images of 64 masks, 250 of 256 or 64 of 1,024,
each measured as an audit measures it. What is reported are the standard errors of the class's
figures over images. Prints a table and writes benchmarks/results/audit_budget.json.
"""

import argparse
import os
import sys
import time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from PIL import Image, ImageFilter

import mcrise
from mcrise.audits.measure import energies, half_maps, pooled
from mcrise.audits.stats import Estimate, mean_maps, ratio, t_quantile
from mcrise.demo.signs import SIGNS
from table import report

MASK_PROB = 0.2


def vary(sign: Image.Image, generator: np.random.Generator) -> Image.Image:
    """The sign as another camera might see it: nearer or farther, beside the middle, in haze."""
    side = sign.width
    width = side * generator.uniform(0.8, 1.0)
    left, top = generator.uniform(0, side - width, 2)
    cut = sign.resize((96, 96), Image.Resampling.BICUBIC, (left, top, left + width, top + width))
    pixels = np.asarray(cut.filter(ImageFilter.GaussianBlur(generator.uniform(0, 1.2))), float)
    haze = generator.uniform(0, 0.45)
    tint = generator.uniform(0.75, 1.1, 3)
    seen = tint * (pixels * (1 - haze) + generator.uniform(90, 200) * haze)
    seen += generator.normal(0, 6, seen.shape)
    return Image.fromarray(np.clip(np.rint(seen), 0, 255).astype(np.uint8))


def measure(name: str, model: mcrise.Model, n_masks: int, n_images: int) -> dict[str, Any]:
    """The figures of a class by one design, with their errors over images."""
    sign, label = SIGNS[name](), name.replace("-", " ")
    maps, presence, color = [], [], []
    for number in range(n_images):
        picture = vary(sign, np.random.default_rng([n_masks, number]))  # no design sees another's
        explanation = mcrise.explain(
            picture, model, n_masks=n_masks, mask_prob=MASK_PROB, seed=10_000 * n_masks + number
        )
        target = explanation.resolve(label)
        maps.append(pooled(explanation, explanation.masks(), explanation.scores_of(target)))
        present, colored = energies(*half_maps(explanation, target))
        presence.append(present)
        color.append(colored)
    alone = np.arange(n_images)
    middle, error = mean_maps(np.array(maps), alone)
    strong = np.unravel_index(np.abs(middle).argmax(), middle.shape)
    share = ratio(np.array(color), np.add(color, presence), alone)
    assert share is not None
    signal = np.mean(np.square(middle)) - np.mean(np.square(error))  # noise is no signal
    return {
        "sign": label,
        "images": n_images,
        "masks": n_masks,
        "error of the mean map, relative": float(np.sqrt(np.mean(np.square(error)) / signal)),
        "effect at the strongest place": float(middle[strong]),
        "error there": float(error[strong]),
        "color share": share.value,
        "error of it": error_of(share),
    }


def error_of(figure: Estimate) -> float:
    """The standard error that an interval was made of, about."""
    return (figure.high - figure.low) / (2 * t_quantile(figure.n - 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--calls", type=int, default=64_000, help="of each design")
    parser.add_argument("--signs", default="stop")
    parser.add_argument("--masks", default="64,256,1024", help="of an image, for each design")
    given = parser.parse_args()
    model, rows = mcrise.load_model("demo", threads=1), []
    started = time.perf_counter()
    for name in given.signs.split(","):
        for n_masks in map(int, given.masks.split(",")):
            rows.append(measure(name, model, n_masks, round(given.calls / n_masks)))
            print(rows[-1], file=sys.stderr, flush=True)
    report("audit_budget", rows, calls=given.calls, seconds=time.perf_counter() - started)


if __name__ == "__main__":
    main()
