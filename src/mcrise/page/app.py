"""The page and its HTTP interface: what a browser or a script may ask of the jobs.

Everything from outside is checked: who asks (`guard.py`), how much is sent and what it says
(`uploads.py`). A request names jobs by numbers of our own and models by the names given at start;
no word of it becomes a path or a model's address.
"""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from concurrent.futures import Future
from functools import cache
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool

from .. import fills as fill_kinds
from ..demo.signs import SIGNS
from ..errors import InputError, McriseError
from ..images import png
from ..model import Model
from ..reading import read
from ..record import DEFAULT, ESTIMATORS, Record
from ..report import WEB, Chapter, pack, reading_json, render, swatch
from ..trials import Stroke, subtract, try_out
from ..version import VERSION
from .guard import Guard
from .jobs import OPEN, Job, Jobs, Order, QueueFull, UnknownJob
from .shelf import Shelf
from .uploads import (
    LONGEST_SIDE,
    MOST_BYTES,
    MOST_FILLS,
    body_of,
    check_order,
    check_picture,
    rendering,
)

MOST_MASKS = 100_000
POLL_SECONDS = 0.1
# ---- what is made of a record


def told(jobs: Jobs, job: Job) -> dict[str, Any]:
    """How far a job has got."""
    waiting = jobs.queue()
    left = job.goal - job.n_masks
    return {
        "id": job.id,
        "name": job.order.name,
        "model": job.order.model,
        "state": job.state,
        "position": waiting.index(job) + 1 if job in waiting else None,
        "n_masks": job.n_masks,
        "goal": job.goal,
        "masks_per_second": job.speed,
        "seconds_left": left / job.speed if job.speed and job.state == "running" else None,
        "note": job.note,
        "created": job.created,
    }


def details(record: Record) -> dict[str, Any]:
    """What a page needs to know of a record besides its maps."""
    top = np.argsort(-record.untouched, kind="stable")[:5]
    return {
        "size": list(record.plan.size),
        "fills": [
            {"name": fill.name, "swatch": swatch(fill, record.view.pixels)}
            for fill in record.plan.fills
        ],
        "labels": [record.label(k) for k in range(record.n_classes)],
        "predicted": [{"target": int(k), "score": float(record.untouched[k])} for k in top],
        "kind": record.kind,
        "notes": list(record.view.notes),
    }


# ---- the application

JobId = Annotated[str, InPath(pattern="^[0-9a-f]{16}$")]
Target = Annotated[int | None, Query(ge=0, lt=10_000, description="Class; the top one if left out")]
Estimator = Annotated[str, Query(pattern=f"^({'|'.join(ESTIMATORS)})$")]
PNG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}}}
BYTES: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}


