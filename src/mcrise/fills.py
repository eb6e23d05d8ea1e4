"""Fills: what a masked cell may be painted with.

The paper paints solid colors. Here a fill is any picture made from the image itself, so the same
method also asks about sharpness (`Blur`), saturation (`Gray`), hue and texture. A solid fill is
the special case that needs no picture at all, which `blend` uses to stay fast.
"""

import difflib
import hashlib
import re
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor

from .errors import InputError
from .images import read, unit_float

LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # the weights of Pillow's mode L
MOST_FILLS = 255  # a cell is one byte


@dataclass(frozen=True)
class Fill:
    """One way to paint. `name` is what the user reads, and what `parse` accepts."""

    kind: ClassVar[str]

    @property
    def name(self) -> str:
        return self.kind

    def color(self, image: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """The one color (3,) in 0..1 of a fill that is the same everywhere, else None."""
        return None

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        """The fill as a picture (H, W, 3) in 0..1, for an image of the same shape and range."""
        color = self.color(image)
        assert color is not None, f"{type(self).__name__} has neither a color nor a picture"
        return np.broadcast_to(color, image.shape)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class Solid(Fill):
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

    def color(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.array(self.rgb, np.float32) / np.float32(255)


@dataclass(frozen=True)
class Mean(Fill):
    """The image's mean color."""

    kind = "mean"

    def color(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(image.mean(axis=(0, 1), dtype=np.float64), np.float32)


@dataclass(frozen=True)
class Blur(Fill):
    """The image out of focus; `sigma` in pixels."""

    kind = "blur"
    sigma: float = 8.0

    def __post_init__(self) -> None:
        if not 0 < self.sigma < 1000:
            raise InputError(
                f"blur:{self.sigma:g} is not a blur: give pixels above 0, as in blur:8."
            )

    @property
    def name(self) -> str:
        return f"blur:{self.sigma:g}"

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        from scipy.ndimage import gaussian_filter

        return np.asarray(gaussian_filter(image, (self.sigma, self.sigma, 0)), np.float32)


@dataclass(frozen=True)
class Gray(Fill):
    """The image without its colors."""

    kind = "gray"

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.repeat((image @ LUMA)[..., None], 3, axis=2)


@dataclass(frozen=True)
class Hue(Fill):
    """The image with its colors turned around the gray axis; 120 makes red green."""

    kind = "hue"
    degrees: float = 120.0

    @property
    def name(self) -> str:
        return f"hue:{self.degrees:g}"

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        angle = np.deg2rad(self.degrees)
        cross = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
        turn = np.cos(angle) * np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) / 3
        return np.asarray(np.clip(image @ turn.T, 0, 1), np.float32)


@dataclass(frozen=True)
class Noise(Fill):
    """Independent random pixels, the same for the same seed."""

    kind = "noise"
    seed: int = 0

    @property
    def name(self) -> str:
        return "noise" if self.seed == 0 else f"noise:{self.seed}"

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        raw = np.random.Philox(key=[self.seed, 0]).random_raw(image.size)
        return (raw >> 40).astype(np.float32).reshape(image.shape) / np.float32(2**24)


@dataclass(frozen=True)
class Picture(Fill):
    """Another picture, resized to the image where it has another size."""

    kind = "picture"
    pixels: NDArray[np.uint8] = field(compare=False, repr=False)  # (rows, columns, 3)
    label: str = "picture"
    digest: str = ""

    def __post_init__(self) -> None:
        if self.pixels.dtype != np.uint8 or self.pixels.ndim != 3 or self.pixels.shape[2] != 3:
            raise InputError("A picture fill needs uint8 pixels of shape (rows, columns, 3).")
        content = hashlib.sha256(repr(self.pixels.shape).encode() + self.pixels.tobytes())
        object.__setattr__(self, "digest", content.hexdigest())

    @property
    def name(self) -> str:
        return self.label

    def render(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        rows, cols = image.shape[:2]
        fitted = Image.fromarray(self.pixels).resize((cols, rows), Image.Resampling.BILINEAR)
        return unit_float(np.asarray(fitted))

    def to_json(self) -> dict[str, Any]:  # the pixels are saved as an array of their own
        return {"kind": self.kind, "label": self.label, "digest": self.digest}


KINDS: dict[str, type[Fill]] = {
    kind.kind: kind for kind in (Solid, Mean, Blur, Gray, Hue, Noise, Picture)
}
# Full intensity, as in the paper; CSS would make green (0, 128, 0).
FULL = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "yellow": (255, 255, 0),
    "cyan": (0, 255, 255),
    "magenta": (255, 0, 255),
}
CUBE8 = tuple(Solid(rgb, name) for name, rgb in FULL.items())
RGBWK = CUBE8[:5]
PALETTES = {"rgbwk": RGBWK, "cube8": CUBE8}


def from_json(data: dict[str, Any], pixels: NDArray[np.uint8] | None = None) -> Fill:
    """A saved fill again; `pixels` for a picture."""
    arguments = {name: value for name, value in data.items() if name not in ("kind", "digest")}
    if data["kind"] == "solid":
        arguments["rgb"] = tuple(arguments["rgb"])
    if data["kind"] == "picture":
        arguments["pixels"] = pixels
    return KINDS[data["kind"]](**arguments)


def parse(text: str, image: NDArray[Any] | None = None) -> tuple[Fill, ...]:
    """Read a list such as `red,#0f0,rgb(1,2,3),blur:8,gray` or a palette's name.

    `auto` stands for the dominant colors of `image` (H, W, 3), so it needs one.
    """
    words = [word.strip() for word in re.split(r",(?![^(]*\))", text)]
    fills: list[Fill] = []
    for word in words:
        if word in PALETTES:
            fills.extend(PALETTES[word])
        elif word.partition(":")[0] == "auto":
            if image is None:
                raise InputError(
                    "The palette 'auto' is made from an image, but none is known here."
                )
            fills.extend(dominant_colors(image, whole_number(word, default=5)))
        else:
            fills.append(parse_fill(word))
    return check_fills(tuple(fills))


def check_fills(fills: tuple[Fill, ...]) -> tuple[Fill, ...]:
    if not 1 <= len(fills) <= MOST_FILLS:
        raise InputError(f"{len(fills)} fills were given, but 1 to {MOST_FILLS} are needed.")
    names = [fill.name for fill in fills]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"The fill {name!r} is listed twice: name each fill once.")
    return fills


def parse_fill(word: str) -> Fill:
    kind, _, argument = word.partition(":")
    if kind == "gray" and not argument:  # CSS has a color of that name; here it means desaturate
        return Gray()
    if kind == "mean" and not argument:
        return Mean()
    if kind == "blur":
        return Blur(number(word)) if argument else Blur()
    if kind == "hue":
        return Hue(number(word)) if argument else Hue()
    if kind == "noise":
        return Noise(whole_number(word, default=0))
    if kind == "picture" and argument:
        return Picture(np.asarray(read(argument)[0]), label=word)
    if word.lower() in FULL:
        return Solid(FULL[word.lower()], word.lower())
    try:
        red, green, blue = ImageColor.getrgb(word)[:3]
    except ValueError:
        raise InputError(f"{word!r} is not a color or fill{suggestion(word)}") from None
    return Solid((red, green, blue), word.lower())


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
    if not argument.isdecimal():
        raise InputError(f"{word!r} needs a whole number after the colon, as in {kind}:3.")
    return int(argument)


def suggestion(word: str) -> str:
    known = [*FULL, *ImageColor.colormap, *PALETTES, "auto", *KINDS]
    known.remove("solid")
    near = difflib.get_close_matches(word.partition(":")[0].lower(), known, n=1, cutoff=0.5)
    asked = f"; did you mean {near[0]!r}?" if near else "."
    return f"{asked} Give CSS names, #rrggbb, rgb(1,2,3), blur:8, gray, mean, hue:120 or noise."


def dominant_colors(image: NDArray[Any], n_colors: int) -> tuple[Fill, ...]:
    """The colors that stand for most of the image, most frequent first."""
    if not 1 <= n_colors <= MOST_FILLS:
        raise InputError(f"auto:{n_colors} is not possible: ask for 1 to {MOST_FILLS} colors.")
    picture = Image.fromarray(np.rint(unit_float(image) * 255).astype(np.uint8))
    reduced = picture.quantize(n_colors, Image.Quantize.MEDIANCUT)
    palette = reduced.getpalette() or []
    frequent = np.argsort(-np.bincount(np.asarray(reduced).ravel()), kind="stable")
    colors = [tuple(palette[3 * i : 3 * i + 3]) for i in frequent]
    return tuple(Solid((red, green, blue)) for red, green, blue in dict.fromkeys(colors))
