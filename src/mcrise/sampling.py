"""Sampling: chunk after chunk of masks is asked about and kept, until there are enough.

`iter_explain` yields the explanation each time a chunk has been added and stays silent otherwise:
bars, checkpoints and live pictures are for the caller. `explain` runs it to the end, makes the
trials that test what the maps show, and saves on the way.
"""

import math
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from .config import (
    MAX_MASKS,
    TOLERANCE,
    IntOrAuto,
    RunConfig,
    RunKeywords,
    checked,
    whole_chunks,
)
from .errors import ExplanationError, InputError
from .explanation import TRIALS, Explanation, Target
from .explanation_file import RunFile, load
from .image_sources import open_sources
from .images import View
from .inspection import preprocessing_hint
from .mask_prob import choose
from .masks import CHUNK
from .model_calls import (
    ask,
    buffer_of,
    chunk_scores,
    fastest_batch,
    jitter,
    largest_batch,
    model_of,
    recognise,
)
from .models import ModelSettings, load_model
from .models.model import Model
from .models.settings import check_keywords
from .painting.canvas import Canvas
from .painting.prefetch import Painter

FIRST_LOOK = 128  # masks, before which an error cannot be told


class ExplainSettings(RunKeywords, ModelSettings, total=False):
    """What to paint and how often, and what to know about the model."""


def iter_explain(
    image: Any,
    model: Any,
    *,
    same_masks_as: Explanation | Path | str | None = None,
    resume: Explanation | None = None,
    **settings: Unpack[ExplainSettings],
) -> Iterator[Explanation]:
    """Explain an image chunk by chunk; yields the same explanation each time it has grown.

    `image` is a path, a Pillow image, an array (H, W, 3) or a tensor, uint8 or floats in 0..1.
    `model` is what `load_model` takes or gives: a file, or any callable from images (N, H, W, 3)
    to scores (N, C), which gets the dtype and range of the image, in a buffer that the next batch
    reuses. With `resume`, chunks that it has are not asked again. `settings` are all keywords of
    `load_model`, and these:

    fills, colors : what is painted: a palette, a list, or words as in `red,#0f0,blur:8`
    grid : cells of a mask, down and across; one number for both
    mask_prob : chance that a cell is painted, or "auto"
    seed : of the random masks
    n_masks : rounded up to whole chunks of 64, or "auto"; see `grow`
    tolerance, max_masks, target : when "auto" stops; see `grow`
    batch_size : images per call of the model, fewer where they would take more than 1 GB; or "auto"

    A `mask_prob` of "auto" asks about one to three chunks first, of which one belongs to the run,
    and chooses: two runs may differ in it. To compare images or models, give a number, or an
    explanation (or its path) as `same_masks_as`: its fills, grid, mask_prob and seed are used
    and, unless n_masks is given, its number of masks.
    """
    about_run, about_model = split_settings(settings, ("same_masks_as", "resume"))
    config = RunConfig.of(**about_run)
    if same_masks_as is not None:
        other = same_masks_as if isinstance(same_masks_as, Explanation) else load(same_masks_as)
        config = config.like(other.plan, other.n_masks)
    known = load_model(model, **about_model)
    return run(known.view(image), known, config, resume)


def run(
    view: View,
    model: Model,
    config: RunConfig,
    resume: Explanation | None = None,
    early: Callable[[Explanation], None] | None = None,
) -> Generator[Explanation, None, None]:
    """Do what a configuration asks, from the beginning or from where a run is.

    Where a pilot has to choose `mask_prob`, `early` is given a run of the first chunk tried,
    which may come to nothing, for whoever wants to see something before that is settled.
    """
    if resume is None:
        explanation = begin(view, model, config, early)
    else:
        explanation = take_up(resume, view, model, config)
    explanation.resolve(config.target)
    yield from grow(
        explanation,
        model,
        n_masks=config.n_masks,
        tolerance=config.tolerance,
        max_masks=config.max_masks,
        target=config.target,
    )


