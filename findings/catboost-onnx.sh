#!/bin/sh
# Expected: CatBoost's own ONNX export gives what predict gives.
# Happens: MultiClassOneVsAll is exported with another last function than the logistic function of each class. Probabilities are off by up
#   to .17, and rows, which need not sum to 1 in CatBoost, do. Poisson regression exports the logarithm of the mean. Neither says so.
# Versions: catboost 1.2.10, onnxruntime 1.32.0.
# Matters: probabilities that are to be calibrated or averaged are others than those measured in training.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $TREES
check <<'END'
from seen import seen, versions
import catboost, numpy as np, onnxruntime

versions("catboost", "onnxruntime")
rng = np.random.default_rng(0)
x = rng.standard_normal((1000, 6)).astype(np.float32)
three = (x @ rng.standard_normal((6, 3)) + rng.gumbel(size=(1000, 3))).argmax(1)


def outputs(kind, y, **options):
    model = kind(iterations=20, verbose=0, thread_count=1, allow_writing_files=False, **options).fit(x, y)
    model.save_model("model.onnx", format="onnx")
    want = model.predict_proba(x) if kind is catboost.CatBoostClassifier else model.predict(x)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level, quiet.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession("model.onnx", quiet)
    got = session.run(None, {session.get_inputs()[0].name: x})[-1]
    if isinstance(got, list):
        got = np.array([[row[k] for k in sorted(row)] for row in got])
    return want, np.asarray(got).reshape(want.shape)


far = lambda pair: round(float(np.abs(pair[0] - pair[1]).max()), 4)
seen("MultiClass", far(outputs(catboost.CatBoostClassifier, three)), lambda d: d < 1e-4)
pair = outputs(catboost.CatBoostClassifier, three, loss_function="MultiClassOneVsAll")
seen("MultiClassOneVsAll", far(pair), lambda d: d > .05)
sums = [round(float(np.abs(p.sum(1) - 1).max()), 4) for p in pair]
seen("largest distance of a row's sum from 1: CatBoost, ONNX", sums, lambda r: r[0] > .05 and r[1] < 1e-4)
want, got = outputs(catboost.CatBoostRegressor, three + 1., loss_function="Poisson")
seen("Poisson", far((want, got)), lambda d: d > .5)
seen("Poisson, exponential of the graph's output", far((want, np.exp(got))), lambda d: d < 1e-4)
END
