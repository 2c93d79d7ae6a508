"""average and members, held against AveragedModel and update_bn."""

from __future__ import annotations

from pathlib import Path

import pytest
import swagwrap as sw
import torch
from conftest import train_one_epoch
from safetensors.torch import save_file
from torch import nn


def trained(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, folder: Path) -> torch.optim.swa_utils.AveragedModel:
    """Checkpoints in the folder, and PyTorch's own average of them."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    want = torch.optim.swa_utils.AveragedModel(net)
    folder.mkdir()
    for epoch in range(4):
        train_one_epoch(net, optimizer, images, labels)
        want.update_parameters(net)
        torch.save({"epoch": epoch, "state_dict": net.state_dict()}, folder / f"epoch-{epoch}.pt")
    torch.optim.swa_utils.update_bn([images], want)
    return want


@pytest.mark.parametrize("wrap", [lambda x, y: x, lambda x, y: (x, y), lambda x, y: (x, [{"boxes": y}])])
def test_average(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path, wrap) -> None:  # type: ignore[no-untyped-def]
    want = trained(net, images, labels, tmp_path / "checkpoints")
    before = {k: v.clone() for k, v in net.state_dict().items()}
    loader = [wrap(x, y) for x, y in zip(images.split(10), labels.split(10))]
    swa = sw.average(net, tmp_path / "checkpoints", loader)
    assert not swa.training and all(torch.equal(v, before[k]) for k, v in net.state_dict().items())  # a copy
    with torch.no_grad():
        torch.testing.assert_close(swa(images), want.module.eval()(images), rtol=0, atol=1e-5)


def test_members(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    trained(net, images, labels, tmp_path / "checkpoints")
    drawn = []
    for state in sw.members(net, tmp_path / "checkpoints", [images], n=3):
        net.load_state_dict(state, strict=True)
        drawn.append(state["fc.weight"])
    assert len(drawn) == 3 and not torch.equal(drawn[0], drawn[1])


class Messages(nn.Module):
    """Takes any object, in a loop over its parts: no exporter takes it."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.bn, self.frozen = nn.Linear(3, 8), nn.BatchNorm1d(8), nn.BatchNorm1d(8)
        self.drop, self.out = nn.Dropout(0.5), nn.Linear(8, 2)

    def forward(self, graphs: list[torch.Tensor]) -> torch.Tensor:
        h = self.bn(torch.stack([self.inside(g).relu().sum(0) for g in graphs]))
        return self.out(self.drop(self.frozen(h)))


@pytest.mark.parametrize("form", ["tuple", "dict", "module."])
def test_average_without_a_graph(tmp_path: Path, form: str) -> None:
    torch.manual_seed(1)
    net = Messages()
    net.frozen.running_mean += 0.5
    batches = [[torch.randn(2 + (k + i) % 3, 3) for i in range(8)] for k in range(6)]
    want = torch.optim.swa_utils.AveragedModel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(4):
        net.train()
        net.frozen.eval()
        for graphs in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(graphs), torch.tensor([0, 1] * 4)).backward()
            optimizer.step()
        want.update_parameters(net)
        prefix = form if form == "module." else ""
        torch.save({"epoch": epoch, "state_dict": {prefix + k: v for k, v in net.state_dict().items()}}, tmp_path / f"epoch-{epoch}.pt")
    averaged = want.module.eval()
    with torch.no_grad():  # by hand, since update_bn of PyTorch also moves frozen layers
        averaged.bn.reset_running_stats()
        averaged.bn.momentum = None
        averaged.bn.train()
        for graphs in batches:
            averaged(graphs)
    averaged.eval()
    loader = [{"graphs": g} for g in batches] if form == "dict" else [(g, 1) for g in batches]
    swa = sw.average(net, tmp_path, loader, graph=False)
    assert not swa.training and swa.bn.momentum == 0.1
    assert torch.equal(swa.frozen.running_mean, net.frozen.running_mean)
    for name, value in averaged.state_dict().items():
        torch.testing.assert_close(swa.state_dict()[name], value, rtol=1e-5, atol=1e-6, msg=name) if value.is_floating_point() else None
    with pytest.raises(ValueError, match="1 batch-norm layers need new statistics"):
        sw.average(net, tmp_path, graph=False)
    (tmp_path / "epoch-2.pt").unlink()
    torch.save({"state_dict": {k: v for k, v in net.state_dict().items() if k != "out.bias"}}, tmp_path / "epoch-2.pt")
    with pytest.raises(RuntimeError, match="out.bias"):
        sw.average(net, tmp_path, loader, graph=False)


