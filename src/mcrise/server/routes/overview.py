"""Routes of the overview: each job as a small summary, and the classes of all jobs together.

A summary holds the prediction, whether it is right, the mean effect of each color, and maps of 8 by
8 points. It is so small that hundreds of them fill an overview; full maps are only for the job that
is open.
"""

import io
import math
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response
from numpy.typing import NDArray
from PIL import Image

from ...audits.class_stats import color_share
from ...audits.measure import energies, half_maps
from ...audits.outliers import FEWEST, distances
from ...batch.datasets import spelled
from ...errors import ExplanationError
from ...explanation import Explanation
from ...images import whole_pixels
from ...output.web_maps import swatch
from ..dependencies import JobId, TheJobs, TheSummaries
from ..job_queue import JobQueue
from ..schemas import Job, UnknownJob
from .results import KEPT

router = APIRouter(prefix="/api")
THUMBNAIL = 128  # pixels of its longer side
COARSE = 8  # rows and columns of the maps of a summary
ESTIMATOR = "centered"  # cheap, and each image's own: maps are averaged over many
MOST_AT_ONCE = 32
MOST_COLORS = 16
IDS = f"^[0-9a-f]{{16}}(,[0-9a-f]{{16}}){{0,{MOST_AT_ONCE - 1}}}$"

Summary = dict[str, Any]
Members = list[tuple[Job, Summary]]  # the images of a class
Half = NDArray[np.float64]


@router.get("/summaries")
def summaries(
    jobs: TheJobs,
    known: TheSummaries,
    ids: Annotated[str, Query(pattern=IDS, description="Ids with commas between")],
) -> dict[str, Any]:
    """Prediction, mean effect of each color and coarse maps of some jobs."""
    out = {}
    for id in ids.split(","):
        with suppress(UnknownJob, ExplanationError):  # deleted, without masks yet, or damaged
            job = jobs.get(id)
            out[id] = known.get((id, "summary"), job.n_masks, partial(summary_of, jobs, job))
    return out


def summary_of(jobs: JobQueue, job: Job) -> dict[str, Any]:
    explanation = jobs.job_files.glance(job.id)
    truth = truth_of(job.job_request.name, explanation)
    best = explanation.top(5)
    maps = explanation.maps(truth, ESTIMATOR)
    halves = half_maps(explanation, maps.target)
    return {
        "n_masks": explanation.n_masks,
        "predicted": [one.to_json() for one in best],
        "truth": None if truth is None else {"target": truth, "label": explanation.label(truth)},
        "right": None if truth is None else best[0].target == truth,
        "of": {"target": maps.target, "label": maps.label},
        "fills": [
            {
                "name": fill.name,
                "swatch": swatch(fill, explanation.view.pixels),
                "effect": float(effect),
            }
            for fill, effect in zip(maps.fills, maps.values.mean(axis=(1, 2)), strict=True)
        ],
        "maps": np.round(coarse(maps.values), 5).tolist(),
        # Two halves of the masks differ by twice the error of the whole.
        "error": math.sqrt(np.mean((coarse(halves[0] - halves[1]) / 2) ** 2)),
        "color_share": share_of_color(halves, explanation.plan.n_fills),
    }


@router.get("/overview")
def overview(
    jobs: TheJobs,
    known: TheSummaries,
    model: Annotated[str | None, Query(description="Of the jobs of one model")] = None,
    label: Annotated[str | None, Query(description="Class whose mean maps are needed")] = None,
) -> dict[str, Any]:
    """Classes and colors of all jobs that have a summary, and how unusual each image is.

    `maps` are the mean maps of the class, if only one class has that label, or if there is only
    one. `distances` compare an image with the others of its class: 1 is usual. An image is left out
    if its class has fewer than six images.
    """
    found = [
        (job, summary)
        for job in jobs.all()
        if (summary := known.known((job.id, "summary"))) and model in (None, job.job_request.model)
    ]
    groups: dict[tuple[str, str], Members] = {}
    for job, summary in found:
        groups.setdefault((summary["of"]["label"], job.job_request.model), []).append(
            (job, summary)
        )
    chosen = [members for (name, _), members in groups.items() if label in (None, name)]
    return {
        "classes": [
            {"label": name, "model": model_name, **class_numbers(members)}
            for (name, model_name), members in sorted(
                groups.items(), key=lambda group: (-len(group[1]), group[0])
            )
        ],
        "colors": colors_of([summary for _, summary in found]),
        "maps": mean_maps(chosen[0]) if len(chosen) == 1 else None,
        "distances": {
            id: distance
            for members in groups.values()
            for id, distance in outlier_distances(members).items()
        },
    }


