"""`mcrise serve`: the live page, for this machine alone unless a host is given."""

import os
import secrets
from pathlib import Path

import click

from ..errors import InputError
from ..loop import CHECKPOINT_SECONDS
from ..runtimes import load_model


@click.command()
@click.option("--model", "specs", multiple=True, default=["demo"], show_default=True,
              help="As for explain; repeat to offer several.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=8700, show_default=True)
@click.option("--host", help="Let other machines in at this address; they need the token printed.")
@click.option("--data", type=click.Path(path_type=Path), default="mcrise-data", show_default=True,
              help="Folder of the jobs and their records.")  # fmt: skip
@click.option("--checkpoint", type=float, default=CHECKPOINT_SECONDS, show_default=True,
              help="Save the record of a running job every so many seconds.")  # fmt: skip
def serve(
    specs: tuple[str, ...], port: int, host: str | None, data: Path, checkpoint: float
) -> None:
    """Show maps in the browser as they sharpen."""
    try:
        import scipy.linalg  # noqa: F401  brings a second BLAS, to be limited too
        import uvicorn
        from threadpoolctl import threadpool_limits

        from ..page.app import create_app
    except ImportError as error:
        raise InputError(
            f"The page needs {error.name}, which is not installed: pip install 'mcrise[web]'."
        ) from None
    from ..page.jobs import Jobs, warm_up

    models = {Path(spec).stem: load_model(spec) for spec in specs}
    if len(models) < len(specs):
        raise InputError("Two models have the same name: rename one of the files.")
    jobs = Jobs(data, models, checkpoint_seconds=checkpoint)
    # The model has the cores; estimates that fight it for them take a hundred times longer.
    threadpool_limits(1, user_api="blas")
    for name in models:
        jobs.call(name, warm_up)
    token = secrets.token_urlsafe(24) if host else None
    app = create_app(jobs, host, token)
    config = uvicorn.Config(
        app, host or "127.0.0.1", port, log_level="warning", timeout_graceful_shutdown=1
    )
    socket = config.bind_socket()
    socket.listen()  # before the address is told
    shown = f"[{host}]" if host and ":" in host else host or "127.0.0.1"
    address = f"http://{shown}:{socket.getsockname()[1]}/"
    click.echo(f"Open {address}{f'?token={token}' if token else ''}   (Ctrl-C ends it)")
    os.environ.setdefault("MPLBACKEND", "Agg")
    try:
        uvicorn.Server(config).run([socket])
    finally:
        jobs.close()
