"""Writes golden.json: running statistics as PyTorch's own layers compute them.

    python make.py        (Python 3.11, NumPy 2.4, PyTorch 2.15)

Each case is a batch-norm layer over random batches, the last of them short.
The layers run in float64, so that the tolerance of the Go test, 1e-6, is for
the float32 statistics that Go is given and gives.
"""

import json
import pathlib

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import update_bn

torch.manual_seed(1902)
torch.set_default_dtype(torch.float64)


def reference(layer, batches):
    """bn_update of github.com/wjmaddox/swa_gaussian, swag/utils.py."""
    layer.reset_running_stats()
    layer.train()
    n = 0
    for x in batches:
        b = x.size(0)
        layer.momentum = b / (n + b)
        layer(x)
        n += b
    return layer.running_mean.tolist(), layer.running_var.tolist()


def equal_batches(layer, batches):
    update_bn(batches, layer)
    return layer.running_mean.tolist(), layer.running_var.tolist()


def pooled(layer, batches):
    x = torch.cat([b.transpose(0, 1).flatten(1) for b in batches], 1).numpy()
    return np.mean(x, axis=1).tolist(), np.var(x, axis=1, ddof=1).tolist()


cases = []
for name, layer, shapes in [
    ("BatchNorm1d", nn.BatchNorm1d(3), [(8, 3), (8, 3), (8, 3), (5, 3)]),
    ("BatchNorm2d", nn.BatchNorm2d(2), [(4, 2, 3, 2), (4, 2, 3, 2), (3, 2, 3, 2)]),
    ("last batch of one image", nn.BatchNorm2d(2), [(4, 2, 2, 2), (4, 2, 2, 2), (1, 2, 2, 2)]),
    ("images of many sizes", nn.BatchNorm2d(2), [(3, 2, 1, 4), (3, 2, 2, 3), (2, 2, 5, 1)]),
]:
    channel = (-1,) + (1,) * (len(shapes[0]) - 2)
    mean, sd = (torch.randn(layer.num_features).reshape(channel) for _ in range(2))
    batches = [(mean + sd * torch.randn(shape) + torch.randn(())).float().double() for shape in shapes]
    cases.append({
        "name": name,
        "shapes": shapes,
        "batches": [b.flatten().tolist() for b in batches],  # N×C×…, row-major
        "rules": {
            "reference": reference(layer, batches),
            "equal-batches": equal_batches(layer, batches),
            "pooled": pooled(layer, batches),
        },
    })
out = pathlib.Path(__file__).with_name("golden.json")
out.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
