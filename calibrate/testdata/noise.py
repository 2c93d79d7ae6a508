"""Writes noise.json, the golden numbers of TestHolm, TestSignTest, TestRefit, TestJackknife and TestDifference.

    pip install numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
    python calibrate/testdata/noise.py

Temperatures are SciPy's bounded minimisation of the NLL, in float64, to 1e-10; Holm's
p-values and McNemar's exact test are statsmodels'. The jackknife is written out from its formula in exact
rational arithmetic, on losses that are rational.
"""
import json
import pathlib
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.stats import t as student
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

rng = np.random.default_rng(15)
out = {}

out["holm"] = []
for n in [1, 2, 5, 20]:
    p = rng.beta(0.3, 2, n)
    if n == 5:
        p[3] = p[1]  # a tie
    out["holm"].append({"p": p.tolist(), "adjusted": multipletests(p, 0.05, "holm")[1].tolist()})

out["sign"] = [{"won": a, "lost": b, "p": float(mcnemar([[0, a], [b, 0]], exact=True).pvalue)} for a, b in [(9, 1), (1, 9), (0, 3), (5, 5), (60, 85), (400, 401)]]

# Temperatures of resamples, and the losses at them.
n, m, classes = 60, 80, 4
fit, test = rng.normal(0, 2, (n, classes)), rng.normal(0, 2, (m, classes))
label = lambda z: [int(rng.choice(classes, p=np.exp(log_softmax(row / 1.7)))) for row in z]
fit_labels, test_labels = label(fit), label(test)


def nll(z, labels, t, counts):
    return float(-(counts * log_softmax(z / t, axis=1)[np.arange(len(z)), labels]).sum())


def best(counts):
    found = minimize_scalar(lambda x: nll(fit, fit_labels, np.exp(x), counts), bounds=(-3, 3), method="bounded", options={"xatol": 1e-10})
    return float(np.exp(found.x))


resamples = []
for _ in range(8):
    a, b = rng.multinomial(n, np.full(n, 1 / n)), rng.multinomial(m, np.full(m, 1 / m))
    t = best(a)
    resamples.append({"fit": a.tolist(), "test": b.tolist(), "t": t, "nll": nll(test, test_labels, t, b)})
out["refit"] = {"classes": classes, "fit": fit.ravel().tolist(), "fit_labels": fit_labels, "test": test.ravel().tolist(), "test_labels": test_labels, "t": best(np.ones(n)), "resamples": resamples}

# Busing, Meijer and van der Leeden 1999, equations 5 and 6, on one mean and on each image.
weights = [3, 3, 2, 1]
images = 6
total = [Fraction(int(rng.integers(10, 90)), 64) for _ in range(images)]
without = [[x + Fraction(int(rng.integers(-9, 12)), 64) for x in total] for _ in weights]


def jackknife(theta, thetas):
    n, g = sum(weights), len(weights)
    corrected = g * theta - sum((1 - Fraction(m, n)) * x for m, x in zip(weights, thetas))
    h = [Fraction(n, m) for m in weights]
    variance = sum((h_j * theta - (h_j - 1) * x - corrected) ** 2 / (h_j - 1) for h_j, x in zip(h, thetas)) / g
    return corrected, variance


mean = lambda x: sum(x) / images
corrected, variance = jackknife(mean(total), [mean(x) for x in without])
each = [jackknife(total[i], [x[i] for x in without]) for i in range(images)]
out["jackknife"] = {
    "all": [float(x) for x in total], "without": [[float(x) for x in g] for g in without], "weights": weights,
    "bias": float(mean(total) - corrected), "variance": float(variance), "own": float(sum(v for _, v in each) / images**2), "corrected": [float(c) for c, _ in each],
}

# Student's intervals with Satterthwaite's degrees of freedom.
out["difference"] = []
for mu, v, n, w, own, dof, bias in [(0.0055, 3e-6, 5000, 1e-6, 2e-7, 9, 0.001), (-0.002, 3e-6, 200, 0, 0, 0, 0), (0.01, 1e-6, 50, 4e-6, 1e-6, 4, -0.001), (0.001, 1e-6, 5000, 1e-6, 0, 9, 0.002)]:
    more = w - own
    nu = (v + more) ** 2 / (v * v / (n - 1) + (more * more / dof if dof else 0))
    s, center = np.sqrt(v + more), mu - bias
    half = student.ppf(0.975, nu) * s
    least = min(abs(mu), abs(center)) if mu * center > 0 else 0
    out["difference"].append({"mean": mu, "images": v, "n": n, "draws": w, "own": own, "dof": dof, "bias": bias, "low": float(center - half), "high": float(center + half),
                              "p": float(2 * student.sf(least / max(s, np.sqrt(w)), nu))})

path = pathlib.Path(__file__).with_name("noise.json")
path.write_text(json.dumps(out, indent=1) + "\n")
