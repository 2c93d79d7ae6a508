#!/bin/sh
# Expected: the reference evaluator of onnx is the measure for runtimes, to 1e-6.
# Happens: LogSoftmax is the logarithm of a softmax, so a log-probability below −104 is −inf: two classes 200 apart have an infinite NLL
#   where ONNX Runtime gives 200. LRN loops over as many channels as there are rows: one row alone has one channel normalised, and the
#   result of a row depends on the number of its neighbours.
# Versions: onnx 1.23.2, onnxruntime 1.32.0.
# Matters: who judges a runtime, or scores a small ensemble, by the evaluator finds the fault in the wrong place.
# Source: onnx/reference/ops/op_log_softmax.py and op_lrn.py.
. "$(dirname "$0")/lib.sh"
packages $TREES
check <<'END'
from seen import near, seen, versions
import numpy as np, onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

versions("onnx", "onnxruntime")


def both(x, kind, **attributes):
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * x.ndim) for name in "xy"]
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"], **attributes)], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with np.errstate(divide="ignore"):
        reference = ReferenceEvaluator(model).run(None, {"x": x})[0]
    return reference, onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]


reference, runtime = both(np.array([[0, 50, 90], [0, 200, 0]], np.float32), "LogSoftmax", axis=1)
seen("log-softmax at a distance of 90", (float(reference[0, 0]), float(runtime[0, 0])), near(-90, .01))
seen("at 200: reference", float(reference[1, 0]), lambda v: v == -np.inf)
seen("at 200: ONNX Runtime", float(runtime[1, 0]), near(-200))

x = np.random.default_rng(0).standard_normal((8, 8, 3, 3)).astype(np.float32)
for rows in (8, 4, 1):
    reference, runtime = both(x[:rows], "LRN", size=5, alpha=1.0)
    off = np.abs(reference - runtime).max((0, 2, 3)) > 1e-4
    seen(f"LRN of 8 channels, {rows} rows: channels that are wrong", int(off.sum()), lambda n: n == 8 - rows)
alone, together = both(x[:1], "LRN", size=5, alpha=1.0)[0], both(x, "LRN", size=5, alpha=1.0)[0]
seen("a row alone and among eight: difference", round(float(np.abs(alone[0] - together[0]).max()), 2), lambda d: d > .1)
END
