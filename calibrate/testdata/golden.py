"""Writes golden.json, the numbers TestGolden checks this package against.

    python golden.py > golden.json

Written with Python 3.11.7, NumPy 2.4.6, SciPy 1.17.1, scikit-learn 1.9.1 and
PyTorch 2.15.0, all on the CPU. Other versions may draw other problems, but must
not change a metric of the same problem.

Tolerance of the test: 1e-9, absolute or relative. Both sides work in float64 on
at most 400 rows, so they differ only by the order of summation, about 1e-13;
1e-9 leaves room for other versions and is far below any mistake of definition.

Probabilities are stored as integers over SCALE = 2**20. They are exact in
float64, rows sum to 1 exactly, and both sides see the same bits. Logits have
three decimals and are parsed to the same bits. null stands for +infinity.
"""

import json
import math
import sys

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax
from scipy.stats import entropy
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

SCALE = 2**20
rng = np.random.default_rng(20190207)


def to_counts(p):
    """Rounds probabilities to integers over SCALE; the largest takes the rest."""
    k = np.rint(p * SCALE).astype(int)
    k[np.arange(len(k)), k.argmax(1)] += SCALE - k.sum(1)
    return k


def draw_labels(p):
    return np.array([rng.choice(len(row), p=row) for row in p])


# --- metrics, straight from their definitions ---


def equal_mass(conf, right, bins):
    order = np.argsort(conf, kind="stable")
    conf, right, n = conf[order], right[order], len(conf)
    cuts = [0]
    for b in range(1, bins):
        i = b * n // bins
        while 0 < i < n and conf[i] == conf[i - 1]:
            i += 1
        cuts.append(i)
    cuts.append(n)
    return [(conf[i:j], right[i:j]) for i, j in zip(cuts, cuts[1:])]


def equal_width(conf, right, bins):
    which = np.maximum(np.digitize(conf, np.arange(bins + 1) / bins, right=True) - 1, 0)  # (b/B, (b+1)/B]
    return [(conf[which == b], right[which == b]) for b in range(bins)]


def swag_reference(conf, right, bins):
    step = math.ceil(len(conf) / bins)
    edges = list(np.sort(conf)[::step])
    if len(conf) % step != 1:
        edges.append(conf.max())
    between = [(lo < conf) & (conf < hi) for lo, hi in zip(edges, edges[1:])]
    return [(conf[m], right[m]) for m in between]


def table(groups):
    return [[len(c), c.mean(), r.mean()] if len(c) else [0, 0.0, 0.0] for c, r in groups]


def ece(groups, n):
    return sum(len(c) / n * abs(c.mean() - r.mean()) for c, r in groups if len(c))


def metrics(name, counts, labels):
    p, labels = counts / SCALE, np.asarray(labels)
    n, classes = p.shape
    rows = np.arange(n)
    conf, right = p.max(1), p.argmax(1) == labels
    with np.errstate(divide="ignore"):
        losses = -np.log(p[rows, labels])
    nll, brier = losses.mean(), ((p - np.eye(classes)[labels]) ** 2).sum(1).mean()

    # The same by other hands. scikit-learn clips probabilities of 0, so its log
    # loss only serves where the true class has none.
    assert math.isclose(accuracy_score(labels, p.argmax(1)), right.mean())
    if classes > 2:
        assert math.isclose(brier_score_loss(labels, p, labels=range(classes), scale_by_half=False), brier, abs_tol=1e-12)
    if np.isfinite(nll):
        assert math.isclose(log_loss(labels, p, labels=range(classes)), nll, abs_tol=1e-12)

    ranking = np.argsort(-p, axis=1, kind="stable")
    finite = lambda x: float(x) if np.isfinite(x) else None
    return {
        "name": name,
        "classes": classes,
        "counts": counts.ravel().tolist(),
        "labels": labels.tolist(),
        "accuracy": right.mean(),
        "top2": (ranking[:, :2] == labels[:, None]).any(1).mean(),
        "nll": finite(nll),
        "losses": [finite(x) for x in losses[:20]],
        "brier": brier,
        "entropy": entropy(p, axis=1)[:20].tolist(),
        "ece": [
            {"binning": kind.__name__, "bins": bins, "ece": ece(groups, n), "table": table(groups)}
            for kind in (equal_mass, equal_width, swag_reference)
            for bins in (20, 7)
            for groups in [kind(conf, right, bins)]
        ],
    }


