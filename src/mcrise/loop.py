"""The loop: chunk after chunk of masks is asked about and recorded, until there are enough.

`steps` yields the record each time a chunk has been added and stays silent otherwise: bars,
checkpoints and live pictures are for whoever watches. `explain` runs it to the end.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from .archive import load
from .asking import (
    ask,
    buffer_of,
    chunk_scores,
    fastest_batch,
    jitter,
    largest_batch,
    model_of,
    recognise,
)
from .blend import Canvas
from .brief import CAP, TOLERANCE, Amount, Brief, Chance, check_amount, whole_chunks
from .errors import InputError, RecordError
from .fills import Fill, as_fills
from .images import View
from .masks import CHUNK
from .model import Model
from .pilot import choose
from .record import Record, Target
from .runtimes import Numbers, load_model
from .scores import ScoreKind

CHECKPOINT_SECONDS = 10.0
FIRST_LOOK = 128  # masks, before which an error cannot be told
MODEL_SETTINGS = ("scores", "softmax", "sigmoid", "labels", "size", "mean", "std")


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
    record.check_room(most_masks(brief.n_masks, brief.cap))
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
    record.check_room(most_masks(n_masks, cap))
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


def most_masks(n_masks: Amount, cap: int) -> int:
    return whole_chunks(cap if n_masks == "auto" else n_masks)


def next_look(n_masks: int, excess: float) -> int:
    """When to look again at an error that is `excess` times too large.

    It falls as 1/sqrt(N), or a little slower; a forecast may be wrong, so at twice as many at the
    latest.
    """
    return max(whole_chunks(int(n_masks * min(excess, 2.0**0.5) ** 2)), n_masks + CHUNK)


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
        # Once for all of them; a loaded model takes no settings again.
        known = load_model(model, **{name: options.pop(name) for name in MODEL_SETTINGS})
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
