#!/bin/sh
# Expected: the normalisations of ONNX Runtime differ from exact arithmetic by about 1e-3 at most, group normalisation like the others.
# Happens: GroupNormalization (opset 21) has no kernel of its own: it runs as the function that the standard defines. That takes the
#   mean of squares minus the square of the mean. With standard deviation 1, outputs are off by about .1 at mean 1000, by hundreds at
#   3000, and by more, or NaN, at 10,000. Layer and instance normalisation are right to 2e-3, and so is a group normalisation that is
#   written as instance normalisation.
# Versions: onnxruntime 1.32.0, onnx 1.23.2.
# Matters: which of the two an exporter writes decides whether a network with large activations scores right.
# Source: the function body is in the standard; the size of the error was seen by running.
. "$(dirname "$0")/lib.sh"
packages $TREES
check <<'END'
from seen import seen, versions
import numpy as np, onnxruntime
from onnx import TensorProto, helper, numpy_helper

versions("onnxruntime", "onnx")


def error(operator, mean, **attributes):
    x = (mean + np.random.default_rng(0).standard_normal((4, 1, 64))).astype(np.float32)
    exact = (x - x.astype(float).mean(2, keepdims=True)) / np.sqrt(x.astype(float).var(2, keepdims=True) + 1e-5)
    size = 64 if operator == "LayerNormalization" else 1
    ones, zeros = numpy_helper.from_array(np.ones(size, np.float32), "scale"), numpy_helper.from_array(np.zeros(size, np.float32), "bias")
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 1, 64])
    node = helper.make_node(operator, ["x", "scale", "bias"], ["y"], epsilon=1e-5, **attributes)
    graph = helper.make_graph([node], "g", [info("x")], [info("y")], [ones, zeros])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    got = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    return round(float(np.abs(got - exact).max()), 4)


for mean in (100, 1000, 3000):
    seen(f"mean {mean}: layer normalisation", error("LayerNormalization", mean), lambda e: e < 2e-3)
    seen(f"mean {mean}: instance normalisation", error("InstanceNormalization", mean), lambda e: e < 2e-3)
seen("mean 100: group normalisation", error("GroupNormalization", 100, num_groups=1), lambda e: e < .02)
seen("mean 1000: group normalisation", error("GroupNormalization", 1000, num_groups=1), lambda e: e > .05)
seen("mean 3000: group normalisation", error("GroupNormalization", 3000, num_groups=1), lambda e: not e < 1)
seen("mean 10000: group normalisation", error("GroupNormalization", 10_000, num_groups=1), lambda e: not e < 1)
END
