"""Classifiers and regressors: what a model's outputs mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _truth
from ._inputs import beside
from ._model import Model, Uncertainty

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Classifier(Model):
    """Classes, two classes, or labels; of examples, pixels or tokens. C classes; of pixels arrays have further dimensions."""

    _estimator_type = "classifier"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        several = self.task == "labels"
        return Tags(
            estimator_type="classifier", target_tags=TargetTags(required=False, multi_output=several), transformer_tags=None, regressor_tags=None,
            classifier_tags=ClassifierTags(multi_class=self.task == "classes", multi_label=several), input_tags=InputTags(two_d_array=True, three_d_array=True, string=True), requires_fit=False,
        )

    @property
    def classes_(self) -> NDArray[Any]:
        """[C] the classes: numbers from 0, or with names=True their names."""
        import numpy as np

        names = self.class_names
        if self.names:
            if names is None:
                raise ValueError("names=True: the model has no names of classes")
            return np.array(names)
        width = self._session.shapes["prob"][self._axis] or (len(names) if names else None)
        if width is None:
            raise AttributeError("classes_: the model does not know how many there are")
        return np.arange(width)

    @property
    def _axis(self) -> int:
        return int((self._session.json("model_card") or {}).get("class_axis") or 1)

    @property
    def threshold(self) -> float:
        """Of two classes: the lowest probability of class 1 at which it is predicted."""
        return float(self._session.about.get("swagwrap.threshold", 0.5))

    def predict_proba(self, X: Any, *, shares: Sequence[float] | Mapping[Any, float] | None = None) -> NDArray[np.float32]:
        """[N, C] calibrated probabilities. `shares` are those of the classes in X, if they differ from training: a list, or a dict by class."""
        prob = self.outputs(X, "prob")["prob"]
        return prob if shares is None else self._corrected(prob, shares)

    @property
    def training_shares(self) -> NDArray[np.float64] | None:
        """[C] the class shares that the probabilities assume, if the ensemble has seen labelled predictions."""
        import numpy as np

        found = (self._session.json("calibration") or {}).get("shares")
        stored = found["now"] if found else self._session.json("training_shares")
        return None if stored is None else np.array(stored, dtype=np.float64)

    def _corrected(self, prob: NDArray[np.float32], shares: Sequence[float] | Mapping[Any, float]) -> NDArray[np.float32]:
        """Probabilities for other class shares than those of training."""
        import numpy as np

        training = self.training_shares
        if prob.ndim != 2 or self.task == "labels":
            raise ValueError("shares: the examples do not have one class each")
        if self.guarantee is not None:
            raise ValueError("shares: the guarantee of the model holds for the shares of the examples that chose it")
        if training is None:
            raise ValueError("shares: the model does not know those of training. swagwrap calibrate --ensemble stores them, from labelled predictions")
        if isinstance(shares, Mapping):
            keys: dict[Any, int] = {c: c for c in range(len(training))}
            keys |= {name: c for c, name in enumerate(self.class_names or [])}
            if unknown := [k for k in shares if k not in keys]:
                raise ValueError(f"shares: no class {unknown[0]!r}")
            given = {keys[k]: v for k, v in shares.items()}
            if len(given) != len(training) or len(shares) != len(training):
                raise ValueError(f"shares: {len(given)} of {len(training)} classes, want one of each")
            shares = [given[c] for c in range(len(training))]
        now = np.asarray(shares, dtype=np.float64)
        if now.shape != training.shape or not (now >= 0).all() or not abs(now.sum() - 1) <= 1e-3:
            raise ValueError(f"shares: {now.tolist()}, want {len(training)} numbers from 0 that add up to 1")
        out = prob * np.divide(now, training, out=np.zeros_like(now), where=training > 0)
        total = out.sum(axis=1, keepdims=True)
        return np.where(total > 0, out / np.where(total > 0, total, 1), prob).astype(np.float32)

    def predict_log_proba(self, X: Any) -> NDArray[np.float32]:
        """[N, C] their logarithms."""
        import numpy as np

        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """[N] the most probable class; of two classes by the threshold. Of labels [N, C], 1 where the probability is at least one half."""
        import numpy as np

        parts = [self._decide(got["prob"]) for _, got in self.iterate(X, ["prob"])]
        found = np.concatenate(parts)
        return found if self.task == "labels" or not self.names else self.classes_[found]

    def _decide(self, prob: NDArray[np.float32]) -> NDArray[np.int64]:
        import numpy as np

        if self.task == "labels":
            return np.asarray(prob >= 0.5, dtype=np.int64)
        found: NDArray[np.int64] = prob.argmax(axis=self._axis)
        if self.task == "binary":
            found = (np.take(prob, 1, axis=self._axis) >= self.threshold).astype(np.int64)
        return found

    def predict_set(self, X: Any) -> NDArray[np.bool_]:
        """[N, C] which classes are in the set that contains the true class as often as promised."""
        return self.outputs(X, "set")["set"]

    def uncertainty(self, X: Any) -> Uncertainty:
        """[N] the entropy and the mutual information of each prediction."""
        got = self.outputs(X, "entropy", "mutual_information")
        rows = len(self._session.shapes["prob"]) == 2  # of pixels and tokens the outputs have no dimension to remove
        return Uncertainty(*(got[name].squeeze(1) if rows else got[name] for name in ("entropy", "mutual_information")))

    def _truth(self, y: Any, shape: Sequence[int] | None = None) -> NDArray[Any]:
        if self.task == "labels":
            return _truth.flags(y, len(self.classes_), shape[0] if shape else None)
        if self._ignored and (self._card.get("preprocess") or {}).get("reduce_labels"):
            y = _truth.reduced(y)
        return _truth.classes(y, self.classes_, self.class_names, shape, self._ignored)

    @property
    def _card(self) -> Mapping[str, Any]:
        return self._session.json("model_card") or {}

    @property
    def _ignored(self) -> Sequence[int]:
        """Labels that count nowhere, of pixels and tokens."""
        if len(self._session.shapes["prob"]) == 2:
            return ()
        index = self._card.get("ignore_index")
        return _truth.UNLABELLED if index is None else (*_truth.UNLABELLED, index)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy. Of labels all must be right. Pixels and tokens without a label count nowhere."""
        import numpy as np

        found = self.predict(beside(X))
        y = self._truth(y, found.shape)
        w = _truth.weights(sample_weight, len(found)).reshape(-1, *[1] * (found.ndim - 1))
        right = found == y
        if self.task == "labels":
            right, y, w = right.all(axis=1), y[:, 0], w[:, 0]
        return float(np.average(right, weights=w * ~np.isin(y, self._ignored)))

    def _columns(self, got: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        import numpy as np

        prob = got["prob"]
        out: dict[str, NDArray[Any]] = {}
        if self.task != "labels":
            out["prediction"] = decided = self._decide(prob)
            if names := self.class_names:
                out["name"] = np.array(names, dtype=object)[decided]
            out["confidence"] = prob[np.arange(len(prob)), decided]
        out |= {"predictive_entropy": got["entropy"].squeeze(1), "mutual_information": got["mutual_information"].squeeze(1)}
        out |= {f"{'probability' if self.task == 'labels' else 'p'}_{c}": prob[:, c] for c in range(prob.shape[1])}
        if "set" in got:
            out["set"] = np.array([" ".join(map(str, np.flatnonzero(row))) for row in got["set"]], dtype=object)
            out["set_size"] = got["set"].sum(axis=1)
        if "abstain" in got:
            out["abstain"] = got["abstain"].squeeze(1)
        return out


class Regressor(Model):
    """Numbers, in the targets' units. Arrays are [N], or [N, T] for T targets."""

    _estimator_type = "regressor"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor", target_tags=TargetTags(required=False, multi_output=self._session.shapes["mean"][1] != 1), transformer_tags=None, classifier_tags=None,
            regressor_tags=RegressorTags(), input_tags=InputTags(two_d_array=True, three_d_array=True, string=True), requires_fit=False,
        )

    def _one(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.squeeze(1) if values.shape[1] == 1 else values

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean; with return_std also the standard deviation."""
        got = self.outputs(X, "mean", *(["std"] if return_std else []))
        mean = self._one(got["mean"])
        return (mean, self._one(got["std"])) if return_std else mean

    def predict_std(self, X: Any) -> NDArray[np.float32]:
        """The standard deviation: of noise and disagreement together."""
        return self._one(self.outputs(X, "std")["std"])

    def predict_interval(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The lower and the upper end of the interval that contains the true value as often as promised."""
        got = self.outputs(X, "lower", "upper")
        return self._one(got["lower"]), self._one(got["upper"])

    def _truth(self, y: Any, shape: Sequence[int] | None = None) -> NDArray[Any]:
        return _truth.targets(y, self._session.shapes["mean"][1] or 1, shape[0] if shape else None)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R², the mean over targets. If all true values of a target are equal, it is 1 without an error, and 0 with one."""
        import numpy as np

        mean = self.predict(beside(X))
        y = self._truth(y, mean.shape)
        w = _truth.weights(sample_weight, len(mean))
        left = np.average((y - mean.reshape(y.shape)) ** 2, axis=0, weights=w)
        spread = np.average((y - np.average(y, axis=0, weights=w)) ** 2, axis=0, weights=w)
        constant = spread == 0
        return float(np.mean(np.where(constant, left == 0, 1 - left / np.where(constant, 1, spread))))

    def _columns(self, got: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        out: dict[str, NDArray[Any]] = {}
        for name, values in got.items():
            several = values.shape[1] > 1
            out |= {f"{name}_{t}" if several else name: values[:, t] for t in range(values.shape[1])}
        return out
