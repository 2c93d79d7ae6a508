#!/bin/sh
# Expected: rps_score takes labels 0 … C − 1, as every classifier of Python writes them, or raises an error for a label that it does
#   not know.
# Happens: it counts categories from 1. The label 0 is no category at all: the score then has another meaning and reaches 2.3 of at most
#   2 for three classes. Each other label is taken for its neighbour below.
# Versions: scoringrules 0.10.0.
# Matters: the ranked probability score of ordered classes (grades, stages) ranks methods by the wrong classes, without an error.
# Source: the package documents the categories 1 to K; that other labels pass was seen by running.
. "$(dirname "$0")/lib.sh"
packages $SCORES
check <<'END'
from seen import near, seen, versions
import numpy as np, scoringrules

versions("scoringrules")
probability = np.array([[.7, .2, .1], [.1, .2, .7]])


def by_hand(label):
    return ((probability.cumsum(1) - (np.arange(3) >= np.array(label)[:, None])) ** 2).sum(1)


seen("by hand, labels 0 and 2", by_hand([0, 2]).round(3), near([.1, .1]))
seen("labels 1 and 3", scoringrules.rps_score(np.array([1, 3]), probability), near([.1, .1]))
seen("labels 0 and 2", scoringrules.rps_score(np.array([0, 2]), probability), near([2.3, .5]))
END
