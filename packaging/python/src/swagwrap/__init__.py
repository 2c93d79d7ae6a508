"""What swagwrap needs of a training in Python, and readers of what it writes.

>>> save = swagwrap.callback("checkpoints", example=x, start=100)
>>> for epoch in range(130):
...     train_one_epoch(model, optimizer, train_loader)
...     save(model, epoch, optimizer)

Then, in a shell:

    swagwrap fit --template checkpoints/model.onnx --task classes -o posterior.safetensors checkpoints

The program computes; nothing is computed here. PyTorch is needed by `export` and the callbacks, Lightning by
`lightning_callback`, neither by the rest.
"""

from ._checkpoints import Checkpoints, callback
from ._export import export
from ._lightning import lightning_callback
from ._posterior import Posterior, Tensor, read_posterior
from ._predictions import Predictions, read_predictions

__all__ = [
    "Checkpoints",
    "Posterior",
    "Predictions",
    "Tensor",
    "callback",
    "export",
    "lightning_callback",
    "read_posterior",
    "read_predictions",
]
