"""try_ from a training script, on a network and data that no fixture has."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import swagwrap as sw
import torch
from conftest import swagwrap, train_one_epoch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Normalize:
    """As torchvision's: try_ goes by the name and the fields."""

    def __init__(self) -> None:
        self.mean, self.std = [0.25], [0.5]

    def __repr__(self) -> str:
        return "Normalize(mean=[0.25], std=[0.5])"


def loader(images: torch.Tensor, labels: torch.Tensor, *, shuffle: bool = False) -> DataLoader[Any]:
    data = TensorDataset(images, labels)
    data.transform = Normalize()  # type: ignore[attr-defined]
    data.classes = ["dark", "grey", "light"]  # type: ignore[attr-defined]
    return DataLoader(data, batch_size=16, shuffle=shuffle)


def test_try(net: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    images = torch.randn(400, 1, 6, 6, generator=torch.Generator().manual_seed(3))
    labels = images.mean(dim=(1, 2, 3)).mul(6).add(1.5).clamp(0, 2).long()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    for epoch in range(4):
        train_one_epoch(net, optimizer, images[:200], labels[:200])
        torch.save({"model": {"module." + k: v for k, v in net.state_dict().items()}}, checkpoints / f"{epoch}.pth")
    train_one_epoch(net, optimizer, images[:200], labels[:200])  # the network is not the last checkpoint any more
    loaders = loader(images[:200], labels[:200], shuffle=True), loader(images[200:300], labels[200:300]), loader(images[300:], labels[300:])

    tried = sw.try_(net, checkpoints, *loaders, folder=tmp_path / "out", args=["-n", "3"])
    folder = tried.folder
    assert tried.verdict and tried.json["posterior_ids"] and "SWAG" in tried.table["method"].tolist() and tried._repr_html_().startswith("<iframe")
    x = images[300:].numpy()
    np.testing.assert_array_equal(tried.model(arrays="seen").predict_proba(x).argmax(axis=1), tried.model(arrays="seen").predict(x))
    files = {p.name for p in folder.iterdir()}
    assert {"report.html", "table.txt", "NEXT.md", "posterior.safetensors", "ensemble.safetensors", "ensemble.onnx"} <= files
    data = tmp_path / "out-data"
    assert json.loads((data / "transforms.json").read_text())["val"] == ["Normalize(mean=[0.25], std=[0.5])"]
    np.testing.assert_array_equal(np.load(data / "test.npz")["x"], images[300:].numpy())
    assert sw.read_posterior(folder / "posterior.safetensors").card["preprocess"]["mean"] == [0.25]
    assert sw.read_posterior(folder / "posterior.safetensors").card["class_names"] == ["dark", "grey", "light"]

    # The ONNX model gives what score gives.
    ensemble = folder / "ensemble.safetensors"
    swagwrap("score", "--probs", "--arrays", "seen", "-o", tmp_path / "p.npz", ensemble, data / "test.npz")
    session = onnxruntime.InferenceSession(folder / "ensemble.onnx")
    (got,) = session.run(["prob"], {session.get_inputs()[0].name: images[300:].numpy()})
    # 1e-6, times the scales of up to 45 that vector scaling finds for this hardly trained network, in float32.
    np.testing.assert_allclose(got, sw.read_predictions(tmp_path / "p.npz").probs, rtol=0, atol=1e-5)

    # What the files say runs in another folder.
    subprocess.run(["sh", folder / "commands.sh"], cwd="/", check=True, stdout=subprocess.DEVNULL)
    block = (folder / "NEXT.md").read_text().split("```sh\n")[1].split("```")[0]
    subprocess.run(["sh", "-ec", block], cwd="/", check=True)
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 101

    with pytest.raises(FileExistsError, match="overwrite=True"):
        sw.try_(net, checkpoints, *loaders, folder=folder)
    before = (folder / "ensemble.safetensors").read_bytes()
    with pytest.raises(sw.ProgramError):
        sw.try_(net, checkpoints, *loaders, folder=folder, args=["--bogus"], overwrite=True)
    assert (folder / "ensemble.safetensors").read_bytes() == before
    sw.try_(net, checkpoints, *loaders, folder=folder, args=["-n", "3"], overwrite=True)

    # Files of others stay.
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(sw.ProgramError):
        sw.try_(net, checkpoints, *loaders, folder=folder, args=["-n", "3"], overwrite=True)
    assert (folder / "notes.txt").read_text() == "mine"
    (tmp_path / "other-data").mkdir()
    (tmp_path / "other-data" / "test.npz").write_text("mine")
    with pytest.raises(FileExistsError, match="did not write"):
        sw.try_(net, checkpoints, *loaders, folder=tmp_path / "other", overwrite=True)
    assert (tmp_path / "other-data" / "test.npz").read_text() == "mine"


def test_try_refuses(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    good = loader(images, labels)
    path = tmp_path / "0.pt"
    torch.save(net.state_dict(), path)
    with pytest.raises(FileNotFoundError, match="no such checkpoint"):
        sw.try_(net, tmp_path / "missing.pt", good, good, good, folder=tmp_path / "out")
    with pytest.raises(ValueError, match="test_loader: yields 3 things"):
        sw.try_(net, path, good, None, [(1, 2, 3)], folder=tmp_path / "out")
    with pytest.raises(ValueError, match="train_loader: yields nothing"):
        sw.try_(net, path, [], None, good, folder=tmp_path / "out2")
    with pytest.raises(sw.ProgramError):
        sw.try_(net, path, good, None, good, folder=tmp_path / "out3", args=["--bogus"])
    assert not list(tmp_path.glob("out*"))
