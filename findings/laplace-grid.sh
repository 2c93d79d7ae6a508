#!/bin/sh
# Expected: optimize_prior_precision(method="gridsearch") of laplace-torch returns the precision with the lowest NLL on validation data.
# Happens: the default loss is a running mean that is not reset between points of the grid. Each point is judged by the mean over itself
#   and all before it. Small precisions come first and are bad, so the mean falls to the end: the last point, 10,000, is returned.
#   A function as loss finds the minimum.
# Versions: laplace-torch 0.3, torch 2.15.0.
# Matters: the "tuned" Laplace approximation is the point estimate, and a comparison finds that it gains nothing.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import near, seen, versions
import torch
from laplace import Laplace
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

versions("laplace-torch", "torch")
torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16).float(), torch.tensor(y)
train, held_out = (DataLoader(TensorDataset(x[part], y[part]), 100) for part in (slice(200), slice(200, 700)))
net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10))
optimizer = torch.optim.Adam(net.parameters(), .01)
for _ in range(100):
    for rows, labels in train:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(rows), labels).backward()
        optimizer.step()
laplace = Laplace(net, "classification", subset_of_weights="last_layer", hessian_structure="kron")
laplace.fit(train)
nll = lambda p, labels: torch.nn.functional.nll_loss(p.log(), labels)
grid = torch.logspace(-4, 4, 21)


def loss_at(precision):
    laplace.prior_precision = precision
    p = torch.cat([laplace(rows, link_approx="probit") for rows, _ in held_out])
    return float(nll(p, y[200:700]))


def search(**options):
    laplace.optimize_prior_precision(method="gridsearch", val_loader=held_out, link_approx="probit", grid_size=21, **options)
    return float(laplace.prior_precision)


losses = list(map(loss_at, grid))
best = float(grid[losses.index(min(losses))])
by_hand = round(best, 4), round(min(losses), 4), round(losses[-1], 4)
seen("by hand: best precision, its NLL, NLL at 10,000", by_hand, lambda r: r[0] < 1000 and r[2] > r[1] + .01)
seen("loss= a function", search(loss=nll), near(best, 1e-3))
seen("default loss", search(), near(10_000, 1))
END
