"""Routes of an audit: its statistics, its page, and its images opened with their runs."""

import hashlib
import json
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Header, HTTPException, Request
from fastapi import Path as InPath
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from ...audits.audit_page import POLICY, anchor, render
from ...audits.class_data import audit_fills
from ...audits.class_stats import FILE, read_stats
from ...audits.figures_json import reporting_damage, to_jsonable
from ...audits.tables import NOTE, read_asked, read_names
from ...batch.storage import Storage
from ...config import RunConfig
from ...errors import InputError
from ...explanation import Explanation
from ...explanation_file import parse_explanation
from ...output.web_maps import swatch
from ..job_queue import JobQueue
from ..parameters import TheCache, TheJobs
from ..quota import size_text
from ..schemas import JobRequest, UnknownJob

router = APIRouter()
BACK = '<p class="back"><a href="/#overview">← All images in the workbench</a></p>'
MOST_BYTES = 10**9  # of a file that is read whole


async def audit_of(request: Request) -> Storage:
    folder: Storage | None = request.app.state.audit
    if folder is None:
        raise UnknownJob("No audit is being served: start the server with --audit.")
    return folder


TheAudit = Annotated[Storage, Depends(audit_of)]


def check_files(audit: Storage) -> None:
    """Refuse an audit whose files are gone, are no files, or are larger than any audit's."""
    for name in (NOTE, FILE):
        if not (audit / name).is_file():  # a FIFO would be waited for
            raise UnknownJob(f"The audit has no file {name} any more: audit again.")
        n_bytes = (audit / name).n_bytes()
        if n_bytes > MOST_BYTES:
            raise InputError(
                f"{name} of the audit takes {size_text(n_bytes)}, but the page reads at most "
                f"{size_text(MOST_BYTES)}: audit fewer images or classes."
            )


@router.get("/api/audit")
def figures(audit: TheAudit) -> dict[str, Any]:
    """Classes, how often they are right, and the mean effect of each fill."""
    check_files(audit)
    asked, made = read_asked(audit), read_stats(audit)
    blank = np.full((8, 8, 3), 128, np.uint8)
    with reporting_damage(audit):
        fills = [{"name": fill.name, "swatch": swatch(fill, blank)} for fill in audit_fills(asked)]
        classes = [
            {
                "target": one.target,
                "label": one.label,
                "anchor": anchor(one),
                "n": one.n,
                "accuracy": one.accuracy.value if one.accuracy else None,
                "color_share": one.color_share.value if one.color_share else None,
                "effects": one.mean.mean(axis=(1, 2)).tolist(),
                "findings": [finding.sentence for finding in one.findings],
            }
            for one in made.classes
        ]
    answer: dict[str, Any] = to_jsonable(
        {"name": asked.title, "page": "/audit.html", "fills": fills, "classes": classes}
    )
    return answer


@router.get("/audit.html", response_class=HTMLResponse)
def page(audit: TheAudit, result_cache: TheCache) -> HTMLResponse:
    """The page of the audit, where images with runs open in the workbench."""

    def link(number: int) -> str | None:
        return f"/audit/{number}" if run_file(audit, number).is_file() else None

    check_files(audit)
    with reporting_damage(audit):
        version = hashlib.sha256(b"".join((audit / name).read_bytes() for name in (NOTE, FILE)))
    text = result_cache.get(("audit", "page"), version.digest(), lambda: render(audit, link))
    text = text.replace("<header>", f"<header>{BACK}", 1)
    return HTMLResponse(
        text, headers={"content-security-policy": f"{POLICY}; frame-ancestors 'none'"}
    )


@router.get("/audit/{number}", response_class=RedirectResponse, status_code=303)
async def open_image(
    number: Annotated[int, InPath(ge=0, lt=10**9)],
    audit: TheAudit,
    jobs: TheJobs,
    sec_fetch_site: Annotated[str, Header(include_in_schema=False)] = "none",
) -> str:
    """Put the run of an image among the jobs, once, and go there."""
    if sec_fetch_site not in ("none", "same-origin"):  # a link elsewhere must not fill the list
        raise HTTPException(403, "Another site's page leads here: open it from /audit.html.")
    return f"/#{await run_in_threadpool(adopted, audit, number, jobs)}"


def adopted(audit: Storage, number: int, jobs: JobQueue) -> str:
    """The job that an image of the audit is."""
    file = run_file(audit, number)
    if not file.is_file():
        raise UnknownJob(
            f"The audit has no run of image {number}: audit with --keep-runs to open images."
        )
    with reporting_damage(audit):
        n_bytes = file.n_bytes()
        if n_bytes > MOST_BYTES:
            raise InputError(
                f"The run of image {number} takes {size_text(n_bytes)}, but the page opens at most "
                f"{size_text(MOST_BYTES)}: read it with mcrise.load."
            )
        content = file.read_bytes()
        explanation = parse_explanation(content)
        name = read_names(json.loads((audit / NOTE).read_text()))[number]
    id = hashlib.sha256(content).hexdigest()[:16]  # an audit made again has others
    jobs.adopt(id, order_of(explanation, name.rpartition("/")[2], jobs), explanation)
    return id


def run_file(audit: Storage, number: int) -> Storage:
    return audit / f"runs/{number:06d}.npz"


def order_of(explanation: Explanation, name: str, jobs: JobQueue) -> JobRequest:
    """What was asked, of the model that is the run's own if it is served."""
    served = [name for name, model in jobs.models.items() if model.identity == explanation.model]
    plan = explanation.plan
    config = RunConfig(plan.fills, plan.grid, plan.mask_prob, plan.seed, explanation.n_masks,
                  batch_size=explanation.batch_size)  # fmt: skip
    return JobRequest(served[0] if served else explanation.model, name, config)
