"""Goldens of power iteration: PyTorch's own spectral norm after many training passes, and NumPy's SVD.

python spectral.py        (torch 2.15.0, numpy 2.x; writes spectral.json)
"""
import json
import os

import numpy as np
import torch

torch.manual_seed(1)
out = []
for name, module, dim in [
    ("linear", torch.nn.Linear(7, 5, bias=False), 0),
    ("conv", torch.nn.Conv2d(3, 4, (2, 3), bias=False), 0),
    ("transposed conv", torch.nn.ConvTranspose2d(3, 4, (2, 3), bias=False), 1),
    ("wide", torch.nn.Linear(30, 2, bias=False), 0),
]:
    w = module.weight.detach().clone()
    sn = torch.nn.utils.spectral_norm(module)  # takes dim 1 of a transposed convolution
    before = {"u": sn.weight_u.clone(), "v": sn.weight_v.clone()}
    sn.train()
    shape = {"linear": (1, 7), "conv": (1, 3, 4, 4), "transposed conv": (1, 3, 4, 4), "wide": (1, 30)}[name]
    with torch.no_grad():
        for _ in range(3000):  # one power iteration each; the weights stay
            sn(torch.zeros(shape))
    matrix = w.permute(dim, *[d for d in range(w.dim()) if d != dim]).reshape(w.shape[dim], -1)
    sigma = np.linalg.svd(matrix.double().numpy(), compute_uv=False)
    out.append({"name": name, "shape": list(w.shape), "axis": dim, "weight": w.flatten().tolist(),
                "before_u": before["u"].tolist(), "before_v": before["v"].tolist(),
                "u": sn.weight_u.tolist(), "v": sn.weight_v.tolist(), "sigma": float(sigma[0]), "second": float(sigma[1])})
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "spectral.json"), "w") as f:
    json.dump(out, f)
