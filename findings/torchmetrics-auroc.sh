#!/bin/sh
# Expected: the area under the ROC curve depends on the order of scores alone, so scores of any size may be given.
# Happens: scores outside 0 … 1 are taken for logits and sent through the logistic function in float32. From about 17 up all are 1,
#   and their order is lost: perfectly ordered energies, distances or maximal logits between 20 and 30 have the area 0.5. In float64
#   it is lost from 37 up.
# Versions: torchmetrics 1.9.0, torch 2.15.0.
# Matters: detectors of unknown inputs give such scores. A perfect one looks like chance.
# Source: the logistic function is documented; the loss of order was seen by running.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import near, seen, versions
import torch
from torchmetrics.functional.classification import binary_auroc, binary_average_precision

versions("torchmetrics", "torch")
known = torch.tensor([0, 0, 0, 1, 1, 1])
scores = torch.tensor([20., 21, 22, 23, 24, 30])
seen("scores 2.0 to 3.0", float(binary_auroc(scores / 10, known)), near(1))
seen("scores 20 to 30", float(binary_auroc(scores, known)), near(.5))
seen("scores 20 to 30 in float64", float(binary_auroc(scores.double(), known)), near(1))
seen("scores 200 to 300 in float64", float(binary_auroc(scores.double() * 10, known)), near(.5))
seen("scores 20 to 30, average precision", float(binary_average_precision(scores, known)), near(.5))
END
