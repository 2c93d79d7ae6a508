"""Makes the models in this folder: python3 make.py (onnx 1.23.2, numpy 2.4.6).

Weights are small integers, so every result is exact in every type and the
tests compare with ==.
"""

import os

import numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper as nh, save_model

W = np.array([[1, 2], [3, 4], [5, 6]])
B = np.array([10, 20])


def vi(name, dtype, shape):
    return h.make_tensor_value_info(name, dtype, shape)


def save(file, nodes, inputs, outputs, init=(), ir=8, opset=15, **kw):
    graph = h.make_graph(nodes, "g", inputs, outputs, list(init))
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=ir)
    save_model(model, file, **kw)


def linear(file, dtype=np.float32, elem=T.FLOAT, out=("batch", 2), **kw):
    """y = x W + b."""
    init = [nh.from_array(W.astype(dtype), "W"), nh.from_array(B.astype(dtype), "b")]
    nodes = [h.make_node("MatMul", ["x", "W"], ["h"]), h.make_node("Add", ["h", "b"], ["y"])]
    save(file, nodes, [vi("x", elem, ["batch", 3])], [vi("y", elem, list(out))], init, **kw)


linear("linear.onnx")
linear("float16.onnx", np.float16, T.FLOAT16)
# A tracing exporter names the output's batch dimension after the node.
linear("float16_dim.onnx", np.float16, T.FLOAT16, out=("Add_dim_0", 2))
if os.path.exists("external.bin"):
    os.remove("external.bin")
linear("external.onnx", save_as_external_data=True, location="external.bin", size_threshold=0)
os.chmod("external.bin", 0o644)

# A network that takes no odd batch.
save("even.onnx", [h.make_node("MatMul", ["x", "W"], ["h"]), h.make_node("Reshape", ["h", "halves"], ["y"])],
     [vi("x", T.FLOAT, ["batch", 3])], [vi("y", T.FLOAT, [2, "half", 2])],
     [nh.from_array(W.astype(np.float32), "W"), nh.from_array(np.array([2, -1, 2]), "halves")])

# Rows of a table of 72 MiB, in a data file that the test makes.
table = T(name="table", data_type=T.FLOAT, dims=[1 << 18, 72], data_location=T.EXTERNAL)
for key, value in (("location", "data/table.bin"), ("offset", "8192")):
    table.external_data.add(key=key, value=value)
save("table.onnx", [h.make_node("Gather", ["table", "row"], ["y"])],
     [vi("row", T.INT64, ["n"])], [vi("y", T.FLOAT, ["n", 72])], [table])

# Every supported type in and out, two inputs of it each; y = c ? a : b.
for name, elem in [("float32", T.FLOAT), ("float64", T.DOUBLE), ("float16", T.FLOAT16),
                   ("uint8", T.UINT8), ("int64", T.INT64)]:
    node = h.make_node("Where", ["c", "a", "b"], ["y"])
    shape = ["n"]
    mask = nh.from_array(np.array([True, False, True]), "c")
    save(f"where_{name}.onnx", [node], [vi("a", elem, shape), vi("b", elem, shape)],
         [vi("y", elem, shape)], [mask])

# Rank 0 in and out, an int64 output, an output without a shape, and one that nobody asks for.
save("scalar.onnx",
     [h.make_node("Mul", ["x", "scale"], ["m"]),
      h.make_node("ReduceSum", ["m"], ["sum"], keepdims=0),
      h.make_node("Shape", ["x"], ["shape"]),
      h.make_node("Cast", ["x"], ["int"], to=T.INT32),
      h.make_node("Identity", ["m"], ["free"])],
     [vi("x", T.FLOAT, ["n", 2]), vi("scale", T.FLOAT, [])],
     [vi("sum", T.FLOAT, []), vi("shape", T.INT64, [2]), vi("free", T.FLOAT, None), vi("int", T.INT32, ["n", 2])])

# Batch normalisation as the BN pass runs it: momentum 0, all three outputs declared.
c = [nh.from_array(np.full(2, v, np.float32), n) for v, n in [(1, "s"), (0, "o"), (0, "mean"), (1, "var")]]
save("batchnorm.onnx",
     [h.make_node("BatchNormalization", ["x", "s", "o", "mean", "var"], ["y", "new_mean", "new_var"],
                  momentum=0.0, training_mode=1)],
     [vi("x", T.FLOAT, ["n", 2])],
     [vi("y", T.FLOAT, ["n", 2]), vi("new_mean", T.FLOAT, [2]), vi("new_var", T.FLOAT, [2])], c)

# 2^40 small matrix products: runs until it is terminated.
body = h.make_graph(
    [h.make_node("MatMul", ["v", "v"], ["p"]), h.make_node("Clip", ["p", "lo", "hi"], ["w"]),
     h.make_node("Identity", ["go"], ["on"])],
    "body", [vi("i", T.INT64, []), vi("go", T.BOOL, []), vi("v", T.FLOAT, [64, 64])],
    [vi("on", T.BOOL, []), vi("w", T.FLOAT, [64, 64])],
    [nh.from_array(np.float32(-1), "lo"), nh.from_array(np.float32(1), "hi")])
save("endless.onnx", [h.make_node("Loop", ["count", "", "x"], ["y"], body=body)],
     [vi("x", T.FLOAT, [64, 64])], [vi("y", T.FLOAT, [64, 64])], [nh.from_array(np.int64(2**40), "count")])

# 768 MiB of zeros out of a few bytes, when folded at load.
save("bomb.onnx",
     [h.make_node("ConstantOfShape", ["huge"], ["z"]), h.make_node("Gather", ["z", "k"], ["z0"]),
      h.make_node("Add", ["x", "z0"], ["y"])],
     [vi("x", T.FLOAT, [1])], [vi("y", T.FLOAT, [1])],
     [nh.from_array(np.array([768 << 18]), "huge"), nh.from_array(np.array([5]), "k")])

# IR version 3 lists the initializers among the inputs.
w, b = nh.from_array(W.astype(np.float32), "W"), nh.from_array(B.astype(np.float32), "b")
save("ir3.onnx",
     [h.make_node("MatMul", ["x", "W"], ["h"]), h.make_node("Add", ["h", "b"], ["y"])],
     [vi("x", T.FLOAT, ["batch", 3]), vi("W", T.FLOAT, [3, 2]), vi("b", T.FLOAT, [2])],
     [vi("y", T.FLOAT, ["batch", 2])], [w, b], ir=3, opset=8)

# An output that is not a tensor.
seq = h.make_tensor_sequence_value_info("y", T.FLOAT, None)
save("sequence.onnx", [h.make_node("SequenceConstruct", ["x"], ["y"])], [vi("x", T.FLOAT, [1])], [seq])
# An operator that does not exist.
save("unknown_op.onnx", [h.make_node("Blorp", ["x"], ["y"])], [vi("x", T.FLOAT, [1])], [vi("y", T.FLOAT, [1])])
# No input at all.
save("no_input.onnx", [h.make_node("Identity", ["k"], ["y"])], [], [vi("y", T.FLOAT, [1])],
     [nh.from_array(np.ones(1, np.float32), "k")])
