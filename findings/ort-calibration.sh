#!/bin/sh
# Expected: entropy calibration cuts outliers off, as its paper does; CalibMovingAverage is a moving average; CalibMaxIntermediateOutputs
#   saves memory without a change of results.
# Happens: entropy calibration gives the range from least to largest value, to the last bit, one outlier 1,000 times too large included:
#   with the default of 128 bins there is one threshold to choose from. CalibMovingAverage is the plain mean of the extremes of batches,
#   whatever their order and CalibMovingAverageConstant, so the range depends on the size of a batch. With CalibMaxIntermediateOutputs=3
#   the batches of each full three are thrown away: the range is that of the last one or two of 200, and three times n batches are an error.
# Versions: onnxruntime 1.32.0.
# Matters: 8-bit steps a thousand times too coarse, or activations that are cut off, with the options that were to prevent it.
# Source: seen by running, and collect_data and get_entropy_threshold of calibrate.py.
. "$(dirname "$0")/lib.sh"
packages $ENGINES
check <<'END'
from graphs import graph
from seen import near, seen, versions
import contextlib, io, logging
import numpy as np, onnx
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, quantize_static

versions("onnxruntime")
logging.disable(logging.CRITICAL)
rng = np.random.default_rng(0)
weights = rng.standard_normal((8, 4)).astype(np.float32)


class Batches(CalibrationDataReader):
    def __init__(self, rows, size):
        self.left = [np.ascontiguousarray(rows[k:k + size]) for k in range(0, len(rows), size)]

    def get_next(self):
        return {"x": self.left.pop(0)} if self.left else None


def width(rows, method="MinMax", size=1, **options):
    """Returns 255 steps of the input's 8-bit numbers, which is the range that they cover."""
    graph("m.onnx", rows[:size], [("MatMul", "x w", "y")], w=weights)
    with contextlib.redirect_stdout(io.StringIO()):
        quantize_static("m.onnx", "q.onnx", Batches(rows, size), calibrate_method=CalibrationMethod[method], extra_options=options)
    scale, = (numpy_helper.to_array(i) for i in onnx.load("q.onnx").graph.initializer if i.name == "x_scale")
    return round(float(scale) * 255, 2)


rows = rng.standard_normal((200, 8)).astype(np.float32)
full = round(float(rows.max() - rows.min()), 2)
outlier = rows.copy()
outlier[100, 0] = 1000
seen("least to largest value", full, lambda v: 6 < v < 9)
for method in "MinMax", "Percentile":
    seen(f"{method}: range", width(rows, method), near(full, .05))
seen("Entropy: range", width(rows, "Entropy"), near(full, .01))
seen("one value of 1,000: Entropy", width(outlier, "Entropy"), lambda v: v > 1000)
seen("one value of 1,000: Percentile at 99.9", width(outlier, "Percentile", CalibPercentile=99.9), lambda v: v < 10)
grown = rows * np.linspace(1, 10, 200, dtype=np.float32)[:, None]
by_batch = round(float(np.mean(grown.max(1)) - np.mean(grown.min(1))), 2)
for constant in .01, .5:
    for name, order in ("growing", grown), ("shrinking", grown[::-1]):
        got = width(order, CalibMovingAverage=True, CalibMovingAverageConstant=constant)
        seen(f"CalibMovingAverage, constant {constant}, {name}; mean of extremes is {by_batch}", got, near(by_batch, .02))
seen("the same in batches of 20", width(grown, size=20, CalibMovingAverage=True), lambda v: v > 1.5 * by_batch)
large_first = np.concatenate([rows[:199] * 10, rows[199:]])
seen("199 large rows, then a usual one", width(large_first), near(10 * round(float(rows[:199].max() - rows[:199].min()), 3), .05))
last = rows[198:] * np.array([[10], [1]], np.float32)
seen("the same with CalibMaxIntermediateOutputs=3", width(large_first, CalibMaxIntermediateOutputs=3), near(last.max() - last.min(), .02))
try:
    got = width(rows[:198], CalibMaxIntermediateOutputs=3)
except ValueError as error:
    got = str(error)
seen("198 batches with CalibMaxIntermediateOutputs=3", got, lambda v: v == "No data is collected.")
seen("the same with 199, where one is left", width(large_first, CalibMaxIntermediateOutputs=199),
     near(max(rows[199].max(), 0) - min(rows[199].min(), 0), .02))
END
