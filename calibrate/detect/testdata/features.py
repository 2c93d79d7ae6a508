"""Writes features.json, what TestFeatures checks this package against.

    python features.py > features.json

Written with Python 3.11.7, NumPy 2.4.6, scikit-learn 1.9.1, PyTorch 2.15.0 and pytorch-ood 0.4.0.

Tolerance of the test: 1e-9, absolute or relative. scikit-learn's pseudo-inverse has the same cut. pytorch-ood adds 1e-6
to the covariance times n, so this script holds it to scikit-learn within 1e-4.
"""

import json

import numpy as np
import torch
from pytorch_ood.detector import KNN, Mahalanobis
from sklearn.covariance import EmpiricalCovariance
from sklearn.neighbors import NearestNeighbors

torch.set_default_dtype(torch.float64)
problems = []
for seed, n, width, classes, dead in ((1, 40, 5, 3, 0), (2, 30, 6, 2, 2), (3, 8, 12, 2, 0)):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    x = np.round(rng.normal(0, 1, (n, width)) + 2 * np.eye(width)[y], 3)
    new = np.round(rng.normal(0, 1.5, (6, width)), 3)
    x[:, :dead], new[:, :dead] = 0, 0  # features behind a ReLU that never fires
    means = np.array([x[y == c].mean(0) for c in range(classes)])
    precision = EmpiricalCovariance(assume_centered=True).fit(x - means[y]).precision_
    distances = np.min([np.einsum("ij,jk,ik->i", new - m, precision, new - m) for m in means], 0)
    if n > width:
        theirs = Mahalanobis(None).fit_features(torch.tensor(x), torch.tensor(y)).predict_features(torch.tensor(new)) * 2 * n
        assert np.allclose(theirs, distances, rtol=1e-4), (theirs, distances)
    k = 4
    unit = lambda z: z / np.linalg.norm(z, axis=1, keepdims=True)
    near = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(unit(x)).kneighbors(unit(new))[0][:, -1]
    theirs = KNN(None, k=k, normalize=True).fit_features(torch.tensor(x), torch.tensor(y)).predict_features(torch.tensor(new))
    assert np.allclose(theirs, near)
    problems.append({"width": width, "labels": y.tolist(), "features": x.ravel().tolist(), "new": new.ravel().tolist(), "distances": distances.tolist(), "k": k, "near": near.tolist()})
print("[\n" + ",\n".join(json.dumps(p, separators=(",", ":")) for p in problems) + "\n]")
