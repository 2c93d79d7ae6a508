"""Training, trying and using ensembles of swagwrap in Python.

>>> save = swagwrap.callback("checkpoints", example=x, start=100)
>>> for epoch in range(130):
...     train_one_epoch(model, optimizer, train_loader)
...     save(model, epoch, optimizer)

>>> swagwrap.try_(model, "checkpoints", train_loader, val_loader, test_loader)

>>> model = swagwrap.load("ensemble.onnx")
>>> model.predict_proba("images/")

>>> swa = swagwrap.average(model, "checkpoints", train_loader)

`try_` writes a folder with a report, the recommended network or ensemble, and its ONNX model. `load` opens that model, and
behaves like an estimator of scikit-learn. `average` returns the network with averaged weights.

`average`, `members`, `export`, `reference`, `try_` and the callbacks need PyTorch. `lightning_callback` needs Lightning, and
`swagwrap.mlflow` needs MLflow. The rest needs onnxruntime and numpy. The program in the package reads data and computes.
"""

from ._average import average, members
from ._checkpoints import Checkpoints, callback
from ._convert import convert
from ._estimators import Classifier, Regressor
from ._export import export
from ._lightning import lightning_callback
from ._model import Model, Uncertainty, load, verify
from ._posterior import Posterior, Tensor, read_posterior
from ._predictions import Predictions, read_predictions
from ._program import ProgramError
from ._reference import reference
from ._results import Comparison, Figure, Scores, Tried, compare, score
from ._try import try_

__all__ = [
    "Checkpoints",
    "Classifier",
    "Comparison",
    "Figure",
    "Model",
    "Posterior",
    "Predictions",
    "ProgramError",
    "Regressor",
    "Scores",
    "Tensor",
    "Tried",
    "Uncertainty",
    "average",
    "callback",
    "compare",
    "convert",
    "export",
    "lightning_callback",
    "load",
    "members",
    "read_posterior",
    "read_predictions",
    "reference",
    "score",
    "try_",
    "verify",
]


def __getattr__(name: str) -> str:
    """The version is looked up when it is asked for: that takes longer than all imports."""
    if name == "__version__":
        from importlib.metadata import version

        return version("swagwrap")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
