#!/bin/sh
# Expected: damping=True of laplace-torch with Kronecker factors gives other variances than damping=False.
# Happens: it changes nothing, to the last bit. Adding the prior to the factors makes a new object, which forgets the argument. For the
#   last layer it is lost before that. Set on that object by hand, damping changes the determinant.
# Versions: laplace-torch 0.3, torch 2.15.0.
# Matters: a comparison with and without damping compares a method with itself.
# Source: the argument is documented; that it does nothing was seen by running.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import seen, versions
import torch
from laplace import Laplace
from torch.utils.data import DataLoader, TensorDataset

versions("laplace-torch", "torch")
torch.manual_seed(0)
rows, labels = torch.randn(200, 4), torch.randint(3, (200,))
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def fitted(part, damping):
    laplace = Laplace(net, "classification", subset_of_weights=part, hessian_structure="kron", damping=damping)
    laplace.fit(DataLoader(TensorDataset(rows, labels), 50))
    laplace.prior_precision = 10.
    return laplace


def results(laplace):
    variances = laplace._glm_predictive_distribution(rows[:5])[1].flatten()
    return torch.cat([variances, laplace.posterior_precision.logdet().reshape(1)]).detach()


for part in ("all", "last_layer"):
    pair = [results(fitted(part, damping)) for damping in (False, True)]
    seen(f"{part}: variances and determinant are equal with damping=True", torch.equal(*pair), lambda same: same)
    precision = fitted(part, True).posterior_precision
    precision.damping = True
    far = float(precision.logdet().detach() - pair[0][-1])
    seen(f"{part}: change of the determinant's logarithm, set by hand", round(far, 3), lambda d: abs(d) > 1)
END
