"""Trains four small networks at four schedules, 40 checkpoints each, and chooses an average on 100, 300 and 1,000 labels by the rule of
window.go. It prints the NLL on 5,000 other examples, at a temperature of the same labels, minus that of the average of all.

    python windows.py        (Python 3.11, NumPy 2.4, SciPy 1.17, PyTorch 2.15; ten minutes on one core)
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.stats import t as student
from torch import nn

torch.set_num_threads(1)
CHECKPOINTS, POOL = 40, 9000
WINDOWS = {"all": (40, 0), "last 3": (3, 0), "last 5": (5, 0), "last 10": (10, 0), "last 20": (20, 0), "t^4": (40, 4)}


def chains(n, rng, classes=6, V=12, L=24):
    P = np.random.default_rng(5).dirichlet(np.ones(V) * 1.2, size=(classes, V))
    y = rng.integers(classes, size=n)
    X = np.zeros((n, L), np.int64)
    X[:, 0] = rng.integers(V, size=n)
    for t in range(1, L):
        c = P[y, X[:, t - 1]].cumsum(1)
        X[:, t] = (c < rng.random((n, 1))).sum(1).clip(0, V - 1)
    return X, y


def teacher(n, rng, d=16, classes=12):
    w = np.random.default_rng(6)
    W1, W2, b = w.normal(size=(d, 24)) / np.sqrt(d), w.normal(size=(24, classes)) * 1.1, w.normal(size=classes)
    X = rng.normal(size=(n, d))
    z = np.tanh(1.8 * X @ W1) @ W2 + b
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return X.astype(np.float32), (p.cumsum(1) < rng.random((n, 1))).sum(1).clip(0, classes - 1)


def topics(n, rng, classes=10, V=60, L=20):
    w = np.random.default_rng(8)
    T = w.dirichlet(np.ones(V) * 0.25, size=classes)
    y = rng.choice(classes, p=w.dirichlet(np.ones(classes) * 3), size=n)
    mix = np.stack([rng.dirichlet(np.ones(classes) * 0.35 + np.eye(classes)[k] * 2.2) for k in y])
    X = np.empty((n, L), np.int64)
    for i in range(n):
        X[i] = rng.choice(V, p=(mix[i] @ T) / (mix[i] @ T).sum(), size=L)
    return X, y


def graphs(n, rng, classes=4, N=12):
    y = rng.integers(classes, size=n)
    A = np.zeros((n, N, N), np.float32)
    for i in range(n):
        if y[i] == 0:
            a = rng.random((N, N)) < 0.3
        elif y[i] == 1:
            g = rng.integers(2, size=N)
            a = rng.random((N, N)) < np.where(g[:, None] == g[None], 0.48, 0.12)
        elif y[i] == 2:
            k = np.arange(N)
            d = abs(k[:, None] - k[None])
            a = (np.minimum(d, N - d) <= 2) & (rng.random((N, N)) < 0.85)
        else:
            w = rng.pareto(1.6, N) + 0.3
            w /= w.mean()
            a = rng.random((N, N)) < np.minimum(1, 0.3 * w[:, None] * w[None])
        a = np.triu(a, 1)
        a, p = a | a.T, rng.permutation(N)
        A[i] = a[p][:, p]
    return A, y


class GRU(nn.Module):
    def __init__(s):
        super().__init__()
        s.e, s.g, s.o = nn.Embedding(12, 16), nn.GRU(16, 32, batch_first=True), nn.Linear(32, 6)

    def forward(s, x):
        return s.o(s.g(s.e(x))[0].mean(1))


class Tab(nn.Module):
    def __init__(s):
        super().__init__()
        s.i = nn.Linear(16, 48)
        s.b = nn.ModuleList([nn.ModuleList([nn.BatchNorm1d(48), nn.Linear(48, 64), nn.Linear(64, 48)]) for _ in range(2)])
        s.o = nn.Linear(48, 12)

    def forward(s, x):
        x = s.i(x)
        for n, a, b in s.b:
            x = x + b(F.relu(a(n(x))))
        return s.o(F.relu(x))


class Attn(nn.Module):
    def __init__(s):
        super().__init__()
        s.e, s.q, s.k, s.v = nn.Embedding(60, 24), nn.Linear(24, 24), nn.Linear(24, 24), nn.Linear(24, 24)
        s.f, s.o = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 24)), nn.Linear(24, 10)

    def forward(s, x):
        x = s.e(x)
        x = x + torch.softmax(s.q(x) @ s.k(x).transpose(1, 2) / 24**0.5, -1) @ s.v(x)
        return s.o((x + s.f(x)).mean(1))


class GCN(nn.Module):
    def __init__(s):
        super().__init__()
        s.i = nn.Linear(1, 24)
        s.l, s.m = (nn.ModuleList([nn.Linear(24, 24) for _ in range(3)]) for _ in range(2))
        s.o = nn.Linear(48, 4)

    def forward(s, a):
        x = torch.relu(s.i(a.sum(2, keepdim=True) / 4))
        for l, m in zip(s.l, s.m):
            x = x + torch.relu(l(x) + m(a @ x) / 4)
        return s.o(torch.cat([x.mean(1), x.amax(1)], 1))


# data, network, training examples, epochs before the first checkpoint, learning rate
NETS = {
    "tabres": (teacher, Tab, 5000, 12, 0.02),
    "gru": (chains, GRU, 1500, 50, 0.3),
    "gcn": (graphs, GCN, 1500, 60, 0.04),
    "attn": (topics, Attn, 2500, 40, 0.4),
}


def rate(schedule, lr, epoch, before):
    if schedule == "cos":  # falls to 0 at the last checkpoint
        start = before * 0.6
        return lr if epoch < start else lr / 2 * (1 + np.cos(np.pi * (epoch - start) / (before * 0.4 + CHECKPOINTS)))
    if schedule == "early":  # begins too early
        return lr / 2
    if schedule == "scratch":  # every epoch from the first
        return lr
    return lr if epoch < before * 0.6 else max(lr / 2, lr * (1 - 0.5 * (epoch - before * 0.6) / (before * 0.4)))


def scores(name, schedule):
    """Returns the logits of each average for the pool, and its labels."""
    data, net, n, before, lr = NETS[name]
    torch.manual_seed(3 + sum(map(ord, schedule)))
    if schedule == "scratch":
        n, before = 3 * n, 0
    if schedule == "early":
        before = max(4, before // 4)
    X, y = data(n + POOL, np.random.default_rng(sum(map(ord, name)) + 77))
    X, Y = torch.tensor(X), torch.tensor(y)
    net = net()
    opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)
    thetas = []
    for epoch in range(before + CHECKPOINTS):
        opt.param_groups[0]["lr"] = rate(schedule, lr, epoch, before)
        net.train()
        for b in torch.randperm(n).split(64):
            opt.zero_grad()
            F.cross_entropy(net(X[b]), Y[b]).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5)
            opt.step()
        if epoch >= before:
            thetas.append(nn.utils.parameters_to_vector(net.parameters()).detach().double())
    out = {}
    for window, (last, power) in WINDOWS.items():
        mean = torch.zeros_like(thetas[0])
        for t, theta in enumerate(thetas[-last:], 1):
            mean += (1 - (1 - 1 / t) ** (power + 1)) * (theta - mean)
        swa = copy.deepcopy(net)
        nn.utils.vector_to_parameters(mean.float(), swa.parameters())
        norms = [m for m in swa.modules() if isinstance(m, nn.BatchNorm1d)]
        with torch.no_grad():
            for m in norms:
                m.reset_running_stats()
                m.momentum = None
            for b in X[:n].split(250):
                swa.train()(b)
            out[window] = log_softmax(torch.cat([swa.eval()(b) for b in X[n:].split(500)]).double().numpy(), 1)
    return out, y[n:]


def nll(z, y):
    return -log_softmax(z, 1)[np.arange(len(y)), y]


def fit(z, y):
    return np.exp(minimize_scalar(lambda b: nll(z * np.exp(b), y).mean(), bounds=(-5, 3), method="bounded", options={"xatol": 1e-5}).x)


def unseen(z, y, b, e=0.01):
    low, mid, high = nll(z * b * np.exp(-e), y), nll(z * b, y), nll(z * b * np.exp(e), y)
    s, h = (high - low) / (2 * e), (high - 2 * mid + low) / e**2
    d = s / (h.sum() - h)
    return mid + s * d + h * d * d / 2


def chosen(losses):
    """Returns the window that window.go takes: max-t intervals over all windows."""
    names = [w for w in losses if w != "all"]
    d = np.array([losses[w] - losses["all"] for w in names])
    n, m, se = d.shape[1], d.mean(1), d.std(1, ddof=1) / d.shape[1] ** 0.5
    z = np.random.default_rng(1).multivariate_normal(np.zeros(len(d)), np.corrcoef(d) + 1e-6 * np.eye(len(d)), 4000, check_valid="ignore")
    c = np.quantile(abs(z).max(1), 0.95) * student.ppf(0.975, n - 1) / 1.96
    k = m.argmin()
    return names[k] if m[k] + c * se[k] < 0 else "all"


def main():
    found = {n: [] for n in (100, 300, 1000)}
    for schedule in ("const", "cos", "early", "scratch"):
        for name in NETS:
            z, y = scores(name, schedule)
            line = []
            for n in found:
                runs = []
                for seed in range(20):
                    v = np.random.default_rng(seed).permutation(4000)[:n]
                    b = {w: fit(z[w][v], y[v]) for w in z}
                    fresh = {w: nll(z[w][4000:] * b[w], y[4000:]).mean() for w in z}
                    w = chosen({w: unseen(z[w][v], y[v], b[w]) for w in z})
                    runs.append((fresh[w] - fresh["all"], min(fresh.values()) - fresh["all"], w != "all"))
                found[n] += runs
                gain, best, taken = np.mean(runs, 0)
                line.append(f"{n} labels {gain:+.4f} of {best:+.4f}, taken {100 * taken:.0f} %")
            print(f"{name:7s} {schedule:8s}", "; ".join(line), flush=True)
    for n, runs in found.items():
        a = np.array(runs)
        print(f"{n} labels: {a[:, 0].mean():+.4f} of {a[:, 1].mean():+.4f}, taken in {100 * a[:, 2].mean():.0f} %, "
              f"worse by more than .001 in {100 * (a[:, 0] > 0.001).mean():.1f} %, at most {a[:, 0].max():+.4f}")


if __name__ == "__main__":
    main()
