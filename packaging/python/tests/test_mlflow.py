"""The model of MLflow: saved, loaded, logged and served, with the rows of score."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

import mlflow
import numpy as np
import pandas as pd
import pytest
import swagwrap as sw
import swagwrap.mlflow
from ensembles import COLUMNS, Made
from PIL import Image

Maker = Callable[[str], Made]
CLOSE: dict[str, Any] = {"rtol": 0, "atol": 1e-6}


@contextmanager
def served(folder: Path) -> Iterator[Callable[[dict[str, Any]], list[dict[str, Any]]]]:
    """`mlflow models serve`, as a function from a request to its predictions."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {**os.environ, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}
    log = (folder.parent / "serve.log").open("w+")
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", str(folder), "--env-manager", "local", "--port", str(port), "--workers", "1"]
    process = subprocess.Popen(command, stdout=log, stderr=log, env=env, start_new_session=True)
    try:
        while True:
            assert process.poll() is None, Path(log.name).read_text()
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/ping")
                break
            except OSError:
                time.sleep(0.2)

        def ask(what: dict[str, Any]) -> list[dict[str, Any]]:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/invocations", json.dumps(what).encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as answer:
                rows: list[dict[str, Any]] = json.load(answer)["predictions"]
                return rows

        yield ask
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 15)
        process.wait()


def test_table_served(made: Maker, tmp_path: Path) -> None:
    m = made("table")
    want = m.score()
    swagwrap.mlflow.save_model(m.model, tmp_path / "saved")
    before = (tmp_path / "saved" / "MLmodel").read_bytes()
    with pytest.raises(FileExistsError, match="saved: is not empty"):
        swagwrap.mlflow.save_model(m.model, tmp_path / "saved")
    with pytest.raises(FileExistsError, match="is no model of MLflow"):
        swagwrap.mlflow.save_model(m.model, m.model.parent, overwrite=True)
    inside = next((tmp_path / "saved").rglob("*.onnx"))
    with pytest.raises(FileExistsError, match="which is the model to save"):
        swagwrap.mlflow.save_model(inside, tmp_path / "saved", overwrite=True)
    with pytest.raises(ValueError):
        swagwrap.mlflow.save_model(m.model, tmp_path / "saved", overwrite=True, load_args={"names": True})
    assert (tmp_path / "saved" / "MLmodel").read_bytes() == before and m.model.exists()
    swagwrap.mlflow.save_model(m.model, tmp_path / "saved", overwrite=True)
    info = mlflow.models.get_model_info(str(tmp_path / "saved"))
    assert info.signature.inputs.input_names() == COLUMNS and info.metadata["swagwrap"]["promise"].startswith("sets contain")
    frame = pd.read_csv(m.data)
    rows = mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(frame)
    np.testing.assert_allclose(rows[["p_0", "p_1", "p_2"]], want["probs"], **CLOSE)
    with pytest.raises(mlflow.exceptions.MlflowException, match="bmi"):
        mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(frame.drop(columns="bmi"))
    with served(tmp_path / "saved") as ask:
        got = pd.DataFrame(ask({"dataframe_split": frame[sorted(COLUMNS)].to_dict("split")}))
        np.testing.assert_allclose(got[["p_0", "p_1", "p_2"]], want["probs"], **CLOSE)
        assert got["prediction"].tolist() == want["prediction"].tolist()


def test_pictures_served(made: Maker, tmp_path: Path) -> None:
    m = made("pictures")
    for i, p in enumerate(m.x[:5]):
        Image.fromarray(p).resize((13, 9)).save(tmp_path / f"{i}.png")
    files = sorted(tmp_path.glob("*.png"))
    (tmp_path / "pictures").mkdir()
    for f in files:
        (tmp_path / "pictures" / f.name).write_bytes(f.read_bytes())
    want = Made(m.ensemble, m.model, tmp_path / "pictures", None).score()
    swagwrap.mlflow.save_model(m.model, tmp_path / "saved")
    with served(tmp_path / "saved") as ask:
        pictures = [[base64.b64encode(f.read_bytes()).decode()] for f in files]
        got = pd.DataFrame(ask({"dataframe_split": {"columns": ["image"], "data": pictures}}))
    np.testing.assert_allclose(got[[f"p_{c}" for c in range(4)]], want["probs"], **CLOSE)


def test_logged(made: Maker, tmp_path: Path) -> None:
    m = made("two")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("numbers", artifact_location=str(tmp_path / "artifacts")))
    found = sw.compare(m.ensemble.with_name("p.safetensors"), m.data, args=["-n", "3", "--draws", "independent", "--methods", "swag"])
    found.save(tmp_path / "figures.json")
    measured = tmp_path / "measured.onnx"
    subprocess.run([sys.executable, "-m", "swagwrap", "export", "-q", "--figures", tmp_path / "figures.json", "-o", measured, m.ensemble], check=True)
    with mlflow.start_run() as run:
        info = swagwrap.mlflow.log_model(measured, name="numbers", input_example=m.x[:2])
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    assert metrics["rmse"] == found.json["methods"][0]["rmse"] and set(metrics) >= {"nll", "crps"}
    rows = mlflow.pyfunc.load_model(info.model_uri).predict(m.x)
    np.testing.assert_allclose(rows[["mean_0", "mean_1"]], m.score()["mean"], **CLOSE)
