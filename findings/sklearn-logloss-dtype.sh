#!/bin/sh
# Expected: log_loss of the same probabilities is the same number in float32 and float64: clipping is at 1e-15, as for many years.
# Happens: the clip is the machine epsilon of the array's type. Three certain rows, one of them wrong, have the loss 2.31, 5.31 or 12.01 in
#   float16, float32, float64. A CSV file or a list is float64, the network's array is float32.
# Versions: scikit-learn 1.9.1.
# Matters: two methods are compared by NLL, one from an array, the other read back from a file: the difference is that of the types.
# Source: the documentation names the epsilon; the size of the difference was seen by running.
. "$(dirname "$0")/lib.sh"
packages $SCORES
check <<'END'
from seen import near, seen, versions
import numpy as np
from sklearn.metrics import log_loss

versions("scikit-learn", "numpy")
probability = np.array([[1, 0], [0, 1], [1, 0]])
for kind, want in (("float16", 2.3105), ("float32", 5.3141), ("float64", 12.0146)):
    seen(kind, round(float(log_loss([0, 1, 1], probability.astype(kind))), 4), near(want))
END
