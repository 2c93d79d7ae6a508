"""Golden moments, rank correlations and distances, by NumPy and SciPy.

Ran with Python 3, numpy and scipy as printed into golden.json:

    python internal/moments/testdata/make.py
"""
import json
import pathlib

import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(28)
out = {"numpy": np.__version__, "scipy": scipy.__version__}

# Pictures: 12 of 3 channels of 4 by 5 pixels.
x = rng.normal(size=(12, 3, 4, 5)).astype(np.float32) * np.array([1, 2, 0.5], np.float32)[:, None, None] + 1
x[:, 1, 0] = 0
d = x.astype(np.float64)
flat = d.transpose(1, 0, 2, 3).reshape(3, 12, 20)
mean, var = flat.mean((1, 2)), flat.var((1, 2))
squares = ((flat - mean[:, None, None]) ** 2).mean(2)
out["channels"] = {
    "values": x.ravel().tolist(), "mean": mean.tolist(), "std": np.sqrt(var).tolist(),
    "mean_std": flat.mean(2).std(1, ddof=1).tolist(), "variance_std": (squares.std(1, ddof=1) / var).tolist(),
    "min": flat.min((1, 2)).tolist(), "max": flat.max((1, 2)).tolist(), "zeros": (flat == 0).mean((1, 2)).tolist(),
    "covariance": [float(np.cov(flat.mean(2))[i, j]) for i in range(3) for j in range(i + 1, 3)],
}

# A table: 33 rows for training, so that the 33 quantiles are all of its values, and 20 others.
train = np.stack([rng.normal(size=33), rng.integers(0, 3, 33), rng.lognormal(size=33)], 1).astype(np.float32)
test = np.stack([rng.normal(0.7, 1.5, size=20), rng.integers(0, 4, 20), rng.lognormal(1, size=20)], 1).astype(np.float32)
rho = stats.spearmanr(train).statistic
out["columns"] = {
    "train": train.ravel().tolist(), "test": test.ravel().tolist(),
    "quantiles": np.sort(train, 0).T.tolist(), "spearman": [float(rho[i, j]) for i in range(3) for j in range(i + 1, 3)],
    "distance": [float(stats.ks_2samp(train[:, k], test[:, k]).statistic) for k in range(3)],
    "whole": (train == np.trunc(train)).mean(0).tolist(),
    "mean": ((test.astype(float).mean(0) - train.astype(float).mean(0)) / train.astype(float).std(0)).tolist(),
    "ratio": (test.astype(float).std(0) / train.astype(float).std(0)).tolist(),
}

# The chance that k or more of n values lie outside the range of m others, by simulation.
n, m, runs = 6, 5, 200_000
r = rng.random((runs, n + m))
outside = (r[:, :n] < r[:, n:].min(1, keepdims=True)).sum(1) + (r[:, :n] > r[:, n:].max(1, keepdims=True)).sum(1)
out["outside"] = {"n": n, "m": m, "chance": [float((outside >= k).mean()) for k in range(n + 1)]}

pathlib.Path(__file__).with_name("golden.json").write_text(json.dumps(out) + "\n")
