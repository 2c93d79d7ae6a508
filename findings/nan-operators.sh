#!/bin/sh
# Expected: a NaN that enters an operator on numbers comes out of it as NaN, as IEEE 754 has it, or at least ReLU does the same everywhere.
# Happens: which operators turn it into a number differs by engine. OpenVINO: ReLU, Clip, Max, Min, HardSigmoid, and Exp, where it becomes
#   ∞. tract: these but Exp, Sigmoid (0), Tanh (−1), and a product with the constant 0. ONNX Runtime: none of them. A softmax of a row with
#   one NaN is NaN in that one place alone in OpenVINO.
# Versions: openvino 2026.4.1, tract 0.23.9, onnxruntime 1.32.0, on x86-64.
# Matters: a broken sensor or weight shows as NaN in the scores of one runtime, and as a usual, certain prediction in another.
# Source: seen by running. Apache TVM 0.27 does as tract does for ReLU, Max, Min, HardSigmoid and the product, and for Elu and Sign.
. "$(dirname "$0")/lib.sh"
packages $ENGINES
check <<'END'
from graphs import graph, openvino, ort, tract
from seen import seen, versions
import numpy as np

versions("openvino", "tract", "onnxruntime")
engines = {"ONNX Runtime": ort, "OpenVINO": openvino, "tract": tract}
x = np.array([[np.nan, 1, -1, 4]], np.float32)
zero = np.zeros(4, np.float32)
names = "Relu Abs Ceil Elu Erf Exp Floor HardSigmoid LeakyRelu Log Neg Sigmoid Sign Softplus Sqrt Tanh"
operators = {op: [(op, "x", "y")] for op in names.split()}
operators |= {name: [(op, inputs, "y")] for name, op, inputs in (
    ("Max", "Max", "x a"), ("Min", "Min", "x a"), ("Clip", "Clip", "x low high"), ("product with 0", "Mul", "x a"),
    ("x − x", "Sub", "x x"), ("x ÷ x", "Div", "x x"))}
constants = dict.fromkeys(("Max", "Min", "product with 0"), {"a": zero}) | {"Clip": {"low": np.float32(0), "high": np.float32(1)}}
common = ["Clip", "HardSigmoid", "Max", "Min", "Relu"]
for engine, want in ("ONNX Runtime", []), ("OpenVINO", common + ["Exp"]), ("tract", common + ["Sigmoid", "Tanh", "product with 0"]):
    numbers = {}
    for op, nodes in operators.items():
        got = engines[engine](graph("m.onnx", x, nodes, 14, **constants.get(op, {})), x)[0, 0]
        if not np.isnan(got):
            numbers[op] = float(got)
    seen(f"{engine}: NaN becomes", dict(sorted(numbers.items())), sorted(numbers) == sorted(want))
rows = np.array([[1, np.nan, 2], [1, 2, 3]], np.float32)
for engine, run in engines.items():
    got = run(graph("m.onnx", rows, [("Softmax", "x", "y", {"axis": 1})]), rows)
    seen(f"{engine}: softmax of 1, NaN, 2", got[0].tolist(), int(np.isnan(got[0]).sum()) == (1 if engine == "OpenVINO" else 3))
    seen(f"{engine}: softmax of the next row sums to 1", abs(got[1].sum() - 1) < 1e-4, True)
END
