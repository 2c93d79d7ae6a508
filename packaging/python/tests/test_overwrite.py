"""What the module writes replaces no file that it was not told to replace, and an attempt that fails leaves the results of before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import swagwrap


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))


X = torch.zeros(4, 6)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


WRITERS: dict[str, tuple[str, Callable[[Path, bool], object]]] = {
    "export": ("model.onnx", lambda d, over: swagwrap.export(network(), X, d / "model.onnx", overwrite=over)),
    "callback": ("model.onnx", lambda d, over: swagwrap.callback(d, X, overwrite=over)(network(), 0)),
    "callback, an epoch of another run": ("epoch-003.pt", lambda d, over: swagwrap.callback(d, X, overwrite=over)(network(), 0)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_the_user_stays(tmp_path: Path, name: str) -> None:
    there, write = WRITERS[name]
    (tmp_path / there).write_text("my own")
    before = files(tmp_path)
    with pytest.raises(FileExistsError, match=there):
        write(tmp_path, False)
    assert files(tmp_path) == before
    write(tmp_path, True)
    assert (tmp_path / "model.onnx").read_bytes() != b"my own"


def test_a_link_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("my own")
    (tmp_path / "model.onnx").symlink_to("mine")
    with pytest.raises(FileExistsError):
        swagwrap.export(network(), X, tmp_path / "model.onnx")
    assert (tmp_path / "mine").read_text() == "my own" and (tmp_path / "model.onnx").is_symlink()


def test_the_same_content_again(tmp_path: Path) -> None:
    for _ in range(2):  # a cell of a notebook, run again
        swagwrap.export(network(), X, tmp_path / "model.onnx")
    with pytest.raises(FileExistsError):
        swagwrap.export(network(1), X, tmp_path / "model.onnx")


def test_a_run_goes_on(tmp_path: Path) -> None:
    save = swagwrap.callback(tmp_path, X)
    for epoch in range(2):
        save(network(epoch), epoch)
    again = swagwrap.callback(tmp_path, X)  # the script was started again
    again(network(2), 2)
    again(network(3), 3)
    assert sorted(p.name for p in tmp_path.glob("epoch-*.pt")) == [f"epoch-00{k}.pt" for k in range(4)]


def test_a_graph_of_the_user_beside_earlier_epochs(tmp_path: Path) -> None:
    """A run goes on where earlier epochs are. A model.onnx of another network is none of its own."""
    (tmp_path / "epoch-0.pt").write_text("my own")
    swagwrap.export(nn.Linear(6, 3), X, tmp_path / "model.onnx")
    (tmp_path / "epoch-003.tmp").write_text("my own")
    before = files(tmp_path)
    with pytest.raises(FileExistsError, match="model.onnx"):
        swagwrap.callback(tmp_path, X)(network(), 3)
    assert files(tmp_path) == before
    save = swagwrap.callback(tmp_path, X, overwrite=True)
    save(network(), 3)
    save(network(1), 3)  # its own file, of an epoch that was trained again
    assert torch.load(tmp_path / "epoch-003.pt")["state_dict"]["0.bias"].equal(network(1).state_dict()["0.bias"])
    assert (tmp_path / "epoch-003.tmp").read_text() == "my own" and not list(tmp_path.glob(".swagwrap-*"))


def test_a_folder_that_comes_back(tmp_path: Path) -> None:
    from swagwrap._files import new_files, replaced

    there = tmp_path / "there"
    there.mkdir()
    (there / "mine").write_text("my own")
    with pytest.raises(KeyboardInterrupt), replaced(there):
        there.mkdir()
        (there / "new").write_text("new")
        raise KeyboardInterrupt
    assert files(tmp_path) == {"there/mine": b"my own"} and len(list(tmp_path.iterdir())) == 1
    with replaced(there):
        there.mkdir()
    assert there.is_dir() and not files(tmp_path) and len(list(tmp_path.iterdir())) == 1

    (there / "b").write_text("my own")
    with pytest.raises(FileExistsError, match="there/b"), new_files(there, overwrite=False) as work:
        for name in "abc":
            (work / name).write_text("new")
    assert files(tmp_path) == {"there/b": b"my own"} and len(list(there.iterdir())) == 1


def test_try_is_all_or_nothing(tmp_path: Path) -> None:
    checkpoints = tmp_path / "run"
    save = swagwrap.callback(checkpoints, X)
    for epoch in range(4):
        save(network(epoch), epoch)
    loader = [(torch.randn(30, 6), torch.arange(30) % 3)]
    run = dict(folder=tmp_path / "result", args=["-n", "2", "--methods", "swa"])
    states = sorted(checkpoints.glob("epoch-*.pt"))
    swagwrap.try_(network(), states, loader, None, loader, **run)
    before = files(tmp_path)
    for fails, error in ((dict(test=[(torch.randn(30, 6), torch.arange(30) % 3), "no pair"]), ValueError), (dict(args=["--rank", "nothing"]), swagwrap.ProgramError)):
        test = fails.pop("test", loader)
        with pytest.raises(error):
            swagwrap.try_(network(), states, [(torch.randn(30, 6), torch.arange(30) % 3)], None, test, overwrite=True, **{**run, **fails})
        assert files(tmp_path) == before
    swagwrap.try_(network(), states, loader, None, loader, overwrite=True, **run)
    assert set(p.name for p in tmp_path.iterdir()) == {"run", "result", "result-data"}
    (tmp_path / "result-data" / "notes.txt").write_text("my own")
    before = files(tmp_path)
    with pytest.raises(FileExistsError, match="did not write: notes.txt"):
        swagwrap.try_(network(), states, loader, None, loader, overwrite=True, **run)
    assert files(tmp_path) == before
    fresh = tmp_path / "fresh"
    with pytest.raises(ValueError):
        swagwrap.try_(network(), states, loader, None, [], folder=fresh)
    assert set(p.name for p in tmp_path.iterdir()) == {"run", "result", "result-data"}


@pytest.mark.parametrize("value", [None, ""])
def test_no_telemetry(tmp_path: Path, value: str | None) -> None:
    """ONNX Runtime's wheel writes a file with an id where it reports what it does. All modules set the variable before its import."""
    swagwrap.export(network(), X, tmp_path / "model.onnx")
    script = f"import time, swagwrap, onnxruntime\nonnxruntime.InferenceSession({str(tmp_path / 'model.onnx')!r})\ntime.sleep(2)\n"
    (tmp_path / "temporary").mkdir()
    env = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"} | {"TMPDIR": str(tmp_path / "temporary")}
    if value is not None:
        env["ORT_DISABLE_TELEMETRY"] = value
    subprocess.run([sys.executable, "-c", script], env=env, check=True)
    assert not list((tmp_path / "temporary").iterdir())


def test_the_variable_comes_before_onnxruntime() -> None:
    """Each module of the package is imported after the package itself, which sets the variable and does not import onnxruntime."""
    script = "import os, sys, swagwrap\nprint(os.environ['ORT_DISABLE_TELEMETRY'], 'onnxruntime' in sys.modules, 'swagwrap._runtime' in sys.modules)"
    env = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"}
    done = subprocess.run([sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["1", "False", "True"]
