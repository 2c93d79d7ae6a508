"""Reference outputs of the datasets that people have. Each is held against what its own library gives for the same places."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import swagwrap as sw
import torch
from conftest import Net
from PIL import Image
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset

N = 6  # of 12: every second one


class Colours(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.fc = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        return self.fc(self.bn(self.conv(pixel_values)).mean(dim=(2, 3)))


class Words(nn.Module):
    """Takes what a tokeniser gives, and returns what transformers returns."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.fc = nn.Embedding(50, 8), nn.Linear(8, 2)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        h = self.embedding(input_ids)
        if attention_mask is not None:
            h = h * attention_mask[..., None]
        return {"logits": self.fc(h.mean(1)), "hidden": h, "scale": torch.ones(())}


def write(model: nn.Module, dataset: Any, path: Path, n: int = N, **options: Any) -> dict[str, np.ndarray]:
    torch.manual_seed(3)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    with np.load(sw.reference(model, dataset, n, path=path, **options)) as file:
        got = dict(file)
    assert torch.equal(before[0], torch.get_rng_state()) and (before[1] == np.random.get_state()[1]).all() and before[2] == random.getstate()
    return got


def held(model: nn.Module, got: dict[str, np.ndarray], **inputs: torch.Tensor) -> None:
    """The inputs are these, and the outputs what the network gives for them."""
    want = {k.replace("_0", ".0").replace("_1", ".1"): v.numpy() for k, v in inputs.items()}
    assert {k for k in got if k in want or k.startswith("inputs.")} == set(want)
    for name, value in want.items():
        np.testing.assert_array_equal(got[name], value)
    with torch.no_grad():
        out = model.eval()(*inputs.values())
    np.testing.assert_allclose(got["outputs.0"], (out["logits"] if isinstance(out, dict) else out).numpy(), rtol=0, atol=1e-6)


def raws(got: dict[str, np.ndarray]) -> list[bytes]:
    ends = got["raw_sizes"].cumsum()
    return [got["raw"][e - s:e].tobytes() for e, s in zip(ends, got["raw_sizes"])]


