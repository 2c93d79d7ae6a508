#!/bin/sh
# Expected: update_bn of torch.optim.swa_utils computes the statistics that the network has when it predicts, so with dropout off.
# Happens: it puts the whole network into training mode, dropout too. Behind Dropout(.5) the stored variance of inputs with mean 2 and
#   variance 1 is 6. Predictions have no dropout, and their variance after batch norm is 1/6 instead of 1.
# Versions: torch 2.15.0.
# Matters: the recomputed statistics of an average shrink its activations, as those of training do. A comparison with statistics
#   that are computed without dropout finds other scores.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import near, seen, versions
import torch
from torch.optim.swa_utils import update_bn

versions("torch")
torch.manual_seed(0)
rows = torch.randn(100_000, 1) + 2


def norm(dropout):
    net = torch.nn.Sequential(torch.nn.Dropout(dropout), torch.nn.BatchNorm1d(1)).eval()
    update_bn(torch.utils.data.DataLoader(rows, 1000), net)
    with torch.no_grad():
        return round(float(net[1].running_var), 2), round(float(net(rows).var()), 2)


for dropout, stored, after in ((0., 1, 1), (.1, 1.56, .64), (.5, 6, .167)):
    seen(f"Dropout({dropout}): stored variance, variance of predictions", norm(dropout), near([stored, after], .05))
END
