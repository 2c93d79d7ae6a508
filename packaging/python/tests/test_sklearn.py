"""scikit-learn takes what swagwrap.load returns as one of its estimators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pytest
import swagwrap as sw
from ensembles import COLUMNS, Made
from PIL import Image
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

Maker = Callable[[str], Made]


def test_classifier(made: Maker) -> None:
    import pandas as pd

    m = made("table")
    frame = pd.read_csv(m.data)
    model, y = sw.load(m.model), frame["label"].to_numpy()
    check_is_fitted(model)
    assert is_classifier(model) and not is_regressor(model) and model.fit(frame, y) is model
    twin = clone(model)
    assert twin.get_params() == model.get_params() and twin._session is model._session
    want = cross_val_score(model, frame, y, cv=3)
    assert np.isclose(want.mean(), (model.predict(frame) == y).mean())
    np.testing.assert_array_equal(cross_val_score(model, frame, y, cv=3, n_jobs=2), want)
    assert np.isclose(cross_val_score(model, frame, y, cv=[(np.arange(3), np.arange(60))], scoring="neg_log_loss")[0], -log_loss(y, model.predict_proba(frame)))
    np.testing.assert_allclose(cross_val_predict(model, frame, y, method="predict_proba", cv=3), model.predict_proba(frame), atol=1e-6)
    pipe = make_pipeline(FunctionTransformer(lambda f: f[COLUMNS]), model).fit(frame, y)
    np.testing.assert_array_equal(pipe.predict(frame), model.predict(frame))
    assert clone(pipe).fit(frame, y).score(frame, y) == model.score(frame, y)
    np.testing.assert_array_equal(FrozenEstimator(model).fit(frame, y).predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="no parameter"):
        model.set_params(nonsense=1)


def test_binary(made: Maker) -> None:
    import pandas as pd

    m = made("binary")
    frame = pd.read_csv(m.data)
    model = sw.load(m.model)
    shown = CalibrationDisplay.from_estimator(model, frame, frame["label"], n_bins=4)
    np.testing.assert_array_equal(shown.y_prob, model.predict_proba(frame)[:, 1])
    assert 0 < cross_val_score(model, frame, frame["label"], cv=3, scoring="roc_auc").mean() < 1


def test_regressor(made: Maker) -> None:
    import pandas as pd

    m = made("regression")
    frame = pd.read_csv(m.data)
    model, y = sw.load(m.model), frame["target"].to_numpy()
    assert is_regressor(model) and not is_classifier(model)
    assert np.isclose(model.score(frame, y), r2_score(y, model.predict(frame)))
    assert np.isclose(cross_val_score(model, frame, y, cv=[(np.arange(3), np.arange(60))], scoring="r2")[0], model.score(frame, y))


def test_pictures(made: Maker, tmp_path: Path) -> None:
    m = made("pictures")
    for i, p in enumerate(m.x):
        Image.fromarray(p).save(tmp_path / f"{i:02}.png")
    files, model = np.array(sorted(str(p) for p in tmp_path.iterdir())), sw.load(m.model)
    y = np.arange(60) % 4
    assert np.isclose(cross_val_score(model, files, y, cv=3).mean(), (model.predict(m.x) == y).mean())
    joblib.dump(model, tmp_path / "model.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model.joblib").predict(files), model.predict(m.x))


@pytest.mark.parametrize(("name", "y", "error", "message"), [
    ("unnamed", ["a", "b", "c"], ValueError, "'a' is no class, want 0 to 2: the model knows no names of classes"),
    ("unnamed", [1, 2, 3], ValueError, "3 is no class, want 0 to 2"),
    ("unnamed", [0, 1, np.nan], ValueError, "nan is no class"),
    ("unnamed", [0, 1, -1], ValueError, "-1 is no class"),
    ("unnamed", np.eye(3), ValueError, r"of one-hot rows y.argmax\(axis=1\)"),
    ("unnamed", [0], ValueError, r"y: shape \[1\], want \[3\], as the predictions"),
    ("unnamed", None, ValueError, "y: None"),
    ("binary", [-1, 1, 1], ValueError, "-1 is no class, want 0, 1"),
    ("labels", [0, 1, 0], ValueError, r"y: shape \[3\], want \[3, 4\] with 0 and 1"),
    ("labels", np.full((3, 4), "1"), ValueError, "y: '1', want 0 or 1"),
    ("labels", np.full((3, 4), 2), ValueError, "y: 2, want 0 or 1"),
    ("labels", [["a"], ["a", "b"], []], ValueError, "MultiLabelBinarizer"),
    ("regression", [1], ValueError, r"y: shape \[1\], want \[3\]"),
    ("regression", ["a", "b", "c"], TypeError, "could not convert string to float: .*, want numbers"),
    ("regression", [0, np.nan, 1], ValueError, "y: row 1 is not finite"),
    ("two", [1, 2, 3], ValueError, r"y: shape \[3\], want \[3, 2\]"),
    ("pixels", np.zeros((3, 30), int), ValueError, r"y: shape \[3, 30\], want \[3, 6, 5\]"),
    ("pixels", np.full((3, 6, 5), 255), ValueError, "255 is no class, want 0 to 3"),
])
def test_refused_truth(made: Maker, name: str, y: object, error: type[Exception], message: str) -> None:
    """A wrong y would only be a low score."""
    model = sw.load(made(name).model)
    x = np.zeros((3, 3, 6, 5) if name == "pixels" else (3, 3), dtype=np.float32)
    with pytest.raises(error, match=message):
        model.score(x, y)


def test_truth(made: Maker) -> None:
    """What y may be: a column, floats, truth values, names; weights; pixels without a label."""
    import pandas as pd

    m = made("unnamed")
    model, y = sw.load(m.model), np.arange(60) % 3
    want = (model.predict(m.x) == y).mean()
    for same in (y.tolist(), y[:, None], y.astype(float), y.astype(object), pd.DataFrame({"label": y}), pd.Categorical(y), pd.array(y, dtype="Int64")):
        assert model.score(m.x, same) == want and model.fit(m.x, same) is model
    right = (model.predict(m.x) == y).astype(float)
    assert model.score(m.x, y, sample_weight=right) == 1
    for weight in ([1, 2], np.zeros(60), -right):
        with pytest.raises(ValueError, match="sample_weight"):
            model.score(m.x, y, sample_weight=weight)
    with pytest.raises(ValueError, match="'a' is no class"):  # fit says it too: otherwise the scores of cross_val_score would be NaN
        cross_val_score(model, m.x, np.array(["a", "b", "c"])[y], cv=3, scoring="accuracy")

    m = made("binary")
    frame = pd.read_csv(m.data)
    assert sw.load(m.model).score(frame, frame["label"] == 1) == sw.load(m.model).score(frame, frame["label"])

    m = made("pixels")
    model = sw.load(m.model)
    found = model.predict(m.x)
    some = np.where(np.arange(5) < 2, found, -100)
    assert model.score(m.x, some) == 1 and model.score(m.x, found, sample_weight=np.arange(20)) == 1 and np.isclose(model.score(m.x, np.where(np.arange(5) < 2, 3 - found, found)), 0.6)

    m = made("reduced")  # masks count classes from 1, as for score
    model = sw.load(m.model)
    found = model.predict(m.x)
    assert model.score(m.x, found + 1) == 1 and np.isclose(model.score(m.x, np.where(np.arange(5) < 2, 4 - found, found + 1).astype(np.uint8)), 0.6)
    assert model.score(m.x, np.where(np.arange(5) < 2, 0, np.where(np.arange(5) < 3, 255, found + 1))) == 1
    with pytest.raises(ValueError, match="4 is no class, want 0 to 3"):
        model.score(m.x, np.full((20, 6, 5), 5))

    m = made("regression")
    frame = pd.read_csv(m.data)
    model = sw.load(m.model)
    assert model.score(frame, np.zeros(60)) == 0 and model.score(frame[:1], model.predict(frame[:1])) == 1  # as r2_score of scikit-learn
    weight = np.arange(60)
    assert np.isclose(model.score(frame, frame["target"], sample_weight=weight), r2_score(frame["target"], model.predict(frame), sample_weight=weight))


def test_names(made: Maker) -> None:
    """Classes with names: y may have them, and predictions do."""
    import pandas as pd

    m, names = made("named"), np.array(["no", "yes"])
    frame = pd.read_csv(m.data)
    X, y = frame[COLUMNS], frame["label"].to_numpy()
    model, plain = sw.load(m.model, names=True), sw.load(m.model)
    assert set(model.predict(X)) <= {"no", "yes"} and model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, names[y]) == plain.score(X, y) and np.isclose(cross_val_score(model, X, names[y], cv=2).mean(), plain.score(X, y))
    np.testing.assert_array_equal(CalibrationDisplay.from_estimator(model, X, names[y]).y_prob, plain.predict_proba(X)[:, 1])
    with pytest.raises(ValueError, match=r"'no' is no class, want 0, 1: load\(path, names=True\) predicts names"):
        plain.score(X, names[y])
    with pytest.raises(ValueError, match=r"'0' is no class, want no, yes: load\(path\) predicts numbers"):
        model.score(X, y)


def test_tools(made: Maker) -> None:
    """Tools of scikit-learn around the object and before it."""
    import pandas as pd

    m = made("table")
    frame = pd.read_csv(m.data)
    X, y, model = frame[COLUMNS], frame["label"].to_numpy(), sw.load(m.model)
    scale = make_column_transformer((StandardScaler(), ["bp", "age"]), ("passthrough", ["bmi"]), verbose_feature_names_out=False)
    scaled = X.assign(bp=StandardScaler().fit_transform(X[["bp"]]), age=StandardScaler().fit_transform(X[["age"]]))
    for kind in ("pandas", "polars"):  # other orders of columns
        pipe = make_pipeline(clone(scale).set_output(transform=kind), model).fit(X, y)
        np.testing.assert_allclose(pipe.predict_proba(X), model.predict_proba(scaled), rtol=0, atol=1e-6)
    assert "Classifier" in pipe._repr_html_()
    assert pipe.set_params(classifier__batch_size=7).score(X, y) == clone(pipe).fit(X, y).score(X, y)
    assert GridSearchCV(model, {"batch_size": [1, 64]}, cv=2).fit(X, y).best_score_ == cross_val_score(model, X, y, cv=2).mean()
    assert CalibratedClassifierCV(FrozenEstimator(model)).fit(X, y).predict_proba(X).shape == (60, 3)
    np.testing.assert_array_equal(VotingClassifier([("a", model), ("b", clone(model))], voting="soft").fit(X, y).predict(X), model.predict(X))
    for importances in (permutation_importance(model, X, y, n_repeats=2).importances, permutation_importance(model, X.to_numpy(), y, n_repeats=2).importances):
        assert importances.shape == (3, 2)
    labels = made("labels")
    y = np.random.default_rng(1).integers(0, 2, (60, 4))
    for scoring in (None, "f1_macro", "roc_auc", "average_precision"):
        assert np.isfinite(cross_val_score(sw.load(labels.model), labels.x, y, cv=2, scoring=scoring)).all()


def test_categories(made: Maker) -> None:
    """Categories that are texts have the order of their type, if there are as many as classes and the model knows no names."""
    import pandas as pd
    import polars as pl

    m = made("unnamed")
    model, y, names = sw.load(m.model), np.arange(60) % 3, ["mid", "lo", "hi"]
    texts = [names[i] for i in y]
    want = (model.predict(m.x) == y).mean()
    for same in (pd.Categorical(texts, categories=names), pd.Series(texts, dtype=pd.CategoricalDtype(names, ordered=True)), pl.Series(texts, dtype=pl.Enum(names))):
        assert model.score(m.x, same) == want
    for other in (pd.Categorical(texts, categories=[*names, "never"]), pl.Series(texts, dtype=pl.Categorical)):
        with pytest.raises(ValueError, match="is no class"):
            model.score(m.x, other)
    with pytest.raises(ValueError, match="y: row 0 has no label"):
        model.score(m.x, pd.Categorical([None, *texts[1:]], categories=names))


def test_not_finite_pictures(made: Maker) -> None:
    """What the program would refuse is refused in the caller's words."""
    m = made("pictures")
    x = m.x.astype(np.float32)
    x[2, 0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="row 2, element .*: nan, want a finite number|want"):
        sw.load(m.model, arrays="pixels").predict(x)
