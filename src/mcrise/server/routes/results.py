"""Routes of results: maps, findings, their tests, and answers to repainted pictures."""

import asyncio
import hashlib
import io
from concurrent.futures import Future
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from numpy.typing import NDArray
from PIL import Image
from starlette.concurrency import run_in_threadpool

from ...audits.measure import repaint_sentence
from ...audits.run_diff import maps_of_difference
from ...batch.datasets import spelled
from ...errors import InputError
from ...estimators import DEFAULT
from ...explanation import Explanation
from ...fills import Fill, parse
from ...images import (
    SMALLEST_SIDE,
    Geometry,
    downsample,
    downsampling_step,
    png,
    whole_pixels,
)
from ...interpretation.findings import Findings
from ...interpretation.repaints import Repaint, Stroke
from ...interpretation.trial_calls import answers_saved
from ...interpretation.trials import Intervention, try_strokes
from ...models.model import Model
from ...output.figure_tests import Shot, Shots
from ...output.html import data_url
from ...output.web_maps import findings_json, pack, swatch
from ..comparison import check_comparable, described, why_not
from ..image_decoder import DECODER, LONGEST_SIDE
from ..parameters import (
    BODY,
    BYTES,
    JPEG,
    PNG,
    EstimatorName,
    JobId,
    Less,
    Target,
    TheCache,
    TheExplanation,
    TheJobs,
)
from ..schemas import OPEN, JobRequest
from ..uploads import MOST_FILLS, body_of, rendering

router = APIRouter(prefix="/api/jobs/{id}")
PAINTS = "^#[0-9a-f]{6}(,#[0-9a-f]{6}){0,7}$"
PHOTO, SHOT = 384, 96  # pixels of the longer side of a photograph, and about those of a test
KEPT = {"cache-control": "private, max-age=86400"}  # of a job's picture, which never changes


@router.get("/run")
def about_explanation(id: JobId, explanation: TheExplanation, jobs: TheJobs) -> dict[str, Any]:
    """Classes, fills, size and prediction; which picture it is and what of it the model gets."""
    job_request = jobs.get(id).job_request
    model = jobs.models.get(job_request.model)
    truth = truth_of(job_request.name, explanation)
    view = explanation.view
    return {
        "size": list(explanation.plan.size),
        "picture": hashlib.sha256(jobs.upload(id)).hexdigest(),
        "original_size": list(view.original_size),
        "box": list(view.box),
        "truth": truth,
        "fills": [
            {"name": fill.name, "swatch": swatch(fill, explanation.view.pixels)}
            for fill in explanation.plan.fills
        ],
        "labels": [explanation.label(k) for k in range(explanation.n_classes)],
        "predicted": [{"target": best.target, "score": best.score} for best in explanation.top(5)],
        "kind": explanation.kind,
        "notes": list(dict.fromkeys((*explanation.notes, *(model.notes if model else ())))),
        "grid": list(explanation.plan.grid),
        "mask_prob": explanation.plan.mask_prob,
        "seed": explanation.plan.seed,
    }


@router.get("/image.png", responses=PNG, response_class=Response)
def image(id: JobId, jobs: TheJobs) -> Response:
    """The picture as the model is shown it."""
    return Response(png(jobs.view(id).pixels), media_type="image/png", headers=KEPT)


@router.get("/photo.jpg", responses=JPEG, response_class=Response)
def photo(id: JobId, explanation: TheExplanation, jobs: TheJobs) -> Response:
    """The whole picture as it was sent, small."""
    rows, columns = explanation.view.original_size
    shrink = min(1.0, PHOTO / max(rows, columns))
    size = max(SMALLEST_SIDE, round(rows * shrink)), max(SMALLEST_SIDE, round(columns * shrink))
    view = DECODER.view(jobs.upload(id), Geometry(size))
    return Response(jpeg(view.pixels), media_type="image/jpeg", headers=KEPT)


