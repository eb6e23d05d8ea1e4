"""Libraries that `make test` has not: `make test-frameworks` installs them."""

import sys

import pytest


def import_torchvision():
    """torchvision; its build for CUDA has no operators on boxes here, which nothing needs."""
    torch = pytest.importorskip("torch")
    try:
        return pytest.importorskip("torchvision")
    except RuntimeError:
        for name in [name for name in sys.modules if name.startswith("torchvision")]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            shape = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            torch.library.define(f"torchvision::{name}", shape)
        return pytest.importorskip("torchvision")
