#!/bin/sh
# Expected: a label outside 0 … C − 1 (−1 for "unlabelled", 255 for "ignore") is an error, or NaN.
# Happens: Keras on JAX gives such a row the loss 0, as if it were predicted with certainty, and counts it in the mean. The more
#   rows have no label, the better the loss. Keras on PyTorch raises an error for the same call.
# Versions: keras 3.15.1, jax 0.10.2.
# Matters: the validation loss by which checkpoints, temperatures and methods are chosen is too small by the share of such rows.
# Source: seen by running. The loss has an argument ignore_class, which is not set by default.
. "$(dirname "$0")/lib.sh"
packages $JAX
check <<'END'
from seen import near, seen, versions
import os; os.environ["KERAS_BACKEND"] = "jax"
import keras, numpy as np

versions("keras", "jax")
logits = np.tile(np.float32([2, 0, -1]), (4, 1))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
seen("loss of four labelled rows", round(float(loss(np.zeros(4, int), logits)), 4), near(.1698))
for label in (-1, 3, 255):
    each = keras.losses.sparse_categorical_crossentropy(np.array([0, label, label, label]), logits, from_logits=True)
    seen(f"loss of rows labelled 0, {label}, {label}, {label}", np.round(np.asarray(each), 4) + 0, near([.1698, 0, 0, 0]))
seen("mean over the four rows", round(float(loss(np.array([0, -1, -1, -1]), logits)), 4), near(.1698 / 4))
END
