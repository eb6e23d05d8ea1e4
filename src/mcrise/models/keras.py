"""Keras 3: `.keras` files and models in memory, on whatever backend Keras has."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, first_line, with_cause
from .batches import FixedBatch
from .inputs import read_input
from .model import Model
from .outputs import Head, pick, pick_head
from .settings import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Settings,
    file_digest,
    size_named,
    with_known,
)

INSIDE = ("Rescaling", "Normalization")  # layers that prepare pixels in 0..255 themselves
MEANS = [123.68, 116.779, 103.939]  # red, green, blue, of the networks that came from Caffe
CAFFE = {"scale": 1.0, "mean": MEANS, "std": [1.0] * 3, "channels": "bgr"}
SYMMETRIC = {"scale": 127.5, "mean": [1.0] * 3, "std": [1.0] * 3}  # to -1..1
IMAGENET = {"scale": 255.0, "mean": list(IMAGENET_MEAN), "std": list(IMAGENET_STD)}
APPLICATIONS = {  # networks of keras.applications, by how their names begin; the longer ones first
    "inception_resnet": SYMMETRIC,
    "inception_v3": SYMMETRIC,
    "resnet50v2": SYMMETRIC,
    "resnet101v2": SYMMETRIC,
    "resnet152v2": SYMMETRIC,
    "mobilenetv2": SYMMETRIC,
    "mobilenet_": SYMMETRIC,
    "xception": SYMMETRIC,
    "nasnet": SYMMETRIC,
    "densenet": IMAGENET,
    "resnet": CAFFE,
    "vgg": CAFFE,
}


def from_file(path: Path, settings: Settings) -> Model:
    """A `.keras` file; one that holds Python code, as of a Lambda layer, is refused."""
    try:
        import keras
    except ImportError:
        raise InputError("This model needs Keras (the extra keras): pip install keras.") from None
    try:
        model = keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:
        refused = InputError(
            f"{path} is not a model that Keras can load ({first_line(error)}): save it again, or "
            "load it in a module of yours and name it there, package.module:model."
        )
        raise with_cause(refused, error) from None
    return make_model(model, str(path), settings, path.name, file_digest(path))


def from_object(model: Any, settings: Settings) -> Model:
    """A model in memory."""
    content = hashlib.sha256()
    for weight in model.get_weights():
        content.update(np.ascontiguousarray(weight).tobytes())
    return make_model(model, "The model", settings, str(model.name), content.hexdigest())


def make_model(model: Any, where: str, settings: Settings, name: str, digest: str) -> Model:
    settings.refuse_device()
    if not getattr(model, "inputs", None):
        return from_built(model, where, settings, name, digest)
    if len(model.inputs) != 1:
        names = ", ".join(given.name for given in model.inputs)
        raise InputError(f"{where} takes {names}, but one batch of images is needed.")
    # A Sequential model has no names of outputs.
    own: list[str] = getattr(model, "output_names", None) or [model.layers[-1].name]
    heads = [Head(one, tuple(out.shape)) for one, out in zip(own, model.outputs, strict=True)]
    head = pick_head(where, heads, settings.name)
    settings = with_known(settings, told_by(model, heads[head].name))
    shape = tuple(model.inputs[0].shape)
    about = read_input(where, shape, "float32", settings)
    size = about["geometry"].size

    def run(batch: NDArray[Any]) -> NDArray[Any]:
        with size_named(size):
            answer = model.predict_on_batch(batch)
        if isinstance(answer, dict):
            answer = answer[heads[head].name]
        return np.asarray(answer[head] if isinstance(answer, list | tuple) else answer)

    predict = run if shape[0] is None else FixedBatch(run, int(shape[0]))
    return settings.model(predict, name, digest, **about)


def from_built(model: Any, where: str, settings: Settings, name: str, digest: str) -> Model:
    """A model of a class of the user's own, which says no more than what it was first called on."""
    built: dict[str, Any] | None = getattr(model, "get_build_config", dict)()
    shape = (built or {}).get("input_shape")
    if not shape:
        raise InputError(
            f"{where} has not been built, so it does not say what it takes: call it once on a "
            "batch of images first."
        )
    about = read_input(where, (None, *shape[1:]), "float32", settings)
    rows, cols = about["geometry"].size or (None, None)
    about["notes"] += (f"the model was built on images of {rows} x {cols} pixels",)

    def run(batch: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(pick(model.predict_on_batch(batch), settings.name))

    return settings.model(run, name, digest, **about)


def told_by(model: Any, output: str) -> dict[str, Any]:
    """How pixels go in and what comes out, as far as the layers and the name say it."""
    known: dict[str, Any] = {}
    if any(type(layer).__name__ in INSIDE for layer in model.layers[:4]):
        known["scale"] = 1.0
    else:
        said = (known for start, known in APPLICATIONS.items() if model.name.startswith(start))
        known |= next(said, {})
    layers = {layer.name: layer for layer in model.layers}
    last = layers.get(output, model.layers[-1])
    activation = getattr(getattr(last, "activation", None), "__name__", "")
    return known | ({"score_kind": "independent"} if activation == "sigmoid" else {})
