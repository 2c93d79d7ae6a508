"""Writes unknown.json, what TestUnknown checks relative Mahalanobis, ViM, GEN, NNGuide and SCOD against.

    python calibrate/detect/testdata/unknown.py

Written with pytorch-ood 0.4.0, PyTorch 2.15.0 and torchmetrics 1.9.0 in float64. SCOD is torch-uncertainty's 0.13.0, whose file
scod_risk_coverage.py needs only torchmetrics. Run it where these are installed. The tolerance is 1e-6.
"""

import json
import pathlib

import numpy as np
import torch
from pytorch_ood.detector import GEN, RMD, NNGuide, ViM
from torch_uncertainty.metrics.classification.scod_risk_coverage import SCODAURC

torch.set_default_dtype(torch.float64)
torch.Tensor.float = torch.Tensor.double  # pytorch-ood rounds features to float32
rng = np.random.default_rng(58)
out = []
for n, width, k, d in [(200, 6, 3, 3), (150, 9, 4, 4), (400, 4, 6, 2)]:
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    centres = rng.normal(size=(k, width)) * 2
    features = np.round(centres[y] + rng.normal(size=(n, width)), 4)
    new = np.round(rng.normal(size=(60, width)) * 3, 4)
    w, b = np.round(rng.normal(size=(k, width)), 4), np.round(rng.normal(size=k), 4)
    f, x, labels, W, B = (torch.tensor(v) for v in (features, new, y, w, b))
    head = lambda z: z @ W.T + B
    flat = lambda v: np.asarray(v).ravel().tolist()
    probs = head(x).softmax(1)
    wrong = rng.random(40) < 0.3
    scores = np.round(rng.normal(size=60), 1)  # with ties
    scod = SCODAURC()
    scod.update(torch.tensor(scores) + torch.arange(60) * 1e-9, torch.tensor(np.r_[wrong, np.zeros(20, bool)]), torch.tensor(np.r_[np.zeros(40, bool), np.ones(20, bool)]))
    scores = scores + np.arange(60) * 1e-9
    out.append({"width": width, "dimension": d, "labels": y.tolist(), "features": flat(features), "new": flat(new), "weights": flat(w), "bias": flat(b), "probs": flat(probs),
                "relative": flat(RMD(None).fit_features(f, labels).predict_features(x)), "vim": flat(ViM(None, d, W, B).fit_features(f, labels).predict_features(x)),
                "gen": flat(GEN.score(head(x))), "nnguide": flat(NNGuide(None, head).fit_features(f, labels).predict_features(x)),
                "scores": scores.tolist(), "wrong": wrong.tolist(), "scod": float(scod.compute())})
pathlib.Path(__file__).with_name("unknown.json").write_text("[\n" + ",\n".join(json.dumps(o, separators=(",", ":")) for o in out) + "\n]\n")
