"""Writes noise.json, the golden numbers of TestHolm, TestSignTest, TestRefitVariances, TestDraws and TestDifference.

    pip install numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
    python calibrate/chance/testdata/noise.py

Temperatures are SciPy's bounded minimisation of the NLL, in float64, to 1e-10. Their variance comes from analytic
derivatives. Holm's p-values and McNemar's exact test are statsmodels'. The jackknife is
written out from its formulas with loops over pairs of groups.
"""
import json
import pathlib

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

# A temperature, and what its fit adds to the variance of the NLL and of the Brier score of other examples.
n, m, classes = 60, 80, 4
fit, test = rng.normal(0, 2, (n, classes)), rng.normal(0, 2, (m, classes))
label = lambda z: [int(rng.choice(classes, p=np.exp(log_softmax(row / 1.7)))) for row in z]
fit_labels, test_labels = label(fit), label(test)
nll = lambda z, labels, x: -log_softmax(z * np.exp(-x), axis=1)[np.arange(len(z)), labels]
x = minimize_scalar(lambda x: nll(fit, fit_labels, x).sum(), bounds=(-3, 3), method="bounded", options={"xatol": 1e-10}).x


def derivatives(z, labels):
    """Slopes and curvatures of the NLL in x = log T, by example."""
    u = z * np.exp(-x)  # du/dx = -u
    p = np.exp(log_softmax(u, axis=1))
    mean = (p * u).sum(1)
    y = np.arange(len(z)), labels
    return u[y] - mean, -u[y] + mean + (p * u * u).sum(1) - mean**2


def brier(z, labels, x):
    e = np.exp(log_softmax(z * np.exp(-x), axis=1))
    e[np.arange(len(z)), labels] -= 1
    return (e**2).sum(1)


s, h = derivatives(fit, fit_labels)
v = (s**2).sum() / (n * h.mean()) ** 2
out["refit"] = {"classes": classes, "fit": fit.ravel().tolist(), "fit_labels": fit_labels, "test": test.ravel().tolist(), "test_labels": test_labels, "t": float(np.exp(x)),
                "variances": [float(np.dot([1, -2, 1], [loss(test, test_labels, x + k * np.sqrt(v)).mean() for k in (-1, 0, 1)]) ** 2 / 2) for loss in (nll, brier)]}

# Influences of groups of unequal size on the NLL of an average, and the effects of pairs.
weights, images = np.array([3.0, 3, 2, 1, 1]), 7
p = rng.beta(2, 1, (len(weights), images))
total = weights.sum()
nll_of = lambda w: -np.log(w @ p / w.sum())
loss = nll_of(weights)
without = np.array([nll_of(np.where(np.arange(len(weights)) == g, 0, weights)) for g in range(len(weights))])
groups, share = len(weights), total / weights
d = (share - 1)[:, None] * (without - loss)
bias = float((d.mean(1) / share).sum())
v1 = sum((a - bias) ** 2 / (k - 1) for a, k in zip(d.mean(1), share)) / groups
c = d - d.mean(0)
v1 -= sum((c[g] ** 2).sum() / (share[g] - 1) for g in range(groups)) / groups / images**2
k, noise = [], []
for g in range(groups):
    for o in range(g):
        k.append((c[g] * c[o]).mean())
        noise.append((c[g] * c[o]).var(ddof=1) / images)
v2 = max(0, np.var(k, ddof=1) - np.mean(noise)) / 2 / groups**2
third = float(np.mean((bias - d.mean(1)) ** 3)) * groups**2 / (groups - 1) / (groups - 2) / groups**2
out["draws"] = {"third": third, "all": loss.tolist(), "without": without.tolist(), "weights": weights.tolist(), "bias": bias, "variance": float(max(v1 - v2, v2 / 2, 0))}

# Student's intervals, with Cochran's quantile where draws add to them.
out["difference"] = []
for n, fits, w, dof, bias, third in [(50, 0, 0, 0, 0, 0), (50, 4e-4, 1e-3, 9, 0.01, 2e-5), (200, 0, 3e-3, 29, -0.002, -1), (200, 0, 1e-3, 2, -0.002, 1e-6)]:
    x = rng.normal(0.05, 0.3, n)
    v = x.var(ddof=1) / n + fits
    half = student.ppf(0.975, n - 1) * np.sqrt(v)
    mu = x.mean()

    def interval(center, v):
        t = (v * student.ppf(0.975, n - 1) + (w * student.ppf(0.975, dof) if dof else 0)) / (v + w)
        s = np.sqrt(v + w)
        shift = np.clip(third / s**3, -1, 1) * (1 + 2 * t**2) / 6 * s
        return [center - t * s + min(0, shift), center + t * s + max(0, shift)]

    out["difference"].append({"losses": x.tolist(), "fits": fits, "draws": w, "dof": dof, "bias": bias, "third": third, "low": mu - half, "high": mu + half, "p": float(2 * student.sf(abs(mu) / np.sqrt(v), n - 1)),
                              "other": interval(mu, v), "many": interval(mu - bias, v + (bias**2 / dof if dof else 0))})

path = pathlib.Path(__file__).with_name("noise.json")
path.write_text(json.dumps(out, indent=1) + "\n")
