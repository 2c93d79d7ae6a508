#!/usr/bin/env python3
"""A tiny detector for the task none: PyTorch state_dicts, the graph of one of them, inputs, and PyTorch's own outputs.

    python make.py        with torch 2.15.0, onnx 1.23.2, onnxscript 0.7.2, NumPy 2.4.6

golden.npz has the mean and the standard deviation of both outputs over the checkpoints, each with its own batch norm, and the outputs of
AveragedModel after update_bn on the inputs. All are in float64.
"""

import pathlib

import numpy as np
import onnx
import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent


class Detector(nn.Module):
    """Four anchors for each of four places: a box, and the scores of three kinds of things."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(2, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4)
        self.box, self.kind = nn.Conv2d(4, 16, 1), nn.Conv2d(4, 12, 1)

    def forward(self, x):
        h = torch.relu(self.bn(self.conv(x)))
        last = lambda y, k: y.permute(0, 2, 3, 1).reshape(x.shape[0], -1, k)
        return last(self.box(h), 4), last(self.kind(h), 3).sigmoid()


torch.manual_seed(1)
model, x = Detector(), torch.randn(24, 2, 4, 4)
average, outputs = None, []
opt = torch.optim.SGD(model.parameters(), 0.1)
goal = [torch.randn(24, 16, 4), torch.rand(24, 16, 3)]
for epoch in range(1, 5):
    model.train()
    for _ in range(4):
        opt.zero_grad()
        sum(nn.functional.mse_loss(a, b) for a, b in zip(model(x), goal)).backward()
        opt.step()
    torch.save(model.state_dict(), HERE / f"epoch-{epoch}.pt")
    own = Detector()
    own.load_state_dict(model.state_dict())
    average = average or torch.optim.swa_utils.AveragedModel(own)
    average.update_parameters(own)
    with torch.no_grad():
        outputs.append([y.numpy() for y in own.eval().double()(x.double())])
model.eval()
torch.onnx.export(model, (x[:3],), str(HERE / "model.onnx"), dynamo=True, optimize=False, external_data=False, verbose=False, output_names=["boxes", "scores"],
                  dynamic_shapes=({0: torch.export.Dim("batch")},))
graph = onnx.load(HERE / "model.onnx")
for node in graph.graph.node:  # lines of the source, with paths of this machine
    del node.metadata_props[:]
onnx.save(graph, HERE / "model.onnx")
swa = average.module.float()
torch.optim.swa_utils.update_bn([x], swa)
with torch.no_grad():
    swa = [y.numpy() for y in swa.eval().double()(x.double())]
golden = {}
for k, name in enumerate(("boxes", "scores")):
    all_ = np.stack([o[k] for o in outputs])
    golden |= {name + "_mean": all_.mean(0), name + "_std": all_.std(0), name + "_swa": swa[k]}
np.savez_compressed(HERE / "golden.npz", **golden)
np.save(HERE / "x.npy", x.numpy())
