"""Reads posterior.safetensors with Python's safetensors alone, and writes what it finds to reading.json.

    python read.py        (Python 3.11, NumPy 2.4, safetensors 0.8)

posterior.safetensors is written by the Go test (go test ./swag -run Reading -update).
Two readings: the code of docs/formats.md as it stands there, run as it is, and
members drawn by that page's description of them, written here from the page alone.
"""

import contextlib
import io
import json
import math
import os
import pathlib
import re

import numpy as np
from safetensors import safe_open

HERE = pathlib.Path(__file__).parent
MASK = (1 << 64) - 1
WEYL = 0x9E3779B97F4A7C15


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


R, AREA = 3.654152885361009, 0.004928673233974658


def f(x):
    return math.exp(-x * x / 2)


WIDTH = [AREA / f(R), R]
while len(WIDTH) < 256:
    WIDTH.append(math.sqrt(-2 * math.log(AREA / WIDTH[-1] + f(WIDTH[-1]))))
WIDTH.append(0.0)


def variate(seed, member, c):
    u = mix(mix(seed) + (member * 2**40 + c + 1) * WEYL & MASK)

    def uniform():
        nonlocal u
        u = mix(u + WEYL & MASK)
        return ((u >> 12) + 0.5) / 2**52

    while True:
        i, j = u % 256, u >> 32
        j -= (j >> 31) << 32
        x = j * float(np.float32(WIDTH[i] / 2**31))
        if abs(j) < int(WIDTH[i + 1] / WIDTH[i] * 2**31):
            return x
        while i == 0:
            y = -math.log(uniform()) / R
            if -2 * math.log(uniform()) >= y * y:
                return math.copysign(R + y, j)
        if f(WIDTH[i]) + uniform() * (f(WIDTH[i + 1]) - f(WIDTH[i])) < f(x):
            return x
        u = mix(u + WEYL & MASK)


def coordinates(seed, member, columns):
    return [variate(seed, member, 2**40 - 1 - k) for k in range(columns)]


def total(terms):
    out = 0.0  # sum() compensates for rounding since Python 3.12
    for term in terms:
        out += term
    return out


def norm(x):
    return math.sqrt(total(v * v for v in x))


def draw(p, seed, member, scale, diagonal=False, antithetic=False, orthogonal=False):
    sign = 1
    if antithetic and member % 2 == 1:
        member, sign = member - 1, -1
    divisor = p["options"]["divisor"]
    columns = len(p["deviations"])
    z2 = coordinates(seed, member, columns)
    if orthogonal:
        before = []
        for pair in range(member // 2 // columns * columns, member // 2 + 1):
            z2 = coordinates(seed, 2 * pair, columns)
            length = norm(z2)
            for _ in range(2):
                for u in before:
                    along = total(a * b for a, b in zip(u, z2))
                    z2 = [z - along * v for z, v in zip(z2, u)]
            if pair < member // 2:
                by = 1 / norm(z2)
                before.append([z * by for z in z2])
        by = length / norm(z2)
        z2 = [z * by for z in z2]
    z2 = [sign * z for z in z2]
    out = []
    for i, (mean, variance) in enumerate(zip(p["mean"], p["variance"])):
        low_rank = np.float32(0)
        for k, z in enumerate(z2):
            if not diagonal:
                low_rank += p["deviations"][k, i] * np.float32(math.sqrt(scale / divisor) * z)
        z1 = sign * variate(seed, member, i)
        out.append(float(np.float32(mean + (math.sqrt(scale * variance) * z1 + float(low_rank)))))
    return out


os.chdir(HERE)
with safe_open("posterior.safetensors", "numpy") as file:
    p = {k: file.get_tensor(k) for k in file.keys()}
    metadata = file.metadata()
p["options"] = json.loads(metadata["options"])

page = (HERE / "../../docs/formats.md").read_text()
code = re.search(r"```python\n(import .*?)```", page, re.S).group(1)
printed = io.StringIO()
np.set_printoptions(precision=6)
with contextlib.redirect_stdout(printed):
    exec(code, {})

reading = {
    "code": code,
    "printed": printed.getvalue(),
    "metadata": {k: v for k, v in metadata.items() if not k.startswith("crc")},
    "sections": {k: {"dtype": str(v.dtype), "shape": list(v.shape)} for k, v in p.items() if k != "options"},
    "values": {k: p[k].ravel().tolist() for k in ("mean", "variance", "deviations", "trajectory", "statistics")},
    "health": json.loads(p["health"].tobytes()),
    "graph": p["graph"].tobytes().decode(),
    "members": [
        {**how, "weights": draw(p, **how)}
        for how in (
            {"seed": 1, "member": 0, "scale": 0.5},
            {"seed": 1, "member": 29, "scale": 0.5},
            {"seed": 1, "member": 29, "scale": 2.0, "antithetic": True},
            {"seed": 3, "member": 5, "scale": 0.5, "antithetic": True, "orthogonal": True},
            {"seed": MASK, "member": 7, "scale": 1.0, "diagonal": True},
        )
    ],
    # Enough for every branch of the ziggurat: one in 130 leaves the first one.
    "variates": [variate(5, 3, c) for c in range(4000)] + [variate(5, 3, 2**40 - 1 - c) for c in range(20)],
}
(HERE / "reading.json").write_text(json.dumps(reading) + "\n")
print(printed.getvalue())
