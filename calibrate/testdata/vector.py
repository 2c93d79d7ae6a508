"""Writes vector.json, what TestVectorGolden checks vector scaling against.

    python calibrate/testdata/vector.py

Written with NumPy 2.4.6 and SciPy 1.17.1. Temperatures are SciPy's bounded minimisation. Each fit is Newton's method with the
whole matrix of second derivatives, from the temperature on. The tolerance of fitted scales and biases is 1e-6: with the least
ridge the curvature is 1e-5 in the flattest direction, where gradients that are right to 1e-13 tell the minimum to 1e-8.
"""

import json
import pathlib

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

RIDGES = [1, 0.1, 0.01, 1e-3, 1e-4, 1e-5]
FOLDS = 5
rng = np.random.default_rng(52)


def nll(z, y):
    return -log_softmax(z, 1)[np.arange(len(y)), y].mean()


def temperature(z, y):
    r = minimize_scalar(lambda x: nll(z * np.exp(-x), y), bounds=(np.log(1e-3), np.log(1e3)), method="bounded", options={"xatol": 1e-11})
    assert abs(r.x) < np.log(900)
    return float(np.exp(r.x))


def fit(z, y, t, ridge):
    """Scales in units of 1/t, and biases."""
    n, k = z.shape
    z = z / t
    start = np.r_[np.ones(k), np.zeros(k)]
    objective = lambda x: nll(x[:k] * z + x[k:], y) + ridge / 2 * ((x - start) ** 2).sum()
    x = start
    for _ in range(300):
        p = softmax(x[:k] * z + x[k:], 1)
        e = p.copy()
        e[np.arange(n), y] -= 1
        g = np.r_[(e * z).mean(0), e.mean(0)] + ridge * (x - start)
        if abs(g).max() < 1e-13:
            break
        h = ridge * np.eye(2 * k)
        for i in range(n):
            c = np.diag(p[i]) - np.outer(p[i], p[i])
            h += np.block([[c * np.outer(z[i], z[i]), c * z[i][:, None]], [c * z[i], c]]) / n
        step, a = np.linalg.solve(h, g), 1.0
        while a > 1e-9 and objective(x - a * step) > objective(x) - 1e-4 * a * g @ step + 1e-15:
            a /= 2
        x = x - a * step
    assert abs(g).max() < 1e-10, abs(g).max()
    return np.r_[x[:k] / t, x[k:]]


def problem(name, z, y):
    n, k = z.shape
    folds = [[] for _ in range(FOLDS)]
    for at, i in enumerate(sorted(range(n), key=lambda i: y[i])):  # stable
        folds[at % FOLDS].append(i)
    losses = {}
    for ridge in [np.inf] + RIDGES:
        losses[ridge] = 0
        for out in folds:
            rows = np.array([i for i in range(n) if i not in set(out)])
            t = temperature(z[rows], y[rows])
            x = np.r_[np.full(k, 1 / t), np.zeros(k)] if ridge == np.inf else fit(z[rows], y[rows], t, ridge)
            losses[ridge] += nll(x[:k] * z[out] + x[k:], y[out]) * len(out) / n
    order = [np.inf] + RIDGES
    best, worse = np.inf, 0
    for ridge in order[1:]:
        worse += 1
        if losses[ridge] < losses[best]:
            best, worse = ridge, 0
        if worse == 2:
            break
    t = temperature(z, y)
    x = np.r_[np.full(k, 1 / t), np.zeros(k)] if best == np.inf else fit(z, y, t, best)
    return {"name": name, "classes": k, "logits": z.ravel().tolist(), "labels": y.tolist(), "ridge": None if best == np.inf else best, "t": t,
            "before": nll(z, y), "nll": nll(x[:k] * z + x[k:], y), "scale": x[:k].tolist(), "bias": x[k:].tolist()}


def labels_of(z):
    return np.array([rng.choice(len(row), p=row) for row in softmax(z, 1)])


out = []
for i, (n, k) in enumerate([(60, 2), (50, 3), (90, 4), (200, 5), (60, 8), (300, 3)]):
    z = np.round(rng.normal(size=(n, k)) * (1 + i % 3), 3)
    out.append(problem(f"random {i}", z, labels_of(rng.normal(0.7, 0.3, k) * z + rng.normal(0, 0.7, k))))
z = np.round(rng.normal(size=(100, 4)) * 2, 3)
out.append(problem("a temperature alone", z, labels_of(z / 1.5)))
out.append(problem("in units of 100", z * 100, np.array(out[-1]["labels"])))
y = labels_of(z)
out.append(problem("class absent", z, np.where(y == 2, 3, y)))
out.append(problem("log-probabilities", np.round(log_softmax(3 * z, 1), 3), labels_of(z)))
for o in out:
    print(o["name"], o["ridge"], o["t"], o["before"], o["nll"])
pathlib.Path(__file__).with_name("vector.json").write_text("[\n" + ",\n".join(json.dumps(o, separators=(",", ":")) for o in out) + "\n]\n")
