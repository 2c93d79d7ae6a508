#!/bin/sh
# Expected: batch norm and layer norm of Flax compute a variance that is right to about 1e-6, as PyTorch's do.
# Happens: both use the mean of squares minus the square of the mean, in float32. The default is use_fast_variance=True. Inputs with
#   mean 1000 and standard deviation 1 get a variance that is 5 % off. With mean 10,000 the stored running variance is 0 or many
#   times too large, and layer norm multiplies its input by hundreds. Keras on JAX is right.
# Versions: flax 0.12.8, jax 0.10.2, keras 3.15.1.
# Matters: recomputed batch-norm statistics of an average are wrong where inputs have an offset a thousand times their spread, such
#   as timestamps or pressures in pascal. The loss curve does not show why.
# Source: the argument is documented; the size of the error was seen by running.
. "$(dirname "$0")/lib.sh"
packages $JAX
check <<'END'
from seen import near, seen, versions
import os; os.environ["KERAS_BACKEND"] = "jax"
import flax.linen as nn, jax, keras, numpy as np

versions("flax", "jax", "keras")
rng = np.random.default_rng(0)


def normalised(mean):
    x = (mean + rng.standard_normal((4096, 1))).astype(np.float32)
    layer = nn.BatchNorm(use_running_average=False, momentum=0.0)
    _, new = layer.apply(layer.init(jax.random.key(0), x), x, mutable=["batch_stats"])
    other = keras.layers.BatchNormalization(momentum=0.0)
    other(x, training=True)
    norm, rows = nn.LayerNorm(), x.reshape(64, 64)
    y = norm.apply(norm.init(jax.random.key(0), rows), rows)
    exact = x.astype(np.float64).var()
    return float(new["batch_stats"]["var"][0]) / exact, float(np.asarray(other.moving_variance)[0]) / exact, float(np.std(y))


for mean, wrong in ((10, lambda r: abs(r - 1) < 1e-3), (1000, lambda r: .01 < abs(r - 1) < .2), (10_000, lambda r: abs(r - 1) > .5)):
    flax_ratio, keras_ratio, spread = normalised(mean)
    seen(f"mean {mean}: running variance of Flax / exact", round(flax_ratio, 4), wrong(flax_ratio))
    seen(f"mean {mean}: running variance of Keras / exact", round(keras_ratio, 4), near(1))
seen("mean 10000: standard deviation after layer norm (1 is right)", round(spread, 1), lambda s: s > 10)
END
