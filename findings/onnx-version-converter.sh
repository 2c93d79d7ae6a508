#!/bin/sh
# Expected: convert_version keeps what a model computes, or refuses.
# Happens: two operators whose defaults changed lose their meaning. A linear Resize or Upsample before opset 11 has pixels at x / scale,
#   and half-pixel centres after conversion: another picture. A Softmax over channels of opset 13 on four axes becomes one over all channels
#   and pixels together before opset 13. The other way, opset 11 to 13, Softmax is right.
# Versions: onnx 1.23.2, onnxruntime 1.32.0.
# Matters: segmentation networks end in both. Old exports are lifted to a newer opset before weights are replaced or members joined, and new
#   ones lowered for an older runtime. The file checks, runs, and every pixel's probabilities are others.
# Source: seen by running. Adapters are named in onnx/version_converter/convert.h.
. "$(dirname "$0")/lib.sh"
packages $TREES
check <<'END'
from seen import near, seen, versions
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper, version_converter

versions("onnx", "onnxruntime")
x = np.random.default_rng(0).standard_normal((2, 4, 6, 6)).astype(np.float32)


def run(model):
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), quiet).run(None, {"x": x})[0]


def difference(opset, to, kind, more=(), **attributes):
    nodes = [helper.make_node(kind, ["x", *(name for name, _ in more)], ["y"], **attributes)]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", x.shape), ("y", None))]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], [numpy_helper.from_array(a, name) for name, a in more])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    converted = version_converter.convert_version(model, to)
    onnx.checker.check_model(converted, full_check=True)
    return round(float(np.abs(run(converted) - run(model)).max()), 4)


scales = (("s", np.array([1, 1, 2, 2], np.float32)),)
for to in (11, 13, 18):
    seen(f"Resize, linear, 10 to {to}", difference(10, to, "Resize", scales, mode="linear"), lambda d: d > .5)
    seen(f"Upsample, linear, 9 to {to}", difference(9, to, "Upsample", scales, mode="linear"), lambda d: d > .5)
    seen(f"Resize, nearest, 10 to {to}", difference(10, to, "Resize", scales, mode="nearest"), near(0))
for kind in ("Softmax", "LogSoftmax"):
    seen(f"{kind} of channels, 11 to 13", difference(11, 13, kind, axis=1), near(0, 1e-5))
    seen(f"{kind} of channels, 13 to 12", difference(13, 12, kind, axis=1), lambda d: d > .5)
END
