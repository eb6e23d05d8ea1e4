"""Parameters: what the handlers of requests are given, checked."""

from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request
from fastapi import Path as InPath

from ..config import RunConfig
from ..errors import InputError
from ..estimators import ESTIMATORS
from ..explanation import Explanation
from .cache import ResultCache
from .job_queue import JobQueue
from .schemas import make_config
from .uploads import MOST_MASKS

JobId = Annotated[str, InPath(pattern="^[0-9a-f]{16}$")]
Target = Annotated[int | None, Query(ge=0, lt=10_000, description="Class; the top one if left out")]
EstimatorName = Annotated[str, Query(pattern=f"^({'|'.join(ESTIMATORS)})$")]
NumberOrAuto = int | Literal["auto"]

# Of a route, for the schema.
PNG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}}}
BYTES: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}
BODY = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}


async def jobs_of(request: Request) -> JobQueue:
    jobs: JobQueue = request.app.state.jobs
    return jobs


async def cache_of(request: Request) -> ResultCache:
    result_cache: ResultCache = request.app.state.result_cache
    return result_cache


async def summaries_of(request: Request) -> ResultCache:
    summaries: ResultCache = request.app.state.summaries
    return summaries


TheJobs = Annotated[JobQueue, Depends(jobs_of)]
TheCache = Annotated[ResultCache, Depends(cache_of)]
TheSummaries = Annotated[ResultCache, Depends(summaries_of)]


def explanation_of(id: JobId, jobs: TheJobs) -> Explanation:
    return jobs.explanation(id)


TheExplanation = Annotated[Explanation, Depends(explanation_of)]


def config_of(
    colors: Annotated[str, Query(max_length=500)] = str(RunConfig.fills),
    n_masks: Annotated[
        NumberOrAuto, Query(description=f"Up to {MOST_MASKS:,}, or auto")
    ] = RunConfig.n_masks,
    tolerance: Annotated[
        float, Query(gt=0, lt=10, description="Relative error that is good enough for auto")
    ] = RunConfig.tolerance,
    max_masks: Annotated[
        int, Query(ge=1, le=MOST_MASKS, description="Most masks of auto")
    ] = RunConfig.max_masks,
    target: Annotated[
        str | None, Query(max_length=200, description="Class that auto looks at: label or index")
    ] = None,
    mask_prob: Annotated[
        float | Literal["auto"],
        Query(description="Chance that a cell is painted, 0.01 to 0.99, or auto"),
    ] = RunConfig.mask_prob,
    rows: Annotated[int, Query(ge=1, le=32, description="Cells down")] = RunConfig.grid[0],
    columns: Annotated[int, Query(ge=1, le=32, description="Cells across")] = RunConfig.grid[1],
    seed: Annotated[int, Query(ge=0, lt=2**53)] = RunConfig.seed,
    batch_size: Annotated[
        NumberOrAuto, Query(description="Images that the model is shown at once, or auto")
    ] = RunConfig.batch_size,
) -> RunConfig:
    if not colors.strip(" ,"):
        raise InputError("No color was chosen: choose at least one to paint with.")
    if n_masks != "auto" and not 1 <= n_masks <= MOST_MASKS:
        raise InputError(f"n_masks is {n_masks}, but 1 to {MOST_MASKS:,} or auto is needed.")
    if mask_prob != "auto" and not 0.01 <= mask_prob <= 0.99:
        raise InputError(f"mask_prob is {mask_prob}, but 0.01 to 0.99 or auto is needed.")
    return make_config(
        fills=colors,
        grid=(rows, columns),
        mask_prob=mask_prob,
        seed=seed,
        n_masks=n_masks,
        tolerance=tolerance,
        max_masks=max_masks,
        target=target,
        batch_size=batch_size,
    )


TheBrief = Annotated[RunConfig, Depends(config_of)]
