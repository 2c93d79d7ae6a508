#!/bin/sh
# Expected: a running mean over a long evaluation is as exact as one over a short one.
# Happens: Keras keeps the count in float32. At 16,777,216 it cannot grow by 1 any more: later values that come singly are added to
#   the sum and not to the count, or to neither. A thousand zeros after 2²⁴ ones leave the mean at 1, and so do more.
# Versions: keras 3.15.1, jax 0.10.2.
# Matters: streams, windows of a series and pixels that are counted one by one reach 2²⁴ in hours. A drift after it is not seen.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $JAX
check <<'END'
from seen import near, seen, versions
import os; os.environ["KERAS_BACKEND"] = "jax"
import keras

versions("keras", "jax")
for before, want in ((2.**20, .999047), (2.**24, 1)):
    metric = keras.metrics.Mean()
    metric.update_state(1., sample_weight=before)  # the same state as after so many ones
    for _ in range(1000):
        metric.update_state(0.)
    mean = float(metric.result())
    seen(f"{before:.0f} ones, then 1000 zeros: mean, count", (round(mean, 6), float(metric.count)), abs(mean - want) < 2e-6)
seen("count after 2²⁴ + 1000 values", float(metric.count), 2.**24 == float(metric.count))
END
