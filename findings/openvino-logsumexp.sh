#!/bin/sh
# Expected: ReduceLogSumExp, ReduceL1 and ReduceLogSum reduce the axes of the attribute `axes`, as in ONNX Runtime, or are refused.
# Happens: in graphs of opset 13 to 17 the attribute is ignored: all axes are reduced, over the rows of the batch too. With opset 11, 12 and
#   18 (where axes are an input), and for the other seven reductions in every opset, the results are right.
# Versions: openvino 2026.4.1, onnxruntime 1.32.0.
# Matters: the energy score of out-of-distribution detection is a logsumexp of logits. Every row gets one number, that of the batch, and
#   with keepdims it broadcasts: log-probabilities no longer sum to 1. PyTorch's exporter writes this attribute for opset 17 and older.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $ENGINES
check <<'END'
from graphs import graph, openvino, ort
from seen import seen, versions
import numpy as np

versions("openvino", "onnxruntime")
x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def pair(op, opset, keepdims=0):
    given = [(op, "x", "y", {"axes": [1], "keepdims": keepdims})]
    constants = {}
    if opset >= 18 or op == "ReduceSum" and opset >= 13:
        given, constants = [(op, "x a", "y", {"keepdims": keepdims})], {"a": np.array([1])}
    path = graph("m.onnx", abs(x), given, opset, **constants)
    return ort(path, abs(x)), openvino(path, abs(x))


def axes(want, got):
    same = got.shape == want.shape and np.allclose(got, want, atol=1e-4)
    return "right" if same else f"shape {list(got.shape)} instead of {list(want.shape)}"


for op in "LogSumExp", "L1", "LogSum":
    for opset in 11, 13, 17, 18:
        wrong = 13 <= opset <= 17
        seen(f"Reduce{op}, axis 1 of 3×4, opset {opset}", axes(*pair("Reduce" + op, opset)), lambda got: (got != "right") == wrong)
others = "L2", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"
seen("the seven others, opset 17", {axes(*pair("Reduce" + op, 17)) for op in others}, lambda got: got == {"right"})
want, got = pair("ReduceLogSumExp", 17, 1)
seen("with keepdims: shape", list(got.shape), lambda got: got == [1, 1])
twelve = float(np.log(np.exp(abs(x)).sum()))
seen("its value, and the logsumexp of all twelve numbers", [got.item(), twelve], lambda v: abs(v[0] - v[1]) < 1e-4)
path = graph("m.onnx", x, [("ReduceLogSumExp", "x", "s", {"axes": [1]}), ("Sub", "x s", "l"), ("Exp", "l", "y")])
seen("exp(x − logsumexp(x)), opset 17: sums of rows: ONNX Runtime", ort(path, x).sum(1).round(3), lambda got: np.allclose(got, 1))
seen("the same: OpenVINO", openvino(path, x).sum(1).round(3), lambda got: got.max() < .7)
END
