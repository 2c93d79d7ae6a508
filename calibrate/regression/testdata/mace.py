"""Writes mace.json: uncertainty-toolbox's mean absolute calibration error.

    pip install numpy==2.4.6 scipy==1.17.1 uncertainty-toolbox==0.1.1
    python calibrate/regression/testdata/mace.py
"""

import json
import pathlib

import numpy as np
import uncertainty_toolbox as uct
from scipy.stats import norm

rng = np.random.default_rng(29)
cases = []
for n, wrong, shift in [(7, 1.0, 0.0), (200, 1.0, 0.0), (200, 0.5, 0.0), (333, 2.0, 0.3), (50, 1.0, -2.0)]:
    mu, std = rng.normal(size=n).round(4), rng.uniform(0.5, 2, n).round(4)
    y = (mu + shift + wrong * std * rng.normal(size=n)).round(4)
    expected, observed = uct.metrics_calibration.get_proportion_lists_vectorized(mu, std, y, num_bins=100, prop_type="interval")
    cases.append({
        "pits": norm.cdf(y, mu, std).tolist(),
        "levels": expected[10:91:20].tolist(),
        "coverages": observed[10:91:20].tolist(),
        "mace": float(uct.mean_absolute_calibration_error(mu, std, y, num_bins=100, vectorized=True, prop_type="interval")),
    })
pathlib.Path(__file__).with_name("mace.json").write_text(json.dumps(cases, indent=0) + "\n")
