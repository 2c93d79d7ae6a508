#!/bin/sh
# Expected: AveragePool with auto_pad=SAME_UPPER or SAME_LOWER leaves the padding out of its means, which is the default of ONNX.
# Happens: ncnn counts the zeros of the padding: windows at an edge get a half, those in a corner a quarter of their mean. It does so too
#   with ceil_mode and count_include_pad=1, where the part beyond the padding never counts. The same padding as numbers (pads) is right.
# Versions: pnnx 20261020, ncnn 1.0.20261020, onnxruntime 1.32.0.
# Matters: networks exported from TensorFlow and Keras have this padding: every pooling darkens the rim of its maps. The rim of a small map
#   is most of it.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $ENGINES ncnn==1.0.20261020 pnnx==20261020
check <<'END'
from graphs import graph, ort
from seen import near, seen, versions
import subprocess
import ncnn, numpy as np, pnnx

versions("ncnn", "pnnx", "onnxruntime")
x = np.ones((1, 1, 5, 5), np.float32)


def of_ncnn(path, x):
    shape = ",".join(map(str, x.shape))
    subprocess.run([pnnx.EXEC_PATH, path, f"inputshape=[{shape}]", "fp16=0"], check=True, capture_output=True)
    net = ncnn.Net()
    net.opt.num_threads = 1
    assert net.load_param("m.ncnn.param") == 0 and net.load_model("m.ncnn.bin") == 0
    extractor = net.create_extractor()
    extractor.input("in0", ncnn.Mat(x[0]))
    return np.array(extractor.extract("out0")[1])


def pool(run, **attributes):
    got = run(graph("m.onnx", x, [("AveragePool", "x", "y", attributes)], 19), x).reshape(-1)
    return sorted({round(float(v), 3) for v in got})


for what, attributes, want in (
    ("SAME_UPPER, 2×2", {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}, [.25, .5, 1]),
    ("SAME_LOWER, 3×3, stride 2", {"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER", "strides": [2, 2]}, [.444, .667, 1]),
    ("pads 1, 3×3, stride 2", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}, [1]),
    ("ceil_mode, count_include_pad, 2×2, stride 2",
     {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1}, [.25, .5, 1]),
    ("ceil_mode, 2×2, stride 2", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, [1]),
):
    seen(f"means of ones: {what}: ONNX Runtime", pool(ort, **attributes), lambda got: got == [1])
    seen(f"means of ones: {what}: ncnn", pool(of_ncnn, **attributes), lambda got: got == want)
END
