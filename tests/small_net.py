"""A small classifier in many forms: a convolution, a mean over the picture and a softmax."""

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper

import mcrise

RNG = np.random.default_rng(5)
KERNEL = RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)  # out, in, rows, columns
WEIGHTS = 4 * RNG.normal(size=(4, 3)).astype(np.float32)
MEAN, STD = (0.1, 0.4, 0.6), (0.2, 0.3, 0.5)  # all different, so that no channel can be another


def logits(pixels):
    """The function itself: pixels (N, H, W, 3) in 0..1 -> (N, 3)."""
    windows = sliding_window_view(pixels, (3, 3), axis=(1, 2))[:, ::2, ::2]
    features = np.maximum(np.einsum("nyxcij,kcij->nyxk", windows, KERNEL, optimize=True), 0)
    return features.mean(axis=(1, 2)) @ WEIGHTS


def scores(pixels):
    powers = np.exp(logits(pixels))
    return powers / powers.sum(axis=1, keepdims=True)


def onnx_file(
    path, batch="N", size=("H", "W"), layout="NCHW", dtype="FLOAT", opset=17, outputs=("scores",)
):
    """The function as an ONNX file; a uint8 input takes 0..255, a float one 0..1."""
    nodes = [helper.make_node("Cast", ["images"], ["floats"], to=TensorProto.FLOAT)]
    last = "floats"
    if dtype == "UINT8":
        nodes.append(helper.make_node("Mul", [last, "unit"], ["unscaled"]))
        last = "unscaled"
    if layout == "NHWC":
        nodes.append(helper.make_node("Transpose", [last], ["turned"], perm=[0, 3, 1, 2]))
        last = "turned"
    nodes += [
        helper.make_node("Conv", [last, "kernel"], ["edges"], strides=[2, 2]),
        helper.make_node("Relu", ["edges"], ["features"]),
        helper.make_node("GlobalAveragePool", ["features"], ["means"]),
        helper.make_node("Flatten", ["means"], ["flat"], axis=1),
        helper.make_node("MatMul", ["flat", "weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["scores"], axis=1),
    ]
    shapes = {
        "scores": (batch, 3),
        "logits": (batch, 3),
        "features": (batch, 4, None, None),
        "means": (batch, 4, 1, 1),
    }
    shape = (batch, 3, *size) if layout == "NCHW" else (batch, *size, 3)
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("images", TensorProto.DataType.Value(dtype), shape)],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, shapes[o]) for o in outputs],
        [
            onnx.numpy_helper.from_array(KERNEL, "kernel"),
            onnx.numpy_helper.from_array(WEIGHTS, "weights"),
            onnx.numpy_helper.from_array(np.array(1 / 255, np.float32), "unit"),
        ],
    )
    # The file format as old as the operators, as an exporter of that time would have written it.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 4 if opset < 10 else 10
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def maps_of(image, model, **options):
    explanation = mcrise.explain(image, model, n_masks=64, grid=(4, 4), trials=False, **options)
    return explanation.maps(0, "centered").values  # linear in the scores, and quick
