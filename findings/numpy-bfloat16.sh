#!/bin/sh
# Expected: NumPy computes with arrays of bfloat16 as with float16, whose means and sums it keeps in more bits, and sorts NaN to the end.
# Happens: mean, sum, var, average and cumsum add in bfloat16: 1,000 ones have the mean .256, the mean of 10,000 uniform numbers is .026.
#   With a NaN among them, sort and argsort leave numbers unsorted. JAX is right in all of it.
# Versions: numpy 2.4.6, ml_dtypes 0.6.0, jax 0.10.2.
# Matters: checkpoints come as such arrays from safetensors and from Flax. Norms, statistics and averages of weights are wrong by factors;
#   nothing is NaN or infinite.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $JAX ml-dtypes==0.6.0
check <<'END'
from seen import near, seen, versions
import jax.numpy as jnp, ml_dtypes, numpy as np

versions("numpy", "ml_dtypes", "jax")
uniform = np.random.default_rng(0).random(10_000)
f16, bf16 = uniform.astype(np.float16), uniform.astype(ml_dtypes.bfloat16)
number = lambda v: round(float(v), 4)
seen("mean of uniform numbers, float16", number(f16.mean()), near(.5, .01))
seen("mean, bfloat16", number(bf16.mean()), lambda v: v < .03)
seen("mean, bfloat16, JAX", number(jnp.asarray(bf16).mean()), near(.5, .01))
seen("standard deviation, float16", number(f16.std()), near(.2887, .01))
seen("standard deviation, bfloat16", number(bf16.std()), lambda v: v < .2)
ones = np.ones(1000, ml_dtypes.bfloat16)
seen("mean of 1,000 ones", number(ones.mean()), near(.256))
seen("their sum, and the last of cumsum", [number(ones.sum()), number(ones.cumsum()[-1])], lambda v: v == [256, 256])
members = np.repeat(np.array([[.1], [.2]], ml_dtypes.bfloat16), [20, 20], axis=0)
seen("mean over axis 0 of 20 times .1 and 20 times .2", number(members.mean(0)[0]), lambda v: abs(v - .15) > .001)
seen("the same in JAX", number(jnp.asarray(members).mean(0)[0]), near(.15))
gaps = [3, float("nan"), 1, 2]
for words, kind, want in ("float16", np.float16, [1, 2, 3]), ("bfloat16", ml_dtypes.bfloat16, [3]):
    held = np.array(gaps, kind)
    seen(f"sort of 3, NaN, 1, 2: {words}", [number(v) for v in np.sort(held)], lambda got: got[0] == want[0])
    seen(f"argsort: {words}", np.argsort(held).tolist(), lambda got: got == ([2, 3, 0, 1] if words == "float16" else [0, 1, 2, 3]))
seen("sort in JAX", [number(v) for v in jnp.sort(jnp.array(gaps, jnp.bfloat16))][:3], lambda got: got == [1, 2, 3])
END
