"""Compute golden.json with NumPy 2.5: python calibrate/expect/testdata/golden.py. Formulas are written anew from the papers and from
the comments of the package."""
import json
import os

import numpy as np

r = np.random.default_rng(56)
Z = 1.959963984540054


def data(n, shift, classes):
    confidence = np.round(1 - r.beta(0.6, 3 - shift, n) * (1 - 1 / classes), 6)
    disagreement = np.round((1 - confidence) * r.uniform(0, 0.6 + shift, n), 6)
    right = r.uniform(size=n) < confidence - shift * 0.1
    return confidence, disagreement, r.integers(0, classes, n), right


def estimate(val, c, mi, predicted, classes, known):
    vc, vmi, vp, ok = val
    n, m, wrong = len(c), len(vc), int((~ok).sum())
    order = np.sort(vc)
    threshold = (order[wrong - 1] + order[wrong]) / 2
    atc, err = np.mean(c > threshold), wrong / m
    by_mi = np.clip(1 - err * mi.mean() / vmi.mean(), 0, 1)
    accuracy, was = (atc + by_mi) / 2, 1 - err
    p, q = np.bincount(vp, minlength=classes) / m, np.bincount(predicted, minlength=classes) / n
    both = (p * m + q * n) / (n + m)
    moved = max(0, np.abs(p - q).sum() / 2 - np.sqrt(both * (1 - both) * (1 / n + 1 / m)).sum())
    drop, apart, at = max(0, was - accuracy), abs(atc - by_mi), np.clip(accuracy, max(0.02, min(0.5, 2 / n)), 1 - max(0.02, min(0.5, 2 / n)))
    chance = Z * np.sqrt(at * (1 - at) / n + was * err / m)
    low = max(0, accuracy - np.hypot(0.02 + 0.8 * drop + 0.6 * apart + 0.5 * moved, chance))
    high = min(1, accuracy + np.hypot(0.02 + 0.3 * drop + 0.25 * apart + 0.5 * moved, chance))
    bound = ""
    if moved >= 0.15:
        bound = "predicted classes"
    elif drop >= 0.15:
        bound, high = "large drop", was - min(0.15, 0.6 * drop)
    if bound:
        accuracy = low = 0
    out = dict(figure="accuracy", accuracy=accuracy, low=low, high=0 if bound == "predicted classes" else high, bound=bound, validation=was, by_confidence=atc, by_disagreement=by_mi, moved=moved)
    if (known >= 0).any():
        cuts = []
        w = np.sort(vc[~ok])
        for k in (1, 2, 3):
            cuts.append((w[k * wrong // 4 - 1] + w[k * wrong // 4]) / 2)
        h, hv = np.searchsorted(cuts, c), np.searchsorted(cuts, vc)
        mean = var = 0
        for k in range(4):
            there, lab = h == k, (h == k) & (known >= 0)
            N, L = there.sum(), lab.sum()
            prior = (ok[hv == k].sum() + 1) / ((hv == k).sum() + 2)
            s = ((known[lab] == 1).sum() + prior) / (L + 1)
            mean += N / n * known[lab].mean()
            var += (N / n) ** 2 * s * (1 - s) / L * (1 - L / N)
        side = accuracy - low if mean < accuracy else high - accuracy
        own = 0.0
        if not bound and abs(mean - accuracy) <= 3 * np.hypot(side / Z, np.sqrt(var)):
            own = (Z / side) ** 2
        combined = (mean / var + accuracy * own) / (1 / var + own)
        half = Z / np.sqrt(1 / var + own)
        out["labels"] = dict(examples=int((known >= 0).sum()), value=mean, error=np.sqrt(var), combined=combined, low=max(0, combined - half), high=min(1, combined + half), alone=bool(own == 0))
    return out


def case(n, m, shift, classes, labels, one=False):
    val = data(m, 0.0, classes)
    c, mi, p, ok = data(n, shift, classes)
    if one:
        p[: n // 2] = 1
    known = np.full(n, -1)
    some = r.permutation(n)[:labels]
    known[some] = ok[some]
    return dict(confidence=val[0].tolist(), disagreement=val[1].tolist(), predicted=val[2].tolist(), right=val[3].tolist(), classes=classes,
                data=dict(confidence=c.tolist(), disagreement=mi.tolist(), predicted=p.tolist(), known=known.tolist()),
                want=estimate(val, c, mi, p, classes, known))


def several(v, c):
    """Examples with several predictions: sizes n, shares below the threshold, sums of mutual information, counts by class, wrong."""
    m, n, size, was = len(v["n"]), len(c["n"]), v["n"].sum(), v["wrong"].sum() / v["n"].sum()
    mean = v["n"].mean()
    spread = ((v["wrong"] - was * v["n"]) ** 2).mean() / mean**2
    first, second = (was * (c[k].sum() / c["n"].sum()) / (v[k].sum() / size) for k in ("below", "mutual"))
    by = np.clip(1 - np.array([first, second]), 0, 1)
    accuracy = by.mean()
    p, q = v["counts"].sum(0) / size, c["counts"].sum(0) / c["n"].sum()
    both = (v["counts"].sum(0) + c["counts"].sum(0)) / (size + c["n"].sum())
    apart = np.clip(((v["counts"] / mean) ** 2).mean(0) - p * p, 0, p * (1 - p)) / (p * (1 - p))
    moved = max(0, np.abs(p - q).sum() / 2 - np.sqrt(both * (1 - both) * apart * (1 / n + 1 / m)).sum())
    edge = max(0.02, min(0.5, 2 / n))
    at = np.clip(accuracy, edge, 1 - edge)
    chance = Z * np.sqrt(at * (1 - at) * spread / (was * (1 - was)) / n + spread / m)
    drop, gap = max(0, 1 - was - accuracy), abs(by[0] - by[1])
    low, high = max(0, accuracy - np.hypot(0.02 + 0.8 * drop + 0.6 * gap + 0.5 * moved, chance)), min(1, accuracy + np.hypot(0.02 + 0.3 * drop + 0.25 * gap + 0.5 * moved, chance))
    assert drop < 0.15
    bound = "predicted classes" if moved >= 0.05 else ""
    if bound:
        accuracy = low = 0
    return dict(figure="accuracy", accuracy=accuracy, low=low, high=0 if bound else high, bound=bound, validation=1 - was, by_confidence=by[0], by_disagreement=by[1], moved=moved)


def pictures(n, worse, kinds=(3, 2, 1)):
    size = r.integers(20, 80, n)
    hard = r.beta(2, 8, n) * (1 + worse)
    counts = np.array([r.multinomial(k, r.dirichlet(kinds)) for k in size])
    return dict(n=size, wrong=r.binomial(size, np.minimum(1, hard)), below=r.binomial(size, np.minimum(1, hard)), mutual=size * hard * 0.1, counts=counts)


def numbers(v, c):
    """Numbers: losses are squared errors."""
    m, n, was = len(v["loss"]), len(c["variance"]), v["loss"].mean()
    value = lambda loss: -np.log(loss) / 2
    by = [value(was * c[k].mean() / v[k].mean()) for k in ("variance", "epistemic")]
    est, drop = np.mean(by), max(0, value(was) - np.mean(by))
    edges = np.sort(v["mean"])[[k * m // 10 for k in range(1, 10)]]
    p, q = (np.bincount(np.searchsorted(edges, x["mean"]), minlength=10) for x in (v, c))
    both = (p + q) / (n + m)
    moved = max(0, np.abs(p / m - q / n).sum() / 2 - np.sqrt(both * (1 - both) * (1 / n + 1 / m)).sum())
    chance = Z * np.sqrt(v["loss"].var() / (4 * was**2) * (1 / n + 1 / m))
    gap = abs(by[0] - by[1])
    low = np.exp(-(est + np.hypot(0.05 + 0.3 * drop + 0.4 * gap + 0.5 * moved, chance)))
    high = np.exp(-(est - np.hypot(1.2 + 0.5 * drop + 0.5 * gap + moved, chance)))
    bound, rmse = "", np.exp(-est)
    if moved >= 0.1:
        bound = "predicted classes"
    elif drop >= 0.25:
        bound, low = "large drop", np.sqrt(was) * np.exp(min(0.25, 0.5 * drop))
    if bound:
        rmse = high = 0
    return dict(figure="rmse", rmse=rmse, low=low, high=high, bound=bound, validation=np.sqrt(was), by_variance=np.exp(-by[0]), by_disagreement=np.exp(-by[1]), moved=moved)


def targets(n, worse, shift):
    mean, epistemic = r.standard_normal(n) + shift, r.gamma(2, 0.05, n) * (1 + worse)
    variance = epistemic + r.gamma(4, 0.1, n)
    return dict(mean=mean, variance=variance, epistemic=epistemic, loss=variance * r.standard_normal(n) ** 2 * 1.5)


def lists(x):
    return {k: v.tolist() for k, v in x.items()}


cases = [case(150, 200, 0.0, 3, 0), case(150, 200, 0.3, 4, 0), case(150, 200, 0.3, 2, 60), case(120, 160, 1.5, 3, 50), case(150, 200, 0.2, 5, 0, True), case(20, 200, 0.0, 3, 0)]
assert {c["want"]["bound"] for c in cases} == {"", "large drop", "predicted classes"}
both = []
for v, c in ((pictures(60, 0), pictures(40, 0.1)), (pictures(80, 0), pictures(1, 0.2)), (pictures(80, 0), pictures(90, 0, (9, 2, 1)))):
    both.append(dict(validation=lists(v), data=lists(c), want=several(v, c)))
assert [c["want"]["bound"] for c in both] == ["", "", "predicted classes"]
regressions = []
for worse, shift in ((0, 0), (0.2, 0.1), (6, 0), (0, 2)):
    v, c = targets(300, 0, 0), targets(200, worse, shift)
    regressions.append(dict(validation=lists(v), data=lists(c), want=numbers(v, c)))
assert {c["want"]["bound"] for c in regressions} == {"", "large drop", "predicted classes"}
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json")
with open(path, "w") as file:
    json.dump(dict(classes=cases, pictures=both, numbers=regressions), file)
