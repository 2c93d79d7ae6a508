"""What the readers refuse, and the launcher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import swagwrap as sw
from conftest import swagwrap
from safetensors.numpy import save_file


def test_predictions_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    np.savez(path, probs=np.ones((2, 3)))
    with pytest.raises(ValueError, match="no array path, prediction"):
        sw.read_predictions(path)
    rows = {name: np.zeros(2) for name in ("path", "prediction", "confidence", "predictive_entropy", "expected_entropy", "mutual_information")}
    np.savez(path, probs=np.ones((3, 3)), **rows)
    with pytest.raises(ValueError, match=r'array "probs": shape \(3, 3\), want 2 rows'):
        sw.read_predictions(path)
    np.savez(path, **{**rows, "path": np.array([{}, {}], dtype=object)}, probs=np.ones((2, 3)))
    with pytest.raises(ValueError, match="allow_pickle"):
        sw.read_predictions(path)
    one = tmp_path / "p.npy"
    np.save(one, np.ones(3))
    with pytest.raises((ValueError, TypeError)):
        sw.read_predictions(one)


def test_posterior_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    save_file({"mean": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="kind None, want a posterior"):
        sw.read_posterior(path)
    save_file({"mean": np.zeros(3)}, path, {"kind": "swagwrap.posterior", "format_version": "2", "producer": "swagwrap v9"})
    with pytest.raises(ValueError, match="format version '2' by swagwrap v9"):
        sw.read_posterior(path)


def test_launcher_finds_the_packages_library() -> None:
    found = json.loads(swagwrap("doctor", "--json"))
    import onnxruntime

    folder = os.path.dirname(onnxruntime.__file__)
    assert found["found"] == "the Python package onnxruntime" and found["library"].startswith(os.path.join(folder, "capi"))
    assert found["version"] == onnxruntime.__version__ and found["problem"] == ""


def test_launcher_is_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "swagwrap", "nonsense"], capture_output=True, text=True)
    assert done.returncode == 64 and 'error: unknown command "nonsense"' in done.stderr
    env = {**os.environ, "SWAGWRAP_ORT_LIB": "/dev/null"}  # goes before the package's
    done = subprocess.run([sys.executable, "-m", "swagwrap", "doctor"], capture_output=True, text=True, env=env)
    assert done.returncode == 69 and "named by SWAGWRAP_ORT_LIB: not a regular file" in done.stderr


def test_launcher_is_quick() -> None:
    """It imports nothing that takes longer than Python itself."""
    large = "numpy", "safetensors", "torch", "onnxruntime", "lightning"
    code = f"import sys, swagwrap.__main__; print([m for m in {large} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_launcher_is_quiet() -> None:
    """`python -m swagwrap` prints what the program prints, and no warning of Python."""
    done = subprocess.run([sys.executable, "-W", "error", "-m", "swagwrap", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("swagwrap version ")
