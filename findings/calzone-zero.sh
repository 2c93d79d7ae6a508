#!/bin/sh
# Expected: rows of probability 0 are in the first bin of a reliability diagram; where their label is 1, they are the worst rows.
# Happens: bins of reliability_diagram are open at their lower edge, so these rows are in no bin and are left out without a message: the
#   calibration error of 200 exactly calibrated rows and 100 that are certain and wrong is 0. With .001 for 0 it is .33.
# Versions: calzone-tool 0.1.0.
# Matters: 8-bit outputs, float16, votes and trees give exact zeros, and a model that is certain and wrong passes.
# Source: reliability_diagram in calzone/utils.py compares with > at the lower edge.
. "$(dirname "$0")/lib.sh"
packages calzone-tool==0.1.0 numpy==2.4.6
check <<'END'
from seen import near, seen, versions
import numpy as np
from calzone.metrics import calculate_ece_mce
from calzone.utils import reliability_diagram

versions("calzone-tool")


def error(p, y):
    accuracy, confidence, _, count = reliability_diagram(y, np.stack([1 - p, p], 1), num_bins=10, class_to_plot=1)
    return round(float(calculate_ece_mce(accuracy, confidence, bin_counts=count)[0]), 3), int(np.sum(count))


score = np.repeat([.9, .1], 100)
label = np.repeat([1, 0, 1, 0], [90, 10, 10, 90])
seen("exactly calibrated: error, rows counted", error(score, label), near([0, 200]))
p, y = np.r_[score, np.zeros(100)], np.r_[label, np.ones(100, int)]
seen("and 100 rows of p = 0 with label 1", error(p, y), near([0, 200]))
seen("the same with p = .001", error(np.maximum(p, .001), y), near([.333, 300], .01))
END
