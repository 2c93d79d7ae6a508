"""Writes golden.json, the numbers that this package is tested against.

    pip install numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 properscoring==0.1 uncertainty-toolbox==0.1.1
    python calibrate/regression/testdata/make.py

Tolerance of the tests: 1e-9, absolute or relative. Mixtures' CRPS is here the integral of
(F(x) − 1[x ≥ y])² by scipy.integrate.quad between points a few standard deviations apart
about each member, good to 1e-12; quantiles are brentq's roots of the distribution function.
Inputs have few decimals, so that both sides see the same bits.
"""

import json
import pathlib

import numpy as np
import properscoring
import uncertainty_toolbox as uct
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

rng = np.random.default_rng(19)
LEVELS = [1e-12, 1e-3, 0.025, 0.3, 0.5, 0.9, 0.975, 1 - 2**-30]


class Mixture:
    def __init__(self, means, variances, weights=None):
        self.mu, self.sd = np.array(means, float), np.sqrt(np.array(variances, float))
        self.w = np.full(len(self.mu), 1 / len(self.mu)) if weights is None else np.array(weights)

    def cdf(self, x):
        return float(self.w @ norm.cdf(x, self.mu, self.sd))

    def logpdf(self, y):
        return float(logsumexp(norm.logpdf(y, self.mu, self.sd), b=self.w))

    def quantile(self, p):
        if p <= 0.5:
            f = lambda x: float(self.w @ norm.cdf(x, self.mu, self.sd)) - p
        else:
            f = lambda x: (1 - p) - float(self.w @ norm.sf(x, self.mu, self.sd))
        q = norm.ppf(p, self.mu, self.sd)
        if q.min() == q.max():
            return float(q[0])
        margin = 1e-6 * self.sd.max()
        return float(brentq(f, q.min() - margin, q.max() + margin, xtol=1e-18, rtol=9e-16))

    def crps(self, y):
        steps = np.arange(-40, 41, 2.0)
        points = np.unique(np.concatenate([(self.mu[:, None] + self.sd[:, None] * steps).ravel(), [y]]))
        total = 0.0
        for a, b in zip(points, points[1:]):
            f = (lambda x: self.cdf(x) ** 2) if b <= y else (lambda x: float(self.w @ norm.sf(x, self.mu, self.sd)) ** 2)
            total += quad(f, a, b, epsabs=1e-15, epsrel=1e-12)[0]
        return total

    def moments(self):
        mean = self.w @ self.mu
        return float(mean), float(self.w @ self.sd**2), float(self.w @ (self.mu - mean) ** 2)


def mixture(name, means, variances, ys, weights=None, levels=LEVELS):
    m = Mixture(means, variances, weights)
    mean, aleatoric, epistemic = m.moments()
    sd = np.sqrt(aleatoric + epistemic)
    return {
        "name": name, "means": list(map(float, means)), "variances": list(map(float, variances)), "weights": weights, "y": list(map(float, ys)),
        "mean": mean, "aleatoric": aleatoric, "epistemic": epistemic,
        "log_density": [m.logpdf(y) for y in ys], "cdf": [m.cdf(y) for y in ys], "crps": [m.crps(y) for y in ys],
        "gaussian_log_density": [float(norm.logpdf(y, mean, sd)) for y in ys],
        "gaussian_cdf": [float(norm.cdf(y, mean, sd)) for y in ys],
        "gaussian_crps": [float(properscoring.crps_gaussian(y, mean, sd)) for y in ys],
        "levels": levels, "quantiles": [m.quantile(p) for p in levels],
        "gaussian_quantiles": [float(norm.ppf(p, mean, sd)) for p in levels],
    }


draw = lambda n, scale=1.0: np.round(rng.normal(0, scale, n), 3)
spread = lambda n: np.round(rng.gamma(2, 0.5, n) + 0.01, 3)
inner = [0.1, 0.3, 0.9]  # levels where no flat stretch makes the quantile a matter of rounding
mixtures = [
    mixture("one", [1.5], [0.25], [1.5, 0.2, 40.0, -1e6]),
    mixture("equal", [2.0] * 4, [0.5] * 4, [2.0, 3.3, 60.0]),
    mixture("five", draw(5), spread(5), [0.0, 1.7, -3.0, 45.0]),
    mixture("thirty", draw(30), spread(30), [0.25, -2.0]),
    mixture("weighted", draw(4), spread(4), [0.5, 2.5], weights=[0.5, 0.25, 0.125, 0.125]),
    mixture("two modes", [-5.0, 5.0, 4.0], [0.1, 0.2, 0.1], [-5.0, 0.0, 4.5], levels=inner),
    mixture("tiny", [1.0, 1.000002, 0.999997], [1e-12, 4e-12, 1e-12], [1.0, 1.000001, 1.00005]),
    mixture("tiny and wide", [0.0, 0.3], [1e-12, 9.0], [1e-6, 0.2, 3.0], levels=inner),
    mixture("large", [1e6, 1.0002e6, 0.9999e6], [1e4, 4e4, 1e2], [1e6, 1.001e6]),
]

# --- metrics of two targets ---

n, targets, members = 150, 2, 4
means = np.round(rng.normal(0, 1, (n, targets, 1)) * [[[1], [20]]] + rng.normal(0, 0.3, (n, targets, members)) * [[[1], [20]]], 3)
variances = np.round(rng.gamma(3, 0.1, (n, targets, members)) * [[[1], [400]]] + 0.01, 3)
y = np.round(means.mean(2) + rng.normal(0, 0.6, (n, targets)) * [[1, 20]], 3)


