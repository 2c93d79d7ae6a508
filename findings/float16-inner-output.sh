#!/bin/sh
# Expected: a valid model converts to float16 with keep_io_types=True, and loads.
# Happens: where a node reads a value that is also an output of the model, onnxconverter-common casts the output to float32 and leaves the
#   reader float16: ONNX Runtime refuses the file. Without keep_io_types, or by the converter inside onnxruntime, it loads.
# Versions: onnxconverter-common 1.16.0, onnx 1.23.2, onnxruntime 1.32.0.
# Matters: a model that gives a probability, and a decision made of it, is of this kind.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $TREES onnxconverter-common==1.16.0
check <<'END'
from seen import seen, versions
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxconverter_common.float16 import convert_float_to_float16 as common
from onnxruntime.transformers.float16 import convert_float_to_float16 as own

versions("onnxconverter-common", "onnx", "onnxruntime")
onnxruntime.set_default_logger_severity(4)


def model(inner):
    nodes = [helper.make_node("Softmax", ["x"], ["p"], "softmax"), helper.make_node("Mul", ["p" if inner else "x", "two"], ["doubled"], "double")]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["rows", 3]) for n in ("x", "p", "doubled")]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], [numpy_helper.from_array(np.float32([2]), "two")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


def loads(made):
    try:
        onnxruntime.InferenceSession(made.SerializeToString())
        return True
    except Exception:
        return False


seen("an output that no node reads, keep_io_types", loads(common(model(False), keep_io_types=True)), lambda v: v)
seen("an output that a node reads, keep_io_types", loads(common(model(True), keep_io_types=True)), lambda v: not v)
seen("the same without keep_io_types", loads(common(model(True))), lambda v: v)
seen("the same by onnxruntime.transformers", loads(own(model(True), keep_io_types=True)), lambda v: v)
END
