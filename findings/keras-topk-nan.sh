#!/bin/sh
# Expected: a row of NaN is wrong, or counts as class 0, in every accuracy of Keras.
# Happens: top-k accuracy counts it as right whatever its label is. So it does for a row of equal scores, where plain accuracy takes
#   class 0. Both follow from counting how many classes are strictly better than the label's.
# Versions: keras 3.15.1, jax 0.10.2.
# Matters: a network whose averaged statistics are NaN has top-5 accuracy 1. A dead network with constant scores has it too.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $JAX
check <<'END'
from seen import seen, versions
import os; os.environ["KERAS_BACKEND"] = "jax"
import keras, numpy as np

versions("keras", "jax")
labels = np.arange(10)


def accuracy(metric, value):
    metric.update_state(labels, np.full((10, 10), value, np.float32))
    return float(metric.result())


seen("all NaN: top-1 accuracy by k=1", accuracy(keras.metrics.SparseTopKCategoricalAccuracy(k=1), np.nan), lambda a: a == 1)
seen("all equal: top-1 accuracy by k=1", accuracy(keras.metrics.SparseTopKCategoricalAccuracy(k=1), .1), lambda a: a == 1)
seen("all equal: plain accuracy", accuracy(keras.metrics.SparseCategoricalAccuracy(), .1), lambda a: abs(a - .1) < 1e-6)
END
