"""Writes golden.json, the numbers that this package is tested against.

    pip install numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
    python calibrate/multilabel/testdata/make.py

Tolerance of the tests: 1e-9, absolute or relative; for Platt's a and b, which are where a
gradient vanishes, 1e-9 too, but where labels are separated and the ridge leaves a curvature
of 1e-5: there it is 1e-6. Probabilities are integers over 1024, exact in float64. null
stands for NaN.
"""

import json
import math
import pathlib

import numpy as np
from scipy.optimize import brentq, root
from scipy.special import expit, log_expit
from scipy.stats import entropy
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

rng = np.random.default_rng(219)
SCALE, RIDGE = 1024, 1e-5


def equal_mass(p, bins):
    order = np.argsort(p, kind="stable")
    x, at = p[order], [0]
    for b in range(1, bins):
        i = b * len(x) // bins
        while 0 < i < len(x) and x[i] == x[i - 1]:
            i += 1
        at.append(i)
    return [order[i:j] for i, j in zip(at, at[1:] + [len(x)])]


def equal_width(p, bins):
    which = np.maximum(np.digitize(p, np.arange(bins + 1) / bins, right=True) - 1, 0)  # (b/B, (b+1)/B]
    return [np.flatnonzero(which == b) for b in range(bins)]


def ece(p, y, groups):
    return sum(len(g) / len(p) * abs(p[g].mean() - y[g].mean()) for g in groups if len(g))


def scores(p, y, bins):
    """Of one label that is not degenerate, or of all pooled."""
    return {"ece": ece(p, y, equal_mass(p, bins)), "ece_width": ece(p, y, equal_width(p, bins))}


def problem(name, counts, truth, bins):
    p = counts / SCALE
    known = truth >= 0
    each = []
    for l in range(p.shape[1]):
        k = known[:, l]
        q, y = p[k, l], truth[k, l]
        one = {"known": int(k.sum()), "positives": int(y.sum()), "nll": math.nan, "brier": math.nan, "ece": math.nan, "ece_width": math.nan, "ap": math.nan, "auroc": math.nan}
        if len(q):
            one |= {"nll": log_loss(y, q, labels=[0, 1]), "brier": brier_score_loss(y, q)}
        if 0 < y.sum() < len(y):
            one |= scores(q, y, bins) | {"ap": average_precision_score(y, q), "auroc": roc_auc_score(y, q)}
        each.append(one)
    good = [l for l, one in enumerate(each) if 0 < one["positives"] < one["known"]]
    mask = known[:, good]
    micro = scores(p[:, good][mask], truth[:, good][mask], bins) if good else {"ece": math.nan, "ece_width": math.nan}
    mean = lambda key: np.mean([each[l][key] for l in good]) if good else math.nan
    return {
        "name": name, "labels": p.shape[1], "bins": bins, "counts": counts.ravel().tolist(), "truth": truth.ravel().tolist(),
        "nll": log_loss(truth[known], p[known], labels=[0, 1]), "brier": brier_score_loss(truth[known], p[known]),
        "micro": micro["ece"], "micro_width": micro["ece_width"], "macro": mean("ece"), "macro_width": mean("ece_width"), "map": mean("ap"), "auroc": mean("auroc"), "each": each,
    }


def drawn(n, labels, missing=0.0, grain=1):
    z = rng.normal(-0.5, 1.5, (n, labels))
    truth = (rng.random((n, labels)) < expit(0.7 * z)).astype(int)
    truth[rng.random((n, labels)) < missing] = -1
    counts = np.clip(np.rint(SCALE * expit(z) / grain) * grain, 1, SCALE - 1).astype(int)
    return counts, truth


plain = drawn(200, 3)
missing = drawn(120, 4, 0.2)
missing[1][:, 1] = np.where(missing[1][:, 1] == 1, -1, missing[1][:, 1])  # degenerate
missing[1][:, 3] = -1  # unknown
metrics = [
    problem("plain", *plain, 20), problem("missing and degenerate", *missing, 5), problem("ties", *drawn(150, 2, 0.1, 128), 10),
    problem("one label", *drawn(60, 1), 20), problem("one example", np.array([[300, 800, 10]]), np.array([[0, 1, -1]]), 20),
]

