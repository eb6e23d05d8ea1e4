"""Inputs: what the shape and type of a model's input say, and what has to be assumed."""

from collections.abc import Sequence
from typing import Any

from ..errors import InputError
from .outputs import is_whole
from .settings import Settings

NO_PREPROCESSING = "no preprocessing was given, so pixels go in scaled to 0..1"
NO_SIZE = "no size was given, so images go in at their own size"
NO_LAYOUT = "the model does not say where its channels are, so NCHW was assumed"


def read_input(where: str, shape: Sequence[Any], dtype: str, settings: Settings) -> dict[str, Any]:
    """What `Settings.model` takes about an input of four dimensions; open sides are no numbers."""
    layout, size = read_shape(where, shape, settings)
    notes: tuple[str, ...] = ()
    if settings.layout is None and not {shape[1], shape[3]} & {1, 3}:
        notes = (NO_LAYOUT,)
    gain, offset = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)
    if dtype != "uint8" or settings.normalised:
        gain, offset = settings.affine()
        notes += () if settings.normalised else (NO_PREPROCESSING,)
    notes += own_size(settings, size)
    return {
        "geometry": settings.geometry(size),
        "layout": layout,
        "dtype": dtype,
        "gain": gain,
        "offset": offset,
        "notes": notes,
    }


def own_size(settings: Settings, size: tuple[int, int] | None) -> tuple[str, ...]:
    """What to say where neither the model, which takes only `size`, nor anybody else said one."""
    return () if size or settings.size else (NO_SIZE,)


def read_shape(
    where: str, shape: Sequence[Any], settings: Settings
) -> tuple[str, tuple[int, int] | None]:
    """The layout, and rows and columns where the model fixes them."""
    if len(shape) != 4:
        listed = " x ".join(str(n) if is_whole(n) else "N" for n in shape)
        raise InputError(
            f"{where} takes {listed}, but one batch of images (four dimensions) is needed."
        )
    if settings.layout is not None:
        layout = settings.layout
    else:
        layout = "NHWC" if shape[3] in (1, 3) and shape[1] not in (1, 3) else "NCHW"
    if layout not in ("NCHW", "NHWC"):
        raise InputError(f"The layout is {layout!r}, but it must be NCHW or NHWC.")
    rows, cols = shape[2:] if layout == "NCHW" else shape[1:3]
    n_channels = shape[1] if layout == "NCHW" else shape[3]
    if n_channels == 1:
        raise InputError(
            f"{where} takes images of one channel, so it sees no colors to explain: a model with "
            "three (rgb) is needed."
        )
    if is_whole(n_channels) and n_channels != 3:
        raise InputError(
            f"{where} takes {n_channels} channels in layout {layout}, but three (rgb) are needed: "
            "export it so, or give its layout."
        )
    return layout, (int(rows), int(cols)) if is_whole(rows) and is_whole(cols) else None
