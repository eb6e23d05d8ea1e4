"""What is sent to the server: limits, and checks before any work is spent on it."""

import asyncio
from typing import Any

import numpy as np
from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from ..errors import InputError
from ..explanation import Explanation
from ..fills import Blur, Fill
from ..images import SMALLEST_SIDE, View, unit_float
from ..models.model import Model
from .image_decoder import DECODER, ClientHandle
from .schemas import JobRequest

MOST_BYTES = 20 * 2**20
MOST_FILLS = 16
MOST_MASKS = 100_000
MOST_BLUR = 100.0  # pixels, of all blurs of a job: painting takes longer the wider they are
SLOWEST = 60.0  # seconds in which a body must have come
MOST_INCOMING = 200 * 2**20  # bytes, of all bodies that are being read
LOOK_SECONDS = 0.25  # between two looks whether somebody has left


class Incoming:
    """How many bytes of bodies are being read, by all requests together."""

    n_bytes = 0


async def body_of(request: Request, most: int) -> bytes:
    """The body, read no further and no longer than allowed, whatever its length is said to be."""
    content = bytearray()
    try:
        async with asyncio.timeout(SLOWEST):
            async for part in request.stream():
                content += part
                Incoming.n_bytes += len(part)
                if len(content) > most:
                    raise HTTPException(
                        413, f"More than {most:,} bytes were sent: make it smaller first."
                    )
                if Incoming.n_bytes > MOST_INCOMING:
                    raise HTTPException(503, "Too much is being sent at once: try again.")
    except ClientDisconnect:
        raise HTTPException(400, "The body broke off: send it again.") from None  # to nobody
    except TimeoutError:
        raise HTTPException(
            408, f"The body did not come within {SLOWEST:g} seconds: try again."
        ) from None
    finally:
        Incoming.n_bytes -= len(content)
    return bytes(content)


async def decoded(request: Request, content: bytes, model: Model) -> View:
    """What a model is shown of an upload; nothing more is done for somebody who has left."""
    visit = ClientHandle()
    work = asyncio.ensure_future(run_in_threadpool(DECODER.view, content, model.geometry, visit))
    while not (await asyncio.wait([work], timeout=LOOK_SECONDS))[0]:
        if await request.is_disconnected():
            visit.leave()
    return await work


def check_request(job_request: JobRequest, model: Model, view: View) -> None:
    """Refuse now what the worker could only fail at later."""
    plan = job_request.config.plan(view.pixels)
    if plan.n_fills > MOST_FILLS:
        raise InputError(
            f"{plan.n_fills} colors were given, but at most {MOST_FILLS} are possible."
        )
    if sum(fill.sigma for fill in plan.fills if isinstance(fill, Blur)) > MOST_BLUR:
        raise InputError(f"The blurs add up to more than {MOST_BLUR:g} pixels: give smaller ones.")
    corner = View(view.pixels[:SMALLEST_SIDE, :SMALLEST_SIDE], view.original_size, view.box)
    for fill in plan.fills:
        rendering(fill, corner)
    if model.labels:  # else nobody knows its classes before it is asked
        scores = np.zeros(len(model.labels), np.float32)
        Explanation(plan, view, scores, model.labels).resolve(job_request.config.target)


def rendering(fill: Fill, view: View) -> Any:
    """A fill as pixels (H, W, 3) in 0..1."""
    try:
        with np.errstate(all="ignore"):
            out = fill.render(unit_float(view.pixels))
    except (ValueError, OverflowError, TypeError):
        out = np.array(np.nan)
    if not np.isfinite(out).all():
        raise InputError(f"{fill.name!r} cannot be painted: give another number after the colon.")
    return out