# --- uncertainty of three members ---

members = rng.random((3, 4, 2)).round(3)
members[:, 0, 0], members[:, 1, 0] = [0, 0, 1], 0.25
binary = lambda p: entropy(np.stack([p, 1 - p]))
uncertainty = {
    "labels": 2, "probs": members.mean(0).ravel().tolist(), "expected": binary(members).mean(0).ravel().tolist(), "entropy": binary(members.mean(0)).ravel().tolist(),
    "mutual": (binary(members.mean(0)) - binary(members).mean(0)).ravel().tolist(), "sum": binary(members.mean(0)).sum(1).tolist(),
}

# --- scalings ---


def nll(z, y, a, b):
    return -log_expit(np.where(y == 1, 1, -1) * (a * z + b))


def temperature(z, y):
    return 1 / brentq(lambda beta: ((expit(beta * z) - y) * z).mean(), 1e-3, 1e3, xtol=1e-15, rtol=1e-14)


def platt(z, y):
    def gradient(x):
        off = expit(x[0] * z + x[1]) - y
        return [(off * z).mean() + RIDGE * (x[0] - 1), off.mean() + RIDGE * x[1]]

    def hessian(x):
        p = expit(x[0] * z + x[1])
        w = p * (1 - p)
        return [[(w * z * z).mean() + RIDGE, (w * z).mean()], [(w * z).mean(), w.mean() + RIDGE]]

    found = root(gradient, [0.1, 0], jac=hessian, tol=1e-15)
    assert np.abs(gradient(found.x)).max() < 1e-13, gradient(found.x)
    return found.x


def scaling(name, z, y):
    known = y >= 0
    labels, total = z.shape[1], known.sum()
    column = lambda l: (z[known[:, l], l], y[known[:, l], l])
    degenerate = [l for l in range(labels) if len(set(column(l)[1])) < 2]
    t = temperature(z[known], y[known])
    ts = [1.0 if l in degenerate else temperature(*column(l)) for l in range(labels)]
    ab = [[1.0, 0.0] if l in degenerate else platt(*column(l)).tolist() for l in range(labels)]
    after = lambda a, b: sum(nll(*column(l), a[l], b[l]).sum() for l in range(labels)) / total
    one, zero = np.ones(labels), np.zeros(labels)
    return {
        "name": name, "labels": labels, "logits": z.ravel().tolist(), "truth": y.ravel().tolist(), "degenerate": degenerate,
        "before": after(one, zero), "t": t, "after_t": after(one / t, zero), "ts": ts, "after_ts": after(1 / np.array(ts), zero),
        "a": [x[0] for x in ab], "b": [x[1] for x in ab], "after_platt": after([x[0] for x in ab], [x[1] for x in ab]),
    }


def logits(n, labels, a, b, missing=0.0, offset=0.0):
    z = (rng.normal(0, 2, (n, labels)) + offset).round(3)
    y = (rng.random((n, labels)) < expit(a * z + b)).astype(int)
    y[rng.random((n, labels)) < missing] = -1
    return z, y


kept = logits(80, 3, 0.6, 0.2, 0.1)
kept[1][:, 2] = 0
apart = rng.normal(0, 2, 40).round(3)
a, b = platt(apart, (apart > 0.4).astype(int))
out = {
    "scale": SCALE, "metrics": metrics, "uncertainty": uncertainty,
    "scalings": [scaling("over-confident", *logits(150, 2, 0.4, -0.3)), scaling("under-confident, missing", *logits(90, 3, 1.8, [0.5, 0, -1], 0.2)), scaling("degenerate", *kept), scaling("far from 0", *logits(100, 1, 0.5, -8, 0, 20))],
    "separated": {"logits": apart.tolist(), "truth": (apart > 0.4).astype(int).tolist(), "a": a, "b": b},
}


def plain_json(x):
    if isinstance(x, dict):
        return {k: plain_json(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain_json(v) for v in x]
    if isinstance(x, (float, np.floating)):
        return None if math.isnan(x) else float(x)
    return int(x) if isinstance(x, np.integer) else x


(pathlib.Path(__file__).parent / "golden.json").write_text(json.dumps(plain_json(out), separators=(",", ":"), allow_nan=False) + "\n")
