"""Makes offset-1.onnx and offset-2.onnx: batch norm of four features, then a linear layer.

    python make_offset.py            onnx 1.23.2, NumPy 2
"""

import os
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

os.chdir(pathlib.Path(__file__).parent)
for seed in (1, 2):
    r = np.random.default_rng(seed)
    arrays = {"bn.weight": r.uniform(.9, 1.1, 4), "bn.bias": r.normal(size=4), "bn.running_mean": r.normal(size=4), "bn.running_var": r.uniform(.9, 1.1, 4),
              "fc.weight": r.normal(size=(3, 4)), "fc.bias": r.normal(size=3)}
    nodes = [helper.make_node("BatchNormalization", ["x", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"], ["bn"]),
             helper.make_node("Gemm", ["bn", "fc.weight", "fc.bias"], ["logits"], transB=1)]
    graph = helper.make_graph(nodes, "offset", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])],
                              [numpy_helper.from_array(a.astype(np.float32), name) for name, a in arrays.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), f"offset-{seed}.onnx")
