"""OpenVINO: `.xml` files with their `.bin`, and models that are read or compiled already."""

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.threads import THREADS, n_cores
from ..errors import InputError, first_line, with_cause
from .batches import Call, FixedBatch
from .inputs import read_input
from .model import Model
from .outputs import Head, pick_head
from .settings import Settings, file_digest, size_named, with_known

DTYPES = {"float32": "float32", "float16": "float16", "uint8": "uint8"}
INFO = {  # what a file may say of itself, as OpenVINO's Model API writes it
    "mean_values": "mean",
    "scale_values": "std",
    "reverse_input_channels": "channels",
    "labels": "labels",
}


def import_openvino() -> Any:
    try:
        import openvino
    except ImportError:
        raise InputError(
            "This model needs OpenVINO (the extra openvino): pip install openvino."
        ) from None
    return openvino


def from_file(path: Path, settings: Settings) -> Model:
    """A model from its `.xml`, compiled for the device."""
    openvino = import_openvino()
    weights = path.with_suffix(".bin")
    try:
        read = openvino.Core().read_model(path)
    except Exception as error:
        missing = "" if weights.is_file() else f" ({weights.name} is not beside it)"
        refused = InputError(
            f"{path} is not a model that OpenVINO can load{missing}: {first_line(error)}. Give the "
            ".xml with its .bin beside it, or convert the model again."
        )
        raise with_cause(refused, error) from None
    digests = [file_digest(file) for file in (path, weights) if file.is_file()]
    digest = hashlib.sha256(" ".join(digests).encode()).hexdigest()
    settings = with_known(settings, told_by(read))
    return make_model(
        compiled(openvino, read, settings),
        str(path),
        settings,
        path.name,
        digest,
        lambda n: compiled(openvino, read, settings, n_streams=n),
    )


def from_object(model: Any, settings: Settings) -> Model:
    """A compiled model as it is; one that was only read is compiled."""
    openvino = import_openvino()
    if isinstance(model, openvino.Model):
        settings = with_known(settings, told_by(model))
        model = compiled(openvino, model, settings)
    elif settings.device is not None:
        raise InputError(
            "The model was compiled for a device already: leave the device out, or give the model "
            "before it was compiled."
        )
    return make_model(model, "The model", settings, "CompiledModel", "")


def compiled(openvino: Any, model: Any, settings: Settings, n_streams: int = 1) -> Any:
    # In full precision also where the CPU has half: answers are the same on every machine.
    config: dict[str, Any] = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    threads = settings.threads or (n_cores() if os.environ.get(THREADS) else None)
    if threads is not None:
        config["INFERENCE_NUM_THREADS"] = threads
    if n_streams > 1:
        config |= {"NUM_STREAMS": n_streams, "INFERENCE_NUM_THREADS": n_streams}
    core, device = openvino.Core(), settings.device or "CPU"
    there = core.available_devices
    if device.upper().partition(".")[0] not in {one.partition(".")[0] for one in (*there, "AUTO")}:
        raise InputError(f"OpenVINO has no device {device!r} here: it has {', '.join(there)}.")
    if device.upper() != "CPU":
        config = {"PERFORMANCE_HINT": "LATENCY"}
    try:
        return core.compile_model(model, device.upper(), config)
    except Exception as error:
        refused = InputError(
            f"OpenVINO cannot run this model ({first_line(error)}): convert it again, or export it "
            "to ONNX."
        )
        raise with_cause(refused, error) from None


def told_by(model: Any) -> dict[str, Any]:
    """Settings that the file holds itself, under `model_info`."""
    said: dict[str, Any] = {}
    for entry, name in INFO.items():
        if not model.has_rt_info(["model_info", entry]):
            continue
        text = str(model.get_rt_info(["model_info", entry]).astype(str))
        if name == "channels":
            said[name] = "bgr" if text.lower() in ("true", "yes", "1") else "rgb"
        elif name == "labels":
            said[name] = text.split()
        else:
            said[name] = [float(part) for part in text.replace(",", " ").split()]
    if {"mean", "std"} & said.keys():
        said["scale"] = 1.0  # they are of pixels in 0..255
    return said


def make_model(
    model: Any,
    where: str,
    settings: Settings,
    name: str,
    digest: str,
    open_streams: Callable[[int], Any] | None = None,
) -> Model:
    """`open_streams` compiles the same model for several calls at once."""
    if len(model.inputs) != 1:
        names = ", ".join(given.get_any_name() for given in model.inputs)
        raise InputError(f"{where} takes {names}, but one batch of images is needed.")
    wanted = model.inputs[0]
    shape, dtype = open_shape(wanted), np.dtype(wanted.get_element_type().to_dtype()).name
    if dtype not in DTYPES:
        raise InputError(
            f"{where} takes {dtype}, but images go in as float32, float16 or uint8: convert it "
            "with one of these."
        )
    heads = [Head(head_name(port, k), open_shape(port)) for k, port in enumerate(model.outputs)]
    head = pick_head(where, heads, settings.name)
    about = read_input(where, shape, DTYPES[dtype], settings)
    size = about["geometry"].size

    def run(request: Any, batch: NDArray[Any]) -> NDArray[Any]:
        with size_named(size):
            request.infer([batch])
        return np.array(request.get_output_tensor(head).data)  # a copy: the next call writes there

    def copies(n: int) -> list[Call]:
        assert open_streams is not None
        streams = open_streams(n)
        return [partial(run, streams.create_infer_request()) for _ in range(n)]

    one = partial(run, model.create_infer_request())
    if shape[0] is None:
        return settings.model(one, name, digest, **about)
    predict = FixedBatch(one, shape[0], copies if open_streams else None, settings.threads)
    return settings.model(predict, name, digest, **about)


def open_shape(port: Any) -> tuple[int | None, ...]:
    return tuple(
        None if side.is_dynamic else side.get_length() for side in port.get_partial_shape()
    )


def head_name(port: Any, place: int) -> str:
    return str(port.get_any_name()) if port.get_names() else f"output {place}"
