"""Cards: a job in a few numbers, small enough that hundreds of them fill a collection.

What the model said and whether that was right, what each color does on average, and a map of eight
by eight. Full maps are only for the job that is open.
"""

import io
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response
from numpy.typing import NDArray
from PIL import Image

from ..audits.class_stats import color_share
from ..audits.measure import energies, half_maps
from ..batch.datasets import spelled
from ..errors import ExplanationError
from ..explanation import Explanation
from ..images import whole_pixels
from ..output.web_maps import swatch
from .dependencies import JobId, TheCards, TheJobs
from .job_queue import JobQueue
from .routes_results import KEPT
from .schemas import Job, UnknownJob

router = APIRouter(prefix="/api")
THUMBNAIL = 128  # pixels of its longer side
COARSE = 8  # rows and columns of the map on a card
ESTIMATOR = "centered"  # cheap, and each image's own: maps are averaged over many
MOST_AT_ONCE = 32
IDS = f"^[0-9a-f]{{16}}(,[0-9a-f]{{16}}){{0,{MOST_AT_ONCE - 1}}}$"


@router.get("/cards")
def cards(
    jobs: TheJobs,
    result_cache: TheCards,
    ids: Annotated[str, Query(pattern=IDS, description="Ids with commas between")],
) -> dict[str, Any]:
    """What the model says of some jobs' pictures, and what each color does there on average."""
    out = {}
    for id in ids.split(","):
        with suppress(UnknownJob, ExplanationError):  # deleted, without masks as yet, or damaged
            job = jobs.get(id)
            out[id] = result_cache.get((id, "card"), job.n_masks, partial(make_card, jobs, job))
    return out


def make_card(jobs: JobQueue, job: Job) -> dict[str, Any]:
    explanation = jobs.job_files.glance(job.id)
    truth = truth_of(job.job_request.name, explanation)
    best = explanation.top(5)
    maps = explanation.maps(truth, ESTIMATOR)
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
        "color_share": share_of_color(explanation, maps.target),
    }


def truth_of(name: str, explanation: Explanation) -> int | None:
    """The class whose name the picture's folder has, as in `stop/0001.png`."""
    folder = spelled(PurePosixPath(name).parent.name)
    named = [c for c in range(explanation.n_classes) if spelled(explanation.label(c)) == folder]
    return named[0] if len(named) == 1 else None


def coarse(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Maps (K, H, W) as means over eight by eight parts."""
    for axis in (1, 2):
        n = values.shape[axis]
        starts = np.arange(COARSE) * n // COARSE
        sizes = np.diff(starts, append=n).reshape((-1, 1) if axis == 1 else (-1,))
        values = np.add.reduceat(values, starts, axis=axis) / sizes
    return values


def share_of_color(explanation: Explanation, target: int) -> float | None:
    """What an audit of this image alone would tell."""
    presence, color = (np.array([energy]) for energy in energies(*half_maps(explanation, target)))
    share = color_share(presence, color, np.zeros(1, np.int64), explanation.plan.n_fills)
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
