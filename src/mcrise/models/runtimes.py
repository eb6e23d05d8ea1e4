"""Which runtime opens which model.

One file per runtime, each importing its own heavy library only when it is asked for. To add one,
write its `from_file(path, settings)` or `from_object(model, settings)` and name it in a table.
"""

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from ..demo import MODEL as DEMO
from ..errors import InputError
from .callables import changes_scores, from_callable, with_output
from .model import Model
from .preprocessing import notes_on, settings_of
from .provenance import Origin
from .settings import ModelSettings, Settings, file_digest, read_settings, with_known

RUNTIMES = {  # suffix -> module beside this one
    ".onnx": "onnx",
    ".pt": "torch",
    ".pt2": "torch",
    ".xml": "openvino",
    ".tflite": "litert",
    ".keras": "keras",
}
OBJECTS = {  # package of the class of an object -> module beside this one
    "onnxruntime": "onnx",
    "openvino": "openvino",
    "keras": "keras",
    "sklearn": "sklearn",
    "transformers": "huggingface",
    "torch": "torch",
}
FOLDER = "hf:"  # before the folder of a Hugging Face model
ANOTHER_WAY = {  # files that are not opened, and what to do instead
    **dict.fromkeys(
        (".pth", ".ckpt", ".bin", ".safetensors"),
        "holds weights without the code of their network, or a pickle, which can run any code: "
        "load it in a module of yours and name the network there, package.module:model",
    ),
    **dict.fromkeys(
        (".pkl", ".pickle", ".joblib"),
        "is a pickle, which can run any code: load it in a module of yours and name it there, "
        "package.module:model",
    ),
    **dict.fromkeys(
        (".h5", ".hdf5"), "is an older Keras file: load it with Keras and save it as .keras"
    ),
    ".pb": "is a graph of TensorFlow: convert its folder to .tflite or .onnx",
}


def load_model(model: Any, **settings: Unpack[ModelSettings]) -> Model:
    """Load a model that can be explained.

    `model` is a file (`.onnx`, TorchScript `.pt`, exported `.pt2`, OpenVINO `.xml`, LiteRT
    `.tflite`, `.keras`), `hf:FOLDER` of a Hugging Face model, `package.module:callable`, or `demo`
    for the embedded traffic-sign model. Or it is an object: a torch module or exported program
    (torchvision and timm among them), an image classifier or pipeline of Hugging Face, a Keras
    model, a scikit-learn estimator, a session of ONNX Runtime, a compiled model of OpenVINO, or
    any callable from images (N, H, W, 3) to scores (N, C).

    `settings` are what a model does not say. The TOML file beside it (`model.onnx` ->
    `model.toml`) may hold them too; arguments win. Every function that takes a model takes them.

    preprocess : weights or transforms of torchvision, transforms of timm, or an image processor of
        Hugging Face, from which the others are read
    labels : list of names, or a text file with one per line
    size : rows and columns of the input, where the model leaves them open
    short_side : resize the short side to this, then cut `size` from the middle
    filter : "nearest", "bilinear", "bicubic", "lanczos" or "area"
    crop : how the middle is cut: "exact", "rounded" (as torchvision) or "floored" (Hugging Face)
    scale, mean, std : pixels go in as `(pixel / scale - mean) / std`; one number, or one per color
    layout : "NCHW" or "NHWC"; "pillow" for a function of a list of Pillow images
    channels : "rgb" or "bgr"
    output : which one, where there are several
    softmax, sigmoid : apply one to logits
    score_kind : what then comes out: "probability", "independent" or "any"
    threads : of the runtime; all cores if left out
    device : of torch ("cuda"), OpenVINO ("GPU") or ONNX Runtime ("CUDA": the name of a provider)
    """
    given: dict[str, Any] = dict(settings)
    preprocess = given.pop("preprocess", None)
    known = {} if preprocess is None else settings_of(preprocess)

    opened = open_model(model, lambda path: with_known(read_settings(path, given), known))
    return replace(opened, notes=tuple(dict.fromkeys((*opened.notes, *notes_on(preprocess)))))


