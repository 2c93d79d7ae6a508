"""The network and the images that the tests train on, and the program.

`make python` runs these against the wheel that it built, installed in a folder of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
