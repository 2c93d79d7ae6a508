"""PaddlePaddle.

>>> swagwrap.paddle.save("checkpoints", model, x, epoch)

Needs paddlepaddle, paddle2onnx and onnx. `export` writes the graph alone. `load` reads weights back.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle

from ._graph import Arrays, Graph
from ._states import States, arrays_of, input_names, known, write_graph

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


def save(folder: str | os.PathLike[str], model: Any, x: Any, epoch: int, *, overwrite: bool = False, reference: bool = True) -> Path:
    """Writes the weights of an epoch, and the graph with the first ones. Returns the file with the weights.

    `x` is a batch of at least two inputs, or a list of batches for several inputs. Epochs count from 0. Give the weights that SGD moved.
    SWAG does not want averages, such as those of ModelAverage and ExponentialMovingAverage. `overwrite` removes checkpoints of this epoch
    and of later ones. `reference=False` does not write `swagwrap-reference.npz`, which has what the network gives for up to 16 inputs of `x`.
    """
    return States(Path(folder), arrays_of(x), overwrite=overwrite, reference=reference).save(Network(model), epoch)


def export(model: Any, x: Any, path: str | os.PathLike[str] = "model.onnx", *, overwrite: bool = False, reference: bool = True) -> None:
    """Writes the network with its weights of now: the --template of `swagwrap fit` for files that `swagwrap.convert` made."""
    network, examples = Network(model), arrays_of(x)
    write_graph(network.graph(examples), network, Path(path), examples, overwrite=overwrite, reference=reference)


def load(model: Any, path: str | os.PathLike[str]) -> None:
    """Puts the weights of a file into the model, such as those that `swagwrap export -o swa.safetensors` writes."""
    own = model.state_dict()
    model.set_state_dict({**own, **known(path, own)})


class Network:
    """A layer of PaddlePaddle."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def weights(self) -> Arrays:
        arrays = {name: np.array(value.numpy()) for name, value in self.model.state_dict().items()}
        return {name: value for name, value in arrays.items() if value.dtype.kind == "f"}

    def outputs(self, inputs: Sequence[Array]) -> list[Array]:
        with _evaluating(self.model), paddle.no_grad():
            out = self.model(*map(paddle.to_tensor, inputs))
        return [o.numpy() for o in paddle.utils.flatten(out)]

    def about(self) -> dict[str, Any]:
        return {"versions": {"paddle": paddle.__version__}, "device": paddle.get_device().split(":")[0]}

    def graph(self, inputs: Sequence[Array]) -> Graph:
        import onnx
        import paddle2onnx

        specs = [paddle.static.InputSpec([None, *x.shape[1:]], str(x.dtype), f"swagwrap_input_{i}") for i, x in enumerate(inputs)]
        with tempfile.TemporaryDirectory() as work, _evaluating(self.model):
            forward = self.model.forward
            paddle.jit.save(self.model, f"{work}/model", input_spec=specs)
            self.model.forward = forward  # paddle.jit.save leaves a translated one
            program = f"{work}/model.json" if os.path.exists(f"{work}/model.json") else f"{work}/model.pdmodel"
            # The default optimiser folds biases. It also installs a package from the internet.
            paddle2onnx.export(program, f"{work}/model.pdiparams", f"{work}/model.onnx", opset_version=17, optimize_tool="None")
            model = onnx.load(f"{work}/model.onnx")
        called = {value.name: name for name, value in self.model.state_dict().items()}
        return Graph.with_constants(model, called, input_names(len(inputs), []))


class _evaluating:
    """Evaluation mode for a while, of each layer that is in training mode."""

    def __init__(self, model: Any) -> None:
        self.training = [layer for layer in model.sublayers(include_self=True) if layer.training]

    def __enter__(self) -> None:
        for layer in self.training:
            layer.training = False

    def __exit__(self, *_: object) -> None:
        for layer in self.training:
            layer.training = True
