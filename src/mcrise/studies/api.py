"""`run_study`: a study from one call, on the cores of this machine or on a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from ..batch.datasets import SPLIT, open_dataset, sample
from ..batch.engine import (
    BatchInput,
    BatchSettings,
    open_input,
    run,
    split_batch_settings,
    with_progress,
)
from ..batch.folder import FolderLock
from ..batch.storage import Storage, check_packages, read_parquet
from ..estimators import DEFAULT
from ..metrics import STEP
from ..model_calls import same_model
from .baselines import LIME_SAMPLES
from .config import N_MASKS, PAPERS, StudyConfig
from .results import COLUMNS, TABLE, write_results
from .study import Study


@dataclass(frozen=True)
class StudyResult:
    """Where the results of a study are, and what they say in short."""

    path: str  # of the table, a Parquet file
    summary: tuple[str, ...]  # lines of Markdown
    n_images: int
    n_failed: int

    def __repr__(self) -> str:
        return f"<StudyResult: {self.n_images:,} images, {self.n_failed:,} failed; {self.path}>"

    def __str__(self) -> str:
        return "\n".join(self.summary)

    def table(self) -> Any:
        """The table, as pyarrow has it: a row per image, method and estimator."""
        return read_parquet(Storage(self.path), COLUMNS)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table; a failed image's have an `error` and no numbers."""
        found: list[dict[str, Any]] = self.table().to_pylist()
        return found


def run_study(
    data: Path | str,
    model: Any = "demo",
    *,
    out: Path | str,
    methods: str | Sequence[str] = ("lime", "rise", "mcrise"),
    estimators: str | Sequence[str] = (DEFAULT,),
    images: int | None = None,
    split: str = SPLIT,
    step: float = STEP,
    lime_samples: int = LIME_SAMPLES,
    best_color: bool = False,
    progress: bool = False,
    **settings: Unpack[BatchSettings],
) -> StudyResult:
    """Explain many images by several methods and measure how good each explanation is.

    `data` is GTSRB, a folder of images or of class folders, or a CSV file of path and label, here
    or at an address such as `s3://bucket/images`; `images` of them are drawn at random, by default
    all are taken. The results go to the folder `out`, and a study that was killed there goes on:
    no finished image is done again. `estimators` are those of the method `mcrise`, `step` is the
    share of the pixels changed at once in a curve, and `best_color` also paints for the other
    methods with the one color that serves them best. `settings` are all keywords of `load_model`,
    and these:

    fills, colors, grid, seed, tolerance, max_masks, batch_size : as for `explain`
    n_masks : masks of an image, 2000 by default, or "auto"
    mask_prob : the paper's 0.5 by default, one for all images so that they compare; "auto" chooses
        for each image
    workers : processes, by default one per core
    ray : address of a Ray cluster whose actors do the work instead; "" starts one here
    timeout, retries : a task that takes longer than so many seconds (3600), raises or kills its
        process is tried so many times more (2); then it ends the study
    keep_going, retry_failed : rows with the reason for an image that failed; try such images again
    overwrite : replace another study in the folder

    A model given as a path, `demo` or `package.module:name` is loaded by each worker. A callable
    cannot be sent to other processes and is asked in this one, without `timeout`; it is known by
    its name only, so use another `out` when it has changed.
    """
    own = ("out", "methods", "estimators", "images", "split", "step", "lime_samples", "best_color")
    run_config, options, about_model = split_batch_settings(
        settings, "run_study", own, n_masks=N_MASKS, mask_prob=PAPERS
    )
    config = StudyConfig(
        run=run_config,
        methods=tuple(sorted(words(methods))),
        estimators=tuple(sorted(words(estimators))),
        step=step,
        lime_samples=lime_samples,
        best_color=best_color,
    )
    check_packages("A study", *(["lime"] if "lime" in config.methods else []))
    given = open_input(
        data, split, model, about_model, out, options,
        lambda: sample(open_dataset(data, split), images, config.seed),
    )  # fmt: skip
    notes = list(given.model.notes)
    if images is not None and images > len(given.examples):
        notes.append(f"{images} images were asked for, and {data} holds {len(given.examples)}")
    place = Storage(out)
    with FolderLock(place, "study") as lock:
        study = Study(
            given.examples, config, given.model.identity, given.model.labels, place, options,
            data=given.data, lock=lock,
        )  # fmt: skip
        if not study.complete:
            _check_answers(study, given)
            for _ in with_progress(run(study, given.pool(config, options)), progress):
                pass
        lock.check()
        summary = write_results(study, [*notes, *study.notes()])
    return StudyResult((place / TABLE).path, tuple(summary), len(given.examples), study.n_failed)


def _check_answers(study: Study, given: BatchInput) -> None:
    """Refuse to go on with a model that answers an image differently than when its row was made."""
    for image, kept in study.finished():
        if image in study.done and kept.get("score") is not None:
            now = given.answer(study.examples[image])
            before, score_range = kept["score"], given.score_range(now)
            if not same_model(before, now[kept["predicted"]], score_range):
                raise given.other_model(study.out, study.what, kept["image"])
            return


def words(given: str | Sequence[str]) -> tuple[str, ...]:
    """Names, also where they come in one string with commas between."""
    return tuple(given.replace(" ", "").split(",") if isinstance(given, str) else given)
