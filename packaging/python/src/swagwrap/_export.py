"""The network as the graph that checkpoints are read against."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._files import new_files
from ._reference import NAME, beside_graph

if TYPE_CHECKING:
    import torch


def export(model: torch.nn.Module, example: torch.Tensor, path: str | os.PathLike[str] = "model.onnx", *, overwrite: bool = False, reference: bool = True) -> None:
    """Writes the network as an ONNX graph, with batch norm kept: the --template of `swagwrap fit`.

    `model` has the weights of one of the checkpoints that `fit` will be given, takes one tensor and gives the scores.
    DataParallel, DistributedDataParallel and torch.compile are looked into. `example` is a batch of at least two inputs;
    its first dimension is free in the graph. The exporter may put the weights beside `path`, as PATH.data.

    The model is in evaluation mode while it is exported, and afterwards as it was. Nothing is written if that fails.

    `swagwrap-reference.npz` beside `path` gets what the network gives for up to 16 inputs of `example`: `fit` holds the graph against
    it. `reference=False` does not write it.

    Raises `FileExistsError` if `path` is there with another content, unless `overwrite` says that it is replaced.
    """
    write(model, example, Path(path), overwrite=overwrite, reference=reference)


def write(
    model: torch.nn.Module,
    example: torch.Tensor,
    path: Path,
    *,
    overwrite: bool = False,
    replaces: Callable[[Path, Path], bool] | None = None,
    reference: bool = False,
) -> None:
    """`export`. `replaces` says whether a new file may take the place of an old one."""
    import torch

    check(example)
    model = unwrapped(model)
    training = [m for m in model.modules() if m.training]
    device = next((p.device for p in model.parameters()), example.device)
    try:
        model.eval()
        # The graph last: what it names is there when it is.
        ours = (lambda new, old: old.name == NAME or bool(replaces and replaces(new, old))) if reference else replaces
        with new_files(path.parent, overwrite=overwrite, last=path.name, replaces=ours) as work, torch.no_grad():
            # optimize=False keeps batch norm, and the names of the state_dict.
            torch.onnx.export(
                model, (example.to(device),), os.path.join(work, path.name),
                dynamo=True, optimize=False, dynamic_shapes=({0: torch.export.Dim("batch")},),
            )
            if reference:
                beside_graph(model, example, path, work)
    finally:
        for m in training:
            m.training = True


def same_network(new: Path, old: Path) -> bool:
    """Whether two files of the exporter have the same graph, whatever the weights are. Files beside a graph hold weights alone."""
    import onnx

    if new.suffix == ".data":
        return old.with_suffix("").is_file()

    def graph(path: Path) -> Any:
        g = onnx.load(path, load_external_data=False).graph
        return (
            [(n.op_type, list(n.input), list(n.output)) for n in g.node], [x.SerializeToString() for x in (*g.input, *g.output)],
            [(t.name, t.data_type, list(t.dims)) for t in g.initializer],
        )

    try:
        return old.is_file() and not old.is_symlink() and graph(new) == graph(old)
    except Exception:  # no graph: a file of the user
        return False


def check(example: torch.Tensor) -> None:
    """Refuses what `export` cannot work with, before a training that would end with it."""
    import torch

    if tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 6):
        raise RuntimeError(f"PyTorch {torch.__version__}, want 2.6 or later: docs/exporting.md has the call for an older one")
    for name in ("onnx", "onnxscript"):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named '{name}', which PyTorch's exporter needs: pip install onnx onnxscript", name=name)
    if not isinstance(example, torch.Tensor):
        raise TypeError(f"example: {type(example).__name__}, want one tensor: put a network of several inputs into a module that takes one")
    if example.ndim == 0 or len(example) < 2:
        raise ValueError(f"example: shape {tuple(example.shape)}, want a batch of at least two inputs")


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The module that training is about, out of what parallelises or compiles it."""
    import torch
    from torch.optim.swa_utils import AveragedModel

    while True:
        if isinstance(model, AveragedModel):
            raise TypeError("model: an AveragedModel, want the model that is trained: SWAG takes its weights, and averages them itself")
        if isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
            model = model.module
        elif isinstance(getattr(model, "_orig_mod", None), torch.nn.Module):
            model = model._orig_mod  # type: ignore[assignment]
        else:
            return model
