"""Model: a callable, and what we know of it.

To the method a model is any callable from images (N, H, W, 3) to scores (N, C). A `Model` also
knows the input it wants, so that an image is prepared once and blended in the model's own space,
and what its scores mean, so that nonsense is refused rather than explained.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .._util.validation import check_labels, check_written
from ..errors import InputError, ModelError, first_line, safe_str, with_cause
from ..fills import Fill
from ..images import Geometry, View, unit_float
from ..painting.canvas import Canvas, make_canvas
from .outputs import WRAP, as_table, holds_heads, pick
from .provenance import UNKNOWN, Origin
from .scores import ScoreKind, check_kind, check_raw, check_scores

WHOLE = Geometry()  # any size, as it is

PILLOW_HINT = 'if it takes a list of Pillow images, give layout="pillow"'
Predict = Callable[[NDArray[Any]], Any]


@dataclass(frozen=True)
class Model:
    """A model and its input: pixel value v in 0..255 becomes `v * gain + offset`, per channel."""

    predict: Predict  # a batch in `layout` and `dtype` -> scores (N, C)
    geometry: Geometry = WHOLE
    layout: str = "NHWC"  # or "NCHW"
    channels: str = "rgb"  # or "bgr"
    dtype: str | None = None  # uint8, float16 or float32; None: dtype and range of the image given
    gain: tuple[float, float, float] = (1.0, 1.0, 1.0)  # red, green, blue
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    kind: ScoreKind = "probability"
    softmax: bool = False  # to be applied to what the model returns
    sigmoid: bool = False  # likewise
    labels: tuple[str, ...] | None = None
    identity: str = ""  # what it is called in tables and reports
    origin: Origin = UNKNOWN
    notes: tuple[str, ...] = ()  # what was assumed, for the user
    rounding: float = 0.0  # by how much a score of a quantised model may be off

    def __repr__(self) -> str:
        size = "images of any size"
        if self.geometry.size is not None:
            size = "images of {} x {} pixels".format(*self.geometry.size)
        classes = f", {len(self.labels):,} labels" if self.labels else ""
        return f"<Model {self.identity or 'without a name'}: {size}{classes}, {self.kind} scores>"

    def __post_init__(self) -> None:
        for value, name, allowed in (
            (self.layout, "layout", ("NCHW", "NHWC")),
            (self.channels, "channel order", ("rgb", "bgr")),
            (self.dtype, "input dtype", ("uint8", "float16", "float32", None)),
        ):
            if value not in allowed:
                words = ", ".join(str(word) for word in allowed if word)
                raise InputError(f"The {name} is {value!r}, but it must be one of {words}.")
        check_kind(self.kind)
        if self.softmax and self.sigmoid:
            raise InputError(
                "Both softmax and sigmoid were asked for: give softmax where the classes exclude "
                "each other, sigmoid where each is scored on its own."
            )
        if not self.identity:
            name = getattr(self.predict, "__qualname__", type(self.predict).__qualname__)
            object.__setattr__(self, "identity", f"callable {name}")
        check_written(self.identity, "The name of the model")
        check_labels(self.labels)
        plain = self.gain == (1.0, 1.0, 1.0) and self.offset == (0.0, 0.0, 0.0)
        if self.dtype in ("uint8", None) and not plain:
            raise InputError(
                "Mean, std and scale were given, but the model takes whole pixels (uint8): leave "
                "them out."
            )

    def __call__(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Scores (N, C) of images (N, H, W, 3), uint8 or floats in 0..1."""
        batch = self.prepare(images)
        if self.layout == "NCHW":
            batch = batch.transpose(0, 3, 1, 2)
        dtype = np.dtype(self.dtype or images.dtype)
        batch = np.rint(batch) if dtype == np.uint8 else batch
        return self.scores(np.ascontiguousarray(batch, dtype))

    def view(self, source: Any) -> View:
        """What this model is shown of a picture: a path, a Pillow image or an array."""
        return self.geometry.view(source)

    def canvas(self, pixels: NDArray[Any], fills: tuple[Fill, ...]) -> Canvas:
        """The image and its fills in the model's own space, ready to be blended."""
        image = unit_float(pixels)
        colors = [fill.color(image) for fill in fills]
        whole = pixels.dtype == np.uint8 and self.dtype is None
        renders = [
            None if color is not None else self.prepare(fill.render(image), whole)
            for fill, color in zip(fills, colors, strict=True)
        ]
        return make_canvas(
            self.prepare(pixels),
            [None if color is None else self.prepare(color, whole) for color in colors],
            renders,
            self.layout,
            np.dtype(self.dtype or pixels.dtype),
        )

    def prepare(self, pixels: NDArray[Any], whole: bool = False) -> NDArray[np.float32]:
        """Pixels (..., 3), uint8 or in 0..1, as the model wants them but for layout and dtype.

        A model without a dtype of its own gets the range of the image: 0..255 where `whole`.
        """
        stretch = pixels.dtype != np.uint8 and (whole or self.dtype is not None)
        normal = pixels * np.float32(255 if stretch else 1)
        normal *= np.array(self.gain, np.float32)  # in place: of a large image, a copy counts
        normal += np.array(self.offset, np.float32)
        return normal[..., ::-1] if self.channels == "bgr" else normal

    def scores(self, batch: NDArray[Any]) -> NDArray[np.float32]:
        """Call the model on a prepared batch and check what it says."""
        try:
            answer = as_array(self.predict(batch))
        except InputError:
            raise
        except Exception as error:
            hint = f"; {PILLOW_HINT}" if wants_pillow(error) else ""
            said = ModelError(f"the model raised {type(error).__name__}: {first_line(error)}{hint}")
            raise with_cause(said, error) from error
        table = as_table(answer)
        if table.ndim != 2 or len(table) != len(batch) or table.shape[1] == 0:
            pictures = f"; for pictures or boxes, {WRAP}" if answer.ndim > 2 else ""
            raise ModelError(
                f"the model answered {len(batch)} images with an array of shape {answer.shape}, "
                f"but ({len(batch)}, number of classes) is needed{pictures}"
            )
        answer = table.astype(np.float32)
        if not np.isfinite(answer).all():
            bad = int((~np.isfinite(answer)).any(axis=1).sum())
            raise ModelError(
                f"the model gave NaN or infinite scores for {bad} of {len(batch)} images: look "
                "for overflow in the model or its preprocessing"
            )
        check_raw(answer, self.kind, self.softmax, self.sigmoid)
        if self.softmax:
            answer = np.exp(answer - answer.max(axis=1, keepdims=True))
            answer /= answer.sum(axis=1, keepdims=True)
        if self.sigmoid:
            answer = (0.5 + 0.5 * np.tanh(0.5 * answer)).astype(np.float32)
        check_scores(self.kind, answer, self.rounding)
        return answer


def as_array(answer: Any) -> NDArray[Any]:
    """What a model returned, also where it is a tensor that remembers how it came about."""
    if is_labelled(answer):
        raise InputError(
            "The function answers with labels and scores, sorted by score, as a pipeline of "
            "Hugging Face does: give the pipeline itself, or return the scores in a fixed order."
        )
    if holds_heads(answer):
        answer = pick(answer, None)
    return np.asarray(answer.detach().cpu() if hasattr(answer, "detach") else answer)


def wants_pillow(error: Exception) -> bool:
    """Whether a function was given an array where it needs Pillow images."""
    said = safe_str(error)
    return "ndarray" in said and (
        ("PIL" in said and isinstance(error, TypeError))
        or (isinstance(error, AttributeError) and error.name in dir(Image.Image))
    )


def is_labelled(answer: Any) -> bool:
    """Whether it is a list of {"label": ..., "score": ...}, or a list of such lists."""
    while isinstance(answer, list | tuple) and answer:
        answer = answer[0]
    return isinstance(answer, dict) and {"label", "score"} <= answer.keys()
