#!/bin/sh
# Expected: VoteEnsemble returns the class that most members voted for, from maps of class numbers as from one-hot maps.
# Happens: without num_classes it returns the rounded mean of the class numbers. The votes 2, 2, 0 give class 1, which nobody voted for.
#   With num_classes=3 they give 2. Ties go to the lower number.
# Versions: monai 1.6.1, torch 2.15.0.
# Matters: the vote of the members of an average, or of folds, on masks of three or more classes draws a rim of a third class between two.
# Source: num_classes is documented as for one-hot results; the class without votes was seen by running.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import seen, versions
import torch
from monai.transforms import MeanEnsemble, VoteEnsemble

versions("monai", "torch")
votes = [torch.tensor([[2]]), torch.tensor([[2]]), torch.tensor([[0]])]
seen("2, 2, 0", int(VoteEnsemble()(votes)), lambda v: v == 1)
seen("2, 2, 0 with num_classes=3", int(VoteEnsemble(num_classes=3)(votes)), lambda v: v == 2)
seen("1, 1, 0", int(VoteEnsemble()([torch.tensor([[v]]) for v in (1, 1, 0)])), lambda v: v == 1)
END
