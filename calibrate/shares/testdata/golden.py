"""Shares of the largest likelihood, by SciPy's SLSQP over the simplex and by the algorithm of Saerens et al. (2002).

    OMP_NUM_THREADS=1 python golden.py > golden.json    # NumPy 2.4, SciPy 1.17, Python 3.11

Both agree within 1e-6, or the script fails.
"""
import json
import sys

import numpy as np
import scipy
from scipy.optimize import minimize

print(sys.version.split()[0], np.__version__, scipy.__version__, file=sys.stderr)


def saerens(p, training, steps=200_000):
    shares = training.copy()
    for _ in range(steps):
        q = p * (shares / training)
        q /= q.sum(1, keepdims=True)
        new = q.mean(0)
        if np.abs(new - shares).max() < 1e-13:
            break
        shares = new
    return shares


def largest(p, training):
    best = None
    for start in (training, np.full(len(training), 1 / len(training))):
        r = minimize(
            lambda s: -np.log(p @ (s / training)).mean(),
            start,
            jac=lambda s: -(p / training / (p @ (s / training))[:, None]).mean(0),
            bounds=[(0, 1)] * len(training),
            constraints={"type": "eq", "fun": lambda s: s.sum() - 1, "jac": lambda s: np.ones_like(s)},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        if best is None or r.fun < best.fun:
            best = r
    return best.x


cases = []
for seed, (classes, n, sharp) in enumerate([(2, 40, 1.0), (3, 60, 2.0), (4, 50, 0.5), (6, 60, 3.0)]):
    rng = np.random.default_rng(seed)
    training = rng.dirichlet(np.full(classes, 4.0))
    now = rng.dirichlet(np.full(classes, 1.0))
    label = rng.choice(classes, n, p=now)
    z = np.log(training) + sharp * rng.normal(size=(n, classes))
    z[np.arange(n), label] += sharp
    if seed == 3:
        z[:, 0] -= 6  # its share is 0
    p = np.exp(z)
    p = (p / p.sum(1, keepdims=True)).round(6)
    p /= p.sum(1, keepdims=True)
    a, b = saerens(p, training), largest(p, training)
    assert np.abs(a - b).max() < 1e-6, (a, b)
    cases.append({"training": training.tolist(), "probs": p.tolist(), "shares": a.tolist()})
json.dump(cases, sys.stdout)
