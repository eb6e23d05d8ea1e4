"""Looking: what is made of a job's record, and what the model says of the picture repainted."""

import asyncio
from concurrent.futures import Future
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool

from ..errors import InputError
from ..estimators import DEFAULT, find_estimator
from ..images import png
from ..packing import pack, reading_json, swatch
from ..reading import read_maps
from ..record import Record
from ..repaints import Repaint, Stroke
from ..trials import Trial, Tried, try_reading, try_strokes
from .parameters import (
    BODY,
    BYTES,
    PNG,
    EstimatorName,
    JobId,
    Target,
    TheJobs,
    TheRecord,
    TheShelf,
)
from .uploads import LONGEST_SIDE, MOST_FILLS, body_of, rendering

router = APIRouter(prefix="/api/jobs/{id}")


@router.get("/record")
def about_record(record: TheRecord) -> dict[str, Any]:
    """Classes, fills, size and prediction."""
    return {
        "size": list(record.plan.size),
        "fills": [
            {"name": fill.name, "swatch": swatch(fill, record.view.pixels)}
            for fill in record.plan.fills
        ],
        "labels": [record.label(k) for k in range(record.n_classes)],
        "predicted": [{"target": best.target, "score": best.score} for best in record.top(5)],
        "kind": record.kind,
        "notes": list(record.notes),
    }


@router.get("/image.png", responses=PNG, response_class=Response)
def image(id: JobId, jobs: TheJobs) -> Response:
    """The picture as the model is shown it."""
    return Response(png(jobs.view(id).pixels), media_type="image/png")


@router.get("/fills/{k}", responses=PNG, response_class=Response)
def fill(record: TheRecord, k: Annotated[int, InPath(ge=0, lt=MOST_FILLS)]) -> Response:
    """What a place looks like when it is painted with fill k."""
    if k >= record.plan.n_fills:
        raise HTTPException(404, f"The job has {record.plan.n_fills} fills.")
    pixels = rendering(record.plan.fills[k], record.view)
    return Response(png(pixels), media_type="image/png")


@router.get("/maps", responses=BYTES, response_class=Response)
def maps(
    id: JobId,
    record: TheRecord,
    shelf: TheShelf,
    target: Target = None,
    against: Target = None,
    estimator: EstimatorName = DEFAULT,
) -> Response:
    """Maps for a program: see `mcrise.report.pack`. With `against`, of the difference."""
    content = shelf.get(
        (id, "maps", target, against, estimator),
        record.n_masks,
        lambda: pack(record.maps(target, estimator, against=against)),
    )
    return Response(content, media_type="application/octet-stream")


@router.get("/reading")
def reading(
    id: JobId,
    record: TheRecord,
    shelf: TheShelf,
    target: Target = None,
    against: Target = None,
    estimator: EstimatorName = DEFAULT,
) -> dict[str, Any]:
    """The maps in sentences; regions as runs of pixels outside and inside, in turn."""
    readable = find_estimator(estimator).reading.name
    answer: dict[str, Any] = shelf.get(
        (id, "reading", target, against, readable, len(record.answers)),
        record.n_masks,
        lambda: reading_json(
            try_reading(record, read_maps(record, target, readable, against=against))
        ),
    )
    return answer


@router.post("/trials")
async def trials(
    id: JobId, jobs: TheJobs, target: Target = None, estimator: EstimatorName = DEFAULT
) -> dict[str, Any]:
    """Put the findings of a class to the test; answers as `GET /reading`, which knows it from then.

    Calls the model a few dozen times, and only for what was not tried before.
    """
    record = await run_in_threadpool(jobs.record, id)
    reading = await run_in_threadpool(
        read_maps, record, target, find_estimator(estimator).reading.name
    )
    answer: Future[Tried] = jobs.call(
        jobs.get(id).order.model, lambda model: try_reading(record, reading, model)
    )
    tried = await asyncio.wrap_future(answer)
    await run_in_threadpool(jobs.keep_answers, id, record)
    return reading_json(tried)


# ---- what if


@router.post("/whatif", openapi_extra={"requestBody": {"required": True, **BODY}})
async def whatif(
    id: JobId, request: Request, jobs: TheJobs, target: Target = None
) -> dict[str, Any]:
    """Paint and ask again: the body has a byte per pixel, 0 to keep it, k for the k-th fill."""
    record = await run_in_threadpool(jobs.record, id)
    strokes = strokes_of(record, await body_of(request, LONGEST_SIDE**2))
    index = record.resolve(target)
    painted = Repaint(tuple(strokes))
    if strokes:
        answer: Future[Trial] = jobs.call(
            jobs.get(id).order.model, lambda model: try_strokes(record, model, painted, index)
        )
        trial = await asyncio.wrap_future(answer)
    else:  # known without asking
        trial = Trial(painted, index, record.untouched, record.untouched)
    return {"scores": trial.to_json(record)["scores"]}


def strokes_of(record: Record, painted: bytes) -> list[Stroke]:
    """What was painted on a record's image, one stroke for each fill that was used."""
    if len(painted) != record.plan.size[0] * record.plan.size[1]:
        raise InputError(f"{len(painted)} bytes came, but one per pixel is needed.")
    places = np.frombuffer(painted, np.uint8).reshape(record.plan.size)
    if places.max() > record.plan.n_fills:
        raise InputError(f"Fill {places.max()} was used, but there are {record.plan.n_fills}.")
    return [
        Stroke(places == k, fill)
        for k, fill in enumerate(record.plan.fills, start=1)
        if (places == k).any()
    ]