def open_model(model: Any, read: Callable[[Path | None], Settings]) -> Model:
    """What `load_model` does, with settings that may lie in a file beside the model."""
    if not isinstance(model, str | Path):
        return from_object(model, read(None))
    path = DEMO if str(model) == "demo" else Path(model)
    suffix = path.suffix.lower()
    if str(model).startswith(("http://", "https://")):
        raise InputError(f"The model {model} is an address: download it and give the path.")
    if str(model).startswith(FOLDER):
        opened: Model = runtime("huggingface").from_folder(
            Path(str(model)[len(FOLDER) :]), read(None)
        )
        return opened
    if suffix in RUNTIMES:
        if not path.is_file():
            raise InputError(f"The model {path} does not exist: give the path of the file.")
        opened = runtime(RUNTIMES[suffix]).from_file(path, read(path))
        return opened
    if suffix in ANOTHER_WAY:
        raise InputError(f"The model {path} {ANOTHER_WAY[suffix]}.")
    if path.is_dir():
        raise InputError(
            f"The model {path} is a folder: give {FOLDER}{path} if it is one of Hugging Face, or "
            "a file in it."
        )
    if ":" in str(model):
        return from_name(str(model), read(None))
    raise InputError(
        f"The model is {str(model)!r}, but an {', '.join(RUNTIMES)} file, {FOLDER}FOLDER, "
        "package.module:callable or demo is needed."
    )


def runtime(name: str) -> Any:
    return importlib.import_module(f".{name}", __package__)


def runtime_of(model: Any) -> str | None:
    """The module that knows objects of this kind, by the packages of its classes."""
    packages = [base.__module__.partition(".")[0] for base in type(model).__mro__]
    found = next((OBJECTS[package] for package in packages if package in OBJECTS), None)
    return "sklearn" if found is None and hasattr(model, "predict_proba") else found


def owner_of(model: Any) -> Any:
    """The object whose `predict_proba`, or other method of its library's own, was given."""
    known = (
        inspect.ismethod(model)
        and model.__name__.startswith("predict")
        and model.__func__.__module__.partition(".")[0] in OBJECTS
    )
    return model.__self__ if known else model


def from_object(model: Any, settings: Settings) -> Model:
    """A `Model`, an object of a library that is known, or any callable."""
    if isinstance(model, Model):
        return with_output(model, settings)
    model = owner_of(model)
    if (name := runtime_of(model)) is not None:
        opened: Model = runtime(name).from_object(model, settings)
        return opened
    if not callable(model):
        raise InputError(
            f"The model is a {type(model).__name__}, but something that can be called on images, "
            "a path, package.module:callable or demo is needed."
        )
    called = f"callable {getattr(model, '__qualname__', type(model).__qualname__)}"
    known = from_callable(model, settings, called, "")
    return known if changes_scores(settings) else replace(known, identity=called)


def from_name(spec: str, settings: Settings) -> Model:
    """Import whatever `from_object` takes, under its name: `package.module:name`."""
    module_name, _, path = spec.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
        found: Any = module
        for name in path.split("."):
            found = getattr(found, name)
    except (Exception, SystemExit) as error:  # the module is the user's: anything may happen
        raise InputError(
            f"The model {spec} cannot be imported ({type(error).__name__}: {error}): give "
            "package.module:callable, importable from here."
        ) from None
    source = getattr(module, "__file__", None)
    digest = file_digest(Path(source)) if source else ""
    known = isinstance(found, Model) or runtime_of(found) is not None
    if isinstance(found, type) or not (known or callable(found)):
        what = "class" if isinstance(found, type) else type(found).__name__
        raise InputError(
            f"The model {spec} is a {what}, but something to call on images is needed: a function, "
            "or an object made in that module."
        )
    if known:
        model = from_object(found, settings)
        own = f"{spec} {digest[:16]} {model.identity}"
        if isinstance(found, Model):
            own = f"{spec} {digest[:16]} {found.identity} {settings.digest()[:8]}"
        model = replace(model, identity=own)
    else:
        model = from_callable(found, settings, spec, digest)
    if not digest:
        return model
    # Not of the file alone: there may be several models in it, and weights from elsewhere.
    whole = hashlib.sha256(f"{digest} {path} {model.origin.digest}".encode()).hexdigest()
    return replace(model, origin=Origin(spec, whole, settings.to_json()))


def find_file(origin: Origin, folders: Iterable[Path]) -> Path | None:
    """The file that a run's model was read from, if it is the embedded one or in a folder.

    Only ONNX files: whatever runs code when it is loaded is opened on request alone.
    """
    from .onnx import weights_digest

    if not origin.name.endswith(".onnx"):
        return None
    beside = [file for folder in folders for file in sorted(Path(folder).glob("*.onnx"))]
    beside.sort(key=lambda file: file.name != origin.name)  # most likely it kept its name
    # A copy of the embedded one under another name has other settings than are beside it.
    embedded = [DEMO] if origin.name == DEMO.name else []
    for file in (*beside, *embedded):
        if os.path.isfile(file) and weights_digest(file) == origin.digest:
            return file
    return None
