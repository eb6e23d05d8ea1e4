"""The pictures that a command line names: files, folders, patterns and standard input."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..image_sources import find_paths, is_result, returned_or_raised
from ..images import View
from ..models.model import Model

STDIN = "-"


class Named(NamedTuple):
    """A picture, or why there is none, and where its results go."""

    name: str
    read: Callable[[], Any]
    beside: Path  # the folder of its run, beside it
    inside: str  # the same in the folder of --out, where there are several

    def view(self, model: Model) -> View:
        return model.view(self.read())


def named_pictures(words: Sequence[str]) -> list[Named]:
    """The pictures that words name; one that cannot be found is an error when its turn comes."""
    found: list[Named] = []
    # A shell's * names the folders of results too, which are beside the pictures.
    for word in [one for one in words if not is_result(one)] or words:
        try:
            found += from_stdin() if word == STDIN else from_path(word)
        except InputError as error:
            if len(words) == 1:
                raise
            found.append(Named(word, partial(returned_or_raised, error), Path(), ""))
    return found


def from_path(word: str) -> list[Named]:
    """A file, or the pictures of a folder or a pattern."""
    above = word if os.path.isdir(word) else ""
    return [
        Named(
            path,
            partial(Path, path),
            Path(f"{path}.mcrise"),
            f"{os.path.relpath(path, above) if above else os.path.basename(path)}.mcrise",
        )
        for path in find_paths(word) or [word]
    ]


def from_stdin() -> list[Named]:
    """A picture, or a list of paths, one per line."""
    content = sys.stdin.buffer.read()
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:  # as every kind of picture is
        return [Named("stdin", lambda: content, Path("stdin.mcrise"), "stdin.mcrise")]
    paths = [line.strip() for line in lines if line.strip()]
    if not paths:
        raise InputError("Nothing came on standard input: send an image, or paths, one per line.")
    return named_pictures(paths)
