"""Writes predictions of two targets and of three labels in four formats, and repair.json: what
SciPy, NumPy and uncertainty-toolbox make of them.

    pip install numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 pyarrow==26.0.1 uncertainty-toolbox==0.1.1
    python internal/study/scaling/testdata/repair.py

Tolerance of the tests: 1e-9, absolute or relative, for what comes of .npz, and 1e-7 for what was
fitted by SciPy's minimisers, whose steps end there.
"""

import json
import pathlib

import numpy as np
import pandas as pd
import uncertainty_toolbox as uct
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import norm

HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(31)
T, S = 2, 3  # targets, members


def regression(n):
    """Two targets in units of their own; errors are larger than is said, of the second smaller."""
    centre = np.array([500.0, -0.2]) + np.array([30.0, 0.05]) * rng.normal(size=(n, T))
    member = np.float32(centre[:, None] + np.array([4.0, 0.02]) * rng.normal(size=(n, S, T)))
    std = np.float32(np.array([6.0, 0.05]) * np.exp(0.3 * rng.normal(size=(n, S, T))))
    wide = member.astype(float), std.astype(float)
    mean, aleatoric, epistemic = wide[0].mean(1), np.sqrt((wide[1] ** 2).mean(1)), wide[0].std(1)
    target = mean + np.array([14.0, 0.02]) * rng.standard_t(8, size=(n, T))
    return {"target": target, "mean": mean, "std": np.hypot(aleatoric, epistemic), "aleatoric_std": aleatoric, "epistemic_std": epistemic, "member_mean": member, "member_std": std}


def flat(data):
    """Columns as score's CSV has them."""
    out = {}
    for name, a in data.items():
        if name.startswith("member_"):
            for s in range(S):
                for t in range(T):
                    out[f"member_{s}_{name[7:]}_{t}"] = a[:, s, t]
        else:
            for t in range(a.shape[1]):
                out[f"{name}_{t}"] = a[:, t]
    return pd.DataFrame(out)


fit, test = regression(45), regression(50)
np.savez_compressed(HERE / "fit.npz", **fit)
np.savez_compressed(HERE / "test.npz", **test)
open_fit = {k: fit[k] for k in ("target", "mean", "epistemic_std", "member_mean")}
np.savez_compressed(HERE / "open.npz", **open_fit)
flat(fit).to_csv(HERE / "fit.csv", index=False)
flat(fit).to_parquet(HERE / "flat.parquet")
pd.DataFrame({k: list(v.tolist()) for k, v in fit.items()}).to_parquet(HERE / "lists.parquet")
with open(HERE / "fit.jsonl", "w") as f:
    for i in range(45):
        if i == 7:  # as score writes what it could not read
            f.write(json.dumps({"path": "x", "error": "no picture"}) + "\n")
        f.write(json.dumps({"path": str(i)} | {k: v[i].tolist() for k, v in fit.items()}) + "\n")


def gaussian(d, factor=1.0):
    return -norm.logpdf(d["target"], d["mean"], np.sqrt(factor) * d["std"])


def mixture(d, means, variances):
    y = d["target"][:, None]
    return -(logsumexp(norm.logpdf(y, means, np.sqrt(variances)), axis=1) - np.log(S))


def drawn_out(d, factor):
    m = d["member_mean"].astype(float)
    centre = m.mean(1, keepdims=True)
    return mixture(d, centre + np.sqrt(factor) * (m - centre), factor * d["member_std"].astype(float) ** 2)


z2 = ((fit["target"] - fit["mean"]) / fit["std"]) ** 2
one, each = z2.mean(), z2.mean(0)


def least(f, lo, hi):
    u = minimize_scalar(f, bounds=(np.log(lo), np.log(hi)), method="bounded", options={"xatol": 1e-12}).x
    return float(np.exp(u))


