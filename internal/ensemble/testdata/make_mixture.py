"""Writes mixture.json: a mixture of two SWA networks, computed by PyTorch in float64.

    python make_mixture.py        with what fixtures/mnist/requirements.txt lists; half a minute

One network averages epochs 1 to 15 of fixtures/mnist, the other 16 to 30; each has batch-norm statistics of its
own (bn_update over train.npz in file order, batches of 128). Their probabilities on test.npz are averaged with
weights 0.7 and 0.3:

    p = sum_i w_i p_i        predictive = H(p)        expected = sum_i w_i H(p_i)        mutual information = H(p) - expected

in nats. No random number is involved, so the numbers are those of any implementation.
"""

import json
import pathlib
import sys

import numpy as np
import torch
from torch.special import entr

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "fixtures" / "mnist"))
import make  # noqa: E402  network, data, bn_update and metrics of the fixture

WEIGHTS = [0.7, 0.3]

x, _ = make.load("train", torch.float32)
xt, yt = make.load("test", torch.float32)
x, xt = x.double(), xt.double()

members = []
for epochs in (range(1, 16), range(16, 31)):
    states = [make.read_checkpoint(f"epoch-{e:02d}") for e in epochs]
    model = make.Net().double()
    mean = {n: make.moments([s[n] for s in states])[0] for n, _ in model.named_parameters()}
    model.load_state_dict({**states[-1], **mean}, strict=False)
    make.bn_update(model, x)
    members.append(torch.from_numpy(make.log_probs(model, xt)).exp())
    print(epochs, {k: round(v, 5) for k, v in make.metrics(members[-1].log().numpy(), yt.numpy()).items()})

entropy = lambda p: entr(p).sum(1)
p = sum(w * m for w, m in zip(WEIGHTS, members))
predictive, expected = entropy(p), sum(w * entropy(m) for w, m in zip(WEIGHTS, members))
scores = make.metrics(p.log().numpy(), yt.numpy())
out = {
    "versions": {"torch": torch.__version__, "numpy": np.__version__},
    "weights": WEIGHTS,
    **{k: scores[k] for k in ("accuracy", "nll", "brier", "ece")},
    "predictive": predictive.mean().item(),
    "expected": expected.mean().item(),
    "mutual_information": (predictive - expected).mean().item(),
    "largest_mutual_information": (predictive - expected).max().item(),
}
(HERE / "mixture.json").write_text(json.dumps(out, indent=1) + "\n")
print(json.dumps(out, indent=1))