def metric_problems():
    def random(n, classes, spread, truth=0.6):
        z = rng.normal(size=(n, classes)) * spread
        return to_counts(softmax(z, 1)), draw_labels(softmax(truth * z, 1))

    def saturated(n, classes, share):
        k, y = random(n, classes, 1.5)
        sure = rng.random(n) < share
        k[sure] = SCALE * np.eye(classes, dtype=int)[k[sure].argmax(1)]
        y[sure] = np.where(rng.random(sure.sum()) < 0.95, k[sure].argmax(1), 0)
        return k, y

    yield "random", *random(400, 10, 2)
    yield "two classes", *random(200, 2, 1.5)
    yield "many classes", *random(60, 100, 2)
    k, _ = random(150, 5, 2)
    yield "all correct", k, k.argmax(1)
    yield "saturated", *saturated(100, 4, 1)
    yield "70 % saturated", *saturated(400, 5, 0.7)
    eighths = rng.multinomial(8, [0.55, 0.25, 0.15, 0.05], size=200)
    yield "ties", eighths * (SCALE // 8), draw_labels(eighths / 8)
    k, y = random(150, 6, 2)
    yield "class absent", k, np.where(y == 3, 4, y)
    yield "one row", *random(1, 3, 1)
    yield "21 rows", *random(21, 3, 1)  # 21 % 2 == 1: the reference adds no last edge
    yield "uniform", np.full((12, 4), SCALE // 4), np.arange(12) % 3


# --- softmax, temperature, mutual information ---


def softmax_problem(z, t):
    z = np.asarray(z, float)
    return {
        "classes": z.shape[1],
        "logits": z.ravel().tolist(),
        "t": t,
        "softmax": softmax(z / t, 1).ravel().tolist(),
        "log_softmax": log_softmax(z / t, 1).ravel().tolist(),
    }


def temperature_problem(n, classes, spread, truth):
    """Finds the root of the slope that PyTorch derives, by bracketing."""
    z = np.round(rng.normal(size=(n, classes)) * spread, 3)
    y = draw_labels(softmax(truth * z, 1))
    zt, yt = torch.tensor(z), torch.tensor(y)
    nll = lambda b: torch.nn.functional.cross_entropy(b * zt, yt)

    def slope(b):
        b = torch.tensor(b, dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(nll(b), b)[0].item()

    beta = brentq(slope, 1e-3, 1e3, xtol=1e-15, rtol=1e-14)
    return {
        "classes": classes,
        "logits": z.ravel().tolist(),
        "labels": y.tolist(),
        "t": 1 / beta,
        "before": nll(1.0).item(),
        "after": nll(beta).item(),
    }


def ensemble_problem(members, n, classes):
    k = np.stack([to_counts(softmax(rng.normal(size=(n, classes)) * 2, 1)) for _ in range(members)])
    p = k / SCALE
    expected = entropy(p, axis=2).mean(0)
    return {
        "classes": classes,
        "members": [m.ravel().tolist() for m in k],
        # Another formula than the package's: the mean divergence from the average.
        "mutual_information": entropy(p, p.mean(0)[None], axis=2).mean(0).tolist(),
        "expected": expected.tolist(),
    }


golden = {
    "scale": SCALE,
    "metrics": [metrics(*problem) for problem in metric_problems()],
    "softmax": [
        softmax_problem([[1, 2, 3], [-1000, 0, 1000], [5, 5, 5], [0, 0, -40]], t)
        for t in (0.25, 1.0, 3.0)
    ],
    "temperature": [
        temperature_problem(200, 10, 3, 0.5),
        temperature_problem(200, 10, 1, 2.5),
        temperature_problem(50, 40, 2, 1),
        temperature_problem(100, 2, 5, 0.1),
    ],
    "ensembles": [ensemble_problem(3, 20, 5)],
}

sys.stdout.write("{\n")
sys.stdout.write(
    ",\n".join(
        f"{json.dumps(key)}: "
        + ("[\n" + ",\n".join(json.dumps(x, separators=(",", ":")) for x in v) + "\n]" if isinstance(v, list) else json.dumps(v))
        for key, v in golden.items()
    )
)
sys.stdout.write("\n}\n")
