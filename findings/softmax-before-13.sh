#!/bin/sh
# Expected: a Softmax of opset 11 or 12 normalises over its axis and all later ones, as its standard says, and as ONNX Runtime does.
# Happens: OpenVINO does so for opset 7 and 9, and for LogSoftmax and Hardmax; for a Softmax of 11 and 12 it takes its one axis. The
#   reference evaluator of onnx always takes one axis, and where none is given, the last one instead of axis 1.
# Versions: openvino 2026.4.1, onnx 1.23.2, onnxruntime 1.32.0.
# Matters: a network of 2×3×4 has other probabilities, with sums of 1 in another direction, and log-probabilities that are not their
#   logarithms. Only a rank above 2 shows it. Models of these opsets are the most common of older model collections.
# Source: seen by running. rten 0.27.0 takes one axis too, seen by running, and candle-onnx 0.11.1, by reading eval.rs.
. "$(dirname "$0")/lib.sh"
packages $ENGINES
check <<'END'
from graphs import graph, openvino, ort, reference
from seen import seen, versions
import numpy as np
from scipy.special import softmax

versions("openvino", "onnx", "onnxruntime")
x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
ways = {"axis 0": softmax(x, 0), "axis 1": softmax(x, 1), "axis 2": softmax(x, 2), "axes 1 and 2": softmax(x, (1, 2))}


def way(run, opset, op="Softmax", **axis):
    got = run(graph("m.onnx", x, [(op, "x", "y", axis)], opset), x)
    return next((name for name, want in ways.items() if np.allclose(np.exp(got) if op == "LogSoftmax" else got, want, atol=1e-5)), "?")


for run, engine, want in (
    (ort, "ONNX Runtime", ["axes 1 and 2"] * 5 + ["axis 2"]),
    (openvino, "OpenVINO", ["axes 1 and 2", "axis 1", "axis 1", "axis 1", "axes 1 and 2", "axis 2"]),
    (reference, "reference evaluator", ["axis 2", "axis 2", "axis 1", "axis 2", "axis 2", "axis 2"]),
):
    got = [way(run, 9), way(run, 11), way(run, 11, axis=1), way(run, 12), way(run, 11, "LogSoftmax"), way(run, 13)]
    seen(f"opset 9; 11; 11 with axis 1; 12; LogSoftmax 11; 13: {engine}", "; ".join(got), got == want)
END
