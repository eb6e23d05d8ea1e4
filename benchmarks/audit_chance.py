"""What chance does to an audit: findings in pure noise, and how often intervals hold the truth.

    python benchmarks/audit_chance.py [--audits 100] [--repeats 300]

Noise: audits of 43 classes x 20 images, 5 fills, 64 masks, whose scores have nothing to do with the
masks. The images of a class have masks of their own; those of different classes share them, which
changes nothing since their scores are drawn apart. Truth: images of `tests/planted_audit.py`, with
new masks each time, whose mean maps and color share are known in closed form. Taken: transplants
whose chance of being taken is known. Prints tables and
writes benchmarks/results/audit_*.json.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))  # the planted audits live there

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from mcrise.audits.class_data import RASTER, ClassData
from mcrise.audits.class_stats import make_stats, stats_of
from mcrise.audits.stats import crossed_share
from mcrise.audits.transplants import N_GIVEN, Index, pairs
from mcrise.estimators import ESTIMATORS, Sample
from planted_audit import (
    ASKED,
    FILLS,
    Population,
    make_basis,
    make_looks,
    masks_of,
    plan_of,
    some_population,
)
from table import report

N_CLASSES, N_IMAGES, N_MASKS = 43, 20, 64
Draw = Callable[[np.random.Generator, tuple[int, ...]], NDArray[Any]]
NOISE: dict[str, Draw] = {
    "even": lambda generator, shape: generator.random(shape),
    "mostly near zero": lambda generator, shape: generator.beta(0.1, 1, shape),
}


# ---- chance


def noise_audit(draw: Draw, bases: list[Any], seed: int, ranked: bool) -> Iterator[ClassData]:
    """The looks of all classes of an audit of noise."""
    generator = np.random.default_rng(seed)
    scores = draw(generator, (N_IMAGES, N_CLASSES, N_MASKS)).astype(np.float32)
    pairs = list(zip(bases, scores, strict=True))
    kinds = [scores, (rankdata(scores, axis=-1) / N_MASKS).astype(np.float32)]
    maps, ranks = (
        np.stack([b.maps(own) for b, own in zip(bases, kind, strict=True)], axis=1)
        for kind in kinds
    )  # (classes, images, K, R, R)
    errors = np.stack([basis.errors(own) for basis, own in pairs], axis=1)
    for target in range(N_CLASSES):
        error = np.broadcast_to(errors[target][:, None, None, None], maps[target].shape)
        given = {"ranks": ranks[target].astype(np.float32)} if ranked else {}
        yield make_looks(maps[target], target, errors=error, **given)


def chance(n_audits: int) -> list[dict[str, Any]]:
    rows = []
    bases = [make_basis(seed, 0.5) for seed in range(N_IMAGES)]
    for name, ranked in [*((name, True) for name in NOISE), ("mostly near zero", False)]:
        silent = n_unlike = 0
        started = time.perf_counter()
        for seed in range(n_audits):
            figures = make_stats(ASKED, noise_audit(NOISE[name], bases, seed, ranked), seed=seed)
            silent += not any(one.findings for one in figures.classes)
            n_unlike += sum(len(one.outliers) for one in figures.classes)
        rows.append(
            {
                "scores": name,
                "findings tested on": "ranks" if ranked else "scores",
                "audits": n_audits,
                "without any class finding": silent,
                "images called unlike the others, of 860": n_unlike / n_audits,
                "seconds an audit": (time.perf_counter() - started) / n_audits,
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


# ---- coverage


def coverage(n_repeats: int) -> list[dict[str, Any]]:
    rows = []
    for n_images, per_group, spread in ((12, 1, 0.3), (24, 1, 0.3), (24, 2, 0.3)):
        population = some_population(spread=spread)
        truths = truths_of(population)
        hits: dict[str, list[bool]] = {name: [] for name in truths}
        widths: list[float] = []
        for repeat in range(n_repeats):
            for name, figure in one_audit(population, n_images, per_group, repeat).items():
                hits[name].append(bool(figure.low <= truths[name] <= figure.high))
                if name == "color share":
                    widths.append(figure.high - figure.low)
        effects = [hit for name, some in hits.items() if "effect" in name for hit in some]
        rows.append(
            {
                "images": n_images,
                "groups": n_images // per_group,
                "spread of strengths": spread,
                "repeats": n_repeats,
                "color share": float(np.mean(hits["color share"])),
                "its width, median": float(np.median(widths)),
                "share of a zone": float(np.mean(hits["zone share"])),
                "mean effects": float(np.mean(effects)),
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def truths_of(population: Population) -> dict[str, float]:
    """What the figures of `one_audit` are over all images there could be."""
    maps, half = population.mean, RASTER // 2
    # Of an image, presence and color have strengths of the same mean square, and no cross term.
    squares = np.square(population.mean).mean(axis=0)
    truths = {"color share": population.color_share}
    truths["zone share"] = float(squares[half:].sum() / squares.sum())
    for k, fill in enumerate(FILLS):
        truths[f"effect of {fill} above"] = float(maps[k, :half].mean())
        truths[f"effect of {fill} below"] = float(maps[k, half:].mean())
    return truths


def one_audit(population: Population, n: int, per_group: int, repeat: int) -> dict[str, Any]:
    generator = np.random.default_rng([n, repeat])
    bases = [make_basis(int(seed)) for seed in generator.integers(2**40, size=n)]
    scores = population.draw(bases, generator, per_group)
    pairs = list(zip(bases, scores, strict=True))
    halves = zip(*(basis.halves(own) for basis, own in pairs), strict=True)
    maps = np.stack([basis.maps(own) for basis, own in pairs])
    looks = make_looks(maps, halves=[*map(np.stack, halves)], group=np.arange(n) // per_group)
    made = stats_of(looks, ASKED, "stop")
    found: dict[str, Any] = {
        "color share": made.color_share,
        "zone share": made.zones["background"],
    }
    for fill in FILLS:
        found[f"effect of {fill} above"] = made.zone_effect["upper half"][fill]
        found[f"effect of {fill} below"] = made.zone_effect["background"][fill]
    assert all(found.values())
    return found


# ---- pooling


def pooling(n_images: int) -> list[dict[str, Any]]:
    """What the mean of many images' maps is of the truth, where the truth is strongest."""
    population, rows = some_population(spread=0.0, noise=0.2), []
    truth = population.mean
    strong = np.abs(truth) > 0.5 * np.abs(truth).max()
    strength = np.abs(truth)[strong].mean()
    for n_masks in (64, 256, 1024):
        shares: dict[str, list[float]] = {"centered": [], "smooth": []}
        for seed in range(n_images):
            basis = make_basis(seed, n_masks=n_masks)
            (scores,) = population.draw([basis], np.random.default_rng(seed))
            sample = Sample(
                plan_of(seed), masks_of(seed, n_masks=n_masks), [scores[:, None]], "any"
            )
            for name, some in shares.items():
                values = ESTIMATORS[name].prepare(sample).maps(sample.column(0)).values
                some.append(float((values * np.sign(truth))[strong].mean() / strength))
        for name, some in shares.items():
            rows.append(
                {"estimator": name, "masks": n_masks, "images": n_images,
                 "pooled over truth": float(np.mean(some)),
                 "standard error": float(np.std(some) / np.sqrt(n_images))}
            )  # fmt: skip
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