@pytest.fixture
def colours() -> Colours:
    torch.manual_seed(1)
    return Colours()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    r = np.random.default_rng(4)
    for i in range(12):
        path = tmp_path / "pictures" / ("cat", "dog", "emu")[i // 4] / f"{i:02}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(r.integers(0, 256, (10, 12, 3), dtype=np.uint8)).save(path)
    return tmp_path / "pictures"


def files(folder: Path) -> list[bytes]:
    return [p.read_bytes() for p in sorted(folder.glob("*/*.jpg"))[::2]]


def test_torchvision(colours: Colours, folder: Path, tmp_path: Path) -> None:
    datasets, T = pytest.importorskip("torchvision.datasets"), pytest.importorskip("torchvision.transforms")

    data = datasets.ImageFolder(folder, T.Compose([T.Resize(9), T.CenterCrop(8), T.ToTensor()]))
    x = torch.stack([data[i][0] for i in range(0, 12, 2)])
    got = write(colours, data, tmp_path / "a.npz")
    held(colours, got, inputs_0=x)
    assert raws(got) == files(folder) and list(got["labels"]) == [0, 0, 1, 1, 2, 2] and list(got["class_names"]) == ["cat", "dog", "emu"]

    # Subsets, parts and loaders lead to the same files.
    parts = ConcatDataset([Subset(data, range(5)), Subset(data, range(5, 12))])
    got = write(colours, DataLoader(parts, batch_size=5, shuffle=True), tmp_path / "b.npz")
    held(colours, got, inputs_0=x)
    assert raws(got) == files(folder)

    got = write(colours, data, tmp_path / "c.npz", raw=False)
    assert "raw" not in got and "raw_sizes" not in got and "labels" in got
    got = write(colours, data, tmp_path / "d.npz", inputs="synthetic")
    assert set(got) == {"inputs.0", "outputs.0", "about", "class_names"} and json.loads(str(got["about"]))["inputs"] == "synthetic"


def test_in_memory_pictures_are_kept_as_files(colours: Colours, tmp_path: Path) -> None:
    datasets, T = pytest.importorskip("torchvision.datasets"), pytest.importorskip("torchvision.transforms")

    data = datasets.FakeData(12, (3, 8, 8), 3, T.ToTensor())
    got = write(colours, data, tmp_path / "r.npz")
    held(colours, got, inputs_0=torch.stack([data[i][0] for i in range(0, 12, 2)]))
    again = [T.ToTensor()(Image.open(io.BytesIO(b))).numpy() for b in raws(got)]
    np.testing.assert_array_equal(again, got["inputs.0"])


def test_random_transforms_leave_the_raw_ones_out(colours: Colours, folder: Path, tmp_path: Path) -> None:
    datasets, T = pytest.importorskip("torchvision.datasets"), pytest.importorskip("torchvision.transforms")

    data = datasets.ImageFolder(folder, T.Compose([T.RandomCrop(8), T.ToTensor()]))
    with pytest.warns(UserWarning, match="other inputs each time"):
        got = write(colours, data, tmp_path / "r.npz")
    assert "raw" not in got
    held(colours, got, inputs_0=torch.tensor(got["inputs.0"]))


def test_timm(colours: Colours, folder: Path, tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")

    config = {"input_size": (3, 8, 8), "mean": (0.4, 0.5, 0.6), "std": (0.2, 0.25, 0.3), "crop_pct": 0.9, "interpolation": "bicubic"}
    data = timm.data.create_dataset("", root=str(folder))
    data.transform = timm.data.create_transform(**config)
    x = torch.stack([data[i][0] for i in range(0, 12, 2)])
    got = write(colours, data, tmp_path / "a.npz")
    held(colours, got, inputs_0=x)
    assert raws(got) == files(folder) and list(got["labels"]) == [0, 0, 1, 1, 2, 2] and list(got["class_names"]) == ["cat", "dog", "emu"]

    # The loader of train.py and validate.py normalises behind the dataset.
    for prefetch in (True, False):
        loader = timm.data.create_loader(
            timm.data.create_dataset("", root=str(folder)), batch_size=6, use_prefetcher=prefetch, num_workers=0, device=torch.device("cpu"), **config
        )
        got = write(colours, loader, tmp_path / f"{prefetch}.npz")
        want = torch.cat([x for x, _ in loader])[::2]
        held(colours, got, inputs_0=want)
        np.testing.assert_allclose(want, x, atol=1e-5)
        assert raws(got) == files(folder)


def test_hugging_face_pictures(colours: Colours, folder: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")

    names = sorted(folder.glob("*/*.jpg"))
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog", "emu"])})
    data = datasets.Dataset.from_dict({"image": [str(p) for p in names], "label": [i // 4 for i in range(12)]}, features=features)

    def transform(rows: dict[str, list[Any]]) -> dict[str, Any]:
        return {"pixel_values": [torch.tensor(np.asarray(i)[:8, :8].transpose(2, 0, 1) / 255, dtype=torch.float32) for i in rows["image"]], "label": rows["label"]}

    for k, some in enumerate((data.with_transform(transform), data.map(lambda r: r).with_transform(transform))):
        got = write(colours, some, tmp_path / f"{k}.npz")
        held(colours, got, inputs_0=torch.stack([some[i]["pixel_values"] for i in range(0, 12, 2)]))
        assert raws(got) == files(folder) and list(got["labels"]) == [0, 0, 1, 1, 2, 2] and list(got["class_names"]) == ["cat", "dog", "emu"]
    data.set_transform(transform)
    assert raws(write(colours, data.select(range(11, -1, -1)), tmp_path / "back.npz")) == [names[i].read_bytes() for i in range(11, -1, -2)]


def test_hugging_face_texts(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")

    model = Words()
    texts = [" ".join("word" for _ in range(1 + i % 5)) + f" {i} ü" for i in range(12)]
    table = {"text": texts, "label": [i % 2 for i in range(12)]}
    data = datasets.Dataset.from_dict(table).map(lambda r: {"input_ids": [len(w) for w in r["text"].split()], "idx": 7})
    with pytest.raises(ValueError, match="collate_fn"):  # of several lengths
        sw.reference(model, data, path=tmp_path / "r.npz")

    def pad(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        most = max(len(r["input_ids"]) for r in rows)
        filled = [r["input_ids"] + [0] * (most - len(r["input_ids"])) for r in rows]
        mask = [[1] * len(r["input_ids"]) + [0] * (most - len(r["input_ids"])) for r in rows]
        return {"input_ids": torch.tensor(filled), "attention_mask": torch.tensor(mask), "labels": torch.tensor([r["label"] for r in rows]), "idx": torch.ones(len(rows))}

    got = write(model, DataLoader(data, batch_size=4, collate_fn=pad), tmp_path / "a.npz")
    want = pad([data[i] for i in range(0, 12, 2)])
    held(model, got, input_ids=want["input_ids"], attention_mask=want["attention_mask"])
    assert [b.decode() for b in raws(got)] == texts[::2] and list(got["labels"]) == [0] * 6
    assert "outputs.1" in got and "outputs.2" not in got  # a number for all examples is no row

    # Of the same length, in the format of torch; two texts are a row.
    fixed = datasets.Dataset.from_dict({"one": texts, "two": texts[::-1], "input_ids": [[i, 1, 2] for i in range(12)]}).with_format("torch", ["input_ids"])
    got = write(model, fixed, tmp_path / "b.npz")
    held(model, got, inputs_0=torch.tensor([[i, 1, 2] for i in range(0, 12, 2)]))
    assert [json.loads(b) for b in raws(got)] == [{"one": texts[i], "two": texts[11 - i]} for i in range(0, 12, 2)]


def test_tokenised_texts(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    plain = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "good": 2, "bad": 3, "film": 4}, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]", model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    texts = ["good film", "a bad bad film", "film"] * 4
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    model = Words()
    got = write(model, batch, tmp_path / "r.npz", raw=texts)
    held(model, got, input_ids=batch["input_ids"][::2], attention_mask=batch["attention_mask"][::2])
    assert [b.decode() for b in raws(got)] == texts[::2] and "token_type_ids" not in got

    config = transformers.BertConfig(vocab_size=10, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, max_position_embeddings=16, num_labels=2)
    bert = transformers.BertForSequenceClassification(config)
    labels = {**batch, "labels": torch.arange(12) % 2}
    got = write(bert, labels, tmp_path / "bert.npz")
    with torch.no_grad():
        want = bert.eval()(**{k: batch[k][::2] for k in ("input_ids", "attention_mask", "token_type_ids")})
    np.testing.assert_allclose(got["outputs.0"], want.logits.numpy(), rtol=0, atol=1e-6)
    assert set(got) >= {"input_ids", "attention_mask", "token_type_ids"} and list(got["labels"]) == [0] * 6

    got = write(bert, batch, tmp_path / "synthetic.npz", inputs="synthetic")
    assert (got["token_type_ids"] == 0).all() and (got["attention_mask"] == 1).all() and got["input_ids"].max() <= 4


def test_tables(tmp_path: Path) -> None:
    r = np.random.default_rng(6)
    table = pd.DataFrame({"age": r.integers(20, 60, 12), "pay": r.normal(size=12), "town": ["a", "b", None] * 4, "label": np.arange(12) % 3})
    table.loc[2, "pay"] = np.nan
    model = nn.Linear(2, 3)
    numbers = table[["age", "pay", "label"]].fillna(0.0)
    x = torch.tensor(numbers[["age", "pay"]].to_numpy(np.float32))
    got = write(model, numbers, tmp_path / "a.npz")
    held(model, got, inputs_0=x[::2])
    assert list(got["labels"]) == [0, 2, 1, 0, 2, 1] and json.loads(raws(got)[1]) == {"age": int(table.age[2]), "pay": 0.0, "label": 2}

    with pytest.raises(TypeError, match="town"):
        sw.reference(model, table, path=tmp_path / "r.npz")
    for k, data in enumerate((TensorDataset((x - 3).double(), torch.arange(12) % 3), ((x - 3).numpy(), np.arange(12) % 3))):
        got = write(model, data, tmp_path / f"{k}.npz", raw=table)
        held(model, got, inputs_0=(x - 3)[::2])
        assert json.loads(raws(got)[1]) == {"age": int(table.age[2]), "pay": None, "town": None, "label": 2}
        assert json.loads(raws(got)[0])["pay"] == table.pay[0]
    with pytest.raises(ValueError, match="11 examples, and 12"):
        sw.reference(model, TensorDataset(x), path=tmp_path / "r.npz", raw=table[:11])


def test_lists_and_loaders(net: Net, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    x, y = images[:12], labels[:12]
    pairs = [(a, int(b)) for a, b in zip(x, y)]
    for k, data in enumerate((pairs, [(a.numpy(), b, i) for i, (a, b) in enumerate(pairs)], [x, y], (x, y), DataLoader(pairs, 5), [{"x": a, "label": b} for a, b in pairs])):
        got = write(net, data, tmp_path / f"{k}.npz")
        held(net, got, inputs_0=x[::2])
        assert (got["labels"] == y[::2].numpy()).all(), k
    got = write(net, [(a, 0.5) for a in x], tmp_path / "numbers.npz")
    assert "labels" not in got  # they are no classes

    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter(pairs)

    for k, data in enumerate((Stream(), DataLoader(Stream(), 8))):
        held(net, write(net, data, tmp_path / f"s{k}.npz"), inputs_0=x[:N])

    class Two(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return a.mean((2, 3)), b

    for k, data in enumerate(([(a, a + 1, 0) for a in x], [((a, a + 1), 0) for a in x], [({"a": a, "b": a + 1}, 0) for a in x])):
        got = write(Two(), data, tmp_path / f"t{k}.npz")
        np.testing.assert_array_equal(got["outputs.1"], x[::2] + 1)
        assert (got["labels"] == 0).all()
    with pytest.raises(TypeError, match="give one of these"):
        sw.reference(net, {"train": TensorDataset(x), "test": TensorDataset(x)}, path=tmp_path / "r.npz")


def test_lightning_data_module(net: Net, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    import lightning as L

    class Data(L.LightningDataModule):
        data: Dataset[Any] | None = None

        def setup(self, stage: str) -> None:
            self.data = TensorDataset(images[:12], labels[:12])

        def test_dataloader(self) -> DataLoader[Any]:
            assert self.data is not None
            return DataLoader(self.data, 5)

    held(net, write(net, Data(), tmp_path / "r.npz"), inputs_0=images[:12:2])


def test_the_network_stays_as_it_is(net: Net, images: torch.Tensor, tmp_path: Path) -> None:
    class Counting(nn.Module):
        """With a buffer that it counts in, dropout, and random numbers in evaluation mode."""

        def __init__(self) -> None:
            super().__init__()
            self.net, self.drop = net, nn.Dropout(0.5)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return self.drop(self.net(x)) + 0 * (torch.rand(1) + random.random() + np.random.rand())

    model = Counting()
    torch.set_float32_matmul_precision("medium")
    try:
        for k, wrapped in enumerate((model, nn.DataParallel(model), torch.optim.swa_utils.AveragedModel(model), torch.compile(model, backend="aot_eager"))):
            with torch.autocast("cpu", torch.bfloat16):
                got = write(wrapped.train(), images, tmp_path / f"{k}.npz")
            assert wrapped.training and model.calls == 0
            with torch.no_grad():
                np.testing.assert_allclose(got["outputs.0"], net.eval()(images[[0, 6, 13, 20, 26, 33]]).numpy(), rtol=0, atol=1e-6)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")

    got = write(net.double(), images.double(), tmp_path / "double.npz")
    assert got["outputs.0"].dtype == np.float64 and json.loads(str(got["about"]))["dtype"] == "float64"
    with pytest.raises(RuntimeError, match="channels|size"):
        sw.reference(net, images.repeat(1, 2, 1, 1), path=tmp_path / "none.npz")
    assert not (tmp_path / "none.npz").exists()


def test_raw_examples_stay_while_there_is_room(colours: Colours, folder: Path, tmp_path: Path) -> None:
    datasets, T = pytest.importorskip("torchvision.datasets"), pytest.importorskip("torchvision.transforms")

    data = datasets.ImageFolder(folder, T.Compose([T.CenterCrop(8), T.ToTensor()]))
    got = write(colours, data, tmp_path / "few.npz", 12, max_bytes=7000)
    assert (tmp_path / "few.npz").stat().st_size <= 7000 and len(raws(got)) == len(got["inputs.0"]) < 12
    got = write(colours, data, tmp_path / "none.npz", 12, max_bytes=2500)
    assert (tmp_path / "none.npz").stat().st_size <= 2500 and "raw" not in got
