"""Preprocessing as other libraries describe it, in the settings of a model.

`preprocess` may be the weights or transforms of torchvision, the transforms or configuration of
timm, or an image processor of Hugging Face. None of these libraries is imported: what they give is
recognised by what it has.
"""

from collections.abc import Mapping
from typing import Any

from ..errors import InputError

RESAMPLING = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "area"}  # as in Pillow
FILTER_NAMES = {"box": "area"}
BY_HAND = "give size=(224, 224), mean=(0.5, 0.5, 0.5) and so on instead, or a function that does it"
HF_RESIZE = "pictures are resized by Pillow; the processor's own way differs by a few levels of 255"


def settings_of(preprocess: Any) -> dict[str, Any]:
    """What is known of size, crop, filter, mean, deviation and labels."""
    if hasattr(preprocess, "transforms") and hasattr(preprocess, "meta"):  # torchvision's weights
        known = settings_of(preprocess.transforms())
        labels = preprocess.meta.get("categories")
        return {**known, **({"labels": list(labels)} if labels else {})}
    if hasattr(preprocess, "crop_size") and hasattr(preprocess, "resize_size"):
        return from_preset(preprocess)
    if isinstance(getattr(preprocess, "transforms", None), list | tuple):
        return from_steps(preprocess.transforms)
    if hasattr(preprocess, "image_mean") or hasattr(preprocess, "do_normalize"):
        return from_processor(preprocess)
    if isinstance(preprocess, Mapping) and "input_size" in preprocess:
        return from_timm(preprocess)
    raise InputError(
        f"preprocess is a {type(preprocess).__name__}, but weights or transforms of torchvision, "
        "transforms or a configuration of timm, or a processor of Hugging Face is needed: "
        f"{BY_HAND}."
    )


def from_preset(preset: Any) -> dict[str, Any]:
    """torchvision's `ImageClassification`: resize, crop, normalise."""
    crop, resize = list(preset.crop_size), list(preset.resize_size)
    return {
        **sizes(crop * 2 if len(crop) == 1 else crop, resize, "rounded"),
        "filter": filter_name(preset.interpolation),
        **normal(preset.mean, preset.std),
    }


def from_steps(steps: Any) -> dict[str, Any]:
    """torchvision's or timm's `Compose`; a step that is not known is refused."""
    known: dict[str, Any] = {}
    resize: list[int] = []
    crop: list[int] = []
    scaled = False
    for step in steps:
        kind = type(step).__name__
        if kind == "Resize" and getattr(step, "max_size", None) is None:
            resize, known["filter"] = numbers(step.size), filter_name(step.interpolation)
        elif kind == "CenterCrop":
            crop = numbers(step.size)
        elif kind == "Normalize":
            known |= normal(step.mean, step.std)
        elif kind in ("ToTensor", "MaybeToTensor", "ToDtype", "ConvertImageDtype"):
            scaled = True
        elif kind not in ("PILToTensor", "MaybePILToTensor", "ToImage", "ToRGB"):
            raise InputError(f"preprocess has a step {kind}, which cannot be followed: {BY_HAND}.")
    if crop and resize:
        known |= sizes(crop * 2 if len(crop) == 1 else crop, resize, "rounded")
    elif len(resize) == 2:
        known["size"] = resize
    elif crop or resize:
        raise InputError(
            f"preprocess resizes to {resize or 'nothing'} and crops to {crop or 'nothing'}, but a "
            f"model needs images of one size: {BY_HAND}."
        )
    return known if "mean" in known else {**known, "scale": 255.0 if scaled else 1.0}


