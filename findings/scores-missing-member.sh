#!/bin/sh
# Expected: an ensemble with a NaN member has a NaN score, in every library that has the CRPS.
# Happens: properscoring, and xskillscore which calls it, leave the member out. A failed member does not show, and the score is that of a
#   smaller ensemble. scoringrules gives NaN.
# Versions: properscoring 0.1, xskillscore 0.0.29, scoringrules 0.10.0.
# Matters: one member of an average whose outputs are NaN, say for wrong batch-norm statistics, stays unseen in the table of scores.
# Source: properscoring documents that NaN is ignored; xskillscore and the difference between libraries were seen by running.
. "$(dirname "$0")/lib.sh"
packages $SCORES
check <<'END'
from seen import near, seen, versions
import numpy as np, properscoring, scoringrules, xarray, xskillscore

versions("properscoring", "xskillscore", "scoringrules")
members = np.random.default_rng(0).standard_normal((1, 10))
truth = np.array([.3])
broken = members.copy()
broken[0, 3] = np.nan
nine = float(properscoring.crps_ensemble(truth, np.delete(members, 3, 1))[0])
both = [round(float(f(truth, members)[0]), 6) for f in (properscoring.crps_ensemble, scoringrules.crps_ensemble)]
seen("ten members", both, lambda r: abs(r[0] - r[1]) < 1e-6)
seen("the other nine alone", nine, nine > 0)
seen("properscoring, one of them NaN", float(properscoring.crps_ensemble(truth, broken)[0]), near(nine, 1e-12))
got = xskillscore.crps_ensemble(xarray.DataArray(truth, dims="x"), xarray.DataArray(broken, dims=("x", "member")), dim=[]).values
seen("xskillscore", float(got[0]), near(nine, 1e-12))
seen("scoringrules", float(scoringrules.crps_ensemble(truth, broken)[0]), np.isnan)
END
