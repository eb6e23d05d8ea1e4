"""Status: how far a job has got, told once or followed."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from .jobs import OPEN, Job, Jobs, UnknownJob

POLL_SECONDS = 0.1
QUIET_SECONDS = 10.0  # after which a listener is told that somebody is still there


def status_of(jobs: Jobs, job: Job) -> dict[str, Any]:
    waiting = jobs.queue()
    left = job.goal - job.n_masks
    return {
        "id": job.id,
        "name": job.order.name,
        "model": job.order.model,
        "state": job.state,
        "position": waiting.index(job) + 1 if job in waiting else None,
        "n_masks": job.n_masks,
        "goal": job.goal,
        "masks_per_second": job.speed,
        "seconds_left": left / job.speed if job.speed and job.state == "running" else None,
        "note": job.note,
        "created": job.created,
    }


async def follow(jobs: Jobs, id: str) -> AsyncIterator[str]:
    """Send the status of a job whenever it has changed, until it neither runs nor waits."""
    before: dict[str, Any] = {}
    quiet = 0.0
    while True:
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
