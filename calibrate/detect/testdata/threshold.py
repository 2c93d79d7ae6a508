#!/usr/bin/env python3
"""Golden numbers of thresholds on the probability of one of two classes, by scikit-learn.

    python threshold.py > threshold.json        with scikit-learn 1.9 and NumPy 2

Scores have ties in some cases. Curves are those of roc_curve and precision_recall_curve; a criterion's choice is
that of all distinct scores above 0 as thresholds, the highest of equals, by what scikit-learn says of each.
"""

import json

import numpy as np
from sklearn import metrics


def decided(y, p, t):
    tn, fp, fn, tp = metrics.confusion_matrix(y, p >= t, labels=[0, 1]).ravel()
    return [int(v) for v in (tp, fp, tn, fn)]


def scores(y, p, t):
    z = (p >= t).astype(int)
    return {"counts": decided(y, p, t), "sensitivity": metrics.recall_score(y, z), "specificity": metrics.recall_score(y, z, pos_label=0),
            "precision": metrics.precision_score(y, z) if z.any() else None, "f1": metrics.f1_score(y, z), "accuracy": metrics.accuracy_score(y, z),
            "youden": metrics.balanced_accuracy_score(y, z, adjusted=True)}


def choice(y, p, name, want):
    best, at = None, None
    for t in sorted(set(p[p > 0]), reverse=True):
        s = scores(y, p, t)
        value, reached = {"f1": ("f1", None), "youden": ("youden", None), "precision": ("sensitivity", "precision"), "recall": ("specificity", "sensitivity"),
                          "specificity": ("sensitivity", "specificity")}[name]
        if (reached is None or s[reached] >= want) and (best is None or s[value] > best):
            best, at = s[value], t
    return None if at is None else decided(y, p, at)


def case(name, y, p):
    fpr, tpr, _ = metrics.roc_curve(y, p, drop_intermediate=False)
    precision, recall, _ = metrics.precision_recall_curve(y, p)
    return {
        "name": name, "labels": y.tolist(), "scores": p.tolist(),
        "at": [{"threshold": t, **scores(y, p, t)} for t in (0.1, 0.5, 0.8)],
        "roc": [fpr[1:].tolist(), tpr[1:].tolist()], "precision_recall": [precision[-2::-1].tolist(), recall[-2::-1].tolist()],  # in the order of descending thresholds
        "auroc": metrics.roc_auc_score(y, p), "average_precision": metrics.average_precision_score(y, p),
        "chosen": [{"name": n, "want": w, "counts": choice(y, p, n, w)}
                   for n, w in (("f1", 0), ("youden", 0), ("precision", 0.6), ("precision", 0.9), ("precision", 1), ("recall", 0.9), ("recall", 1), ("specificity", 0.95), ("specificity", 1))],
    }


r = np.random.default_rng(0)
cases = []
for name, n, share, digits in (("balanced", 60, 0.5, 16), ("rare", 80, 0.1, 16), ("ties", 60, 0.4, 1), ("few", 5, 0.5, 16)):
    y = (r.random(n) < share).astype(int)
    y[:2] = 0, 1
    p = 1 / (1 + np.exp(-(r.normal(size=n) * 1.5 + 2 * y - 1)))
    cases.append(case(name, y, np.round(p, digits)))
y = np.array([0, 1, 0, 1, 1])
cases.append(case("nothing told", y, np.full(5, 0.3)))
cases.append(case("zeros", y, np.array([0, 0, 0, 0.4, 1.0])))
cases.append(case("the surest is wrong", y, np.array([0.99, 0.9, 0.2, 0.7, 0.6])))
print(json.dumps({"cases": cases}))
