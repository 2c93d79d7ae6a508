#!/bin/sh
# Expected: static int8 quantisation of a classifier moves its probabilities by about .01, and its NLL by a few percent.
# Happens: the probabilities themselves become 8-bit: multiples of 1/256, rows that do not sum to 1, never above .9961, and 0 below
#   .002. Where the label has 0, the NLL is infinite. Leaving Softmax out (op_types_to_quantize) gives the NLL of float32.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, scikit-learn 1.9.1.
# Matters: NLL, calibration and entropies of a quantised ensemble measure 256 steps. A temperature is then fitted
#   to an infinite loss.
# Source: Softmax is in the documented list of quantised operators; what it does to scores was seen by running.
. "$(dirname "$0")/lib.sh"
packages $TREES
check <<'END'
from seen import near, seen, versions
import logging, numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_static
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

logging.disable(logging.CRITICAL)
versions("onnxruntime", "onnx", "scikit-learn")
x, y = load_digits(return_X_y=True)
x = (x / 16).astype(np.float32)
fitted = LogisticRegression(C=10, max_iter=2000).fit(x[:1000], y[:1000])
weights = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in (("w", fitted.coef_.T.copy()), ("b", fitted.intercept_))]
nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["logits"]), helper.make_node("Softmax", ["logits"], ["p"])]
info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", size]) for name, size in (("x", 64), ("p", 10))]
graph = helper.make_graph(nodes, "g", info[:1], info[1:], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "float.onnx")


class Rows(CalibrationDataReader):
    def __init__(self):
        self.batches = iter([{"x": x[i:i + 100]} for i in range(0, 1000, 100)])

    def get_next(self):
        return next(self.batches, None)


def scores(file):
    p = onnxruntime.InferenceSession(file).run(None, {"x": x[1000:]})[0].astype(float)
    of_label = p[np.arange(len(p)), y[1000:]]
    with np.errstate(divide="ignore"):
        return p, round(float(-np.log(of_label).mean()), 4), int((of_label == 0).sum())


quantize_static("float.onnx", "all.onnx", Rows())
quantize_static("float.onnx", "gemm.onnx", Rows(), op_types_to_quantize=["Gemm"])
_, want, _ = scores("float.onnx")
seen("float32: NLL", want, lambda n: .2 < n < .35)
p, nll, zeros = scores("all.onnx")
seen("int8: NLL, labels with probability 0", (nll, zeros), lambda r: r[0] == np.inf and r[1] > 0)
seen("int8: largest probability", round(float(p.max()), 4), near(.9961))
seen("int8: sums of rows", (round(float(p.sum(1).min()), 4), round(float(p.sum(1).max()), 4)), lambda s: s[0] < .995 and s[1] > 1.002)
seen("int8: different values among 7,970", len(np.unique(p)), lambda n: n <= 256)
seen("int8 without Softmax: NLL", scores("gemm.onnx")[1], near(want, .02))
END