def create_app(jobs: Jobs, host: str | None = None, token: str | None = None) -> FastAPI:
    """The application over some jobs; `host` and `token` where other machines may ask."""
    app = FastAPI(
        title="mcrise",
        version=VERSION,
        description="Which colors, where in an image, a model's decision depends on.",
        docs_url=None,  # these pages load scripts from elsewhere; /openapi.json is for tools
        redoc_url=None,
    )
    app.add_middleware(Guard, host=host, token=token)
    shelf = Shelf()

    @app.exception_handler(McriseError)
    async def refuse(request: Request, error: Exception) -> JSONResponse:
        kinds: dict[type[Exception], int] = {UnknownJob: 404, QueueFull: 429}
        status = kinds.get(type(error), 400 if isinstance(error, InputError) else 502)
        return JSONResponse({"detail": str(error)}, status)

    # ---- asking

    @app.get("/api/about")
    async def about() -> dict[str, Any]:
        """What is served: models, signs, estimators, limits."""
        return {
            "version": VERSION,
            "models": [
                {"name": name, "labels": model.labels} for name, model in jobs.models.items()
            ],
            "signs": list(SIGNS),
            "estimators": list(ESTIMATORS),
            "default": DEFAULT,
            "palette": [
                {"name": fill.name, "swatch": "#{:02x}{:02x}{:02x}".format(*fill.rgb)}
                for fill in fill_kinds.CUBE8
            ],
            "most_bytes": MOST_BYTES,
            "n_images": jobs.n_images,
        }

    @app.get("/api/signs/{name}", responses=PNG, response_class=Response)
    def sign(name: str) -> Response:
        """One of the drawn signs, as PNG."""
        return Response(sign_png(name), media_type="image/png")

    @app.post(
        "/api/jobs",
        status_code=201,
        openapi_extra={"requestBody": {"content": {"application/octet-stream": {
            "schema": {"type": "string", "format": "binary"}}}}},
    )  # fmt: skip
    async def submit(
        request: Request,
        sign: Annotated[str | None, Query(description="A drawn sign instead of a body")] = None,
        name: Annotated[str, Query(max_length=200, description="What to call the picture")] = "",
        model: Annotated[str | None, Query(description="One of those served")] = None,
        colors: Annotated[str, Query(max_length=500)] = "rgbwk",
        n_masks: Annotated[
            int | Literal["auto"], Query(description=f"Up to {MOST_MASKS:,}, or auto")
        ] = 1000,
        mask_prob: Annotated[float, Query(ge=0.01, le=0.99)] = 0.5,
        rows: Annotated[int, Query(ge=1, le=32, description="Cells down")] = 8,
        columns: Annotated[int, Query(ge=1, le=32, description="Cells across")] = 8,
        seed: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    ) -> dict[str, Any]:
        """Explain the picture in the body (the bytes of a PNG, JPEG, WebP, GIF or BMP file)."""
        content = await body_of(request, MOST_BYTES)
        chosen = next(iter(jobs.models)) if model is None else model
        if chosen not in jobs.models:
            raise HTTPException(404, f"The models here are {', '.join(jobs.models)}.")
        if n_masks != "auto" and not 1 <= n_masks <= MOST_MASKS:
            raise InputError(f"n_masks is {n_masks}, but 1 to {MOST_MASKS:,} or auto is needed.")
        if sign is not None:
            content = await run_in_threadpool(sign_png, sign)
        order = Order(
            chosen, name or sign or "picture", colors, n_masks, mask_prob, (rows, columns), seed
        )

        def take() -> Job:
            check_picture(content)
            check_order(order, jobs.models[chosen].view(content))
            return jobs.submit(order, content)

        return told(jobs, await run_in_threadpool(take))

    @app.get("/api/jobs")
    async def list_jobs() -> list[dict[str, Any]]:
        """All jobs, newest first."""
        return [told(jobs, job) for job in jobs.all()]

    @app.get("/api/jobs/{id}")
    async def status(id: JobId) -> dict[str, Any]:
        """How far a job has got."""
        return told(jobs, jobs.get(id))

    @app.post("/api/jobs/{id}/do/{action}")
    def steer(id: JobId, action: Literal["pause", "resume", "stop"]) -> dict[str, Any]:
        """Pause, resume or stop a job, within a chunk."""
        return told(jobs, getattr(jobs, action)(id))

    @app.post("/api/jobs/{id}/more/{n_masks}")
    def more(id: JobId, n_masks: Annotated[int, InPath(ge=1, le=MOST_MASKS)]) -> dict[str, Any]:
        """Ask for more masks than it has."""
        if jobs.get(id).goal + n_masks > MOST_MASKS:
            raise InputError(f"A job has at most {MOST_MASKS:,} masks.")
        return told(jobs, jobs.more(id, n_masks))

    @app.delete("/api/jobs/{id}", status_code=204)
    def delete(id: JobId) -> None:
        """Cancel a job and forget it."""
        jobs.delete(id)

    @app.get(
        "/api/jobs/{id}/events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}}},
    )
    async def events(id: JobId) -> StreamingResponse:
        """Progress as server-sent events, each as `GET /api/jobs/{id}`, until it rests."""
        jobs.get(id)
        return StreamingResponse(follow(jobs, id), media_type="text/event-stream")

    # ---- looking

    def record_of(id: JobId) -> Record:
        return jobs.record(id)

    Known = Annotated[Record, Depends(record_of)]

    def compared(record: Record, target: int | None, against: int | None) -> tuple[Record, int]:
        """The record and class to map; of two classes, their difference."""
        index = record.resolve(target)
        if against is None:
            return record, index
        return subtract(record, index, record.resolve(against)), 0

    @app.get("/api/jobs/{id}/record")
    def about_record(record: Known) -> dict[str, Any]:
        """Classes, fills, size and prediction."""
        return details(record)

    @app.get("/api/jobs/{id}/image.png", responses=PNG, response_class=Response)
    def image(id: JobId) -> Response:
        """The picture as the model is shown it."""
        job = jobs.get(id)
        view = jobs.models[job.order.model].view(jobs.upload_path(job).read_bytes())
        return Response(png(view.pixels), media_type="image/png")

    @app.get("/api/jobs/{id}/fills/{k}", responses=PNG, response_class=Response)
    def fill(record: Known, k: Annotated[int, InPath(ge=0, lt=MOST_FILLS)]) -> Response:
        """What a place looks like when it is painted with fill k."""
        if k >= record.plan.n_fills:
            raise HTTPException(404, f"The job has {record.plan.n_fills} fills.")
        pixels = rendering(record.plan.fills[k], record.view)
        return Response(png(pixels), media_type="image/png")

    @app.get("/api/jobs/{id}/maps", responses=BYTES, response_class=Response)
    def maps(
        id: JobId,
        record: Known,
        target: Target = None,
        against: Target = None,
        estimator: Estimator = DEFAULT,
    ) -> Response:
        """Maps for a program: see `mcrise.report.pack`. With `against`, of the difference."""

        def make() -> bytes:
            source, index = compared(record, target, against)
            return pack(source.maps(index, estimator))

        content = shelf.get((id, "maps", target, against, estimator), record.n_masks, make)
        return Response(content, media_type="application/octet-stream")

    @app.get("/api/jobs/{id}/reading")
    def reading(
        id: JobId,
        record: Known,
        target: Target = None,
        against: Target = None,
        estimator: Estimator = DEFAULT,
    ) -> dict[str, Any]:
        """The maps in sentences; regions as runs of pixels outside and inside, in turn."""
        per_fill = estimator if estimator not in ("rise", "debiased") else DEFAULT

        def make() -> dict[str, Any]:
            source, index = compared(record, target, against)
            return reading_json(read(source, index, per_fill))

        key = (id, "reading", target, against, per_fill)
        answer: dict[str, Any] = shelf.get(key, record.n_masks, make)
        return answer

    @app.post(
        "/api/jobs/{id}/whatif",
        openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {
            "schema": {"type": "string", "format": "binary"}}}}},
    )  # fmt: skip
    async def whatif(id: JobId, request: Request, target: Target = None) -> dict[str, Any]:
        """Paint and ask again: the body has a byte per pixel, 0 to keep it, k for the k-th fill."""
        record = await run_in_threadpool(jobs.record, id)
        painted = await body_of(request, LONGEST_SIDE**2)
        if len(painted) != record.plan.size[0] * record.plan.size[1]:
            raise InputError(f"{len(painted)} bytes came, but one per pixel is needed.")
        places = np.frombuffer(painted, np.uint8).reshape(record.plan.size)
        if places.max() > record.plan.n_fills:
            raise InputError(f"Fill {places.max()} was used, but there are {record.plan.n_fills}.")
        strokes = [
            Stroke(places == k, fill)
            for k, fill in enumerate(record.plan.fills, start=1)
            if (places == k).any()
        ]
        index = record.resolve(target)

        def ask(model: Model) -> list[dict[str, Any]]:
            after = record.untouched
            if strokes:
                after = try_out(record, model, [strokes], index)[0].after
            top = np.argsort(-np.maximum(record.untouched, after), kind="stable")[:5]
            return [
                {"target": c, "label": record.label(c), "before": float(record.untouched[c]),
                 "after": float(after[c])}
                for c in dict.fromkeys([index, *(int(k) for k in top)])
            ]  # fmt: skip

        answer: Future[list[dict[str, Any]]] = jobs.call(jobs.get(id).order.model, ask)
        return {"scores": await asyncio.wrap_future(answer)}

    # ---- taking home

    @app.get("/api/jobs/{id}/run.npz", responses=BYTES, response_class=Response)
    def npz(id: JobId, record: Known) -> Response:
        """The record, as `mcrise.load` reads it."""
        path = jobs.record_path(jobs.get(id))
        if not path.exists():
            record.save(path)
        return FileResponse(path, filename="run.npz", media_type="application/octet-stream")

    @app.get("/api/jobs/{id}/maps.png", responses=PNG, response_class=Response)
    def maps_png(record: Known, target: Target = None, estimator: Estimator = DEFAULT) -> Response:
        """The maps as a picture."""
        buffer = io.BytesIO()
        record.maps(record.resolve(target), estimator).plot().savefig(buffer)
        return attached(buffer.getvalue(), "maps.png", "image/png")

    @app.get("/api/jobs/{id}/report.html", response_class=Response)
    def report(
        id: JobId, record: Known, target: Target = None, estimator: Estimator = DEFAULT
    ) -> Response:
        """A self-contained report."""
        name = jobs.get(id).order.name
        text = render([Chapter(name, record, [target])], estimator)
        return attached(text.encode(), "report.html", "text/html; charset=utf-8")

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(WEB / "index.html")

    app.mount("/web", StaticFiles(directory=WEB), name="web")
    return app


@cache
def sign_png(name: str) -> bytes:
    """A drawn sign as a file."""
    if name not in SIGNS:
        raise HTTPException(404, f"There is no such sign: there are {', '.join(SIGNS)}.")
    return png(np.asarray(SIGNS[name]()))


def attached(content: bytes, name: str, kind: str) -> Response:
    disposition = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=disposition)


async def follow(jobs: Jobs, id: str) -> AsyncIterator[str]:
    """Send the state of a job whenever it has changed, until it neither runs nor waits."""
    before: dict[str, Any] = {}
    quiet = 0.0
    while True:
        try:
            now = told(jobs, jobs.get(id))
        except UnknownJob:
            yield "event: gone\ndata: {}\n\n"
            return
        if now != before:
            yield f"event: progress\ndata: {json.dumps(now)}\n\n"
            before, quiet = now, 0.0
        elif quiet >= 10:
            yield ": still here\n\n"
            quiet = 0.0
        if now["state"] not in OPEN:  # as it was told: the job itself may be further by now
            yield "event: rest\ndata: {}\n\n"
            return
        await asyncio.sleep(POLL_SECONDS)
        quiet += POLL_SECONDS
