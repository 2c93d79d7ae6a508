#!/bin/sh
# Expected: in float64 a probability of 1e-12 has the loss 27.6.
# Happens: Keras clips probabilities at 1e-7 in every precision. The loss is never above 16.118, and a probability of 0 costs that too.
#   Losses of logits are not clipped: the same network has another NLL with from_logits=True.
# Versions: keras 3.15.1, jax 0.10.2.
# Matters: comparing methods by NLL, sure and wrong predictions are what averaging repairs. A floor hides that part of the gain.
# Source: keras.config.epsilon is documented; that the dtype changes nothing was seen by running.
. "$(dirname "$0")/lib.sh"
packages $JAX
check <<'END'
from seen import near, seen, versions
import os; os.environ["KERAS_BACKEND"] = "jax"
import jax; jax.config.update("jax_enable_x64", True)
import keras, numpy as np

versions("keras", "jax")
loss = lambda p, **kw: float(keras.losses.SparseCategoricalCrossentropy(dtype="float64", **kw)(np.array([0]), np.array([p])))
seen("probability 1e-6", loss([1e-6, 1 - 1e-6]), near(13.8155))
seen("probability 1e-12", loss([1e-12, 1 - 1e-12]), near(16.1181))
seen("probability 0", loss([0., 1.]), near(16.1181))
seen("logits -27.6 and 0", loss([np.log(1e-12), 0.], from_logits=True), near(27.631))
END
