"""Status: how far a job has got, told once or followed."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from .job import OPEN, Job, UnknownJob
from .jobs import Jobs

POLL_SECONDS = 0.1
QUIET_SECONDS = 10.0  # after which a listener is told that somebody is still there


def places_of(jobs: Jobs) -> dict[str, int]:
    """Where in the queue each waiting job is."""
    return {job.id: place for place, job in enumerate(jobs.queue(), start=1)}


def status_of(jobs: Jobs, job: Job, places: dict[str, int] | None = None) -> dict[str, Any]:
    """As a browser is told it; `places`, where they are known for many."""
    places = places_of(jobs) if places is None else places
    brief = job.order.brief
    auto = brief.n_masks == "auto"
    # Of auto the goal is only where it will look next: nobody knows yet what is left.
    left = 0 if auto or job.state != "running" else job.goal - job.n_masks
    return {
        "id": job.id,
        "name": job.order.name,
        "model": job.order.model,
        "state": job.state,
        "position": places.get(job.id),
        "n_masks": job.n_masks,
        "early": job.early,
        "goal": job.goal,
        "masks_per_second": job.speed,
        "seconds_left": left / job.speed if job.speed and left > 0 else None,
        "tolerance": brief.tolerance if auto else None,
        "served": job.order.model in jobs.models,
        "note": job.note,
        "created": job.created,
        "leaves": job.leaves,
    }


async def follow(jobs: Jobs, id: str) -> AsyncIterator[str]:
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
