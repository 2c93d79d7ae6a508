"""Writes momentnoise.json: the noise that SciPy finds likeliest of Gaussians N(mu, e + v).

    pip install numpy==2.4.6 scipy==1.17.1
    python calibrate/regression/testdata/momentnoise.py

Each problem is minimised by scipy.optimize.minimize_scalar (bounded, in log v) from each of
200 brackets between 1e-9 and 10 times the largest squared error, and the best is polished by
brentq on the derivative, good to 1e-12. Where the likelihood rises to the least noise that is
tried, "bound" says so. Inputs have few decimals, so that both sides see the same bits.
"""

import json
import pathlib

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

rng = np.random.default_rng(23)


def solve(name, y, mu, e):
    y, mu, e = (np.array(x, float) for x in (y, mu, e))
    square = (y - mu) ** 2
    floor = 1e-6 * square.mean()

    def loss(u):
        return -norm.logpdf(y, mu, np.sqrt(e + np.exp(u))).mean()

    def slope(u):
        v = e + np.exp(u)
        return float(((1 - square / v) / v).mean() * np.exp(u))

    edges = np.linspace(np.log(floor), np.log(10 * square.max()), 201)
    found = [minimize_scalar(loss, bounds=(a, b), method="bounded", options={"xatol": 1e-12}) for a, b in zip(edges, edges[1:])]
    best = min(found, key=lambda r: r.fun)
    bound = bool(loss(edges[0]) <= best.fun)
    u = edges[0]
    if not bound:
        u = brentq(slope, best.x - 1e-3, best.x + 1e-3, xtol=1e-15, rtol=1e-14)
    return {"name": name, "y": y.tolist(), "means": mu.tolist(), "epistemic": e.tolist(), "variance": float(np.exp(u)), "bound": bound, "nll": float(loss(u))}


def drawn(n, noise, spread):
    e = np.round(spread * rng.exponential(1, n), 4)
    mu = np.round(rng.normal(0, 2, n), 3)
    return np.round(mu + rng.normal(0, np.sqrt(noise + e)), 3), mu, e


problems = [
    solve("one network", *drawn(40, 0.5, 0)),
    solve("members differ little", *drawn(60, 0.5, 0.05)),
    solve("members differ much", *drawn(60, 0.1, 1)),
    solve("one row", [3], [1], [0.5]),
    solve("members differ by more than they are wrong", [1.1, 2.0, 3.05], [1, 2.1, 3], [1, 1, 2]),
    # Rows without doubt that are nearly right, and rows with doubt that are far off.
    solve("two maxima", [0.01, -0.01, 0.02, 9, -9, 8.5], [0] * 6, [0, 0, 0, 20, 20, 20]),
]
assert any(p["bound"] for p in problems) and sum(not p["bound"] for p in problems) >= 4
pathlib.Path(__file__).with_name("momentnoise.json").write_text("[\n" + ",\n".join(map(json.dumps, problems)) + "\n]\n")
