"""export and the callbacks, held against what PyTorch computes itself, and what the program makes of their files."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import swagwrap as sw
import torch
from conftest import swagwrap, train_one_epoch
from torch import nn


def test_export_gives_the_networks_scores(net: nn.Module, images: torch.Tensor, tmp_path: Path) -> None:
    net.train()
    net.get_submodule("fc").eval()
    path = tmp_path / "new" / "model.onnx"
    sw.export(torch.nn.DataParallel(net), images[:2], path)
    assert net.training and net.get_submodule("bn").training and not net.get_submodule("fc").training  # as it was

    graph = onnx.load(path).graph
    assert [n.op_type for n in graph.node].count("BatchNormalization") == 1
    session = onnxruntime.InferenceSession(path)
    (got,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})  # 40 images, exported with 2
    net.eval()
    with torch.no_grad():
        want = net(images).numpy()
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)  # float32, sums in another order


def test_export_refuses(net: nn.Module, images: torch.Tensor, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with pytest.raises(ValueError, match=r"shape \(1, 1, 6, 6\)"):
        sw.export(net, images[:1], path)
    with pytest.raises(TypeError, match="tuple"):
        sw.export(net, (images,), path)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="AveragedModel"):
        sw.export(torch.optim.swa_utils.AveragedModel(net), images, path)
    net.train()
    with pytest.raises(Exception):  # of the exporter's own kind: an image of too few dimensions
        sw.export(net, images[:, 0, 0], path)
    assert net.training
    assert list(tmp_path.iterdir()) == []


def test_callback(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    folder, data = tmp_path / "checkpoints", tmp_path / "data.npz"
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    save = sw.callback(folder, images[:2], start=3, every=2, learning_rate=0.05)
    states, rates = [], []
    optimizer.register_step_post_hook(lambda o, *_: rates.append(o.param_groups[0]["lr"]))
    for epoch in range(10):
        train_one_epoch(net, optimizer, images, labels)
        scheduler.step()
        if save(net, epoch, optimizer):
            states.append({k: v.clone() for k, v in net.state_dict().items()})
    assert sorted(p.name for p in folder.glob("epoch-*")) == ["epoch-003.pt", "epoch-005.pt", "epoch-007.pt", "epoch-009.pt"]
    assert len(states) == 4 and rates[12:] == [0.05] * 28 and rates[4] == 0.9  # four steps an epoch

    posterior = tmp_path / "posterior.safetensors"
    swagwrap("fit", "--template", save.template, "--task", "classes", "--augment", "none", "-o", posterior, folder)
    p = sw.read_posterior(posterior)
    assert len(p.checkpoints) == 4 and p.card["task"] == "classes"
    mean = p.tensors(p.mean)
    assert set(mean) == {name for name, _ in net.named_parameters()}
    for name, value in mean.items():
        want = torch.stack([s[name].double() for s in states])
        np.testing.assert_allclose(value, want.mean(0).numpy(), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(p.tensors(p.variance)[name], want.var(0, correction=0).numpy(), rtol=1e-9, atol=1e-15)
    # The last column of D̂ is the last checkpoint's deviation from the mean.
    assert p.deviations is not None
    np.testing.assert_allclose(
        p.tensors(p.deviations[-1])["fc.bias"], states[-1]["fc.bias"].double().numpy() - mean["fc.bias"], rtol=1e-6, atol=1e-9
    )

    # The whole way: an ensemble, its predictions, and that they are the averages of its members.
    np.savez(data, x=images.numpy(), y=labels.numpy())
    ensemble, out = tmp_path / "ensemble.safetensors", tmp_path / "out.npz"
    swagwrap("sample", "-n", "3", "-o", ensemble, "--bn-data", data, posterior)
    swagwrap("score", "--keep-members", "-o", out, ensemble, data)
    r = sw.read_predictions(out)
    assert len(r) == 40 and r.probs.shape == (40, 3) and r.error is None and r.class_names is None
    assert r.label is not None and (r.label == labels.numpy()).all()
    assert r.member_probs is not None
    np.testing.assert_allclose(r.member_probs.mean(axis=1), r.probs, rtol=0, atol=1e-6)  # members are stored in float32
    assert (r.prediction == r.probs.argmax(axis=1)).all() and (r.confidence == r.probs.max(axis=1)).all()
    assert r.meta is not None and set(r.columns) >= {"path", "probs", "member_probs"}


def test_callback_tells_of_a_changing_rate(net: nn.Module, images: torch.Tensor, tmp_path: Path) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    save = sw.callback(tmp_path, images[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        save(net, 0, optimizer)
        save(net, 1, optimizer)
    optimizer.param_groups[0]["lr"] = 0.05
    with pytest.warns(UserWarning, match=r"\[0.05\] in epoch 2, and was \[0.1\]"):
        save(net, 2, optimizer)


def test_callback_keeps_runs_apart(net: nn.Module, images: torch.Tensor, tmp_path: Path) -> None:
    for epoch in range(3):
        sw.callback(tmp_path, images[:2])(net, epoch)  # each a run that goes on
    with pytest.raises(FileExistsError, match="epoch-001.pt"):
        sw.callback(tmp_path, images[:2])(net, 1)
    assert sw.callback(tmp_path, images[:2], overwrite=True)(net, 1) == tmp_path / "epoch-001.pt"
    assert sorted(p.name for p in tmp_path.glob("*.pt")) == ["epoch-000.pt", "epoch-001.pt"]
    for wrong in ({"start": -1}, {"every": 0}, {"learning_rate": 0.0}):
        with pytest.raises(ValueError):
            sw.callback(tmp_path, images[:2], **wrong)  # type: ignore[arg-type]


def test_callback_fails_before_training(images: torch.Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"shape \(1, 1, 6, 6\)"):
        sw.callback(tmp_path, images[:1])
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "onnxscript" else find(name, *more))
    with pytest.raises(ModuleNotFoundError, match="pip install onnx onnxscript"):
        sw.lightning_callback(tmp_path, images[:2])


def test_lightning(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    import lightning as L

    class Module(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net
            self.rates: list[float] = []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x)

        def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> torch.Tensor:
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self):  # type: ignore[no-untyped-def]
            optimizer = torch.optim.SGD(self.parameters(), lr=1.0)
            optimizer.register_step_post_hook(lambda o, *_: self.rates.append(o.param_groups[0]["lr"]))
            schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    module, folder = Module(), tmp_path / "checkpoints"
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=10)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="swagwrap")
        trainer = L.Trainer(
            max_epochs=5, callbacks=[sw.lightning_callback(folder, images[:2], start=2, learning_rate=0.05)], accelerator="cpu",
            logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
        )
        trainer.fit(module, loader)
    assert module.rates[8:] == [0.05] * 12 and module.rates[1] == 0.9  # four steps an epoch
    assert sorted(p.name for p in folder.glob("*.pt")) == ["epoch-002.pt", "epoch-003.pt", "epoch-004.pt"]
    last = torch.load(folder / "epoch-004.pt")["state_dict"]
    assert all(torch.equal(last[name], value) for name, value in module.state_dict().items())

    posterior = tmp_path / "posterior.safetensors"
    swagwrap("fit", "--template", folder / "model.onnx", "--task", "classes", "-o", posterior, folder)
    states = [torch.load(p)["state_dict"] for p in sorted(folder.glob("*.pt"))]
    want = torch.stack([s["net.fc.weight"].double() for s in states]).mean(0)
    (got,) = [v for name, v in sw.read_posterior(posterior).tensors(sw.read_posterior(posterior).mean).items() if name.endswith("fc.weight")]
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-12)
