"""Everything that an audit measures of one image, a pure function of it and the model.

Figures of a class are means over images, so what is kept of an image must not be biased, noisy as
it may be. Maps are `centered`, which is linear in the scores. Energies are products of two halves
of the masks, whose errors are independent, so that noise does not count as signal.
"""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.array_eq import ArrayEq
from ..batch.datasets import Example
from ..batch.tasks import read_image
from ..colors import BASICS, basic_colors
from ..config import RunConfig
from ..estimators.averages import centered, contrast, sums_at
from ..estimators.raster import raster_of
from ..explanation import Explanation
from ..explanation_file import explanation_bytes
from ..fills import Gray, Hue
from ..images import View, thumbnail, unit_float
from ..interpretation.findings import Finding, Findings, Trial
from ..interpretation.inquiry import Effort
from ..interpretation.repaints import Repaint, Stroke, own_mean
from ..interpretation.search import search
from ..interpretation.text import box_words
from ..interpretation.trial_calls import conclude
from ..masks import Masks
from ..models.model import Model
from ..sampling import begin, grow, last
from .class_data import RASTER
from .confirmation import ConfirmationTask
from .transplants import N_RUNNERS_UP, Corner, Transplant, as_given
from .zones import Zone, box_share, mask_share, onto_raster, outer_part, zone_shares

POOLED = "centered"  # linear: maps of few masks are noisy, but their mean is not biased
# 40 trials at most
EFFORT = Effort(search=16, rising=False, described=1, controls=10, parts=0, several=False)
THUMBNAIL = 96  # pixels
HALVES = slice(0, None, 2), slice(1, None, 2)  # of the masks
OTHER_LIGHTS = {"gray": Gray(), "hue120": Hue(120.0), "hue240": Hue(240.0)}
COUNTERFACTUAL = (
    "counterfactual_kind",
    "counterfactual_share",
    "counterfactual_to",
    "counterfactual_sentence",
)
KINDS = {  # what a claim makes a finding, the most telling first
    "missing color": "missing color",
    "brightness": "brightness",
    "finds color": "color",
    "color": "color",
    "structure": "texture",
    "obstacle": "obstacle",
    "hue": "hue",
    "saturation": "saturation",
    "sharpness": "sharpness",
    "hue obstacle": "obstacle",
    "saturation obstacle": "obstacle",
    "sharpness obstacle": "obstacle",
}


@dataclass(frozen=True)
class Task:
    """Measure an image, repaint what was found in others of its class, or give it transplants."""

    image: int  # its number in the audit
    example: Example
    truth: int | None
    stage: str = "measure"  # or confirm, screen, refine, give, locate
    confirmations: tuple[ConfirmationTask, ...] = ()
    transplants: tuple[Transplant, ...] = ()
    donors: tuple[tuple[int, Example], ...] = ()  # with their numbers in the audit
    spots: tuple[tuple[int, Corner], ...] = ()  # of the donors

    @property
    def key(self) -> tuple[int, str]:
        return self.image, self.stage


@dataclass(frozen=True, eq=False)
class ImageMeasurement(ArrayEq):
    """What was measured of an image."""

    facts: dict[str, Any]  # one row of the table of images, but for the arrays
    findings: list[dict[str, Any]]  # rows of theirs
    arrays: dict[str, NDArray[Any]]
    explanation: bytes | None = field(default=None, repr=False)  # its file, where runs are kept

    def to_bytes(self) -> bytes:
        """As a file, without the run."""
        meta = json.dumps({"facts": self.facts, "findings": self.findings}).encode()
        out = io.BytesIO()
        np.savez(out, **self.arrays, meta=np.frombuffer(meta, np.uint8))  # type: ignore[arg-type]
        return out.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "ImageMeasurement":
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            meta = json.loads(arrays["meta"].tobytes())
            rest = {name: arrays[name] for name in arrays.files if name != "meta"}
        return cls(meta["facts"], meta["findings"], rest)


