"""Small ensembles of every task, made by the program from networks of one layer, and data for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from conftest import swagwrap
from onnx import TensorProto, helper, numpy_helper

COLUMNS = ["age", "bmi", "bp"]


@dataclass(frozen=True)
class Made:
    """An ensemble and its model, with the network's input x for test data, and a file of the same data for score."""

    ensemble: Path
    model: Path
    data: Path
    x: Any

    def score(self, *args: str | Path) -> dict[str, np.ndarray[Any, Any]]:
        """The rows of the program."""
        out = self.data.with_suffix(".rows.npz")
        swagwrap("score", "-q", "--force", "--probs", "-o", out, *args, self.ensemble, self.data)
        with np.load(out) as rows:
            return dict(rows)


def network(path: Path, seed: int, shape: tuple[int, ...], scores: int) -> None:
    """A layer on the flat input; on pixels it is a convolution."""
    rng = np.random.default_rng(seed)
    pixels = scores < 0
    if pixels:
        w, nodes = rng.normal(size=(-scores, shape[0], 1, 1)), [helper.make_node("Conv", ["x", "w"], ["y"])]
        out: list[Any] = ["batch", -scores, *shape[1:]]
    else:
        w = rng.normal(size=(int(np.prod(shape)), scores)) / np.sqrt(np.prod(shape))
        nodes = [helper.make_node("Flatten", ["x"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["y"])]
        out = ["batch", scores]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        [numpy_helper.from_array(w.astype(np.float32), "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def ensemble(folder: Path, shape: tuple[int, ...], scores: int, x: Any, y: Any, *fit: str, promise: tuple[str, ...] = ("--coverage=80%",), export: tuple[str, ...] = ()) -> Made:
    """Fits, samples, promises and exports. x are the data as a user has them."""
    folder.mkdir()
    for i in range(4):
        network(folder / f"{i}.onnx", i, shape, scores)
    at = folder.joinpath
    data = at("table.csv") if isinstance(x, str) else at("data.npz")
    if isinstance(x, str):
        data.write_text(x)
    else:
        np.savez(data, x=x, **({} if y is None else {"labels": y}))
    swagwrap("fit", "-q", *fit, "-o", at("p.safetensors"), *(at(f"{i}.onnx") for i in range(4)))
    last = at("e.safetensors")
    swagwrap("sample", "-q", "--draws", "independent", "-n", "3", "-o", last, at("p.safetensors"))
    if promise:
        swagwrap("score", "-q", "--probs", "-o", at("val.npz"), last, data)
        swagwrap("calibrate", "-q", *promise, "-o", at("promised.safetensors"), "--ensemble", last, at("val.npz"))
        last = at("promised.safetensors")
    swagwrap("export", "-q", *export, "-o", at("e.onnx"), last)
    return Made(last, at("e.onnx"), data, x)


def labels(n: int, classes: int) -> np.ndarray[Any, Any]:
    return np.arange(n) % classes


def csv(n: int, seed: int, target: str, values: np.ndarray[Any, Any]) -> str:
    """A table whose columns are not in the order of training."""
    rows = np.random.default_rng(seed).normal(size=(n, 3))
    return "\n".join([f"bp,{target},age,bmi", *(f"{r[2]!r},{v},{r[0]!r},{r[1]!r}" for r, v in zip(rows.tolist(), values.tolist()))]) + "\n"
