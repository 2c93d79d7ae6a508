#!/bin/sh
# Expected: predict of every ensemble of one library is the mean of its members' probabilities, or says what else it is.
# Happens: voting, bagging and snapshots give the mean of softmax; FastGeometricClassifier gives the softmax of the mean logits.
#   It is more certain: members with .99 and .6 give .92 instead of .8.
# Versions: torchensemble 0.2.0, torch 2.15.0.
# Matters: fast geometric ensembles are the nearest peer of SWA. NLL, entropy and calibration of the two means differ, and are compared.
# Source: forward in torchensemble/fast_geometric.py, beside voting.py.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import near, seen, versions
import torch, torchensemble

versions("torchensemble", "torch")
logits = torch.tensor([[4.6, 0.0], [0.4, 0.0]])  # of one row in two members


class Member(torch.nn.Module):
    count = 0

    def __init__(self):
        super().__init__()
        self.out = torch.nn.Parameter(logits[min(Member.count, 1)].clone())
        Member.count += 1

    def forward(self, x):
        return self.out.expand(len(x), 2)


mean_of_probabilities = torch.softmax(logits, 1).mean(0)
of_mean_logits = torch.softmax(logits.mean(0), 0)
both = [round(float(v[0]), 2) for v in (mean_of_probabilities, of_mean_logits)]
seen("mean of probabilities, softmax of the mean", both, near([.79, .92], .01))
for kind in ("VotingClassifier", "BaggingClassifier", "FastGeometricClassifier"):
    want = of_mean_logits if kind == "FastGeometricClassifier" else mean_of_probabilities
    Member.count = 0
    ensemble = getattr(torchensemble, kind)(estimator=Member, n_estimators=2, cuda=False)
    ensemble.n_outputs = 2
    for _ in range(2):
        ensemble.estimators_.append(Member())
    for member, out in zip(ensemble.estimators_, logits):
        member.out.data = out.clone()
    seen(kind, [round(float(v), 3) for v in ensemble.predict(torch.zeros(1, 1))[0]], near(want.numpy()))
END
