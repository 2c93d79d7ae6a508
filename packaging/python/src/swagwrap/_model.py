"""An exported ensemble as a Python object: `swagwrap.load`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ._columns import named
from ._inputs import Arrays, FileOrder, Input, Reader
from ._runtime import onnxruntime
from ._tables import table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KIND = "swagwrap.kind"


class Session:
    """An open model. Copies of an estimator share it."""

    def __init__(self, path: str, threads: int | None, providers: Sequence[Any]) -> None:
        import numpy as np

        ort = onnxruntime()
        self.path = path
        known = ort.get_all_providers()
        if unknown := [p for p in providers if (p[0] if isinstance(p, tuple) else p) not in known]:
            raise ValueError(f"providers: {unknown[0]!r}, want some of {', '.join(known)}")
        options = ort.SessionOptions()
        if threads is not None:
            options.intra_op_num_threads = threads
        try:
            self.run = ort.InferenceSession(path, options, providers=list(providers or ["CPUExecutionProvider"]))
        except Exception as e:
            made = ". swagwrap export -o ensemble.onnx ENSEMBLE.safetensors makes one" if path.endswith(".safetensors") else ""
            raise ValueError(f"{path}: no readable ONNX model{made}: {e}") from e
        self.about: dict[str, str] = self.run.get_modelmeta().custom_metadata_map
        if self.about.get(_KIND) != "ensemble":
            what = {None: "a model that swagwrap did not write", "swa": "one network", "member": "one network"}.get(self.about.get(_KIND), "another kind of model")
            raise ValueError(f"{path}: {what}, want the model of an ensemble: swagwrap export -o ensemble.onnx ensemble.safetensors. SWA alone: swagwrap sample --method swa, then export")
        dtypes = {"tensor(float)": "float32", "tensor(double)": "float64"}
        self.inputs = [
            Input(i.name, np.dtype(dtypes.get(i.type, i.type.removeprefix("tensor(").removesuffix(")"))), tuple(n if isinstance(n, int) else None for n in i.shape[1:]))
            for i in self.run.get_inputs()
        ]
        self.outputs = [o.name for o in self.run.get_outputs()]
        self.shapes = {o.name: [n if isinstance(n, int) else None for n in o.shape] for o in self.run.get_outputs()}

    def json(self, key: str) -> Any:
        return json.loads(self.about.get(f"swagwrap.{key}") or "null")


_open: WeakValueDictionary[Any, Session] = WeakValueDictionary()


@dataclass(frozen=True)
class Uncertainty:
    """How uncertain predictions are, in nats. Both have a value for each example, or for each pixel or token."""

    entropy: NDArray[np.float32]
    """Of the probabilities: all uncertainty."""
    mutual_information: NDArray[np.float32]
    """What the members disagree about: uncertainty that more training data would remove."""


class Model:
    """The model of an ensemble, as `swagwrap export` writes it. `swagwrap.load` returns a Classifier or a Regressor.

    It is already fitted: `fit` only checks y. Otherwise it behaves like an estimator of scikit-learn.

    X may be an array as the network takes it, 8-bit pictures [N, H, W, C], a table of pandas or Polars, whose columns are
    found by name, a dict of arrays for several inputs, a list of paths or of the bytes of picture files, or one path: a
    folder, a picture, a list or a table. The program resizes and normalises pictures, as `swagwrap score` does.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        names: bool = False,
        columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        arrays: Arrays = "auto",
        file_order: FileOrder | None = None,
        batch_size: int = 64,
        threads: int | None = None,
        providers: Sequence[str] | None = None,
    ) -> None:
        self.path, self.names, self.columns, self.arrays, self.file_order = path, names, columns, arrays, file_order
        self.batch_size, self.threads, self.providers = batch_size, threads, providers

    # As an estimator of scikit-learn.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of load."""
        return {k: getattr(self, k) for k in ("path", "names", "columns", "arrays", "file_order", "batch_size", "threads", "providers")}

    def set_params(self, **params: Any) -> Model:
        """Changes arguments of load."""
        for name in params:
            if name not in self.get_params():
                raise ValueError(f"{name}: no parameter of {type(self).__name__}, want {', '.join(self.get_params())}")
        for name, value in params.items():
            setattr(self, name, value)
        self.__dict__.pop("_session", None)
        return self

    def fit(self, X: Any, y: Any = None, **_: Any) -> Model:
        """Learns nothing: the ensemble is fitted. It only checks that y, if given, is what the model predicts."""
        if y is not None:
            self._truth(y)
        return self

    def _truth(self, y: Any, shape: Sequence[int] | None = None) -> NDArray[Any]:
        """What is true, as an array. Raises if it is not of the kind, or not of the shape, of the predictions."""
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.get_params(), "path": os.path.abspath(self.path)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # The model.

    @cached_property
    def _session(self) -> Session:
        if not isinstance(self.path, (str, os.PathLike)):
            raise TypeError(f"{type(self.path).__name__}, want the path of a model")
        path = os.path.realpath(os.path.expanduser(os.fspath(self.path)))
        if not os.path.isfile(path):
            what = "a folder, want the .onnx file in it" if os.path.isdir(path) else "no such model. If it is elsewhere now: set_params(path=...)"
            raise FileNotFoundError(f"{os.fspath(self.path)}: {what}")
        if self.arrays not in ("auto", "seen", "pixels"):
            raise ValueError(f"arrays: {self.arrays!r}, want auto, seen or pixels")
        if self.file_order not in (None, "text", "number", "given"):
            raise ValueError(f"file_order: {self.file_order!r}, want text, number or given")
        for name, number in ("batch_size", self.batch_size), ("threads", 1 if self.threads is None else self.threads):
            if not hasattr(number, "__index__") or number < 1:
                raise ValueError(f"{name}: {number!r}, want a whole number from 1 up")
        if isinstance(self.providers, str):
            raise TypeError(f"providers: {self.providers!r}, want a list: [{self.providers!r}]")
        info = os.stat(path)
        key = (path, info.st_mtime_ns, info.st_size, self.threads, repr(self.providers or ()))
        session = _open.get(key)
        if session is None:
            session = _open[key] = Session(path, self.threads, self.providers or ())
        return session

    @property
    def task(self) -> str:
        """`classes`, `binary`, `labels` or `regression`."""
        return self._session.about.get("swagwrap.task", "")

    @property
    def class_names(self) -> list[str] | None:
        """The names of the classes or labels, if they are known."""
        found = self._session.json("class_names")
        return None if found is None else [str(n) for n in found]

    @property
    def figures(self) -> dict[str, Any] | None:
        """What `swagwrap compare` measured, if `export --figures` or `try` put it into the model."""
        found: dict[str, Any] | None = self._session.json("figures")
        return found

    @property
    def guarantee(self) -> dict[str, Any] | None:
        """What is promised, and for which data."""
        found: dict[str, Any] | None = self._session.json("guarantee")
        return found

    def verify(self) -> float:
        """The largest difference to what the model gave when it was exported, for the examples that it has inside.

        It is in units of the largest number of an output. Raises ValueError if it is larger than rounding explains: the model was
        quantised, or computes in another precision, or its weights were changed.
        """
        from ._verify import verify

        return verify(self._session)

    @property
    def metadata(self) -> dict[str, str]:
        """All properties of the model: docs/formats.md."""
        return dict(self._session.about)

    @property
    def reader(self) -> Reader:
        """Turns X into batches."""
        s = self._session
        card = s.json("model_card") or {}
        preprocess = card.get("preprocess") or {}

        stored = card.get("columns")
        if stored and "" in stored:
            stored = {s.inputs[0].name: stored[""]}
        width = {i.name: i.shape[0] if len(i.shape) == 1 else None for i in s.inputs}
        return Reader(
            s.path, s.inputs, bool(preprocess.get("mean") or preprocess.get("std")), s.about.get("swagwrap.input") == "pixels", stored, named(self.columns, width), self.arrays, self.file_order, self.batch_size
        )

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of a table's columns, in the order of training."""
        import numpy as np

        reader = self.reader
        named = reader.given or reader.columns
        if not named or len(reader.inputs) > 1:
            raise AttributeError("feature_names_in_: the model does not know the names of its columns")
        return np.array(list(named.values())[0], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """The number of a table's columns."""
        inputs = self._session.inputs
        if len(inputs) == 1 and len(inputs[0].shape) == 1 and inputs[0].shape[0] is not None:
            return inputs[0].shape[0]
        raise AttributeError("n_features_in_: the model takes no rows of numbers")

    def iterate(self, X: Any, outputs: Sequence[str] | None = None) -> Iterator[tuple[Sequence[str] | None, dict[str, NDArray[Any]]]]:
        """Yields the names of a batch, or None, and the model's outputs, a batch at a time. Memory does not grow with X."""
        s = self._session
        wanted = list(outputs or s.outputs)
        if unknown := [o for o in wanted if o not in s.outputs]:
            raise AttributeError(f"{os.fspath(self.path)}: no output {', '.join(unknown)}: {self._missing(unknown[0])}")
        done = 0
        for names, feeds in self.reader.batches(X):
            try:
                got = dict(zip(wanted, s.run.run(wanted, feeds)))
            except Exception as e:
                raise ValueError(f"examples {done} to {done + len(next(iter(feeds.values()))) - 1}: {str(e).strip()}") from e
            self._check(got, done)
            yield names, got
            done += len(next(iter(feeds.values())))

    def outputs(self, X: Any, *only: str) -> dict[str, NDArray[Any]]:
        """All outputs of the model, or those that are named: docs/deploy.md lists them."""
        import numpy as np

        parts = [got for _, got in self.iterate(X, only)]
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    def _check(self, got: Mapping[str, NDArray[Any]], first: int) -> None:
        """Refuses what is not finite, as score does. The ends of an interval may be infinite."""
        import numpy as np

        for name, values in got.items():
            if values.dtype.kind == "f" and name not in ("lower", "upper"):
                bad = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
                if bad.any():
                    raise ValueError(f"example {first + int(np.argmax(bad))}: {name} is not finite")

    def _missing(self, output: str) -> str:
        """Why an output is not there."""
        if output in ("set", "lower", "upper"):
            return (
                "the model has no guarantee. Three commands make one: swagwrap score -o val.npz ENSEMBLE VAL; "
                "swagwrap calibrate --coverage 90% --ensemble ENSEMBLE -o guaranteed.safetensors val.npz; "
                "swagwrap export -o guaranteed.onnx guaranteed.safetensors"
            )
        if output == "abstain":
            return "swagwrap calibrate --threshold risk=1% chooses when to abstain"
        return f"the task is {self.task}"

    def abstain(self, X: Any) -> NDArray[np.bool_]:
        """[N] whether there is no answer, so that answers keep the promised risk."""
        found: NDArray[np.bool_] = self.outputs(X, "abstain")["abstain"].squeeze(1)
        return found

    def table(self, X: Any) -> Any:
        """A table with a row for each example, as `swagwrap score` writes it: of pandas if that is installed, else a list of dicts."""
        import numpy as np

        parts: list[dict[str, Any]] = []
        for names, got in self.iterate(X):
            if max(v.ndim for v in got.values()) > 2:
                raise ValueError("the model scores pixels or tokens, and has no rows of examples: use outputs(X)")
            parts.append(({} if names is None else {"path": np.array(names, dtype=object)}) | self._columns(got))
        return table({name: np.concatenate([p[name] for p in parts]) for name in parts[0]})

    def _columns(self, got: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({os.fspath(self.path)!r})"

    def _repr_html_(self) -> str:
        from ._html import card

        return card(self)


def verify(path: str | os.PathLike[str], run: str | Callable[[dict[str, NDArray[Any]]], Mapping[str, Any]] = "onnxruntime") -> float:
    """Runs the examples that an exported model has inside in another runtime, and compares its outputs with those of the export.

    >>> swagwrap.verify("ensemble.onnx", "openvino")

    `run` is the name of a runtime: onnxruntime, openvino, tract, node or java, or all for each that is installed. Or it is a function of a
    dict of arrays, the inputs of a batch by name, that returns the outputs by name. Returns the largest difference, in units of the
    largest number of an output. Raises ProgramError or ValueError if it is larger than rounding explains, and ProgramError if the runtime
    is not installed.
    """
    from ._verify import verify_in

    return verify_in(path, run)


def load(
    path: str | os.PathLike[str],
    *,
    names: bool = False,
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    arrays: Arrays = "auto",
    file_order: FileOrder | None = None,
    batch_size: int = 64,
    threads: int | None = None,
    providers: Sequence[str] | None = None,
    verify: bool = False,
) -> Any:
    """Opens the model of an ensemble, as `swagwrap export` writes it. Returns a `Classifier` or a `Regressor`.

    >>> model = swagwrap.load("ensemble.onnx")
    >>> model.predict_proba("images/")

    `names=True` makes `classes_` and `predict` give names of classes. `columns` names a table's columns in the order of
    training, if the model does not know them. `arrays` is that of `swagwrap score --arrays`: floats are pixels to be
    normalised, or what the network has seen in training. `file_order` is the order of the files in a folder, "text" (1, 10,
    2) or "number" (1, 2, 10): `score` asks for it where the rows of y depend on it. `batch_size` examples run at a time. `threads` and `providers`
    are those of ONNX Runtime.

    `verify=True` runs the examples that the model has inside, and compares its outputs with those of the export: see
    `Model.verify`.

    Raises FileNotFoundError, and ValueError for another model, for arguments that do not fit it, or if it is verified and gives
    other outputs.
    """
    from ._estimators import Classifier, Regressor

    how: dict[str, Any] = dict(names=names, columns=columns, arrays=arrays, file_order=file_order, batch_size=batch_size, threads=threads, providers=providers)
    model: Model = Classifier(path, **how)
    if model.task == "regression":
        model = Regressor(path, **how)
    model.reader  # arguments that do not fit the model raise here
    if names and model.class_names is None:
        raise ValueError(f"names=True: {os.fspath(path)} has no names of classes. swagwrap fit --class-names FILE puts them into models")
    if verify:
        model.verify()
    return model
