"""Writes calibrators.json, what TestCalibratorsGolden checks structured scaling, quadratic scaling and Venn-Abers against.

    python calibrate/testdata/calibrators.py

Written with probmetrics 1.3.0, venn-abers 1.5.4, scikit-learn 1.9.1, PyTorch 2.15.0 and NumPy 2.4.6. Each problem has the NLL
of other rows after a fit. The tolerance is 1e-4: probmetrics stops at a gradient of 1e-5 and keeps logits in float32.
"""

import json
import pathlib
import warnings

import numpy as np
from probmetrics.calibrators import get_calibrator
from scipy.special import expit, softmax
from venn_abers import VennAbers

warnings.simplefilter("ignore")
rng = np.random.default_rng(57)


def labels_of(z):
    return np.array([rng.choice(len(row), p=row) for row in softmax(z, 1)])


def nll(p, y):
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-300)).mean())


out = []
for i, (n, k) in enumerate([(60, 3), (300, 5), (1000, 4), (150, 10), (400, 2), (1500, 2), (80, 2)]):
    z = np.round(rng.normal(size=(2 * n, k)) * (1 + i % 3) * 1024) / 1024  # so that equal log-odds are equal bits
    mix = np.eye(k) * rng.normal(0.7, 0.2) + rng.normal(0, 0.15, (k, k))
    y = labels_of(z @ mix.T + rng.normal(0, 0.5, k))
    y[:k] = range(k)
    p = softmax(z, 1) if k > 2 else expit((z[:, [1, 0]] - z[:, [0, 1]]) * -1)
    o = {"classes": k, "logits": z[:n].ravel().tolist(), "labels": y[:n].tolist(), "new": z[n:].ravel().tolist(), "truth": y[n:].tolist()}
    names = {"svs": "svs", "sms": "sms"}
    if k == 2:
        names = {"svs": "svs", "sms": "sms", "quadratic": "quadratic-scaling"}
        va = VennAbers()
        va.fit(p[:n], y[:n])
        o["venn_abers"] = va.predict_proba(p[n:])[0][:, 1].tolist()
    for key, name in names.items():
        c = get_calibrator(name)
        c.fit(p[:n], y[:n])
        o[key] = nll(c.predict_proba(p[n:]), y[n:])
    out.append(o)
    print(n, k, nll(p[n:], y[n:]), {m: o[m] for m in names})
pathlib.Path(__file__).with_name("calibrators.json").write_text("[\n" + ",\n".join(json.dumps(o, separators=(",", ":")) for o in out) + "\n]\n")
