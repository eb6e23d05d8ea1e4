"""`run_study`: a study from one call, on the cores of this machine or on a cluster."""

import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from .._util.threads import n_cores
from ..batch.datasets import SPLIT, open_dataset
from ..batch.lock import Ownership
from ..batch.storage import Storage
from ..batch.work import W
from ..batch.workers import (
    TIMEOUT,
    InlinePool,
    ProcessPool,
    RayPool,
    WorkerFactory,
    WorkerPool,
    run,
)
from ..config import MAX_MASKS, TOLERANCE, FloatOrAuto, IntOrAuto, RunConfig
from ..errors import InputError
from ..estimators import DEFAULT
from ..explanation import SAME_ANSWER
from ..metrics import STEP
from ..models import ModelSettings, load_model
from ..models.model import Model
from .baselines import LIME_SAMPLES
from .results import TABLE, read_table, write_results
from .study import Study, sample
from .tasks import N_MASKS, PAPERS, StudyConfig, Worker

RETRIES = 2


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
        return read_table(Storage(self.path))

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
    images: int | None = None,
    n_masks: IntOrAuto = N_MASKS,
    tolerance: float = TOLERANCE,
    max_masks: int = MAX_MASKS,
    seed: int = 0,
    split: str = SPLIT,
    estimators: str | Sequence[str] = (DEFAULT,),
    fills: str | Sequence[str] = "rgbwk",
    grid: int | tuple[int, int] = (8, 8),
    mask_prob: FloatOrAuto = PAPERS,
    batch_size: int = 32,
    step: float = STEP,
    lime_samples: int = LIME_SAMPLES,
    best_color: bool = False,
    workers: int | None = None,
    ray: str | None = None,
    timeout: float = TIMEOUT,
    retries: int = RETRIES,
    keep_going: bool = False,
    retry_failed: bool = False,
    overwrite: bool = False,
    progress: bool = False,
    **settings: Unpack[ModelSettings],
) -> StudyResult:
    """Explain many images by several methods and measure how good each explanation is.

    `data` is GTSRB, a folder of images or of class folders, or a CSV file of path and label, here
    or at an address such as `s3://bucket/images`; `images` of them are drawn at random, by default
    all are taken. The results go to the folder `out`, and a study that was killed there goes on:
    no finished image is done again.

    `model` and what is said of it are as for `load_model`. A path, `demo` or `package.module:name`
    is loaded by each of `workers` processes (by default one per core), or of the actors of the Ray
    cluster at the address `ray` ("" starts one here). A callable cannot be sent to other processes
    and is asked in this one, without `timeout`; it is known by its name only, so take another `out`
    when it has changed.

    What is painted, how often and on which grid is as for `explain`, but for the paper's
    `mask_prob`: it is one for all images, so that they compare, while "auto" chooses for each.
    `estimators` are those of the method `mcrise`, `step` is the share of the pixels changed at once
    in a curve, and `best_color` also paints for the other methods with the one color that serves
    them best.

    A task that takes longer than `timeout` seconds, raises or kills its process is tried `retries`
    times more. Then it ends the study; with `keep_going` its image becomes rows with the reason,
    and `retry_failed` tries such images again.
    """
    config = StudyConfig(
        methods=tuple(sorted(words(methods))),
        run=RunConfig(
            fills=fills if isinstance(fills, str) else ",".join(map(named, fills)),
            grid=(grid, grid) if isinstance(grid, int) else grid,
            mask_prob=mask_prob,
            seed=seed,
            n_masks=n_masks,
            tolerance=tolerance,
            max_masks=max_masks,
            batch_size=batch_size,
        ),
        estimators=tuple(sorted(words(estimators))),
        step=step,
        lime_samples=lime_samples,
        best_color=best_color,
    )
    in_memory = not isinstance(model, str | Path)
    check_work(workers, ray, timeout, retries, in_memory)
    check_packages(config)
    place = Storage(out)
    if os.path.abspath(out) == os.path.abspath(data):
        raise InputError(f"The images are in {data} themselves: choose another --out.")
    examples = sample(open_dataset(data, split), images, seed)
    said: Any = {**settings, "threads": None if in_memory else 1}
    known = load_model(model, **said)
    ownership = Ownership(place)
    try:
        study = Study(
            examples,
            config,
            known.identity,
            known.labels,
            place,
            data=f"{data if Storage(data).remote else os.path.abspath(data)} ({split})",
            keep_going=keep_going,
            retries=retries,
            retry_failed=retry_failed,
            overwrite=overwrite,
            ownership=ownership,
        )
        if not study.complete:
            worker = Worker(known, config)
            check_answers(study, worker)
            if in_memory:
                pool: WorkerPool = InlinePool(worker)
            else:
                factory = WorkerFactory(str(model), said, config, known.identity)
                pool = pool_of(factory, workers, ray, timeout)
            for _ in watched(run(study, pool), progress):
                pass
        ownership.check()
        notes = [*notes_of(known, data, images, len(examples)), *study.notes()]
        summary = write_results(study, notes)
    finally:
        ownership.release()
    return StudyResult((place / TABLE).path, tuple(summary), len(examples), study.n_failed)


