"""`mcrise serve`: the live page, for this machine alone unless a host is given."""

import errno
import secrets
import signal
from collections.abc import Sequence
from pathlib import Path
from signal import SIGINT, SIGTERM
from socket import AF_INET, AF_INET6, IPPROTO_TCP, SO_REUSEADDR, SOL_SOCKET, TCP_NODELAY, socket
from typing import Any, Self

import click

from ..audits.class_stats import read_stats
from ..batch.storage import Storage
from ..errors import InputError
from ..models import load_model
from ..models.model import Model
from .options import (
    MODEL_HELP,
    Command,
    advanced,
    model_options,
    option,
    save_every_option,
)
from .output import echo

GRACE = 10  # seconds for what was asked before the end


@click.command(cls=Command)
@option("--model", "specs", multiple=True, default=["demo"], show_default=True,
        help=MODEL_HELP + " Repeat to offer several.")  # fmt: skip
@option("--port", type=click.IntRange(0, 65535), default=8700, show_default=True,
        help="Port of the page; 0 for any that is free.")  # fmt: skip
@option("--host", metavar="ADDRESS",
        help="Let other machines in at this address; they need the token that is printed.",
        )  # fmt: skip
@option("--data", type=click.Path(path_type=Path), default="mcrise-data", show_default=True,
        help="Folder of the jobs and their results.")  # fmt: skip
@option("--audit", metavar="FOLDER", help="Also show this audit, and open its images.")
@save_every_option
@advanced("--keep-gb", type=click.FloatRange(0, min_open=True), default=20.0, show_default=True,
          help="Refuse new jobs while those in --data take more gigabytes than this.",
          )  # fmt: skip
@model_options
def serve(
    specs: tuple[str, ...],
    port: int,
    host: str | None,
    data: Path,
    audit: str | None,
    save_every: float,
    keep_gb: float,
    settings: dict[str, Any],
) -> None:
    """Show maps in the browser while they are computed.

    Options about the model, such as --softmax, apply to every --model.
    """
    try:
        import scipy.linalg  # noqa: F401  brings a second BLAS, to be limited too
        import uvicorn  # noqa: F401
        from threadpoolctl import threadpool_limits

        from ..server.app import create_app
    except ModuleNotFoundError as error:
        raise InputError(
            f"The page needs {error.name}, which is not installed: pip install fastapi uvicorn."
        ) from None
    from ..server.job_queue import JobQueue, warm_up
    from ..server.quota import GIGABYTE

    shown = None if audit is None else Storage(audit)
    if shown is not None:
        read_stats(shown)  # refuse what is no finished audit before loading models
    with _listening(host or "127.0.0.1", port) as door:  # first: models take a while
        models = load_models(specs, settings)
        most_bytes = int(keep_gb * GIGABYTE)
        with Ending() as ending:
            jobs = JobQueue(data, models, checkpoint_seconds=save_every, most_bytes=most_bytes)
            # The model has the cores; estimates that fight it for them take a hundred times longer.
            threadpool_limits(1, user_api="blas")
            for name in models:
                jobs.call(name, warm_up)
            token = secrets.token_urlsafe(24) if host else None
            try:
                app = create_app(jobs, host, token, shown)
                answer(app, door, host, token, bool(shown), ending)
            finally:
                jobs.close()


class Ending:
    """Ctrl-C and SIGTERM, which end the server and are raised when it has ended.

    Raised at once, in the middle of an import, they would leave its lock held for good and the
    thread of the model waiting for it.
    """

    def __init__(self) -> None:
        self.signals: list[int] = []
        self.server: Any = None  # once there is one

    def __enter__(self) -> Self:
        self.before = {number: signal.signal(number, self.take) for number in (SIGINT, SIGTERM)}
        return self

    def take(self, number: int, frame: object) -> None:
        self.signals.append(number)
        if self.server is not None:
            self.server.should_exit = True

    def __exit__(self, *raised: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        if self.signals:
            signal.raise_signal(self.signals[0])


def load_models(specs: Sequence[str], settings: dict[str, Any]) -> dict[str, Model]:
    """The models by the names that requests and stored jobs call them."""
    named: dict[str, str] = {}
    for spec in specs:
        name = Path(spec).stem
        if name in named:
            raise InputError(
                f"The models {named[name]} and {spec} would both be called {name!r} on the page: "
                "rename one of the files, or serve them apart."
            )
        named[name] = spec
    return {name: load_model(spec, **settings) for name, spec in named.items()}


def _listening(host: str, port: int) -> socket:
    """A socket at which whoever comes waits to be answered."""
    door = socket(AF_INET6 if ":" in host else AF_INET)
    try:
        door.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        # Of a socket of ours asyncio does not see that it is TCP: a small answer, whose head and
        # body are two packets, would wait 40 ms until the first is acknowledged.
        door.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        door.bind((host, port))
        door.listen()
    except (OSError, UnicodeError) as error:  # the latter of a name that cannot be one
        door.close()
        taken = getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES)
        remedy = "another --port, or 0 for any that is free" if taken else "another --host"
        raise InputError(
            f"The page cannot be served at {host}, port {port} "
            f"({getattr(error, 'strerror', None) or 'no such host'}): give {remedy}."
        ) from None
    return door


def answer(
    app: Any, door: socket, host: str | None, token: str | None, audited: bool, ending: Ending
) -> None:
    """Tell the address, with the token where other machines may ask, and answer until Ctrl-C."""
    import uvicorn

    from ..server.security import Connection, limit_logs

    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=GRACE,
    )
    limit_logs()
    shown = f"[{host}]" if host and ":" in host else host or "127.0.0.1"
    address = f"http://{shown}:{door.getsockname()[1]}/"
    echo(f"Open {address}{f'?token={token}' if token else ''}   (Ctrl-C ends it)")
    if audited:
        echo(f"The audit is at {address}audit.html")
    ending.server = server = uvicorn.Server(config)
    if not ending.signals:
        server.run([door])