def begin(
    view: View, model: Model, config: RunConfig, early: Callable[[Explanation], None] | None = None
) -> Explanation:
    """What a run starts with: the scores of the untouched image, and no masks yet.

    Or one chunk, where its `mask_prob` had to be chosen.
    """
    plan = config.plan(view.pixels)
    canvas = model.canvas(view.pixels, plan.fills)
    untouched = ask(model, canvas.untouched(), "the untouched image", None)[0]
    hint, n_asked = preprocessing_hint(model, view)
    explanation = Explanation(
        plan, view, untouched, model.labels, model.kind, 1, model.identity, model.origin
    )
    explanation.assumed = (*model.notes, hint) if hint else model.notes
    explanation.n_checks += n_asked
    explanation.check_room(most_masks(config.n_masks, config.max_masks))
    size = config.batch_size
    most = largest_batch(model, view)
    explanation.batch_size = (
        fastest_batch(model, explanation, canvas, most) if size == "auto" else min(size, most)
    )
    explanation.recognised = model.predict
    explanation.resolve(config.target)
    if config.mask_prob == "auto":
        settle_mask_prob(explanation, model, canvas, config.target, early)
    return explanation


def settle_mask_prob(
    explanation: Explanation,
    model: Model,
    canvas: Canvas,
    target: Target,
    early: Callable[[Explanation], None] | None = None,
) -> None:
    """Let a pilot choose for a run without masks, which then has its first chunk."""
    buffer = buffer_of(canvas, explanation.batch_size)

    def first_chunk(mask_prob: float) -> NDArray[np.float32]:
        nonlocal early
        explanation.plan = replace(explanation.plan, mask_prob=mask_prob)
        scores = chunk_scores(model, canvas, buffer, explanation, 0)
        if early is not None:
            early(replace(explanation, scores={0: scores}))
            early = None
        return scores

    pilot = choose(
        first_chunk, explanation.untouched, explanation.kind, explanation.resolve(target)
    )
    explanation.plan = replace(explanation.plan, mask_prob=pilot.mask_prob)
    explanation.pilot, explanation.choice = pilot.others, pilot.sentence
    explanation.add(0, pilot.scores[pilot.mask_prob])
    explanation.jitter = jitter(model, canvas, buffer, explanation, 0)


def take_up(explanation: Explanation, view: View, model: Model, config: RunConfig) -> Explanation:
    """A run to go on with, if it is of this image, this configuration and this model."""
    size = config.batch_size
    expected = replace(
        explanation,
        plan=config.plan(view.pixels, auto=explanation.plan.mask_prob),
        view=view,
        kind=model.kind,
        batch_size=explanation.batch_size
        if size == "auto"
        else min(size, largest_batch(model, view)),
        model=model.identity,
        origin=model.origin,
    )
    if different := explanation.differences(expected):
        raise ExplanationError(
            f"Another run is there, which differs in {', '.join(different)}", "start a new one"
        )
    explanation.name_classes(model.labels or explanation.labels)
    recognise(explanation, model)
    return explanation


