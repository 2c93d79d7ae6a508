#!/bin/sh
# Expected: softmax_cross_entropy_with_integer_labels treats all labels outside 0 … C − 1 alike.
# Happens: −1 counts as the last class, as in Python's indexing. C, 255 and −100 give NaN (−100 is PyTorch's "ignore").
# Versions: optax 0.2.8, jax 0.10.2.
# Matters: rows marked −1 for "unlabelled" train the last class and enter the validation loss, without a warning. The argument where
#   masks them.
# Source: JAX documents that it does not raise errors for indices out of range; the difference between −1 and C was seen by running.
. "$(dirname "$0")/lib.sh"
packages $JAX
check <<'END'
from seen import near, seen, versions
import jax.numpy as jnp, numpy as np, optax

versions("optax", "jax")
logits = jnp.tile(jnp.float32([[2, 0, -1]]), (5, 1))
loss = np.asarray(optax.softmax_cross_entropy_with_integer_labels(logits, jnp.array([2, -1, 3, 255, -100])))
seen("label 2 and label -1", loss[:2], near([3.1698, 3.1698]))
seen("labels 3, 255 and -100", loss[2:], np.isnan(loss[2:]).all())
END
