"""`mcrise status`: how far a study or an audit is."""

import json
import time

import click

from ..batch.folder import read_status
from ..batch.storage import Storage
from .options import Command, json_option
from .output import echo, echo_text


@click.command(cls=Command)
@click.argument("folder")
@json_option
def status(folder: str, as_json: bool) -> None:
    """Show how far the study or audit in FOLDER is, also while it runs."""
    found = read_status(Storage(folder))
    if as_json:
        echo_text(json.dumps(found))
        return
    echo(f"{found['done']} of {found['images']} images done, {found['failed']} failed.")
    if found["done"] < found["images"] and None not in found.values():
        ago = time.time() - found["written"]
        echo(
            f"{found['images_per_second']:.3g} images/s, {_clock(found['seconds_left'])} left, as "
            f"of {_clock(ago)} ago."
        )
    elif not found["complete"] and found["done"] == found["images"]:
        echo(f"All images are measured. Now: {found['stage']}.")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
