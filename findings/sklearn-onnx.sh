#!/bin/sh
# Expected: a conversion that succeeds gives what predict_proba and predict give, to 1e-6.
# Happens: linear discriminants of two classes export the softmax of (−d, d), which is the logistic function of 2d: labels are right, and
#   every probability is too sure, as if by a temperature of 1/2. Neighbours weighted by distance are exported as equal neighbours.
#   A tuned decision threshold is lost: labels are those of .5. Three classes, and logistic regression, are right.
# Versions: skl2onnx 1.20.0, scikit-learn 1.9.1, onnxruntime 1.32.0.
# Matters: accuracy does not show it, and calibration is what is exported wrong. A temperature fitted in Python does not fit the file.
# Source: _calc_linear_classifier in skl2onnx's operator_converters/linear_classifier.py; the rest was seen by running.
. "$(dirname "$0")/lib.sh"
packages $TREES
check <<'END'
from seen import near, seen, versions
import logging, numpy as np, onnxruntime
from skl2onnx import to_onnx
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

logging.disable(logging.WARNING)
versions("skl2onnx", "scikit-learn", "onnxruntime")
rng = np.random.default_rng(0)
x = rng.standard_normal((600, 5)).astype(np.float32)
three = (x @ rng.standard_normal((5, 3)) + 1.5 * rng.gumbel(size=(600, 3))).argmax(1)
two = (three == 0).astype(int)


def exported(model):
    options = {id(model): {"zipmap": False}} if hasattr(model, "predict_proba") else None
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    return onnxruntime.InferenceSession(to_onnx(model, x[:1], options=options).SerializeToString(), quiet).run(None, {"X": x})


def nll(p):
    return round(float(-np.log(p[np.arange(600), two]).mean()), 4)


for model, y in ((LogisticRegression(), two), (LinearDiscriminantAnalysis(), three)):
    model.fit(x, y)
    difference = np.abs(exported(model)[1] - model.predict_proba(x)).max()
    seen(f"{type(model).__name__}, {y.max() + 1} classes: difference", difference, near(0, 1e-5))
model = LinearDiscriminantAnalysis().fit(x, two)
labels, p = exported(model)
d = model.decision_function(x)
seen("discriminants, two classes: labels that differ", int((labels != model.predict(x)).sum()), lambda n: n <= 1)
seen("largest difference", round(float(np.abs(p - model.predict_proba(x)).max()), 3), lambda n: n > .1)
seen("largest difference from the logistic function of 2d", np.abs(p[:, 1] - 1 / (1 + np.exp(-2 * d))).max(), near(0, 1e-5))
seen("NLL in Python, exported", (nll(model.predict_proba(x)), nll(p)), lambda n: n[1] > n[0] + .03)

train, new = slice(0, 300), slice(300, 600)
for kind, y in ((KNeighborsClassifier, two), (KNeighborsRegressor, x[:, 0] * 3)):
    by_distance, equal = (kind(weights=w).fit(x[train], y[train]) for w in ("distance", "uniform"))
    predict = (lambda m: m.predict_proba(x)) if kind is KNeighborsClassifier else (lambda m: m.predict(x))
    got = exported(by_distance)[-1].reshape(predict(equal).shape)[new]
    seen(f"{kind.__name__} by distance: difference", round(float(np.abs(got - predict(by_distance)[new]).max()), 3), lambda n: n > .05)
    seen("the same, from equal neighbours", np.abs(got - predict(equal)[new]).max(), near(0, 1e-5))

model = TunedThresholdClassifierCV(LogisticRegression(), scoring="balanced_accuracy").fit(x, two)
labels, p = exported(model)
seen("tuned threshold", round(float(model.best_threshold_), 3), lambda t: abs(t - .5) > .05)
seen("labels of 600 that differ from predict", int((labels != model.predict(x)).sum()), lambda n: n > 20)
seen("labels of 600 that differ from p > .5", int((labels != (p[:, 1] > .5)).sum()), lambda n: n == 0)
END
