"""Settings: what cannot be read off a model file, as said in a TOML file beside it or by arguments.

[input]
size = [224, 224]          # rows, columns; needed where the model leaves them open
short_side = 256           # resize the short side to this, then cut `size` from the middle
filter = "bicubic"         # nearest, bilinear, bicubic, lanczos, area
scale = 255                # pixels are divided by this first (default 255; 1 for 0..255)
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
layout = "NCHW"            # or NHWC; needed where the shape does not tell
channels = "rgb"           # or bgr

[output]
name = "scores"            # which output, where there are several
scores = "probability"     # probability, independent or any
softmax = false            # apply one to logits
labels = ["stop", "yield"] # or "labels.txt": a file beside, one label a line
"""

import hashlib
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..images import Geometry

SECTIONS = {
    "input": ("size", "short_side", "filter", "scale", "mean", "std", "layout", "channels"),
    "output": ("name", "scores", "softmax", "labels"),
}


@dataclass(frozen=True)
class Settings:
    """What is said about a model; None: not said."""

    size: tuple[int, int] | None = None
    short_side: int | None = None
    filter: str = "bilinear"
    scale: float | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    layout: str | None = None
    channels: str = "rgb"
    name: str | None = None
    scores: str | None = None
    softmax: bool = False
    labels: tuple[str, ...] | None = None
    threads: int | None = None  # for the runtime; None: all cores

    @property
    def normalised(self) -> bool:
        return (self.scale, self.mean, self.std) != (None, None, None)

    @property
    def kind(self) -> str:
        return self.scores or "probability"

    def geometry(self, size: tuple[int, int] | None) -> Geometry:
        """The geometry for a model whose own input size is `size` (None where it is open)."""
        if size is not None and self.size is not None and self.size != size:
            raise InputError(
                f"The size is {self.size[0]} x {self.size[1]}, but the model takes only "
                f"{size[0]} x {size[1]}: leave the size out."
            )
        return Geometry(size or self.size, self.short_side, self.filter)

    def affine(self) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """gain and offset such that `pixel * gain + offset` is `(pixel / scale - mean) / std`."""
        scale = 255.0 if self.scale is None else self.scale
        mean, std = three("mean", self.mean, 0.0), three("std", self.std, 1.0)
        if scale <= 0 or min(std) <= 0:
            raise InputError("scale and std must be above zero.")
        gains = tuple(1 / (scale * s) for s in std)
        offsets = tuple(-m / s for m, s in zip(mean, std, strict=True))
        return (gains[0], gains[1], gains[2]), (offsets[0], offsets[1], offsets[2])

    def digest(self) -> str:
        return hashlib.sha256(repr(replace(self, labels=None, threads=None)).encode()).hexdigest()


def three(name: str, values: tuple[float, ...] | None, default: float) -> tuple[float, ...]:
    if values is None:
        return (default,) * 3
    if len(values) == 1:
        return tuple(values) * 3
    if len(values) != 3:
        raise InputError(
            f"{name} has {len(values)} numbers, but one or three (r, g, b) are needed."
        )
    return tuple(values)


def read_settings(model: Path | None, given: dict[str, Any]) -> Settings:
    """The settings in the TOML file beside a model, overridden by those given as arguments."""
    said: dict[str, Any] = {}
    if model is not None and (beside := model.with_suffix(".toml")).is_file():
        said = read_toml(beside)
    said |= {name: value for name, value in given.items() if value is not None}
    known = {field.name for field in fields(Settings)}
    for name in said:
        if name not in known:
            raise InputError(
                f"{name!r} is not a setting of a model: {', '.join(sorted(known))} are."
            )
    if isinstance(said.get("labels"), str | Path):
        said["labels"] = read_labels(Path(said["labels"]))
    for name in ("size", "mean", "std", "labels"):
        if name in said:
            value = said[name]
            said[name] = tuple(value) if isinstance(value, list | tuple) else (value,)
    if "size" in said and len(said["size"]) == 1:
        said["size"] *= 2
    return Settings(**said)


def read_toml(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML ({error}): mend or remove it.") from None
    said: dict[str, Any] = {}
    for section, entries in content.items():
        for name, value in entries.items() if isinstance(entries, dict) else [(section, None)]:
            if name not in SECTIONS.get(section, ()):
                raise InputError(
                    f"{path} says [{section}] {name}, which is not a setting: "
                    "see docs/models.md for those there are."
                )
            said[name] = value
    if isinstance(said.get("labels"), str):
        said["labels"] = path.parent / said["labels"]
    return said


def read_labels(path: Path) -> tuple[str, ...]:
    """Labels from a text file, one a line, in the order of the model's scores."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The labels {path} cannot be read ({error}): give a text file.") from None
    return tuple(line.strip() for line in lines if line.strip())


def file_digest(path: Path) -> str:
    """What identifies a model file: a digest of its bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
