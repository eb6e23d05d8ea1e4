"""Sources: folders, globs, batches and data sets, as pictures one after the other.

Data sets are known by what they can do, so that neither torch nor Hugging Face need be installed. A
picture is read when its turn comes: one that cannot be read does not keep the others back.
"""

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from ._util.files import ENDINGS, outside_results
from .errors import InputError, safe_str

SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".gif", ".tif", ".tiff", ".webp")
COLUMNS = ("image", "img", "picture", "pixel_values", "pixels")  # of pictures in a data set


class Source(NamedTuple):
    """One picture of several."""

    name: str
    read: Callable[[], Any]  # gives what a model is shown: a path, a Pillow image or an array


def open_sources(given: Any) -> Iterator[Source] | None:
    """The pictures of a folder, glob, batch, list or data set; None where it is one picture."""
    if isinstance(given, str | Path):
        paths = find_paths(given)
        return None if paths is None else (Source(path, partial(str, path)) for path in paths)
    if isinstance(given, bytes | Image.Image):
        return None
    if isinstance(given, np.ndarray) or hasattr(given, "detach"):  # an array or a tensor
        one_picture = given.ndim != 4 or (hasattr(given, "detach") and len(given) == 1)
        return None if one_picture else read_items(given)
    if not isinstance(given, list | tuple) and all(
        hasattr(given, name) for name in ("__getitem__", "__len__")
    ):
        return (Source(f"image {n}", partial(entry_of, given, n)) for n in range(len(given)))
    if isinstance(given, Iterable):
        return read_items(given)
    raise InputError(
        f"The image is a {type(given).__name__}, but a path, a Pillow image, an array or a tensor "
        "is needed, or several of them in a folder, list, batch or data set."
    )


def find_paths(given: Path | str) -> list[str] | None:
    """The images of a folder or a glob, sorted; None for the path of a file.

    Hidden files and what mcrise wrote there are left out.
    """
    if is_result(given):
        raise InputError(f"{given} holds results of mcrise: give the image that they are of.")
    if os.path.isdir(given):
        inside = [
            os.path.relpath(os.path.join(folder, name), given)
            for folder, _, names in os.walk(given)
            for name in names
        ]
        found = [os.path.join(given, name) for name in pictures_among(inside)]
        if not found:
            raise InputError(
                f"{given} holds no images ({', '.join(SUFFIXES)}): give the folder they are in."
            )
        return found
    if os.path.exists(given) or not glob.has_magic(str(given)):
        return None
    found = pictures_among(glob.glob(str(given), recursive=True))
    if not found:
        raise InputError(f"No image is named like {given}: correct the pattern.")
    return found


def is_result(given: Path | str) -> bool:
    """Whether a folder is called as those are that mcrise writes beside pictures."""
    return os.path.isdir(given) and os.path.abspath(given).endswith(ENDINGS)


def pictures_among(names: list[str]) -> list[str]:
    slashed = {name.replace(os.sep, "/"): name for name in names}
    return sorted(
        slashed[name]
        for name in outside_results(slashed)
        if name.lower().endswith(SUFFIXES)
        and not any(part.startswith(".") and part.strip(".") for part in name.split("/"))
    )


def read_items(items: Iterable[Any]) -> Iterator[Source]:
    """The pictures of a list, of a batch, or of a loader, which has batches of them."""
    number = 0
    for item in items:
        try:
            pictures = batch_of(picture_of(item))
        except InputError as error:
            pictures = [error]
        for picture in pictures:
            named = isinstance(picture, str | Path)
            yield Source(
                str(picture) if named else f"image {number}", partial(returned_or_raised, picture)
            )
            number += 1


def batch_of(picture: Any) -> list[Any]:
    return list(picture) if getattr(picture, "ndim", 0) == 4 else [picture]


def returned_or_raised(picture: Any) -> Any:
    if isinstance(picture, InputError):
        raise picture
    return picture


def entry_of(data: Any, number: int) -> Any:
    """The picture of one entry of a data set, whose own code may fail in any way."""
    try:
        return picture_of(data[number])
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"The data set gives no image {number} ({type(error).__name__}: {safe_str(error)})."
        ) from error


def picture_of(item: Any) -> Any:
    """The picture among what a data set gives: by the name of a column, or the first of a pair."""
    if isinstance(item, Mapping):
        name = next((name for name in COLUMNS if name in item), None)
        if name is None:
            raise InputError(
                f"The entry has {', '.join(map(str, item))}, but one of {', '.join(COLUMNS)} is "
                "needed: rename the column of the images."
            )
        return item[name]
    return item[0] if isinstance(item, list | tuple) and item else item
