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
    high = min(1, accuracy + np.hypot(0.02 + 0.3 * drop + 0.25 * apart, chance))
    bound = ""
    if moved >= 0.15:
        bound = "predicted classes"
    elif drop >= 0.15:
        bound, high = "large drop", was - min(0.15, 0.6 * drop)
    if bound:
        accuracy = low = 0
    out = dict(accuracy=accuracy, low=low, high=high, bound=bound, validation=was, by_confidence=atc, by_disagreement=by_mi, moved=moved)
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
        out["labels"] = dict(examples=int((known >= 0).sum()), accuracy=mean, error=np.sqrt(var), combined=combined, low=max(0, combined - half), high=min(1, combined + half), alone=bool(own == 0))
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


cases = [case(150, 200, 0.0, 3, 0), case(150, 200, 0.3, 4, 0), case(150, 200, 0.3, 2, 60), case(120, 160, 1.5, 3, 50), case(150, 200, 0.2, 5, 0, True), case(20, 200, 0.0, 3, 0)]
assert {c["want"]["bound"] for c in cases} == {"", "large drop", "predicted classes"}
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json")
with open(path, "w") as file:
    json.dump(cases, file)
