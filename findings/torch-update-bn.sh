#!/bin/sh
# Expected: update_bn of torch.optim.swa_utils computes mean and variance of the data, whatever the loader's order and batch size.
# Happens: it takes the plain mean of the statistics of all batches. The variance between batches is lost: a loader sorted by class gives
#   .09 where the variance is 8.4. Two rows in the last batch count as much as 1280 before: two zeros move the mean from 4.5 to 2.3.
# Versions: torch 2.15.0.
# Matters: a loader without shuffling or drop_last is what evaluation uses. The average gets wrong statistics from it, without a warning.
# Source: batch norm's momentum=None is documented as a cumulative average; the size of the error was seen by running.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import near, seen, versions
import torch
from torch.optim.swa_utils import update_bn

versions("torch")
torch.manual_seed(0)
rows = torch.randn(2560, 1) * .3 + torch.arange(10).repeat_interleave(256)[:, None]
shuffled = rows[torch.randperm(2560)]


def statistics(rows, size):
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(1))
    update_bn(torch.utils.data.DataLoader(rows, size), net)
    return round(float(net[0].running_mean), 3), round(float(net[0].running_var), 3)


exact = float(rows.mean()), float(rows.var())
seen("exact mean and variance", exact, near([4.5, 8.34], .1))
seen("shuffled, batches of 128", statistics(shuffled, 128), near(exact, .1))
seen("sorted by class, batches of 128: variance", statistics(rows, 128)[1], near(.09, .02))
uneven = torch.cat([shuffled[:1280], torch.zeros(2, 1)])
seen("1280 rows, then 2 rows of zeros: exact mean", float(uneven.mean()), near(4.5, .2))
seen("the same in batches of 1280: mean", statistics(uneven, 1280)[0], near(2.25, .1))
END
