"""Asking: what is served, and jobs from their first request to their end."""

from functools import cache
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from ..brief import Brief
from ..demo.signs import SIGNS
from ..errors import InputError
from ..estimators import DEFAULT, ESTIMATORS
from ..fills import CUBE8
from ..images import View, png
from ..version import VERSION
from .decoding import FORMATS
from .job import Job
from .jobs import Jobs
from .order import Order
from .parameters import BODY, PNG, JobId, TheBrief, TheJobs
from .status import follow, places_of, status_of
from .uploads import MOST_BYTES, MOST_MASKS, body_of, check_order, decoded

router = APIRouter(prefix="/api")


@router.get("/about")
async def about(request: Request, jobs: TheJobs) -> dict[str, Any]:
    """What is served: models, signs, estimators, limits, and whether there is an audit."""
    return {
        "version": VERSION,
        "models": [{"name": name, "labels": model.labels} for name, model in jobs.models.items()],
        "signs": list(SIGNS),
        "estimators": list(ESTIMATORS),
        "default": DEFAULT,
        "palette": [
            {"name": fill.name, "swatch": "#{:02x}{:02x}{:02x}".format(*fill.rgb)} for fill in CUBE8
        ],
        "formats": list(FORMATS),
        "most_bytes": MOST_BYTES,
        "most_masks": MOST_MASKS,
        "usual": Brief().to_json(),
        "n_images": jobs.models.n_images,
        "audit": getattr(request.app.state, "audit", None) is not None,
        "worker": jobs.health(),
        "kept": jobs.room.to_json(),
    }


@router.get("/health")
async def health(jobs: TheJobs) -> dict[str, Any]:
    """Whether jobs are being worked on, and what is in the way."""
    return jobs.health()


@router.get("/signs/{name}", responses=PNG, response_class=Response)
def sign(name: str) -> Response:
    """One of the drawn signs, as PNG."""
    return Response(sign_png(name), media_type="image/png")


@cache
def sign_png(name: str) -> bytes:
    if name not in SIGNS:
        raise HTTPException(404, f"There is no such sign: there are {', '.join(SIGNS)}.")
    return png(np.asarray(SIGNS[name]()))


@router.post("/jobs", status_code=201, openapi_extra={"requestBody": BODY})
async def submit(
    request: Request,
    jobs: TheJobs,
    brief: TheBrief,
    sign: Annotated[str | None, Query(description="A drawn sign instead of a body")] = None,
    name: Annotated[str, Query(max_length=200, description="What to call the picture")] = "",
    model: Annotated[str | None, Query(description="One of those served")] = None,
    like: Annotated[
        str | None,
        Query(pattern="^[0-9a-f]{16}$", description="A job: its picture under the same masks"),
    ] = None,
) -> dict[str, Any]:
    """Explain the picture in the body (the bytes of a PNG, JPEG, WebP, GIF, BMP or PPM file)."""
    content = await body_of(request, MOST_BYTES)
    chosen = next(iter(jobs.models)) if model is None else model
    if chosen not in jobs.models:
        raise HTTPException(404, f"The models here are {', '.join(jobs.models)}.")
    if sign is not None:
        content = await run_in_threadpool(sign_png, sign)
    if like is not None:
        record = await run_in_threadpool(jobs.record, like)
        name, content = jobs.get(like).order.name, await run_in_threadpool(jobs.upload, like)
        brief = brief.like(record.plan, record.n_masks)
    order = Order(chosen, name or sign or "picture", brief)
    view = await decoded(request, content, jobs.models[chosen])
    return status_of(jobs, await run_in_threadpool(take, jobs, order, view, content))


def take(jobs: Jobs, order: Order, view: View, content: bytes) -> Job:
    check_order(order, jobs.models.served(order.model), view)
    return jobs.submit(order, content, view)


@router.get("/jobs")
async def list_jobs(jobs: TheJobs) -> list[dict[str, Any]]:
    """All jobs, newest first."""
    places = places_of(jobs)
    return [status_of(jobs, job, places) for job in jobs.all()]


@router.get("/jobs/{id}")
async def status(id: JobId, jobs: TheJobs) -> dict[str, Any]:
    """How far a job has got."""
    return status_of(jobs, jobs.get(id))


@router.post("/jobs/{id}/do/{action}")
def steer(id: JobId, action: Literal["pause", "resume", "stop"], jobs: TheJobs) -> dict[str, Any]:
    """Pause, resume or stop a job, within a chunk."""
    return status_of(jobs, getattr(jobs, action)(id))


@router.post("/jobs/{id}/more/{n_masks}")
def more(
    id: JobId, n_masks: Annotated[int, InPath(ge=1, le=MOST_MASKS)], jobs: TheJobs
) -> dict[str, Any]:
    """Ask for more masks than it has."""
    if jobs.get(id).goal + n_masks > MOST_MASKS:
        raise InputError(f"A job has at most {MOST_MASKS:,} masks.")
    return status_of(jobs, jobs.more(id, n_masks))


@router.delete("/jobs/{id}", status_code=204)
def delete(id: JobId, jobs: TheJobs) -> None:
    """Cancel a job and forget it."""
    jobs.delete(id)


@router.get(
    "/jobs/{id}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def events(id: JobId, jobs: TheJobs) -> StreamingResponse:
    """Progress as server-sent events, each as `GET /api/jobs/{id}`, until it rests."""
    jobs.get(id)
    return StreamingResponse(follow(jobs, id), media_type="text/event-stream")
