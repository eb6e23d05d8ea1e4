"""`mcrise inspect`: what a model takes and gives, and whether it is asked rightly."""

from typing import Any

import click

from ..image_sources import find_paths
from ..inspection import inspect_model
from .options import Command, json_option, model_options
from .output import print_answer


@click.command(cls=Command)
@click.argument("spec", metavar="MODEL")
@click.argument("images", nargs=-1)
@json_option
@model_options
def inspect(spec: str, images: tuple[str, ...], as_json: bool, settings: dict[str, Any]) -> None:
    """Say what MODEL takes and gives, how it answers IMAGES, and what looks wrong.

    Give a dozen pictures that the model should know: whether red and blue are exchanged, or pixels
    go in with the wrong range, is seen from how sure it is of them. A warning changes nothing, and
    the exit code is 0.
    """
    found = inspect_model(
        spec, [one for path in images for one in find_paths(path) or [path]], **settings
    )
    print_answer(found.to_json(), found.lines(), as_json)
