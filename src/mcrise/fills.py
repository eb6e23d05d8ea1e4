"""Fills: what a masked cell may be painted with.

The paper paints solid colors. Here a fill is any picture made from the image itself, so the same
method also asks about sharpness (`Blur`), saturation (`Gray`), hue and texture. A solid fill is
the special case that needs no picture at all, so painting it stays fast.

A fill knows everything about itself: the word it is read from, what it accepts, how it is saved and
what painting it does in words. So another package can bring one, by an entry point of the group
`mcrise.fills` (its word = its class), and it is painted, saved and read like those here.
"""

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ._util import plugins
from ._util.text import did_you_mean
from .colors import FULL, color_names, dominant, rgb_of
from .errors import ExplanationError, InputError, PluginError
from .images import open_picture, unit_float

LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # the weights of Pillow's mode L
MOST_FILLS = 255  # a cell is one byte
GROUP = "mcrise.fills"  # of the entry points by which other packages bring fills


@dataclass(frozen=True)
class Fill(ABC):
    """One way to paint. `name` is what the user reads, and what `parse` accepts."""

    kind: ClassVar[str]
    is_color: ClassVar[bool] = False  # colors are read together: "a patch of red or green"

    @property
    def name(self) -> str:
        return self.kind

    @property
    @abstractmethod
    def action_text(self) -> str:
        """What painting it does, to begin a sentence with: `blurring this part`."""

    @property
    @abstractmethod
    def removes(self) -> str:
        """What of the image it takes away: `sharpness`."""

    @classmethod
    def parse(cls, word: str, argument: str) -> Self:
        """The fill meant by a word such as `blur:8`; `argument` is what follows the colon."""
        if argument:
            raise InputError(f"{word!r} has something after the colon: give {cls.kind} alone.")
        return cls()

    def color(self, image: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """The one color (3,) in 0..1 of a fill that is the same everywhere, else None."""
        return None

    @abstractmethod
    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        """The fill as a picture (H, W, 3) in 0..1, for an image of the same shape and range."""

    @property
    def array(self) -> NDArray[Any] | None:
        """What is saved beside the JSON, being too large for it."""
        return None

    def to_json(self) -> dict[str, Any]:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.kind in FILL_KINDS:
            return {"kind": self.kind, **values}
        found = plugins.find(GROUP, self.kind)
        package = found.package if found and found.thing is type(self) else None
        return {"kind": self.kind, "package": package, **values}

    @classmethod
    def from_json(cls, data: dict[str, Any], array: NDArray[Any] | None) -> Self:
        """The fill again, from its values and its array."""
        return cls(**data)


@dataclass(frozen=True)
class Color(Fill):
    """A fill that is the same everywhere, so that it needs no picture."""

    is_color = True
    removes = "texture"

    @property
    def action_text(self) -> str:
        return f"a patch of {self.name}"

    @abstractmethod
    def color(self, image: NDArray[np.float32]) -> NDArray[np.float32]: ...

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.broadcast_to(self.color(image), image.shape)


@dataclass(frozen=True)
class Solid(Color):
    """A solid color."""

    kind = "solid"
    rgb: tuple[int, int, int]
    label: str = ""

    def __post_init__(self) -> None:
        if len(self.rgb) != 3 or not all(isinstance(v, int) and 0 <= v <= 255 for v in self.rgb):
            raise InputError(f"The color {self.rgb} is not three whole numbers from 0 to 255.")

    @property
    def name(self) -> str:
        return self.label or "#{:02x}{:02x}{:02x}".format(*self.rgb)

    @classmethod
    def parse(cls, word: str, argument: str) -> Self:
        rgb = rgb_of(word)
        if rgb is None:
            raise InputError(f"{word!r} is not a color or fill{suggestion(word)}")
        return cls(rgb, word.lower())

    def color(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.array(self.rgb, np.float32) / np.float32(255)

    @classmethod
    def from_json(cls, data: dict[str, Any], array: NDArray[Any] | None) -> Self:
        return cls(**{**data, "rgb": tuple(data["rgb"])})


@dataclass(frozen=True)
class Mean(Color):
    """The image's mean color."""

    kind = "mean"

    def color(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(image.mean(axis=(0, 1), dtype=np.float64), np.float32)


@dataclass(frozen=True)
class Blur(Fill):
    """The image out of focus; `sigma` in pixels."""

    kind = "blur"
    action_text = "blurring this part"
    removes = "sharpness"
    sigma: float = 8.0

    def __post_init__(self) -> None:
        if not 0.01 <= self.sigma <= 1000:
            raise InputError(
                f"blur:{self.sigma:g} is not a blur: give 0.01 to 1000 pixels, as in blur:8."
            )

    @property
    def name(self) -> str:
        return f"blur:{self.sigma:g}"

    @classmethod
    def parse(cls, word: str, argument: str) -> Self:
        return cls(number(word)) if argument else cls()

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        from scipy.ndimage import gaussian_filter

        return np.asarray(gaussian_filter(image, (self.sigma, self.sigma, 0)), np.float32)


@dataclass(frozen=True)
class Gray(Fill):
    """The image without its colors."""

    kind = "gray"  # CSS has a color of that name; here it means desaturate
    action_text = "taking the color out of this part"
    removes = "saturation"

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.repeat((image @ LUMA)[..., None], 3, axis=2)


@dataclass(frozen=True)
class Hue(Fill):
    """The image with its colors turned around the gray axis; 120 makes red green."""

    kind = "hue"
    removes = "hue"
    degrees: float = 120.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.degrees):
            raise InputError(
                f"hue:{self.degrees:g} is not an angle: give a number of degrees, as in hue:120."
            )

    @property
    def name(self) -> str:
        return f"hue:{self.degrees:g}"

    @property
    def action_text(self) -> str:
        return f"turning the hue of this part by {self.degrees:g} degrees"

    @classmethod
    def parse(cls, word: str, argument: str) -> Self:
        return cls(number(word)) if argument else cls()

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        angle = np.deg2rad(self.degrees)
        cross = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
        turn = np.cos(angle) * np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) / 3
        return np.asarray(np.clip(image @ turn.T, 0, 1), np.float32)


@dataclass(frozen=True)
class Noise(Fill):
    """Independent random pixels, the same for the same seed."""

    kind = "noise"
    action_text = "covering this part with noise"
    removes = "texture"
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**64:
            raise InputError(
                f"noise:{self.seed} is not a noise: give a seed, a whole number from 0 up to "
                "2**64 - 1, as in noise:3."
            )

    @property
    def name(self) -> str:
        return "noise" if self.seed == 0 else f"noise:{self.seed}"

    @classmethod
    def parse(cls, word: str, argument: str) -> Self:
        return cls(whole_number(word, default=0))

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        # An array: from a list, NumPy would round seeds above 2**63 as floats.
        key = np.array([self.seed, 0], np.uint64)
        raw = np.random.Philox(key=key).random_raw(image.size)
        return (raw >> 40).astype(np.float32).reshape(image.shape) / np.float32(2**24)


@dataclass(frozen=True)
class Picture(Fill):
    """Another picture, resized to the image where it has another size."""

    kind = "picture"
    removes = "content"
    pixels: NDArray[np.uint8] = field(compare=False, repr=False)  # (rows, columns, 3)
    label: str = "picture"
    digest: str = field(default="", init=False)

    def __post_init__(self) -> None:
        shape, dtype = np.shape(self.pixels), getattr(self.pixels, "dtype", None)
        if dtype != np.uint8 or len(shape) != 3 or shape[2] != 3:
            raise InputError("A picture fill needs uint8 pixels of shape (rows, columns, 3).")
        content = hashlib.sha256(repr(shape).encode() + self.pixels.tobytes())
        object.__setattr__(self, "digest", content.hexdigest())

    @property
    def name(self) -> str:
        return self.label

    @property
    def action_text(self) -> str:
        return f"showing {self.label} in this part"

    @classmethod
    def parse(cls, word: str, argument: str) -> Self:
        if not argument:
            raise InputError(f"{word!r} needs a file after a colon, as in picture:photo.jpg.")
        return cls(np.asarray(open_picture(argument)[0]), label=word)

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        rows, cols = image.shape[:2]
        fitted = Image.fromarray(self.pixels).resize((cols, rows), Image.Resampling.BILINEAR)
        return unit_float(np.asarray(fitted))

    @property
    def array(self) -> NDArray[np.uint8]:
        return self.pixels

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_json().items() if name != "pixels"}

    @classmethod
    def from_json(cls, data: dict[str, Any], array: NDArray[Any] | None) -> Self:
        return cls(array, data["label"])  # type: ignore[arg-type]  # refused if None


