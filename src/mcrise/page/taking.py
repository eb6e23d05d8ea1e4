"""Taking home: the files that a job leaves to whoever asked for it."""

import io

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse

from ..estimators import DEFAULT
from ..report import Chapter, render
from .parameters import BYTES, PNG, EstimatorName, JobId, Target, TheJobs, TheRecord

router = APIRouter(prefix="/api/jobs/{id}")


@router.get("/run.npz", responses=BYTES, response_class=Response)
def npz(id: JobId, record: TheRecord, jobs: TheJobs) -> Response:
    """The record, as `mcrise.load` reads it."""
    path = jobs.record_path(jobs.get(id))
    if not path.exists():
        record.save(path)
    return FileResponse(path, filename="run.npz", media_type="application/octet-stream")


@router.get("/maps.png", responses=PNG, response_class=Response)
def maps_png(
    record: TheRecord, target: Target = None, estimator: EstimatorName = DEFAULT
) -> Response:
    """The maps as a picture."""
    buffer = io.BytesIO()
    record.maps(target, estimator).plot().savefig(buffer)
    return attached(buffer.getvalue(), "maps.png", "image/png")


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
    return attached(text.encode(), "report.html", "text/html; charset=utf-8")


def attached(content: bytes, name: str, kind: str) -> Response:
    disposition = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=disposition)
