"""Asking: paint a chunk, ask the model, and make sure that it is the one a record is of.

A record is gone on with by its own model only. Names and digests are compared, and so are answers:
the untouched image and one batch are asked again, since weights may change under the same name.
"""

import inspect
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .blend import Canvas, paint
from .brief import BATCH_SIZES
from .errors import ModelError, RecordError
from .images import View
from .masks import CHUNK, draw
from .model import Model
from .origin import different_models
from .record import Record
from .runtimes import load_model
from .scores import ScoreKind

MOST_BUFFER = 2**29  # bytes of painted images; a chunk that needs more is painted in parts
MOST_BATCH = 2**30  # bytes of the images of one call; of larger images it gets fewer


def buffer_of(canvas: Canvas, batch_size: int) -> NDArray[Any]:
    """Room for the painted images of a chunk, or as much of it as memory should hold."""
    buffer = canvas.batch(CHUNK)
    while buffer.nbytes > MOST_BUFFER and len(buffer) > batch_size:
        buffer = canvas.batch(len(buffer) // 2)
    return buffer


def chunk_scores(
    model: Model, canvas: Canvas, buffer: NDArray[Any], record: Record, chunk: int
) -> NDArray[np.float32]:
    """The scores (64, C) of a chunk, painted as many at a time as the buffer holds."""
    masks = draw(record.plan, chunk)
    out = np.empty((CHUNK, record.n_classes), np.float32)
    for start in range(0, CHUNK, record.batch_size):
        place = start % len(buffer)
        if place == 0:
            paint(record.plan, canvas, masks[start : start + len(buffer)], buffer)
        batch = buffer[place : place + record.batch_size]
        answer = ask(model, batch, f"chunk {chunk}", record)
        if answer.shape[1] != record.n_classes:
            raise ModelError(
                f"Failed at chunk {chunk}: the model gave {answer.shape[1]} scores per image after "
                f"{record.n_classes} before.",
                record,
            )
        out[start : start + record.batch_size] = answer
    return out


def jitter(model: Model, canvas: Canvas, buffer: NDArray[Any], record: Record, chunk: int) -> float:
    """How far the answers to one batch are apart when it is asked twice."""
    again = first_batch(model, canvas, buffer, record, chunk)
    return float(np.abs(again - record.scores[chunk][: len(again)]).max())


def first_batch(
    model: Model, canvas: Canvas, buffer: NDArray[Any], record: Record, chunk: int
) -> NDArray[np.float32]:
    """The scores of the first batch of a chunk, asked anew."""
    some = draw(record.plan, chunk)[: record.batch_size]
    batch = paint(record.plan, canvas, some, buffer[: len(some)])
    return ask(model, batch, f"chunk {chunk}", record)


def ask(
    model: Model, batch: NDArray[Any], where: str, record: Record | None
) -> NDArray[np.float32]:
    try:
        return model.scores(batch)
    except ModelError as error:
        raise ModelError(f"Failed at {where}: {str(error).rstrip('.')}.", record) from error


# ---- how many at once


def largest_batch(model: Model, view: View) -> int:
    """How many images a call may have, so that they take no more memory than they should."""
    image = view.pixels.size * np.dtype(model.dtype or view.pixels.dtype).itemsize
    return max(size for size in BATCH_SIZES if size == 1 or size * image <= MOST_BATCH)


def fastest_batch(model: Model, record: Record, canvas: Canvas, most: int) -> int:
    """The smallest batch that is within 5 % of the fastest per image, tried on painted images."""
    plan = record.plan
    images = paint(plan, canvas, draw(plan, 0)[:most], canvas.batch(most))
    per_image = {}
    for size in [size for size in BATCH_SIZES[2:] if size <= most] or [most]:
        best = float("inf")
        for _ in range(2):  # the first call of a size may compile or allocate
            started = time.perf_counter()
            ask(model, images[:size], f"a trial batch of {size}", None)
            best = min(best, time.perf_counter() - started)
        per_image[size] = best / size
    limit = 1.05 * min(per_image.values())
    return next(size for size in per_image if per_image[size] <= limit)


# ---- who answers


def model_of(record: Record, model: Any) -> Model:
    """The model that a record is of, in any form that `load_model` takes; another is refused.

    Of a bare callable, nothing but the record says what kind of score it gives.
    """
    bare = not isinstance(model, Model | str | Path) and record.kind != "probability"
    kind = cast(ScoreKind, record.kind)
    known = load_model(model, scores=kind) if bare else load_model(model)
    recognise(record, known)
    return known


def recognise(record: Record, model: Model) -> None:
    """Refuse a model that does not answer as the one that a record is of.

    It is asked about the untouched image and about one batch, once for each record in memory.
    """
    if is_same(record.recognised, model.predict):
        return
    if different := different_models(record.model, record.origin, model.identity, model.origin):
        raise RecordError(
            f"Record of another run (other {', '.join(different)})",
            "give the model that the run was made with, or start a new run",
        )
    canvas = model.canvas(record.view.pixels, record.plan.fills)
    answer = ask(model, canvas.untouched(), "the untouched image", record)[0]
    apart = np.inf
    if answer.shape == record.untouched.shape:
        apart = record.other_answer(answer, record.untouched)
        if not apart and record.scores:
            chunk = record.chunks[0]
            known = record.scores[chunk][: record.batch_size]
            buffer = canvas.batch(record.batch_size)
            apart = record.other_answer(first_batch(model, canvas, buffer, record, chunk), known)
    if apart:
        raise RecordError(
            f"Record of another model: {model.identity} answers differently now, by "
            f"{apart:.2g} of score, than when the run was made",
            "give the model that the run was made with, or start a new run",
        )
    record.recognised = model.predict


def is_same(one: Any, other: Any) -> bool:
    """Whether two callables are one; a method is made anew each time it is named."""
    return one is other or (inspect.ismethod(one) and bool(one == other))
