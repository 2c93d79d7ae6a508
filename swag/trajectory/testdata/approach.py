"""Trains small networks in many ways, from random and from trained weights, one checkpoint an epoch. It prints what the average gains if
it begins where straight of health.py says. Gains are those of the loss on new examples, with batch norm recomputed.

    python approach.py        (Python 3.11, NumPy 2.4, scikit-learn 1.9, PyTorch 2.15; ten minutes on one core)
"""

import copy
import math

import health
import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.set_num_threads(1)
BATCH = 50


def digits():
    d, r = load_digits(), np.random.default_rng(0)
    x, order = d.images[:, None] / 16 + r.normal(0, 0.2, (len(d.target), 1, 8, 8)), r.permutation(len(d.target))
    x, y = torch.tensor(x[order], dtype=torch.float32), torch.tensor(d.target[order])
    return x[:900], y[:900], x[900:], y[900:]


def table(n, seed):
    r, w = np.random.default_rng(seed), np.random.default_rng(99).normal(size=(8, 3))
    x = r.normal(size=(n, 8)).astype("float32")
    return torch.tensor(x), torch.tensor((x @ w + np.abs(x) @ w[::-1] * 0.5 + 0.7 * r.gumbel(size=(n, 3))).argmax(1))


def texts(n, seed):
    r = np.random.default_rng(seed)
    y, x = r.integers(3, size=n), []
    for c in y:
        p = np.where(np.arange(48) % 3 == c, 2.0, 1.0)
        x.append(r.choice(48, size=12, p=p / p.sum()))
    return torch.tensor(np.array(x)), torch.tensor(y)


def convolutions(norm):
    layers, bias = [], norm is nn.Identity
    for before, after, stride in (1, 12, 1), (12, 24, 2), (24, 24, 2):
        layers += [nn.Conv2d(before, after, 3, stride, 1, bias=bias), norm(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(48, 16), nn.Linear(16, 3)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)

    def forward(self, x):
        return self.out(self.layer(self.embed(x)).mean(1))


networks = {
    "table": (lambda: nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3)), table(1000, 1) + table(2000, 2)),
    "texts": (Transformer, texts(1000, 1) + texts(2000, 2)),
    "pictures": (lambda: convolutions(nn.Identity), digits()),
    "batch norm": (lambda: convolutions(nn.BatchNorm2d), digits()),
}
schedules = {
    "constant": lambda s: 1,
    "cosine": lambda s: (1 + math.cos(math.pi * s)) / 2,
    "one cycle": lambda s: 0.04 + 0.96 * (1 - math.cos(math.pi * s / 0.25)) / 2 if s < 0.25 else (1 + math.cos(math.pi * (s - 0.25) / 0.75)) / 2 + 1e-5,
}


def flat(net):
    return torch.cat([p.detach().double().ravel() for p in net.parameters()]).numpy()


def loss(net, weights, x, y, train):
    at = 0
    for p in net.parameters():
        p.data = torch.tensor(weights[at : at + p.numel()], dtype=torch.float32).view_as(p)
        at += p.numel()
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    net.train(bool(norms))
    with torch.no_grad():
        for b in train.split(128) if norms else ():
            net(b)
        return F.cross_entropy(net.eval()(x), y).item()


def run(name, epochs, rate, schedule="constant", seed=0, start=None, adam=False):
    torch.manual_seed(seed)
    make, (x, y, new, labels) = networks[name]
    net, rows, t = make(), [], 0
    if start:
        net.load_state_dict(start)
    opt = torch.optim.AdamW(net.parameters(), rate) if adam else torch.optim.SGD(net.parameters(), rate, momentum=0.9, weight_decay=5e-4)
    for _ in range(epochs):
        net.train()
        for some in torch.randperm(len(x)).split(BATCH):
            opt.param_groups[0]["lr"] = rate * schedules[schedule](t / epochs / math.ceil(len(x) / BATCH))
            opt.zero_grad()
            F.cross_entropy(net(x[some]), y[some]).backward()
            opt.step()
            t += 1
        rows.append(flat(net))
    rows, trained = np.array(rows), copy.deepcopy(net.state_dict())
    losses = [loss(make(), rows[s:].mean(0), new, labels, x) for s in range(epochs - 2)]
    first = health.straight(rows)
    what = f"{name}, {epochs} epochs, {schedule} rate {rate}{', Adam' * adam}{', from trained weights' * bool(start)}"
    print(f"{what:70} keeps {epochs - first:2} of {epochs:2}, gains {losses[0] - losses[first]:+.3f}, at best {losses[0] - min(losses):+.3f}", flush=True)
    (warm if start else whole).append((first, losses[0] - losses[first], losses[0] - min(losses)))
    return trained


whole, warm = [], []
for name in networks:
    for rate in 0.02, 0.1:
        for epochs in 6, 10, 16:
            for schedule in schedules:
                run(name, epochs, rate, schedule)
    for schedule in "constant", "cosine":
        run(name, 10, 0.003, schedule, adam=True)
    cooled, hot = run(name, 16, 0.1, "cosine", seed=10), run(name, 16, 0.05, seed=10)
    for epochs in 6, 10, 16:
        for rate in 0.02, 0.1:
            run(name, epochs, rate, seed=20, start=cooled)
        run(name, epochs, 0.05, seed=20, start=hot)
    run(name, 10, 0.001, seed=20, start=cooled, adam=True)
    run(name, 6, 0.02, "cosine", seed=20, start=cooled)
for what, runs in ("from random weights", whole), ("from trained weights", warm):
    told = [r for r in runs if r[0]]
    print(f"{what}: {len(runs)} runs, {len(told)} warnings, gains {sum(r[1] for r in told) / max(1, len(told)):.3f} of {sum(r[2] for r in told) / max(1, len(told)):.3f}, worse {sum(r[1] < 0 for r in told)}")
