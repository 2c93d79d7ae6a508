"""What torch computes from elements of a vector, in float32, as exporters fold it into constants: folded.json. torch 2.15.0.

The vector is stored in each type and computed with in float32. Run: python folded.py
"""
import json
import torch
import torch.nn.functional as F

FUNCTIONS = {
    "v[0]": lambda v: v[0], "-v[0]": lambda v: -v[0], "exp(v[1])": lambda v: v[1].exp(), "exp(-v[0])": lambda v: (-v[0]).exp(),
    "exp(v[2] / 2)": lambda v: (v[2] / 2).exp(), "exp(2 * v[2])": lambda v: (2 * v[2]).exp(), "expm1(v[0])": lambda v: v[0].expm1(),
    "log(v[2])": lambda v: v[2].log(), "log1p(v[2])": lambda v: v[2].log1p(), "sigmoid(v[1])": lambda v: v[1].sigmoid(),
    "1 - sigmoid(v[2])": lambda v: 1 - v[2].sigmoid(), "logsigmoid(v[1])": lambda v: F.logsigmoid(v[1]), "softplus(v[1])": lambda v: F.softplus(v[1]),
    "tanh(v[3])": lambda v: v[3].tanh(), "v[3] ** 2": lambda v: v[3] ** 2, "sqrt(v[2])": lambda v: v[2].sqrt(), "rsqrt(v[2])": lambda v: v[2].rsqrt(),
    "1 / v[1]": lambda v: 1 / v[1], "1 - v[3]": lambda v: 1 - v[3], "1 + v[1]": lambda v: 1 + v[1], "silu(v[2])": lambda v: F.silu(v[2]), "gelu(v[0])": lambda v: F.gelu(v[0]),
    "sin(v[0])": lambda v: v[0].sin(), "cos(v[1])": lambda v: v[1].cos(), "softmax(v)[2]": lambda v: v.softmax(0)[2], "log_softmax(v)[1]": lambda v: v.log_softmax(0)[1],
    "normalize(v)[3]": lambda v: F.normalize(v, dim=0)[3], "v / sum(v)[0]": lambda v: (v / v.sum())[0],
    "relu(v) / (sum(relu(v)) + 1e-4)[2]": lambda v: (v.relu() / (v.relu().sum() + 1e-4))[2], "sum(v)": lambda v: v.sum(), "mean(v)": lambda v: v.mean(),
    "norm(v)": lambda v: v.norm(), "sum(v ** 2)": lambda v: (v**2).sum(), "mean(v ** 2)": lambda v: (v**2).mean(), "logsumexp(v)": lambda v: v.logsumexp(0), "prod(v)": lambda v: v.prod(),
}
VECTOR = torch.tensor([0.32171234, -0.74136789, 1.23451234, -2.51237654], dtype=torch.float64)
out = {}
for name in ("float32", "float64", "float16", "bfloat16"):
    v = VECTOR.to(getattr(torch, name)).float()
    out[name] = {"stored": v.tolist(), "constants": {f: float(of(v)) for f, of in FUNCTIONS.items()}}
with open("folded.json", "w") as f:
    json.dump(out, f, indent=1)
    f.write("\n")
