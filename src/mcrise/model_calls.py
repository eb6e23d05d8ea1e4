"""Calls of the model: paint a chunk, ask about it, and check that the model is the same one.

An explanation is continued by its own model only. Names and digests are compared, and so are
answers: the untouched image and a few masks are asked again, since weights may change under the
same name.
"""

import inspect
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .config import BATCH_SIZES
from .errors import ExplanationError, ModelError, with_cause
from .explanation import SAME_ANSWER, Explanation
from .images import View
from .masks import CHUNK, draw
from .models import load_model
from .models.model import Model
from .models.provenance import different_models
from .models.scores import ScoreKind
from .painting.canvas import Canvas, paint

MOST_BUFFER = 2**29  # bytes of painted images; a chunk that needs more is painted in parts
MOST_BATCH = 2**30  # bytes of the images of one call; of larger images it gets fewer
FEW = 4  # images that are asked twice, to see whether answers repeat


def buffer_of(canvas: Canvas, batch_size: int) -> NDArray[Any]:
    """Room for the painted images of a chunk, or as much of it as memory should hold."""
    buffer = canvas.batch(CHUNK)
    while buffer.nbytes > MOST_BUFFER and len(buffer) > batch_size:
        buffer = canvas.batch(len(buffer) // 2)
    return buffer


def chunk_scores(
    model: Model,
    canvas: Canvas,
    buffer: NDArray[Any],
    explanation: Explanation,
    chunk: int,
    painted: bool = False,
) -> NDArray[np.float32]:
    """The scores (64, C) of a chunk, painted as many at a time as the buffer holds.

    Where it is `painted`, the buffer holds it already.
    """
    masks = draw(explanation.plan, chunk)
    out = np.empty((CHUNK, explanation.n_classes), np.float32)
    for start in range(0, CHUNK, explanation.batch_size):
        place = start % len(buffer)
        if place == 0 and not painted:
            paint(explanation.plan, canvas, masks[start : start + len(buffer)], buffer)
        batch = buffer[place : place + explanation.batch_size]
        answer = ask(model, batch, f"chunk {chunk}", explanation)
        if answer.shape[1] != explanation.n_classes:
            raise ModelError(
                f"Failed at chunk {chunk}: the model gave {answer.shape[1]} scores per image after "
                f"{explanation.n_classes} before.",
                explanation,
            )
        out[start : start + explanation.batch_size] = answer
    return out


def jitter(
    model: Model, canvas: Canvas, buffer: NDArray[Any], explanation: Explanation, chunk: int
) -> float:
    """How far two answers to the same images are apart.

    A few images are asked again. Where their answers differ, a whole batch is: a model may answer
    differently to batches of another size, and how far answers are apart takes more than a few.
    """
    few = apart_when_asked_again(model, canvas, buffer, explanation, chunk, FEW)
    if few <= SAME_ANSWER * explanation.score_range or explanation.batch_size <= FEW:
        return few
    return apart_when_asked_again(model, canvas, buffer, explanation, chunk, explanation.batch_size)


def apart_when_asked_again(
    model: Model, canvas: Canvas, buffer: NDArray[Any], explanation: Explanation, chunk: int, n: int
) -> float:
    """How far the answers to the first masks of a chunk are from those known."""
    again = first_scores(model, canvas, buffer, explanation, chunk, n)
    return float(np.abs(again - explanation.scores[chunk][: len(again)]).max())


def first_scores(
    model: Model, canvas: Canvas, buffer: NDArray[Any], explanation: Explanation, chunk: int, n: int
) -> NDArray[np.float32]:
    """The scores of the first `n` masks of a chunk, asked again; at most a batch."""
    some = draw(explanation.plan, chunk)[: min(n, explanation.batch_size)]
    batch = paint(explanation.plan, canvas, some, buffer[: len(some)])
    explanation.n_checks += len(batch)
    return ask(model, batch, f"chunk {chunk}", explanation)


def ask(
    model: Model, batch: NDArray[Any], where: str, explanation: Explanation | None
) -> NDArray[np.float32]:
    try:
        return model.scores(batch)
    except ModelError as error:
        said = ModelError(f"Failed at {where}: {str(error).rstrip('.')}.", explanation)
        raise with_cause(said, error) from error


# ---- how many at once


def largest_batch(model: Model, view: View) -> int:
    """How many images a call may have, so that they take no more memory than they should."""
    image = view.pixels.size * np.dtype(model.dtype or view.pixels.dtype).itemsize
    return max(size for size in BATCH_SIZES if size == 1 or size * image <= MOST_BATCH)


def fastest_batch(model: Model, explanation: Explanation, canvas: Canvas, most: int) -> int:
    """The smallest batch that is within 5% of the fastest per image, tried on painted images."""
    plan = explanation.plan
    images = paint(plan, canvas, draw(plan, 0)[:most], canvas.batch(most))
    per_image = {}
    for size in [size for size in BATCH_SIZES[2:] if size <= most] or [most]:
        best = float("inf")
        for _ in range(2):  # the first call of a size may compile or allocate
            started = time.perf_counter()
            ask(model, images[:size], f"a trial batch of {size}", None)
            explanation.n_checks += size
            best = min(best, time.perf_counter() - started)
        per_image[size] = best / size
    limit = 1.05 * min(per_image.values())
    return next(size for size in per_image if per_image[size] <= limit)


# ---- who answers


def model_of(explanation: Explanation, model: Any) -> Model:
    """The model that a run is of, in any form that `load_model` takes; another is refused.

    Of a bare callable, nothing but the run says what kind of score it gives.
    """
    bare = not isinstance(model, Model | str | Path) and explanation.kind != "probability"
    kind = cast(ScoreKind, explanation.kind)
    known = load_model(model, score_kind=kind) if bare else load_model(model)
    recognise(explanation, known)
    explanation.assumed = explanation.assumed or known.notes
    return known


def recognise(explanation: Explanation, model: Model) -> None:
    """Refuse a model that does not answer as the one that an explanation is of.

    It is asked about the untouched image and a few masks, once for each explanation in memory; if
    it answers differently, about a whole batch, since batches of another size may be the reason.
    """
    if is_same(explanation.recognised, model.predict):
        return
    if different := different_models(
        explanation.model, explanation.origin, model.identity, model.origin
    ):
        raise ExplanationError(
            f"The run is of another model: {', '.join(different)}",
            "give the model that the run was made with, or start a new run",
        )
    n_before = explanation.n_checks
    canvas = model.canvas(explanation.view.pixels, explanation.plan.fills)
    answer = ask(model, canvas.untouched(), "the untouched image", explanation)[0]
    explanation.n_checks += 1
    if len(answer) != explanation.n_classes:
        raise ExplanationError(
            f"The run is of another model: {model.identity} gives {len(answer):,} scores per "
            f"image, and the run has {explanation.n_classes:,} classes",
            "give the model that the run was made with, or start a new run",
        )
    apart = explanation.other_answer(answer, explanation.untouched)
    if not apart and explanation.scores:
        chunk, buffer = explanation.chunks[0], canvas.batch(explanation.batch_size)
        for n in (FEW, explanation.batch_size):
            again = first_scores(model, canvas, buffer, explanation, chunk, n)
            known = explanation.scores[chunk][: len(again)]
            apart = explanation.other_answer(again, known)
            if not apart:
                break
    explanation.n_rechecks += explanation.n_checks - n_before
    if apart:
        raise ExplanationError(
            f"The run is of another model: {model.identity} answers differently now, by "
            f"{apart:.2g} of score, than when the run was made",
            "give the model that the run was made with, or start a new run",
        )
    explanation.recognised = model.predict


def same_model(known: ArrayLike, now: ArrayLike, score_range: float = 1.0) -> bool:
    """Whether two answers to the same images are of one model; runtimes round differently."""
    before, after = np.asarray(known, np.float64), np.asarray(now, np.float64)
    if before.shape != after.shape:
        return False
    return bool(np.abs(after - before).max(initial=0.0) <= SAME_ANSWER * score_range)


def is_same(one: Any, other: Any) -> bool:
    """Whether two callables are one; a method is a new object each time it is named."""
    return one is other or (inspect.ismethod(one) and bool(one == other))
