"""The network and the images that the tests train on, and the program.

`make python` runs these against the wheel that it built, installed in a folder of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    """2-D batch norm, a bias, and a layer without: what exporters fold if they may."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(F.relu(self.bn(self.conv(x))).mean(dim=(2, 3)))


@pytest.fixture
def net() -> Net:
    torch.manual_seed(1)
    return Net()


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randn(40, 1, 6, 6, generator=torch.Generator().manual_seed(2))


@pytest.fixture
def labels(images: torch.Tensor) -> torch.Tensor:
    return images.mean(dim=(1, 2, 3)).mul(6).add(1.5).clamp(0, 2).long()


def train_one_epoch(net: nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor, labels: torch.Tensor) -> None:
    net.train()
    for x, y in zip(images.split(10), labels.split(10)):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()


def swagwrap(*args: str | Path) -> str:
    """Runs the program that is in the package; returns what it prints."""
    done = subprocess.run([sys.executable, "-m", "swagwrap", *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Ensembles by name, each made once."""
    import ensembles as e

    root, there = tmp_path_factory.mktemp("ensembles"), {}
    rng = np.random.default_rng(5)
    pictures = rng.integers(0, 256, (60, 6, 5, 3), dtype=np.uint8)
    rows = rng.normal(size=(60, 3)).astype(np.float32)
    columns = ("--columns", ",".join(e.COLUMNS))
    size = ("--preprocess", "mean=0.4,0.5,0.6 std=0.2,0.25,0.3 input-size=6x5")

    def names(folder: Path) -> str:
        file = folder.with_suffix(".txt")
        file.write_text("no\nyes\n")
        return str(file)

    make = {
        "pictures": lambda p: e.ensemble(p, (3, 6, 5), 4, pictures, e.labels(60, 4), "--task", "classes", *size),
        "bytes": lambda p: e.ensemble(p, (3, 6, 5), 4, pictures, e.labels(60, 4), "--task", "classes", *size, export=("--with-preprocessing",)),
        "table": lambda p: e.ensemble(p, (3,), 3, e.csv(60, 7, "label", e.labels(60, 3)), None, "--task", "classes", *columns),
        "unnamed": lambda p: e.ensemble(p, (3,), 3, rows, e.labels(60, 3), "--task", "classes", promise=()),
        "binary": lambda p: e.ensemble(p, (3,), 1, e.csv(60, 8, "label", e.labels(60, 2)), None, "--task", "binary", *columns, promise=("--threshold=f1", "--method=none")),
        "named": lambda p: e.ensemble(p, (3,), 1, e.csv(60, 8, "label", e.labels(60, 2)), None, "--task", "binary", *columns, "--class-names", names(p)),
        "labels": lambda p: e.ensemble(p, (3,), 4, rows, rng.integers(0, 2, (60, 4)), "--task", "labels"),
        "regression": lambda p: e.ensemble(p, (3,), 2, e.csv(60, 9, "target", rng.normal(size=60)), None, "--task", "regression", "--targets", "head=log-variance", *columns),
        "two": lambda p: e.ensemble(p, (3,), 4, rows, rng.normal(size=(60, 2)), "--task", "regression", "--targets", "head=log-variance"),
        "abstaining": lambda p: e.ensemble(p, (3,), 3, rows, e.labels(60, 3), "--task", "classes", promise=("--threshold=risk=0.9",)),
        "pixels": lambda p: e.ensemble(p, (3, 6, 5), -4, rng.normal(size=(20, 3, 6, 5)).astype(np.float32), rng.integers(0, 4, (20, 6, 5)), "--task", "classes"),
        "reduced": lambda p: e.ensemble(p, (3, 6, 5), -4, rng.normal(size=(20, 3, 6, 5)).astype(np.float32), rng.integers(0, 4, (20, 6, 5)), "--task", "classes", "--preprocess", "reduce-labels=true"),
    }

    def get(name: str) -> Any:
        if name not in there:
            there[name] = make[name](root / name)
        return there[name]

    return get