def ence(error, variance, bins):
    order = np.argsort(variance, kind="stable")
    groups = [order[b * n // bins : (b + 1) * n // bins] for b in range(bins)]
    rmv = [np.sqrt(variance[g].mean()) for g in groups]
    rmse = [np.sqrt((error[g] ** 2).mean()) for g in groups]
    return float(np.mean(np.abs(np.subtract(rmv, rmse)) / rmv))


def metrics(t):
    all_ = [Mixture(means[i, t], variances[i, t]) for i in range(n)]
    mu, al, ep = map(np.array, zip(*(m.moments() for m in all_)))
    sd, yt = np.sqrt(al + ep), y[:, t]
    intervals = [(m.quantile(0.025), m.quantile(0.975)) for m in all_]
    pit = [m.cdf(v) for m, v in zip(all_, yt)]
    gaussian_pit = norm.cdf(yt, mu, sd)
    return {
        "rmse": root_mean_squared_error(yt, mu), "mae": mean_absolute_error(yt, mu), "std": sd.mean(), "aleatoric": al.mean(), "epistemic": ep.mean(),
        "ence": ence(yt - mu, sd**2, 10), "ence7": ence(yt - mu, sd**2, 7),
        "mixture": {
            "loglikelihood": np.mean([m.logpdf(v) for m, v in zip(all_, yt)]), "crps": np.mean([m.crps(v) for m, v in zip(all_, yt)]),
            "coverage": np.mean([a < v < b for (a, b), v in zip(intervals, yt)]), "width": np.mean([b - a for a, b in intervals]),
            "pit": np.histogram(pit, 10, (0, 1))[0].tolist(),
        },
        "gaussian": {
            "loglikelihood": -uct.nll_gaussian(mu, sd, yt), "crps": uct.crps_gaussian(mu, sd, yt),
            "coverage": np.mean(np.abs(yt - mu) < 1.96 * sd), "width": 2 * 1.96 * sd.mean(),
            "pit": np.histogram(gaussian_pit, 10, (0, 1))[0].tolist(),
        },
        "pits": pit,
    }


# --- recalibration and noise ---


def scaling():
    mu, v, t = draw(80), spread(80), draw(80, 2)
    nll = lambda s2: -norm.logpdf(t, mu, np.sqrt(s2 * v)).mean()
    s2 = float(np.mean((t - mu) ** 2 / v))
    found = minimize_scalar(lambda x: nll(np.exp(x)), bounds=(-5, 9), method="bounded", options={"xatol": 1e-10})
    assert abs(np.exp(found.x) - s2) < 1e-6 * s2
    return {"y": t.tolist(), "means": mu.tolist(), "variances": v.tolist(), "factor": s2, "before": -nll(1), "after": -nll(s2)}


def isotonic():
    """Kuleshov's map, by scikit-learn's pool adjacent violators, (0, 0) being known."""
    pits = np.concatenate([np.round(rng.beta(0.6, 0.9, 58), 4), [0.25, 0.25]])
    share = [(pits <= u).mean() for u in pits]
    model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(np.append(pits, 0), np.append(share, 0))
    grid = np.linspace(0, 1, 41)
    levels = [0.01, 0.025, 0.2, 0.5, 0.77, 0.975]
    knots = np.unique(pits)
    inverse = np.interp(levels, np.append(0, model.predict(knots)), np.append(0, knots))
    return {"pits": pits.tolist(), "grid": grid.tolist(), "map": model.predict(grid).tolist(), "levels": levels, "inverse": inverse.tolist()}


def noise(members, weights=None, apart=1.0):
    rows = 40
    t = draw(rows)
    mu = np.round(t[:, None] + rng.normal(0, 0.5, (rows, 1)) + rng.normal(0, apart, (rows, members)), 3)
    w = np.full(members, 1 / members) if weights is None else np.array(weights)
    d2 = (t[:, None] - mu) ** 2
    value = lambda v: logsumexp(norm.logpdf(t[:, None], mu, np.sqrt(v)), b=w, axis=1).mean()

    def slope(v):
        r = w * np.exp(-(d2 - d2.min(1, keepdims=True)) / (2 * v))
        return ((r * d2).sum(1) / r.sum(1)).mean() - v

    grid = np.geomspace(1e-6, 1e3, 20001)
    values = [value(v) for v in grid]
    k = int(np.argmax(values))
    v = float(d2.mean()) if members == 1 else float(brentq(slope, grid[k - 1], grid[k + 1], xtol=1e-17, rtol=9e-16))
    return {"y": t.tolist(), "means": mu.ravel().tolist(), "members": members, "weights": weights, "variance": v, "log_likelihood": float(value(v))}


raw = [-800.0, -40.0, -3.5, -1e-9, 0.0, 1e-3, 2.0, 30.0, 700.0]
units = norm.logpdf(12.5, 10 + 3 * 0.4, 3 * np.sqrt(0.3))
out = {
    "mixtures": mixtures,
    "metrics": {"targets": targets, "members": members, "y": y.ravel().tolist(), "means": means.ravel().tolist(), "variances": variances.ravel().tolist(), "of": [metrics(t) for t in range(targets)]},
    "scaling": scaling(),
    "isotonic": isotonic(),
    "noise": [noise(1), noise(3), noise(5, [0.5, 0.2, 0.1, 0.1, 0.1]), noise(8, apart=0.2), noise(4, apart=3.0)],
    "heads": {"raw": raw[1:], "softplus": np.logaddexp(0, raw[1:]).tolist(), "exp": np.exp(raw[1:]).tolist()},
    "units": {"mean": 10, "std": 3, "z_mean": 0.4, "z_variance": 0.3, "y": 12.5, "log_density": float(units)},
}
path = pathlib.Path(__file__).parent / "golden.json"
path.write_text(json.dumps(out, default=float, separators=(",", ":")) + "\n")
