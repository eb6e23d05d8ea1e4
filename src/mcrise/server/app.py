"""The page and its HTTP interface: what a browser or a script can ask of the jobs.

Everything from outside is checked: who asks (`security`), how much is sent (`uploads`) and what it
says (`dependencies`, `schemas`). A request names a job by an id made here and a model by the name
given at the start. No word of a request becomes a path or the address of a model.
"""

from fastapi import FastAPI, Request
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles

from .._version import VERSION
from ..batch.storage import Storage
from ..errors import InputError, McriseError
from ..output.html import WEB
from .cache import ResultCache
from .image_decoder import UploadRefused
from .job_queue import JobQueue, QueueFull
from .models import NotServed
from .quota import StorageFull
from .routes import ROUTERS
from .schemas import UnknownJob
from .security import AccessMiddleware
from .store import StorageError

STATUS: dict[type[Exception], int] = {
    UnknownJob: 404,
    NotServed: 409,
    QueueFull: 429,
    StorageError: 503,
    StorageFull: 507,
}
MOST_SUMMARIES = 2000  # in memory, a few kB each


def create_app(
    jobs: JobQueue, host: str | None = None, token: str | None = None, audit: Storage | None = None
) -> FastAPI:
    """The application over some jobs; `host` and `token` where other machines have access.

    `audit` is the folder of an audit to show too.
    """
    app = FastAPI(
        title="mcrise",
        version=VERSION,
        description="Which colors, where in an image, a model's decision depends on.",
        docs_url=None,  # these pages load scripts from elsewhere; /openapi.json is for tools
        redoc_url=None,
    )
    app.state.jobs, app.state.audit = jobs, audit
    app.state.result_cache, app.state.summaries = ResultCache(), ResultCache(MOST_SUMMARIES)
    app.add_middleware(AccessMiddleware, host=host, token=token)
    app.add_exception_handler(McriseError, _refuse)
    for router in ROUTERS:
        app.include_router(router)
    app.add_api_route("/", page, include_in_schema=False)
    # A first visit over a slow line: a third of the bytes.
    app.mount("/web", GZipMiddleware(StaticFiles(directory=WEB), compresslevel=6), name="web")
    return app


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer with one sentence: a mistake of the client, or a failure of the model."""
    status = STATUS.get(type(error), 400 if isinstance(error, InputError) else 502)
    status = error.status if isinstance(error, UploadRefused) else status
    return JSONResponse({"detail": str(error)}, status)


async def page() -> FileResponse:
    return FileResponse(WEB / "index.html")
