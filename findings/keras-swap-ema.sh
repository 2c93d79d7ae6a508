#!/bin/sh
# Expected: with SwapEMAWeights, ModelCheckpoint stores the averaged weights, since these were the ones validated.
# Happens: it depends on the order of callbacks and on an option. Only SwapEMAWeights(swap_on_epoch=True), listed before
#   ModelCheckpoint, stores averages. The other three ways store the weights of the last step beside the val_loss of the average.
# Versions: keras 3.15.1, jax 0.10.2.
# Matters: folders of checkpoints look alike and hold averages or iterates. Averaging averages is another estimate, and the posterior
#   around them is too narrow.
# Source: swap_on_epoch is documented; that the order of callbacks decides was seen by running.
. "$(dirname "$0")/lib.sh"
packages $JAX
check <<'END'
from seen import seen, versions
import os; os.environ["KERAS_BACKEND"] = "jax"
import keras, numpy as np

versions("keras", "jax")
rng = np.random.default_rng(0)
x = rng.standard_normal((256, 4)).astype(np.float32)
y = (x.sum(1) > 0).astype(int)


def network(**options):
    keras.utils.set_random_seed(0)
    net = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    net.compile(keras.optimizers.SGD(.5, **options), "binary_crossentropy")
    return net


plain, average = network(), None
for batch in list(range(0, 256, 32)) * 2:  # two epochs by hand
    plain.train_on_batch(x[batch:batch + 32], y[batch:batch + 32])
    weight = plain.get_weights()[0].copy()
    average = weight if average is None else .9 * average + .1 * weight

for on_epoch in (False, True):
    for swap_first in (False, True):
        net = network(use_ema=True, ema_momentum=.9)
        swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=on_epoch)
        save = keras.callbacks.ModelCheckpoint("last.weights.h5", save_weights_only=True)
        order = [swap, save] if swap_first else [save, swap]
        net.fit(x, y, epochs=2, batch_size=32, shuffle=False, verbose=0, validation_data=(x, y), callbacks=order)
        stored = network()
        stored.load_weights("last.weights.h5")
        stored = stored.get_weights()[0]
        kinds = {"average": average, "last step": weight}
        kind = [name for name, value in kinds.items() if np.allclose(stored, value, atol=1e-5)]
        want = "average" if on_epoch and swap_first else "last step"
        seen(f"swap_on_epoch={on_epoch}, {'swap before save' if swap_first else 'save before swap'}: file holds", kind, kind == [want])
END
