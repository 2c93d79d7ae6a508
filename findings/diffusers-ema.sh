#!/bin/sh
# Expected: EMAModel.save_pretrained writes a network that can be used: averaged weights with the running statistics of training.
# Happens: only parameters are averaged and kept. The file is written from a fresh network, so batch norm has mean 0, variance 1 and
#   no batch counted. from_pretrained loads it without an error.
# Versions: diffusers 0.42.1, torch 2.15.0.
# Matters: the averaged file has complete names and shapes, and scores like an untrained network where it has batch norm. Statistics
#   must be recomputed, or copied from the checkpoint beside it.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import near, seen, versions
import torch
from diffusers import ConfigMixin, ModelMixin
from diffusers.configuration_utils import register_to_config
from diffusers.training_utils import EMAModel
from diffusers.utils import logging

logging.set_verbosity_error()
versions("diffusers", "torch")
torch.manual_seed(0)


class Net(ModelMixin, ConfigMixin):
    @register_to_config
    def __init__(self, size=1):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(size)

    def forward(self, x):
        return self.norm(x)


net = Net()
average = EMAModel(net.parameters(), decay=.9, model_cls=Net, model_config=net.config)
for step in range(1, 101):
    net(torch.randn(1000, 1) * 3 + 5)
    net.norm.weight.data.fill_(step)
    average.step(net.parameters())
average.save_pretrained("average")
net.save_pretrained("last")
for folder, mean, variance in (("last", 5, 9), ("average", 0, 1)):
    norm = Net.from_pretrained(folder).norm
    seen(f"{folder}: running mean, running variance", (float(norm.running_mean), float(norm.running_var)), near([mean, variance], .5))
    if folder == "average":
        seen("average: weight, after a rise to 100 in steps of 1", float(norm.weight), lambda w: 85 < w < 95)
END
