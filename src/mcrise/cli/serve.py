"""`mcrise serve`: the live page, for this machine alone unless a host is given."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from ..loop import CHECKPOINT_SECONDS
from ..model import Model
from ..runtimes import load_model
from .options import model_options


@click.command()
@click.option("--model", "specs", multiple=True, default=["demo"], show_default=True,
              help="As for explain; repeat to offer several.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=8700, show_default=True)
@click.option("--host", help="Let other machines in at this address; they need the token printed.")
@click.option("--data", type=click.Path(path_type=Path), default="mcrise-data", show_default=True,
              help="Folder of the jobs and their records.")  # fmt: skip
@click.option("--checkpoint", type=float, default=CHECKPOINT_SECONDS, show_default=True,
              help="Save the record of a running job every so many seconds.")  # fmt: skip
@model_options
def serve(
    specs: tuple[str, ...],
    port: int,
    host: str | None,
    data: Path,
    checkpoint: float,
    settings: dict[str, Any],
) -> None:
    """Show maps in the browser as they sharpen.

    What is said of a model, such as --softmax, is said of every --model.
    """
    try:
        import scipy.linalg  # noqa: F401  brings a second BLAS, to be limited too
        import uvicorn  # noqa: F401
        from threadpoolctl import threadpool_limits

        from ..page.app import create_app
    except ImportError as error:
        raise InputError(
            f"The page needs {error.name}, which is not installed: pip install 'mcrise[web]'."
        ) from None
    from ..page.jobs import Jobs, warm_up

    models = load_models(specs, settings)
    jobs = Jobs(data, models, checkpoint_seconds=checkpoint)
    # The model has the cores; estimates that fight it for them take a hundred times longer.
    threadpool_limits(1, user_api="blas")
    for name in models:
        jobs.call(name, warm_up)
    token = secrets.token_urlsafe(24) if host else None
    os.environ.setdefault("MPLBACKEND", "Agg")
    try:
        listen(create_app(jobs, host, token), host, port, token)
    finally:
        jobs.close()


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


def listen(app: Any, host: str | None, port: int, token: str | None) -> None:
    """Tell the address, with the token where other machines may ask, and answer until Ctrl-C."""
    import uvicorn

    config = uvicorn.Config(
        app, host or "127.0.0.1", port, log_level="warning", timeout_graceful_shutdown=1
    )
    socket = config.bind_socket()
    socket.listen()  # before the address is told
    shown = f"[{host}]" if host and ":" in host else host or "127.0.0.1"
    address = f"http://{shown}:{socket.getsockname()[1]}/"
    click.echo(f"Open {address}{f'?token={token}' if token else ''}   (Ctrl-C ends it)")
    uvicorn.Server(config).run([socket])