def class_numbers(members: Members) -> dict[str, Any]:
    """Number of images, share of right answers, and mean effect of each color."""
    right = [summary["right"] for _, summary in members if summary["right"] is not None]
    effects: dict[str, list[float]] = {}
    for _, summary in members:
        for fill in summary["fills"]:
            effects.setdefault(fill["name"], []).append(fill["effect"])
    return {
        "n": len(members),
        "accuracy": float(np.mean(right)) if right else None,
        "effects": {name: float(np.mean(some)) for name, some in effects.items()},
    }


def mean_maps(members: Members) -> dict[str, Any]:
    """The mean map (8, 8) of each color."""
    maps: dict[str, list[Any]] = {}
    for _, summary in members:
        for fill, one in zip(summary["fills"], summary["maps"], strict=True):
            maps.setdefault(fill["name"], []).append(one)
    return {name: np.round(np.mean(some, axis=0), 5).tolist() for name, some in maps.items()}


def colors_of(found: list[Summary]) -> list[dict[str, Any]]:
    """The colors of all images, most used first."""
    counts: Counter[str] = Counter()
    swatches = {}
    for summary in found:
        for fill in summary["fills"]:
            counts[fill["name"]] += 1
            swatches[fill["name"]] = fill["swatch"]
    return [
        {"name": name, "swatch": swatches[name], "n": n}
        for name, n in counts.most_common(MOST_COLORS)
    ]


def outlier_distances(members: Members) -> dict[str, float]:
    """How far each image is from the others of its class, as an audit measures it.

    Only images painted with the same colors can be compared.
    """
    alike: dict[tuple[str, ...], Members] = {}
    for job, summary in members:
        colors = tuple(fill["name"] for fill in summary["fills"])
        alike.setdefault(colors, []).append((job, summary))
    out: dict[str, float] = {}
    for some in alike.values():
        if len(some) >= FEWEST:
            maps = np.array([summary["maps"] for _, summary in some])
            noise = np.array([summary["error"] ** 2 for _, summary in some])
            measured = distances(maps, noise).tolist()
            out |= {job.id: one for (job, _), one in zip(some, measured, strict=True)}
    return out


def truth_of(name: str, explanation: Explanation) -> int | None:
    """The class whose name the picture's folder has, as in `stop/0001.png`."""
    folder = spelled(PurePosixPath(name).parent.name)
    named = [c for c in range(explanation.n_classes) if spelled(explanation.label(c)) == folder]
    return named[0] if len(named) == 1 else None


def coarse(values: NDArray[Any]) -> NDArray[Any]:
    """Maps (K, H, W) as means over eight by eight parts."""
    for axis in (1, 2):
        n = values.shape[axis]
        starts = np.arange(COARSE) * n // COARSE
        sizes = np.diff(starts, append=n).reshape((-1, 1) if axis == 1 else (-1,))
        values = np.add.reduceat(values, starts, axis=axis) / sizes
    return values


def share_of_color(halves: tuple[Half, Half], n_fills: int) -> float | None:
    """The color share that an audit of this image alone would have."""
    presence, color = (np.array([energy]) for energy in energies(*halves))
    share = color_share(presence, color, np.zeros(1, np.int64), n_fills)
    return share.value if share else None


@router.get(
    "/jobs/{id}/thumbnail",
    responses={200: {"content": {"image/jpeg": {}}}},
    response_class=Response,
)
def thumbnail(id: JobId, jobs: TheJobs) -> Response:
    """The picture as the model is shown it, small."""
    picture = Image.fromarray(whole_pixels(jobs.view(id).pixels))
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=80)
    return Response(out.getvalue(), media_type="image/jpeg", headers=KEPT)
