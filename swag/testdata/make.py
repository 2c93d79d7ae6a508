"""Writes golden.json: moments and deviations of small sets of iterates.

    python make.py        (Python 3.11, NumPy 2.4)

Brute force: the formulas of Algorithm 1 in exact rational arithmetic, rounded
once to float64, or to float32 for the deviations. Nothing is accumulated, so
the tolerance of the Go test, 1e-12, is for Go's rounding alone.
"""

import json
import pathlib
from fractions import Fraction

import numpy as np

D, T, K = 12, 7, 3


def about(given, thetas, rank, diag_only):
    """The checkpoints about a given mean m: the diagonal is E[(θ−m)²], the columns are θ−m of the last ones."""
    centre = [Fraction(float(v)) for v in given]
    columns = [[Fraction(float(v)) - m for v, m in zip(t, centre)] for t in thetas]
    kept = [] if diag_only else columns[-rank:]
    return {
        "mean": [float(m) for m in centre],
        "variance": [float(sum(v * v for v in row) / len(thetas)) for row in zip(*columns)],
        "deviations": [float(np.float32(float(c[i]))) for i in range(D) for c in kept],
    }


def moments(theta0, thetas, rank, diag_only):
    models = ([] if theta0 is None else [theta0]) + thetas
    exact = [[Fraction(float(v)) for v in m] for m in models]

    def mean(rows):  # of each weight, over the models given
        return [sum(column, Fraction(0)) / len(rows) for column in zip(*rows)]

    first = mean(exact)
    second = mean([[v * v for v in m] for m in exact])
    columns = []
    for i in range(len(models) - len(thetas), len(models)):  # θ0 has no column
        columns.append([a - b for a, b in zip(exact[i], mean(exact[: i + 1]))])
    columns = [] if diag_only else columns[-rank:]
    return {
        "mean": [float(m) for m in first],
        "variance": [float(s - m * m) for s, m in zip(second, first)],
        "deviations": [float(np.float32(float(c[i]))) for i in range(D) for c in columns],  # row-major, D×K
    }


def final(thetas, rank):
    """The low-rank covariance of --deviations final, by a singular value decomposition of the deviations from their mean."""
    exact = [[Fraction(float(v)) for v in t] for t in thetas]
    mean = [sum(column, Fraction(0)) / len(exact) for column in zip(*exact)]
    delta = np.array([[float(v - m) for v, m in zip(t, mean)] for t in exact])
    _, values, rows = np.linalg.svd(delta, full_matrices=False)
    part = values[:rank, None] * rows[:rank]
    part[:, ~delta.any(0)] = 0  # a weight that does not move; the decomposition leaves rounding there
    return (part.T @ part / (len(thetas) - 1)).ravel().tolist()


rng = np.random.default_rng(1902)
center = np.array([0, 1, 1, 1, -1, 0.5, 3, -20, 1e3, 1e-6, 0.1, 2])
spread = np.array([1, 1e-4, 1e-3, 0, 1e-4, 0.1, 1, 2, 30, 1e-7, 0.05, 1e-3])
iterates = [(center + spread * rng.standard_normal(D)).astype(np.float32) for _ in range(T + 1)]
theta0, thetas = iterates[0], iterates[1:]

given = (np.mean(thetas, 0) + 0.3 * spread * rng.standard_normal(D)).astype(np.float32)  # such as a mean of batches

cases = []
for name, start, mean, some, rank, diag_only in [
    ("T=7 K=3", None, None, thetas, K, False),
    ("T=7 K=3 theta0", theta0, None, thetas, K, False),
    ("T=2 K=3", None, None, thetas[:2], K, False),
    ("T=2 K=3 theta0", theta0, None, thetas[:2], K, False),
    ("T=7 diagonal", None, None, thetas, K, True),
    ("T=7 K=3 given mean", None, given, thetas, K, False),
    ("T=2 K=3 given mean", None, given, thetas[:2], K, False),
    ("T=7 diagonal, given mean", None, given, thetas, K, True),
]:
    cases.append({
        "name": name,
        "rank": rank,
        "diag_only": diag_only,
        "theta0": None if start is None else [float(v) for v in start],
        "given": None if mean is None else [float(v) for v in mean],
        "thetas": [[float(v) for v in t] for t in some],
        **(moments(start, some, rank, diag_only) if mean is None else about(mean, some, rank, diag_only)),
        "final": [] if diag_only else final(([] if start is None else [start]) + some, rank),
    })
out = pathlib.Path(__file__).with_name("golden.json")
out.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