def measure_image(
    view: View,
    model: Model,
    run_config: RunConfig,
    zones: Sequence[Zone],
    task: Task,
    keep_record: bool = False,
) -> ImageMeasurement:
    """Measure an image: its maps, what was found in them and tried, and how sure it all is."""
    parts = zone_shares(zones, object_share(task.example, view))  # a wrong box costs no calls
    background_zone, region = outer_part(zones, parts)
    begun = begin(view, model, run_config)
    lights, background = ask_other_pictures(begun, model, run_config, region)
    # The image as it is comes last, and so tells how far two answers to it are apart.
    begun.jitter = float(np.abs(background[-1] - begun.untouched).max())
    grown = last(grow(begun, model, n_masks=run_config.n_masks, tolerance=run_config.tolerance,
                      max_masks=run_config.max_masks, target=run_config.target))  # fmt: skip
    explanation = grown.first(grown.goal)
    predicted = explanation.resolve(None)
    target = predicted if task.truth is None else explanation.resolve(task.truth)
    targets = list(dict.fromkeys((target, predicted)))
    found: dict[int, Findings] = {
        one: conclude(explanation, search(explanation, one, EFFORT.search, effort=EFFORT), model)
        for one in targets
    }
    facts: dict[str, Any] = {
        "target": target,
        "predicted": predicted,
        "score": float(explanation.untouched[target]),
        "predicted_score": float(explanation.untouched[predicted]),
        "runners_up": runners_up(explanation.untouched, target),
        "n_masks": explanation.n_masks,
        "n_targets": len(targets),
        **dict(zip(OTHER_LIGHTS, lights.argmax(axis=1).tolist(), strict=True)),
        **counterfactual_facts(explanation, found[predicted]),
        **correction_facts(explanation, list(found.values()), task.truth),
        "size": list(view.original_size),
        "notes": list(view.notes),
        "background_zone": background_zone,
        "n_calls": explanation.n_calls.total + len(lights) + len(background),
    }
    scores, predictions = background[:, target].astype(np.float64), background.argmax(axis=1)
    if not region.any():
        scores = np.full(explanation.plan.n_fills + 2, np.nan)
        predictions = np.full(len(scores), -1)
    maps = [explanation.maps(one, POOLED) for one in targets]
    colors = onto_raster(basic_colors(view.pixels) == np.arange(len(BASICS))[:, None, None])
    first = onto_raster(maps[0].values)
    halves = half_maps(explanation, target)
    facts["presence_energy"], facts["color_energy"] = energies(*halves)
    return ImageMeasurement(
        facts,
        [row for one in targets for row in finding_rows(explanation, found[one])],
        {
            "maps": np.stack([onto_raster(one.values) for one in maps]).astype(np.float16),
            "errors": np.stack([onto_raster(one.se) for one in maps]).astype(np.float16),
            "ranks": rank_maps(explanation, target).astype(np.float16),
            "zone_energy": zone_energies(parts, *halves),
            "zone_effect": mean_within(first, parts),
            "color_area": colors.mean(axis=(1, 2)),
            "color_area_effect": mean_within(first, colors),
            "background_score": scores,
            "background_prediction": predictions,
            "background_region": np.packbits(region),
            "pixels": pixels_on_raster(view),
            "thumbnail": np.frombuffer(thumbnail(view.pixels, THUMBNAIL, "WEBP", 70), np.uint8),
        },
        explanation_bytes(explanation) if keep_record else None,
    )


# ---- numbers of maps on the raster


