"""Looking: what is made of a job's record, and what the model says of the picture repainted."""

import asyncio
from concurrent.futures import Future
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool

from ..auditing.runs import maps_of_difference
from ..errors import InputError
from ..estimators import DEFAULT, find_estimator
from ..fills import Fill, parse
from ..images import png
from ..maps import Maps
from ..model import Model
from ..packing import key_of, pack, reading_json, swatch
from ..reading import read_maps
from ..record import Record
from ..repaints import Repaint, Stroke
from ..trials import Trial, Tried, answers_saved, try_reading, try_strokes
from .decoding import LONGEST_SIDE
from .job import OPEN
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
from .uploads import MOST_FILLS, body_of, rendering

router = APIRouter(prefix="/api/jobs/{id}")
PAINTS = "^#[0-9a-f]{6}(,#[0-9a-f]{6}){0,7}$"
KEPT = {"cache-control": "private, max-age=86400"}  # of a job's picture, which never changes


@router.get("/record")
def about_record(id: JobId, record: TheRecord, jobs: TheJobs) -> dict[str, Any]:
    """Classes, fills, size and prediction."""
    model = jobs.models.get(jobs.get(id).order.model)
    return {
        "size": list(record.plan.size),
        "fills": [
            {"name": fill.name, "swatch": swatch(fill, record.view.pixels)}
            for fill in record.plan.fills
        ],
        "labels": [record.label(k) for k in range(record.n_classes)],
        "predicted": [{"target": best.target, "score": best.score} for best in record.top(5)],
        "kind": record.kind,
        "notes": [*record.notes, *(model.notes if model else ())],
        "grid": list(record.plan.grid),
        "mask_prob": record.plan.mask_prob,
        "seed": record.plan.seed,
    }


@router.get("/image.png", responses=PNG, response_class=Response)
def image(id: JobId, jobs: TheJobs) -> Response:
    """The picture as the model is shown it."""
    return Response(png(jobs.view(id).pixels), media_type="image/png", headers=KEPT)


@router.get("/fills/{k}", responses=PNG, response_class=Response)
def fill(
    id: JobId, record: TheRecord, shelf: TheShelf, k: Annotated[int, InPath(ge=0, lt=MOST_FILLS)]
) -> Response:
    """What a place looks like when it is painted with fill k."""
    if k >= record.plan.n_fills:
        raise HTTPException(404, f"The job has {record.plan.n_fills} fills.")
    painted = shelf.get(
        (id, "fill", k), 0, lambda: png(rendering(record.plan.fills[k], record.view))
    )
    return Response(painted, media_type="image/png", headers=KEPT)


@router.get("/maps", responses=BYTES, response_class=Response)
def maps(
    id: JobId,
    record: TheRecord,
    jobs: TheJobs,
    shelf: TheShelf,
    target: Target = None,
    against: Target = None,
    estimator: EstimatorName = DEFAULT,
    less: Annotated[
        str | None, Query(pattern="^[0-9a-f]{16}$", description="Job whose maps are taken off")
    ] = None,
    less_target: Target = None,
) -> Response:
    """Maps for a program: see `mcrise.packing.pack`. With `against`, of the difference.

    With `less`, of the difference to a class of another job: as `mcrise diff` compares two runs.
    While a job runs they may be of half a second ago.
    """
    target = record.resolve(target)
    if less is not None:
        if against is not None:
            raise InputError("The maps of one class or of one job can be taken off, but not both.")
        other = jobs.record(less)
        theirs = other.resolve(less_target)
        content = shelf.get(
            (id, "maps", target, less, theirs, estimator),
            (version_of(record), version_of(other)),
            lambda: packed_difference(record, other, target, theirs, estimator),
            older=jobs.get(id).state in OPEN or jobs.get(less).state in OPEN,
        )
        return Response(content, media_type="application/octet-stream")
    content = shelf.get(
        (id, "maps", target, against, estimator),
        version_of(record),
        lambda: packed(record, record.maps(target, estimator, against=against)),
        older=jobs.get(id).state in OPEN,
    )
    return Response(content, media_type="application/octet-stream")


def version_of(record: Record) -> tuple[int, float]:
    """Which masks an answer is of: a pilot's first may be of another `mask_prob` than the rest."""
    return record.n_masks, record.plan.mask_prob


def packed(record: Record, maps: Maps) -> bytes:
    """Maps with what chance alone would show in them, where zero is a value of its own."""
    return pack(maps, record.plan.grid, record.chance(maps) if maps.diverging else None)


def packed_difference(
    record: Record, other: Record, target: int, theirs: int, estimator: str
) -> bytes:
    maps, chance = maps_of_difference(other, record, theirs, target, estimator)
    return pack(replace(maps, label="difference"), record.plan.grid, chance)


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
    target, readable = record.resolve(target), find_estimator(estimator).reading.name
    answer: dict[str, Any] = shelf.get(
        (id, "reading", target, against, readable, len(record.answers)),
        version_of(record),
        lambda: reading_json(
            try_reading(record, read_maps(record, target, readable, against=against))
        ),
    )
    return answer


@router.post("/trials")
async def trials(
    id: JobId,
    jobs: TheJobs,
    target: Target = None,
    estimator: EstimatorName = DEFAULT,
    finding: Annotated[
        str | None, Query(pattern="^[0-9a-f]{8}$", description="Key of the only one to be tried")
    ] = None,
) -> dict[str, Any]:
    """Put the findings of a class to the test, or one; answers as `GET /reading`.

    That knows it from then. Calls the model a few dozen times for what was not tried before.
    """
    record = await run_in_threadpool(jobs.record, id)
    reading = await run_in_threadpool(
        read_maps, record, target, find_estimator(estimator).reading.name
    )
    only = [found for found in reading.findings if finding in (None, key_of(found))]
    if finding and not only:
        raise HTTPException(404, "There is no such finding: the reading has changed, load it anew.")

    def tried(model: Model) -> Tried:
        with answers_saved(record, lambda: jobs.keep_answers(id, record)):
            return try_reading(record, reading, model, only[0] if finding else None)

    answer: Future[Tried] = jobs.call(jobs.get(id).order.model, tried)
    return reading_json(await asyncio.wrap_future(answer))


# ---- what if


@router.post("/whatif", openapi_extra={"requestBody": {"required": True, **BODY}})
async def whatif(
    id: JobId,
    request: Request,
    jobs: TheJobs,
    target: Target = None,
    paints: Annotated[
        str | None, Query(pattern=PAINTS, description="Colors that follow the job's own fills")
    ] = None,
) -> dict[str, Any]:
    """Paint and ask again: the body has a byte per pixel, 0 to keep it, k for the k-th fill."""
    record = await run_in_threadpool(jobs.record, id)
    own = parse(paints, record.view.pixels) if paints else ()
    strokes = strokes_of(record, await body_of(request, LONGEST_SIDE**2), own)
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


def strokes_of(record: Record, painted: bytes, more: tuple[Fill, ...] = ()) -> list[Stroke]:
    """What was painted on a record's image, one stroke for each fill that was used."""
    fills = (*record.plan.fills, *more)
    if len(painted) != record.plan.size[0] * record.plan.size[1]:
        raise InputError(f"{len(painted)} bytes came, but one per pixel is needed.")
    places = np.frombuffer(painted, np.uint8).reshape(record.plan.size)
    if places.max() > len(fills):
        raise InputError(f"Fill {places.max()} was used, but there are {len(fills)}.")
    return [
        Stroke(places == k, fill) for k, fill in enumerate(fills, start=1) if (places == k).any()
    ]
