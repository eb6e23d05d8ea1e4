"""Taking home: the files that a job leaves to whoever asked for it."""

import os
import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from ..archive import record_bytes
from ..estimators import DEFAULT
from ..folder import slug
from ..plots import figure_png
from ..report import Chapter, render
from .jobs import Jobs
from .parameters import BYTES, PNG, EstimatorName, JobId, Target, TheJobs, TheRecord

router = APIRouter(prefix="/api/jobs/{id}")
PART = 2**20  # bytes sent at once


@router.get("/run.npz", responses=BYTES, response_class=Response)
def npz(id: JobId, jobs: TheJobs) -> Response:
    """The record, as `mcrise.load` reads it."""
    name = f"{stem(jobs, id)}.npz"
    try:
        file = jobs.cabinet.record_path(id).open("rb")
    except FileNotFoundError:  # of a job that runs and has not been saved yet
        content = record_bytes(jobs.record(id))
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
    record: TheRecord,
    jobs: TheJobs,
    target: Target = None,
    estimator: EstimatorName = DEFAULT,
) -> Response:
    """The maps as a picture."""
    maps = record.maps(target, estimator)
    name = stem(jobs, id, maps.label, "maps")
    return attached(figure_png(maps.plot()), f"{name}.png", "image/png")


@router.get("/report.html", response_class=Response)
def report(
    id: JobId,
    record: TheRecord,
    jobs: TheJobs,
    target: Target = None,
    estimator: EstimatorName = DEFAULT,
) -> Response:
    """A self-contained report."""
    name = jobs.get(id).order.name
    text = render([Chapter(name, record, [target])], estimator)
    name = stem(jobs, id, record.label(record.resolve(target)), "report")
    return attached(text.encode(), f"{name}.html", "text/html; charset=utf-8")


def stem(jobs: Jobs, id: str, *words: str) -> str:
    """What to call a file of a job: after its picture and model, and what it shows."""
    order = jobs.get(id).order
    picture = PurePosixPath(order.name).stem
    # A header is Latin-1 at most, and a name that any system takes.
    plain = (unicodedata.normalize("NFKD", one) for one in (picture, order.model, *words))
    return "-".join(slug(one.encode("ascii", "ignore").decode()) for one in plain)


def attached(content: bytes, name: str, kind: str) -> Response:
    disposition = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=disposition)