by_members, by_moments = [], []
for t in range(T):
    scale = np.mean((fit["target"] - fit["mean"])[:, t] ** 2)
    m, y = fit["member_mean"][:, :, t].astype(float), fit["target"][:, t]
    nll = lambda u: -(logsumexp(norm.logpdf(y[:, None], m, np.exp(u / 2)), axis=1) - np.log(S)).mean()
    by_members.append(np.sqrt(least(nll, scale / 100, scale * 100)))
    nll = lambda u: -norm.logpdf(y, fit["mean"][:, t], np.sqrt(fit["epistemic_std"][:, t] ** 2 + np.exp(u))).mean()
    by_moments.append(np.sqrt(least(nll, scale / 100, scale * 100)))

maps, mace, coverage, width = [], {"before": 0, "after": 0}, 0, 0
for t in range(T):
    pit = np.sort(norm.cdf(fit["target"][:, t], fit["mean"][:, t], fit["std"][:, t]))
    knots, levels = np.concatenate([[0], pit]), np.arange(len(pit) + 1) / len(pit)
    low, high = (test["mean"][:, t] + test["std"][:, t] * norm.ppf(np.interp(p, levels, knots)) for p in (0.025, 0.975))
    y = test["target"][:, t]
    coverage += np.mean((low <= y) & (y <= high)) / T
    width += np.mean(high - low) / T
    mace["before"] += uct.mean_absolute_calibration_error(test["mean"][:, t], test["std"][:, t], y, prop_type="interval") / T
    # what is recalibrated has the PIT R(F(y)); as a standard normal it goes through the same function
    after = np.interp(norm.cdf(y, test["mean"][:, t], test["std"][:, t]), np.append(knots, 1), np.append(levels, 1))
    inside = np.clip(after, 1e-300, 1 - 1e-16)
    mace["after"] += uct.mean_absolute_calibration_error(np.zeros(len(y)), np.ones(len(y)), norm.ppf(inside), prop_type="interval") / T

# Labels: log-odds twice as far out as they should be, and off by a constant; some are not known.
n, L, RIDGE = 80, 3, 1e-5
fair = rng.normal(size=(n, L))
known = (rng.random((n, L)) < expit(fair)).astype(np.int64)
known[rng.random((n, L)) < 0.1] = -1
odds = 2 * fair + np.array([0.5, -1, 0])
probs = expit(odds)
np.savez_compressed(HERE / "labels.npz", labels=known, probabilities=probs)
np.savez_compressed(HERE / "logits.npz", labels=known, logits=odds)
pd.DataFrame({f"label_{k}": known[:, k] for k in range(L)} | {f"probability_{k}": probs[:, k] for k in range(L)}).to_csv(HERE / "labels.csv", index=False)
seen = known >= 0
sign = 2 * known - 1.0
temperature = 1 / least(lambda u: -log_expit(sign * odds * np.exp(u))[seen].mean(), 1e-2, 1e2)
temperatures, platt = [], []
for k in range(L):
    z, s = odds[seen[:, k], k], sign[seen[:, k], k]
    temperatures.append(1 / least(lambda u: -log_expit(s * z * np.exp(u)).mean(), 1e-2, 1e2))
    loss = lambda x: -log_expit(s * (x[0] * z + x[1])).mean() + RIDGE / 2 * ((x[0] - 1) ** 2 + x[1] ** 2)
    platt.append(minimize(loss, [1, 0], method="BFGS", options={"gtol": 1e-11}).x.tolist())

golden = {
    "factor": float(one), "factors": each.tolist(), "by_members": by_members, "by_moments": by_moments,
    "test": {
        "nll": gaussian(test).mean(), "nll_variance": gaussian(test, one).mean(), "nll_variances": gaussian(test, each).mean(),
        "mixture": drawn_out(test, 1.0).mean(), "mixture_variance": drawn_out(test, one).mean(), "mixture_variances": drawn_out(test, each).mean(),
        "mace": mace["before"], "mace_isotonic": mace["after"], "coverage_isotonic": coverage, "width_isotonic": width,
    },
    "labels": {"temperature": temperature, "temperatures": temperatures, "platt": platt, "nll": float(-log_expit(sign * odds)[seen].mean()),
               "nll_temperature": float(-log_expit(sign * odds / temperature)[seen].mean())},
}
(HERE / "repair.json").write_text(json.dumps(golden, indent=1, default=float) + "\n")
