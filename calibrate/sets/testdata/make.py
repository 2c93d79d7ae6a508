# Thresholds and sizes of sets by other libraries, on the same probabilities.
#
# Run with MAPIE 1.6.0, TorchCP 1.2.1, PyTorch 2.15, NumPy and scikit-learn 1.9.1:
#
#     python calibrate/sets/testdata/make.py
#
# TorchCP's own __init__ imports packages for losses of training and for graphs, which are not used here.
import json, sys, types
from pathlib import Path

sys.modules["torchsort"] = types.SimpleNamespace(soft_rank=None, soft_sort=None)
sys.modules["torchcp"] = types.ModuleType("torchcp")
sys.modules["torchcp"].__path__ = next([str(p)] for p in (Path(d) / "torchcp" for d in sys.path) if p.is_dir())
import numpy as np
import torch
from mapie.classification import SplitConformalClassifier
from mapie.conformity_scores import ResidualNormalisedScore
from mapie.regression import SplitConformalRegressor
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from torchcp.classification.predictor import ClassConditionalPredictor, SplitPredictor
from torchcp.classification.score import APS, LAC, RAPS


class Saved(ClassifierMixin, BaseEstimator):  # gives the probabilities that it is asked about
    def __init__(self, classes=3):
        self.classes = classes
        self.classes_, self.is_fitted_ = np.arange(classes), True

    def fit(self, x, y):
        return self

    def predict_proba(self, x):
        return x

    def predict(self, x):
        return x.argmax(1)


class Column(RegressorMixin, BaseEstimator):  # predicts a column of its input
    def __init__(self, k=0):
        self.k, self.is_fitted_ = k, True

    def fit(self, x, y):
        return self

    def predict(self, x):
        return x[:, self.k]


rng = np.random.default_rng(57)


def drawn(n, classes, sharp):
    z = sharp * rng.normal(size=(n, classes))
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    labels = np.array([rng.choice(classes, p=row) for row in p])
    return p, labels


cases = []
for n, classes, sharp, level in [(120, 3, 1.0, 0.9), (99, 10, 2.0, 0.8), (200, 5, 4.0, 0.95), (80, 20, 1.5, 0.9)]:
    p, y = drawn(n, classes, sharp)
    test, _ = drawn(25, classes, sharp)
    c = {"classes": classes, "level": level, "probs": p.ravel().tolist(), "labels": y.tolist(), "test": test.ravel().tolist()}
    m = SplitConformalClassifier(Saved(classes), confidence_level=level, conformity_score="lac", prefit=True).conformalize(p, y)
    sets = m.predict_set(test)[1][:, :, 0]
    c["mapie_lac"] = [float(m._mapie_classifier.conformity_score_function_.quantiles_[0]), float(sets.sum(1).mean())]
    for name, score in [("lac", LAC(score_type="identity")), ("aps", APS(score_type="identity", randomized=False)), ("raps", RAPS(score_type="identity", randomized=False, penalty=1 / 64, kreg=2))]:
        q = SplitPredictor(score, alpha=1 - level)
        q.calculate_threshold(torch.tensor(p), torch.tensor(y), alpha=1 - level)
        size = q.predict_with_logits(torch.tensor(test)).sum(1).double().mean()
        c[name] = [float(q.q_hat), float(size)]
    if classes == 3:
        q = ClassConditionalPredictor(LAC(score_type="identity"), alpha=1 - level)
        q.calculate_threshold(torch.tensor(p), torch.tensor(y), alpha=1 - level)
        c["by_class"] = q.q_hat.numpy().tolist()
    cases.append(c)

mean, std = rng.normal(size=120), np.exp(rng.normal(size=120))
target = mean + std * rng.normal(size=120)
x = np.stack([mean, std], 1)
score = ResidualNormalisedScore(residual_estimator=Column(1), prefit=True)
r = SplitConformalRegressor(Column(0), confidence_level=0.9, conformity_score=score, prefit=True).conformalize(x, target)
ends = r.predict_interval(x)[1][:, :, 0]
regression = {"mean": mean.tolist(), "std": std.tolist(), "target": target.tolist(), "level": 0.9, "low": ends[:, 0].tolist(), "high": ends[:, 1].tolist()}
Path(__file__).with_name("golden.json").write_text(json.dumps({"cases": cases, "regression": regression}) + "\n")
print([(c["lac"], c["mapie_lac"], c["aps"], c["raps"], c.get("by_class")) for c in cases])
