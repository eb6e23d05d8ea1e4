"""Write a torch network as a small ONNX file: weights stored in half precision."""

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn


def export_onnx(network: nn.Module, shape: tuple[int, int, int], path: Path) -> None:
    """Export with a free batch size, input `images` and output `scores`."""
    program = torch.onnx.export(
        network,
        (torch.zeros(2, *shape),),
        input_names=["images"],
        output_names=["scores"],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        opset_version=18,
        dynamo=True,
        optimize=True,
        verbose=False,
    )
    onnx.save(halve_weights(program.model_proto), path)


def halve_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace each large float32 weight by a float16 one and a Cast back to float32.

    ONNX Runtime folds the Casts when it loads the file, so the speed is that of float32.
    """
    graph = model.graph
    casts = []
    for weight in graph.initializer:
        values = numpy_helper.to_array(weight)
        if weight.data_type != TensorProto.FLOAT or values.size < 1024:
            continue
        name = weight.name
        weight.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}_half"))
        casts.append(helper.make_node("Cast", [f"{name}_half"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for node in graph.node:  # the exporter leaves the machine's paths there
        del node.metadata_props[:]
        node.doc_string = ""
    onnx.checker.check_model(model)
    return model
