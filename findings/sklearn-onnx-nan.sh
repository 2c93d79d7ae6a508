#!/bin/sh
# Expected: trees and forests that were trained with missing values treat NaN in their ONNX file as in Python, or are refused.
# Happens: the direction that each node learned for NaN is not exported. Rows with a NaN take another branch: probabilities are off by
#   up to 1, in nine rows of ten. Rows without NaN are right, so a check on clean data passes.
# Versions: skl2onnx 1.20.0, scikit-learn 1.9.1, onnxruntime 1.32.0.
# Matters: a forest is the usual baseline beside a network, and NaN its advantage. Its scores on incomplete rows are those of another model.
# Source: seen by running; trees of scikit-learn keep the direction in tree_.missing_go_to_left.
. "$(dirname "$0")/lib.sh"
packages $TREES
check <<'END'
from seen import near, seen, versions
import logging, numpy as np, onnxruntime
from skl2onnx import to_onnx
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

logging.disable(logging.WARNING)
versions("skl2onnx", "scikit-learn", "onnxruntime")
rng = np.random.default_rng(0)
x = rng.standard_normal((600, 6)).astype(np.float32)
y = (x @ rng.standard_normal((6, 3)) + rng.gumbel(size=(600, 3))).argmax(1)
x[rng.random(x.shape) < .15] = np.nan
missing = np.isnan(x).any(1)
for model in (
    DecisionTreeClassifier(max_depth=6, random_state=0),
    RandomForestClassifier(10, random_state=0),
    ExtraTreesClassifier(10, random_state=0),
    BaggingClassifier(DecisionTreeClassifier(max_depth=4), 10, random_state=0),
):
    want = model.fit(x, y).predict_proba(x)
    graph = to_onnx(model, x[:1], options={id(model): {"zipmap": False}})
    difference = np.abs(onnxruntime.InferenceSession(graph.SerializeToString()).run(None, {"X": x})[1] - want).max(1)
    name = type(model).__name__
    seen(f"{name}: difference on rows without NaN", float(difference[~missing].max()), near(0, 1e-5))
    seen(f"{name}: on rows with NaN", round(float(difference[missing].max()), 3), lambda d: d > .2)
    seen(f"{name}: share of those rows off by more than .01", round(float((difference[missing] > .01).mean()), 2), lambda s: s > .1)
END
