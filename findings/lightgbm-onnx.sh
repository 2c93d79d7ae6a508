#!/bin/sh
# Expected: convert_lightgbm gives the probabilities of predict to 1e-6, or refuses.
# Happens: it does so for plain boosting. It ignores boosting=rf (the trees are summed instead of averaged), sigmoid=2, linear_tree,
#   zero_as_missing and reg_sqrt without a word. Probabilities are off by .1 to .45. multiclassova is normalised, which LightGBM's
#   predict is not.
# Versions: lightgbm 4.7.0, onnxmltools 1.16.0, skl2onnx 1.20.0, onnxruntime 1.32.0.
# Matters: the exported forest is meant to be scored, calibrated or compared beside networks. Its calibration is that of another model.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $TREES
check <<'END'
from seen import seen, versions
import lightgbm, numpy as np, onnxmltools, onnxruntime
from onnxmltools.convert.common.data_types import FloatTensorType

versions("lightgbm", "onnxmltools", "skl2onnx", "onnxruntime")
rng = np.random.default_rng(0)
x = rng.standard_normal((1000, 6)).astype(np.float32)
three = (x @ rng.standard_normal((6, 3)) + rng.gumbel(size=(1000, 3))).argmax(1)
two = (three == 0).astype(int)
holes = np.where(rng.random(x.shape) < .3, 0, x).astype(np.float32)


def difference(y, rows=x, **options):
    net = lightgbm.train({"objective": "binary", "verbose": -1, "num_threads": 1, "seed": 1, **options}, lightgbm.Dataset(rows, y), 20)
    graph = onnxmltools.convert_lightgbm(net, initial_types=[("x", FloatTensorType([None, 6]))], zipmap=False)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level, quiet.intra_op_num_threads = 3, 1
    got = onnxruntime.InferenceSession(graph.SerializeToString(), quiet).run(None, {"x": rows})[-1]
    want = net.predict(rows)
    if want.ndim == 1 and got.shape[1] == 2:
        got = got[:, 1]
    return round(float(np.abs(got.reshape(want.shape) - want).max()), 4)


right, wrong = lambda d: d < 1e-4, lambda d: d > .1
forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": .5}
seen("plain, two classes", difference(two), right)
seen("plain, three classes", difference(three, objective="multiclass", num_class=3), right)
seen("dart", difference(two, boosting="dart"), right)
seen("random forest, two classes", difference(two, **forest), wrong)
seen("random forest, three classes", difference(three, objective="multiclass", num_class=3, **forest), wrong)
seen("sigmoid=2", difference(two, sigmoid=2.), wrong)
seen("linear_tree", difference(two, linear_tree=True), wrong)
seen("zero_as_missing", difference(two, holes, zero_as_missing=True), wrong)
seen("multiclassova", difference(three, objective="multiclassova", num_class=3), wrong)
seen("reg_sqrt, targets of 1 to 81", difference((three + 1.) ** 4, objective="regression", reg_sqrt=True), lambda d: d > 10)
END