def checked(kind: str, given: Any) -> type[Fill]:
    """A class as the fill of that kind; without words, it would be read as what it is not."""
    if not isinstance(given, type) or not issubclass(given, Fill):
        raise PluginError(
            f"The fill {kind!r} is {given!r}, but a class derived from mcrise.fills.Fill is "
            "needed: correct its package."
        )
    needed = ("color", "action_text", "render", "removes")
    missing = [n for n in needed if n in given.__abstractmethods__ or not getattr(given, n)]
    if missing:
        raise PluginError(
            f"The fill {kind!r} has no {' and no '.join(missing)}, but painting and reading need "
            "it: correct its package."
        )
    if getattr(given, "kind", None) != kind:
        raise PluginError(
            f"The fill {kind!r} has another word as its kind, but they must be the same: "
            "correct its package."
        )
    return given


FILL_KINDS: dict[str, type[Fill]] = {
    one.kind: checked(one.kind, one) for one in (Solid, Mean, Blur, Gray, Hue, Noise, Picture)
}
CUBE8 = tuple(Solid(rgb, name) for name, rgb in FULL.items())
RGBWK = CUBE8[:5]
PALETTES = {"rgbwk": RGBWK, "cube8": CUBE8}


def find_kind(kind: str) -> type[Fill] | None:
    """The class of a kind: built in, else brought by another package, else None."""
    if kind in FILL_KINDS:
        return FILL_KINDS[kind]
    found = plugins.find(GROUP, kind)
    return None if found is None else checked(kind, found.thing)


