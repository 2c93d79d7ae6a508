"""Writes reference.json: what the authors' code computes, in PyTorch.

    python make_reference.py        (PyTorch 2.15)

The arithmetic of swag/posteriors/swag.py at 61a918f in our own words, operation
for operation and in float32: running means of the weights and of their squares,
deviations after the update, the oldest dropped beyond max_num_models, a clamp
below the variance. The Go test wants the same bits.
"""

import json
import pathlib

import torch

D, T, CLAMP = 64, 30, 1e-30


def collect(thetas, max_num_models):
    mean, sq_mean = torch.zeros(D), torch.zeros(D)
    deviations = torch.empty(0, D)
    for n, theta in enumerate(thetas):
        mean = mean * n / (n + 1.0) + theta / (n + 1.0)
        sq_mean = sq_mean * n / (n + 1.0) + theta**2 / (n + 1.0)
        deviations = torch.cat([deviations, (theta - mean).view(1, -1)])[-max_num_models:]
    return mean, torch.clamp(sq_mean - mean**2, CLAMP), deviations


torch.manual_seed(1902)
centre = torch.randn(D) * 10.0 ** torch.linspace(-4, 2, D)
spread = 10.0 ** torch.linspace(-6, 1, D)[torch.randperm(D)]
centre[0], spread[0] = 1, 0  # frozen: the variance is the clamp
iterates = [centre + spread * torch.randn(D) for _ in range(T)]

cases = []
for models, rank in [(30, 20), (20, 20), (5, 20), (7, 3), (2, 2)]:
    mean, variance, deviations = collect(iterates[:models], rank)
    cases.append({
        "rank": rank,
        "models": models,
        "mean": mean.tolist(),
        "variance": variance.tolist(),
        "deviations": deviations.tolist(),
    })
path = pathlib.Path(__file__).with_name("reference.json")
path.write_text(json.dumps({"iterates": [t.tolist() for t in iterates], "cases": cases}) + "\n")
print(path, torch.__version__)
