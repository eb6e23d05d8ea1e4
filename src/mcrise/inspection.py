"""Inspection: what a model takes and gives, and whether it looks as if it is asked wrongly.

A model that gets its channels in another order, or pixels in another range, answers all the same,
only less surely. So some pictures are asked about as they go in now and as they might go in, and
the model says itself which it knows. Sureness alone would mislead, since large inputs make any
network sure of anything: it counts by how much a model is surer of pictures, also when they are
cropped a little, than of plain ones.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ._util.text import digits
from .config import BATCH_SIZES
from .errors import InputError, ModelError, safe_str
from .explanation import SAME_ANSWER
from .image_sources import Source, open_sources
from .images import View, whole_pixels
from .model_calls import largest_batch
from .models import ModelSettings, load_model
from .models.model import Model
from .models.scores import SUM_TOLERANCE
from .models.settings import IMAGENET_MEAN, IMAGENET_STD

MOST_PICTURES = 12  # that are asked about in other ways; all are answered as they are
CROP = 20  # a crop leaves out this part of each side
PLAIN = (0, 64, 128, 191, 255)  # gray values of pictures that show nothing
FEW = 5  # pictures, below which only a large gain counts
SURE_KINDS = ("probability", "independent")  # of score, which say how sure a model is
LARGE_GAIN = 0.3  # of the top score, with few pictures
GAIN = {"channels": 0.05, "range": 0.15}  # with more of them, where it is also significant
SIGNIFICANT = 3.0  # standard errors
ALIKE, UNLIKE = 0.1, 0.3  # between answers to pictures and to plain ones: at most, at least
UNSAID = "no preprocessing was given"  # how the note of a model begins that was given none
OPEN_SIZE = (224, 224)  # of the pictures made up where the model takes any
SLOW = 1.0  # seconds of a batch, after which no larger one is tried
N_TOP = 5

Triple = tuple[float, float, float]


def affine(mean: Triple, std: Triple) -> tuple[Triple, Triple]:
    gains = [1 / (255 * s) for s in std]
    offsets = [-m / s for m, s in zip(mean, std, strict=True)]
    return (gains[0], gains[1], gains[2]), (offsets[0], offsets[1], offsets[2])


ZERO, ONE, HALF = (0.0,) * 3, (1.0,) * 3, (0.5,) * 3
IMAGENET = affine(IMAGENET_MEAN, IMAGENET_STD)
RANGES: dict[str, tuple[Triple, Triple]] = {  # in words -> gain and offset
    "pixels from 0 to 1": affine(ZERO, ONE),
    "pixels from 0 to 255": (ONE, ZERO),
    "pixels from -1 to 1": affine(HALF, HALF),
    "ImageNet's mean and deviation": IMAGENET,
}
REMEDIES = {
    "pixels from 0 to 1": "scale=255, mean=0, std=1 (--scale 255 --mean 0 --std 1)",
    "pixels from 0 to 255": "scale=1, mean=0, std=1 (--scale 1 --mean 0 --std 1)",
    "pixels from -1 to 1": "scale=255, mean=0.5, std=0.5 (--scale 255 --mean 0.5 --std 0.5)",
    "ImageNet's mean and deviation": "mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225) "
    "(--mean 0.485,0.456,0.406 --std 0.229,0.224,0.225)",
}


class ModelWarning(NamedTuple):
    """What looks wrong about how a model is asked, and what to do."""

    about: str  # logits, activation, channels, range, random, batch or constant
    text: str

    def __str__(self) -> str:
        return self.text


class Answer(NamedTuple):
    """The best classes of one picture, best first."""

    image: str
    top: tuple[tuple[str, float], ...]  # label and score

    def __str__(self) -> str:
        return f"{self.image}: {', '.join(f'{label} {digits(score)}' for label, score in self.top)}"


@dataclass(frozen=True)
class Inspection:
    """What a model takes and gives, what was assumed about it, and what looks wrong."""

    model: str
    input: str
    preprocessing: str
    output: str
    labels: tuple[str, ...] | None
    assumed: tuple[str, ...]
    answers: tuple[Answer, ...]  # of each picture
    batch_size: int  # that is fastest
    images_per_second: float  # in batches of that size
    warnings: tuple[ModelWarning, ...]
    unchecked: str = ""  # what could not be checked, and why
    failed: tuple[str, ...] = ()  # pictures that could not be read, and why

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """To print."""
        known = self.labels
        shown = "none" if known is None else f"{len(known):,}: {', '.join(known[:N_TOP])}"
        lines = [
            f"Model: {self.model}",
            f"Input: {self.input}",
            f"Preprocessing: {self.preprocessing}",
            f"Output: {self.output}",
            f"Labels: {shown}{', ...' if known and len(known) > N_TOP else ''}",
            f"Speed: {self.images_per_second:,.0f} images per second in batches of "
            f"{self.batch_size}",
            *(f"Assumed: {one}." for one in self.assumed),
            *map(str, self.answers),
            *(f"Not read: {one}" for one in self.failed),
            *(f"Warning: {one}" for one in self.warnings),
        ]
        if self.unchecked:
            lines.append(f"Not checked: {self.unchecked}")
        elif not self.warnings and len(self.answers) < FEW:
            n = len(self.answers)
            lines.append(
                f"Nothing looks wrong in {n} picture{'s' * (n > 1)}. Give about a dozen that the "
                "model should know: few pictures show only large mistakes."
            )
        elif not self.warnings:
            lines.append("Nothing looks wrong.")
        return lines

    def to_json(self) -> dict[str, Any]:
        content = asdict(self)
        content["warnings"] = [one._asdict() for one in self.warnings]
        content["answers"] = [
            {"image": one.image, "top": [{"label": a, "score": b} for a, b in one.top]}
            for one in self.answers
        ]
        return content


def inspect_model(model: Any, images: Any = (), **settings: Unpack[ModelSettings]) -> Inspection:
    """Say what a model takes and gives, what was assumed about it, and what looks wrong.

    `model` and `settings` are what `load_model` takes; `images` are some pictures that the model
    should know, in any form that `explain` takes. From their answers follows whether the model
    seems to want another order of channels or another range of pixels: a dozen pictures tell more
    than one. Without pictures only the rest is checked, on noise. A model with a warning still
    runs: nothing is changed.
    """
    known = load_model(model, **settings)
    views, failed = [], []
    for source in open_sources(images) or [Source("image 0", lambda: images)]:
        try:
            view = known.view(source.read())
        except InputError as error:
            failed.append(safe_str(error))
            continue
        views.append(view if view.name else replace(view, name=source.name))
    if failed and not views:
        raise InputError(f"None of the images can be read; the first: {failed[0]}")
    return inspect_views(known, views, tuple(failed))


def inspect_views(model: Model, views: Sequence[View], failed: tuple[str, ...] = ()) -> Inspection:
    """Inspect a model that was loaded, with pictures as it is shown them."""
    raw = Asked(replace(model, kind="any", softmax=False, sigmoid=False))
    shown = [view.pixels for view in views] or [made_up(model.geometry.size or OPEN_SIZE)]
    answers = np.concatenate([raw(pixels[None]) for pixels in shown])
    plain = raw(plain_pictures(shown[0]))
    warnings = [
        *output_warnings(model, np.concatenate([answers, plain])),
        *repeat_warnings(raw, shown[0]),
    ]
    scores = activated(model, answers)
    if views and not any(one.about in ("random", "batch") for one in warnings):
        warnings += input_warnings(raw, model, shown[:MOST_PICTURES])
    unchecked = "whether the order of channels and the range of pixels are right; "
    if not views:
        unchecked += "give about a dozen pictures that the model should know."
    elif model.kind not in SURE_KINDS or answers.shape[1] < 2:
        unchecked += "only probabilities of several classes show how sure the model is."
    else:
        unchecked = ""
    squeezed = [note for view in views for note in view.notes if " was squeezed to " in note]
    batch_size, speed = best_speed(raw, model, shown[0])
    return Inspection(
        model=model.identity,
        input=input_words(model),
        preprocessing=range_words(model),
        output=f"{answers.shape[1]:,} scores per image, {output_words(model, warnings)}",
        labels=model.labels,
        assumed=(*model.notes, *squeezed[:1]),
        answers=tuple(
            top_answers(model, view.name, row) for view, row in zip(views, scores, strict=False)
        ),
        batch_size=batch_size,
        images_per_second=speed,
        warnings=tuple(warnings),
        unchecked=unchecked,
        failed=failed,
    )


class Asked:
    """A model as it is asked here: in one call, or one by one where it takes no batches."""

    def __init__(self, model: Model) -> None:
        self.model, self.refusal = model, ""
        self.sizes: list[int] = []  # of the calls, also of those with other preprocessing

    def __call__(self, images: NDArray[Any]) -> NDArray[np.float32]:
        self.sizes.append(len(images))
        if not self.refusal:
            try:
                return self.model(images)
            except ModelError as error:
                if len(images) == 1:
                    raise ModelError(f"Failed at the first image: {error}.") from error
                self.refusal = safe_str(error)
                self.sizes.append(len(images))
        return np.concatenate([self.model(image[None]) for image in images])

    def like(self, model: Model) -> "Asked":
        """The same with other preprocessing."""
        other = Asked(model)
        other.refusal, other.sizes = self.refusal, self.sizes
        return other

    @property
    def n_images(self) -> int:
        """About how many images the model was asked; one may come several times."""
        return sum(self.sizes)


# ---- what comes out


def output_warnings(model: Model, raw: NDArray[np.float32]) -> Iterator[ModelWarning]:
    """Whether answers (N, C) look like what they are said to be."""
    low, high = float(raw.min()), float(raw.max())
    within = low >= -SUM_TOLERANCE and high <= 1 + SUM_TOLERANCE
    sums_to_one = within and bool(np.abs(raw.sum(axis=1) - 1).max() <= SUM_TOLERANCE)
    if np.ptp(raw, axis=0).max() <= 1e-6 * max(1.0, abs(high)):
        yield ModelWarning("constant", "The answers are the same for every picture.")
    if model.softmax and sums_to_one:
        yield ModelWarning(
            "activation",
            "A softmax is applied to answers that are probabilities already, which makes them "
            "nearly equal: leave softmax (--softmax) out.",
        )
    elif model.sigmoid and within:
        yield ModelWarning(
            "activation",
            f"A sigmoid is applied to answers that lie in 0..1 already (from {low:.3g} to "
            f"{high:.3g}): leave sigmoid (--sigmoid) out, and give score_kind='independent' "
            "(--score-kind independent).",
        )
    elif model.softmax or model.sigmoid or model.kind == "any":
        return
    elif not within:
        yield ModelWarning(
            "logits",
            f"The answers look like logits (from {low:.3g} to {high:.3g}): give softmax=True "
            "(--softmax) if the classes exclude each other, sigmoid=True (--sigmoid) if not.",
        )
    elif model.kind == "probability" and not sums_to_one:
        yield ModelWarning(
            "logits",
            f"The answers lie in 0..1, but do not add up to 1 (from {low:.3g} to {high:.3g}): give "
            "score_kind='independent' (--score-kind independent) if each class is scored on its "
            "own.",
        )


def activated(model: Model, raw: NDArray[np.float32]) -> NDArray[np.float32]:
    """Raw answers (N, C) as scores; logits that nobody announced become probabilities too."""
    logits = model.kind == "probability" and (
        raw.min() < -SUM_TOLERANCE or raw.max() > 1 + SUM_TOLERANCE
    )
    if model.softmax or (logits and not model.sigmoid):
        raw = np.exp(raw - raw.max(axis=1, keepdims=True))
        return np.asarray(raw / raw.sum(axis=1, keepdims=True))
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * raw)) if model.sigmoid else raw


def repeat_warnings(raw: Asked, pixels: NDArray[Any]) -> Iterator[ModelWarning]:
    """Whether a picture has the same answer each time and whatever else is in its batch."""
    batch = np.concatenate([variants(pixels), pixels[None]])
    plain = np.concatenate([pixels[None], plain_pictures(pixels)[1:4]])
    answers = [raw(batch)[0] for _ in range(3)]
    if raw.refusal:
        yield ModelWarning(
            "batch",
            f"The model fails on {len(batch)} images at once ({raw.refusal.rstrip('.')}): give "
            "batch_size=1 (--batch-size 1).",
        )
        return
    scale = float(np.ptp(answers[0])) or 1.0
    jitter = float(np.abs(np.diff(answers, axis=0)).max())
    beside = float(np.abs(raw(plain)[0] - answers[0]).max())
    if jitter > SAME_ANSWER * scale:
        yield ModelWarning(
            "random",
            f"The same picture gets different answers, by up to {jitter:.2g}: switch off what is "
            "random (dropout, augmentation), with model.eval() in torch.",
        )
    if beside > max(SAME_ANSWER * scale, 5 * jitter):
        yield ModelWarning(
            "batch",
            f"The answer depends on the other images of the batch, by up to {beside:.2g}: does the "
            "model normalize over the batch? Switch it to inference (model.eval() in torch), or "
            "give batch_size=1 (--batch-size 1).",
        )


# ---- how pictures go in


def input_warnings(
    raw: Asked, model: Model, pictures: Sequence[NDArray[Any]]
) -> Iterator[ModelWarning]:
    """Whether the model knows the pictures better in another order of channels or range."""
    now = contrast(raw, model, pictures)
    if now is None:
        return
    order = "rgb" if model.channels == "bgr" else "bgr"
    exchanged = contrast(raw.like(replace(raw.model, channels=order)), model, pictures)
    if exchanged is not None and is_better(exchanged, now, GAIN["channels"]):
        yield ModelWarning(
            "channels",
            f"The model seems to want {order.upper()}: with red and blue exchanged its top score "
            f"averages {exchanged.top.mean():.2f} instead of {now.top.mean():.2f}. Give "
            f"channels='{order}' (--channels {order}).",
        )
    found = better_range(raw, model, pictures, now)
    if found is not None:
        words, other = found
        yield ModelWarning(
            "range",
            f"The model seems to want another range of pixels: {gain_words(words, now, other)}. "
            f"Give {REMEDIES[words]}.",
        )


class Contrast(NamedTuple):
    """How sure a model is of pictures, and of plain ones, in one way of putting them in."""

    top: NDArray[np.float64]  # (N,) top score of each picture
    stable: NDArray[np.float64]  # (N,) of the mean answer to its variants
    plain: float  # the surest answer to a plain picture
    spread: float  # how far the answers to all of these are apart


def contrast(raw: Asked, model: Model, pictures: Sequence[NDArray[Any]]) -> Contrast | None:
    """None where sureness means nothing: a single score, or scores of any kind."""
    if model.kind not in SURE_KINDS:
        return None
    answers = [raw(variants(pixels)) for pixels in pictures]
    plain = raw(plain_pictures(pictures[0]))
    if plain.shape[1] < 2:
        return None
    # All at once: what are logits is decided by all answers together.
    together = activated(model, np.concatenate([*answers, plain])).astype(np.float64)
    n = len(answers[0])
    tried = together[: -len(plain)].reshape(len(pictures), n, -1)
    return Contrast(
        tried[:, 0].max(axis=1),
        tried.mean(axis=1).max(axis=1),
        float(together[-len(plain) :].max()),
        float(np.ptp(together, axis=0).max()),
    )


def is_better(other: Contrast, now: Contrast, needed: float) -> bool:
    """Whether a model knows pictures better in another way, and by more than chance."""
    gains = (other.stable - other.plain) - (now.stable - now.plain)
    gain = float(gains.mean())
    if other.stable.mean() - other.plain < needed or other.top.mean() - now.top.mean() < needed:
        return False  # as sure of plain pictures, or no surer than now
    if len(gains) < FEW:
        return gain >= LARGE_GAIN
    error = float(gains.std(ddof=1)) / len(gains) ** 0.5
    return gain >= needed and gain >= SIGNIFICANT * error


def better_range(
    raw: Asked, model: Model, pictures: Sequence[NDArray[Any]], now: Contrast
) -> tuple[str, Contrast] | None:
    """The range of pixels in which the model knows pictures best, where it is not today's.

    A small model may be as sure of plain pictures as of any. So, if no preprocessing was given,
    another range is also better if the model answers all pictures alike now, but not with it.
    """
    if model.dtype == "uint8":
        return None
    dull = is_unsaid(model) and now.spread <= ALIKE
    found: dict[str, Contrast] = {}
    for words, (gains, offsets) in RANGES.items():
        if words == range_words(model):
            continue
        dtype = raw.model.dtype or "float32"
        changed = replace(raw.model, gain=gains, offset=offsets, dtype=dtype)
        try:
            other = contrast(raw.like(changed), model, pictures)
        except ModelError:  # it overflows, or refuses such values
            continue
        if other is None:
            continue
        if is_better(other, now, GAIN["range"]) or (dull and other.spread >= UNLIKE):
            found[words] = other
    if not found:
        return None

    def gain(other: Contrast) -> float:
        return other.spread if dull else float((other.stable - other.plain).mean())

    best = max(found, key=lambda words: gain(found[words]))
    return best, found[best]


def preprocessing_hint(model: Model, view: View) -> tuple[str, int]:
    """Which preprocessing a model seems to want, if none was given, and how many images that took.

    `with ImageNet's mean and deviation the top score would be 0.93 instead of 0.04`; empty where
    no other preprocessing does better, or some was given.
    """
    if not is_unsaid(model):
        return "", 0
    raw = Asked(replace(model, kind="any", softmax=False, sigmoid=False))
    now = contrast(raw, model, [view.pixels])
    found = None if now is None else better_range(raw, model, [view.pixels], now)
    if now is None or found is None:
        return "", raw.n_images
    words, other = found
    gain = gain_words(words, now, other)
    return f"{gain}: give {REMEDIES[words]} if the model was trained so", raw.n_images


def gain_words(words: str, now: Contrast, other: Contrast) -> str:
    """How a model knows pictures better in another way."""
    if now.spread <= ALIKE:
        return (
            f"with {words} its scores of pictures and of plain gray differ by up to "
            f"{other.spread:.2f} rather than {now.spread:.2f}"
        )
    before, after = now.top.mean(), other.top.mean()
    return f"with {words} the top score would be {after:.2f} instead of {before:.2f}"


def is_unsaid(model: Model) -> bool:
    """Whether no preprocessing was given."""
    return any(note.startswith(UNSAID) for note in model.notes)


def variants(pixels: NDArray[Any]) -> NDArray[Any]:
    """A picture (H, W, 3) and two crops of it, at its size: (3, H, W, 3)."""
    picture = Image.fromarray(whole_pixels(pixels))
    down, right = -(-picture.height // CROP), -(-picture.width // CROP)
    boxes = [
        (0, 0, picture.width - right, picture.height - down),
        (right, down, picture.width, picture.height),
    ]
    crops = [
        np.asarray(picture.resize(picture.size, Image.Resampling.BILINEAR, box=box))
        for box in boxes
    ]
    whole = pixels.dtype == np.uint8
    return np.stack([pixels, *(c if whole else (c / 255).astype(pixels.dtype) for c in crops)])


def plain_pictures(pixels: NDArray[Any]) -> NDArray[Any]:
    """Pictures of one gray each, of the size and kind of another: (5, H, W, 3)."""
    values = np.array(PLAIN) if pixels.dtype == np.uint8 else np.array(PLAIN) / 255
    flat = values.astype(pixels.dtype)[:, None, None, None]
    return np.broadcast_to(flat, (len(PLAIN), *pixels.shape)).copy()


def made_up(size: tuple[int, int]) -> NDArray[np.uint8]:
    """A picture (H, W, 3) of colored noise, where none was given."""
    return np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)


# ---- how fast


def best_speed(raw: Asked, model: Model, pixels: NDArray[Any]) -> tuple[int, float]:
    """The batch size that is fastest per image, and images per second in it."""
    most = 1 if raw.refusal else largest_batch(model, View(pixels, pixels.shape[:2], (0, 0, 1, 1)))
    speeds: dict[int, float] = {}
    for size in [size for size in BATCH_SIZES if size <= most]:
        speeds[size] = speed_of(raw.model, pixels, size)
        if size / speeds[size] > SLOW:
            break
    size = max(speeds, key=lambda size: speeds[size])
    return size, speeds[size]


def speed_of(model: Model, pixels: NDArray[Any], size: int) -> float:
    """Images per second in batches of a size, the best of three calls."""
    batch = np.repeat(model.canvas(pixels, ()).untouched(), size, axis=0)
    best = float("inf")
    for _ in range(3):  # the first call of a size may compile or allocate
        started = time.perf_counter()
        model.scores(batch)
        best = min(best, time.perf_counter() - started)
        if best > SLOW:
            break
    return size / max(best, 1e-9)


# ---- in words


def input_words(model: Model) -> str:
    size = (
        "any size" if model.geometry.size is None else "{} x {} pixels".format(*model.geometry.size)
    )
    crop = ""
    if model.geometry.short_side is not None:
        crop = f", cut from the middle of a short side of {model.geometry.short_side}"
    kind = model.dtype or "uint8 or float, as the image is"
    return f"images of {size}{crop}, {kind}, {model.layout}, {model.channels}"


def range_words(model: Model) -> str:
    """`pixels from 0 to 1`, or the values that black and white become."""
    if model.dtype in (None, "uint8") and model.gain == ONE and model.offset == ZERO:
        return "none, pixels go in as they are" if model.dtype is None else "pixels from 0 to 255"
    for words, (gain, offset) in RANGES.items():
        if np.allclose(gain, model.gain, 1e-4) and np.allclose(offset, model.offset, atol=1e-4):
            return words
    ends = [f"{o:.3g} to {255 * g + o:.3g}" for g, o in zip(model.gain, model.offset, strict=True)]
    return f"pixels go in as {', '.join(ends)} (red, green, blue)"


def output_words(model: Model, warnings: Sequence[ModelWarning]) -> str:
    if any(one.about == "logits" for one in warnings):
        return "not as assumed: see the warning"
    applied = " after a softmax" * model.softmax + " after a sigmoid" * model.sigmoid
    words = {
        "probability": "probabilities of classes that exclude each other",
        "independent": "a probability for each class on its own",
        "similarity": "similarities",
        "any": "any numbers",
    }
    return f"{words[model.kind]}{applied}"


def top_answers(model: Model, name: str, scores: NDArray[np.float32]) -> Answer:
    best: Iterable[int] = np.argsort(-scores, kind="stable")[:N_TOP].tolist()
    names = model.labels if model.labels and len(model.labels) == len(scores) else None
    return Answer(
        name, tuple((names[c] if names else f"class {c}", float(scores[c])) for c in best)
    )
