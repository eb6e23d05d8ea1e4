"""`mcrise study-status`: how far a study is."""

import json
import time
from typing import Any

import click

from .._util import validation
from ..batch.storage import Storage
from ..errors import InputError
from .options import Command, json_option
from .output import echo, echo_text


@click.command(name="study-status", cls=Command)
@click.argument("folder")
@json_option
def study_status(folder: str, as_json: bool) -> None:
    """Show how far the study in FOLDER is, also while it runs."""
    place = Storage(folder)
    try:
        n_images = len(json.loads((place / "study.json").read_text())["images"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise InputError(f"{folder} holds no study: give the --out of one.") from None
    try:
        status = read_status((place / "status.json").read_text())
    except (OSError, ValueError, LookupError, RecursionError):
        status = {"images": n_images, "done": 0, "failed": 0, "images_per_second": None,
                  "seconds_left": None, "written": None}  # fmt: skip
    if as_json:
        echo_text(json.dumps(status))
        return
    echo(f"{status['done']} of {status['images']} images done, {status['failed']} failed.")
    if status["done"] < status["images"] and None not in status.values():
        ago = time.time() - status["written"]
        echo(
            f"{status['images_per_second']:.3g} images/s, {clock(status['seconds_left'])} left, as "
            f"of {clock(ago)} ago."
        )


def read_status(text: str) -> dict[str, Any]:
    """What a study tells of itself, or a ValueError."""
    found = validation.table(json.loads(text))
    counts = {
        name: validation.whole(found[name], 0, 10**9) for name in ("images", "done", "failed")
    }
    times = {
        name: None if found[name] is None else validation.number(found[name], low=0)
        for name in ("images_per_second", "seconds_left", "written")
    }
    return {**counts, **times}


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
