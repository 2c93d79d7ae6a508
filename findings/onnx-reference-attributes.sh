#!/bin/sh
# Expected: the reference evaluator of onnx follows the standard that it comes with, to 1e-5, or refuses.
# Happens: BatchNormalization of opset 9 to 13 uses statistics of the batch, mixed with the running ones, as in training. LpNormalization
#   with p=1 divides by the sum instead of the sum of absolute values. LSTM and GRU ignore clip, activations and input_forget, RNN ignores
#   clip. What is left out there, reverse too, is right.
# Versions: onnx 1.23.2, onnxruntime 1.32.0.
# Matters: it is what converters are tested against. A row's scores depend on the other rows, and an exported network seems wrong that is
#   right.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $ENGINES
check <<'END'
from graphs import graph, ort, reference
from seen import near, seen, versions
import numpy as np

versions("onnx", "onnxruntime")
rng = np.random.default_rng(0)


def off(x, op, opset, attributes, **held):
    path = graph("m.onnx", x, [(op, " ".join(["x", *held]), "y", attributes)], opset, **held)
    return round(float(abs(ort(path, x) - reference(path, x)).max()), 4)


x = rng.standard_normal((8, 3)).astype(np.float32)
norm = {"s": np.ones(3, np.float32), "b": np.zeros(3, np.float32), "m": np.full(3, .1, np.float32), "v": np.array([4, 1, .25], np.float32)}
for opset in 9, 13, 14, 15, 17:
    got = off(x, "BatchNormalization", opset, {}, **norm)
    seen(f"BatchNormalization, opset {opset}: difference", got, (lambda d: d > .05) if opset < 14 else near(0))
path = graph("m.onnx", x, [("BatchNormalization", "x s b m v", "y")], 9, **norm)
other = np.concatenate([x[:1], 100 * x[1:]])
rows = [reference(path, data)[0].tolist() for data in (x, other)]
seen("the first row, with other rows beside it", [[round(v, 3) for v in row] for row in rows], max(abs(a - b) for a, b in zip(*rows)) > .1)
for p in 1, 2:
    seen(f"LpNormalization, p={p}", off(x, "LpNormalization", 17, {"p": p, "axis": 1}), (lambda d: d > .1) if p == 1 else near(0))
x = rng.standard_normal((5, 1, 3)).astype(np.float32)
for op, gates in ("LSTM", 4), ("GRU", 3), ("RNN", 1):
    shapes = {"w": (gates * 2, 3), "r": (gates * 2, 2), "b": (gates * 4,)}
    held = {name: rng.standard_normal((1, *shape)).astype(np.float32) for name, shape in shapes.items()}
    others = {"LSTM": ["HardSigmoid", "Tanh", "Tanh"], "GRU": ["HardSigmoid", "Tanh"]}
    ways = [{}, {"clip": .3}, {"direction": "reverse"}, *[{"activations": others.get(op)}] * (op in others)]
    for attributes in ways + [{"input_forget": 1}] * (op == "LSTM"):
        got = off(x, op, 14, {"hidden_size": 2, **attributes}, **held)
        seen(f"{op} {attributes}", got, near(0) if attributes in ({}, {"direction": "reverse"}) else lambda d: d > .01)
END
