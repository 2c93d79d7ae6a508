#!/bin/sh
# Expected: the factor for standard deviations that are ten times too large is .1.
# Happens: optimize_recalibration_ratio gives 100, the end of its range: they are then a thousand times too large. Its search begins where the
#   calibration error of such deviations hardly changes, and goes up. Three times too large, and 50 times too small, it is right.
# Versions: uncertainty-toolbox 0.1.1, scipy 1.17.1.
# Matters: deviations that are far too large are usual for posteriors (damping, prior), and this function is there to mend them. It warns of nothing.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 uncertainty-toolbox==0.1.1
check <<'END'
from seen import near, seen, versions
import numpy as np, uncertainty_toolbox as uct

versions("uncertainty-toolbox", "scipy")
rng = np.random.default_rng(0)
mean = rng.standard_normal(1000)
labels = mean + rng.standard_normal(1000)
for deviation, want in (.02, 1), (.5, 1), (1, 1), (3, 1), (10, 1000), (50, 5000):
    for criterion in "ma_cal", "miscal":
        ratio = uct.recalibration.optimize_recalibration_ratio(mean, np.full(1000, float(deviation)), labels, criterion=criterion)
        seen(f"deviation {deviation} instead of 1, {criterion}: after it", round(float(ratio * deviation), 2), near(want, .06 * want))
error = [round(float(uct.mean_absolute_calibration_error(mean, np.full(1000, d), labels)), 3) for d in (1., 10., 1000.)]
seen("calibration error of deviations 1, 10, 1000", error, lambda e: e[0] < .03 and e[1] > .4 and e[2] > .48)
END
