"""The loop: draw, paint, ask the model, record.

`steps` yields the record each time a chunk has been added and stays silent otherwise: bars,
checkpoints and live pictures are for whoever watches. `explain` runs it to the end.

A record is gone on with by its own model only. Names and digests are compared, and so are answers:
the untouched image and one batch are asked again, since weights may change under the same name.
"""

import inspect
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast, overload

import numpy as np
from numpy.typing import NDArray

from .archive import load
from .blend import Canvas, paint
from .brief import BATCH_SIZES, CAP, TOLERANCE, Amount, Brief, Chance, check_amount, whole_chunks
from .errors import InputError, ModelError, RecordError
from .fills import Fill, as_fills
from .images import View
from .masks import CHUNK, draw
from .model import Model
from .origin import different_models
from .pilot import choose
from .record import Record, Target
from .runtimes import Numbers, load_model
from .scores import ScoreKind

CHECKPOINT_SECONDS = 10.0
MOST_BUFFER = 2**29  # bytes of painted images; a chunk that needs more is painted in parts
MOST_BATCH = 2**30  # bytes of the images of one call; of larger images it gets fewer
FIRST_LOOK = 128  # masks, before which an error cannot be told


def steps(
    image: Any,
    model: Any,
    *,
    fills: str | Sequence[str | Fill] = "rgbwk",
    colors: str | Sequence[str | Fill] | None = None,
    n_masks: Amount = "auto",
    tolerance: float = TOLERANCE,
    cap: int = CAP,
    target: Target = None,
    mask_prob: Chance = "auto",
    grid: int | tuple[int, int] = (8, 8),
    seed: int = 0,
    batch_size: Amount = 32,
    like: Record | Path | str | None = None,
    scores: ScoreKind | None = None,
    softmax: bool | None = None,
    sigmoid: bool | None = None,
    labels: Sequence[str] | None = None,
    size: int | tuple[int, int] | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    resume: Record | None = None,
) -> Iterator[Record]:
    """Explain an image chunk by chunk; yields the same record each time it has grown.

    `image` is a path, a Pillow image, an array (H, W, 3) or a tensor, uint8 or floats in 0..1.
    `model` is what `load_model` takes or gives: a file, or any callable from images (N, H, W, 3)
    to scores (N, C), which gets the dtype and range of the image, in a buffer that the next batch
    reuses. `scores`, `softmax`, `sigmoid`, `labels`, `size`, `mean` and `std` are as there.

    `fills` (or `colors`) are what is painted: a palette, a list, or words as in `red,#0f0,blur:8`.
    `n_masks` is rounded up to whole chunks of 64; see `grow` for "auto", `tolerance`, `cap` and
    `target`. A call gets `batch_size` images, or fewer where they would take more than 1 GB. With
    `resume`, chunks it has are not asked again.

    `mask_prob` is the chance that a cell is painted. "auto" asks about one to three chunks first,
    of which one is the run's own, and chooses: two runs may differ in it, so to compare images or
    models give a number, or a record (or its path) as `like`, whose fills, grid, mask_prob, seed
    and, where none is given, number of masks are taken.
    """
    if colors is not None:
        if fills != "rgbwk":
            raise InputError("Both fills and colors were given: they are the same, give one.")
        fills = colors
    brief = Brief(
        fills=fills if isinstance(fills, str) else as_fills(fills),
        grid=(grid, grid) if isinstance(grid, int) else grid,
        mask_prob=mask_prob,
        seed=seed,
        n_masks=n_masks,
        tolerance=tolerance,
        cap=cap,
        target=target,
        batch_size=batch_size,
    )
    if like is not None:
        other = like if isinstance(like, Record) else load(like)
        brief = brief.like(other.plan, other.n_masks)
    known = load_model(
        model,
        scores=scores,
        softmax=softmax,
        sigmoid=sigmoid,
        labels=labels,
        size=size,
        mean=mean,
        std=std,
    )
    return run(known.view(image), known, brief, resume)


def run(
    view: View,
    model: Model,
    brief: Brief,
    resume: Record | None = None,
    early: Callable[[Record], None] | None = None,
) -> Generator[Record, None, None]:
    """Do what a brief asks, from the beginning or from where a record is.

    Where a pilot has to choose `mask_prob`, `early` is given a record of the first chunk tried,
    which may come to nothing, for whoever wants to see something before that is settled.
    """
    if resume is None:
        record = begin(view, model, brief, early)
    else:
        record = take_up(resume, view, model, brief)
    record.resolve(brief.target)
    yield from grow(
        record,
        model,
        n_masks=brief.n_masks,
        tolerance=brief.tolerance,
        cap=brief.cap,
        target=brief.target,
    )


def begin(
    view: View, model: Model, brief: Brief, early: Callable[[Record], None] | None = None
) -> Record:
    """The record that a run starts with: the scores of the untouched image, and no masks yet.

    Or one chunk, where its `mask_prob` had to be chosen.
    """
    plan = brief.plan(view.pixels)
    canvas = model.canvas(view.pixels, plan.fills)
    untouched = ask(model, canvas.untouched(), "the untouched image", None)[0]
    record = Record(
        plan, view, untouched, model.labels, model.kind, 1, model.identity, model.origin
    )
    size = brief.batch_size
    most = largest_batch(model, view)
    record.batch_size = (
        fastest_batch(model, record, canvas, most) if size == "auto" else min(size, most)
    )
    record.recognised = model.predict
    record.resolve(brief.target)
    if brief.mask_prob == "auto":
        settle_mask_prob(record, model, canvas, brief.target, early)
    return record


