"""`swagwrap try` from a training script: the network, its checkpoints and the loaders go in; a folder with the answer comes out."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._export import export, unwrapped
from ._files import replaced
from ._program import show
from ._results import Tried
from ._runtime import onnxruntime
from ._words import TRAINING, spoken

if TYPE_CHECKING:
    import numpy as np
    import torch

Loader = Iterable[Any]
_RECORD = "transforms.json"
# Of the folder with data.
_WRITTEN = {_RECORD, "batches.npy", "val.npz", "test.npz", "classes.txt", "model.onnx", "model.onnx.data", "model.pt", "swagwrap-reference.npz"}


def try_(
    model: torch.nn.Module,
    checkpoints: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    train_loader: Loader,
    val_loader: Loader | None,
    test_loader: Loader,
    *,
    folder: str | os.PathLike[str] = "swagwrap-result",
    examples: int = 10_000,
    unused: Sequence[str] = (),
    args: Sequence[str] = (),
    overwrite: bool = False,
) -> Tried:
    """Runs `swagwrap try` on a network, its checkpoints and its data loaders. Returns the folder with the results, which a
    notebook shows as a page with tables and figures.

    `model` is the network that was trained: it takes one tensor and gives the scores. `checkpoints` is one file, a list
    of files, or a folder. The loaders yield pairs of inputs and labels, as in training. The inputs are saved exactly as
    the network sees them, so nothing is normalised twice. `val_loader` may be None: then temperatures are fitted on one
    half of the test data for the other half.

    `examples` limits how many training examples are saved; batch norm needs a few thousand, shuffled and augmented.
    All saved inputs of a loader must fit into memory. `unused` names tensors of the checkpoints that the network does not use
    in evaluation mode, such as `["aux.*"]` of an auxiliary head; the error that asks for them lists them.
    `args` are further arguments of `swagwrap try`, such as
    `["--task", "labels"]`. `overwrite` replaces the results of an earlier run, and nothing else. If the run fails, both
    folders are as they were.

    The folder gets `report.html`, `table.txt`, `NEXT.md`, the ensemble and its ONNX model. The folder beside it, with
    `-data` in its name, gets the exported graph, the inputs, and `transforms.json`, which records how the loaders
    normalised and augmented.

    Raises `FileExistsError` if one of the folders is not empty, `ValueError` if a loader yields no usable pairs, and
    `ProgramError` if the program fails.
    """
    folder = Path(folder)
    data = folder.with_name(folder.name + "-data")
    if data.is_symlink():
        data = Path(os.path.realpath(data))
    for there in (folder, data):
        if there.exists() and not there.is_dir():
            raise FileExistsError(f"{there}: is a file. Name a folder")
        if not overwrite and there.exists() and any(there.iterdir()):
            raise FileExistsError(f"{there}: is not empty. Name another folder, or pass overwrite=True")
    there_now = {p.name for p in data.iterdir()} if data.exists() else set()
    if others := sorted(there_now - _WRITTEN if _RECORD in there_now else there_now):
        raise FileExistsError(f"{data}: holds files that try_ did not write: {', '.join(others[:3])}. Name another folder")
    paths = [Path(checkpoints)] if isinstance(checkpoints, (str, os.PathLike)) else [Path(p) for p in checkpoints]
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such checkpoint")
    args = [*_unused(unused), *args]
    with replaced(data):
        data.mkdir(parents=True, exist_ok=True)
        _try(model, paths, train_loader, val_loader, test_loader, folder, data, examples, ["--force", *args] if overwrite else args)
    return Tried(folder)


def _try(
    model: torch.nn.Module, paths: list[Path], train: Loader, val: Loader | None, test: Loader, folder: Path, data: Path, examples: int, args: Sequence[str]
) -> None:
    """Saves what the loaders yield to the folder data, and runs the program."""
    import numpy as np

    batches, _ = _collect(train, "train_loader", examples, labels=False)
    np.save(data / "batches.npy", batches)
    names: list[str] = []
    for name, loader in {"val": val, "test": test}.items():
        if loader is not None:
            x, y = _collect(loader, f"{name}_loader", None, labels=True)
            np.savez(data / f"{name}.npz", x=x, y=y)
        if name == "test":
            names = _classes(loader, y)
    loaders = {"train": train, "val": val, "test": test}
    (data / _RECORD).write_text(json.dumps({name: _transforms(loader) for name, loader in loaders.items()}, indent=2) + "\n")

    graph = data / "model.onnx"
    command = ["try", "-o", str(folder), "--template", _export(model, batches, graph), "--bn-data", str(data / "batches.npy"), "--arrays", "seen"]
    if val is not None:
        command += ["--val", str(data / "val.npz")]
    if names and "--class-names" not in args and _scores(graph) in ((len(names), 1) if len(names) == 2 else (len(names),)):
        (data / "classes.txt").write_text("\n".join(names) + "\n")
        command += ["--class-names", str(data / "classes.txt")]
    if words := _normalization(test):
        command += ["--preprocess", words]
    with spoken(TRAINING):
        show(*command, *args, *map(str, paths), str(data / "test.npz"))


def _unused(names: Sequence[str]) -> list[str]:
    """The flag for tensors that the network does not use."""
    return ["--unused", ",".join([names] if isinstance(names, str) else names)] if names else []


def _collect(loader: Loader, name: str, limit: int | None, *, labels: bool) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The inputs and labels of a loader as two arrays; the labels are empty without `labels`."""
    import numpy as np

    inputs: list[np.ndarray[Any, Any]] = []
    targets: list[np.ndarray[Any, Any]] = []
    count = 0
    for batch in loader:
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            what = f"{len(batch)} things" if isinstance(batch, (tuple, list)) else type(batch).__name__
            raise ValueError(f"{name}: yields {what}, want pairs of inputs and labels")
        x, y = (np.asarray(v.detach().cpu() if hasattr(v, "detach") else v) for v in batch)
        inputs.append(x if limit is None else x[: limit - count])
        targets.append(y)
        count += len(x)
        if limit is not None and count >= limit:
            break
    if not inputs:
        raise ValueError(f"{name}: yields nothing")
    return np.concatenate(inputs), np.concatenate(targets) if labels else np.empty(0)


