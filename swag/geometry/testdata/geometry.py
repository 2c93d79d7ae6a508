"""Writes geometry.json: the shape of SWAG's covariance, by NumPy's singular value
decomposition of the deviations.

    python geometry.py        (NumPy 2.x)

All in float64 from float32 iterates, with dense d×d matrices throughout: nothing
here goes through a K×K Gram matrix. Directions are up to their signs.
"""

import json
import pathlib

import numpy as np

D, T = 90, 9
rng = np.random.default_rng(5)
centre = rng.normal(size=D) * 10.0 ** np.linspace(-2, 1, D)
drift = np.cumsum(rng.normal(size=(T, 3)), axis=0) @ rng.normal(size=(3, D)) * 0.1
thetas = (centre + drift + rng.normal(size=(T, D)) * 10.0 ** np.linspace(-3, -1, D)).astype(np.float32).astype(float)
thetas[:, 7] = thetas[0, 7]  # a frozen weight

cases = []
for deviations, models, rank in [("running", 9, 5), ("running", 4, 20), ("final", 9, 5), ("final", 4, 20)]:
    x = thetas[:models]
    mean, variance = x.mean(0), x.var(0)
    if deviations == "running":
        d = np.array([x[t] - x[: t + 1].mean(0) for t in range(models)])[-rank:]
        low_rank = d.T @ d / (len(d) - 1)
        last = len(d)
    else:
        u, s, v = np.linalg.svd(x - mean, full_matrices=False)
        keep = min(rank, models - 1)
        d = s[:keep, None] * v[:keep]
        low_rank = d.T @ d / (models - 1)
        last = models
    _, s, v = np.linalg.svd(d, full_matrices=False)
    n = int((s > 1e-6 * s[0]).sum())
    v = v[:n]
    full = np.diag(variance) + low_rank
    offsets = x[-last:] - mean
    cases.append({
        "deviations": deviations,
        "models": models,
        "rank": rank,
        "eigenvalues": np.sort(np.linalg.eigvalsh(low_rank))[::-1][:n].tolist(),
        "directions": v.tolist(),
        "covariance": (v @ full @ v.T).tolist(),
        "traces": [variance.sum(), np.trace(low_rank)],
        "dimensions": [np.trace(full) ** 2 / np.trace(full @ full), np.trace(low_rank) ** 2 / np.trace(low_rank @ low_rank)],
        "iterates": (offsets @ v.T).tolist(),
        "distances": np.linalg.norm(offsets, axis=1).tolist(),
    })
path = pathlib.Path(__file__).with_name("geometry.json")
path.write_text(json.dumps({"thetas": thetas.tolist(), "cases": cases}) + "\n")
print(path, np.__version__, [len(c["eigenvalues"]) for c in cases])
