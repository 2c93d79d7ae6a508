"""Writes extended.json, what TestExtended checks this package against.

    python extended.py > extended.json

Reads the predictions of golden.json. Written with Python 3.11.7, NumPy 2.4.6,
SciPy 1.17.1, scikit-learn 1.9.1 and PyTorch 2.15.0, all on the CPU.

Tolerance of the tests: 1e-9, absolute or relative, for the reasons in golden.py.

null stands for NaN.
"""

import json
import math
import sys
from fractions import Fraction

import numpy as np
import torch
from scipy.special import log_softmax, softmax
from scipy.stats import entropy
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

rng = np.random.default_rng(20201203)
golden = json.load(open("golden.json"))
SEED = 7


# --- metrics of golden.json's predictions ---


def cuts(x, bins):
    n, at = len(x), [0]
    for b in range(1, bins):
        i = b * n // bins
        while 0 < i < n and x[i] == x[i - 1]:
            i += 1
        at.append(i)
    return at + [n]


def error(conf, right, groups):
    return sum(len(g) / len(conf) * abs(conf[g].mean() - right[g].mean()) for g in groups if len(g))


def equal_mass(conf, bins):
    order = np.argsort(conf, kind="stable")
    at = cuts(conf[order], bins)
    return [order[i:j] for i, j in zip(at, at[1:])]


def equal_width(conf, bins):
    which = np.maximum(np.digitize(conf, np.arange(bins + 1) / bins, right=True) - 1, 0)  # (b/B, (b+1)/B]
    return [np.flatnonzero(which == b) for b in range(bins)]


def classwise(p, y, kind):
    return np.mean([error(p[:, c], y == c, kind(p[:, c], 20)) for c in range(p.shape[1])])


def risks(conf, wrong):
    """The expected share of errors among the k surest, from the chance of each
    image to be one of them."""
    above = (conf[None, :] > conf[:, None]).sum(1)
    tied = (conf[None, :] == conf[:, None]).sum(1)
    k = np.arange(1, len(conf) + 1)[:, None]
    chance = np.clip((k - above) / tied, 0, 1)
    return (chance * wrong).sum(1) / k[:, 0]


# --- conformal sets, as Romano, Sesia and Candès write them ---

MASK = 2**64 - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def uniforms(stream, n):
    return [(mix((mix((mix(SEED) + stream) & MASK) + i) & MASK) >> 11) * 2.0**-53 for i in range(n)]


def prediction_set(row, tau, u):
    """Equations 2 to 4: the fewest classes that reach tau, without the last one of
    them if the uniform number says so."""
    ranking = np.argsort(-row, kind="stable")
    total = np.cumsum(row[ranking])
    if total[-1] < tau:
        return ranking
    last = int(np.argmax(total >= tau))
    v = (total[last] - tau) / row[ranking[last]] if row[ranking[last]] > 0 else 0
    return ranking[: last + (u > v)]


def conformal(p, y, level):
    n = len(y)
    k = math.ceil((n + 1) * Fraction(str(level)))
    if k > n:
        return None
    scores = []
    for row, label, u in zip(p, y, uniforms(4, n)):
        ranking = np.argsort(-row, kind="stable")
        r = int(np.flatnonzero(ranking == label)[0])
        scores.append(row[ranking[:r]].sum() + u * row[label])
    tau = np.partition(scores, k - 1)[k - 1]
    # The paper takes a class away for u <= v, and this package's u is one minus the
    # paper's.
    sets = [prediction_set(row, tau, 1 - u) for row, u in zip(p, uniforms(5, n))]
    return {
        "level": level,
        "threshold": tau,
        "sizes": [len(s) for s in sets],
        "coverage": np.mean([label in s for s, label in zip(sets, y)]),
    }


