"""Trains a small network on scikit-learn's digits in many ways, and prints what the limits of verdict.go are held against.

    python runs.py        (Python 3.11, NumPy 2.4, SciPy 1.17, scikit-learn 1.9, PyTorch 2.15; half a minute on one core)

A row is one set of checkpoints, with the figures of health.py. Below it stand the distances of averages from the
checkpoints' own mean, in units of their spread.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import health

torch.set_num_threads(1)
digits = load_digits()
order = np.random.RandomState(0).permutation(len(digits.target))[:700]
images, labels = torch.tensor(digits.images[order][:, None] / 16, dtype=torch.float32), torch.tensor(digits.target[order])
BATCH = 64
STEPS = math.ceil(len(images) / BATCH)  # of an epoch


class Net(nn.Module):
    def __init__(self, norm=nn.BatchNorm2d):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False), norm(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1, bias=False), norm(32), nn.ReLU(),
            nn.Conv2d(32, 32, 3, 2, 1, bias=False), norm(32), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(32, 10),
        )

    def forward(self, x):
        return self.layers(x)


def weights(net):
    return torch.cat([p.detach().double().ravel() for p in net.parameters()]).numpy()


def train(epochs, rate, schedule=lambda t: 1, seed=0, first=0, start=None, optimizer=torch.optim.SGD, norm=nn.BatchNorm2d, averages=None, **options):
    """The weights after each epoch from the given one on; schedule takes the share of training that is done."""
    torch.manual_seed(seed)
    net, rows, t = Net(norm), [], 0
    if start:
        net.load_state_dict(start)
    if optimizer is torch.optim.SGD:
        options = {"momentum": 0.9, "weight_decay": 5e-4} | options
    opt = optimizer(net.parameters(), rate, **options)
    ema, batches = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.99)), AveragedModel(net)
    for epoch in range(epochs):
        net.train()
        shuffled = torch.randperm(len(images))
        for i in range(0, len(images), BATCH):
            for group in opt.param_groups:
                group["lr"] = rate * schedule(t / epochs / STEPS)
            some = shuffled[i : i + BATCH]
            opt.zero_grad()
            F.cross_entropy(net(images[some]), labels[some]).backward()
            opt.step()
            t += 1
            ema.update_parameters(net)
            if epoch >= first:
                batches.update_parameters(net)
        if epoch >= first:
            rows.append(weights(net))
    if averages is not None:
        averages |= {"EMA": weights(ema.module), "average over batches": weights(batches.module), "last iterate": rows[-1]}
    return np.array(rows), net.state_dict()


def show(name, x):
    n, steps = len(x), np.linalg.norm(np.diff(x, axis=0), axis=1)
    spread = np.sqrt(x.var(0).sum() / (x**2).sum(1).mean())
    slowing, trend = 1, 0
    if n >= 8:
        quarter = len(steps) // 4
        slowing, trend = np.median(steps[-quarter:]) / np.median(steps[:quarter]), spearmanr(steps, np.arange(len(steps))).statistic
    print(f"{name:36} {n:3} {health.effective(x) if n > 2 else n:5.1f} {health.drift(x) if n > 3 else 0:5.2f} {spread:6.3f} {slowing:6.3f} {trend:+.2f}"
          f" {[len(g) for g in health.groups(x)]} {health.restarts(x) if n > 3 else []}", flush=True)


falls = {
    "cosine": lambda s: (1 + math.cos(math.pi * s)) / 2,
    "linear": lambda s: 1 - 0.99 * s,
    "exponential": lambda s: 0.01**s,
    "steps": lambda s: 1 if s < 0.5 else 0.1 if s < 0.75 else 0.01,
}
print(f"{'':36}   T n_eff drift spread slowing trend groups restarts")
_, trained = train(40, 0.1, falls["cosine"])
for rate in (0.003, 0.01, 0.03, 0.1, 0.3):
    show(f"constant, SGD {rate}", train(20, rate, start=trained)[0])
for rate in (0.0003, 0.001, 0.003, 0.01):
    show(f"constant, Adam {rate}", train(20, rate, start=trained, optimizer=torch.optim.Adam)[0])
show("constant, AdamW 0.001", train(20, 0.001, start=trained, optimizer=torch.optim.AdamW, weight_decay=0.01)[0])
show("constant, no momentum", train(20, 0.1, start=trained, momentum=0)[0])
show("constant, no batch norm", train(60, 0.05, first=40, norm=nn.Identity)[0])
for name, schedule in falls.items():
    x, _ = train(40, 0.1, schedule)
    show(f"{name}, whole run", x)
    show(f"{name}, last 20 epochs", x[20:])
show("networks of 8 seeds", np.array([train(20, 0.1, falls["cosine"], seed)[0][-1] for seed in range(8)]))
show("fine-tunes of 8 seeds", np.array([train(5, 0.02, falls["cosine"], seed, start=trained)[0][-1] for seed in range(8)]))
runs = [train(20, 0.05, seed=seed, first=10)[0] for seed in range(3)]
show("3 runs of different seeds", np.concatenate(runs))
show("the same, in turns", np.stack(runs, 1).reshape(-1, runs[0].shape[1]))
show("3 runs from one network", np.concatenate([train(10, 0.05, seed=seed, start=trained)[0] for seed in range(3)]))
show("the same, epochs 20 to 30", np.concatenate([train(30, 0.05, seed=seed, first=20, start=trained)[0] for seed in range(3)]))

averages = {}
x, _ = train(30, 0.05, first=10, start=trained, averages=averages)
averages["where training began"] = torch.cat([v.double().ravel() for k, v in trained.items() if k.endswith(("weight", "bias"))]).numpy()
for name, mean in averages.items():
    print(f"{name:36} {np.linalg.norm(mean - x.mean(0)) / np.sqrt(x.var(0).sum()):.2f}")
