"""What is sent to the server: limits, and checks before any work is spent on it."""

import io
from typing import Any

import numpy as np
from fastapi import HTTPException, Request
from PIL import Image

from ..errors import InputError
from ..fills import Fill
from ..images import View, unit_float
from ..model import Model
from ..record import Record
from .order import Order

MOST_BYTES = 20 * 2**20
MOST_PIXELS = 40_000_000  # unpacked
LONGEST_SIDE = 1024  # of what a model is shown
MOST_FILLS = 16
MOST_MASKS = 100_000
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")  # by content; the name of a file says nothing


async def body_of(request: Request, most: int) -> bytes:
    """The body, read no further than allowed, whatever its length is said to be."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > most:
            raise HTTPException(413, f"More than {most:,} bytes were sent: make it smaller first.")
    return bytes(content)


def check_picture(content: bytes) -> None:
    """Look at the head of an upload before anything of it is unpacked."""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
            n_pixels = opened.width * opened.height
    except Exception:  # Pillow's parsers raise many kinds
        raise HTTPException(
            415, f"The upload is not a picture of a kind read here: {', '.join(FORMATS)}."
        ) from None
    if n_pixels > MOST_PIXELS:
        raise HTTPException(
            413, f"The picture has {n_pixels:,} pixels, more than {MOST_PIXELS:,}: make it smaller."
        )


def check_order(order: Order, model: Model, content: bytes) -> None:
    """Refuse now what the worker could only fail at later."""
    view = model.view(content)
    if max(view.pixels.shape) > LONGEST_SIDE:
        raise InputError(
            f"The picture is {view.pixels.shape[0]} x {view.pixels.shape[1]}, but the page works "
            f"with sides up to {LONGEST_SIDE}: make it smaller, or serve a model of one size."
        )
    plan = order.brief.plan(view.pixels)
    if plan.n_fills > MOST_FILLS:
        raise InputError(
            f"{plan.n_fills} colors were given, but at most {MOST_FILLS} are possible."
        )
    for fill in plan.fills:
        rendering(fill, view)
    if model.labels:  # else nobody knows its classes before it is asked
        scores = np.zeros(len(model.labels), np.float32)
        Record(plan, view, scores, model.labels).resolve(order.brief.target)


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
