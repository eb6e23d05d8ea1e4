"""Routes of the overview: each job as a small summary, and the classes of all jobs together.

A summary holds the prediction, whether it is right, the mean effect of each color, and maps of 8 by
8 points. It is so small that hundreds of them fill an overview; full maps are only for the job that
is open.
"""

import math
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response
from numpy.typing import NDArray
from PIL import Image
from scipy.special import stdtrit

from ...audits.class_stats import color_share
from ...audits.measure import energies, half_maps
from ...audits.outliers import FEWEST, distances
from ...errors import ExplanationError
from ...images import whole_pixels
from ...output.web_maps import swatch
from ..job_queue import JobQueue
from ..parameters import JPEG, JobId, TheJobs, TheSummaries
from ..schemas import Job, UnknownJob
from .results import KEPT, jpeg, truth_of

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
    """The mean map (8, 8) of each color, and what its largest value would be by chance.

    The noise of a mean is what the images scatter around it, and the error of a map: jobs of one
    seed have the same masks, so that this error does not average out. It is exceeded anywhere in
    the maps by chance in one class of twenty, over all cells and colors (Bonferroni).
    """
    maps: dict[str, list[Any]] = {}
    for _, summary in members:
        for fill, one in zip(summary["fills"], summary["maps"], strict=True):
            maps.setdefault(fill["name"], []).append(one)
    error = float(np.mean([summary["error"] ** 2 for _, summary in members]))
    n_tests = COARSE**2 * len(maps)
    return {name: mean_map(np.array(some), error, n_tests) for name, some in maps.items()}


def mean_map(some: NDArray[Any], error: float, n_tests: int) -> dict[str, Any]:
    """The mean of maps (N, 8, 8), and the limit of chance at each cell; None for one image."""
    n = len(some)
    limit = None
    if n > 1:
        times = stdtrit(n - 1, 1 - 0.025 / n_tests)
        limit = np.round(times * np.sqrt(some.var(axis=0, ddof=1) / n + error), 5).tolist()
    return {"mean": np.round(some.mean(axis=0), 5).tolist(), "limit": limit, "n": n}


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
    responses=JPEG,
    response_class=Response,
)
def thumbnail(id: JobId, jobs: TheJobs) -> Response:
    """The picture as the model is shown it, small."""
    picture = Image.fromarray(whole_pixels(jobs.view(id).pixels))
    picture.thumbnail((THUMBNAIL, THUMBNAIL))
    return Response(jpeg(np.asarray(picture)), media_type="image/jpeg", headers=KEPT)