def check_answers(study: Study, worker: Worker) -> None:
    """Refuse to go on with a model that answers an image otherwise than when its row was made."""
    for image, kept in study.finished():
        if image not in study.done or kept.get("score") is None:
            continue
        explanation = worker.start(study.examples[image].path, "black", PAPERS)
        before, now = kept["score"], float(explanation.untouched[kept["predicted"]])
        if abs(before - now) > SAME_ANSWER * explanation.score_range:
            raise InputError(
                f"The model gives {kept['image']} the score {now:.4g} now, and gave it "
                f"{before:.4g} when its row was made: rows of two models, or of one that answers "
                "at random, do not belong in one table. Choose another --out."
            )
        return


def pool_of(
    factory: WorkerFactory, workers: int | None, ray: str | None, timeout: float
) -> WorkerPool:
    if ray is not None:
        return RayPool(factory, ray or None, workers, timeout)
    return ProcessPool(factory, workers or n_cores(), timeout)


def watched(work: Iterator[W], progress: bool) -> Iterator[W]:
    """A study or audit with a bar, where one is wanted."""
    if not progress:
        return work
    from ..batch.progress import with_study_progress

    return with_study_progress(work)


def notes_of(model: Model, data: Path | str, n_asked: int | None, n_images: int) -> list[str]:
    notes = list(model.notes)
    if n_asked is not None and n_asked > n_images:
        notes.append(f"{n_asked} images were asked for, and {data} holds {n_images}")
    return notes


# ---- what is refused at the call


def words(given: str | Sequence[str]) -> tuple[str, ...]:
    """Names, also where they come in one string with commas between."""
    return tuple(given.replace(" ", "").split(",") if isinstance(given, str) else given)


def named(fill: Any) -> str:
    if not isinstance(fill, str):
        raise InputError(
            f"A fill is {fill!r}, but those of a study go by name, as in red, #0f0 or blur:8."
        )
    return fill


def check_work(
    workers: int | None, ray: str | None, timeout: float, retries: int, in_memory: bool
) -> None:
    if workers is not None and workers < 1:
        raise InputError(f"{workers} workers were asked for, but at least 1 is needed.")
    if not timeout > 0:
        raise InputError(f"The timeout is {timeout:g} seconds, but it must be above 0.")
    if retries < 0:
        raise InputError(f"{retries} retries were asked for, but 0 is the least.")
    if in_memory and (ray is not None or workers not in (None, 1)):
        raise InputError(
            "A model in memory cannot be sent to other processes: give its path or "
            "package.module:name, or leave workers and ray out."
        )


def check_packages(config: StudyConfig) -> None:
    """Say what is missing before the work, not after it."""
    for package, needed in (("pyarrow", True), ("lime", "lime" in config.methods)):
        if needed and importlib.util.find_spec(package) is None:
            raise InputError(f"A study needs {package}: pip install 'mcrise[study]'.")
