"""`mcrise study-status`: how far a study is."""

import json
import time
from typing import Annotated

import click
import msgspec
from msgspec import Meta

from ..batch.storage import Storage
from ..errors import InputError
from .options import Command, json_option
from .output import echo, echo_text

Count = Annotated[int, Meta(ge=0, le=10**9)]
Amount = Annotated[float, Meta(ge=0, le=1e12)]


class Status(msgspec.Struct):
    """What a study writes about itself while it runs."""

    images: Count
    done: Count
    failed: Count
    images_per_second: Amount | None
    seconds_left: Amount | None
    written: Amount | None  # seconds since 1970


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
        content = (place / "status.json").read_text()
        status = msgspec.json.decode(content, type=Status)
    except (OSError, ValueError, RecursionError):
        status = Status(n_images, 0, 0, None, None, None)
    if as_json:
        echo_text(json.dumps(msgspec.structs.asdict(status)))
        return
    echo(f"{status.done} of {status.images} images done, {status.failed} failed.")
    speed, left, written = status.images_per_second, status.seconds_left, status.written
    if status.done < status.images and speed is not None and left is not None and written:
        ago = time.time() - written
        echo(f"{speed:.3g} images/s, {clock(left)} left, as of {clock(ago)} ago.")


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
