"""The loop: draw, paint, ask the model, record.

`steps` yields the record each time a chunk has been added and stays silent otherwise: bars,
checkpoints and live pictures are for whoever watches. `explain` runs it to the end.
"""

import os
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import fills as fill_kinds
from .blend import Canvas, paint
from .errors import InputError, ModelError, RecordError
from .fills import Fill
from .masks import CHUNK, Plan, draw
from .model import Model, as_model
from .record import Record, load

CHECKPOINT_SECONDS = 10.0
TOLERANCE, CAP = 0.25, 8000  # of n_masks="auto"; the paper spends 8000 calls on every image
MOST_BUFFER = 2**29  # bytes of painted images; a chunk that needs more is painted in parts
FIRST_LOOK = 256  # masks, before which an error cannot be told
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)  # whole batches only: a batch never straddles a chunk


def steps(
    image: Any,
    model: Any,
    *,
    fills: str | Sequence[Fill] = "rgbwk",
    n_masks: int | str = 2000,
    tolerance: float = TOLERANCE,
    cap: int = CAP,
    target: int | str | None = None,
    mask_prob: float = 0.5,
    grid: tuple[int, int] = (8, 8),
    seed: int = 0,
    batch_size: int | str = 32,
    scores: str | None = None,
    labels: Sequence[str] | None = None,
    resume: Record | None = None,
) -> Iterator[Record]:
    """Explain an image chunk by chunk; yields the same record each time it has grown.

    `image` is a path, a Pillow image or an array (H, W, 3), uint8 or floats in 0..1. `model` is
    what `load_model` gives or any callable from images (N, H, W, 3) to scores (N, C); it gets the
    dtype and range of the image, in a buffer that the next batch reuses. `scores` says what it
    returns: `probability` (rows sum to one; the default), `independent` (0..1 each) or `any`.
    `n_masks` is rounded up to whole chunks of 64; see `grow` for "auto", `tolerance`, `cap` and
    `target`. With `resume`, chunks it has are not asked again.
    """
    check_amount(n_masks, tolerance, cap)
    model = as_model(model, scores, None if labels is None else tuple(labels))
    view = model.view(image)
    chosen = fill_kinds.parse(fills, view.pixels) if isinstance(fills, str) else tuple(fills)
    plan = Plan((view.pixels.shape[0], view.pixels.shape[1]), chosen, grid, mask_prob, seed)
    if resume is None:
        canvas = model.canvas(view.pixels, plan.fills)
        untouched = ask(model, canvas.untouched(), "the untouched image", None)[0]
        if batch_size == "auto":
            batch_size = fastest_batch(model, plan, canvas)
        record = Record(
            plan, view, untouched, model.labels, model.kind, check_batch(batch_size), model.identity
        )
    else:
        record = resume
        size = record.batch_size if batch_size == "auto" else check_batch(batch_size)
        expected = Record(
            plan, view, record.untouched, model.labels, model.kind, size, model.identity
        )
        if different := expected.differences(record):
            raise RecordError(
                f"Record of another run (other {', '.join(different)})",
                "start a new one",
            )
    yield from grow(record, model, n_masks=n_masks, tolerance=tolerance, cap=cap, target=target)