def grow(
    explanation: Explanation,
    model: Any,
    *,
    n_masks: IntOrAuto = "auto",
    tolerance: float = TOLERANCE,
    max_masks: int = MAX_MASKS,
    target: Target = None,
) -> Iterator[Explanation]:
    """Add chunks to a run until it has `n_masks`; yields it each time it has grown.

    With n_masks="auto" until the relative error of the map of `target` is below `tolerance`, or
    `max_masks` are reached; `explanation.stop_reason` then says which.
    """
    found = checked(n_masks=n_masks, tolerance=tolerance, max_masks=max_masks)
    n_masks, tolerance, max_masks = found["n_masks"], found["tolerance"], found["max_masks"]
    explanation.check_room(most_masks(n_masks, max_masks))
    model = model_of(explanation, model)
    canvas = model.canvas(explanation.view.pixels, explanation.plan.fills)
    painter = Painter(explanation.plan, canvas, buffer_of(canvas, explanation.batch_size))
    done, explanation.stop_reason = 0, ""
    explanation.goal = whole_chunks(min(FIRST_LOOK, max_masks) if n_masks == "auto" else n_masks)
    while True:
        chunks = range(done // CHUNK, explanation.goal // CHUNK)
        missing = [chunk for chunk in chunks if chunk not in explanation.scores]
        following = dict(pairwise(missing))
        for chunk in chunks:
            if chunk not in explanation.scores:
                painted = painter.turn_to(chunk, following.get(chunk))
                given = model, canvas, painter.buffer, explanation, chunk
                explanation.add(chunk, chunk_scores(*given, painted))
                if explanation.jitter is None:
                    explanation.jitter = jitter(*given)
            yield explanation
        if n_masks != "auto":
            return
        # Looking at the first `goal` masks only, even if a resumed run has more, a killed run
        # stops where one never killed does.
        error = explanation.first(explanation.goal).maps(target).relative_error
        if error <= tolerance:
            explanation.stop_reason = (
                f"stopped at {explanation.goal:,} masks: relative error {error:.2f}"
            )
            return
        if explanation.goal >= max_masks:
            noise = f"a relative error of {error:.2f}" if error < math.inf else "nothing but noise"
            explanation.stop_reason = (
                f"the limit of {explanation.goal:,} masks (max_masks) was reached with {noise}: "
                "details of the map are not certain"
            )
            return
        done = explanation.goal
        explanation.goal = min(next_look(done, error / tolerance), whole_chunks(max_masks))


def most_masks(n_masks: IntOrAuto, max_masks: int) -> int:
    return whole_chunks(max_masks if n_masks == "auto" else n_masks)


def next_look(n_masks: int, excess: float) -> int:
    """When to look again at an error that is `excess` times too large.

    It falls as 1/sqrt(N), or a little slower; a forecast may be wrong, so at twice as many at the
    latest.
    """
    return max(whole_chunks(int(n_masks * min(excess, 2.0**0.5) ** 2)), n_masks + CHUNK)


# ---- to the end


class ExplainOptions(ExplainSettings, total=False):
    """Options of `explain`, for its two kinds of answer; `iter_explain` says what each means."""

    same_masks_as: Explanation | Path | str | None
    trials: int | bool
    truth: Target
    save: Path | str | None
    progress: bool


@overload
def explain(
    image: list[Any] | tuple[Any, ...], model: Any, **options: Unpack[ExplainOptions]
) -> "Explanations": ...


@overload
def explain(image: Any, model: Any, **options: Unpack[ExplainOptions]) -> Explanation: ...


def explain(
    image: Any,
    model: Any,
    *,
    same_masks_as: Explanation | Path | str | None = None,
    trials: int | bool = TRIALS,
    truth: Target = None,
    save: Path | str | None = None,
    progress: bool = False,
    **settings: Unpack[ExplainSettings],
) -> "Explanation | Explanations":
    """Explain an image: ask the model about painted versions of it, and test what the maps show.

    Image, model and the rest are as for `iter_explain`. Of several images, a list of explanations:
    of a list, a folder or a pattern such as `photos/*.jpg`, a batch (N, H, W, 3), a torch data set
    or loader, or a data set of Hugging Face. An image that cannot be read is left out with a
    warning; `failed` of the list has its name and the reason.

    After the masks, regions that matter are searched for and tested by repainting: `trials` is how
    many repaints the search may try, False for maps only. It is done for `target`, or the predicted
    class; with `truth`, a repaint is searched for that makes a wrong image right.

    With `save`, the explanation of an image is kept there every ten seconds and at the end, and
    one of the same run found there is continued. An interrupt (Ctrl-C) returns what there is.
    """
    own = ("same_masks_as", "trials", "truth", "save", "progress")
    about_run, about_model = split_settings(settings, own)
    sources = open_sources(image)
    if sources is not None and save is not None:
        raise InputError("Several images were given with one place to save: explain each.")
    known = load_model(model, **about_model)  # once for all images and trials
    target, budget = about_run.get("target"), trial_budget(trials)
    file = None if save is None else RunFile(Path(save))

    def one(image: Any) -> Iterator[Explanation]:
        before = None if file is None else file.earlier()
        grown = iter_explain(image, known, resume=before, same_masks_as=same_masks_as, **about_run)
        return with_trials(watched(grown, progress), known, (target,), budget, truth, progress)

    if sources is None:
        explanation, _ = last_or_interrupted(one(image) if file is None else file.keep(one(image)))
        if explanation is None:
            raise KeyboardInterrupt
        warn_of_assumed(explanation)
        return explanation
    explanations = Explanations()
    for source in sources:
        try:
            view = known.view(source.read())
        except InputError as error:
            explanations.leave_out(source.name, error)
            continue
        view = view if view.name else replace(view, name=source.name)
        explanation, interrupted = last_or_interrupted(one(view))
        explanations += [] if explanation is None else [explanation]
        if interrupted:
            break
    if explanations.failed and not explanations:
        raise InputError(next(iter(explanations.failed.values())))
    for explanation in explanations[:1]:
        warn_of_assumed(explanation)
    return explanations


def warn_of_assumed(explanation: Explanation) -> None:
    """Say once, to whoever called `explain`, what was assumed about the model."""
    if explanation.assumed:
        warnings.warn(f"Assumed: {'; '.join(explanation.assumed)}.", stacklevel=3)


class Explanations(list[Explanation]):
    """The explanations of several images, in their order, and why others have none."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: dict[str, str] = {}  # name of the image -> why it could not be read

    def leave_out(self, name: str, error: InputError) -> None:
        self.failed[name] = str(error)
        warnings.warn(f"{name} is left out: {error}", stacklevel=3)


def split_settings(
    settings: ExplainSettings, others: Sequence[str] = ()
) -> tuple[RunKeywords, ModelSettings]:
    """What is about the run and what is about the model; `others` are keywords in a signature."""
    of_run, of_model = RunKeywords.__annotations__, ModelSettings.__annotations__
    check_keywords(settings, "explain", [*of_run, *others, *of_model])
    about_run: Any = {name: value for name, value in settings.items() if name in of_run}
    about_model: Any = {name: value for name, value in settings.items() if name in of_model}
    return about_run, about_model


def trial_budget(trials: int | bool) -> int | None:
    """How many repaints a search may try; None for no trials at all."""
    from .interpretation.trial_calls import check_budget

    if trials is False:
        return None
    budget = TRIALS if trials is True else trials
    check_budget(budget)
    return budget


def with_trials(
    grown: Iterator[Explanation],
    model: Model,
    targets: Sequence[Target],
    budget: int | None,
    truth: Target = None,
    progress: bool = False,
) -> Iterator[Explanation]:
    """Pass a run on, and when it has its masks make the trials of some classes.

    Names of classes are resolved when the first masks have come, so that one that the model does
    not have is refused then.
    """
    explanation = None
    for explanation in grown:
        indices = dict.fromkeys(explanation.resolve(target) for target in targets)
        wanted = None if truth is None else explanation.resolve(truth)
        yield explanation
    if explanation is None or budget is None:
        return
    from .interpretation.trial_calls import iter_trials

    if wanted == explanation.prediction.target:
        wanted = None  # the image is right
    yield from watched(iter_trials(explanation, indices, model, budget, wanted), progress, "trials")


def watched(
    run: Iterator[Explanation], progress: bool, what: str = "masks"
) -> Iterator[Explanation]:
    """A run with a bar, where one is wanted."""
    if not progress:
        return run
    from .output.terminal import ProgressState, show_progress, with_progress

    if what == "masks":
        return with_progress(run)

    def look(explanation: Explanation) -> ProgressState:
        n_trials = len(explanation.answers)
        return ProgressState(n_trials, n_trials, what)  # how many it takes is known at the end

    return show_progress(run, what, look)


def last(run: Iterator[Explanation]) -> Explanation:
    """Run to the end."""
    return deque(run, maxlen=1)[0]


def last_or_interrupted(run: Iterator[Explanation]) -> tuple[Explanation | None, bool]:
    """Run to the end or to an interrupt: what there is then, and whether it was interrupted."""
    explanation = None
    try:
        for grown in run:
            explanation = grown
    except KeyboardInterrupt:
        if explanation is not None and explanation.n_masks < explanation.goal:
            explanation.stop_reason = f"interrupted at {explanation.n_masks:,} masks"
        return explanation, True
    return explanation, False
