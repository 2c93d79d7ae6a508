"""Writes peers.json, what TestPeers checks this package against.

    python peers.py > peers.json

Reads golden.json. Written with Python 3.11.7, NumPy 2.4.6, SciPy 1.17.1, scikit-learn
1.9.1, PyTorch 2.15.0, TorchCP 1.2.1 and relplot 1.0.3, all on the CPU.

Tolerances of the tests: 1e-9 for sets, thresholds, shares and the refinement, for the
reasons in golden.py. 2e-5 for the smooth calibration error, which the package computes on
2,048 cells and this script by its definition. relplot itself has 1,000 cells and stops its
search at 0.001, so this script holds it to the definition within 0.002.

Random numbers are Go's: see honest.py, from which they are taken.
"""

import contextlib
import importlib.util
import io
import json
import math
import sys
import types

import numpy as np
import torch
from scipy.special import log_softmax, softmax
from scipy.stats import beta, binom
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss

sort = types.ModuleType("torchsort")  # TorchCP imports it for a loss that is not used here
sort.soft_rank = sort.soft_sort = None
sys.modules["torchsort"] = sort
whole = types.ModuleType("torchcp")  # without its parts for graphs
whole.__path__ = importlib.util.find_spec("torchcp").submodule_search_locations
sys.modules["torchcp"] = whole
torch.set_default_dtype(torch.float64)
with contextlib.redirect_stdout(io.StringIO()):
    from honest import PCG, SEED, golden, mix, plain, temperature, uniforms
import warnings

warnings.simplefilter("ignore")
import relplot
from torchcp.classification.predictor import ClassConditionalPredictor, SplitPredictor
from torchcp.classification.score import RAPS
from torchcp.classification.utils.metrics import CovGap, average_size, coverage_rate

FIT, APPLY, TUNE = 4, 5, 6


@contextlib.contextmanager
def drawn(u):
    """TorchCP draws a number for each class, and the package one for each example. It subtracts
    its share from the sum with the class itself, and the package adds one to the sum before."""
    rand = torch.rand
    torch.rand = lambda *shape, device=None: torch.tensor(1 - u) if not isinstance(shape[0], torch.Size) else torch.tensor(1 - u)[:, None].expand(shape[0])
    try:
        yield
    finally:
        torch.rand = rand


def predictor(kind, p, y, u, level, penalty=0.0, free=0):
    score = RAPS(score_type="identity", penalty=penalty, kreg=free)
    out = (ClassConditionalPredictor if kind == "classwise" else SplitPredictor)(score)
    with drawn(u):
        out.calculate_threshold(torch.tensor(p), torch.tensor(y), 1 - level)
    return out


def apply(fitted, p, u):
    with drawn(u):
        return fitted.predict_with_logits(torch.tensor(p))