def _export(model: torch.nn.Module, batches: np.ndarray[Any, Any], graph: Path) -> str:
    """Exports the network, and saves its state_dict beside the graph. Returns the value of --template: both files.

    The program reads the checkpoints, of any kind and under any names. The state_dict shows it which tensor of the graph is which,
    so the network need not have the weights of a checkpoint. Its copy gets weights that all differ, because an exporter may write
    equal tensors once.
    """
    import torch

    network = copy.deepcopy(unwrapped(model))
    with torch.no_grad():
        for tensor in network.state_dict().values():
            if tensor.is_floating_point() and tensor.numel() > 0:
                tensor.add_(torch.rand_like(tensor) * 1e-3)
    export(network, torch.from_numpy(batches[:2]), graph)
    weights = graph.with_suffix(".pt")
    torch.save({k: v for k, v in network.state_dict().items() if isinstance(v, torch.Tensor)}, weights)
    return f"{graph}={weights}"


def _steps(loader: Loader | None) -> list[Any]:
    """The transforms of the loader's data set, one after the other."""
    transform = getattr(getattr(loader, "dataset", None), "transform", None)
    if transform is None:
        return []
    return list(getattr(transform, "transforms", [transform]))


def _transforms(loader: Loader | None) -> list[str]:
    return [repr(step) for step in _steps(loader)]


def _classes(loader: Loader | None, labels: np.ndarray[Any, Any]) -> list[str]:
    """The names of classes that the loader's data set has, as torchvision's have, if they fit the labels; else none."""
    data: Any = getattr(loader, "dataset", None)
    while hasattr(data, "dataset") and not hasattr(data, "classes"):  # a Subset
        data = data.dataset
    names = [str(name) for name in getattr(data, "classes", None) or ()]
    fits = labels.ndim == 1 and labels.dtype.kind in "iu" and len(labels) > 0 and 0 <= labels.min() and labels.max() < len(names)
    plain = len(set(names)) == len(names) and all(name.strip() and name.isprintable() for name in names)
    return names if fits and plain else []


def _scores(template: Path) -> int | None:
    """The number of scores that the exported network gives for an example, if the graph says it."""
    shape = onnxruntime().InferenceSession(template, providers=["CPUExecutionProvider"]).get_outputs()[0].shape
    return shape[1] if len(shape) == 2 and isinstance(shape[1], int) else None


def _normalization(loader: Loader) -> str:
    """The words of --preprocess for torchvision's Normalize, if nothing else but ToTensor changes the pixels."""
    import numpy as np

    words = ""
    for step in _steps(loader):
        name = type(step).__name__
        if name == "Normalize":
            mean, std = (",".join(f"{float(v):.9g}" for v in np.atleast_1d(np.asarray(value))) for value in (step.mean, step.std))
            words = f"mean={mean} std={std}"
        elif name not in {"ToTensor", "PILToTensor", "ToImage", "ToDtype", "ConvertImageDtype"}:
            return ""
    return words