def grow(
    record: Record,
    model: Any,
    *,
    n_masks: int | str,
    tolerance: float = TOLERANCE,
    cap: int = CAP,
    target: int | str | None = None,
) -> Iterator[Record]:
    """Add chunks to a record until it has `n_masks`; yields it each time it has grown.

    With n_masks="auto" until the relative error of the map of `target` is below `tolerance`, or
    `cap` masks are reached; `record.verdict` then says which.
    """
    check_amount(n_masks, tolerance, cap)
    model = as_model(model)
    if model.identity != record.model:
        raise RecordError(
            f"The record is of the model {record.model!r}, not of {model.identity!r}",
            "continue it with the model it was begun with",
        )
    canvas = model.canvas(record.view.pixels, record.plan.fills)
    buffer = buffer_of(canvas, record.batch_size)
    automatic = n_masks == "auto"
    done, record.verdict = 0, ""
    record.goal = whole_chunks(min(FIRST_LOOK, cap) if automatic else int(n_masks))
    while True:
        for chunk in range(done // CHUNK, record.goal // CHUNK):
            if chunk not in record.scores:
                record.add(chunk, chunk_scores(model, canvas, buffer, record, chunk))
            yield record
        if not automatic:
            return
        # Looking at the first `goal` masks only, even if a resumed record has more, a killed run
        # stops where one never killed does.
        error = record.first(record.goal).maps(target).relative_error
        if error <= tolerance:
            record.verdict = f"stopped at {record.goal:,} masks: relative error {error:.2f}"
            return
        if record.goal >= cap:
            record.verdict = (
                f"cap of {record.goal:,} masks reached: relative error {error:.2f}, some regions "
                "are not settled"
            )
            return
        done = record.goal
        record.goal = min(next_look(done, error / tolerance), whole_chunks(cap))


def next_look(n_masks: int, excess: float) -> int:
    """When to look again at an error that is `excess` times too large.

    It falls a little slower than 1/sqrt(N). Looking costs a fit, so not before a quarter more;
    a forecast may be wrong, so at twice as many at the latest.
    """
    return whole_chunks(int(n_masks * min(max(min(excess, 2.0) ** 2.5, 1.25), 2.0)))


def whole_chunks(n_masks: int) -> int:
    return -(-n_masks // CHUNK) * CHUNK


def check_amount(n_masks: int | str, tolerance: float, cap: int) -> None:
    if n_masks != "auto" and (isinstance(n_masks, str) or n_masks < 1):
        raise InputError(
            f"n_masks is {n_masks}, but at least 1 or auto is needed; 1000 is a good start."
        )
    if not 0 < tolerance < 10:
        raise InputError(
            f"The tolerance is {tolerance:g}, but a relative error above 0 is needed, such as 0.25."
        )
    if cap < 1:
        raise InputError(f"The cap is {cap}, but at least 1 mask is needed; 8000 is the paper's.")


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


def ask(
    model: Model, batch: NDArray[Any], where: str, record: Record | None
) -> NDArray[np.float32]:
    try:
        return model.scores(batch)
    except ModelError as error:
        raise ModelError(f"Failed at {where}: {str(error).rstrip('.')}.", record) from error


def check_batch(batch_size: int | str) -> int:
    if batch_size not in BATCH_SIZES:
        raise InputError(
            f"The batch size is {batch_size}, but it must divide a chunk of {CHUNK} masks: give "
            f"{', '.join(map(str, BATCH_SIZES))} or auto."
        )
    return int(batch_size)


def fastest_batch(model: Model, plan: Plan, canvas: Canvas) -> int:
    """The smallest batch that is within 5 % of the fastest per image, tried on painted images."""
    images = paint(plan, canvas, draw(plan, 0), canvas.batch(CHUNK))
    per_image = {}
    for size in BATCH_SIZES[2:]:
        best = float("inf")
        for _ in range(2):  # the first call of a size may compile or allocate
            started = time.perf_counter()
            ask(model, images[:size], f"a trial batch of {size}", None)
            best = min(best, time.perf_counter() - started)
        per_image[size] = best / size
    limit = 1.05 * min(per_image.values())
    return next(size for size in per_image if per_image[size] <= limit)


def explain(
    image: Any,
    model: Any,
    *,
    save: Path | str | None = None,
    progress: bool = False,
    **options: Any,
) -> Record:
    """Explain an image: ask the model about painted versions of it, and return the record.

    Takes the options of `steps`. With `save`, the record is kept there every ten seconds and at
    the end, and a record of the same run found there is continued.
    """
    if save is not None and os.path.exists(save):
        options["resume"] = load(save)
    run = steps(image, model, **options)
    if save is not None:
        run = checkpointed(run, Path(save))
    if progress:
        from .progress import with_progress

        run = with_progress(run)
    return last(run)


def last(run: Iterator[Record]) -> Record:
    """Run to the end."""
    return deque(run, maxlen=1)[0]


def checkpointed(
    run: Iterator[Record], path: Path, seconds: float = CHECKPOINT_SECONDS
) -> Generator[Record, None, None]:
    """Pass a run on, saving its record every few seconds, at the end and when it is cut short."""
    record, saved_at, saved_masks = None, time.monotonic(), -1
    try:
        for record in run:
            if time.monotonic() - saved_at >= seconds:
                record.save(path)
                saved_at, saved_masks = time.monotonic(), record.n_masks
            yield record
    finally:  # also on Ctrl-C, when the model fails, and when the caller stops listening
        if record is not None and record.n_masks != saved_masks:
            record.save(path)
