"""The average of checkpoints, and members around it, as weights of the model."""

from __future__ import annotations

import copy
import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from ._export import unwrapped
from ._program import Ran, run
from ._try import Loader, _export, _unused
from ._words import TRAINING, spoken

if TYPE_CHECKING:
    import numpy as np
    import torch

Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


def average(
    model: torch.nn.Module,
    checkpoints: Paths,
    train_loader: Loader | None = None,
    *,
    examples: int = 10_000,
    graph: bool = True,
    unused: Sequence[str] = (),
    args: Sequence[str] = (),
) -> torch.nn.Module:
    """Returns a copy of the model with the average of the checkpoints' weights (SWA), and batch norm recomputed for them.

    >>> swa = swagwrap.average(model, "checkpoints", train_loader)
    >>> trainer.test(swa, test_loader)        # with Lightning: a LightningModule goes in, and comes out

    `checkpoints` is one file, a list of files, or a folder. They need no labels and no task, so detectors, generators and
    embeddings are averaged, too. `train_loader` yields inputs, or tuples that begin with them, as in training. Of these at most
    `examples` are used. Without batch norm it may be None, if the folder has a `model.onnx`, as `callback` writes it.
    `unused` names tensors of the checkpoints that the network does not use in evaluation mode, such as `["aux.*"]` of an auxiliary
    head; the error that asks for them lists them. `graph=False` is for networks that no exporter takes, such as those of message
    passing: PyTorch computes the batch norm, and a batch may be any object. A dict is given as keyword arguments, a tuple by its
    first item, anything else as it is. `args` are further arguments of `swagwrap fit`. The copy is in evaluation mode.

    Raises `ProgramError` with the program's message if it refuses the checkpoints.
    """
    if not graph:
        return _without_graph(model, _existing(checkpoints), train_loader, examples, args)
    with _posterior(model, checkpoints, train_loader, examples, [*_unused(unused), *args]) as made:
        return _loaded(model, made.export("swa.pt"))


def _existing(checkpoints: Paths) -> list[Path]:
    paths = [Path(checkpoints)] if isinstance(checkpoints, (str, os.PathLike)) else [Path(p) for p in checkpoints]
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such checkpoint")
    return paths


def _without_graph(model: torch.nn.Module, paths: list[Path], loader: Iterable[Any] | None, examples: int, args: Sequence[str]) -> torch.nn.Module:
    """The average that `swagwrap fit --no-graph` writes, with batch norm by PyTorch."""
    from safetensors import safe_open

    with tempfile.TemporaryDirectory(prefix="swagwrap-") as work:
        path = Path(work) / "swa.safetensors"
        with spoken(TRAINING, {re.escape(work + os.sep): ""}):
            ran = run("fit", "--no-graph", *args, "-o", str(path), *map(str, paths))
        for line in ran.stderr.splitlines():
            if line.startswith("left out"):
                warnings.warn(f"swagwrap: {TRAINING.of(line)}", stacklevel=3)
        with safe_open(path, "pt") as f:
            new = _loaded(model, {name: f.get_tensor(name) for name in f.keys()})
            moved = json.loads(f.metadata()["swagwrap"])["statistics_moved"] or []
    layers = {name: m for name, m in new.named_modules() if getattr(m, "running_mean", None) is not None}
    stale = {name: m for name, m in layers.items() if any(f".{of}".endswith(f".{name}.running_{s}") for of in moved for s in ("mean", "var"))}
    if moved and not stale:
        raise ValueError(f"{moved[0]}: a statistic that training moved, and the model has no such batch-norm layer")
    if stale:
        if loader is None:
            raise ValueError(f"train_loader: None, and {len(stale)} batch-norm layers need new statistics for the average")
        _update(new, list(stale.values()), loader, examples)
    return new


def _update(model: torch.nn.Module, layers: list[Any], loader: Iterable[Any], examples: int) -> None:
    """Recomputes the statistics of these layers, as `torch.optim.swa_utils.update_bn` does. All others stay in evaluation mode:
    dropout, and layers whose statistics training had frozen."""
    import torch

    before = [(m, m.momentum) for m in layers]
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    seen = 0
    for m in layers:
        m.reset_running_stats()
        m.momentum = None
        m.train()
    with torch.no_grad():
        for batch in loader:
            x = batch[0] if isinstance(batch, (tuple, list)) and batch else batch
            x = {k: _to(v, device) for k, v in x.items()} if isinstance(x, Mapping) else _to(x, device)
            model(**x) if isinstance(x, dict) else model(x)
            seen += len(x) if hasattr(x, "shape") else 1
            if seen >= examples:
                break
    for m, momentum in before:
        m.momentum = momentum
    model.eval()
    if not seen:
        raise ValueError("train_loader: yields no batch")


