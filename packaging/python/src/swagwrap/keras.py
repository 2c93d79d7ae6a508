"""Keras 3 on JAX, TensorFlow and PyTorch.

>>> model.fit(x, y, epochs=30, callbacks=[swagwrap.keras.Callback("checkpoints", x[:16], start=10)])

The callback writes the graph once, and the weights of each epoch, by the names of Keras: `swagwrap fit --template
checkpoints/model.onnx checkpoints`. `export` writes the graph alone. `load` puts averaged weights into a model.

Needs keras, onnx, and what the backend exports with: jax2onnx, tf2onnx, or PyTorch's exporter with onnxscript.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from ._exporters import of_jax, of_tensorflow, of_torch
from ._graph import Arrays, Graph
from ._states import States, changed_rate, input_names, known, unique, write_graph

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


class Callback(keras.callbacks.Callback):  # type: ignore[misc]
    """Saves what `swagwrap fit` needs: `model.onnx` once, `epoch-000.safetensors` and so on, and `swagwrap-reference.npz`.

    `x` is a batch of at least two inputs, as `model.predict` takes it. Epochs count from 0. `start` is the first epoch that is saved,
    and every `every`-th after it is. `learning_rate` is held from epoch `start` on. Without it a change of the rate is warned about.
    `overwrite` removes the checkpoints of an earlier run from the folder. `swagwrap-reference.npz` gets what the network gives for up to
    16 inputs of `x`: `fit` holds the graph against it. `reference=False` leaves it out.

    The files have the weights that SGD moved, also with `use_ema=True`. Put this callback before a `SwapEMAWeights` in the list.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        x: Any,
        *,
        start: int = 0,
        every: int = 1,
        learning_rate: float | None = None,
        overwrite: bool = False,
        reference: bool = True,
    ) -> None:
        super().__init__()
        if start < 0 or every < 1:
            raise ValueError(f"start {start}, every {every}: want an epoch from 0 on, and a number of epochs from 1 on")
        self.start, self.every, self.learning_rate = start, every, learning_rate
        self._x = x
        self._states = States(Path(folder), _arrays(x), overwrite=overwrite, reference=reference)
        self._rate: float | None = None
        self._before: tuple[list[Array], list[Array]] | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        """A network that cannot be exported fails before it is trained."""
        if self._states.graph is None:
            self._states.graph = Network(self.model, self._x).graph([a[:2] for a in self._states.examples])

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if self.learning_rate is not None and epoch >= self.start:
            self.model.optimizer.learning_rate = self.learning_rate

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch < self.start or (epoch - self.start) % self.every:
            return
        if self.learning_rate is None:
            self._rate = changed_rate(self._rate, float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)), epoch)
        self._states.save(Network(self.model, self._x), epoch)
        self._look_at_average()

    def _look_at_average(self) -> None:
        """Warns if the weights of the model move less than the average that the optimizer keeps: SwapEMAWeights has exchanged the two."""
        average = _average(self.model.optimizer)
        if average is None:
            return
        now = [[_number(v) for v in some] for some in (self.model.trainable_variables, average)]
        if self._before is not None:
            model, kept = (sum(float(np.square(a - b).sum()) for a, b in zip(new, old)) for new, old in zip(now, self._before))
            if model < kept:
                warnings.warn(
                    "swagwrap: the saved weights move less than the average that the optimizer keeps. They may be the average: put "
                    "swagwrap.keras.Callback before SwapEMAWeights in the list of callbacks", stacklevel=3,
                )
        self._before = now[0], now[1]


def export(model: Any, x: Any, path: str | os.PathLike[str] = "model.onnx", *, overwrite: bool = False, reference: bool = True) -> None:
    """Writes the network with its weights of now: the --template of `swagwrap fit` for files that `swagwrap.convert` made."""
    network, examples = Network(model, x), _arrays(x)
    graph = network.graph([a[:2] for a in examples])
    write_graph(graph, network, Path(path), examples, overwrite=overwrite, reference=reference)


def load(model: Any, path: str | os.PathLike[str]) -> None:
    """Puts the weights of a file into the model, such as those that `swagwrap export -o swa.safetensors` writes."""
    variables = dict(_variables(model))
    for name, value in known(path, variables).items():
        variables[name].assign(value)


class Network:
    """A model of Keras, and the structure of its inputs."""

    def __init__(self, model: Any, x: Any) -> None:
        self.model, self.structure = model, x

    def weights(self) -> Arrays:
        return {name: _number(v) for name, v in _variables(self.model)}

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        out = self.model(keras.tree.pack_sequence_as(self.structure, [keras.ops.convert_to_tensor(x) for x in inputs]), training=False)
        return [keras.ops.convert_to_numpy(o) for o in keras.tree.flatten(out)]

    def about(self) -> dict[str, Any]:
        backend = keras.backend.backend()
        versions = {"keras": keras.__version__, backend: __import__(backend).__version__}
        return {"versions": versions, "device": _device(backend)}

    def graph(self, inputs: Sequence[Array]) -> Graph:
        backend = keras.backend.backend()
        exporters: dict[str, Callable[..., Any]] = {"jax": of_jax, "tensorflow": of_tensorflow, "torch": of_torch}
        if backend not in exporters:
            raise RuntimeError(f"Keras's backend {backend!r} has no exporter to ONNX: train with jax, tensorflow or torch")
        self.outputs(inputs)  # builds the model
        variables = _variables(self.model)
        places = {id(v): i for i, (_, v) in enumerate(variables)}

        def network(*args: Any) -> Any:
            """The network of its weights, and then its inputs."""
            def values(some: Any) -> list[Any]:
                return [args[places[id(v)]] if id(v) in places else v.value for v in some]

            x = keras.tree.pack_sequence_as(self.structure, list(args[len(variables):]))
            out, _ = self.model.stateless_call(values(self.model.trainable_variables), values(self.model.non_trainable_variables), x, training=False)
            return tuple(keras.tree.flatten(out))

        model = exporters[backend](network, [_number(v) for _, v in variables], inputs)
        return Graph.of_function(model, [name for name, _ in variables], input_names(len(inputs), [t.name for t in getattr(self.model, "inputs", None) or []]))


def _variables(model: Any) -> list[tuple[str, Any]]:
    """The weights of float types by their paths, without the name of the model, which a model that was loaded leaves out. Others are
    seeds and counters."""
    names = unique([v.path.removeprefix(model.name + "/") for v in model.weights])
    return [(name, v) for name, v in zip(names, model.weights) if "float" in v.dtype]


def _number(v: Any) -> Array:
    value: Array = np.array(keras.ops.convert_to_numpy(v.value))
    return value


def _average(optimizer: Any) -> list[Any] | None:
    """The moving average that the optimizer keeps, or None."""
    return getattr(optimizer, "_model_variables_moving_average", None) if getattr(optimizer, "use_ema", False) else None


def _arrays(x: Any) -> list[Array]:
    return [np.asarray(keras.ops.convert_to_numpy(a)) for a in keras.tree.flatten(x)]


def _device(backend: str) -> str:
    if backend == "jax":
        import jax

        return str(jax.default_backend())
    if backend == "tensorflow":
        import tensorflow as tf

        return "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