def jpeg(pixels: NDArray[Any]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(whole_pixels(pixels)).save(out, "JPEG", quality=85)
    return out.getvalue()


@router.get("/fills/{k}", responses=PNG, response_class=Response)
def fill(
    id: JobId,
    explanation: TheExplanation,
    result_cache: TheCache,
    k: Annotated[int, InPath(ge=0, lt=MOST_FILLS)],
) -> Response:
    """What a place looks like when it is painted with fill k."""
    if k >= explanation.plan.n_fills:
        raise HTTPException(404, f"The job has {explanation.plan.n_fills} fills.")
    painted = result_cache.get(
        (id, "fill", k), 0, lambda: png(rendering(explanation.plan.fills[k], explanation.view))
    )
    return Response(painted, media_type="image/png", headers=KEPT)


@router.get("/maps", responses=BYTES, response_class=Response)
def maps(
    id: JobId,
    explanation: TheExplanation,
    jobs: TheJobs,
    result_cache: TheCache,
    target: Target = None,
    against: Target = None,
    estimator: EstimatorName = DEFAULT,
    less: Less = None,
    less_target: Target = None,
) -> Response:
    """Maps for a program: see `mcrise.output.web_maps.pack`. With `against`, of the difference.

    With `less`, of the difference to a class of another job: as `mcrise diff` compares two runs.
    While a job runs they may be of half a second ago.
    """
    target = explanation.resolve(target)
    if less is not None:
        if against is not None:
            raise InputError("The maps of one class or of one job can be taken off, but not both.")
        other = jobs.explanation(less)
        theirs = other.resolve(less_target)
        check_comparable(explanation, other, target, theirs)
        names = names_of(jobs.get(id).job_request, jobs.get(less).job_request)
        content = result_cache.get(
            (id, "maps", target, less, theirs, estimator),
            (version_of(explanation), version_of(other)),
            lambda: packed_difference(explanation, other, target, theirs, estimator, names),
            older=jobs.get(id).state in OPEN or jobs.get(less).state in OPEN,
        )
        return Response(content, media_type="application/octet-stream")
    content = result_cache.get(
        (id, "maps", target, against, estimator),
        version_of(explanation),
        lambda: packed(explanation, target, estimator, against),
        older=jobs.get(id).state in OPEN,
    )
    return Response(content, media_type="application/octet-stream")


@router.get("/comparable")
def comparable(
    explanation: TheExplanation,
    jobs: TheJobs,
    less: Annotated[str, Query(pattern="^[0-9a-f]{16}$", description="The other job")],
    target: Target = None,
    less_target: Target = None,
) -> dict[str, str]:
    """Why `/maps` has no difference of a class of this job and one of another; empty if it has."""
    other = jobs.explanation(less)
    theirs = other.resolve(less_target)
    return {"reason": why_not(explanation, other, explanation.resolve(target), theirs)}


def version_of(explanation: Explanation) -> tuple[int, float]:
    """Which masks an answer is of: a pilot's first may be of another `mask_prob` than the rest."""
    return explanation.n_masks, explanation.plan.mask_prob


def packed(
    explanation: Explanation, target: int, estimator: str, against: int | None = None
) -> bytes:
    """Maps with what chance alone would show in them, where zero is a value of its own."""
    maps = explanation.maps(target, estimator, against=against)
    chance = explanation.chance(maps) if maps.diverging else None
    about = None
    if against is not None:
        one, other = explanation.maps([target, against], estimator)
        about = described(one, other, maps, chance)
    return pack(maps, explanation.plan.grid, chance, about=about)


def names_of(one: JobRequest, other: JobRequest) -> tuple[str, str]:
    """What two jobs that are compared are called: their models, or else their pictures."""
    return (one.name, other.name) if one.model == other.model else (one.model, other.model)


def packed_difference(
    explanation: Explanation,
    other: Explanation,
    target: int,
    theirs: int,
    estimator: str,
    names: tuple[str, str],
) -> bytes:
    maps, chance = maps_of_difference(other, explanation, theirs, target, estimator)
    one, two = explanation.maps(target, estimator), other.maps(theirs, estimator)
    about = described(one, two, maps, chance, names)
    return pack(replace(maps, label="A − B"), explanation.plan.grid, chance, about=about)


@router.get("/findings")
def findings(
    id: JobId, explanation: TheExplanation, result_cache: TheCache, target: Target = None
) -> dict[str, Any]:
    """What the trials of a class found; regions as runs of pixels outside and inside, in turn."""
    index = explanation.resolve(target)
    log = explanation.trial_logs.get(index)
    if log is None or not log.finished:  # trials may be under way
        return {"target": index, "label": explanation.label(index), "tested": False}
    answer: dict[str, Any] = result_cache.get(
        (id, "findings", index, len(explanation.answers)),
        version_of(explanation),
        lambda: tested_json(explanation, explanation.findings_of(index)),
    )
    return answer


def tested_json(explanation: Explanation, findings: Findings) -> dict[str, Any]:
    """Findings with their regions, and the pictures of their tests."""
    content = findings_json(findings)
    shots = Shots(explanation, findings, explanation.maps(findings.target))
    for entry, finding in zip(content["findings"], findings, strict=True):
        made = shots.tests(finding) if finding.described else []
        entry["shots"] = [shot_json(shot) for shot in made if shot is not None]
    wanted = explanation.trial_logs[findings.target].wanted
    if wanted is not None:
        content["correction"] = (
            repaint_sentence(explanation, findings.counterfactual)
            if findings.counterfactual
            else f"No repaint that was tried makes the model say {explanation.label(wanted)!r}."
        )
    return {**content, "tested": True}


def shot_json(shot: Shot) -> dict[str, Any]:
    step = downsampling_step(shot.pixels.shape, SHOT)
    return {
        "title": shot.title,
        "score": shot.score,
        "answer": shot.answer,
        "decides": shot.decides,
        "change": shot.change,
        "picture": data_url(jpeg(downsample(shot.pixels, step)), "jpeg"),
    }


def truth_of(name: str, explanation: Explanation) -> int | None:
    """The class whose name the picture's folder has, as in `stop/0001.png`."""
    folder = spelled(PurePosixPath(name).parent.name)
    named = [c for c in range(explanation.n_classes) if spelled(explanation.label(c)) == folder]
    return named[0] if len(named) == 1 else None


@router.post("/trials")
async def trials(
    id: JobId,
    jobs: TheJobs,
    target: Target = None,
    keep: Annotated[bool, Query(description="False for findings so far, of a run that goes on")] = (
        True
    ),
) -> dict[str, Any]:
    """Search for the findings of a class and test them; answers as `GET /findings`.

    That knows them from then on, unless `keep` is false: then the run ends as if nobody had asked.
    Of a wrong answer, a repaint is also searched for that makes it right. Calls the model for what
    was not tried before.
    """

    def tried(model: Model) -> tuple[Explanation, Findings]:
        explanation = jobs.explanation(id)  # here, between two chunks: it has all masks so far
        truth = truth_of(jobs.get(id).job_request.name, explanation)
        wanted = None if truth == explanation.prediction.target else truth
        if not keep:
            explanation = apart(explanation)
            return explanation, explanation.findings_of(target, model, wanted=wanted)
        with answers_saved(explanation, lambda: jobs.keep_answers(id, explanation)):
            return explanation, explanation.findings_of(target, model, wanted=wanted)

    answer = jobs.call(jobs.get(id).job_request.model, tried)
    return await run_in_threadpool(tested_json, *await asyncio.wrap_future(answer))


def apart(explanation: Explanation) -> Explanation:
    """A copy whose trials are its own."""
    copy = replace(
        explanation,
        answers=dict(explanation.answers),
        repaints=dict(explanation.repaints),
        trial_logs=dict(explanation.trial_logs),
    )
    copy.recognised = explanation.recognised  # else the model is asked first whether it is the same
    return copy


# ---- what if


@router.post("/whatif", openapi_extra={"requestBody": {"required": True, **BODY}})
async def whatif(
    id: JobId,
    request: Request,
    jobs: TheJobs,
    target: Target = None,
    paints: Annotated[
        str | None, Query(pattern=PAINTS, description="Colors that follow the job's own fills")
    ] = None,
) -> dict[str, Any]:
    """Paint and ask again: the body has a byte per pixel, 0 to keep it, k for the k-th fill."""
    explanation = await run_in_threadpool(jobs.explanation, id)
    own = parse(paints, explanation.view.pixels) if paints else ()
    strokes = strokes_of(explanation, await body_of(request, LONGEST_SIDE**2), own)
    index = explanation.resolve(target)
    painted = Repaint(tuple(strokes))
    if strokes:
        answer: Future[Intervention] = jobs.call(
            jobs.get(id).job_request.model,
            lambda model: try_strokes(explanation, model, painted, index),
        )
        trial = await asyncio.wrap_future(answer)
    else:  # known without asking
        trial = Intervention(painted, index, explanation.untouched, explanation.untouched)
    return {"scores": trial.to_json(explanation)["scores"]}


def strokes_of(
    explanation: Explanation, painted: bytes, more: tuple[Fill, ...] = ()
) -> list[Stroke]:
    """What was painted on a run's image, one stroke for each fill that was used."""
    fills = (*explanation.plan.fills, *more)
    if len(painted) != explanation.plan.size[0] * explanation.plan.size[1]:
        raise InputError(f"{len(painted)} bytes came, but one per pixel is needed.")
    places = np.frombuffer(painted, np.uint8).reshape(explanation.plan.size)
    if places.max() > len(fills):
        raise InputError(f"Fill {places.max()} was used, but there are {len(fills)}.")
    return [
        Stroke(places == k, fill) for k, fill in enumerate(fills, start=1) if (places == k).any()
    ]
