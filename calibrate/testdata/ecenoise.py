"""Writes ecenoise.json, the golden numbers of TestECENoise.

    pip install numpy==2.4.6
    python calibrate/testdata/ecenoise.py

The range of the ECE of a calibrated model comes from 100,000 simulated sets of labels. n = 397 is no multiple of the
number of bins: bins of equal mass are cut before the elements floor(b·n/B), not as np.array_split cuts them.
"""
import json
import pathlib

import numpy as np

rng = np.random.default_rng(7)
out = []
for n, bins, a, b in [(397, 20, 4, 1), (5000, 15, 8, 0.4)]:
    p = np.sort(rng.beta(a, b, n))
    correct = rng.random(n) < p**1.3  # too sure
    cuts = [k * n // bins for k in range(bins + 1)]

    def ece(right):
        gaps = np.stack([(p[i:j] - right[..., i:j]).sum(-1) for i, j in zip(cuts, cuts[1:])])
        return np.abs(gaps).sum(0) / n

    null = np.concatenate([ece(rng.random((1000, n)) < p) for _ in range(100)])
    square = 0
    for i, j in zip(cuts, cuts[1:]):
        y, s, m = correct[i:j].mean(), p[i:j].mean(), j - i
        square += m / n * ((s - y) ** 2 - y * (1 - y) / (m - 1))
    out.append({"bins": bins, "confidence": p.tolist(), "correct": [bool(x) for x in correct], "ece": float(ece(correct)), "mean": float(null.mean()), "low": float(np.quantile(null, 0.025)),
                "high": float(np.quantile(null, 0.975)), "debiased": float(np.sqrt(max(0, square)))})
pathlib.Path(__file__).with_name("ecenoise.json").write_text(json.dumps(out) + "\n")