def test_average_refuses(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        sw.average(net, tmp_path / "nowhere", [images])
    trained(net, images, labels, tmp_path / "checkpoints")
    with pytest.raises(ValueError, match="no model.onnx"):
        sw.average(net, tmp_path / "checkpoints")
    with pytest.raises(ValueError, match="yields dict"):
        sw.average(net, tmp_path / "checkpoints", [{"x": images}])
    (tmp_path / "checkpoints" / "epoch-9.pt").write_bytes(b"PK\3\4")
    with pytest.raises(RuntimeError, match="epoch-9.pt: not a readable zip file"):
        sw.average(net, tmp_path / "checkpoints", [images])


def test_average_asks_for_unused_tensors(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    """An auxiliary head is in the checkpoints and not in the graph."""

    class WithHead(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.aux = net, nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.net(x)
            return out

    model, folder = WithHead(), tmp_path / "checkpoints"
    folder.mkdir()
    for epoch in range(3):
        for p in model.parameters():
            p.data.add_(0.01 * torch.randn_like(p))
        torch.save(model.state_dict(), folder / f"epoch-{epoch}.pt")
    for wanted in (sw.average, lambda *args: list(sw.members(*args, n=2))):
        with pytest.raises(sw.ProgramError, match=r"aux\.weight.*not in the graph") as e:
            wanted(model, folder, [images])
        assert e.value.code == 64 and e.value.hint.endswith('unused=["aux.*"]') and "swagwrap-" not in str(e.value)  # the folder that is gone
    swa = sw.average(model, folder, [images], unused=["aux.*"])
    states = [torch.load(folder / f"epoch-{k}.pt") for k in range(3)]
    torch.testing.assert_close(swa.state_dict()["net.fc.weight"], torch.stack([s["net.fc.weight"] for s in states]).mean(0))
    assert len(list(sw.members(model, folder, [images], n=2, unused="aux"))) == 2


LAYOUTS = {
    "safetensors": ("epoch-{}.safetensors", lambda state, path: save_file(state, path)),
    "Lightning, net.": ("epoch={}-step=9.ckpt", lambda state, path: lightning(state, "net.", path)),
    "Lightning, model.": ("epoch={}-step=9.ckpt", lambda state, path: lightning(state, "model.", path)),
}


def lightning(state: dict[str, torch.Tensor], prefix: str, path: Path) -> None:
    """What Lightning's ModelCheckpoint writes for a module that holds the network."""
    torch.save({"state_dict": {prefix + k: v for k, v in state.items()}, "epoch": int(path.name[6]), "global_step": 9, "pytorch-lightning_version": "2.6.6"}, path)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_average_of_other_files(net: nn.Module, images: torch.Tensor, tmp_path: Path, layout: str) -> None:
    """The names of the network are those of the model, whatever is before them in the files."""
    name, save = LAYOUTS[layout]
    states = []
    for epoch in range(3):
        for p in net.parameters():
            p.data.add_(0.01 * torch.randn_like(p))
        states.append({k: v.clone() for k, v in net.state_dict().items()})
        save(states[-1], tmp_path / name.format(epoch))
    got = sw.average(net, tmp_path, [images]).state_dict()
    for key in ("conv.weight", "fc.bias"):
        torch.testing.assert_close(got[key], torch.stack([s[key] for s in states]).mean(0))


def test_average_among_the_checkpoints(net: nn.Module, images: torch.Tensor, tmp_path: Path) -> None:
    """It is left out with a warning. args takes it. A name that only may be an average's is asked about, in words of Python."""
    states = []
    sw.export(net, images[:2], tmp_path / "model.onnx")  # with the weights of the first
    torch.save(net.state_dict(), tmp_path / "epoch-0.pt")
    states.append({k: v.clone() for k, v in net.state_dict().items()})
    for epoch in range(1, 4):
        for p in net.parameters():
            p.data.add_(0.01 * torch.randn_like(p))
        states.append({k: v.clone() for k, v in net.state_dict().items()})
        torch.save(states[-1], tmp_path / f"epoch-{epoch}.pt")
    want = torch.stack([s["fc.weight"] for s in states]).mean(0)
    torch.save({k: torch.stack([s[k].double() for s in states]).mean(0).to(states[0][k].dtype) for k in states[0]}, tmp_path / "epoch-8.pt")
    with pytest.warns(UserWarning, match=r"left out, since it is an average \(args=\[\"--averages\", \"keep\"\] takes it\): .*epoch-8.pt"):
        got = sw.average(net, tmp_path, [images])
    torch.testing.assert_close(got.state_dict()["fc.weight"], want)
    for p in net.parameters():
        p.data.add_(0.01 * torch.randn_like(p))
    torch.save(net.state_dict(), tmp_path / "epoch-8.pt")
    (tmp_path / "epoch-8.pt").rename(tmp_path / "epoch-8-ema.pt")
    with pytest.raises(sw.ProgramError, match="epoch-8-ema.pt.* may be an average") as e:
        sw.average(net, tmp_path, [images])
    assert 'args=["--averages", "keep"]' in e.value.hint and 'args=["--averages", "drop"]' in e.value.hint
    got = sw.average(net, tmp_path, [images], args=["--averages", "keep"])
    torch.testing.assert_close(got.state_dict()["fc.weight"], torch.stack([*(s["fc.weight"] for s in states), net.state_dict()["fc.weight"]]).mean(0))


def test_average_of_lightning(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    L = pytest.importorskip("lightning")

    class Module(L.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x)

        def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> torch.Tensor:
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def test_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> None:
            self.log("loss", nn.functional.cross_entropy(self(batch[0]), batch[1]))

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    module, folder = Module(), tmp_path / "checkpoints"
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=10)
    trainer = L.Trainer(
        max_epochs=4, callbacks=[sw.lightning_callback(folder, images[:2])], accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
    )
    trainer.fit(module, loader)
    last = nn.functional.cross_entropy(module.eval()(images), labels).item()
    (result,) = trainer.test(sw.average(module, folder, loader), loader, verbose=False)

    want = torch.optim.swa_utils.AveragedModel(module)
    for path in sorted(folder.glob("*.pt")):
        module.load_state_dict(torch.load(path)["state_dict"])
        want.update_parameters(module)
    torch.optim.swa_utils.update_bn(loader, want)
    with torch.no_grad():
        loss = nn.functional.cross_entropy(want.eval()(images), labels).item()
    assert abs(result["loss"] - loss) < 1e-5 < abs(result["loss"] - last)  # that of SWA, not of the last epoch
