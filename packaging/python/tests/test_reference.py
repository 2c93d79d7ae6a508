"""Reference outputs: what is in the file is what PyTorch computes, and the model stays as it was."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import swagwrap as sw
import torch
from swagwrap import _checkpoints, _reference
from torch import nn
from torch.utils.data import Subset, TensorDataset


def right(net: nn.Module, x: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        return net.eval()(x).numpy()


def test_reference(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    net.train()
    net.get_submodule("fc").eval()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    data = Subset(TensorDataset(images, labels), list(range(39, -1, -1)))
    path = sw.reference(net, data, 10, path=tmp_path / "new" / "r.npz", weights="a/epoch-3.pt")
    assert net.training and not net.get_submodule("fc").training
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    with np.load(path) as got:
        at = [39 - 4 * i for i in range(10)]
        np.testing.assert_array_equal(got["inputs.0"], images[at].numpy())
        np.testing.assert_array_equal(got["labels"], labels[at].numpy())
        assert list(got["weights"]) == ["epoch-3.pt"]
        np.testing.assert_allclose(got["outputs.0"][0], right(net, images[at]), rtol=0, atol=1e-6)
        about = json.loads(str(got["about"]))
        assert (about["device"], about["dtype"], about["mode"]) == ("cpu", "float32", "eval")
    with pytest.raises(FileExistsError):
        sw.reference(net, data, 9, path=path)


def test_synthetic_has_no_example(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    path = sw.reference(net, TensorDataset(images, labels), 8, path=tmp_path / "r.npz", inputs="synthetic")
    with np.load(path) as got:
        assert set(got) == {"inputs.0", "outputs.0", "about"}
        assert not np.isin(got["inputs.0"], images.numpy()).any()
        np.testing.assert_allclose(got["outputs.0"], right(net, torch.tensor(got["inputs.0"])), rtol=0, atol=1e-6)


def test_half_precision_is_widened(net: nn.Module, images: torch.Tensor, tmp_path: Path) -> None:
    net.to(torch.bfloat16)
    path = sw.reference(net, images, 4, path=tmp_path / "r.npz")
    assert next(net.parameters()).dtype == torch.bfloat16
    with np.load(path) as got:
        np.testing.assert_allclose(got["outputs.0"], right(net.float(), images[::10]), rtol=0, atol=1e-6)


def test_size(net: nn.Module, images: torch.Tensor, tmp_path: Path) -> None:
    path = sw.reference(net, images, 40, path=tmp_path / "r.npz", max_bytes=3000)
    assert path.stat().st_size <= 3000
    with np.load(path) as got:
        assert 1 <= len(got["inputs.0"]) < 40
    with pytest.warns(UserWarning, match="is not written"):
        sw.reference(net, images, 2, path=tmp_path / "s.npz", max_bytes=100)
    assert not (tmp_path / "s.npz").exists()


def test_callback_has_a_row_for_each_epoch(net: nn.Module, images: torch.Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_checkpoints, _reference):  # a busy machine has time for fewer examples
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    save, rows = sw.callback(tmp_path, images[:20]), []
    for epoch in range(3):
        with torch.no_grad():
            for p in net.parameters():
                p.add_(0.1)
        save(net.train(), epoch)
        rows.append(right(net, images[:16]))
    again = sw.callback(tmp_path, images[:20])  # a run that goes on
    again(net.train(), 3)
    rows.append(rows[-1])
    with np.load(tmp_path / "swagwrap-reference.npz") as got:
        assert list(got["weights"]) == [f"epoch-{e:03d}.pt" for e in range(4)]
        np.testing.assert_allclose(got["outputs.0"], rows, rtol=0, atol=1e-6)


def test_export_keeps_what_is_of_others(net: nn.Module, images: torch.Tensor, tmp_path: Path) -> None:
    sw.export(net, images[:4], tmp_path / "a.onnx")
    first = (tmp_path / "swagwrap-reference.npz").read_bytes()
    sw.export(net, images[:5], tmp_path / "b.onnx")
    assert (tmp_path / "swagwrap-reference.npz").read_bytes() == first
    sw.export(net, images[:4], tmp_path / "c" / "c.onnx", reference=False)
    assert not (tmp_path / "c" / "swagwrap-reference.npz").exists()


def test_the_time_for_an_epoch_is_bounded(net: nn.Module, images: torch.Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a slow network the callback keeps fewer examples, and a run that goes on has as many."""
    now, one = [0.0], [0.0]
    clock = SimpleNamespace(perf_counter=lambda: now[0])  # of swagwrap alone: the exporter has its own
    compute = _reference.compute

    def slow(model: nn.Module, inputs: Any) -> Any:
        now[0] += one[0] * len(inputs["inputs.0"])
        return compute(model, inputs)

    for module in (_checkpoints, _reference):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(_reference, "compute", slow)

    def examples(folder: str, seconds: float, epoch: float, number: int = 0) -> int:
        save = sw.callback(tmp_path / folder, images[:20])
        now[0] += epoch
        one[0] = seconds
        save(net, number)
        with np.load(tmp_path / folder / "swagwrap-reference.npz") as got:
            assert got["outputs.0"].shape == (number + 1, len(got["inputs.0"]), 3)
            return len(got["inputs.0"])

    assert examples("fast", 0.001, 10) == 16
    assert examples("second", 0.25, 10) == 4  # in a second
    assert examples("long", 0.25, 125) == 10  # 2 % of an epoch
    assert examples("least", 60, 10) == 2
    assert examples("long", 60, 10, number=1) == 10
    folder = tmp_path / "without"
    sw.callback(folder, images[:20], reference=False)(net, 0)
    assert (folder / "epoch-000.pt").exists()
    assert not (folder / "swagwrap-reference.npz").exists()