def _to(x: Any, device: Any) -> Any:
    return x.to(device) if hasattr(x, "to") else x


def members(
    model: torch.nn.Module, checkpoints: Paths, train_loader: Loader | None = None, *, n: int = 30, seed: int = 1, examples: int = 10_000, unused: Sequence[str] = (), args: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yields the state_dicts of n members that SWAG draws around the average, each with its own batch norm.

    >>> for state in swagwrap.members(model, "checkpoints", train_loader, n=10):
    ...     model.load_state_dict(state)

    The arguments are those of `average`. One member at a time is in memory.
    """
    with _posterior(model, checkpoints, train_loader, examples, [*_unused(unused), *args]) as made:
        ensemble = made.sample(n, seed)
        for k in range(n):
            yield _fitting(model, made.export("member.pt", "--force", "--member", str(k), of=ensemble))


class _posterior:
    """A posterior of the checkpoints, in a folder that is removed at the end."""

    def __init__(self, model: torch.nn.Module, checkpoints: Paths, loader: Loader | None, examples: int, args: Sequence[str]) -> None:
        self.model, self.loader, self.examples, self.args = model, loader, examples, args
        self.paths = _existing(checkpoints)

    def __enter__(self) -> _posterior:
        self.work = tempfile.TemporaryDirectory(prefix="swagwrap-")
        try:
            self._fit(Path(self.work.name))
        except BaseException:
            self.work.cleanup()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.work.cleanup()

    def _fit(self, work: Path) -> None:
        import numpy as np

        self.data: list[str] = []
        template = next((str(p / "model.onnx") for p in self.paths if (p / "model.onnx").exists()), None)
        if self.loader is not None:
            batches = _inputs(self.loader, self.examples)
            np.save(work / "batches.npy", batches)
            self.data = ["--bn-data", str(work / "batches.npy"), "--arrays", "seen"]
            if template is None:
                template = _export(self.model, batches, work / "model.onnx")
        if template is None:
            raise ValueError("train_loader: None, and no model.onnx with the checkpoints. Give the loader: its first batch exports the network")
        self.posterior = work / "posterior.safetensors"
        ran = self._run("fit", "--task", "none", "--template", template, *self.args, "-o", str(self.posterior), *map(str, self.paths))
        for line in ran.stderr.splitlines():
            if line.startswith("left out"):  # checkpoints that are averages
                warnings.warn(f"swagwrap: {TRAINING.of(line)}", stacklevel=4)

    def _run(self, *args: str) -> Ran:
        """Runs the program. The caller does not know its folder."""
        with spoken(TRAINING, {re.escape(self.work.name + os.sep): ""}):
            return run(*args)

    def sample(self, n: int, seed: int) -> Path:
        ensemble = Path(self.work.name) / "ensemble.safetensors"
        self._run("sample", "-q", "-n", str(n), "--seed", str(seed), *self.data, "-o", str(ensemble), str(self.posterior))
        return ensemble

    def export(self, name: str, *args: str, of: Path | None = None) -> dict[str, Any]:
        """The state_dict that `swagwrap export` writes."""
        import torch

        path = Path(self.work.name) / name
        data = self.data if of is None else []
        self._run("export", "-q", *args, *data, "-o", str(path), str(of or self.posterior))
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return state


def _inputs(loader: Loader, limit: int) -> np.ndarray[Any, Any]:
    """The inputs of a loader, whose batches are inputs, or tuples that begin with them."""
    import numpy as np

    inputs: list[np.ndarray[Any, Any]] = []
    count = 0
    for batch in loader:
        x = batch[0] if isinstance(batch, (tuple, list)) and len(batch) > 0 else batch
        if not hasattr(x, "shape"):
            raise ValueError(f"train_loader: yields {type(x).__name__}, want tensors of inputs, or tuples that begin with one")
        inputs.append(np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)[: limit - count])
        count += len(inputs[-1])
        if count >= limit:
            break
    if count < 2:
        raise ValueError(f"train_loader: yields {count} examples, want at least two")
    return np.concatenate(inputs)


def _fitting(model: torch.nn.Module, state: dict[str, Any]) -> dict[str, Any]:
    """The state_dict with the model's names: without what wrappers put before them in the checkpoints."""
    wanted = unwrapped(model).state_dict()
    if not wanted.keys() & state.keys():
        first = next(iter(wanted), "")
        for prefix in (name[: -len(first)] for name in state if first and name.endswith("." + first)):
            if all(prefix + name in state for name in wanted):
                return {name: state[prefix + name] for name in wanted}
    return state


def _loaded(model: torch.nn.Module, state: dict[str, Any]) -> torch.nn.Module:
    """A copy of the model with these weights."""
    new = copy.deepcopy(unwrapped(model))
    new.load_state_dict(_fitting(model, state))
    return new.eval()
