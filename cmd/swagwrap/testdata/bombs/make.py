#!/usr/bin/env python3
"""Models of a few hundred bytes that ask for gigabytes, one file each.

    python make.py        with onnx 1.23 and NumPy 2

Each is a network with input x [batch, 3], output y [batch, 2] and weights w, and takes something that grows along. The
test makes a second checkpoint of each by changing 1.2345, the first of the weights.
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as n

out = pathlib.Path(__file__).resolve().parent


def i64(name, *v):
    return n.from_array(np.array(v, np.int64), name)


def save(name, nodes, inits=(), functions=(), red="b", inputs=(), outputs=()):
    w = n.from_array(np.array([[1, 2], [3, 4], [5, 6]], np.float32) * 1.2345, "w")
    body = list(nodes) + [h.make_node("ReduceMax", [red], ["m"], keepdims=0), h.make_node("MatMul", ["x", "w"], ["l"]), h.make_node("Add", ["l", "m"], ["y"])]
    g = h.make_graph(body, "bomb", [h.make_tensor_value_info("x", T.FLOAT, ["batch", 3]), *inputs], [h.make_tensor_value_info("y", T.FLOAT, ["batch", 2]), *outputs], [w, *inits])
    ops = [h.make_opsetid("", 17)] + ([h.make_opsetid("f", 1)] if functions else [])
    m = h.make_model(g, opset_imports=ops, functions=list(functions), ir_version=8, producer_name="make.py")
    onnx.save(m, f"{out}/{name}.onnx")


N = h.make_node
save("constantofshape", [N("ConstantOfShape", ["s"], ["b"], name="big", value=n.from_array(np.ones(1, np.float32)))], [i64("s", 1 << 16, 1 << 16)])
one = n.from_array(np.ones(1, np.float32), "one")
save("expand", [N("Expand", ["one", "s"], ["b"], name="big")], [one, i64("s", 1 << 16, 1 << 16)])
save("tile", [N("Tile", ["x", "s"], ["b"], name="big")], [i64("s", 1 << 14, 1 << 14)])
save(
    "shapeproduct",
    [N("Shape", ["x"], ["sh"], start=1), N("Mul", ["sh", "k"], ["p"]), N("Mul", ["p", "p"], ["q"]), N("Expand", ["one", "q"], ["b"], name="big")],
    [one, i64("k", 1 << 16)],
)
save(
    "resize",
    [N("Unsqueeze", ["x", "ax"], ["u"]), N("Resize", ["u", "", "sc"], ["b"], name="big", mode="nearest")],
    [i64("ax", 0, 1), n.from_array(np.array([1, 1, 20000, 20000], np.float32), "sc")],
)
save("pad", [N("Pad", ["x", "pads"], ["b"], name="big")], [i64("pads", 0, 0, 1 << 16, 1 << 16)])
body = h.make_graph(
    [N("Concat", ["v", "v"], ["v2"], axis=0, name="double"), N("Identity", ["c"], ["c2"])],
    "body",
    [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []), h.make_tensor_value_info("v", T.FLOAT, None)],
    [h.make_tensor_value_info("c2", T.BOOL, []), h.make_tensor_value_info("v2", T.FLOAT, None)],
)
save(
    "loop",
    [N("ReduceMax", ["x"], ["v0"], keepdims=1), N("Loop", ["trip", "true", "v0"], ["b"], body=body, name="loop")],
    [n.from_array(np.array(40, np.int64), "trip"), n.from_array(np.array(True), "true")],
)
save("range", [N("Range", ["f0", "f1", "f2"], ["b"], name="big")], [n.from_array(np.array(v, np.float32), f"f{i}") for i, v in enumerate([0, 2e9, 1])])
save(
    "onehot",
    [N("ArgMax", ["x"], ["a"], axis=1), N("OneHot", ["a", "depth", "vals"], ["b"], name="big")],
    [i64("depth", 1 << 31), n.from_array(np.array([0, 1], np.float32), "vals")],
)
save(
    "gather", [N("ConstantOfShape", ["s"], ["idx"], value=n.from_array(np.zeros(1, np.int64))), N("Gather", ["x", "idx"], ["b"], name="big", axis=1)], [i64("s", 1 << 16, 1 << 16)]
)
save(
    "outer",
    [N("Expand", ["one", "s"], ["col"]), N("Transpose", ["col"], ["row"], perm=[1, 0]), N("MatMul", ["col", "row"], ["b"], name="big")],
    [n.from_array(np.ones((1, 1), np.float32), "one"), i64("s", 1 << 17, 1)],
)
fs = []
ops = [h.make_opsetid("", 17), h.make_opsetid("f", 1)]
fs.append(h.make_function("f", "f0", ["a"], ["b"], [N("Neg", ["a"], ["b"])], ops))
for k in range(1, 31):
    fs.append(h.make_function("f", f"f{k}", ["a"], ["b"], [N(f"f{k-1}", ["a"], ["t"], domain="f"), N(f"f{k-1}", ["t"], ["b"], domain="f")], ops))
save("functions", [N("f30", ["x"], ["b"], domain="f")], functions=fs)
big = h.make_graph([N("ConstantOfShape", ["s"], ["t"], name="big")], "then", [], [h.make_tensor_value_info("t", T.FLOAT, None)])
small = h.make_graph([N("Identity", ["x"], ["e"])], "else", [], [h.make_tensor_value_info("e", T.FLOAT, None)])
save(
    "if",
    [N("ReduceMax", ["x"], ["mx"], keepdims=0), N("Less", ["mx", "big9"], ["cond"]), N("If", ["cond"], ["b"], then_branch=big, else_branch=small)],
    [i64("s", 1 << 16, 1 << 16), n.from_array(np.array(1e9, np.float32), "big9")],
)
sb = h.make_graph([N("Expand", ["r", "s"], ["o"], name="big")], "scan", [h.make_tensor_value_info("r", T.FLOAT, [3])], [h.make_tensor_value_info("o", T.FLOAT, None)])
save("scan", [N("Scan", ["x"], ["b"], body=sb, num_scan_inputs=1)], [i64("s", 1 << 23, 3)])
K = 64
nodes = [N("ConstantOfShape", ["s"], [f"c{i}"], value=n.from_array(np.array([i], np.float32))) for i in range(K)]
save(
    "manyfolds",
    nodes + [N("Max", [f"c{i}" for i in range(K)], ["b0"]), N("ReduceMax", ["b0"], ["b1"], keepdims=0), N("ReduceMax", ["x"], ["xm"], keepdims=0), N("Add", ["b1", "xm"], ["b"])],
    [i64("s", 15000000)],
)
nodes = [N("ReduceMax", ["x"], ["v0"], keepdims=1)]
for i in range(K):
    nodes += [N("Add", [f"v{i}", "one"], [f"v{i+1}"]), N("Expand", [f"v{i+1}", "s"], [f"c{i}"], name=f"step{i}")]
save("steps", nodes + [N("Max", [f"c{i}" for i in range(K)], ["b"])], [one, i64("s", 1 << 24, 1)])
w = n.from_array(np.array([[1, 2], [3, 4], [5, 6]], np.float32) * 1.2345, "w")
g = h.make_graph(
    [N("MatMul", ["x", "w"], ["l"]), N("Tile", ["l", "s"], ["y"])],
    "bomb",
    [h.make_tensor_value_info("x", T.FLOAT, ["batch", 3])],
    [h.make_tensor_value_info("y", T.FLOAT, ["batch", None])],
    [w, i64("s", 1, 1 << 22)],
)
onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8), f"{out}/output.onnx")

np.save(out / "x.npy", np.ones((4, 3), np.float32))
state = [h.make_tensor_value_info(k, T.FLOAT, [1 << 31, "batch", 1 << 31]) for k in ("h0", "hn")]
save("state", [N("Identity", ["h0"], ["hn"]), N("Identity", ["x"], ["b"])], inputs=state[:1], outputs=state[1:])
