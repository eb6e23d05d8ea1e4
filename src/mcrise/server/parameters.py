"""Parameters of requests, checked, as the handlers of several routes are given them."""

from collections.abc import Mapping
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi import Path as InPath

from ..config import FIELDS, FloatOrAuto, IntOrAuto, RunConfig
from ..errors import InputError
from ..estimators import ESTIMATORS
from ..explanation import Explanation
from .cache import ResultCache
from .job_queue import JobQueue
from .schemas import make_config
from .uploads import MOST_MASKS

JobId = Annotated[str, InPath(pattern="^[0-9a-f]{16}$")]
Target = Annotated[int | None, Query(ge=0, lt=10_000, description="Class; the top one if left out")]
Less = Annotated[
    str | None, Query(pattern="^[0-9a-f]{16}$", description="Job whose maps are taken off")
]
EstimatorName = Annotated[str, Query(pattern=f"^({'|'.join(ESTIMATORS)})$")]

# Of a route, for the schema.
PNG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}}}
JPEG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}}}
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


# ---- the fields of a run's configuration

OWN_LIMITS: dict[str, dict[str, Any]] = {  # of the page, where they are narrower than elsewhere
    "fills": {"max_length": 500},
    "grid": {"low": 1, "high": 32},
    "mask_prob": {"low": 0.01, "high": 0.99},
    "seed": {"low": 0, "high": 2**53 - 1},
    "n_masks": {"low": 1, "high": MOST_MASKS},
    "max_masks": {"low": 1, "high": MOST_MASKS},
    "target": {"max_length": 200},
}
QUERY_WORDS = {"low": "ge", "high": "le", "above": "gt", "below": "lt", "max_length": "max_length"}


def query_of(name: str, kind: Any, default: Any, help: str, limits: Mapping[str, Any]) -> Parameter:
    """A parameter of a query; FastAPI has limits for plain numbers and texts only."""
    is_plain = kind not in (IntOrAuto, FloatOrAuto)
    words = {QUERY_WORDS[key]: limits[key] for key in QUERY_WORDS if is_plain and key in limits}
    kind = Annotated[kind, Query(description=help, **words)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def query_parameters() -> list[Parameter]:
    """The fields of `RunConfig`: fills are called colors, a grid has rows and columns."""
    found = []
    for name, field in FIELDS.items():
        default: Any = field.default
        help, limits = field.metadata["help"], OWN_LIMITS.get(name, field.metadata)
        if name == "grid":
            found.append(query_of("rows", int, default[0], "Cells down", limits))
            found.append(query_of("columns", int, default[1], "Cells across", limits))
        elif name == "fills":
            found.append(query_of("colors", str, default, help, limits))
        else:
            kind: Any = str | None if name == "target" else field.type
            found.append(query_of(name, kind, default, help, limits))
    return found


def config_of(**given: Any) -> RunConfig:
    colors, rows, columns = given.pop("colors"), given.pop("rows"), given.pop("columns")
    if not colors.strip(" ,"):
        raise InputError("No color was chosen: choose at least one to paint with.")
    for name in ("n_masks", "mask_prob"):
        low, high = OWN_LIMITS[name]["low"], OWN_LIMITS[name]["high"]
        if given[name] != "auto" and not low <= given[name] <= high:
            raise InputError(f"{name} is {given[name]}, but {low:,} to {high:,} or auto is needed.")
    return make_config(fills=colors, grid=(rows, columns), **given)


config_of.__signature__ = Signature(query_parameters())  # type: ignore[attr-defined]
TheConfig = Annotated[RunConfig, Depends(config_of)]
