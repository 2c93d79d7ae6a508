"""Flax and other libraries on JAX.

>>> swagwrap.jax.save("checkpoints", model, x, epoch)                       # Flax NNX
>>> predict = lambda variables, x: net.apply(variables, x, train=False)
>>> swagwrap.jax.save("checkpoints", predict, x, epoch, variables)          # Flax Linen, Haiku, Equinox, a function

Needs jax, jax2onnx and onnx. `export` writes the graph alone. `load` reads weights back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ._exporters import of_jax
from ._graph import Arrays, Graph
from ._states import States, arrays_of, input_names, known, unique, write_graph

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


def save(
    folder: str | os.PathLike[str], model: Any, x: Any, epoch: int, variables: Any = None, *, overwrite: bool = False, reference: bool = True
) -> Path:
    """Writes the weights of an epoch, and the graph with the first ones. Returns the file with the weights.

    `model` is a module of Flax NNX. With `variables`, a tree of arrays, it is a function of variables and inputs that computes in
    evaluation mode. `x` is a batch of at least two inputs, or a list of batches for several inputs. Epochs count from 0.

    Give what SGD moved. SWAG does not want averages, such as those of optax.ema. `overwrite` removes checkpoints of this epoch and of
    later ones. `reference=False` does not write `swagwrap-reference.npz`, which has what the network gives for up to 16 inputs of `x`.
    """
    return States(Path(folder), arrays_of(x), overwrite=overwrite, reference=reference).save(Network(model, variables), epoch)


def export(
    model: Any, x: Any, path: str | os.PathLike[str] = "model.onnx", variables: Any = None, *, overwrite: bool = False, reference: bool = True
) -> None:
    """Writes the network with its weights of now: the --template of `swagwrap fit` for files that `swagwrap.convert` made."""
    network, examples = Network(model, variables), arrays_of(x)
    write_graph(network.graph([a[:2] for a in examples]), network, Path(path), examples, overwrite=overwrite, reference=reference)


def load(model: Any, path: str | os.PathLike[str], variables: Any = None) -> Any:
    """Puts the weights of a file into a module of NNX, or returns a copy of the tree `variables` with them.

    The file is one that `swagwrap export -o swa.safetensors` writes.
    """
    network = Network(model, variables)
    there = known(path, network.names)
    leaves = [jax.numpy.asarray(there[name], leaf.dtype) if name in there else leaf for name, leaf in zip(network.names, network.leaves)]
    tree = jax.tree_util.tree_unflatten(network.tree, leaves)
    if variables is not None:
        return tree
    from flax import nnx

    nnx.update(model, tree)
    return model


def names(tree: Any) -> list[str]:
    """The names of the arrays in a tree: their paths, such as `params/Dense_0/kernel`."""
    paths = [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]
    return unique([path.removesuffix("/value").removesuffix("/.value") for path in paths])


class Network:
    """A function of a tree of arrays, or a module of NNX."""

    def __init__(self, model: Any, variables: Any) -> None:
        self.function: Callable[..., Any] = model
        if variables is None:
            from flax import nnx

            evaluating = nnx.clone(model)
            evaluating.eval()
            definition, variables = nnx.split(evaluating)
            self.function = lambda tree, *x: nnx.merge(definition, tree)(*x)
        self.leaves, self.tree = jax.tree_util.tree_flatten(variables)
        self.names = names(variables)
        # Others are keys of random numbers, and counters.
        self.places = [i for i, leaf in enumerate(self.leaves) if hasattr(leaf, "dtype") and jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating)]

    def weights(self) -> Arrays:
        return {self.names[i]: np.asarray(self.leaves[i]) for i in self.places}

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        out = self.function(jax.tree_util.tree_unflatten(self.tree, self.leaves), *inputs)
        return [np.asarray(o) for o in jax.tree_util.tree_leaves(out)]

    def about(self) -> dict[str, Any]:
        return {"versions": {"jax": jax.__version__}, "device": str(jax.default_backend())}

    def graph(self, inputs: Sequence[Array]) -> Graph:
        def network(*args: Any) -> Any:
            leaves = list(self.leaves)
            for i, value in zip(self.places, args):
                leaves[i] = value
            out = self.function(jax.tree_util.tree_unflatten(self.tree, leaves), *args[len(self.places):])
            return tuple(jax.tree_util.tree_leaves(out))

        model = of_jax(network, list(self.weights().values()), inputs)
        return Graph.of_function(model, list(self.weights()), input_names(len(inputs), []))
