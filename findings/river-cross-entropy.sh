#!/bin/sh
# Expected: a label to which a model gave no probability has an infinite loss, or 34.5, as in LogLoss; a rolling metric is that of its
#   window.
# Happens: CrossEntropy gives it the loss 0, the best there is: models of river have a class in their answer only after its first example,
#   and an empty answer before any. Rolling takes old values off again: long after one of 1e9 the variance of the last 50 is twice, their
#   mean square seven times too large; after one NaN both stay NaN.
# Versions: river 0.26.1.
# Matters: the rows that surprise a model most, those of a new class, count as its best ones. Drift is watched with these numbers.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages numpy==2.4.6 river==0.26.1
check <<'END'
from seen import near, seen, versions
import math
import numpy as np
from river import metrics, naive_bayes, stats, utils

versions("river")


def loss(metric, label, answer):
    metric.update(label, answer)
    return round(metric.get(), 4)


seen("cross entropy of 2 with {0: .9, 2: .1}", loss(metrics.CrossEntropy(), 2, {0: .9, 2: .1}), near(-math.log(.1)))
seen("cross entropy of 2 with {0: .9, 2: 0}", loss(metrics.CrossEntropy(), 2, {0: .9, 1: .1, 2: 0.}), lambda v: v > 30)
seen("cross entropy of 2 with {0: .9, 1: .1}", loss(metrics.CrossEntropy(), 2, {0: .9, 1: .1}), near(0, 1e-9))
seen("cross entropy of 2 with {}", loss(metrics.CrossEntropy(), 2, {}), near(0, 1e-9))
seen("log loss of true with {}", loss(metrics.LogLoss(), True, {}), lambda v: v > 30)
rng = np.random.default_rng(0)
model, new = naive_bayes.GaussianNB(), []
for k in range(300):
    label = int(rng.integers(2 if k < 200 else 3))
    x = {"a": float(rng.normal()) + label}
    if label == 2 and not new:
        new.append(loss(metrics.CrossEntropy(), label, model.predict_proba_one(x)))
    model.learn_one(x, label)
seen("a classifier's first example of class 2, after 200 of 0 and 1: loss", new[0], near(0, 1e-9))


def rolling(metric, values, *more):
    window = utils.Rolling(metric, 50)
    for value in values:
        window.update(value, *more)
    return round(float(window.get()), 2)


values = rng.standard_normal(200)
for first, words in (0., "0"), (1e9, "1e9"), (math.nan, "NaN"):
    held = [first, *values.tolist()]
    variance, square = float(np.var(held[-50:], ddof=1)), float(np.mean(np.square(held[-50:])))
    got = rolling(stats.Var(), held)
    seen(f"variance of the last 50 of 201, the first is {words}", got, near(variance, .01) if first == 0 else not got < 2)
    got = rolling(metrics.MSE(), held, 0.)
    seen(f"mean square of the last 50, the first is {words}", got, near(square, .01) if first == 0 else not got < 5)
END
