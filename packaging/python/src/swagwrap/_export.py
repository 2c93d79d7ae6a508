"""The network as the graph that checkpoints are read against."""

from __future__ import annotations

import filecmp
import importlib.util
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def export(model: torch.nn.Module, example: torch.Tensor, path: str | os.PathLike[str] = "model.onnx", *, overwrite: bool = False) -> None:
    """Writes the network as an ONNX graph, with batch norm kept: the --template of `swagwrap fit`.

    `model` has the weights of one of the checkpoints that `fit` will be given, takes one tensor and gives the scores.
    DataParallel, DistributedDataParallel and torch.compile are looked into. `example` is a batch of at least two inputs;
    its first dimension is free in the graph. The exporter may put the weights beside `path`, as PATH.data.

    The model is in evaluation mode while it is exported, and afterwards as it was. Nothing is written if that fails.

    Raises `FileExistsError` if `path` is there with another content, unless `overwrite` says that it is replaced.
    """
    import torch

    check(example)
    model = unwrapped(model)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    training = [m for m in model.modules() if m.training]
    device = next((p.device for p in model.parameters()), example.device)
    try:
        model.eval()
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".swagwrap-") as work, torch.no_grad():
            # optimize=False keeps batch norm, and the names of the state_dict.
            torch.onnx.export(
                model, (example.to(device),), os.path.join(work, path.name),
                dynamo=True, optimize=False, dynamic_shapes=({0: torch.export.Dim("batch")},),
            )
            # The graph last: what it names is there when it is.
            names = sorted(os.listdir(work), key=lambda name: (name == path.name, name))
            for name in names:
                there = path.parent / name
                if not overwrite and os.path.lexists(there) and not _same(os.path.join(work, name), there):
                    raise FileExistsError(f"{there}: is there, with another content. Name another file, or say overwrite=True")
            for name in names:
                os.replace(os.path.join(work, name), path.parent / name)
    finally:
        for m in training:
            m.training = True


def _same(new: str, old: Path) -> bool:
    """Whether a regular file has the same content as a new one."""
    return old.is_file() and not old.is_symlink() and filecmp.cmp(new, old, shallow=False)


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