def from_timm(config: Mapping[str, Any]) -> dict[str, Any]:
    """timm's `pretrained_cfg`, as its `resolve_data_config` and `create_transform` read it."""
    n_channels, rows, cols = config["input_size"]
    if n_channels != 3:
        raise InputError(
            f"The model takes {n_channels} channels, but three (rgb) are needed: a model that sees "
            "colors."
        )
    fraction, mode = config.get("crop_pct") or 0.875, config.get("crop_mode") or "center"
    known = {
        "size": [rows, cols],
        "filter": filter_name(config.get("interpolation") or "bilinear"),
        **normal(config["mean"], config["std"]),
    }
    if mode == "squash" and fraction == 1:
        return known
    if mode != "center" or rows != cols:
        raise InputError(
            f"The model's pictures are cut in timm's mode {mode!r} to {fraction:g} of {rows} x "
            f"{cols}, which cannot be followed: give size=({rows}, {cols}) to show it the whole "
            "picture."
        )
    return {**known, "short_side": int(rows / fraction), "crop": "rounded"}


def from_processor(processor: Any) -> dict[str, Any]:
    """An image processor of Hugging Face."""
    said = processor.to_dict()
    known: dict[str, Any] = {}
    size, crop = dict(said.get("size") or {}), dict(said.get("crop_size") or {})
    if said.get("resample") is not None:
        known["filter"] = filter_name(said["resample"])
    factor = said.get("rescale_factor") or 1 / 255
    scale = round(1 / factor, 6) if said.get("do_rescale", True) else 1.0
    if said.get("do_normalize") and said.get("image_mean") is not None:
        known |= normal(said["image_mean"], said["image_std"], scale)
    else:
        known["scale"] = scale
    if said.get("rescale_offset"):  # to -1..1
        known["mean"] = [one + 1.0 for one in known.get("mean", [0.0] * 3)]
    if not said.get("do_resize", True):
        return known
    edge = size.get("shortest_edge")
    if edge is not None and said.get("crop_pct") is not None:  # ConvNeXT's way
        small = edge < 384
        short = int(edge / said["crop_pct"])
        return known | ({"size": [edge, edge]} if not small else cut([edge, edge], short))
    if edge is not None and said.get("do_center_crop") and crop:
        return known | cut([crop["height"], crop["width"]], edge)
    if {"height", "width"} <= size.keys() and not said.get("do_center_crop"):
        return known | {"size": [size["height"], size["width"]]}
    raise InputError(
        f"The processor resizes to {size or 'nothing'} and crops to {crop or 'nothing'}, which "
        f"cannot be followed: {BY_HAND}."
    )


def notes_on(processor: Any) -> tuple[str, ...]:
    """Where a processor cannot be followed to the last bit."""
    own = any(
        "Torchvision" in base.__name__ or "Fast" in base.__name__
        for base in type(processor).__mro__
    )
    return (HF_RESIZE,) if own else ()


# ---- parts


def sizes(crop: list[int], resize: list[int], rule: str) -> dict[str, Any]:
    if len(resize) == 1:
        return {"size": crop, "short_side": resize[0], "crop": rule}
    if list(resize) == list(crop):
        return {"size": crop}
    raise InputError(
        f"preprocess resizes to {resize[0]} x {resize[1]} and then crops to {crop[0]} x {crop[1]}, "
        f"which cannot be followed: {BY_HAND}."
    )


def cut(size: list[int], short_side: int) -> dict[str, Any]:
    return {"size": size, "short_side": short_side, "crop": "floored"}


def normal(mean: Any, std: Any, scale: float = 255.0) -> dict[str, Any]:
    return {"scale": scale, "mean": floats(mean), "std": floats(std)}


def floats(values: Any) -> list[float]:
    if hasattr(values, "tolist"):
        values = values.tolist()
    return [float(one) for one in values]


def numbers(size: Any) -> list[int]:
    return [int(size)] if isinstance(size, int) else [int(one) for one in size]


def filter_name(given: Any) -> str:
    """The filter that Pillow, torchvision or timm name."""
    value = getattr(given, "value", given)
    name = RESAMPLING.get(value, "") if isinstance(value, int) else str(value).lower()
    name = FILTER_NAMES.get(name, name)
    if name not in RESAMPLING.values():
        raise InputError(
            f"preprocess resizes with {given}, but the filter must be one of "
            f"{', '.join(RESAMPLING.values())}: {BY_HAND}."
        )
    return name
