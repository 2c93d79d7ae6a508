#!/bin/sh
# Expected: AveragedModel of a bfloat16 network is its average to two digits, which is what bfloat16 holds.
# Happens: the average is kept and updated in the network's type. One step of an EMA with decay .999 is smaller than the spacing of
#   bfloat16: the average never leaves its first value. The plain mean stops too: weights that rise from 1 to 2 in 2,000 steps have
#   the "mean" 1 instead of 1.5. float16 stops later: its average gets half of the way, its mean is 1.02. float32 is right.
# Versions: torch 2.15.0.
# Matters: the averaged file is the first checkpoint, or close to it, while the loss of the trained network falls. Nothing warns.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import near, seen, versions
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

versions("torch")


def average(dtype, weights, **options):
    net = torch.nn.Linear(1, 1, bias=False, dtype=dtype)
    averaged = AveragedModel(net, **options)
    for weight in weights:
        net.weight.data.fill_(weight)
        averaged.update_parameters(net)
    return float(averaged.module.weight)


ema = {"multi_avg_fn": get_ema_multi_avg_fn(.999)}
step = [.5] + [1.] * 10_000
rising = [1 + i / 2000 for i in range(2000)]
for dtype, moved, mean in ((torch.float32, 1, 1.5), (torch.float16, .756, 1.02), (torch.bfloat16, .5, 1)):
    seen(f"{dtype}: EMA .999, ten thousand steps from .5 to 1", average(dtype, step, **ema), near(moved, .01))
    seen(f"{dtype}: mean of 2,000 weights from 1 to 2", average(dtype, rising), near(mean, .01))
END
