"""LiteRT files of a small classifier, written without a converter, which would need TensorFlow."""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

FLOAT, UINT8, INT8 = schema.TensorType.FLOAT32, schema.TensorType.UINT8, schema.TensorType.INT8
TYPES = {"float32": FLOAT, "uint8": UINT8, "int8": INT8}


class Network:
    """Tensors, their content and the operators between them."""

    def __init__(self):
        self.tensors, self.buffers, self.operators, self.codes = [], [schema.BufferT()], [], []

    def tensor(
        self, name, shape, dtype="float32", content=None, step=None, zero=0, open_batch=False
    ):
        made = schema.TensorT()
        made.name, made.shape, made.type, made.buffer = name, list(shape), TYPES.get(dtype, 2), 0
        if open_batch:
            made.shapeSignature = [-1, *shape[1:]]
        if content is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(content).tobytes(), np.uint8)
            made.buffer = len(self.buffers)
            self.buffers.append(buffer)
        if step is not None:
            made.quantization = schema.QuantizationParametersT()
            made.quantization.scale, made.quantization.zeroPoint = [step], [zero]
        self.tensors.append(made)
        return len(self.tensors) - 1

    def run(self, kind, inputs, outputs, options=None, version=1):
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, kind)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), version
        self.codes.append(code)
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = len(self.codes) - 1, inputs, outputs
        if options is not None:
            made.builtinOptions = options
            name = type(options).__name__.removesuffix("T")
            made.builtinOptionsType = getattr(schema.BuiltinOptions, name)
        self.operators.append(made)

    def save(self, path, inputs, outputs):
        graph, model = schema.SubGraphT(), schema.ModelT()
        graph.tensors, graph.operators = self.tensors, self.operators
        graph.inputs, graph.outputs, graph.name = inputs, outputs, "main"
        model.version, model.operatorCodes = 3, self.codes
        model.subgraphs, model.buffers, model.description = [graph], self.buffers, "test"
        build = flatbuffers.Builder(4096)
        build.Finish(model.Pack(build), b"TFL3")
        path.write_bytes(bytes(build.Output()))
        return path


def tflite_file(
    path, kernel, weights, size, takes=("float32", None, 0), gives="float32", batch=None
):
    """Convolution, mean and softmax of images (N, H, W, 3).

    `takes` is the type, step and zero point of the input. A softmax in whole numbers has steps of
    1/256.
    """
    net, n, (rows, cols) = Network(), batch or 1, size
    n_features, n_classes = weights.shape
    high, wide = (rows - 3) // 2 + 1, (cols - 3) // 2 + 1
    dtype, step, zero = takes
    opened = {"open_batch": batch is None}
    images = net.tensor("images", (n, rows, cols, 3), dtype, step=step, zero=zero, **opened)
    floats = images
    if dtype != "float32":
        floats = net.tensor("floats", (n, rows, cols, 3), **opened)
        net.run("DEQUANTIZE", [images], [floats], version=2)
    filters = np.float32(kernel.transpose(0, 2, 3, 1))  # out, rows, columns, in
    conv, options = (
        net.tensor("conv", (n, high, wide, n_features), **opened),
        schema.Conv2DOptionsT(),
    )
    options.padding, options.strideH, options.strideW = schema.Padding.VALID, 2, 2
    options.fusedActivationFunction = schema.ActivationFunctionType.RELU
    known = net.tensor("kernel", filters.shape, content=filters)
    bias = net.tensor("bias", (n_features,), content=np.zeros(n_features, np.float32))
    net.run("CONV_2D", [floats, known, bias], [conv], options)
    axes = net.tensor("axes", (2,), "int32", np.int32([1, 2]))
    means, options = net.tensor("means", (n, n_features), **opened), schema.ReducerOptionsT()
    net.run("MEAN", [conv, axes], [means], options)
    logits = net.tensor("logits", (n, n_classes), **opened)
    last = net.tensor("weights", (n_classes, n_features), content=np.float32(weights.T))
    net.run("FULLY_CONNECTED", [means, last, -1], [logits], schema.FullyConnectedOptionsT())
    scores, options = net.tensor("scores", (n, n_classes), **opened), schema.SoftmaxOptionsT()
    options.beta = 1.0
    net.run("SOFTMAX", [logits], [scores], options)
    answer = scores
    if gives != "float32":
        zero = 0 if gives == "uint8" else -128
        answer = net.tensor("whole", (n, n_classes), gives, step=1 / 256, zero=zero, **opened)
        net.run("QUANTIZE", [scores], [answer], schema.QuantizeOptionsT())
    return net.save(path, [images], [answer])
