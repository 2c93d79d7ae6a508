"""Writes baselines.json: what compare's baselines must give, computed by NumPy and PyTorch in float64.

    python make_baselines.py        with what fixtures/mnist/requirements.txt lists, and onnx; a minute

laplace    The last-layer Laplace approximation of the mean of ckpt-1.onnx and ckpt-2.onnx of cmd/swagwrap/testdata,
           3 scores of 2 features, with batch norm recomputed over the 10 images of images.npz in one batch. The
           covariance is that of the definition, written out: the inverse of the Kronecker product of both factors, a
           dense 9x9 matrix over the rows of [W b]. `mean` holds the images' probabilities averaged over 4,000,000
           draws from that Gaussian, `sd` the standard deviation of a draw's probabilities.
dropout    The mean of training-1.onnx and training-2.onnx, whose Dropout drops each of 16 pixels with probability 1/2:
           `mean` and `sd` of the probabilities over all 65,536 masks. No random number is involved.
deep_sgd   Epochs 15 and 30 of fixtures/mnist, their probabilities on test.npz averaged.
deep_swa   The same of two SWA networks, of epochs 1 to 15 and 16 to 30, each with batch norm recomputed over train.npz
           in file order (as in internal/ensemble/testdata/make_mixture.py).
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import torch
from onnx import numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TINY = ROOT / "cmd" / "swagwrap" / "testdata"
sys.path.insert(0, str(ROOT / "fixtures" / "mnist"))
import make  # noqa: E402  network, data, bn_update and metrics of the fixture

images = np.load(TINY / "images.npz")["images"].astype(np.float64) / 255


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def mean_weights(kind):
    states = []
    for seed in (1, 2):
        graph = onnx.load(TINY / f"{kind}-{seed}.onnx").graph
        states.append({t.name: numpy_helper.to_array(t).astype(np.float64) for t in graph.initializer})
    return {n: (states[0][n] + states[1][n]) / 2 for n in states[0] if states[0][n].ndim}


def conv(x, w):
    """3x3 convolution with zeros around, [n 1 4 4] to [n c 4 4]."""
    padded = np.pad(x[:, 0], ((0, 0), (1, 1), (1, 1)))
    out = np.zeros((len(x), len(w), 4, 4))
    for i in range(3):
        for j in range(3):
            out += w[None, :, 0, i, j, None, None] * padded[:, None, i:i + 4, j:j + 4]
    return out


def features(x, w, mean, var):
    c = lambda a: a[None, :, None, None]
    h = (conv(x, w["conv.weight"]) - c(mean)) / np.sqrt(c(var) + 1e-5) * c(w["bn.weight"]) + c(w["bn.bias"])
    return np.maximum(h, 0).mean((2, 3))


def statistics(w):
    h = conv(images, w["conv.weight"])
    return h.mean((0, 2, 3)), h.var((0, 2, 3), ddof=1)


def laplace(tau):
    w = mean_weights("ckpt")
    f = features(images, w, *statistics(w))
    a = np.concatenate([f, np.ones((len(f), 1))], 1)
    weights = np.concatenate([w["fc.weight"], w["fc.bias"][:, None]], 1)
    p = softmax(a @ weights.T)
    n = len(a)
    big_a = a.T @ a / n
    big_g = sum(np.diag(q) - np.outer(q, q) for q in p) / n
    factor = lambda m: np.sqrt(n) * m + np.sqrt(tau) * np.eye(len(m))
    covariance = np.linalg.inv(np.kron(factor(big_g), factor(big_a)))  # of [W b] in row-major order
    r = np.random.default_rng(1)
    root = np.linalg.cholesky(covariance)
    total, squares, draws = 0, 0, 0
    for _ in range(40):
        z = r.standard_normal((100_000, 9)) @ root.T
        q = softmax(np.einsum("nd,scd->snc", a, weights + z.reshape(-1, 3, 3)))
        total, squares, draws = total + q.sum(0), squares + (q**2).sum(0), draws + len(q)
    mean = total / draws
    return {"tau": tau, "covariance": covariance.tolist(), "mean": mean.tolist(), "sd": np.sqrt(squares / draws - mean**2).tolist(), "draws": draws}


def dropout():
    w = mean_weights("training")
    mean, var = statistics(w)
    masks = ((np.arange(1 << 16)[:, None] >> np.arange(16)) & 1).reshape(-1, 1, 4, 4) / 0.5  # kept values are scaled by 1/(1-ratio)
    q = np.stack([softmax(features(x[None] * masks, w, mean, var) @ w["fc.weight"].T + w["fc.bias"]) for x in images])
    return {"mean": q.mean(1).tolist(), "sd": q.std(1).tolist()}


def deep():
    x, _ = make.load("train", torch.float32)
    xt, yt = make.load("test", torch.float32)
    x, xt = x.double(), xt.double()
    sgd, swa = [], []
    for epochs in (range(1, 16), range(16, 31)):
        states = [make.read_checkpoint(f"epoch-{e:02d}") for e in epochs]
        model = make.Net().double()
        model.load_state_dict(states[-1], strict=False)
        sgd.append(torch.from_numpy(make.log_probs(model, xt)).exp())
        mean = {n: make.moments([s[n] for s in states])[0] for n, _ in model.named_parameters()}
        model.load_state_dict({**states[-1], **mean}, strict=False)
        make.bn_update(model, x)
        swa.append(torch.from_numpy(make.log_probs(model, xt)).exp())
    scores = lambda members: {k: v for k, v in make.metrics((sum(members) / 2).log().numpy(), yt.numpy()).items() if k in ("accuracy", "nll", "brier", "ece")}
    return scores(sgd), scores(swa)


deep_sgd, deep_swa = deep()
out = {"versions": {"torch": torch.__version__, "numpy": np.__version__, "onnx": onnx.__version__},
       "laplace": laplace(0.5), "dropout": dropout(), "deep_sgd": deep_sgd, "deep_swa": deep_swa}
(HERE / "baselines.json").write_text(json.dumps(out, indent=1) + "\n")
print({k: out[k] for k in ("deep_sgd", "deep_swa")})
