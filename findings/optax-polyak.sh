#!/bin/sh
# Expected: schedule_free_sgd with b1=0 is plain SGD with Polyak's average beside it, which is what the paper says of that value.
# Happens: the first update is NaN, since evaluation weights are recovered by a division by b1. All weights are NaN from then on.
#   b1=1e-3 works.
# Versions: optax 0.2.8, jax 0.10.2.
# Matters: the call that compares schedule-free learning with a plain average gives NaN weights, and no error.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $JAX
check <<'END'
from seen import near, seen, versions
import jax.numpy as jnp, math, optax

versions("optax", "jax")


def train(b1):
    method = optax.contrib.schedule_free_sgd(learning_rate=.1, b1=b1)
    weight = jnp.float32(1)
    state = method.init(weight)
    for _ in range(5):  # the loss is weight²/2
        update, state = method.update(weight, state, weight)
        weight = optax.apply_updates(weight, update)
    return float(weight), float(optax.contrib.schedule_free_eval_params(state, weight))


seen("b1=0.9: weight, average", train(.9), lambda r: .7 < r[0] < r[1] < .75)
seen("b1=0.001", train(1e-3), lambda r: 0 < r[0] < r[1] < 1)
seen("b1=0", train(0.), lambda r: all(map(math.isnan, r)))
END
