"""Settings: what cannot be read off a model file, as said in a TOML file beside it or by arguments.

[input]
size = [224, 224]          # rows, columns, where the model leaves them open
short_side = 256           # resize the short side to this, then cut `size` from the middle
filter = "bicubic"         # nearest, bilinear, bicubic, lanczos, area
crop = "rounded"           # to whole pixels, as torchvision does; floored, as Hugging Face; exact
scale = 255                # pixels are divided by this first (default 255; 1 for 0..255)
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
layout = "NCHW"            # or NHWC, where the shape does not tell
channels = "rgb"           # or bgr

[output]
name = "scores"            # which output, where there are several
score_kind = "probability" # probability, independent or any
softmax = false            # apply one to logits of classes that exclude each other
sigmoid = false            # apply one to each logit; the scores are then independent
labels = ["stop", "yield"] # or "labels.txt": a file beside, one label per line
"""

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
from msgspec import Meta

from .._util.text import did_you_mean
from .._util.validation import toml
from ..errors import InputError, first_line, safe_str
from ..images import Geometry
from .model import Model, Predict
from .provenance import Origin
from .scores import ScoreKind

SECTIONS = {
    "input": ("size", "short_side", "filter", "crop", "scale", "mean", "std", "layout", "channels"),
    "output": ("name", "score_kind", "softmax", "sigmoid", "labels"),
}
TOGETHER: tuple[set[str], ...] = (  # settings of which one alone makes no sense
    {"scale", "mean", "std"},
    {"size", "short_side", "crop"},
    {"softmax", "sigmoid", "score_kind"},
)
Triple = tuple[float, float, float]  # red, green, blue
Numbers = float | Sequence[float]  # one for all channels, or red, green and blue
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
OLD_NAMES = {"score_kind": "scores"}  # in digests of settings, which saved runs have


class ModelSettings(TypedDict, total=False):
    """What can be said about a model, as keywords of `load_model` and all that call it."""

    labels: Sequence[str] | Path | str | None
    size: int | tuple[int, int] | None
    short_side: int | None
    filter: Literal["nearest", "bilinear", "bicubic", "lanczos", "area"] | None
    crop: Literal["exact", "rounded", "floored"] | None
    scale: float | None
    mean: Numbers | None
    std: Numbers | None
    layout: Literal["NCHW", "NHWC", "pillow"] | None
    channels: Literal["rgb", "bgr"] | None
    preprocess: Any  # weights, transforms or a processor of another library
    output: str | None
    name: str | None  # the same
    score_kind: ScoreKind | None
    softmax: bool | None
    sigmoid: bool | None
    threads: int | None
    device: str | None


