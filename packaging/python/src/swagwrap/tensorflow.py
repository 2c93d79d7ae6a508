"""TensorFlow without Keras: a tf.Module, or a function and its variables. Models of Keras have `swagwrap.keras`.

>>> swagwrap.tensorflow.save("checkpoints", module, x, epoch)
>>> swagwrap.tensorflow.save("checkpoints", predict, x, epoch, {"kernel": kernel, "bias": bias})

Needs tensorflow, tf2onnx and onnx. `export` writes the graph alone. `load` reads weights back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from ._exporters import of_tensorflow
from ._graph import Arrays, Graph
from ._states import States, arrays_of, input_names, known, write_graph

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

Variables = Mapping[str, Any]


def save(
    folder: str | os.PathLike[str], model: Any, x: Any, epoch: int, variables: Variables | None = None, *, overwrite: bool = False, reference: bool = True
) -> Path:
    """Writes the weights of an epoch, and the graph with the first ones. Returns the file with the weights.

    `model` computes in evaluation mode when it is called with inputs. It is a tf.Module, or a function with its `variables` by name.
    `x` is a batch of at least two inputs, or a list of batches for several inputs. Epochs count from 0. `overwrite` removes checkpoints
    of this epoch and of later ones. `reference=False` does not write `swagwrap-reference.npz`, which has what the network gives for up
    to 16 inputs of `x`.
    """
    return States(Path(folder), arrays_of(x), overwrite=overwrite, reference=reference).save(Network(model, variables), epoch)


def export(
    model: Any, x: Any, path: str | os.PathLike[str] = "model.onnx", variables: Variables | None = None, *, overwrite: bool = False, reference: bool = True
) -> None:
    """Writes the network with its weights of now: the --template of `swagwrap fit` for files that `swagwrap.convert` made."""
    network, examples = Network(model, variables), arrays_of(x)
    write_graph(network.graph([a[:2] for a in examples]), network, Path(path), examples, overwrite=overwrite, reference=reference)


def load(model: Any, path: str | os.PathLike[str], variables: Variables | None = None) -> None:
    """Puts the weights of a file into the variables, such as those that `swagwrap export -o swa.safetensors` writes."""
    own = dict(Network(model, variables).variables)
    for name, value in known(path, own).items():
        own[name].assign(value)


class Network:
    """A function, and its variables of float types by name. Those of a tf.Module have the names of its attributes."""

    def __init__(self, model: Any, variables: Variables | None) -> None:
        self.model = model
        if variables is None:
            found = model._flatten(predicate=lambda v: isinstance(v, tf.Variable), with_path=True)  # as tf.train.Checkpoint names them
            variables = {"/".join(map(str, path)): v for path, v in found}
        self.variables = [(name, v) for name, v in variables.items() if v.dtype.is_floating]

    def weights(self) -> Arrays:
        return {name: v.numpy() for name, v in self.variables}

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        return [o.numpy() for o in tf.nest.flatten(self.model(*map(tf.constant, inputs)))]

    def about(self) -> dict[str, Any]:
        return {"versions": {"tensorflow": tf.__version__}, "device": "gpu" if tf.config.list_physical_devices("GPU") else "cpu"}

    def graph(self, inputs: Sequence[Array]) -> Graph:
        n = len(self.variables)

        def network(*args: Any) -> Any:
            with _read_as([v for _, v in self.variables], args[:n]):
                return tuple(tf.nest.flatten(self.model(*args[n:])))

        values = list(self.weights().values())
        specs = [tf.TensorSpec(a.shape, a.dtype) for a in (*values, *inputs)]
        concrete = tf.function(network, autograph=False).get_concrete_function(*specs)
        for name, v in self.variables:
            if any(v.handle is held for held in concrete.captured_inputs):
                raise ValueError(f"variable {name!r} is read by a tf.function inside the network: give the function that it decorates")
        return Graph.of_function(of_tensorflow(network, values, inputs), [name for name, _ in self.variables], input_names(len(inputs), []))


@contextmanager
def _read_as(variables: Sequence[Any], values: Sequence[Any]) -> Iterator[None]:
    """Lets variables have other values while a graph is made. tf2onnx would make constants of variables, and fold them."""
    for v, value in zip(variables, values):
        v._read_variable_op = lambda no_copy=False, value=value: value
        v.sparse_read = lambda indices, name=None, value=value: tf.gather(value, indices)
    try:
        yield
    finally:
        for v in variables:
            del v._read_variable_op, v.sparse_read
