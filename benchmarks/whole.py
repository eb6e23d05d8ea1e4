"""Whether mcrise reports the whole truth about an image, judged by exhaustive search.

    python benchmarks/whole.py --set dev                          # every part, every network
    python benchmarks/whole.py --set dev --networks embedded --images 10 --part places,calls
    python benchmarks/whole.py --set test --part judge            # only fill the folder of answers
    python benchmarks/whole.py --set test --skip 40               # images after the first ones

`exhaustive.py` paints all blocks of an image and asks the network; `reported.py` brings what mcrise
reports into a neutral form. The judge paints with code of its own. Images are apart by a hash of
the file name: `dev` to develop with, `test` to be run once, `all` for both. Parts:

places  right images: are the blocks named that change the decision or raise the score?
wrong   wrong images: is a repaint found that makes the model say the truth?
truth   is each score reproduced, does it hold at hard edges and moved by a quarter of a cell, how
        often do 19 other places as much, and are the interpretations true?
calls   how many images the model was asked about
judge   what the exhaustive search alone knows, of right and of wrong images

A place counts if its own trial verified it and it is at most a sixth of the image. A block is named
if half of it lies on places of the same direction. Intervals are over images (bootstrap). Prints
tables and writes benchmarks/results/whole-SET-PART.json; the names of networks follow where only
some are asked for.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

import exhaustive as judge
from exhaustive import COLORS, Answers, Image, Pixels, Region, ask, dot, paint
from mcrise import Model
from reported import Place, Report, Statement, report_on, way_to
from table import report

PARTS = ("judge", "places", "truth", "calls", "wrong")
N_IMAGES = {"embedded": 40, "seed1": 40, "photographs": 20}

LARGEST = 1 / 6  # of the image; a larger place does not count
NAMED, UNCOVERED = 0.5, 0.1  # of a block, on places of the same direction
PART = 0.15  # of the score: less is no effect
LEAST_CHANGE, LEAST_RISE = 0.03, 0.065  # likewise, of probability
SAME_SCORE = 1e-3
KEPT = 0.9  # of the score
N_FRESH = 19
AS_MUCH = 0.9  # of the effect
LUMA = np.array([0.299, 0.587, 0.114])

Counts = dict[str, tuple[int, int]]  # what was judged of one image -> (how many, how many hits)


# ---- what an answer means


def matters(before: float, after: Any) -> Any:
    """Whether a score has changed by 15% and 0.03."""
    return np.abs(after - before) >= max(PART * before, LEAST_CHANGE)


def rises(before: float, after: Any) -> Any:
    """Whether a score has risen by 15% and 0.065."""
    return after - before >= max(PART * before, LEAST_RISE)


def log_odds(score: Any) -> Any:
    clipped = np.clip(score, 0.01, 0.99)
    return np.log(clipped / (1 - clipped))


# ---- places against all blocks


def counts(place: Place) -> bool:
    return place.verified and place.share <= LARGEST + 1e-9


class Cover:
    """How much of any block lies on the places of one direction."""

    def __init__(self, places: Sequence[Place], direction: str, size: tuple[int, int]) -> None:
        on = np.zeros(size, bool)
        for place in places:
            if counts(place) and place.direction == direction:
                on |= place.region
        self.sums = np.pad(on.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))

    def __call__(self, blocks: NDArray[Any]) -> NDArray[np.float64]:
        """Blocks (B, 5) as in `exhaustive.lattice`; shares (B,)."""
        _, top, left, bottom, right = blocks.T
        inside = (self.sums[bottom, right] - self.sums[top, right]
                  - self.sums[bottom, left] + self.sums[top, left])  # fmt: skip
        return np.asarray(inside / ((bottom - top) * (right - left)))


def judge_places(answers: Answers, told: Report, model: Model, pixels: Pixels) -> Counts:
    """Which blocks are named, and which places are false."""
    size, before, blocks = pixels.shape[:2], answers.before, answers.blocks
    lowering, raising = (Cover(told.places, way, size)(blocks) for way in ("lowers", "raises"))

    changes = answers.says != answers.predicted  # (B, 5 colors)
    falls = np.where(changes, answers.score, np.inf).min(axis=1) < before
    deciding = changes.any(axis=1)
    on = np.where(falls, lowering, raising)[deciding]

    rising = rises(before, answers.score).any(axis=1)
    highest = int(answers.score.max(axis=1).argmax())

    strongest = []
    effect = np.where(matters(before, answers.score) | changes, answers.score - before, 0)
    for side in judge.SIDES:
        of_side = np.where((blocks[:, :1] == side), effect, 0)
        block, color = np.unravel_index(np.abs(of_side).argmax(), of_side.shape)
        if of_side[block, color]:
            cover = lowering if of_side[block, color] < 0 else raising
            strongest.append(bool(cover[block] >= NAMED))

    listed = [place for place in told.places if counts(place)]
    confirmed = [confirms(answers, place, scores) for place, scores in
                 zip(listed, repainted(model, pixels, listed), strict=True)]  # fmt: skip
    return {
        "images uncovered": (1, int((on < UNCOVERED).any())),
        "deciding blocks named": (len(on), int((on >= NAMED).sum())),
        "rises named": (int(rising.sum()), int((raising[rising] >= NAMED).sum())),
        "images with a rise, highest named": (
            int(rising.any()), int(rising.any() and raising[highest] >= NAMED)),
        "strongest of a size named": (len(strongest), sum(strongest)),
        "places false": (len(listed), len(listed) - sum(confirmed)),
    }  # fmt: skip


def repainted(model: Model, pixels: Pixels, places: Sequence[Place]) -> NDArray[np.float32]:
    """The scores of places at hard edges."""
    if not places:
        return np.zeros((0, 1), np.float32)
    return ask(model, [paint(pixels, place.region, place.fill) for place in places])


def confirms(answers: Answers, place: Place, scores: NDArray[np.float32]) -> bool:
    """Whether a repaint matters in the direction that is reported."""
    after, before = float(scores[answers.predicted]), answers.before
    same = (after < before) == (place.direction == "lowers")
    changes = int(scores.argmax()) != answers.predicted
    return same and bool(changes or matters(before, after))


# ---- truth


def judge_truth(answers: Answers, told: Report, model: Model, pixels: Pixels, seed: int) -> Counts:
    """Each verified place and each interpretation, tested by the judge's repaints."""
    chance = np.random.default_rng(seed)
    before, predicted = answers.before, answers.predicted
    cell = tuple(side // judge.GRID for side in pixels.shape[:2])
    places = [place for place in told.places if place.verified]
    found: dict[str, list[bool]] = {name: [] for name in TRUTHS}
    hard = repainted(model, pixels, places)
    for place, at_hard in zip(places, hard, strict=True):
        moved = shifted(place.region, cell, chance)
        pictures = [paint(pixels, place.weight, place.fill), paint(pixels, moved, place.fill)]
        as_painted, beside = ask(model, pictures)
        found["scores reproduced"].append(
            bool(abs(as_painted[predicted] - place.score_after) <= SAME_SCORE)
        )
        if place.says is not None:
            label = (model.labels or ())[int(as_painted.argmax())]
            found["answers reproduced"].append(label == place.says)
        found["hold at hard edges"].append(confirms(answers, place, at_hard))
        effect = place.score_after - before
        found["moved: keep half"].append(bool((beside[predicted] - before) / effect >= 0.5))
        found["moved: still matter"].append(confirms(answers, place, beside))
        fresh = list(fresh_places(place.region, chance)) if place.only_here else []
        if fresh:
            there = ask(model, [paint(pixels, one, place.fill) for one in fresh])[:, predicted]
            odds = log_odds(before)
            full = log_odds(at_hard[predicted]) - odds
            much = (log_odds(there) - odds) / (full or 1e-9) >= AS_MUCH
            found["fresh places that do 90%"] += [bool(one) for one in much]
            found["'only here' with a fresh place that does 90%"].append(bool(much.any()))
            plain = (there - before) / (at_hard[predicted] - before) >= AS_MUCH
            found["the same by differences"].append(bool(plain.any()))
    for statement in told.statements:
        if statement.kind in STATEMENTS:
            true = STATEMENTS[statement.kind](statement, answers, model, pixels, chance)
            found["interpretations true"].append(true)
            found.setdefault(f"true: {statement.kind}", []).append(true)
    return {name: (len(hits), sum(hits)) for name, hits in found.items()}


TRUTHS = (
    "scores reproduced",
    "answers reproduced",
    "hold at hard edges",
    "moved: keep half",
    "moved: still matter",
    "fresh places that do 90%",
    "'only here' with a fresh place that does 90%",
    "the same by differences",
    "interpretations true",
)


def shifted(region: Region, cell: Sequence[int], chance: np.random.Generator) -> Region:
    """A region moved by a quarter of a cell at any angle; what leaves the image is cut off."""
    angle = 2 * np.pi * chance.random()
    pad = max(cell)
    top = pad - round(np.sin(angle) * cell[0] / 4)
    left = pad - round(np.cos(angle) * cell[1] / 4)
    out = np.pad(region, pad)[top : top + region.shape[0], left : left + region.shape[1]]
    return out if out.any() else region


def fresh_places(region: Region, chance: np.random.Generator) -> Iterator[Region]:
    """Up to 19 places of the same shape, turned where needed, that share no pixel with it."""
    rows, columns = (np.flatnonzero(region.any(axis=axis)) for axis in (1, 0))
    shape = region[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    seen: set[tuple[int, int, int]] = set()
    n_found = 0
    for _ in range(3000):
        turns = int(chance.integers(4))
        one = np.rot90(shape, turns)
        free = np.array(region.shape) - one.shape
        if (free < 0).any():
            continue
        top, left = (int(start) for start in chance.integers(free + 1))
        box = slice(top, top + one.shape[0]), slice(left, left + one.shape[1])
        if (turns, top, left) in seen or (region[box] & one).any():
            continue
        seen.add((turns, top, left))
        place = np.zeros_like(region)
        place[box] = one
        yield place
        n_found += 1
        if n_found == N_FRESH:
            return


# ---- interpretations, each by the strictest test there is for it

Judged = Callable[[Statement, Answers, Model, Pixels, np.random.Generator], bool]


def scores_of(
    fills: Sequence[NDArray[Any]],
    region: Region,
    answers: Answers,
    model: Model,
    pixels: Pixels,
) -> NDArray[np.float32]:
    """The score of the predicted class with a region in each fill."""
    scores = ask(model, [paint(pixels, region, fill) for fill in fills])
    return np.asarray(scores[:, answers.predicted])


def flat_colors(pixels: Pixels, region: Region) -> list[NDArray[Any]]:
    """The five colors, and the region's own mean color."""
    return [*(np.array(color) for color in COLORS.values()), pixels[region].mean(axis=0)]


def is_structure(said: Statement, answers: Answers, model: Model, pixels: Pixels, _: Any) -> bool:
    """No flat color keeps the score."""
    assert said.region is not None
    flat = flat_colors(pixels, said.region)
    after = scores_of(flat, said.region, answers, model, pixels)
    return bool((after < KEPT * answers.before).all())


def is_mixture(
    said: Statement, answers: Answers, model: Model, pixels: Pixels, chance: np.random.Generator
) -> bool:
    """No flat color keeps the score, and four of five shuffles of its pixels do."""
    assert said.region is not None
    shuffles = []
    for _ in range(5):
        mixed = pixels.copy()
        mixed[said.region] = chance.permutation(pixels[said.region])
        shuffles.append(mixed)
    after = scores_of(shuffles, said.region, answers, model, pixels)
    kept = int((after >= KEPT * answers.before).sum())
    return kept >= 4 and is_structure(said, answers, model, pixels, chance)


def is_brightness(said: Statement, answers: Answers, model: Model, pixels: Pixels, _: Any) -> bool:
    """A gray as bright as each color that lowers the score lowers it too."""
    assert said.region is not None
    grays = [np.full(3, float(fill @ LUMA)) for fill in said.fills if fill.ndim == 1]
    after = scores_of(grays, said.region, answers, model, pixels)
    return bool((matters(answers.before, after) & (after < answers.before)).all())


def is_color(said: Statement, answers: Answers, model: Model, pixels: Pixels, _: Any) -> bool:
    """Its own mean color keeps the score."""
    assert said.region is not None
    mean = pixels[said.region].mean(axis=0)
    (after,) = scores_of([mean], said.region, answers, model, pixels)
    return bool(after >= KEPT * answers.before)


def is_kept(said: Statement, answers: Answers, model: Model, pixels: Pixels, _: Any) -> bool:
    """Each fill keeps the score."""
    assert said.region is not None
    after = scores_of(said.fills, said.region, answers, model, pixels)
    return bool((after >= KEPT * answers.before).all())


def is_idle(said: Statement, answers: Answers, model: Model, pixels: Pixels, _: Any) -> bool:
    """No fill moves the score."""
    assert said.region is not None
    after = scores_of(said.fills, said.region, answers, model, pixels)
    return not matters(answers.before, after).any()


def is_nothing(said: Statement, answers: Answers, model: Model, pixels: Pixels, _: Any) -> bool:
    """No block matters, nor any half of the image, nor the whole."""
    height, width = pixels.shape[:2]
    boxes = [(0, 0, height, width), (0, 0, height // 2, width), (height // 2, 0, height, width),
             (0, 0, height, width // 2), (0, width // 2, height, width)]  # fmt: skip
    regions = [judge.region_of((height, width), box) for box in boxes]
    colors = [np.array(color) for color in COLORS.values()]
    scores = ask(model, [paint(pixels, region, color) for region in regions for color in colors])
    after = np.concatenate([answers.score.ravel(), scores[:, answers.predicted]])
    return not matters(answers.before, after).any()


STATEMENTS: dict[str, Judged] = {
    "structure": is_structure,
    "mixture": is_mixture,
    "brightness": is_brightness,
    "color": is_color,
    "finds color": is_color,
    "as good": is_kept,
    "saturated": is_idle,
    "nothing matters": is_nothing,
}


# ---- wrong images


def judge_way(answers: Answers, image: Image, model: Model, pixels: Pixels) -> dict[str, Any]:
    """Whether one block can right a wrong image, and whether what mcrise finds does."""
    reaching = (answers.says == answers.truth).any(axis=1)
    way = way_to(image.path, image.truth, model)
    picture = pixels
    for weight, fill in way.strokes:
        picture = paint(picture, np.asarray(weight) >= 0.5, fill)
    reached = way.found and int(ask(model, [picture])[0].argmax()) == image.truth
    sides = answers.blocks[reaching, 0]
    return {"image": image.name, "reachable": bool(reaching.any()), "reached": bool(reached),
            "claimed": way.found, "trials": way.n_trials, "blocks": int(reaching.sum()),
            "smallest side": int(sides.min()) if len(sides) else None}  # fmt: skip


# ---- tables


def share(images: Sequence[Counts], name: str) -> str:
    """`94% of 80 [88, 98]`, the interval over images."""
    rows = np.array([image.get(name, (0, 0)) for image in images], float).reshape(-1, 2)
    judged, hits = rows.sum(axis=0)
    if not judged:
        return "none"
    chance = np.random.default_rng(0)
    sums = rows[chance.integers(len(rows), size=(2000, len(rows)))].sum(axis=1)
    means = (sums[:, 1] / np.maximum(sums[:, 0], 1))[sums[:, 0] > 0]
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{100 * hits / judged:.3g}% of {judged:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def shares(images: Sequence[Counts]) -> dict[str, str]:
    return {name: share(images, name) for name in dict.fromkeys(n for one in images for n in one)}


def median(values: Sequence[float]) -> float | str:
    return float(np.median(values)) if values else "none"


def judge_row(image: Image, answers: Answers) -> dict[str, Any]:
    """What exhaustive search knows of one image."""
    deciding = (answers.says != answers.predicted).any(axis=1)
    rising = rises(answers.before, answers.score).any(axis=1)
    righting = (answers.says == answers.truth).any(axis=1)
    return {"image": image.name, "right": answers.predicted == answers.truth,
            "score": answers.before, "deciding blocks": int(deciding.sum()),
            "rising blocks": int(rising.sum()), "righting blocks": int(righting.sum())}  # fmt: skip


def known_row(name: str, model: Model, images: Sequence[Image], given: Any) -> list[dict[str, Any]]:
    """What exhaustive search knows of the images of one network, right and wrong."""
    wrong = judge.choose(name, model, given.set, False, given.images, given.cache)
    cases = []
    for image in (*images, *wrong):
        cases.append(judge_row(image, judge.answers_of(name, model, image, given.cache)))
        dot()
    right, failed = (cases[: len(images)], cases[len(images) :])
    row = {
        "network": name,
        "images": len(images),
        "with a deciding block": sum(one["deciding blocks"] > 0 for one in right),
        "deciding blocks of 515, mean": float(np.mean([one["deciding blocks"] for one in right])),
        "with a rise": sum(one["rising blocks"] > 0 for one in right),
        "wrong images": len(failed),
        "one block reaches the truth": sum(one["righting blocks"] > 0 for one in failed),
    }
    return [row, {"cases": cases}]


def look(name: str, model: Model, given: Any) -> dict[str, list[dict[str, Any]]]:
    """Rows of all parts but `wrong`, for one network."""
    n_images = given.skip + (given.images or N_IMAGES[name])
    images = judge.choose(name, model, given.set, True, n_images, given.cache)[given.skip :]
    known = {}
    if "judge" in given.part:
        known["judge"] = known_row(name, model, images, given)
    if not {"places", "truth", "calls"} & set(given.part):
        return known
    named, true, n_places = [], [], []
    calls: list[dict[str, Any]] = []
    for n, image in enumerate(images):
        answers = judge.answers_of(name, model, image, given.cache)
        pixels, told = judge.shown(model, image), report_on(image.path, model)
        calls.append({"image": image.name, **told.calls, "all": told.n_calls})
        n_places.append(sum(map(counts, told.places)))
        if "places" in given.part:
            named.append(judge_places(answers, told, model, pixels))
        if "truth" in given.part:
            true.append(judge_truth(answers, told, model, pixels, n))
        dot()
    first = {"network": name, "images": len(images)}
    kinds = [kind for kind in calls[0] if kind != "image"]
    medians = {f"{kind}, median": median([one[kind] for one in calls]) for kind in kinds}
    rows = {
        "places": {**first, "places that count, median": median(n_places), **shares(named)},
        "truth": {**first, **shares(true)},
        "calls": {**first, **medians},
    }
    details = {
        "places": with_names(images, named),
        "truth": with_names(images, true),
        "calls": calls,
    }
    asked = [part for part in rows if part in given.part]
    return known | {part: [rows[part], {"cases": details[part]}] for part in asked}


def with_names(images: Sequence[Image], found: Sequence[Counts]) -> list[dict[str, Any]]:
    return [{"image": image.name, **one} for image, one in zip(images, found, strict=False)]


def look_at_wrong(name: str, model: Model, given: Any) -> list[dict[str, Any]]:
    """The row of wrong images for one network, and each of them."""
    images = judge.choose(name, model, given.set, False, given.images, given.cache)
    if name == "embedded":
        images.append(demo_sign(given.cache))
    cases = []
    for image in images:
        answers = judge.answers_of(name, model, image, given.cache)
        cases.append(judge_way(answers, image, model, judge.shown(model, image)))
        dot()
    able = [one for one in cases if one["reachable"]]
    reached = [one for one in able if one["reached"]]
    row = {
        "network": name,
        "wrong images": len(cases),
        "one block reaches the truth": len(able),
        "of these reached": len(reached),
        "share": f"{100 * len(reached) / len(able):.3g}%" if able else "none",
        "others reached": sum(one["reached"] for one in cases) - len(reached),
        "claimed but not so": sum(one["claimed"] and not one["reached"] for one in cases),
        "trials where reached, median": median([one["trials"] for one in reached]),
        "trials, median": median([one["trials"] for one in cases]),
    }
    if name == "embedded":
        row["the demo's washed-out sign"] = "reached" if cases[-1]["reached"] else "not reached"
    return [row, {"cases": cases}]


def demo_sign(cache: Path) -> Image:
    """The washed-out sign of `mcrise demo`, as a file."""
    from mcrise.demo.signs import SIGNS

    file = cache / "washed-out-priority-road.png"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        SIGNS["washed-out-priority-road"]().save(file)
    return Image(str(file), 12)  # priority road


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--set", choices=["dev", "test", "all"], default="dev")
    parser.add_argument("--networks", default=",".join(judge.NETWORKS))
    parser.add_argument(
        "--images", type=int, help="of each network  [default: 40, 40, 20; all wrong]"
    )
    parser.add_argument("--skip", type=int, default=0, help="as many right images come first")
    parser.add_argument("--part", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--cache", type=Path, default=judge.CACHE, help="folder of the answers")
    given = parser.parse_args()
    given.part = given.part.split(",")
    if unknown := set(given.part) - set(PARTS):
        parser.error(f"there is no part {', '.join(unknown)}: give some of {', '.join(PARTS)}")
    rows: dict[str, list[dict[str, Any]]] = {part: [] for part in PARTS if part in given.part}
    cases: dict[str, dict[str, Any]] = {part: {} for part in rows}
    started = time.process_time()
    for name in given.networks.split(","):
        model = judge.open_network(name)
        found = look(name, model, given) if set(given.part) - {"wrong"} else {}
        if "wrong" in given.part:
            found["wrong"] = look_at_wrong(name, model, given)
        for part, (row, detail) in found.items():
            rows[part].append(row)
            cases[part][name] = detail["cases"]
    seconds = time.process_time() - started
    some = [] if given.networks == parser.get_default("networks") else given.networks.split(",")
    for part in rows:
        about = {
            "set": given.set,
            "images": given.images,
            "skip": given.skip,
            "cpu_seconds": seconds,
        }
        report("-".join(["whole", given.set, part, *some]), rows[part], **about, cases=cases[part])


if __name__ == "__main__":
    main()
