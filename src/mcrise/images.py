"""Pictures from files and arrays, and what of them a model is shown.

Geometry comes first and once: a picture is turned upright, resized and cropped to the model's
input, and that `View` is the image of a run. Maps are in its pixels; `box` says where in the
original it was, so that a plot can lay a map over the whole picture.
"""

import io
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from ._util.array_eq import ArrayEq
from .errors import InputError, TooSmallError

SMALLEST_SIDE = 8  # pixels; below it there is no room for "where"
MOST_PIXELS = 100_000_000
MANY_PIXELS = 4_000_000  # more than a model that takes any size was likely made for
SQUEEZED = 1.25  # times as much along one side as along the other: then it is said
CROP_SHARE = 0.875  # of the short side, that most models of photographs are trained to see
ORIENTATION = 0x0112  # the entry of EXIF
TURNED = {  # what it says of a picture that is to be shown another way
    2: "mirrored as its EXIF says",
    3: "turned upright as its EXIF says",
    4: "turned upright and mirrored as its EXIF says",
    5: "turned upright and mirrored as its EXIF says",
    6: "turned upright as its EXIF says",
    7: "turned upright and mirrored as its EXIF says",
    8: "turned upright as its EXIF says",
}
STRIP = 256  # rows
JPEGS = ("JPEG", "MPO")
MOST_A_BYTE = 1024  # pixels of a JPEG: each 8 x 8 of them take a bit at least
PROGRAMS = ("EPS", "WMF")  # kinds that Pillow hands to another program, whatever their name
FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "area": Image.Resampling.BOX,
}


CROPS = ("exact", "rounded", "floored")  # how the middle is cut out: see `Geometry.fit`


@dataclass(frozen=True, eq=False)
class View(ArrayEq):
    """What the model is shown of a picture."""

    pixels: NDArray[Any]  # (H, W, 3): uint8 in 0..255 or float32 in 0..1
    original_size: tuple[int, int]  # rows, columns
    box: tuple[float, float, float, float]  # top, left, bottom, right in the original
    notes: tuple[str, ...] = ()  # what was changed on the way, for the user
    name: str = ""  # of the file, where it came from one; no path

    def __repr__(self) -> str:
        rows, columns = self.pixels.shape[:2]
        return f"<View of {self.name or 'an image'}: {rows} x {columns} pixels>"


