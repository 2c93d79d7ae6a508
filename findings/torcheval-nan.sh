#!/bin/sh
# Expected: scores that are all NaN, or all the same, count as wrong, as chance, or are refused.
# Happens: in multiclass_accuracy with k=2, hit_rate and reciprocal_rank they are right in every row: only scores above the label's own
#   count against it. With k=1, accuracy takes the first class. binary_auroc of NaN depends on the order of rows: 1, 0, or between.
# Versions: torcheval 0.0.7, torch 2.15.0.
# Matters: a diverged model wins a comparison by top-k accuracy. Rows sorted by label, as many files are, give it a perfect AUROC.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages torch==2.15.0 numpy==2.4.6 torcheval==0.0.7
check <<'END'
from seen import near, seen, versions
import torch
from torcheval.metrics import functional as f

versions("torcheval", "torch")
nan = float("nan")
labels = torch.arange(4)
for words, scores in ("NaN", torch.full((4, 4), nan)), ("equal", torch.full((4, 4), .25)):
    for k in 1, 2:
        got = f.multiclass_accuracy(scores, labels, k=k, num_classes=4).item()
        seen(f"{words} scores of four classes: top-{k} accuracy", got, near(.25 if k == 1 else 1))
    seen(f"{words}: hit rate at 1", f.hit_rate(scores, labels, k=1).mean().item(), near(1))
    seen(f"{words}: reciprocal rank", f.reciprocal_rank(scores, labels).mean().item(), near(1))
scores = torch.full((100,), nan)
ordered = torch.tensor([0] * 50 + [1] * 50)
for words, y, want in ("zeros first", ordered, 1), ("ones first", ordered.flip(0), 0):
    seen(f"AUROC of NaN, {words}", f.binary_auroc(scores, y).item(), near(want))
    seen(f"AUROC of equal scores, {words}", f.binary_auroc(torch.full((100,), .5), y).item(), near(.5))
END