@dataclass(frozen=True)
class Settings:
    """What is said about a model; None: not said."""

    size: tuple[int, int] | None = None
    short_side: int | None = None
    filter: str = "bilinear"
    scale: float | None = None
    mean: Triple | None = None
    std: Triple | None = None
    layout: str | None = None
    channels: str = "rgb"
    name: str | None = None
    score_kind: ScoreKind | None = None
    softmax: bool = False
    labels: tuple[str, ...] | None = None
    threads: int | None = None  # for the runtime; None: all cores
    # Younger than the digests of saved runs:
    sigmoid: bool = field(default=False, repr=False)
    crop: str = field(default="exact", repr=False)
    device: str | None = field(default=None, repr=False)  # for the runtime; None: its own choice
    given: frozenset[str] = field(default=frozenset(), repr=False, compare=False)  # names, said

    @property
    def normalised(self) -> bool:
        return (self.scale, self.mean, self.std) != (None, None, None)

    @property
    def kind(self) -> ScoreKind:
        return self.score_kind or ("independent" if self.sigmoid else "probability")

    def geometry(self, size: tuple[int, int] | None) -> Geometry:
        """The geometry for a model whose own input size is `size` (None where it is open)."""
        if size is not None and self.size is not None and self.size != size:
            raise InputError(
                f"The size is {self.size[0]} x {self.size[1]}, but the model takes only "
                f"{size[0]} x {size[1]}: leave the size out."
            )
        return Geometry(size or self.size, self.short_side, self.filter, self.crop)

    def refuse_device(self) -> None:
        """For runtimes that are not told where to run."""
        if self.device is not None:
            raise InputError(
                f"The device {self.device!r} was asked for, but only ONNX Runtime, OpenVINO and "
                "torch are told where to run: leave it out, and let the model itself choose."
            )

    def affine(self) -> tuple[Triple, Triple]:
        """gain and offset such that `pixel * gain + offset` is `(pixel / scale - mean) / std`."""
        scale = 255.0 if self.scale is None else self.scale
        mean, std = self.mean or (0.0, 0.0, 0.0), self.std or (1.0, 1.0, 1.0)
        gains = tuple(1 / (scale * s) for s in std)
        offsets = tuple(-m / s for m, s in zip(mean, std, strict=True))
        return (gains[0], gains[1], gains[2]), (offsets[0], offsets[1], offsets[2])

    def digest(self) -> str:
        said = replace(self, labels=None, threads=None)
        shown = [
            f"{OLD_NAMES.get(entry.name, entry.name)}={getattr(said, entry.name)!r}"
            for entry in fields(self)
            if entry.repr
        ]
        text = f"Settings({', '.join(shown)})" + " sigmoid" * self.sigmoid
        text += "" if self.crop == Settings.crop else f" crop={self.crop}"
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """What was said that decides the scores, as `load_model` takes it again."""
        said = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in said.items()
            if name not in ("labels", "threads", "device", "given")
            and value != getattr(Settings, name)
        }

    def model(self, predict: Predict, name: str, digest: str, **about: Any) -> Model:
        """The model `name` with what is said of its output; `about` says how images go in."""
        return Model(
            predict,
            channels=self.channels,
            kind=self.kind,
            softmax=self.softmax,
            sigmoid=self.sigmoid,
            labels=self.labels,
            identity=" ".join(filter(None, [name, digest[:16], self.digest()[:8]])),
            origin=Origin(name, digest, self.to_json()) if digest else Origin(),
            **about,
        )


def read_settings(model: Path | None, given: dict[str, Any]) -> Settings:
    """The settings in the TOML file beside a model, overridden by those given as arguments."""
    said: dict[str, Any] = {}
    if model is not None and (beside := model.with_suffix(".toml")).is_file():
        try:
            said = convert(read_toml(beside))
        except InputError as error:
            raise InputError(f"{beside}: {error}") from None
    said |= convert({name: value for name, value in given.items() if value is not None})
    return Settings(**said, given=frozenset(said))


def with_known(settings: Settings, known: dict[str, Any]) -> Settings:
    """Settings with what a model knows of itself, where nobody said otherwise.

    Whoever gives a mean does not mean it together with the model's own deviation, and so on.
    """
    said = set(settings.given)
    for group in TOGETHER:
        said |= group if said & group else set()
    own = {name: value for name, value in convert(known).items() if name not in said}
    return replace(settings, **own, given=settings.given | own.keys())


def read_toml(path: Path) -> dict[str, Any]:
    try:
        content = toml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"this is not TOML ({error}): correct or remove it.") from None
    said: dict[str, Any] = {}
    for section, entries in content.items():
        if section not in SECTIONS or not isinstance(entries, dict):
            raise InputError(
                f"{section!r} stands at the top, but there are only [input] and [output]: put each "
                "setting below one of these."
            )
        for name in entries:
            if name not in SECTIONS[section]:
                raise InputError(unknown_setting(name, f"[{section}]", SECTIONS[section]))
        said |= entries
    if isinstance(said.get("labels"), str):
        said["labels"] = path.parent / said["labels"]
    return said


def unknown_setting(name: str, where: str, known: Sequence[str]) -> str:
    return f"{name!r} is not a setting of {where}; {did_you_mean(name, known)}"


def check_keywords(given: Iterable[str], function: str, known: Sequence[str]) -> None:
    """Refuse keywords that a function does not have."""
    for name in given:
        if name not in known:
            raise InputError(unknown_setting(name, function, known))