@dataclass(frozen=True)
class Geometry:
    """How a picture is brought to a model's input size."""

    size: tuple[int, int] | None = None  # rows, columns; None: the picture's own
    short_side: int | None = None  # resize to this, then cut the middle; None: squeeze the whole
    filter: str = "bilinear"
    crop: str = "exact"  # or "rounded" or "floored"

    def __post_init__(self) -> None:
        if self.crop not in CROPS:
            raise InputError(
                f"The crop is {self.crop!r}, but it must be one of {', '.join(CROPS)}."
            )
        if self.filter not in FILTERS:
            raise InputError(
                f"The resize filter is {self.filter!r}, but it must be one of {', '.join(FILTERS)}."
            )
        if self.size is not None and min(self.size) < SMALLEST_SIDE:
            raise InputError(
                f"The input size is {self.size[0]} x {self.size[1]}, but each side needs at least "
                f"{SMALLEST_SIDE} pixels."
            )
        if self.size is not None and self.size[0] * self.size[1] > MOST_PIXELS:
            raise InputError(
                f"The input size is {self.size[0]} x {self.size[1]}, but at most {MOST_PIXELS:,} "
                "pixels are possible."
            )
        if self.short_side is not None:
            if self.size is None:
                raise InputError(
                    "A short_side was given without the size to cut from it: give both."
                )
            if self.short_side < max(self.size):
                raise InputError(
                    f"short_side is {self.short_side}, but to cut {self.size[0]} x {self.size[1]} "
                    f"from the middle it must be at least {max(self.size)}."
                )

    def view(self, source: Any) -> View:
        """Show `source` (a path, bytes of a file, a Pillow image or an array) to the model."""
        if isinstance(source, View):  # made by this geometry before
            return source
        if hasattr(source, "detach"):  # a tensor
            source = channels_last(np.asarray(source.detach().cpu()))
        if isinstance(source, np.ndarray):
            pixels, notes = array_pixels(source)
            if self.size in (None, pixels.shape[:2]) and self.short_side is None:
                return whole_view(pixels, notes)
            if pixels.dtype != np.uint8:
                notes += ("the float image was rounded to 8 bits to be resized",)
            picture = Image.fromarray(whole_pixels(pixels))
        elif isinstance(source, Image.Image):
            picture, notes = upright_rgb(source)
        elif isinstance(source, str | Path | bytes):
            picture, notes = open_picture(source)
        else:
            raise InputError(not_an_image(source))
        view = self.fit(picture, notes)
        return replace(view, name=file_name(source)) if isinstance(source, str | Path) else view

    def fit(self, picture: Image.Image, notes: tuple[str, ...]) -> View:
        """The picture in the model's size.

        An "exact" crop resizes the middle of the picture, to fractions of a pixel. The others
        resize the picture to whole pixels and then cut out its middle: where that begins between
        two pixels, torchvision and timm round it ("rounded") and Hugging Face does not ("floored").
        """
        rows, cols = picture.height, picture.width
        if self.size is None:
            return whole_view(np.asarray(picture), notes)
        if self.short_side is not None and self.crop != "exact":
            high, wide = (self.short_side * side // min(rows, cols) for side in (rows, cols))
            resized = picture.resize((wide, high), FILTERS[self.filter])
            whole = round if self.crop == "rounded" else math.floor
            row, col = whole((high - self.size[0]) / 2), whole((wide - self.size[1]) / 2)
            end_row, end_col = row + self.size[0], col + self.size[1]
            down, across = rows / high, cols / wide
            box = (row * down, col * across, end_row * down, end_col * across)
            cut = resized.crop((col, row, end_col, end_row))
            return View(np.asarray(cut), (rows, cols), box, notes)
        if self.short_side is None:
            height, width = float(rows), float(cols)
            notes += squeezed_note((rows, cols), self.size)
        else:
            shrink = min(rows, cols) / self.short_side
            height, width = self.size[0] * shrink, self.size[1] * shrink
        top, left = (rows - height) / 2, (cols - width) / 2
        fitted = picture.resize(
            self.size[::-1], FILTERS[self.filter], box=(left, top, left + width, top + height)
        )
        box = (top, left, top + height, left + width)
        return View(np.asarray(fitted), (rows, cols), box, notes)


def squeezed_note(original: tuple[int, int], size: tuple[int, int]) -> tuple[str, ...]:
    """What to know where a whole picture was brought to a size of another shape."""
    down, across = (now / before for now, before in zip(size, original, strict=True))
    if max(down, across) < SQUEEZED * min(down, across):
        return ()
    before, now = (f"{rows} x {columns}" for rows, columns in (original, size))
    return (
        f"the whole picture of {before} was squeezed to {now}: if the model was trained on crops, "
        f"give the short side before the crop, such as {round(max(size) / CROP_SHARE)}",
    )


def not_an_image(source: Any) -> str:
    """What to say of something that no picture can be made of."""
    many = hasattr(source, "__iter__") or hasattr(source, "__getitem__")
    each = ": give its images, one by one or as a list" if many else ""
    return (
        f"The image is a {type(source).__name__}, but a path, a Pillow image, an array (rows, "
        f"columns, 3) or a tensor is needed{each}."
    )


def whole_view(pixels: NDArray[Any], notes: tuple[str, ...]) -> View:
    rows, cols = pixels.shape[:2]
    if rows * cols > MANY_PIXELS:
        notes += (
            f"the model is shown all {rows * cols:,} pixels, which takes long and much memory: "
            "give a size to show it a smaller picture",
        )
    return View(pixels, (rows, cols), (0.0, 0.0, float(rows), float(cols)), notes)


def open_picture(source: Path | str | bytes) -> tuple[Image.Image, tuple[str, ...]]:
    """Open an image file of any kind Pillow knows, as upright RGB."""
    with opened_picture(source) as opened:
        return upright_rgb(opened)


@contextmanager
def opened_picture(source: Path | str | bytes) -> Iterator[Image.Image]:
    """An image file as it is, unpacked, once it is known that it is one and not too large."""
    name = "The image" if isinstance(source, bytes) else str(source)
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        raise InputError(
            f"{name} is an address, but images are read from files: download it first."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # ours is the limit
            with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as opened:
                if opened.format in PROGRAMS:
                    raise UnidentifiedImageError
                check_extent(name, opened.height, opened.width)
                n_bytes = len(source) if isinstance(source, bytes) else os.path.getsize(source)
                if opened.format in JPEGS and opened.height * opened.width > MOST_A_BYTE * n_bytes:
                    raise ValueError(f"it has {n_bytes:,} bytes, too few for its size")
                opened.load()
                yield opened
    except FileNotFoundError:
        raise InputError(f"{name} does not exist: give the path of an image.") from None
    except (IsADirectoryError, NotADirectoryError, PermissionError) as error:
        raise InputError(
            f"{name} cannot be opened ({error.strerror}): give the path of an image."
        ) from None
    except UnidentifiedImageError:
        raise InputError(
            f"{name} is not an image that Pillow can read: give a PNG or JPEG."
        ) from None
    except Image.DecompressionBombError:  # before its size is known here
        raise InputError(
            f"{name} unpacks to more than the {MOST_PIXELS:,} pixels read here: make it smaller "
            "first."
        ) from None
    except (InputError, MemoryError):
        raise
    except (
        Exception
    ) as error:  # Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error
        raise InputError(f"{name} is damaged ({error}): save or download it again.") from None


def file_name(path: Path | str) -> str:
    """The name of a file as text that can be written: not every name of a file is UTF-8."""
    return os.fsencode(Path(path).name).decode("utf-8", "backslashreplace")


def check_extent(name: str, rows: int, cols: int) -> None:
    if min(rows, cols) < SMALLEST_SIDE:
        raise TooSmallError(
            f"{name} is {rows} x {cols} pixels, but each side needs at least {SMALLEST_SIDE}: "
            "give a larger image."
        )
    if rows * cols > MOST_PIXELS:
        raise InputError(
            f"{name} has {rows * cols:,} pixels, more than the {MOST_PIXELS:,} read here: "
            "make it smaller first."
        )


def upright_rgb(picture: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    check_extent("The image", picture.height, picture.width)
    # Only where it says so: even one that need not be turned would be copied.
    how = TURNED.get(picture.getexif().get(ORIENTATION, 1))
    turned = ImageOps.exif_transpose(picture) if how else picture
    notes = (how,) if how else ()
    if turned.mode == "RGB":
        return turned, notes
    if turned.mode in ("La", "RGBa"):  # premultiplied: Pillow converts it only step by step
        turned = turned.convert("LA" if turned.mode == "La" else "RGBA")
    if turned.has_transparency_data:
        return over_white(turned), (*notes, "transparent parts were laid over white")
    if turned.mode[0] in "IF":  # 16 and 32 bits a pixel: Pillow would clip rather than scale
        turned = scaled_gray(turned)
    return turned.convert("RGB"), (*notes, f"converted from mode {picture.mode} to RGB")


def strips(picture: Image.Image) -> Iterator[tuple[int, int, int, int]]:
    """Boxes of a few rows each, to save memory."""
    for top in range(0, picture.height, STRIP):
        yield 0, top, picture.width, min(top + STRIP, picture.height)


def scaled_gray(picture: Image.Image) -> Image.Image:
    """A picture of 16 or 32 bits a pixel in 8."""

    def values(box: tuple[int, int, int, int]) -> NDArray[np.float64]:
        return np.asarray(picture.crop(box), np.float64)

    most = np.max([values(box).max() for box in strips(picture)])
    top = 255 if most <= 255 else max(65535.0, most)
    if picture.mode == "F" and most <= 1:
        top = 1
    out = Image.new("L", picture.size)
    for box in strips(picture):
        gray = np.clip(values(box) * (255 / top), 0, 255).astype(np.uint8)
        out.paste(Image.fromarray(gray), box)
    return out


def over_white(picture: Image.Image) -> Image.Image:
    """A picture with transparent parts laid over white."""
    out = Image.new("RGB", picture.size)
    for box in strips(picture):
        layered = picture.crop(box).convert("RGBA")
        white = Image.new("RGBA", layered.size, "white")
        out.paste(Image.alpha_composite(white, layered).convert("RGB"), box)
    return out


def channels_last(array: NDArray[Any]) -> NDArray[Any]:
    """A tensor's values as an image: (3, H, W), as torch has them, or one image as a batch."""
    array = array[0] if array.ndim == 4 and len(array) == 1 else array
    if array.ndim == 3 and array.shape[0] in (1, 3, 4) and array.shape[2] not in (1, 3, 4):
        return np.moveaxis(array, 0, 2)
    return array


def array_pixels(array: NDArray[Any]) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Check an array of pixels and make it (H, W, 3), uint8 or float32."""
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise InputError(
            f"The image has shape {array.shape}, but (rows, columns, 3) is needed: one image, "
            "channels last."
        )
    check_extent("The image", *array.shape[:2])
    if array.dtype == np.uint8:
        pixels = array
    elif np.issubdtype(array.dtype, np.floating):
        if np.isfinite(array).all() and -10 < array.min() < 0 and array.max() < 10:
            raise InputError(
                f"The float image ranges from {array.min():g} to {array.max():g}, so it was "
                "normalized already: give the image before that, in 0..1, and let the model's "
                "mean=(0.5, 0.5, 0.5) and std=(0.5, 0.5, 0.5), or whatever they are, do the rest."
            )
        if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
            raise InputError(
                f"The float image ranges from {array.min():g} to {array.max():g}, but floats must "
                "lie in 0..1: divide by 255, or pass uint8."
            )
        pixels = array.astype(np.float32)
    else:
        raise InputError(
            f"The image has dtype {array.dtype}, but uint8 in 0..255 or floats in 0..1 are needed."
        )
    if pixels.ndim == 2 or pixels.shape[2] == 1:
        gray = pixels.reshape(*pixels.shape[:2], 1)
        return np.repeat(gray, 3, axis=2), ("the gray image was repeated in three channels",)
    if pixels.shape[2] == 4:
        top = 255 if pixels.dtype == np.uint8 else 1.0
        alpha = pixels[..., 3:] / top
        flat = pixels[..., :3] * alpha + top * (1 - alpha)
        flat = np.rint(flat) if pixels.dtype == np.uint8 else flat
        return flat.astype(pixels.dtype), ("transparent parts were laid over white",)
    return np.ascontiguousarray(pixels), ()


def unit_float(pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Pixels in 0..1 whatever their dtype."""
    if pixels.dtype == np.uint8:
        return (pixels / np.float32(255)).astype(np.float32, copy=False)
    return pixels.astype(np.float32)


def whole_pixels(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Pixels as uint8 in 0..255 whatever their dtype."""
    if pixels.dtype == np.uint8:
        return pixels
    return np.clip(np.rint(unit_float(pixels) * 255), 0, 255).astype(np.uint8)


def downsampling_step(size: tuple[int, ...], most: int) -> int:
    """Every how many pixels (rows, columns) are left if no side is to be longer than `most`."""
    return -(-max(size[:2]) // most)


def downsample(pixels: NDArray[Any], every: int) -> NDArray[Any]:
    """Pixels (H, W, 3) to look at: one for every square of so many, their mean."""
    if every == 1:
        return pixels
    return np.asarray(Image.fromarray(whole_pixels(pixels)).reduce(every))


def touched_blocks(region: NDArray[np.bool_], every: int) -> NDArray[np.bool_]:
    """Which squares of so many pixels a region (H, W) has a part in, as `downsample` cuts them."""
    for axis in (0, 1):
        starts = np.arange(0, region.shape[axis], every)
        region = np.logical_or.reduceat(region, starts, axis=axis)
    return region


def image_file(pixels: NDArray[Any], most: int | None = None, kind: str = "png") -> bytes:
    """Pixels (H, W, 3), uint8 or in 0..1, as a PNG or WebP file; no side longer than `most`."""
    picture = Image.fromarray(whole_pixels(pixels))
    if most is not None:
        picture.thumbnail((most, most))
    out = io.BytesIO()
    picture.save(out, kind, **({"quality": 90, "method": 2} if kind == "webp" else {}))
    return out.getvalue()


def png(pixels: NDArray[Any], most: int | None = None) -> bytes:
    """Pixels (H, W, 3), uint8 or in 0..1, as a PNG file; no side longer than `most`."""
    return image_file(pixels, most)


def thumbnail(
    pixels: NDArray[Any], size: int, form: Literal["WEBP", "JPEG"], quality: int
) -> bytes:
    """A small file of an image (H, W, 3), at most `size` pixels each way."""
    picture = Image.fromarray(whole_pixels(pixels))
    picture.thumbnail((size, size))
    out = io.BytesIO()
    picture.save(out, form, quality=quality)
    return out.getvalue()
