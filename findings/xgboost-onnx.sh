#!/bin/sh
# Expected: a conversion that succeeds gives what predict gives.
# Happens: objective reg:logistic exports the margin without the logistic function, so "probabilities" lie outside 0 … 1. A random forest
#   of three classes (num_parallel_tree) has its trees dealt to the wrong classes: probabilities off by .3. For two classes the same
#   forest makes a file that ONNX Runtime refuses. Plain boosting is right.
# Versions: xgboost 3.2.0, onnxmltools 1.16.0, onnxruntime 1.32.0.
# Matters: a forest is the usual baseline beside an averaged network. Its ONNX file loads, runs, sums to 1, and is wrong.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $TREES
check <<'END'
from seen import seen, versions
import numpy as np, onnxmltools, onnxruntime, xgboost
from onnxmltools.convert.common.data_types import FloatTensorType

versions("xgboost-cpu", "onnxmltools", "onnxruntime")
rng = np.random.default_rng(0)
x = rng.standard_normal((1000, 6)).astype(np.float32)
three = (x @ rng.standard_normal((6, 3)) + rng.gumbel(size=(1000, 3))).argmax(1)
two = (three == 0).astype(int)


def outputs(y, kind=xgboost.XGBClassifier, **options):
    model = kind(n_jobs=1, **{"n_estimators": 20, **options}).fit(x, y)
    want = model.predict_proba(x) if kind is xgboost.XGBClassifier else model.predict(x)
    graph = onnxmltools.convert_xgboost(model, initial_types=[("x", FloatTensorType([None, 6]))])
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level, quiet.intra_op_num_threads = 4, 1
    return want, onnxruntime.InferenceSession(graph.SerializeToString(), quiet).run(None, {"x": x})[-1].reshape(want.shape)


def difference(*args, **options):
    want, got = outputs(*args, **options)
    return round(float(np.abs(got - want).max()), 4)


forest = {"num_parallel_tree": 10, "subsample": .5, "n_estimators": 3}
seen("plain, two classes", difference(two), lambda d: d < 1e-4)
seen("plain, three classes", difference(three), lambda d: d < 1e-4)
seen("random forest, three classes", difference(three, **forest), lambda d: d > .1)
seen("its rows sum to 1", float(np.abs(outputs(three, **forest)[1].sum(1) - 1).max()), lambda d: d < 1e-5)
try:
    seen("random forest, two classes", difference(two, **forest), False)
except Exception as error:
    seen("random forest, two classes", type(error).__name__, lambda n: n == "Fail")
want, got = outputs(two, xgboost.XGBRegressor, objective="reg:logistic")
seen("reg:logistic: range of predict", (want.min(), want.max()), lambda r: r[0] >= 0 and r[1] <= 1)
seen("reg:logistic: range of the graph's output", (got.min(), got.max()), lambda r: r[0] < -1)
END