def half_maps(
    explanation: Explanation, target: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The maps of every other mask, and those of the rest: (K, R, R) each."""
    masks, scores = explanation.masks(), explanation.scores_of(target)
    one, other = (pooled(explanation, masks[half], scores[half]) for half in HALVES)
    return one, other


def rank_maps(explanation: Explanation, target: int) -> NDArray[np.float64]:
    """The maps (K, R, R) of what share of the scores is no higher than each."""
    scores = explanation.scores_of(target)
    return pooled(explanation, explanation.masks(), ranks(scores) / len(scores))


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The places (n,) of values in their order, from 1 on; those of equal ones are their mean."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place.ravel()])


def pooled(
    explanation: Explanation, masks: Masks, scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Maps (K, R, R) that are linear in the scores."""
    points = raster_of(explanation.plan)
    means = sums_at(points, explanation.plan, masks, centered(scores)) / len(scores)
    return onto_raster(points.enlarge(contrast(explanation.plan, means, 0.0)))


def energies(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """Of presence T, the mean over fills, and of color, what each fill does beyond it."""
    presence = one.mean(axis=0), other.mean(axis=0)
    color = one - presence[0], other - presence[1]
    return float((presence[0] * presence[1]).mean()), float((color[0] * color[1]).mean())


def zone_energies(
    parts: NDArray[np.float64], one: NDArray[np.float64], other: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Of all fills in parts of the raster (Z, R, R): (Z,), NaN where a part is empty."""
    energy = (parts * (one * other).mean(axis=0)).mean(axis=(1, 2))
    return np.where(parts.any(axis=(1, 2)), energy, np.nan)


def mean_within(maps: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The means of maps (K, R, R) over parts of the raster (Z, R, R): (Z, K), NaN over nothing."""
    sums = np.einsum("zij,kij->zk", shares, maps)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(sums / shares.sum(axis=(1, 2))[:, None])


def pixels_on_raster(view: View) -> NDArray[np.uint8]:
    """The image itself, averaged: (R, R, 3)."""
    channels = onto_raster(np.moveaxis(unit_float(view.pixels), 2, 0))
    return np.rint(255 * np.moveaxis(channels, 0, 2)).astype(np.uint8)


def object_share(example: Example, view: View) -> NDArray[np.float64] | None:
    """Where the image's object is, as far as the collection says."""
    if example.mask is not None:
        return mask_share(read_image(example.mask), view)
    return None if example.box is None else box_share(example.box, view)


# ---- what the model says of other pictures


def ask_other_pictures(
    begun: Explanation, model: Model, run_config: RunConfig, region: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The scores (3, C) in other light and (K + 2, C) with a region of the raster painted.

    It is painted in each fill and in its mean color. The last are of the image untouched: a model
    that jitters is compared with another answer than the one that its prediction was taken from.
    Without such a region, these are all. One batch, if it is large enough.
    """
    view, plan = begun.view, begun.plan
    image = unit_float(view.pixels)
    shown = [as_given(fill.render(image), view) for fill in OTHER_LIGHTS.values()]
    if region.any():
        place = enlarged(region, plan.size)
        fills = (*plan.fills, own_mean(view.pixels, place))
        shown += [Repaint((Stroke(place, fill),)).render(view.pixels, plan.cell) for fill in fills]
    scores = ask(model, run_config, [*shown, view.pixels])
    return scores[: len(OTHER_LIGHTS)], scores[len(OTHER_LIGHTS) :]


def runners_up(scores: NDArray[np.float32], target: int) -> list[int]:
    """The classes that the model would say instead, the likeliest first; -1: there is none."""
    order = [int(c) for c in np.argsort(-scores, kind="stable")[: N_RUNNERS_UP + 1] if c != target]
    return (order + N_RUNNERS_UP * [-1])[:N_RUNNERS_UP]


def counterfactual_facts(explanation: Explanation, found: Findings) -> dict[str, Any]:
    """The smallest repaint found that changes the decision."""
    smallest = found.counterfactual
    if smallest is None:
        return dict.fromkeys(COUNTERFACTUAL)
    return {
        "counterfactual_kind": kind_at(found, smallest),
        "counterfactual_share": smallest.repaint.share,
        "counterfactual_to": smallest.says,
        "counterfactual_sentence": repaint_sentence(explanation, smallest),
    }


def correction_facts(
    explanation: Explanation, found: Sequence[Findings], truth: int | None
) -> dict[str, Any]:
    """Of a wrong image, the smallest repaint that was tried and puts it right."""
    none = {"corrected_by": None, "correction_sentence": None}
    if truth is None or truth == explanation.resolve(None):
        return none
    painted = [(trial, some) for some in found for trial in some.trials if trial.repaint.strokes]
    right = [(trial, some) for trial, some in painted
             if trial.role != "whole" and trial.says == truth]  # fmt: skip
    if not right:
        return none
    trial, some = min(right, key=lambda pair: pair[0].repaint.share)
    return {
        "corrected_by": kind_at(some, trial),
        "correction_sentence": repaint_sentence(explanation, trial),
    }


def repaint_sentence(explanation: Explanation, trial: Trial) -> str:
    """What a repaint makes the model say."""
    words = " and ".join(f"{stroke.words} ({box_words(stroke.region)})"
                         for stroke in trial.repaint.strokes)  # fmt: skip
    return f"Painting {words}, the model says {explanation.label(trial.says)!r}."


def kind_at(found: Findings, trial: Trial) -> str:
    """What the finding is about on which most of a repaint lies."""
    shared = [int((one.region & trial.region).sum()) for one in found.described]
    if not any(shared):
        return "other"
    return kind_of(found.described[int(np.argmax(shared))])


def kind_of(finding: Finding) -> str:
    """What a finding is about, in a word or two."""
    kinds = {claim.kind for claim in finding.claims}
    return next((word for kind, word in KINDS.items() if kind in kinds), "other")


def finding_rows(explanation: Explanation, found: Findings) -> list[dict[str, Any]]:
    """The places of a class that matter, with what trying them came to."""
    rows = []
    maps = explanation.maps(found.target)
    for number, finding in enumerate(found, start=1):
        height, width = finding.region.shape
        (top, bottom), (left, right) = finding.rows, finding.columns
        control = finding.control.to_json() if finding.control else {}
        effect = maps.values[maps.fills.index(finding.fill)][finding.region].mean()
        rows.append(
            {
                "target": found.target,
                "number": number,
                "place": finding.place,
                "share": finding.share,
                "box": [top / height, left / width, bottom / height, right / width],
                "fill": finding.fill.name,
                "effect": float(effect),
                "kind": kind_of(finding),
                "claims": [claim.kind for claim in finding.claims],
                "verdict": finding.control.verdict if finding.control else "not controlled",
                "before": finding.before,
                "after": finding.after,
                "control_low": control.get("low"),
                "control_median": control.get("median"),
                "control_high": control.get("high"),
                "places": control.get("places"),
                "sentence": " ".join([finding.sentence, *finding.lines]),
            }
        )
    return rows


# ---- confirming what was found in others


@dataclass(frozen=True)
class Repainted:
    """The answers to an image repainted: of each region to confirm, by its key."""

    target: int
    before: float
    prediction_before: int
    after: dict[str, tuple[float, int, tuple[float, ...]]]  # score, predicted, scores of controls


def repaint(view: View, model: Model, run_config: RunConfig, task: Task) -> Repainted:
    """Paint regions of the raster, and the same patch elsewhere."""
    confirmations = task.confirmations
    target, plan = confirmations[0].target, run_config.plan(view.pixels)
    repaints = [
        Repaint((Stroke(enlarged(region, plan.size), plan.fills[one.fill]),), soft=True)
        for one in confirmations
        for region in (one.region, *one.controls)
    ]
    untouched = model(view.pixels[None])[0]
    after = {}
    left = iter(ask(model, run_config, [one.render(view.pixels, plan.cell) for one in repaints]))
    for one in confirmations:
        here, *there = [next(left) for _ in range(1 + len(one.controls))]
        controls = tuple(float(scores[target]) for scores in there)
        after[one.key] = float(here[target]), int(here.argmax()), controls
    return Repainted(target, float(untouched[target]), int(untouched.argmax()), after)


def ask(model: Model, run_config: RunConfig, images: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
    """The scores (n, C) of pictures."""
    size = run_config.batch_size
    assert size != "auto"  # an AuditConfig refuses it
    batches = [images[start : start + size] for start in range(0, len(images), size)]
    return np.concatenate([model(np.stack(some)) for some in batches])


def enlarged(region: NDArray[np.bool_], size: tuple[int, int]) -> NDArray[np.bool_]:
    """A region of the raster, at every pixel of an image."""
    rows, cols = ((np.arange(n) * RASTER) // n for n in size)
    return np.asarray(region[rows[:, None], cols])
