"""Routes of jobs: what is served, and each job from its submission to its deletion."""

from functools import cache
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, HTTPException, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ..._version import VERSION
from ...config import RunConfig
from ...demo.signs import SIGNS
from ...estimators import DEFAULT, ESTIMATORS
from ...fills import CUBE8
from ...images import View, png
from ...models.model import Model
from ...output.plots import DIVERGING
from ...output.web_maps import stops
from ..image_decoder import FORMATS
from ..job_queue import JobQueue
from ..parameters import BODY, PNG, JobId, TheConfig, TheJobs
from ..schemas import Job, JobRequest
from ..uploads import MOST_BYTES, MOST_MASKS, body_of, check_request, decoded

router = APIRouter(prefix="/api")


def places_of(jobs: JobQueue) -> dict[str, int]:
    """Where in the queue each waiting job is."""
    return {job.id: place for place, job in enumerate(jobs.queue(), start=1)}


def status_of(jobs: JobQueue, job: Job, places: dict[str, int] | None = None) -> dict[str, Any]:
    """The status of a job as JSON; `places` where they are known for many jobs."""
    places = places_of(jobs) if places is None else places
    config = job.job_request.config
    auto = config.n_masks == "auto"
    # With auto the goal is only where the error is looked at next: the rest is unknown.
    left = 0 if auto or job.state != "running" else job.goal - job.n_masks
    return {
        "id": job.id,
        "name": job.job_request.name,
        "model": job.job_request.model,
        "state": job.state,
        "position": places.get(job.id),
        "n_masks": job.n_masks,
        "preview": job.preview,
        "goal": job.goal,
        "masks_per_second": job.speed,
        "seconds_left": left / job.speed if job.speed and left > 0 else None,
        "tolerance": config.tolerance if auto else None,
        "served": job.job_request.model in jobs.models,
        "note": job.note,
        "created": job.created,
    }


@router.get("/info")
async def info(request: Request, jobs: TheJobs) -> dict[str, Any]:
    """What is served: models, signs, estimators, limits, storage, and whether there is an audit."""
    return {
        "version": VERSION,
        "models": [
            {"name": name, "labels": model.labels, "local": is_local(model)}
            for name, model in jobs.models.items()
        ],
        "signs": list(SIGNS),
        "estimators": list(ESTIMATORS),
        "default_estimator": DEFAULT,
        "palette": [
            {"name": fill.name, "swatch": "#{:02x}{:02x}{:02x}".format(*fill.rgb)} for fill in CUBE8
        ],
        "stops": stops(DIVERGING),
        "formats": list(FORMATS),
        "most_bytes": MOST_BYTES,
        "most_masks": MOST_MASKS,
        "defaults": RunConfig().to_json(),
        "n_images": jobs.models.n_images,
        "audit": getattr(request.app.state, "audit", None) is not None,
        "worker": jobs.health(),
        "storage": jobs.quota.to_json(jobs.all()),
    }


def is_local(model: Model) -> bool:
    """Whether a model is a file here, so that asking it costs only time."""
    return bool(model.origin.digest) and ":" not in model.origin.name


@router.get("/health")
async def health(jobs: TheJobs) -> dict[str, Any]:
    """Whether the worker runs, and what hinders it."""
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
    """The status of a job."""
    return status_of(jobs, jobs.get(id))


@router.post("/jobs/{id}/actions/{action}")
def steer(id: JobId, action: Literal["pause", "resume", "stop"], jobs: TheJobs) -> dict[str, Any]:
    """Pause, resume or stop a job. It takes effect within a chunk."""
    return status_of(jobs, getattr(jobs, action)(id))


@router.post("/jobs/{id}/masks")
def more(
    id: JobId,
    jobs: TheJobs,
    n_masks: Annotated[int, Query(ge=1, le=MOST_MASKS, description="How many more")],
) -> dict[str, Any]:
    """Ask for more masks than a job has."""
    return status_of(jobs, jobs.more(id, n_masks))


@router.delete("/jobs/{id}", status_code=204)
def delete(id: JobId, jobs: TheJobs) -> None:
    """Cancel a job and delete its files."""
    jobs.delete(id)
