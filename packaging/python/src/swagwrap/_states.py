"""The folder that a training loop of another framework than PyTorch leaves for `swagwrap fit`."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol


from ._checkpoints import make_room
from ._export import same_network
from ._files import new_files
from ._graph import Arrays, Graph, check
from ._later import np
from ._reference import EXAMPLES, NAME, File, affordable, goes_on_from, own_version

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

TEMPLATE = "model.onnx"
AVERAGE = "swagwrap.average"  # metadata of a file that has an average: what shows it. averageKey in weights/statefile


class Network(Protocol):
    """A network of a framework, with its weights of now."""

    def weights(self) -> Arrays:
        """All floating variables, by names that each have one."""

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        """What it gives in evaluation mode."""

    def graph(self, inputs: Sequence[Array]) -> Graph:
        """The network as a function of its weights."""

    def about(self) -> dict[str, Any]:
        """Versions, and the device of `outputs`."""


class States:
    """A folder with the graph and the weights of each epoch."""

    def __init__(self, folder: Path, examples: Sequence[Array], *, overwrite: bool, reference: bool) -> None:
        for x in examples:
            if x.ndim == 0 or len(x) < 2 or len(x) != len(examples[0]):
                raise ValueError(f"x: shape {x.shape}, want a batch of at least two inputs")
        self.folder, self.examples, self.overwrite, self.reference = folder, examples, overwrite, reference
        self.graph: Graph | None = None
        self._written: set[Path] = set()
        self._reference: File | None = None
        self._left = time.perf_counter()

    def save(self, network: Network, epoch: int) -> Path:
        """Writes the weights of an epoch. The first time it writes the graph, unless a run that goes on has it."""
        first, goes_on, seconds = not self._written, False, time.perf_counter() - self._left
        if first:
            goes_on = make_room(self.folder, epoch, overwrite=self.overwrite)
        self.graph = self.graph or self._old_graph(network, goes_on) or network.graph([x[:2] for x in self.examples])
        path = self.folder / f"epoch-{epoch:03d}.safetensors"
        weights = network.weights()
        if first:
            write_graph(self.graph, network, self.folder / TEMPLATE, self.examples, overwrite=self.overwrite, goes_on=goes_on)
        write_weights({name: weights[name] for name in self.graph.names}, path, overwrite=self.overwrite or path in self._written)
        self._written.add(path)
        if self.reference:
            self._add_outputs(network, path, first and goes_on, seconds)
        self._left = time.perf_counter()
        return path

    def _old_graph(self, network: Network, goes_on: bool) -> Graph | None:
        """The graph of a run that goes on, if it has the weights of the network."""
        path = self.folder / TEMPLATE
        if not goes_on or not path.is_file():
            return None
        import onnx

        model, have = onnx.load(path), network.weights()
        kept = [t for t in model.graph.initializer if t.name in have]
        for tensor in kept:
            model.graph.initializer.remove(tensor)
        return Graph(model, [t.name for t in kept])

    def _add_outputs(self, network: Network, path: Path, goes_on: bool, seconds: float) -> None:
        """Adds what the network gives for the same examples as in other epochs. Training goes on if that fails."""
        file = self.folder / NAME
        try:
            if self._reference is None:
                inputs = {f"inputs.{i}": x[:EXAMPLES] for i, x in enumerate(self.examples)}
                self._reference = goes_on_from(file, inputs, lambda name: name < path.name) if goes_on else None
                if self._reference is None:
                    n = affordable(lambda n: network.outputs([x[:n] for x in self.examples]), len(inputs["inputs.0"]), seconds)
                    self._reference = File({k: x[:n] for k, x in inputs.items()})
            add_outputs(self._reference, network, path.name)
            self._reference.write(file, overwrite=True)
        except Exception as e:
            warnings.warn(f"swagwrap: no reference outputs of {path}: {e}", stacklevel=4)


def write_graph(graph: Graph, network: Network, path: Path, examples: Sequence[Array], *, overwrite: bool, goes_on: bool = False, reference: bool = False) -> None:
    """Writes the graph with the weights of now, after a comparison of its outputs with the network's."""
    import onnx

    some = [x[:2] for x in examples]
    model = graph.filled(network.weights())
    check(model, some, network.outputs(some))
    with new_files(path.parent, overwrite=overwrite, last=path.name, replaces=same_network if goes_on else None) as work:
        onnx.save(model, work / path.name)
        if reference:
            file = File({f"inputs.{i}": x[:EXAMPLES] for i, x in enumerate(examples)})
            add_outputs(file, network, path.name)
            file.write(work / NAME)


def write_weights(weights: Arrays, path: Path, *, overwrite: bool, metadata: dict[str, str] | None = None) -> None:
    """Writes named tensors."""
    from safetensors.numpy import save

    with new_files(path.parent, overwrite=overwrite) as work:
        # safetensors 0.8 writes other values for an array that is not contiguous. Its save_file lets nobody else read the file.
        (work / path.name).write_bytes(save({name: np.ascontiguousarray(value) for name, value in weights.items()}, metadata))


def add_outputs(file: File, network: Network, weights: str) -> None:
    """Adds the outputs of the network as it is, which has the weights of that file."""
    about = {"device": "cpu", "dtype": "float32", "mode": "eval", **network.about()}
    about["versions"] = {**about["versions"], **own_version()}
    n = len(next(iter(file.inputs.values())))
    rows = {i: o for i, o in enumerate(network.outputs(list(file.inputs.values()))) if o.ndim and len(o) == n}
    if not rows:
        raise ValueError(f"the network gives no row of outputs for each of {n} examples")
    file.put(rows, about, weights)


def arrays_of(x: Any) -> list[Array]:
    """The inputs of a network: one batch, or a list of them."""
    return [np.asarray(a) for a in (x if isinstance(x, (list, tuple)) else [x])]


def known(path: str | os.PathLike[str], names: Container[str]) -> Arrays:
    """The tensors of a file. Raises ValueError for one that the network does not have."""
    from safetensors.numpy import load_file

    there = load_file(path)
    for name in there:
        if name not in names:
            raise ValueError(f"{path}: tensor {name!r}: no weight of this network has the name")
    return there


def unique(names: Sequence[str]) -> list[str]:
    """The names, each once: a second `dense/kernel` is `dense/kernel_2`."""
    out: list[str] = []
    for name in names:
        k, new = 2, name
        while new in out:
            k, new = k + 1, f"{name}_{k}"
        out.append(new)
    return out


def input_names(n: int, names: Sequence[str]) -> list[str]:
    """The names of n inputs: `input`, or those that the framework gives several."""
    if n == 1:
        return ["input"]
    return list(names) if len(set(names)) == n else [f"input_{i}" for i in range(n)]


def changed_rate(before: float | None, rate: float, epoch: int) -> float:
    """Warns where the learning rate is another one than in the epoch that was saved before. Returns the rate."""
    if before is not None and not np.isclose(rate, before, rtol=1e-6):
        warnings.warn(
            f"swagwrap: the learning rate is {rate:g} in epoch {epoch}, and was {before:g} in the one that was saved before: "
            "SWAG needs checkpoints of a constant rate, or learning_rate=RATE to hold it",
            stacklevel=4,
        )
    return rate
