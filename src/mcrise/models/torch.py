"""Torch modules, TorchScript files and exported programs."""

import hashlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, first_line
from .batches import FixedBatch
from .inputs import NO_PREPROCESSING, own_size
from .model import Model
from .outputs import pick
from .preprocessing import settings_of
from .settings import Settings, file_digest, size_named, with_known


def import_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise InputError("This model needs torch: pip install torch.") from None
    return torch


def from_file(path: Path, settings: Settings) -> Model:
    """TorchScript (`.pt`) and exported programs (`.pt2`), but no pickled modules."""
    torch = import_torch()
    exported = path.suffix.lower() == ".pt2"
    try:
        with quiet():
            if exported:
                program = torch.export.load(path)
            else:
                module = torch.jit.load(path, map_location="cpu").eval()
    except Exception:
        wanted = "a program that torch.export.save wrote" if exported else "TorchScript"
        raise InputError(
            f"{path} is not {wanted}, and pickled modules are not opened, since they can run any "
            "code: export the model to ONNX or with torch.export.save, or load it in a module of "
            "yours and name it there, package.module:model."
        ) from None
    if exported:
        return from_program(program, settings, path.name, file_digest(path))
    return make_model(module, settings, path.name, file_digest(path))


@contextmanager
def quiet() -> Iterator[None]:
    """Without torch's advice to those who write such files, or its log of why it cannot read one.

    The reader of the error can do nothing with either.
    """
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`torch.jit", category=DeprecationWarning)
            yield
    finally:
        logging.disable(before)


def from_object(module: Any, settings: Settings) -> Model:
    """A module or an exported program as it lies in memory."""
    torch = import_torch()
    name = type(module).__qualname__
    if isinstance(module, torch.export.ExportedProgram):
        return from_program(module, settings, name, weights_digest(module))
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"The model is a {name} of torch, but a module or an exported program is needed."
        )
    notes: tuple[str, ...] = ()
    if module.training:
        module.eval()
        notes = ("the module was in training mode and was put into eval()",)
    package = type(module).__module__.partition(".")[0]
    if package == "timm" and isinstance(getattr(module, "pretrained_cfg", None), dict):
        settings = with_known(settings, {**timm_settings(module, settings), "softmax": True})
    elif package == "torchvision":
        if not settings.normalised:
            raise InputError(
                f"The model {name} of torchvision does not say how its images are prepared: give "
                "the weights that it was made with, as in preprocess=ResNet18_Weights.DEFAULT, or "
                "mean and std."
            )
        settings = with_known(settings, {"softmax": True})
    return make_model(module, settings, name, weights_digest(module), notes)


def timm_settings(module: Any, settings: Settings) -> dict[str, Any]:
    """What timm knows of a model's images; not asked where the size and the mean were given."""
    if settings.size is not None and settings.normalised:
        return {}
    return settings_of(module.pretrained_cfg)


def from_program(program: Any, settings: Settings, name: str, digest: str) -> Model:
    """An exported program, which may fix the number and the size of its images."""
    batch, size = input_shape(program)
    model = make_model(program.module(), settings, name, digest, size=size)
    if batch is None:
        return model
    return replace(model, predict=FixedBatch(model.predict, batch))


def input_shape(program: Any) -> tuple[int | None, tuple[int, int] | None]:
    """How many images a program takes and of what size, each None where it is open."""
    names = program.graph_signature.user_inputs
    values = [node.meta["val"] for node in program.graph.nodes if node.name in names]
    if len(values) != 1 or getattr(values[0], "ndim", 0) != 4:
        return None, None
    n, _, rows, cols = (side if type(side) is int else None for side in values[0].shape)
    return n, None if rows is None or cols is None else (rows, cols)


def weights_digest(module: Any) -> str:
    torch = import_torch()
    weights = module.state_dict() if callable(module.state_dict) else module.state_dict
    content = hashlib.sha256()
    for name, weight in sorted(weights.items()):
        content.update(name.encode())
        content.update(weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return content.hexdigest()


def make_model(
    module: Any,
    settings: Settings,
    name: str,
    digest: str,
    notes: tuple[str, ...] = (),
    size: tuple[int, int] | None = None,
) -> Model:
    """`size` is the only one that the module takes."""
    torch = import_torch()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    if settings.device is not None:
        try:
            module.to(settings.device)
        except Exception as error:
            raise InputError(
                f"Torch cannot use the device {settings.device!r} ({first_line(error)}): give "
                "another, such as cpu."
            ) from None
    weight = next((w for w in module.parameters() if w.is_floating_point()), None)
    device = "cpu" if weight is None else weight.device
    dtype = torch.float32 if weight is None else weight.dtype  # bfloat16 is unknown to NumPy

    def predict(batch: NDArray[Any]) -> NDArray[Any]:
        with torch.inference_mode(), size_named(size or settings.size):
            answer = module(torch.from_numpy(batch).to(device, dtype))
        return np.asarray(pick(answer, settings.name).float().cpu().numpy())

    gain, offset = settings.affine()
    notes += () if settings.normalised else (NO_PREPROCESSING,)
    return settings.model(
        predict,
        name,
        digest,
        geometry=settings.geometry(size),
        layout=settings.layout or "NCHW",
        dtype="float16" if dtype == torch.float16 else "float32",
        gain=gain,
        offset=offset,
        notes=(*notes, *own_size(settings, size)),
    )
