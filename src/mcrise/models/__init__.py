"""Models from files, modules and callables: `load_model(model)`.

In the order in which to read: `settings` (what a model does not say), `preprocessing` (the same, as
other libraries say it), `runtimes` (which file opens which kind of model), `inputs`, `outputs` and
`batches` (what their inputs and outputs say), one file per runtime (`onnx`, `torch`, `openvino`,
`litert`, `keras`, `sklearn`, `huggingface`), `callables` (functions), `model` (what all of them
become), `scores` (what their numbers mean), `provenance` (where a model came from, so that a run is
never continued with another one).
"""

from .runtimes import find_file, load_model
from .settings import ModelSettings, Settings, read_settings

__all__ = ["ModelSettings", "Settings", "find_file", "load_model", "read_settings"]
