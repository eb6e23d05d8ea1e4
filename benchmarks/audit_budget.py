"""How to spend calls on an audit: many images with few masks, or few with many?

    python benchmarks/audit_budget.py [--images 48] [--signs stop,priority-road]

Signs that the project draws, each in another size, place, light and haze, and the embedded network.
Every image is explained with 1,024 masks. Cut into blocks of 64 and 256, the same scores tell how
much an image's figures vary from image to image with so many masks, and that over the root of the
number of images is the error of the class's: 64,000 calls are 1,000 images of 64 masks, 250 of 256
or 64 of 1,024. Prints a table and writes benchmarks/results/audit_budget.json.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

import mcrise
from mcrise.auditing.zones import onto_raster
from mcrise.demo.signs import SIGNS
from mcrise.estimate import centered, contrast, weighted_sums
from mcrise.record import Record
from table import report

N_MASKS, CALLS, MASK_PROB = 1024, 64_000, 0.2
DESIGNS = {64: 1000, 256: 250, 1024: 64}  # images by masks


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


@dataclass(frozen=True)
class Block:
    """What some masks tell of one image."""

    maps: NDArray[np.float64]  # (K, R, R)
    presence: float
    color: float


def blocks(record: Record, target: int, n_masks: int) -> list[Block]:
    """The image measured by each of its blocks of masks, as an audit measures it."""
    scores, masks = record.sample().scores_of(target), record.sample().masks

    def maps(some: slice) -> NDArray[np.float64]:
        sums = weighted_sums(record.plan, masks[some], centered(scores[some]))
        return onto_raster(contrast(record.plan, sums / len(scores[some]), 0.0))

    found = []
    for start in range(0, N_MASKS, n_masks):
        one, other = (maps(slice(start + first, start + n_masks, 2)) for first in (0, 1))
        alike = one.mean(axis=0), other.mean(axis=0)
        color = float(((one - alike[0]) * (other - alike[1])).mean())
        whole = maps(slice(start, start + n_masks))
        found.append(Block(whole, float((alike[0] * alike[1]).mean()), color))
    return found


def errors(images: list[list[Block]], truth: list[Block], n: int) -> dict[str, float]:
    """The errors of figures of n images like these, each measured by one block."""
    mean = np.mean([one.maps for one in truth], axis=0)
    strong = np.abs(mean) >= 0.8 * np.abs(mean).max()
    color = sum(one.color for one in truth)
    whole = sum(one.color + one.presence for one in truth)

    def spread(of: Any) -> Any:
        """The variance over images, averaged over which block of theirs is taken."""
        values = np.array([[of(block) for block in own] for own in images])
        return values.var(axis=0, ddof=1).mean(axis=0)

    of_map = np.sqrt(np.mean(spread(lambda one: one.maps)) / n)
    of_place = np.sqrt(spread(lambda one: one.maps[strong].mean()) / n)
    rest = spread(lambda one: one.color - color / whole * (one.color + one.presence))
    return {
        "error of the mean map, relative": float(of_map / np.sqrt(np.mean(mean**2))),
        "error at the strongest place": float(of_place),
        "effect there": float(mean[strong].mean()),
        "color share": float(color / whole),
        "its error": float(np.sqrt(rest / n) / (whole / len(truth))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--images", type=int, default=48, help="of each sign")
    parser.add_argument("--signs", default="stop,priority-road")
    given = parser.parse_args()
    model, rows = mcrise.load_model("demo", threads=1), []
    started, calls = time.perf_counter(), 0
    for name in given.signs.split(","):
        sign, label = SIGNS[name](), name.replace("-", " ")
        records = []
        for seed in range(given.images):
            picture = vary(sign, np.random.default_rng([seed, len(records)]))
            records.append(
                mcrise.explain(picture, model, n_masks=N_MASKS, mask_prob=MASK_PROB, seed=seed)
            )
            calls += N_MASKS
            print(".", end="", flush=True, file=sys.stderr)
        target = records[0].resolve(label)
        truth = [blocks(record, target, N_MASKS)[0] for record in records]
        for n_masks, n_images in DESIGNS.items():
            images = [blocks(record, target, n_masks) for record in records]
            rows.append(
                {"sign": label, "images": n_images, "masks": n_masks,
                 **errors(images, truth, n_images)}
            )  # fmt: skip
    seconds = time.perf_counter() - started
    report("audit_budget", rows, pool=given.images, calls_per_second=calls / seconds)


if __name__ == "__main__":
    main()
