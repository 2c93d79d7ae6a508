#!/usr/bin/env python3
"""Write check.json: what bnupdate.Plan.Check computes, with NumPy alone. Run with numpy 2.3: python check.py

Statistics of the images are the mean over equal batches of means and of unbiased variances (the reference's bn_update).
"""

import json
import pathlib

import numpy as np

rng = np.random.default_rng(1)
CHANNELS, BATCHES, IMAGES, EPSILON = 5, 4, 32, 1e-3


def place(f):
    """Where in an interval the weights are that a moving average is of, if it goes 1/f of its way there."""
    return 1.0 if f <= 1 else f + 1 / np.log1p(-1 / f)


def check(stored, batches):
    """The biases of means and variances, and their standard errors."""
    last = batches[-1]
    unbiased = lambda v: v * IMAGES / (IMAGES - 1)
    r_mean = [np.mean([b[0] for b in k], 0) for k in batches]
    r_var = [np.mean([unbiased(b[1]) for b in k], 0) + EPSILON for k in batches]
    v = r_var[-1]
    noise = [np.mean(np.var([b[0] for b in last], 0, ddof=1) / BATCHES / v),
             np.mean(np.var([unbiased(b[1]) for b in last], 0, ddof=1) / BATCHES / v ** 2)]
    series = []
    for j, (r, scale) in enumerate(((r_mean, np.sqrt(v)), (r_var, v))):
        s = np.array([k[j] + (EPSILON if j else 0) for k in stored[-len(batches):]]) / scale
        series.append((s, np.array(r) / scale))
    n = len(batches) - 1
    together = []
    for j, scale in ((0, np.sqrt(v)), (1, v)):
        d = np.diff([k[j] for k in stored], axis=0) / scale
        together.append(np.sum(d[1:] * d[:-1]) / np.sum((d[1:] ** 2 + d[:-1] ** 2) / 2))
    most = 4 / max(1 - max(np.mean(together), 0), 4e-3)
    f = 1.0
    for _ in range(10):  # weighted least squares of the means over t
        design, target = [], []
        for (s, r), common in zip(series, noise):
            x = (1 - place(f)) * r[:-1] + place(f) * r[1:]
            u, e = s[1:] - s[:-1], x - s[:-1]
            sd = np.sqrt(np.var(f * u - e, 0, ddof=1).mean() / n + common)
            design, target = np.append(design, u.mean(0) / sd), np.append(target, e.mean(0) / sd)
        f = float(np.clip(np.linalg.lstsq(design[:, None], target, rcond=None)[0][0], 1, most))
    out = []
    for j, ((s, r), common) in enumerate(zip(series, noise)):
        x = (1 - place(f)) * r[:-1] + place(f) * r[1:]
        seen = s[:-1] + f * (s[1:] - s[:-1])
        y = np.log(np.maximum(seen, s[1:] / 100) / x) if j else seen - x
        out.append((np.sqrt(np.mean(y.mean(0) ** 2)), np.sqrt(np.var(y, 0, ddof=1).mean() / n + common)))
    return f, dict(means=out[0][0], expected_means=out[0][1], variances=out[1][0], expected_variances=out[1][1])


def case(name, share, shift):
    """Weights walk; what is stored goes by share towards the average of the interval."""
    mean, log = rng.normal(size=CHANNELS), rng.normal(size=CHANNELS) / 3
    offsets = rng.normal(size=(BATCHES, 2, CHANNELS)) / np.sqrt(IMAGES)
    stored, batches, s = [], [], np.array([mean, np.exp(log)])
    for k in range(7):
        before = np.array([mean, np.exp(log)])
        mean, log = mean + rng.normal(size=CHANNELS) * 0.1, log + rng.normal(size=CHANNELS) * 0.1
        now = np.array([mean, np.exp(log)])
        s = s + share * ((1 - place(1 / share)) * before + place(1 / share) * now - s)
        stored.append(s.astype("f4").astype(float))
        if k >= 2:
            batches.append([np.array([mean + shift + np.exp(log / 2) * o[0], np.exp(log) * (1 + o[1]) * (IMAGES - 1) / IMAGES])
                            .astype("f4").astype(float) for o in offsets])
    f, want = check(stored, batches)
    print(name, f, want)
    return dict(name=name, epsilon=EPSILON, images=IMAGES, want=want, batches=[[b.tolist() for b in k] for k in batches],
                stored=[k.tolist() for k in stored])


cases = [case("fast", 1.0, 0), case("slow", 0.3, 0), case("very slow", 0.05, 0), case("slow, shifted", 0.3, 0.5)]
pathlib.Path(__file__).with_name("check.json").write_text(json.dumps(cases))
