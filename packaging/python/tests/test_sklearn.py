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
from sklearn.calibration import CalibrationDisplay
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
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
