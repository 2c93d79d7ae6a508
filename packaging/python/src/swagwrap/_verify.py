"""Whether a model gives what it gave when it was exported."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import _program

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ._model import Session


def verify_in(path: str | os.PathLike[str], run: str | Callable[[dict[str, NDArray[Any]]], Mapping[str, Any]]) -> float:
    """Is `swagwrap.verify`."""
    if isinstance(run, str):
        told = _program.run("doctor", "--runtime", run, path).stderr
        return max(float(d) for d in re.findall(r"largest difference ([0-9.e+-]+)", told))
    from ._model import Session

    return verify(Session(os.fspath(path), None, ()), run)


def verify(s: Session, run: Callable[[dict[str, NDArray[Any]]], Mapping[str, Any]] | None = None) -> float:
    """The largest difference, in units of the largest number of its output. Raises ValueError if it is too large."""
    import numpy as np

    stored = s.json("reference")
    if not stored:
        raise ValueError(f"{s.path}: has no outputs to compare with: export it again, where an ONNX Runtime is")
    n = stored["examples"]
    feeds = {i["name"]: _examples(i, stored["seed"] + (k << 32), n) for k, i in enumerate(stored["inputs"])}
    if missing := [i.name for i in s.inputs if i.name not in feeds]:
        raise ValueError(f"{s.path}: input {missing[0]!r}: has no stored examples")
    names = [o["name"] for o in stored["outputs"]]
    fixed = s.run.get_inputs()[0].shape[0]
    size = fixed if isinstance(fixed, int) else n
    parts = []
    for first in range(0, n, size):
        at = np.minimum(np.arange(first, first + size), n - 1)
        batch = {i.name: feeds[i.name][at] for i in s.inputs}
        if run is None:
            got = s.run.run(names, batch)
        else:
            given = run(batch)
            if absent := [n for n in names if n not in given]:
                raise ValueError(f"{s.path}: run gives no output {absent[0]!r}")
            got = [np.asarray(given[n]) for n in names]
        parts.append([o[: n - first] for o in got])
    worst, where = 0.0, ""
    for k, o in enumerate(stored["outputs"]):
        got = np.concatenate([p[k] for p in parts]).astype(np.float64).reshape(n, -1)[:, :: o["step"]]
        want = np.array(o["numbers"], dtype=np.float64)
        if got.shape != want.shape:
            raise ValueError(f"{s.path}: {o['name']} has {got.shape[1]} numbers to compare, and had {want.shape[1]} when it was exported")
        far = np.abs(got - want) / max(float(np.abs(want).max()), 2.0**-149)
        far[~np.isfinite(far)] = np.inf
        if (largest := float(far.max())) > worst:
            i = int(far.max(axis=1).argmax())
            worst, where = largest, f"example {i} gives {o['name']} = {_few(got[i])}, and it was {_few(want[i])}"
    if worst > stored["tolerance"]:
        raise ValueError(
            f"{s.path}: does not give what it gave when it was exported: {where} (the difference is {worst:.2g} of the largest number, want at most "
            f"{stored['tolerance']:.1g}). Quantisation, another precision or another file of weights does that: swagwrap doctor MODEL says more"
        )
    return worst


def _few(row: NDArray[Any]) -> str:
    return "[" + " ".join(f"{v:.4g}" for v in row[:5]) + (" …]" if len(row) > 5 else "]")


def _examples(i: dict[str, Any], seed: int, n: int) -> NDArray[Any]:
    """Made-up numbers by SplitMix64, as docs/formats.md says, or the examples that are stored."""
    import numpy as np

    dtype = np.dtype(i["type"]).newbyteorder("<")
    if i.get("data"):
        return np.frombuffer(base64.b64decode(i["data"]), dtype).reshape(n, *i["shape"]).astype(i["type"])
    with np.errstate(over="ignore"):
        z = np.uint64(seed % 2**64) + (np.arange(n * int(np.prod(i["shape"])), dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    u = (z >> np.uint64(40)).astype(np.float64) / 2**24
    low, high = i["low"], i["high"]
    values = np.floor(low + (high - low + 1) * u) if dtype.kind != "f" else low + (high - low) * u
    made: NDArray[Any] = values.astype(np.float32).astype(i["type"]) if dtype.itemsize < 4 and dtype.kind == "f" else values.astype(i["type"])
    return made.reshape(n, *i["shape"])
