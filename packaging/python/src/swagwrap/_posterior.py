"""What `swagwrap fit` writes."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported where it is needed: the launcher imports this module, too, and must be quick
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Tensor:
    """A tensor of the network, and where its elements stand."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """As the ONNX file stores it."""
    role: str
    """`parameter`, `statistic` (of batch norm) or `constant`."""
    offset: int
    """Of its first element: in the vector of weights (parameters) or of statistics."""
    tied: str | None
    """The parameter that it is, under another name; it has no place of its own then."""
    transposed: bool
    """Whether it is that one's transpose."""


@dataclass(frozen=True)
class Posterior:
    """The posterior over d weights: N(mean, α(diag(variance) + deviationsᵀ·deviations/divisor)), α being the scale."""

    mean: NDArray[np.float64]
    """[d] θ_SWA."""
    variance: NDArray[np.float64]
    """[d] the diagonal of Σ_diag."""
    deviations: NDArray[np.float32] | None
    """[K, d]; None with --rank 0, and with --reference-checkpoints, which leaves them in the checkpoints."""
    divisor: float
    statistics: NDArray[np.float32]
    """[c, s] batch norm's running means and variances that each checkpoint stores."""
    layout: tuple[Tensor, ...]
    options: dict[str, Any]
    """How it was fitted: docs/formats.md."""
    card: dict[str, Any]
    """The model card: task, class names, preprocessing, augmentation."""
    checkpoints: list[dict[str, Any]]
    """`path` and `sha256` of each, in training order."""
    health: dict[str, Any]
    """What `fit` said of the trajectory."""
    warnings: list[str]

    def tensors(self, vector: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The parameters by name, shaped, out of a vector of all weights, such as `mean`. They are views of it."""
        if vector.shape != self.mean.shape:
            raise ValueError(f"vector: shape {vector.shape}, want {self.mean.shape}")
        own = {
            t.name: vector[t.offset : t.offset + math.prod(t.shape)].reshape(t.shape)
            for t in self.layout
            if t.role == "parameter" and t.tied is None
        }
        tied = {t.name: own[t.tied].T if t.transposed else own[t.tied] for t in self.layout if t.tied is not None}
        return own | tied


def read_posterior(path: str | os.PathLike[str]) -> Posterior:
    """Reads a posterior that `swagwrap fit` wrote. The arrays are read into memory: (12 + 4K)·d bytes and more.

    ValueError says what a file is not. Nothing is drawn from it here: `swagwrap sample` does that.
    """
    from safetensors import safe_open

    path = Path(path)
    with safe_open(os.fspath(path), "numpy") as file:
        meta: dict[str, str] = file.metadata() or {}
        if meta.get("kind") != "swagwrap.posterior":
            raise ValueError(f"{path}: kind {meta.get('kind')!r}, want a posterior of swagwrap fit")
        if meta.get("format_version") != "1":
            raise ValueError(f"{path}: format version {meta.get('format_version')!r} by {meta.get('producer')}, want 1")
        sections = set(file.keys())
        options = json.loads(meta["options"])
        return Posterior(
            mean=file.get_tensor("mean"),
            variance=file.get_tensor("variance"),
            deviations=file.get_tensor("deviations") if "deviations" in sections else None,
            divisor=float(options["divisor"]),
            statistics=file.get_tensor("statistics"),
            layout=tuple(_tensor(t) for t in json.loads(meta["layout"])),
            options=options,
            card=json.loads(meta.get("card", "{}")),
            checkpoints=json.loads(meta["checkpoints"]),
            health=json.loads(file.get_tensor("health").tobytes()) if "health" in sections else {},
            warnings=json.loads(meta.get("warnings", "[]")),
        )


def _tensor(t: dict[str, Any]) -> Tensor:
    shape = tuple(int(n) for n in t["shape"])
    return Tensor(t["name"], shape, t["dtype"], t["role"], int(t.get("offset", 0)), t.get("tied"), bool(t.get("transposed", False)))