# ---- what images of other classes are taken for


def taken(n_repeats: int) -> list[dict[str, Any]]:
    """How often the interval of a share of transplants holds the truth, by donors and receivers.

    Whether a pair is a hit depends on the donor's group, on the receiver's, on both, or on neither;
    the odds of each are normal, so the share over all groups there could be is an integral. Pairs
    are those that an audit makes.
    """
    rows = []
    for n_donors, n_receivers, per_group in DESIGNS:
        donor, receiver = pairs_of(n_donors, n_receivers, per_group)
        cells, widths = [], []
        for (spread_donor, spread_receiver), odds in product(SPREADS, (-3.0, -1.0, 0.0, 2.0)):
            truth = logistic_mean(odds, float(np.hypot(spread_donor, spread_receiver)))
            random, covered = np.random.default_rng(len(cells)), []
            for _ in range(n_repeats):
                level = odds + spread_donor * random.normal(size=donor.max() + 1)[donor]
                level += spread_receiver * random.normal(size=receiver.max() + 1)[receiver]
                hits = random.random(len(level)) < 1 / (1 + np.exp(-level))
                one = crossed_share(hits, donor, receiver)
                assert one is not None
                covered.append(not (truth < one.low or truth > one.high))  # NaN: nothing is said
                widths.append(one.high - one.low)
            cells.append(float(np.mean(covered)))
        rows.append(
            {"donors": n_donors, "receivers": n_receivers, "images of a group": per_group,
             "covered": float(np.mean(cells)), "in the worst of 20 kinds": min(cells),
             "width": float(np.nanmean(widths))}
        )  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


DESIGNS = [(2, 2, 1), (2, 6, 1), (3, 6, 1), (6, 6, 1), (6, 12, 1), (12, 24, 1), (4, 12, 2),
           (6, 12, 3), (12, 24, 4)]  # fmt: skip
SPREADS = [(0.0, 0.0), (1.0, 1.0), (3.0, 0.0), (0.0, 3.0), (3.0, 3.0)]  # of donors and receivers


def pairs_of(
    n_donors: int, n_receivers: int, per_group: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The groups of donors and of receivers of an audit's pairs, each counted from 0."""
    target = np.repeat([0, 1], [n_donors, n_receivers])
    image = np.arange(len(target))
    one_half = Index(image, target, target, image, np.ones_like(image), {0: (1,), 1: (0,)})
    receiver, donor = np.array(pairs(one_half, 0, [1], 1, N_GIVEN, seed=0)).T
    return donor // per_group, (receiver - n_donors) // per_group


def logistic_mean(middle: float, spread: float) -> float:
    """The mean of 1 / (1 + exp(-x)) over a normal x."""
    x, weight = np.polynomial.hermite_e.hermegauss(81)
    return float((weight / (1 + np.exp(-middle - spread * x))).sum() / weight.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--audits", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--parts", default="chance,coverage,pooling,taken")
    given = parser.parse_args()
    parts = {
        "chance": lambda: chance(given.audits),
        "coverage": lambda: coverage(given.repeats),
        "pooling": lambda: pooling(40),
        "taken": lambda: taken(given.repeats),
    }
    for name in given.parts.split(","):
        report(f"audit_{name}", parts[name]())


if __name__ == "__main__":
    main()
