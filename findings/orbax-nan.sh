#!/bin/sh
# Expected: a checkpoint whose loss is NaN is the worst, so CheckpointManager(best_fn, best_mode="min", max_to_keep) drops it first.
# Happens: NaN upsets the sorting. With losses .5 .4 .3 .6 NaN and two to keep, the last one stays and best_step names it.
#   With .5 NaN .6 .7 and one to keep, .6 stays, and .5 has been deleted. Without the NaN all is right.
# Versions: orbax-checkpoint 0.11.36, jax 0.10.2.
# Matters: one diverged epoch deletes the checkpoints that were to be averaged, and the best one may be the one full of NaN.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $JAX
check <<'END'
from seen import seen, versions
import logging, os, tempfile
import jax.numpy as jnp, orbax.checkpoint as ocp

logging.disable(logging.CRITICAL)
versions("orbax-checkpoint", "jax")
nan = float("nan")


def kept(losses, keep):
    best = {"best_fn": lambda metrics: metrics["loss"], "best_mode": "min", "max_to_keep": keep}
    options = ocp.CheckpointManagerOptions(create=True, enable_async_checkpointing=False, **best)
    with ocp.CheckpointManager(tempfile.mkdtemp(dir=os.getcwd()), options=options) as manager:
        for step, loss in enumerate(losses):
            manager.save(step, args=ocp.args.StandardSave({"w": jnp.float32(step)}), metrics={"loss": loss})
        return [losses[step] for step in manager.all_steps()], losses[manager.best_step()]


seen(".5 .4 .7 .3 .6, keep 2: kept, best", kept([.5, .4, .7, .3, .6], 2), lambda k: k == ([.4, .3], .3))
seen(".5 .4 nan .3 .6, keep 2: kept, best", kept([.5, .4, nan, .3, .6], 2), lambda k: k == ([.3, .6], .3))
seen(".5 .4 .3 .6 nan, keep 2: kept, best", kept([.5, .4, .3, .6, nan], 2), lambda k: k[0][0] == .3 and k[1] != k[1])
seen(".5 nan .6 .7, keep 1: kept, best", kept([.5, nan, .6, .7], 1), lambda k: k == ([.6], .6))
END