def from_json(data: dict[str, Any], array: NDArray[Any] | None = None) -> Fill:
    """A saved fill again; `array` is what it saved beside its JSON."""
    kind, package = data["kind"], data.get("package")
    found = find_kind(kind)
    if found is None:
        # A run may come from anyone: only what is a package's name is suggested.
        named = isinstance(package, str) and re.fullmatch(r"\w([\w.-]*\w)?", package, re.ASCII)
        raise ExplanationError(
            f"paints with the fill {kind!r}, which this mcrise does not know",
            f"pip install {package}" if named else "open it where that fill was defined",
        )
    values = {name: value for name, value in data.items() if name not in ("kind", "package")}
    return found.from_json(values, array)


def parse(given: str | Sequence[str | Fill], image: NDArray[Any] | None = None) -> tuple[Fill, ...]:
    """Read a list such as `red,#0f0,rgb(1,2,3),blur:8,gray` or a palette's name.

    `auto` stands for the dominant colors of `image` (H, W, 3), so it needs one. Instead of one text
    it may be a list, as `as_fills` reads it.
    """
    return as_fills(re.split(r",(?![^(]*\))", given) if isinstance(given, str) else given, image)


def parse_one(given: str | Fill, image: NDArray[Any] | None = None, what: str = "The fill") -> Fill:
    """The one fill that a word names; `what` begins the sentence that refuses several."""
    found = (given,) if isinstance(given, Fill) else parse(given, image)
    if len(found) != 1:
        raise InputError(f"{what} {given} names {len(found)} fills, but one is needed.")
    return found[0]


def as_fills(given: Sequence[str | Fill], image: NDArray[Any] | None = None) -> tuple[Fill, ...]:
    """The fills of a list such as `["red", "#0f0", Solid((1, 2, 3)), "rgbwk"]`, in its order."""
    chosen: list[Fill] = []
    for one in given:
        if isinstance(one, Fill):
            chosen.append(one)
        elif isinstance(one, str):
            chosen.extend(parse_word(one.strip(), image))
        else:
            raise InputError(f"{one!r} is not a fill: give words such as 'red', or fills.")
    return check_fills(tuple(chosen))


def parse_word(word: str, image: NDArray[Any] | None) -> tuple[Fill, ...]:
    kind, colon, argument = word.partition(":")
    if kind.lower() in (*PALETTES, *FILL_KINDS, "auto"):  # capitals do not matter
        word = f"{kind.lower()}{colon}{argument}"
    word = (
        "gray" if word.lower() == "grey" else word
    )  # both without its colors, not the color of that name
    if word in PALETTES:
        return PALETTES[word]
    if word.partition(":")[0] != "auto":
        return (parse_fill(word),)
    if image is None:
        raise InputError("The palette 'auto' is made from an image, but none is known here.")
    n_colors = whole_number(word, default=5)
    if not 1 <= n_colors <= MOST_FILLS:
        raise InputError(f"auto:{n_colors} is not possible: ask for 1 to {MOST_FILLS} colors.")
    return tuple(map(Solid, dominant(image, n_colors)))


def check_fills(fills: tuple[Fill, ...]) -> tuple[Fill, ...]:
    if not 1 <= len(fills) <= MOST_FILLS:
        raise InputError(f"{len(fills)} fills were given, but 1 to {MOST_FILLS} are needed.")
    names = [fill.name for fill in fills]
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"A fill is called {name!r}, but a text is needed.")
        if names.count(name) > 1:
            raise InputError(f"The fill {name!r} is listed twice: name each fill once.")
    return fills


def parse_fill(word: str) -> Fill:
    kind, _, argument = word.partition(":")
    if kind not in FILL_KINDS and rgb_of(word):
        kind = "solid"  # before other packages are asked: none changes what a color means
    return (find_kind(kind) or Solid).parse(word, argument)


def number(word: str) -> float:
    kind, _, argument = word.partition(":")
    try:
        return float(argument)
    except ValueError:
        raise InputError(f"{word!r} needs a number after the colon, as in {kind}:8.") from None


def whole_number(word: str, default: int) -> int:
    kind, _, argument = word.partition(":")
    if not argument:
        return default
    if not argument.isdecimal() or len(argument) > 100:  # Python itself refuses to read thousands
        raise InputError(f"{word!r} needs a whole number after the colon, as in {kind}:3.")
    return int(argument)


def suggestion(word: str) -> str:
    known = [*color_names(), *PALETTES, "auto", *FILL_KINDS, *plugins.names(GROUP)]
    known.remove("solid")
    asked = did_you_mean(word.partition(":")[0], known, otherwise=".", cutoff=0.5)
    asked = asked if asked == "." else f"; {asked}"
    return f"{asked} Give CSS names, #rrggbb, rgb(1,2,3), blur:8, gray, mean, hue:120 or noise."
