"""What a training loop leaves for `swagwrap fit`: the graph once, and the weights of each epoch."""

from __future__ import annotations

import os
import re
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from ._export import check, same_network, unwrapped, write
from ._files import new_files
from ._reference import EXAMPLES, NAME, File, affordable, goes_on_from

if TYPE_CHECKING:
    import torch

_EPOCH = re.compile(r"epoch-(\d+)\.(pt|safetensors)")


class Checkpoints:
    """A folder of checkpoints of one run. `callback` makes one, and says what its options are."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        example: torch.Tensor,
        *,
        start: int = 0,
        every: int = 1,
        learning_rate: float | None = None,
        overwrite: bool = False,
        reference: bool = True,
    ) -> None:
        if start < 0 or every < 1:
            raise ValueError(f"start {start}, every {every}: want an epoch from 0 on, and a number of epochs from 1 on")
        if learning_rate is not None and not learning_rate > 0:
            raise ValueError(f"learning_rate {learning_rate}: want a positive number")
        check(example)
        self.folder = Path(folder)
        self.template = self.folder / "model.onnx"
        self.example = example
        self.start = start
        self.every = every
        self.learning_rate = learning_rate
        self.overwrite = overwrite
        self._written: set[Path] = set()
        self._rates: list[float] | None = None  # at the first epoch that was saved
        self.reference = reference
        self._reference: File | None = None
        self._left = time.perf_counter()  # when training went on
        self._held: list[torch.optim.Optimizer] = []

    def __call__(self, model: torch.nn.Module, epoch: int, optimizer: torch.optim.Optimizer | None = None) -> Path | None:
        """Is called at the end of every epoch, with its number. Returns the file that it wrote, if it did.

        With an `optimizer` it holds the learning rate, if one was given, and else warns where it changes.
        """
        path = None
        if self.due(epoch):
            if optimizer is not None and self.learning_rate is None:
                self._watch(optimizer, epoch)
            path = self._save(unwrapped(model), epoch, time.perf_counter() - self._left)
        if optimizer is not None and epoch + 1 >= self.start:
            self.hold(optimizer)  # for the next
        self._left = time.perf_counter()
        return path

    def due(self, epoch: int) -> bool:
        """Whether the weights at the end of that epoch are saved."""
        return epoch >= self.start and (epoch - self.start) % self.every == 0

    def hold(self, optimizer: torch.optim.Optimizer) -> None:
        """Gives all its groups the learning rate, if one was given, before each step from now on: schedulers may say what they like."""
        if self.learning_rate is not None and not any(o is optimizer for o in self._held):
            optimizer.register_step_pre_hook(self._set_rate)
            self._held.append(optimizer)

    def _set_rate(self, optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
        for group in optimizer.param_groups:
            group["lr"] = self.learning_rate

    def _watch(self, optimizer: torch.optim.Optimizer, epoch: int) -> None:
        rates = [float(group["lr"]) for group in optimizer.param_groups]
        if self._rates is None:
            self._rates = rates
        elif rates != self._rates:
            warnings.warn(
                f"swagwrap: the learning rate is {rates} in epoch {epoch}, and was {self._rates} in the first that was saved: "
                "SWAG needs checkpoints of a constant rate, or learning_rate=RATE to hold it",
                stacklevel=3,
            )
            self._rates = rates  # say each change once

    def _save(self, model: torch.nn.Module, epoch: int, seconds: float) -> Path:
        import torch

        first = not self._written
        if first:
            goes_on = make_room(self.folder, epoch, overwrite=self.overwrite)
            # With the weights of the file that follows. A run that goes on has the graph of its network.
            write(model, self.example, self.template, overwrite=self.overwrite, replaces=same_network if goes_on else None)
        path = self.folder / f"epoch-{epoch:03d}.pt"
        with new_files(self.folder, overwrite=self.overwrite or path in self._written) as work:
            torch.save({"epoch": epoch, "state_dict": model.state_dict()}, work / path.name)
        self._written.add(path)
        if self.reference:
            self._add_outputs(model, path, first and goes_on, seconds)
        return path

    def _add_outputs(self, model: torch.nn.Module, path: Path, goes_on: bool, seconds: float) -> None:
        """Adds what the network gives for the same examples as in other epochs. Training goes on if that fails."""
        file = self.folder / NAME
        try:
            if self._reference is None:
                examples = self.example[:EXAMPLES]
                self._reference = goes_on_from(file, {"inputs.0": examples}, lambda name: name < path.name) if goes_on else None
                if self._reference is None:
                    n = affordable(lambda n: File({"inputs.0": examples[:n]}).add(model, None), len(examples), seconds)
                    self._reference = File({"inputs.0": examples[:n]})
            self._reference.add(model, path.name)
            self._reference.write(file, overwrite=True)
        except Exception as e:
            warnings.warn(f"swagwrap: no reference outputs of {path}: {e}", stacklevel=4)


def make_room(folder: Path, epoch: int, *, overwrite: bool) -> bool:
    """A run that goes on keeps what it has from earlier epochs; what is there of later ones is of another run. Returns whether this one goes on."""
    folder.mkdir(parents=True, exist_ok=True)
    goes_on = False
    for path in sorted(folder.iterdir()):
        number = _EPOCH.fullmatch(path.name)
        if number is None:
            continue
        if int(number[1]) < epoch:
            goes_on = True
            continue
        if not overwrite:
            raise FileExistsError(f"{path}: is of another run, of which swagwrap takes one at a time: name another folder, or say overwrite=True")
        path.unlink()
    return goes_on


def callback(
    folder: str | os.PathLike[str],
    example: torch.Tensor,
    *,
    start: int = 0,
    every: int = 1,
    learning_rate: float | None = None,
    overwrite: bool = False,
    reference: bool = True,
) -> Checkpoints:
    """Saves what `swagwrap fit` needs, from a training loop of your own.

    >>> save = swagwrap.callback("checkpoints", example=x, start=100, learning_rate=0.05)
    >>> for epoch in range(130):
    ...     train_one_epoch(model, optimizer, train_loader)
    ...     save(model, epoch, optimizer)

    `folder` gets `model.onnx`, the graph, written once, and `epoch-100.pt` and so on: all the weights of an epoch. `swagwrap-reference.npz`
    gets what the network gives in each of them for the first 16 inputs of `example`: `fit` holds the graph against it. That is computed
    on the processor, in a second or 2 % of an epoch, whichever is longer: for fewer inputs if need be, and for two at least.
    `reference=False` leaves it out.

    Epochs count from 0. `example` is a batch of at least two inputs, with which the graph is exported. `start` is the
    first epoch that is saved, when training is as good as done, and every `every`-th after it is. SWAG needs a learning rate
    that is constant, and rather high: `learning_rate` sets it before each step from epoch `start` on (with `start` 0, from
    epoch 1 on), in all groups of the optimizer and whatever a scheduler says; without it, a change is warned about. `overwrite` removes the checkpoints of
    an earlier run from the folder, and replaces a `model.onnx` that is there. Both are a `FileExistsError` otherwise.

    In a run of several processes call it in one of them.
    """
    return Checkpoints(folder, example, start=start, every=every, learning_rate=learning_rate, overwrite=overwrite, reference=reference)
