"""Torch modules, TorchScript files and exported programs."""

import hashlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .model import Model
from .settings import Settings, file_digest, size_named


def import_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise InputError("This model needs torch: pip install 'mcrise[torch]'.") from None
    return torch


def from_file(path: Path, settings: Settings) -> Model:
    """TorchScript (`.pt`) and exported programs (`.pt2`), but no pickled modules."""
    torch = import_torch()
    exported = path.suffix.lower() == ".pt2"
    try:
        with quiet():
            if exported:
                module = torch.export.load(path).module()
            else:
                module = torch.jit.load(path, map_location="cpu").eval()
    except Exception:
        wanted = "a program that torch.export.save wrote" if exported else "TorchScript"
        raise InputError(
            f"{path} is not {wanted}, and pickled modules are not opened, since they can run any "
            "code: export the model to ONNX or with torch.export.save, or load it in a module of "
            "yours and name it there, package.module:model."
        ) from None
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


def from_module(module: Any, settings: Settings) -> Model:
    """A module as it lies in memory."""
    torch = import_torch() if hasattr(module, "state_dict") else None
    if torch is None or not isinstance(module, torch.nn.Module):
        raise InputError(
            f"The model is a {type(module).__name__}, but a path, package.module:callable, demo or "
            "a torch module is needed; plain callables go straight to mcrise.explain."
        )
    content = hashlib.sha256()
    for name, weight in sorted(module.state_dict().items()):
        content.update(name.encode())
        content.update(weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return make_model(module.eval(), settings, type(module).__qualname__, content.hexdigest())


def make_model(module: Any, settings: Settings, name: str, digest: str) -> Model:
    torch = import_torch()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    weight = next((w for w in module.parameters() if w.is_floating_point()), None)
    device = "cpu" if weight is None else weight.device
    dtype = torch.float32 if weight is None else weight.dtype  # bfloat16 is unknown to NumPy

    def predict(batch: NDArray[Any]) -> NDArray[Any]:
        with torch.inference_mode(), size_named(settings.size):
            answer = module(torch.from_numpy(batch).to(device, dtype))
        return np.asarray(pick(answer, settings.name).float().cpu().numpy())

    gain, offset = settings.affine()
    assumed = "no preprocessing was given, so pixels go in scaled to 0..1"
    return settings.model(
        predict,
        name,
        digest,
        geometry=settings.geometry(None),
        layout=settings.layout or "NCHW",
        dtype="float16" if dtype == torch.float16 else "float32",
        gain=gain,
        offset=offset,
        notes=() if settings.normalised else (assumed,),
    )


def pick(answer: Any, name: str | None) -> Any:
    """The scores among what a module returns: those of that name, else `logits`, else the first."""
    if isinstance(answer, dict):
        if name is not None and name not in answer:
            raise InputError(f"The model has no output {name!r}: it has {', '.join(answer)}.")
        return answer[name or ("logits" if "logits" in answer else next(iter(answer)))]
    if name is not None:
        raise InputError(
            f"The output {name!r} was asked for, but this model's outputs have no names: leave the "
            "name out."
        )
    return answer[0] if isinstance(answer, tuple | list) else answer
