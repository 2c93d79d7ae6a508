#!/bin/sh
# Expected: CheckpointSaver drops a checkpoint whose loss is NaN first, and model_best is the lowest loss that is a number.
# Happens: once a NaN is the last of a full list, nothing compares as better: the folder is frozen. Losses .5 NaN .4 .3 with two to
#   keep leave .5 and NaN, and model_best is .5. With NaN first, model_best has the NaN for ever. Later NaNs do no harm.
# Versions: timm 1.0.31, torch 2.15.0.
# Matters: one diverged epoch at the start, and later checkpoints, which were to be averaged, are not kept. Training goes on.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import seen, versions
import os, tempfile
import torch
from timm.utils import CheckpointSaver

versions("timm", "torch")
nan = float("nan")


def kept(losses, keep):
    folder = tempfile.mkdtemp(dir=os.getcwd())
    net = torch.nn.Linear(1, 1)
    saver = CheckpointSaver(
        net, torch.optim.SGD(net.parameters(), .1), checkpoint_dir=folder, recovery_dir=folder, decreasing=True, max_history=keep)
    for epoch, loss in enumerate(losses):
        saver.save_checkpoint(epoch, loss)
    of = lambda name: losses[torch.load(os.path.join(folder, name))["epoch"]]
    return sorted(str(of(name)) for name in os.listdir(folder) if name.startswith("checkpoint")), str(of("model_best.pth.tar"))


for losses, want in (
    ([.5, .4, .7, .3, .6], (["0.3", "0.4"], "0.3")),
    ([.5, .4, nan, .3, .2], (["0.2", "0.3"], "0.2")),
    ([.5, nan, .4, .3], (["0.5", "nan"], "0.5")),
    ([nan, .4, .3, .6], (["0.3", "nan"], "nan")),
):
    seen(f"losses {losses}, two to keep: kept, model_best", kept(losses, 2), lambda got: got == want)
END
