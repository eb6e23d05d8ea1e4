"""Routes of downloads: the run, the figure and the report of a job."""

import os
import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from ...audits.run_diff import maps_of_difference
from ...estimators import DEFAULT
from ...explanation_file import explanation_bytes
from ...output.figure import plot_explanation
from ...output.html import Chapter, render
from ...output.plots import figure_png, plot_maps
from ...output.run_folder import slug
from ..comparison import check_comparable
from ..job_queue import JobQueue
from ..parameters import BYTES, PNG, EstimatorName, JobId, Less, Target, TheExplanation, TheJobs

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
    against: Target = None,
    less: Less = None,
    less_target: Target = None,
) -> Response:
    """The maps as a picture; with `against` or `less`, those of both and the difference."""
    maps = explanation.maps(target, estimator)
    name = stem(jobs, id, maps.label, "maps")
    rows, names = [maps], None
    if less is not None:
        other = jobs.explanation(less)
        theirs = other.maps(less_target, estimator)
        check_comparable(explanation, other, maps.target, theirs.target)
        difference, chance = maps_of_difference(
            other, explanation, theirs.target, maps.target, estimator
        )
        if chance is not None:
            difference = difference.beside(chance)
        rows += [theirs, difference]
        names = [f"A: {stem(jobs, id)}", f"B: {stem(jobs, less)}", "A − B"]
    elif against is not None:
        rows += [
            explanation.maps(against, estimator),
            explanation.maps(target, estimator, against=against),
        ]
    return attached(figure_png(plot_maps(rows, names)), f"{name}.png", "image/png")


@router.get("/figure.png", responses=PNG, response_class=Response)
def figure(
    id: JobId, explanation: TheExplanation, jobs: TheJobs, target: Target = None
) -> Response:
    """The figure of a class: its maps, and the tests of its findings where it was tested."""
    index = explanation.resolve(target)
    if index in explanation.trial_logs:
        drawn = plot_explanation(explanation, explanation.findings_of(index))
    else:
        drawn = explanation.maps(index).plot()
    name = stem(jobs, id, explanation.label(index), "figure")
    return attached(figure_png(drawn), f"{name}.png", "image/png")


@router.get("/report.html", response_class=Response)
def report(
    id: JobId,
    explanation: TheExplanation,
    jobs: TheJobs,
    target: Target = None,
    estimator: EstimatorName = DEFAULT,
    against: Target = None,
    less: Less = None,
    less_target: Target = None,
) -> Response:
    """A self-contained report; with `against` or `less`, of both that are compared."""
    targets = [target] if against is None else [target, against]
    chapters = [Chapter(jobs.get(id).job_request.name, explanation, targets)]
    if less is not None:
        name = jobs.get(less).job_request.name
        chapters.append(Chapter(name, jobs.explanation(less), [less_target]))
    text = render(chapters, estimator)
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
