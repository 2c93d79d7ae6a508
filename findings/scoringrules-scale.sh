#!/bin/sh
# Expected: the CRPS is never negative, and a standard deviation below 0 is an error or NaN.
# Happens: crps_normal of a negative standard deviation is the negative of the score: the further the head goes below 0, the better it
#   looks. A standard deviation of 0 gives NaN, though the score has the limit |y − µ|. properscoring does the same at 0.
# Versions: scoringrules 0.10.0, properscoring 0.1.
# Matters: a network with a variance head whose output is read without softplus, or an average of two such heads, wins the comparison.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $SCORES
check <<'END'
from seen import near, seen, versions
import numpy as np, properscoring, scoringrules

versions("scoringrules", "properscoring")
score = lambda sd: float(scoringrules.crps_normal(.5, 0., sd))
seen("sd 1", score(1.), near(.3314))
seen("sd -1", score(-1.), near(-.3314))
seen("sd -100", score(-100.), lambda s: s < -20)
seen("sd 0, and the limit 0.5: scoringrules", (score(0.), round(score(1e-9), 4)), lambda r: np.isnan(r[0]) and abs(r[1] - .5) < 1e-4)
seen("sd 0: properscoring", float(properscoring.crps_gaussian(.5, 0., 0.)), np.isnan)
END
