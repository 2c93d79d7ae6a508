"""Writes honest.json, what TestHonest checks this package against.

    python honest.py > honest.json

Reads golden.json. Written with Python 3.11.7, NumPy 2.4.6, SciPy 1.17.1, scikit-learn
1.9.1, PyTorch 2.15.0 and torchmetrics 1.9.0, all on the CPU.

Tolerance of the tests: 1e-9, absolute or relative, for the reasons in golden.py. A
temperature where the slope vanishes is known to 1e-10 on both sides, and changes the NLL
of other images by that times its slope there.

The splits are Go's: math/rand/v2's PCG-DXSM and Fisher-Yates with Lemire's bounded
numbers, written here again, so that what a seed gives is held too.
"""

import json
import math
import sys
from fractions import Fraction

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import softmax
from scipy.stats import binomtest, norm
from sklearn.metrics import log_loss, roc_auc_score
from torchmetrics.functional.classification import multiclass_calibration_error

golden = json.load(open("golden.json"))
extended = json.load(open("extended.json"))
SEED = 7
M64, M128 = 2**64 - 1, 2**128 - 1


class PCG:
    def __init__(self, seed, stream):
        self.state = seed << 64 | stream

    def uint64(self):
        self.state = (self.state * (2549297995355413924 << 64 | 4865540595714422341) + (6364136223846793005 << 64 | 1442695040888963407)) & M128
        hi, lo = self.state >> 64, self.state & M64
        hi ^= hi >> 32
        hi = hi * 0xDA942042E4DD58B5 & M64
        hi ^= hi >> 48
        return hi * (lo | 1) & M64

    def below(self, n):
        if n & (n - 1) == 0:
            return self.uint64() & (n - 1)
        product = self.uint64() * n
        while product & M64 < (2**64 - n) % n:
            product = self.uint64() * n
        return product >> 64

    def perm(self, n):
        p = list(range(n))
        for i in range(n - 1, 0, -1):
            j = self.below(i + 1)
            p[i], p[j] = p[j], p[i]
        return np.array(p)


# --- temperatures over random splits ---


def temperature(z, y):
    """The root of the slope in 1/T; the logits are such that there is one."""
    rows = np.arange(len(y))

    def slope(b):
        return ((softmax(b * z, 1) * z).sum(1) - z[rows, y]).mean()

    return 1 / brentq(slope, 1e-3, 1e3, xtol=1e-15, rtol=1e-14)


def crossed(problem, folds, splits):
    z, y = np.array(problem["logits"]).reshape(-1, problem["classes"]), np.array(problem["labels"])
    n, rng = len(y), PCG(SEED, 1)
    nll = lambda rows, t: log_loss(y[rows], softmax(z[rows] / t, 1), labels=range(z.shape[1]), normalize=False)
    after = []
    for _ in range(splits):
        order, total = rng.perm(n), 0
        for f in range(folds):
            start, end = f * n // folds, (f + 1) * n // folds
            others = np.r_[order[:start], order[end:]]
            total += nll(order[start:end], temperature(z[others], y[others]))
        after.append(total / n)
    spread = np.std(after, ddof=1) if splits > 1 else 0
    return {"folds": folds, "splits": splits, "before": nll(np.arange(n), 1) / n, "after": np.mean(after), "spread": spread}


# --- sets of classes, each half by the other's threshold ---


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & M64
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & M64
    return x ^ x >> 31


def uniforms(stream, n):
    return np.array([(mix((mix((mix(SEED) + stream) & M64) + i) & M64) >> 11) * 2.0**-53 for i in range(n)])


def ranked(p):
    order = np.argsort(-p, axis=1, kind="stable")
    q = np.take_along_axis(p, order, 1)
    return order, q, np.cumsum(q, 1) - q


def sets(p, y, level):
    """A class is in the set if all above it and its share by chance stay within the
    threshold."""
    n = len(y)
    order = PCG(SEED, 3).perm(n)
    halves, found = [order[: n // 2], order[n // 2 :]], []
    for fit, other in (halves, halves[::-1]):
        k = math.ceil((len(fit) + 1) * Fraction(str(level)))
        if k > len(fit):
            return None
        rank, q, above = ranked(p[fit])
        scores = (above + uniforms(4, len(fit))[:, None] * q)[rank == y[fit][:, None]]
        threshold = np.sort(scores)[k - 1]
        rank, q, above = ranked(p[other])
        inside = above + uniforms(5, len(other))[:, None] * q <= threshold
        found += zip(inside.sum(1), (inside & (rank == y[other][:, None])).any(1))
    size, covered = np.array(found).T
    return {"level": level, "size": size.mean(), "coverage": covered.mean(), "empty": (size == 0).mean()}


# --- the calibration error that everybody quotes ---


def guo(p, y, bins=15):
    """As in their code: a bin takes what is above its lower edge and up to its upper."""
    confidence, right = p.max(1), p.argmax(1) == y
    edges = np.linspace(0, 1, bins + 1)
    total = 0
    for lower, upper in zip(edges, edges[1:]):
        inside = (confidence > lower) & (confidence <= upper)
        if inside.any():
            total += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    return total


def metrics(problem):
    p = np.array(problem["counts"]).reshape(-1, problem["classes"]) / golden["scale"]
    y = np.array(problem["labels"])
    ece = guo(p, y)
    if p.max() < 1:  # else torchmetrics gives 1 a bin of its own
        other = multiclass_calibration_error(torch.tensor(p), torch.tensor(y), p.shape[1], n_bins=15, norm="l1")
        assert abs(other - ece) < 1e-6, (problem["name"], other, ece)  # it counts in float32
    return {"name": problem["name"], "ece15": ece, "sets": [sets(p, y, level) for level in (0.9, 0.95, 0.99, 0.999)]}


# --- the interval of an AUROC ---


def auroc(problem):
    """DeLong's variance as a sum over pairs, with the definition's matrix of them."""
    a, b = np.array(problem["in"]), np.array(problem["out"])
    pairs = (b[:, None] > a[None, :]) + (b[:, None] == a[None, :]) / 2
    assert math.isclose(pairs.mean(), roc_auc_score(np.r_[0 * a, 0 * b + 1], np.r_[a, b]))
    if min(pairs.shape) < 2:
        return {"name": problem["name"], "low": 0, "high": 1}
    if pairs.mean() in (0, 1):  # no variance: the exact interval for as many pairs without a common example as there are
        exact = binomtest(int(pairs.mean()) * min(pairs.shape), min(pairs.shape)).proportion_ci(method="exact")
        return {"name": problem["name"], "low": exact.low, "high": exact.high}
    se = math.sqrt(pairs.mean(1).var(ddof=1) / len(b) + pairs.mean(0).var(ddof=1) / len(a))
    low, high = pairs.mean() + norm.ppf([0.025, 0.975]) * se
    return {"name": problem["name"], "low": max(0, low), "high": min(1, high)}


def plain(x):
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, list):
        return [plain(v) for v in x]
    return x.item() if isinstance(x, np.generic) else x


honest = {
    "seed": SEED,
    "crossed": [[crossed(problem, folds, splits) for folds, splits in ((2, 10), (5, 3), (2, 1))] for problem in golden["temperature"]],
    "metrics": [metrics(problem) for problem in golden["metrics"]],
    "auroc": [auroc(problem) for problem in extended["detection"]],
}
lines = [
    f"{json.dumps(k)}: " + ("[\n" + ",\n".join(json.dumps(plain(x), separators=(",", ":"), allow_nan=False) for x in v) + "\n]" if isinstance(v, list) else json.dumps(v))
    for k, v in honest.items()
]
sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
