#!/bin/sh
# Expected: attributes of LSTM, GRU and RNN do what the standard says, or the model is refused.
# Happens: direction="reverse" runs forward, bit for bit. The activations, clip and input_forget are ignored: an RNN with ReLU runs with
#   tanh. Bidirectional layers, linear_before_reset and the defaults are right.
# Versions: tract 0.23.9, onnxruntime 1.32.0.
# Matters: nothing fails, all numbers are of the usual size, and every score is wrong. torch.nn.RNN(nonlinearity="relu") is exported so.
# Source: seen by running. tract-onnx reads none of these attributes.
. "$(dirname "$0")/lib.sh"
packages $ENGINES
check <<'END'
from graphs import graph, ort, tract
from seen import near, seen, versions
import numpy as np

versions("tract", "onnxruntime")
rng = np.random.default_rng(0)
x = rng.standard_normal((5, 1, 3)).astype(np.float32)
gates = {"LSTM": 4, "GRU": 3, "RNN": 1}


def weights(op, both):
    shapes = {"w": (gates[op] * 2, 3), "r": (gates[op] * 2, 2), "b": (gates[op] * 4,)}
    return {name: np.random.default_rng(1).standard_normal((1 + both, *shape)).astype(np.float32) for name, shape in shapes.items()}


def run(op, engine, **attributes):
    held = weights(op, attributes.get("direction") == "bidirectional")
    return engine(graph("m.onnx", x, [(op, "x w r b", "y", {"hidden_size": 2, **attributes})], 14, **held), x)


def off(op, **attributes):
    return round(float(abs(run(op, ort, **attributes) - run(op, tract, **attributes)).max()), 4)


for op in gates:
    seen(f"{op}, forward: difference", off(op), near(0))
    seen(f"{op}, bidirectional", off(op, direction="bidirectional"), near(0))
    seen(f"{op}, reverse", off(op, direction="reverse"), lambda d: d > .1)
    seen(f"{op}, reverse: the same bits as forward", np.array_equal(run(op, tract, direction="reverse"), run(op, tract)), True)
seen("GRU, linear_before_reset", off("GRU", linear_before_reset=1), near(0))
for op, attributes in (
    ("RNN", {"activations": ["Relu"]}), ("LSTM", {"activations": ["HardSigmoid", "Tanh", "Tanh"]}), ("LSTM", {"clip": .3}),
    ("LSTM", {"input_forget": 1}),
):
    seen(f"{op}, {attributes}", off(op, **attributes), lambda d: d > .01)
    seen(f"{op}, {attributes}: the same bits as without", np.array_equal(run(op, tract, **attributes), run(op, tract)), True)
END
