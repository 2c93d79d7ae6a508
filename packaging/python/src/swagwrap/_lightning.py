"""The same for Lightning."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from ._checkpoints import Checkpoints

if TYPE_CHECKING:
    import torch


def lightning_callback(
    folder: str | os.PathLike[str],
    example: torch.Tensor,
    *,
    start: int = 0,
    every: int = 1,
    learning_rate: float | None = None,
    overwrite: bool = False,
    reference: bool = True,
) -> Any:
    """`callback` as one of Lightning's: the same files, by the same options.

    >>> trainer = L.Trainer(max_epochs=130, callbacks=[swagwrap.lightning_callback("checkpoints", x, start=100)])

    `learning_rate` is held from epoch `start` on, 0 too. Of several processes the first one saves. The result is a Callback of
    the package `lightning`, or of `pytorch_lightning` where that is the one installed.
    """
    pl = _lightning()
    saved = Checkpoints(folder, example, start=start, every=every, learning_rate=learning_rate, overwrite=overwrite, reference=reference)

    class SaveCheckpoints(pl.Callback):  # type: ignore[misc, name-defined]
        checkpoints = saved

        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            if trainer.current_epoch >= saved.start:
                for optimizer in trainer.optimizers:
                    saved.hold(optimizer)

        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            if trainer.is_global_zero:
                saved(module, trainer.current_epoch, trainer.optimizers[0] if len(trainer.optimizers) == 1 else None)

    return SaveCheckpoints()


def _lightning() -> Any:
    try:
        return importlib.import_module("lightning.pytorch")
    except ModuleNotFoundError:
        return importlib.import_module("pytorch_lightning")
