"""Routes of downloads: the run, the figure and the report of a job."""

import os
import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from ...estimators import DEFAULT
from ...explanation_file import explanation_bytes
from ...output.html import Chapter, render
from ...output.plots import figure_png
from ...output.run_folder import slug
from ..dependencies import BYTES, PNG, EstimatorName, JobId, Target, TheExplanation, TheJobs
from ..job_queue import JobQueue

router = APIRouter(prefix="/api/jobs/{id}")
PART = 2**20  # bytes sent at once


@router.get("/run.npz", responses=BYTES, response_class=Response)
def npz(id: JobId, jobs: TheJobs) -> Response:
    """The run, as `mcrise.load` reads it."""
    name = f"{stem(jobs, id)}.npz"
    try:
        file = jobs.job_files.record_path(id).open("rb")
    except FileNotFoundError:  # of a job that runs and has not been saved yet
        content = explanation_bytes(jobs.explanation(id))
        return attached(content, name, "application/octet-stream")
    # What is open stays as it is, though the file is replaced by the next or deleted.
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "content-length": str(os.fstat(file.fileno()).st_size),
    }
    return StreamingResponse(parts(file), headers=headers, media_type="application/octet-stream")


def parts(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while part := file.read(PART):
            yield part


@router.get("/maps.png", responses=PNG, response_class=Response)
def maps_png(
    id: JobId,
    explanation: TheExplanation,
    jobs: TheJobs,
    target: Target = None,
    estimator: EstimatorName = DEFAULT,
) -> Response:
    """The maps as a picture."""
    maps = explanation.maps(target, estimator)
    name = stem(jobs, id, maps.label, "maps")
    return attached(figure_png(maps.plot()), f"{name}.png", "image/png")


@router.get("/report.html", response_class=Response)
def report(
    id: JobId,
    explanation: TheExplanation,
    jobs: TheJobs,
    target: Target = None,
    estimator: EstimatorName = DEFAULT,
) -> Response:
    """A self-contained report."""
    name = jobs.get(id).job_request.name
    text = render([Chapter(name, explanation, [target])], estimator)
    name = stem(jobs, id, explanation.label(explanation.resolve(target)), "report")
    return attached(text.encode(), f"{name}.html", "text/html; charset=utf-8")


def stem(jobs: JobQueue, id: str, *words: str) -> str:
    """What to call a file of a job: after its picture and model, and what it shows."""
    job_request = jobs.get(id).job_request
    picture = PurePosixPath(job_request.name).stem
    # A header is Latin-1 at most, and a name that any system takes.
    plain = (unicodedata.normalize("NFKD", one) for one in (picture, job_request.model, *words))
    return "-".join(slug(one.encode("ascii", "ignore").decode()) for one in plain)


def attached(content: bytes, name: str, kind: str) -> Response:
    disposition = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=disposition)
