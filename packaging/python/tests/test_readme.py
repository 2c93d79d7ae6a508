"""The Python of README.md as it stands, on pictures in folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import swagwrap, train_one_epoch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

README = Path(__file__).parents[3] / "README.md"


def test_readme(net: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    pixels = rng.integers(0, 256, (700, 6, 6), dtype=np.uint8)
    pixels[:, :, :3] = pixels[:, :, :3] // 2 + rng.integers(0, 100, (700, 1, 1), dtype=np.uint8)
    bright = pixels.mean(axis=(1, 2))
    labels = np.digitize(bright, np.quantile(bright, [1 / 3, 2 / 3]))
    for i in range(300, 700):
        folder = Path("test", "abc"[labels[i]])
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[i]).save(folder / f"{i}.png")
    Path("pictures").mkdir()
    Image.fromarray(pixels[0]).save("pictures/new.png")
    seen = torch.tensor((pixels[:300, None] / 255 - 0.4) / 0.3, dtype=torch.float32)
    loader = DataLoader(TensorDataset(seen, torch.tensor(labels[:300])), batch_size=10, shuffle=True)

    blocks = [b.split("```")[0] for b in README.read_text().split("```python\n")[1:]]
    assert len(blocks) == 2, "other blocks than the two that this test runs"
    names = {
        "model": net,
        "optimizer": torch.optim.SGD(net.parameters(), lr=0.05),
        "train_loader": loader,
        "train_one_epoch": lambda model, optimizer, loader: train_one_epoch(model, optimizer, *map(torch.cat, zip(*loader))),
    }
    exec(blocks[0], names)
    assert {"model.onnx", "batches.npy", "swagwrap-reference.npz", "epoch-19.pt"} <= {p.name for p in Path("run").iterdir()}
    command = next(line for line in README.read_text().splitlines() if "`bin/swagwrap try run test/`" in line)
    assert command
    swagwrap("try", "run", "test/", "-n", "3")
    exec(blocks[1], names)
    model = names["model"]
    given = model.predict_proba("pictures/")  # type: ignore[attr-defined]
    assert given.shape == (1, 3) and abs(given.sum() - 1) < 1e-5
