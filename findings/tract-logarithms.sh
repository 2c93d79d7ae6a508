#!/bin/sh
# Expected: LogSoftmax, ReduceLogSumExp and Softplus are computed so that large inputs do no harm, as every framework does.
# Happens: LogSoftmax is −∞ below −104, and −87.2 for −90: it is the logarithm of a softmax with its floor. ReduceLogSumExp of 90 is ∞, and of
#   −104 −∞. Softplus of 89 is ∞, of −17 0. ONNX Runtime is right; so is OpenVINO, but for 0 as Softplus of −17.
# Versions: tract 0.23.9, openvino 2026.4.1, onnxruntime 1.32.0.
# Matters: one wrong and certain example makes the mean loss of a test set infinite. Energy scores and standard deviations (softplus of an
#   output) are infinite for what lies far outside, which is what they are for. The same network had finite numbers in training.
# Source: seen by running. So do rten 0.27.0 for Softplus of 89, and IREE 3.13.0 for ReduceLogSumExp, seen by running.
. "$(dirname "$0")/lib.sh"
packages $ENGINES
check <<'END'
from graphs import graph, openvino, ort, tract
from seen import near, seen, versions
import numpy as np

versions("tract", "openvino", "onnxruntime")
inf = float("inf")


def all_three(op, rows, **attributes):
    x = np.array(rows, np.float32)
    path = graph("m.onnx", x, [(op, "x", "y", attributes)])
    return [run(path, x).ravel().tolist() for run in (ort, tract, openvino)]


def show(what, three, *want):
    for engine, got, expected in zip(("ONNX Runtime", "tract", "OpenVINO"), three, want):
        seen(f"{what}: {engine}", [float(f"{v:.4g}") for v in got], np.allclose(got, expected, rtol=1e-3, atol=1e-12))


show("LogSoftmax of 0, −50, −90, −110, −1000", all_three("LogSoftmax", [[0, -50, -90, -110, -1000]], axis=1),
     [0, -50, -90, -110, -1000], [0, -50, -87.227, -inf, -inf], [0, -50, -90, -110, -1000])
show("ReduceLogSumExp of (88, 0), (90, 0), (−90, −90), (−104, −104)",
     all_three("ReduceLogSumExp", [[88, 0], [90, 0], [-90, -90], [-104, -104]], axes=[1]),
     [88, 90, -89.307, -103.307], [88, inf, -89.307, -inf])
show("Softplus of −17, 3, 88, 89, 300", all_three("Softplus", [[-17, 3, 88, 89, 300]]),
     [4.14e-8, 3.0486, 88, 89, 300], [0, 3.0486, 88, inf, inf], [0, 3.0486, 88, 89, 300])
END