def metrics(problem):
    p = np.array(problem["counts"]).reshape(-1, problem["classes"]) / golden["scale"]
    y = np.array(problem["labels"])
    wrong = p.argmax(1) != y
    ranking = np.argsort(-p, axis=1, kind="stable")
    curve = risks(p.max(1), wrong)
    n = len(y)
    return {
        "name": problem["name"],
        "top5": (ranking[:, :5] == y[:, None]).any(1).mean() if p.shape[1] > 5 else None,
        "entropy": entropy(p, axis=1).mean(),
        "classwise": {"equal-mass": classwise(p, y, equal_mass), "equal-width": classwise(p, y, equal_width)},
        "risks": curve.tolist(),
        "selective": {str(c): curve[math.ceil(Fraction(c) * n) - 1] for c in ("0.07", "0.5", "0.9", "1")},
        "aps": [a for level in (0.9, 0.5) for a in [conformal(p, y, level)] if a],
    }


# --- out of domain ---


def detection(name, a, b):
    a, b = np.asarray(a, float), np.asarray(b, float)
    positive, score = np.r_[np.zeros(len(a)), np.ones(len(b))], np.r_[a, b]
    fpr, tpr, _ = roc_curve(positive, score, drop_intermediate=False)
    return {
        "name": name,
        "in": a.tolist(),
        "out": b.tolist(),
        "auroc": roc_auc_score(positive, score),
        "aupr": average_precision_score(positive, score),
        # Rounding must not decide whether 19 of 20 are 95 %.
        "fpr": {t: fpr[np.argmax(tpr >= float(t) - 1e-12)] for t in ("0.95", "0.5", "1")},
    }


def detections():
    rounded = lambda loc, n, digits: np.round(rng.normal(loc, 1, n), digits)
    yield detection("apart", rounded(0, 60, 6), rounded(1.5, 40, 6))
    yield detection("ties", rounded(0, 80, 0), rounded(0.7, 50, 0))
    yield detection("constant", [2.5] * 7, [2.5] * 3)
    yield detection("perfect", [0, 1, 2], [3, 4])
    yield detection("reversed", [3, 4, 5], [1, 2])
    yield detection("one each", [0], [0.5])
    yield detection("twenty", np.arange(20) + 0.5, np.arange(20))
    yield detection("zeros of entropies", [0.0] * 30 + [1e-9] * 5, [0.0] * 3 + [0.2, 0.5, 1e-9])


def entropies(name, a, b, smoothing):
    bins = np.logspace(-8, 0.5, num=30)
    count = lambda h: np.histogram(h, bins)[0]
    p, q = count(a) + smoothing, count(b) + smoothing
    p, q = p / p.sum(), q / q.sum()
    return {
        "name": name,
        "in": list(map(float, a)),
        "out": list(map(float, b)),
        "smoothing": smoothing,
        "counts": [count(a).tolist(), count(b).tolist()],
        "below": [int((np.asarray(x) < bins[0]).sum()) for x in (a, b)],
        "above": [int((np.asarray(x) > bins[-1]).sum()) for x in (a, b)],
        "kl": entropy(p, q) + entropy(q, p),
    }


def histograms():
    lognormal = lambda mean, n: np.round(np.exp(rng.normal(mean, 2, n)), 12)
    yield entropies("overlap", lognormal(-3, 200), lognormal(-1, 150), 1e-7)
    yield entropies("much smoothing", lognormal(-3, 50), lognormal(-1, 20), 0.5)
    yield entropies("apart", [1e-5, 2e-5, 3e-5], [0.5, 0.6], 1e-7)
    yield entropies("some outside", [0, 1e-9, 1e-3, 5.0], [1e-8, 0.1, 4.0], 1e-7)


def plain(x):
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, list):
        return [plain(v) for v in x]
    return x.item() if isinstance(x, np.generic) else x


extended = {
    "seed": SEED,
    "metrics": [metrics(m) for m in golden["metrics"]],
    "detection": list(detections()),
    "entropies": list(histograms()),
}
lines = [
    f"{json.dumps(k)}: " + ("[\n" + ",\n".join(json.dumps(plain(x), separators=(",", ":"), allow_nan=False) for x in v) + "\n]" if isinstance(v, list) else json.dumps(v))
    for k, v in extended.items()
]
sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
