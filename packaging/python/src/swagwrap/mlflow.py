"""A model of MLflow, of the pyfunc flavour: `import swagwrap.mlflow`. It needs `pip install mlflow pandas`.

>>> with mlflow.start_run():
...     swagwrap.mlflow.log_model("ensemble.onnx", name="digits")

Predictions are the table of `swagwrap.load(...).table(X)`. Pictures come in a column `image`, with the bytes of their files.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
from mlflow.models import ModelSignature
from mlflow.types import ColSpec, Schema, TensorSpec

from ._files import replaced
from ._model import Model, load

_PICTURE = "image"


class Ensemble(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """What MLflow opens: the exported model, which lies in the artifact `model`."""

    def load_context(self, context: Any) -> None:
        folder = Path(context.artifacts["model"])
        self.model: Model = load(next(folder.glob("*.onnx")), **(context.model_config or {}))

    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def] # MLflow would make a signature of types
        if isinstance(model_input, pd.DataFrame) and self.model.reader.pictures and _PICTURE in model_input:
            model_input = model_input[_PICTURE].to_list()
        return self.model.table(model_input)


def save_model(model: str | os.PathLike[str], path: str | os.PathLike[str], *, input_example: Any = None, load_args: dict[str, Any] | None = None, overwrite: bool = False, **kwargs: Any) -> None:
    """Writes an exported ensemble as a folder of MLflow, with its signature and an input example.

    `model` is the file of `swagwrap export`. `input_example` is a table, an array, or for pictures the path of one. Without
    it the example is zeros. `load_args` are arguments of swagwrap.load. Others are those of mlflow.pyfunc.save_model.

    Raises `FileExistsError` if `path` is there and is not empty. `overwrite` replaces a model of MLflow, and nothing else.
    """
    path = Path(path)
    if os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
        if not overwrite:
            raise FileExistsError(f"{path}: is not empty. Name another folder, or say overwrite=True")
        if path.is_symlink() or not (path / "MLmodel").is_file():
            raise FileExistsError(f"{path}: is no model of MLflow. Name another folder")
        if Path(model).resolve().is_relative_to(path.resolve()):
            raise FileExistsError(f"{path}: holds {os.fspath(model)}, which is the model to save. Name another folder")
    with tempfile.TemporaryDirectory(prefix="swagwrap-") as work, replaced(path):
        mlflow.pyfunc.save_model(os.fspath(path), **_pyfunc(model, work, input_example, load_args, kwargs))


def log_model(model: str | os.PathLike[str], *, name: str = "model", input_example: Any = None, load_args: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    """Logs an exported ensemble to the active run, with what `export --figures` put into it as metrics.

    The arguments are those of save_model. Returns MLflow's ModelInfo.
    """
    with tempfile.TemporaryDirectory(prefix="swagwrap-") as work:
        info = mlflow.pyfunc.log_model(name=name, **_pyfunc(model, work, input_example, load_args, kwargs))
    opened = load(model, **(load_args or {}))
    if figures := opened.figures:
        mlflow.log_metrics({f["name"]: f["value"] for f in figures["figures"]})
    return info


def _pyfunc(model: str | os.PathLike[str], work: str, example: Any, load_args: dict[str, Any] | None, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of mlflow.pyfunc."""
    opened = load(model, **(load_args or {}))
    folder = Path(work, "model")
    folder.mkdir()
    for file in (Path(model), Path(f"{os.fspath(model)}.data")):  # with weights in a file next to the model
        if file.exists():
            shutil.copy(file, folder)
    example = _example(opened, example)
    rows = opened.table(example[_PICTURE].to_list() if isinstance(example, pd.DataFrame) and _PICTURE in example else example)
    about: dict[str, Any] = {"swagwrap": {"task": opened.task, "members": opened.metadata.get("swagwrap.members"), "promise": (opened.guarantee or {}).get("promise"), "figures": opened.figures}}
    usual = {"signature": ModelSignature(_inputs(opened, example), _schema(rows)), "pip_requirements": _requirements()}
    return {
        **usual, "python_model": str(Path(__file__).with_name("_mlflow_model.py")), "artifacts": {"model": str(folder)}, "input_example": example, "model_config": load_args or {},
        "metadata": about, **kwargs,
    }


def _example(model: Model, given: Any) -> Any:
    """The input example: what the caller gave, or zeros."""
    reader = model.reader
    if reader.pictures and isinstance(given, (str, os.PathLike)):
        return pd.DataFrame({_PICTURE: [Path(given).read_bytes()]})
    if given is not None:
        return given
    named = reader.given or reader.columns
    if named:
        return pd.DataFrame({c: [0.0] for columns in named.values() for c in columns})
    if reader.pictures:
        return pd.DataFrame({_PICTURE: [_black(reader.inputs[0].shape)]})
    zeros = {i.name: np.zeros((1, *(n or 1 for n in i.shape)), dtype=i.dtype) for i in reader.inputs}
    return zeros if len(zeros) > 1 else next(iter(zeros.values()))


def _black(shape: tuple[int | None, ...]) -> bytes:
    """A black picture, as a PGM file of the size of the network's input."""
    height, width = (n or 32 for n in (shape[1:] if shape[0] in (1, 3, 4, None) else shape[:2]))
    return f"P5 {width} {height} 255\n".encode() + bytes(width * height)


def _inputs(model: Model, example: Any) -> Schema:
    if isinstance(example, pd.DataFrame):
        return _schema(example)
    several = len(model.reader.inputs) > 1
    return Schema([TensorSpec(i.dtype, (-1, *(n or -1 for n in i.shape)), i.name if several else None) for i in model.reader.inputs])


def _schema(table: Any) -> Schema:
    """The columns of a table, with their types."""
    kinds = {"f": "double", "i": "long", "u": "long", "b": "boolean"}

    def of(column: Any) -> str:
        if column.dtype == np.float32:
            return "float"
        return "binary" if isinstance(column.iloc[0], bytes) else kinds.get(column.dtype.kind, "string")

    return Schema([ColSpec(of(table[c]), c) for c in table.columns])


def _requirements() -> list[str]:
    """What a server installs."""
    out = []
    for package in ("swagwrap", "onnxruntime", "numpy", "pandas"):
        try:
            out.append(f"{package}=={version(package).split('+')[0]}")
        except PackageNotFoundError:
            out.append(package)
    return out