def convert(said: dict[str, Any]) -> dict[str, Any]:
    """What was said, in the types of `Settings`, so that 255 and 255.0 are the same setting."""
    converted = {}
    for name, value in said.items():
        name = ALIASES.get(name, name)
        if name not in KINDS:
            raise InputError(unknown_setting(name, "a model", list(KINDS)))
        if name == "labels" and isinstance(value, str | Path):
            value = read_labels(Path(value))
        kind, needed = KINDS[name]
        try:
            found = msgspec.convert(plain(value), kind)
            converted[name] = FORMS[name](found) if name in FORMS else found
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{name} is {value!r}, but {needed} needed.") from None
    return converted


def plain(value: Any) -> Any:
    """Numbers and arrays of numpy or torch, and whatever can be iterated, as Python has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(one) for one in value]
    return value


def pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def triple(value: float | list[float]) -> Triple:
    values = value if isinstance(value, list) else [value]
    red, green, blue = values * 3 if len(values) == 1 else values
    return red, green, blue


LARGEST = sys.float_info.max
Whole = Annotated[int, Meta(gt=0)]
Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, Meta(gt=0, le=LARGEST)]
KINDS: dict[str, tuple[Any, str]] = {
    "size": (int | tuple[int, int], "rows and columns, as in [224, 224], are"),
    "short_side": (Whole, "a whole number above zero is"),
    "filter": (str, "a word is"),
    "crop": (str, "exact, rounded or floored is"),
    "scale": (Positive, "a number above zero is"),
    "mean": (Number | list[Number], "one number or three (red, green, blue) are"),
    "std": (Positive | list[Positive], "one number or three (red, green, blue) above zero are"),
    "layout": (str, "NCHW or NHWC is"),
    "channels": (str, "rgb or bgr is"),
    "name": (str, "the name of an output is"),
    "score_kind": (str, "probability, independent or any is"),
    "softmax": (bool, "true or false is"),
    "sigmoid": (bool, "true or false is"),
    "labels": (tuple[str, ...], "a list of names or the path of a text file is"),
    "threads": (Whole, "a whole number above zero is"),
    "device": (str, "the name of a device, such as CPU, GPU or cuda, is"),
}
ALIASES = {"output": "name"}  # what a keyword is called in the files of a model and of a run
FORMS: dict[str, Callable[[Any], Any]] = {"size": pair, "mean": triple, "std": triple}


def read_labels(path: Path) -> tuple[str, ...]:
    """Labels from a text file, one per line, in the order of the model's scores."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InputError(
            f"The labels {path} cannot be read ({reason}): give a text file in UTF-8, one label "
            "per line."
        ) from None
    return tuple(line.strip() for line in lines if line.strip())


@contextmanager
def size_named(size: tuple[int, int] | None) -> Iterator[None]:
    """Say, where a model fails over shapes, that nobody said which size it wants."""
    try:
        yield
    except Exception as error:
        if size is not None or not re.search(r"shape|size|dimension|reshape|multipl", str(error)):
            raise
        said = RuntimeError(
            f"{first_line(error)} (the image went in at its own size; if the model wants another, "
            "give size=(224, 224) or whatever it is)"
        )
        for note in [safe_str(error).strip()] if "\n" in safe_str(error).strip() else []:
            said.add_note(note)
        raise said from error


def file_digest(path: Path) -> str:
    """What identifies a model file: a digest of its bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_options(text: str) -> str:
    """A sentence that names keywords of Python, with the options of the command instead.

    `softmax=True` becomes `--softmax`, `size=(224, 224)` becomes `--size 224x224`.
    """
    keyword = rf'\b({"|".join(ModelSettings.__annotations__)})=(True|"[^"]*"|\([^)]*\)|[\d.]+)'

    def option(found: re.Match[str]) -> str:
        name, value = found[1].replace("_", "-"), found[2].strip('"()')
        words = "" if value == "True" else f" {value.replace(', ', 'x' if name == 'size' else ',')}"
        return f"--{name}{words}"

    return re.sub(keyword, option, text)
