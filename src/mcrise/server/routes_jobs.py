"""Asking: what is served, and jobs from their first request to their end."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import cache
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from .._version import VERSION
from ..config import RunConfig
from ..demo.signs import SIGNS
from ..errors import InputError
from ..estimators import DEFAULT, ESTIMATORS
from ..fills import CUBE8
from ..images import View, png
from .dependencies import BODY, PNG, JobId, TheConfig, TheJobs
from .image_decoder import FORMATS
from .job_queue import JobQueue
from .schemas import OPEN, Job, JobRequest, UnknownJob
from .uploads import MOST_BYTES, MOST_MASKS, body_of, check_request, decoded

POLL_SECONDS = 0.1
QUIET_SECONDS = 10.0  # after which a listener is told that somebody is still there


def places_of(jobs: JobQueue) -> dict[str, int]:
    """Where in the queue each waiting job is."""
    return {job.id: place for place, job in enumerate(jobs.queue(), start=1)}


def status_of(jobs: JobQueue, job: Job, places: dict[str, int] | None = None) -> dict[str, Any]:
    """As a browser is told it; `places`, where they are known for many."""
    places = places_of(jobs) if places is None else places
    config = job.job_request.config
    auto = config.n_masks == "auto"
    # Of auto the goal is only where it will look next: nobody knows yet what is left.
    left = 0 if auto or job.state != "running" else job.goal - job.n_masks
    return {
        "id": job.id,
        "name": job.job_request.name,
        "model": job.job_request.model,
        "state": job.state,
        "position": places.get(job.id),
        "n_masks": job.n_masks,
        "early": job.early,
        "goal": job.goal,
        "masks_per_second": job.speed,
        "seconds_left": left / job.speed if job.speed and left > 0 else None,
        "tolerance": config.tolerance if auto else None,
        "served": job.job_request.model in jobs.models,
        "note": job.note,
        "created": job.created,
        "leaves": job.leaves,
    }


async def follow(jobs: JobQueue, id: str) -> AsyncIterator[str]:
    """Send the status of a job whenever it has changed, until it neither runs nor waits."""
    before: dict[str, Any] = {}
    quiet = 0.0
    while not jobs.ending:
        try:
            now = status_of(jobs, jobs.get(id))
        except UnknownJob:
            yield "event: gone\ndata: {}\n\n"
            return
        if now != before:
            yield f"event: progress\ndata: {json.dumps(now)}\n\n"
            before, quiet = now, 0.0
        elif quiet >= QUIET_SECONDS:
            yield ": still here\n\n"
            quiet = 0.0
        if now["state"] not in OPEN:  # as it was told: the job itself may be further by now
            yield "event: rest\ndata: {}\n\n"
            return
        await asyncio.sleep(POLL_SECONDS)
        quiet += POLL_SECONDS


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
        "usual": RunConfig().to_json(),
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
    config: TheConfig,
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
        explanation = await run_in_threadpool(jobs.explanation, like)
        name, content = jobs.get(like).job_request.name, await run_in_threadpool(jobs.upload, like)
        config = config.like(explanation.plan, explanation.n_masks)
    job_request = JobRequest(chosen, name or sign or "picture", config)
    view = await decoded(request, content, jobs.models[chosen])
    return status_of(jobs, await run_in_threadpool(take, jobs, job_request, view, content))


def take(jobs: JobQueue, job_request: JobRequest, view: View, content: bytes) -> Job:
    check_request(job_request, jobs.models.served(job_request.model), view)
    return jobs.submit(job_request, content, view)


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