def settle_mask_prob(
    record: Record,
    model: Model,
    canvas: Canvas,
    target: Target,
    early: Callable[[Record], None] | None = None,
) -> None:
    """Let a pilot choose for a record without masks, which then has its first chunk."""
    buffer = buffer_of(canvas, record.batch_size)

    def first_chunk(mask_prob: float) -> NDArray[np.float32]:
        nonlocal early
        record.plan = replace(record.plan, mask_prob=mask_prob)
        scores = chunk_scores(model, canvas, buffer, record, 0)
        if early is not None:
            early(replace(record, scores={0: scores}))
            early = None
        return scores

    pilot = choose(first_chunk, record.untouched, record.kind, record.resolve(target))
    record.plan = replace(record.plan, mask_prob=pilot.mask_prob)
    record.pilot, record.choice = pilot.others, pilot.sentence
    record.add(0, pilot.scores[pilot.mask_prob])
    record.jitter = jitter(model, canvas, buffer, record, 0)


def take_up(record: Record, view: View, model: Model, brief: Brief) -> Record:
    """A record to go on with, if it is of this image, this brief and this model."""
    size = brief.batch_size
    expected = replace(
        record,
        plan=brief.plan(view.pixels, auto=record.plan.mask_prob),
        view=view,
        kind=model.kind,
        batch_size=record.batch_size if size == "auto" else min(size, largest_batch(model, view)),
        model=model.identity,
        origin=model.origin,
    )
    if different := record.differences(expected):
        raise RecordError(
            f"Record of another run (other {', '.join(different)})", "start a new one"
        )
    record.name_classes(model.labels or record.labels)
    recognise(record, model)
    return record


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


def grow(
    record: Record,
    model: Any,
    *,
    n_masks: Amount = "auto",
    tolerance: float = TOLERANCE,
    cap: int = CAP,
    target: Target = None,
) -> Iterator[Record]:
    """Add chunks to a record until it has `n_masks`; yields it each time it has grown.

    With n_masks="auto" until the relative error of the map of `target` is below `tolerance`, or
    `cap` masks are reached; `record.verdict` then says which.
    """
    check_amount(n_masks, tolerance, cap)
    model = model_of(record, model)
    canvas = model.canvas(record.view.pixels, record.plan.fills)
    buffer = buffer_of(canvas, record.batch_size)
    done, record.verdict = 0, ""
    record.goal = whole_chunks(min(FIRST_LOOK, cap) if n_masks == "auto" else n_masks)
    while True:
        for chunk in range(done // CHUNK, record.goal // CHUNK):
            if chunk not in record.scores:
                record.add(chunk, chunk_scores(model, canvas, buffer, record, chunk))
                if record.jitter is None:
                    record.jitter = jitter(model, canvas, buffer, record, chunk)
            yield record
        if n_masks != "auto":
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


def next_look(n_masks: int, excess: float) -> int:
    """When to look again at an error that is `excess` times too large.

    It falls as 1/sqrt(N), or a little slower; a forecast may be wrong, so at twice as many at the
    latest.
    """
    return max(whole_chunks(int(n_masks * min(excess, 2.0**0.5) ** 2)), n_masks + CHUNK)


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


# ---- to the end


class Options(TypedDict, total=False):
    """What `explain` may be told, for its two kinds of answer; `steps` says what each means."""

    fills: str | Sequence[str | Fill]
    colors: str | Sequence[str | Fill] | None
    n_masks: Amount
    tolerance: float
    cap: int
    target: Target
    mask_prob: Chance
    grid: int | tuple[int, int]
    seed: int
    batch_size: Amount
    like: Record | Path | str | None
    scores: ScoreKind | None
    softmax: bool | None
    sigmoid: bool | None
    labels: Sequence[str] | None
    size: int | tuple[int, int] | None
    mean: Numbers | None
    std: Numbers | None
    save: Path | str | None
    progress: bool


@overload
def explain(
    image: list[Any] | tuple[Any, ...], model: Any, **options: Unpack[Options]
) -> list[Record]: ...


@overload
def explain(image: Any, model: Any, **options: Unpack[Options]) -> Record: ...


def explain(
    image: Any,
    model: Any,
    *,
    fills: str | Sequence[str | Fill] = "rgbwk",
    colors: str | Sequence[str | Fill] | None = None,
    n_masks: Amount = "auto",
    tolerance: float = TOLERANCE,
    cap: int = CAP,
    target: Target = None,
    mask_prob: Chance = "auto",
    grid: int | tuple[int, int] = (8, 8),
    seed: int = 0,
    batch_size: Amount = 32,
    like: Record | Path | str | None = None,
    scores: ScoreKind | None = None,
    softmax: bool | None = None,
    sigmoid: bool | None = None,
    labels: Sequence[str] | None = None,
    size: int | tuple[int, int] | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    save: Path | str | None = None,
    progress: bool = False,
) -> Record | list[Record]:
    """Explain an image: ask the model about painted versions of it, and return the record.

    Image, model and the rest are as for `steps`; of a list of images, a list of records. With
    `save`, the record of an image is kept there every ten seconds and at the end, and a record of
    the same run found there is continued.
    """
    options: Any = dict(locals())  # before any other name is: just what `steps` takes, and these
    for name in ("image", "model", "save", "progress"):
        del options[name]
    if isinstance(image, list | tuple):
        if save is not None:
            raise InputError("Several images were given with one place to save: explain each.")
        known = load_model(model) if isinstance(model, str | Path) else model
        return [last(watched(steps(one, known, **options), progress)) for one in image]
    before = load(save) if save is not None and os.path.exists(save) else None
    grown = steps(image, model, resume=before, **options)
    return last(watched(grown if save is None else checkpointed(grown, Path(save)), progress))


def watched(grown: Iterator[Record], progress: bool) -> Iterator[Record]:
    """A run with a bar, where one is wanted."""
    if not progress:
        return grown
    from .progress import with_progress

    return with_progress(grown)


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
