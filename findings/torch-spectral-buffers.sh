#!/bin/sh
# Expected: AveragedModel(use_buffers=True), which is the advice for networks with batch norm, averages running statistics.
#   An averaged layer with spectral_norm has the largest singular value 1, or 1.1.
# Happens: spectral_norm keeps two unit vectors as buffers. They turn during training, and their mean is far shorter than 1. The weight is
#   divided by u·W·v, so the averaged network's weights are many times too large, while the trained ones and the raw average are right.
#   With use_buffers=False the value is 1.
# Versions: torch 2.15.0.
# Matters: the average is a network whose logits are thousands of times too large: its NLL is 9,300 instead of .57.
# Source: seen by running; _SpectralNorm in torch/nn/utils/parametrizations.py.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import seen, versions
import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils.parametrizations import spectral_norm
from torch.optim.swa_utils import AveragedModel

versions("torch")


def trained(use_buffers):
    torch.manual_seed(1)
    network = torch.nn.Sequential(spectral_norm(torch.nn.Linear(20, 50)), torch.nn.ReLU(), spectral_norm(torch.nn.Linear(50, 3)))
    average = AveragedModel(network, use_buffers=use_buffers)
    optimizer = torch.optim.SGD(network.parameters(), .5, momentum=.9)
    truth = torch.randn(20, 3)
    for step in range(400):
        x = torch.randn(64, 20)
        labels = (x @ truth + torch.randn(64, 3)).argmax(1)
        loss = cross_entropy(network(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step >= 100 and step % 10 == 0:
            average.update_parameters(network)
    x = torch.randn(2000, 20)
    return network.eval(), average.module.eval(), x, (x @ truth + torch.randn(2000, 3)).argmax(1)


def norms(network):
    return [round(float(torch.linalg.matrix_norm(network[i].weight, 2)), 2) for i in (0, 2)]


for use_buffers in (False, True):
    network, average, x, labels = trained(use_buffers)
    with torch.no_grad():
        losses = [round(float(cross_entropy(n(x), labels)), 2) for n in (network, average)]
    way = f"use_buffers={use_buffers}: "
    seen(way + "largest singular values of the last network", norms(network), lambda n: all(.9 < v < 1.2 for v in n))
    if use_buffers:
        seen(way + "of the average", norms(average), lambda n: all(v > 10 for v in n))
        lengths = [round(float(average[i].parametrizations.weight[0]._u.norm()), 3) for i in (0, 2)]
        seen(way + "lengths of the averaged vectors u", lengths, lambda n: min(n) < .5)
        seen(way + "NLL of the last network, of the average", losses, lambda n: n[1] > 5 * n[0])
    else:
        seen(way + "of the average", norms(average), lambda n: all(.9 < v < 1.2 for v in n))
        seen(way + "NLL of the last network, of the average", losses, lambda n: n[1] < n[0] + .05)
END
