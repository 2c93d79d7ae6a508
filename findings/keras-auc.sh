#!/bin/sh
# Expected: keras.metrics.AUC is a close approximation of the area under the ROC curve: 200 thresholds give two or three digits.
# Happens: the thresholds are spread evenly over 0 … 1. Where all probabilities are below 1/200, as with a rare event, all rows fall
#   between two thresholds and the area is 0.5, although the order is perfect. More thresholds, or logits, change the number.
# Versions: keras 3.15.1, jax 0.10.2.
# Matters: a perfect detector of rare events, or of unknown inputs by a small score, looks like chance.
# Source: num_thresholds is documented; the size of the error was seen by running.
. "$(dirname "$0")/lib.sh"
packages $JAX
check <<'END'
from seen import near, seen, versions
import os; os.environ["KERAS_BACKEND"] = "jax"
import keras, numpy as np

versions("keras", "jax")
labels = np.repeat([0, 1], [1000, 10])
scores = np.concatenate([np.linspace(1e-5, 1e-3, 1000), np.linspace(2e-3, 4e-3, 10)])
seen("share of pairs in the right order", (scores[labels == 1][:, None] > scores[labels == 0]).mean(), near(1))
for thresholds, want in ((200, .5), (100_000, 1)):
    metric = keras.metrics.AUC(num_thresholds=thresholds)
    metric.update_state(labels, scores)
    seen(f"Keras, {thresholds} thresholds", round(float(metric.result()), 4), near(want))
END