def tuned(p, y, u, level):
    """The rank and the penalty of Angelopoulos et al., from their pick_parameters."""
    rows = np.sort(PCG(SEED, TUNE).perm(len(y))[: 3 * len(y) // 10])
    p_, y_, u_ = p[rows], y[rows], u[rows]
    order = np.argsort(-p_, axis=1, kind="stable")
    ranks = np.sort((order == y_[:, None]).argmax(1) + 1)
    k = math.ceil((len(rows) + 1) * level - 1e-9)
    if k > len(rows):
        return None
    free = int(ranks[k - 1])
    sizes = {}
    for penalty in (0.001, 0.01, 0.1, 0.2, 0.5):
        sizes[penalty] = average_size(apply(predictor("raps", p_, y_, u_, level, penalty, free), p_, u_))
    rest = np.setdiff1d(np.arange(len(y)), rows)
    return free, min(sizes, key=sizes.get), rest


def conformal(problem, level):
    p, y = probs(problem), np.array(problem["labels"])
    fit, use = uniforms(FIT, len(y)), uniforms(APPLY, len(y))
    out = []
    for kind in ("aps", "raps", "classwise"):
        rows, free, penalty = np.arange(len(y)), 0, 0.0
        if kind == "raps":
            found = tuned(p, y, fit, level)
            if found is None:
                continue
            free, penalty, rows = found
        x = predictor(kind, p[rows], y[rows], fit[rows], level, penalty, free)
        sets = apply(x, p, use)
        theirs = average_size(sets), coverage_rate(sets, torch.tensor(y)), CovGap(sets, torch.tensor(y), 1 - level, p.shape[1]) / 100
        sets = sets.numpy()
        covered = sets[np.arange(len(y)), y]
        ours = sets.sum(1).mean(), covered.mean(), np.mean([abs(covered[y == c].mean() - level) for c in np.unique(y)])
        assert np.allclose(theirs, ours, atol=1e-6), (theirs, ours)  # they are in float32
        out.append({
            "kind": kind, "level": level, "free": free, "penalty": penalty,
            "thresholds": [None if math.isinf(t) else t for t in np.atleast_1d(np.asarray(x.q_hat, dtype=float)).tolist()],
            "size": ours[0], "coverage": ours[1], "empty": (sets.sum(1) == 0).mean(), "gap": ours[2],
        })
    return out


def probs(problem):
    return np.array(problem["counts"]).reshape(-1, problem["classes"]) / golden["scale"]


def smooth(f, y):
    """The definition: the kernel at the reflections of every confidence, the integral by trapezoids."""
    f, y = np.asarray(f, float), np.asarray(y, float)
    t = np.linspace(0, 1, 4001)

    at = np.unique(f)
    grouped = at, [(f - y)[f == c].sum() / len(f) for c in at]

    def error(sigma):
        total = np.zeros_like(t)
        for c, r in zip(*grouped):
            for k in range(-2, 3):
                total += r * (np.exp(-((t - 2 * k - c) ** 2) / (2 * sigma**2)) + np.exp(-((t - 2 * k + c) ** 2) / (2 * sigma**2)))
        return np.trapezoid(np.abs(total), t) / (math.sqrt(2 * math.pi) * sigma)

    low, high = 0.0, 1.0
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if error(middle) > middle else (low, middle)
    theirs = relplot.smECE(np.minimum(f, 0.999), y)  # it counts half of a confidence of exactly 1
    assert abs(theirs - high) < 2e-3, (theirs, high)
    return high


def tops(p, y):
    return p.max(1), p.argmax(1) == y


def refinement(p, y):
    z, n, classes = np.log(p), len(y), p.shape[1]
    order = PCG(SEED, 1).perm(n)
    folds = [order[: n // 2], order[n // 2 :]]
    scaled, mapped = np.zeros(n), np.zeros(n)
    for fit, use in (folds[::-1], folds):
        t = temperature(z[fit], y[fit])
        a, b = softmax(z[fit] / t, 1), softmax(z[use] / t, 1)
        scaled[use] = -np.log(b[np.arange(len(use)), y[use]])
        ca, cb = (np.ones(len(fit), int), np.ones(len(use), int)) if classes == 2 else (a.argmax(1), b.argmax(1))
        x, right = a[np.arange(len(fit)), ca], (ca == y[fit]).astype(float)
        order_ = np.argsort(x)
        step = IsotonicRegression().fit_transform(x[order_], right[order_])
        at = np.searchsorted(x[order_], b[np.arange(len(use)), cb], side="right") - 1
        levels, counts = np.unique(np.round(step, 12), return_counts=True)
        hits = np.array([right[order_][np.round(step, 12) == v].sum() for v in levels])
        which = np.searchsorted(levels, np.round(step[np.maximum(at, 0)], 12))
        q = (hits[which] + 0.5) / (counts[which] + 1)
        for i, row, c, v in zip(use, b, cb, q):
            p_ = row * (1 - v) / (1 - row[c])
            p_[c] = v
            mapped[i] = -math.log(p_[y[i]])
    nll = log_loss(y, p, labels=range(classes))
    return {"nll": nll, "scaled": scaled.mean(), "mapped": mapped.mean()}


def answering(f, right, risk, alpha=0.05):
    """The definition, with the counts of every threshold by a comparison, and every number of examples tried."""
    f, right = np.asarray(f), np.asarray(right)
    ranked_, n = np.sort(f)[::-1], len(f)
    fewest = lambda level: [m for e in range(n) for m in [next((m for m in range(e + 1, n + 1) if binom.cdf(e, m, risk) <= level), None)] if m]
    lead, ms = alpha, fewest(alpha)
    if len(ms) >= 10:
        lead, ms = 0.8 * alpha, fewest(0.8 * alpha)
    if not ms:
        return None
    first, last = min(2, len(ms) // 3), len(ms) - 1
    ms = sorted({ms[first + (last - first) * j // 39] for j in range(40)} | {n})
    level, before, best = 0.0, 0, None
    for at, m in enumerate(ms):
        level += (lead if at == 0 else 0) + (alpha - lead if at == len(ms) // 2 else 0)
        threshold = ranked_[m] if m < n else -1.0
        above = f > threshold
        if above.sum() <= before or (1 - risk) ** above.sum() > level:
            continue
        before = above.sum()
        if binom.cdf((~right[above]).sum(), above.sum(), risk) <= level:
            best = {"threshold": float(threshold), "coverage": above.mean(), "wrong": (~right[above]).mean()}
        else:
            level = 0.0
    return best


def binary(n, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    y = rng.random(n) < 1 / (1 + np.exp(-(z**3) / 4 - 0.3))
    p = np.round(1 / (1 + np.exp(-z)), 6)
    return np.c_[1 - p, p], y.astype(int)


def many(n, classes, seed, temperature_):
    rng = np.random.default_rng(seed)
    z = np.round(rng.normal(0, 1.5, (n, classes)), 4)
    y = np.array([rng.choice(classes, p=row) for row in softmax(z, 1)])
    return softmax(z / temperature_, 1), y, (z / temperature_)


out = {"seed": SEED, "sets": [], "smooth": [], "refinement": [], "answering": [], "chance": [], "range": []}
for index, problem in enumerate(golden["metrics"]):
    if problem["name"] in ("random", "class absent", "70 % saturated", "many classes"):
        out["sets"] += [{"problem": index, **x} for level in (0.8, 0.9) for x in conformal(problem, level)]
        p, y = probs(problem), np.array(problem["labels"])
        out["smooth"].append({"problem": index, "want": smooth(*tops(p, y))})
for n, seed in ((120, 1), (121, 2)):
    p, y = binary(n, seed)
    out["refinement"].append({"classes": 2, "probs": p.ravel().tolist(), "labels": y.tolist(), **refinement(p, y)})
for n, classes, seed, t in ((90, 3, 3, 0.4), (90, 4, 4, 1.0), (91, 3, 5, 2.0)):
    p, y, _ = many(n, classes, seed, t)
    p = np.maximum(np.round(p, 7), 1e-6)
    for row in p:
        row[row.argmax()] += 1 - row.sum()
    p = np.round(p, 7)
    out["refinement"].append({"classes": classes, "probs": p.ravel().tolist(), "labels": y.tolist(), **refinement(p, y)})
rng = np.random.default_rng(9)
for n, ties in ((400, False), (400, True), (40, False)):
    f = np.round(rng.random(n), 1 if ties else 5)
    right = rng.random(n) < 0.6 + 0.4 * f
    for risk in (0.1, 0.2, 0.5):
        out["answering"].append({"confidence": f.tolist() if risk == 0.1 else None, "right": right.tolist() if risk == 0.1 else None, "risk": risk, "want": answering(f, right, risk)})
for level, counts in ((0.9, [10, 3, 40]), (0.95, [7]), (0.8, [5, 100, 20])):
    gap = np.mean([sum(binom.pmf(k, n, level) * abs(k / n - level) for k in range(n + 1)) for n in counts])
    out["chance"].append({"level": level, "counts": counts, "want": gap})
for level, n in ((0.9, 100), (0.95, 2500), (0.99, 150)):
    k = math.ceil((n + 1) * level - 1e-9)
    out["range"].append({"level": level, "n": n, "want": beta.ppf([0.025, 0.975], k, n + 1 - k).tolist()})
lines = [f"{json.dumps(k)}: " + ("[\n" + ",\n".join(json.dumps(plain(x), separators=(",", ":"), allow_nan=False) for x in v) + "\n]" if isinstance(v, list) else json.dumps(v)) for k, v in out.items()]
sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
