#!/bin/sh
# Expected: options of Resize give ONNX Runtime's pictures, or the model is refused.
# Happens: antialias=1 is ignored: the same bits as without it. So are exclude_outside=1, and keep_aspect_ratio_policy: 40×50 from a square
#   stays 40×50. Four ways to count coordinates are right, linear and cubic.
# Versions: openvino 2026.4.1, onnxruntime 1.32.0.
# Matters: antialias is what Pillow and torchvision do when they make a picture smaller. A model with its preprocessing inside reads the
#   aliased picture instead, off by half of its range here, and no message says so.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $ENGINES
check <<'END'
from graphs import graph, openvino, ort
from seen import near, seen, versions
import numpy as np

versions("openvino", "onnxruntime")
x = np.random.default_rng(0).random((1, 1, 32, 32)).astype(np.float32)


def off(size, run=openvino, **options):
    axes = [2, 3] if "keep_aspect_ratio_policy" in options else [0, 1, 2, 3]
    path = graph("m.onnx", x, [("Resize", "x - - s", "y", {"axes": axes, **options})], 19, s=np.array(([1, 1] + size)[-len(axes):]))
    return ort(path, x), run(path, x)


def difference(size, **options):
    want, got = off(size, **options)
    return round(float(abs(want - got).max()), 4) if want.shape == got.shape else f"shape {got.shape}"


for mode in "linear", "cubic":
    seen(f"{mode}, 32×32 to 10×10: difference", difference([10, 10], mode=mode), near(0))
    seen(f"{mode}, antialias=1: difference", difference([10, 10], mode=mode, antialias=1), lambda d: d > .3)
    same = np.array_equal(off([10, 10], mode=mode, antialias=1)[1], off([10, 10], mode=mode)[1])
    seen(f"{mode}: the same bits with and without antialias", same, True)
seen("cubic, exclude_outside=1, to 45×45", difference([45, 45], mode="cubic", exclude_outside=1), lambda d: d > .02)
seen("linear, 40×50 with keep_aspect_ratio_policy=not_larger",
     difference([40, 50], mode="linear", keep_aspect_ratio_policy="not_larger"), lambda d: d == "shape (1, 1, 40, 50)")
coordinates = "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"
worst = max(difference([10, 45], mode=m, coordinate_transformation_mode=c) for m in ("linear", "cubic") for c in coordinates)
seen("four ways to count coordinates, linear and cubic: largest difference", worst, near(0))
END
