"""Torch modules, TorchScript files and exported programs."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..model import Model
from .settings import Settings, file_digest


def import_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise InputError("This model needs torch: pip install 'mcrise[torch]'.") from None
    return torch


def from_file(path: Path, settings: Settings) -> Model:
    """TorchScript (`.pt`) and exported programs (`.pt2`); never a pickle."""
    torch = import_torch()
    try:
        if path.suffix == ".pt2":
            module = torch.export.load(path).module()
        else:
            module = torch.jit.load(path, map_location="cpu").eval()
    except Exception:
        raise InputError(
            f"{path} is neither TorchScript nor an exported program; pickled modules are not "
            "opened, since they can run any code: export it to ONNX or with torch.export.save, or "
            "name a function that builds it, package.module:callable."
        ) from None
    return make_model(module, settings, f"{path.name} {file_digest(path)[:16]}")


def from_module(module: Any, settings: Settings) -> Model:
    """A module as it lies in memory."""
    torch = import_torch()
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"The model is a {type(module).__name__}, but a path, package.module:callable, demo or "
            "a torch module is needed; plain callables go straight to mcrise.explain."
        )
    content = hashlib.sha256()
    for name, weight in sorted(module.state_dict().items()):
        content.update(name.encode())
        content.update(weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    name = f"{type(module).__qualname__} {content.hexdigest()[:16]}"
    return make_model(module.eval(), settings, name)


def make_model(module: Any, settings: Settings, name: str) -> Model:
    torch = import_torch()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    weight = next((w for w in module.parameters() if w.is_floating_point()), None)
    half = weight is not None and weight.dtype == torch.float16
    device = "cpu" if weight is None else weight.device

    def predict(batch: NDArray[Any]) -> NDArray[Any]:
        with torch.inference_mode():
            answer = module(torch.from_numpy(batch).to(device))
        if isinstance(answer, dict):
            answer = answer["logits"] if "logits" in answer else next(iter(answer.values()))
        elif isinstance(answer, tuple | list):
            answer = answer[0]
        return np.asarray(answer.float().cpu().numpy())

    gain, offset = settings.affine()
    assumed = "no preprocessing was given, so pixels go in scaled to 0..1"
    return Model(
        predict,
        geometry=settings.geometry(None),
        layout=settings.layout or "NCHW",
        channels=settings.channels,
        dtype="float16" if half else "float32",
        gain=gain,
        offset=offset,
        kind=settings.kind,
        softmax=settings.softmax,
        labels=settings.labels,
        identity=f"{name} {settings.digest()[:8]}",
        notes=() if settings.normalised else (assumed,),
    )
