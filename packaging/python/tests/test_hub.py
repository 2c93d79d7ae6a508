"""The folder of `export --hub`: its YAML by huggingface_hub, its weights by PyTorch, its model by ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import swagwrap as sw
import torch
from conftest import swagwrap, train_one_epoch
from huggingface_hub import ModelCard
from safetensors.torch import load_file
from torch import nn


def test_hub(net: nn.Module, images: torch.Tensor, labels: torch.Tensor, tmp_path: Path) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    save = sw.callback(tmp_path / "checkpoints", images[:2])
    for epoch in range(4):
        train_one_epoch(net, optimizer, images, labels)
        save(net, epoch)
    np.savez(tmp_path / "test.npz", x=images.numpy(), y=labels.numpy())
    np.save(tmp_path / "train.npy", images.numpy())
    posterior, folder = tmp_path / "p.safetensors", tmp_path / "hub"
    data = ("--bn-data", tmp_path / "train.npy", "--augment", "none", "--arrays", "seen")
    swagwrap("fit", "--task", "classes", "--template", tmp_path / "checkpoints" / "model.onnx", "-o", posterior, tmp_path / "checkpoints")
    found = swagwrap("compare", "--json", "--methods", "sgd,swa", *data, posterior, tmp_path / "test.npz")
    (tmp_path / "figures.json").write_text(found)
    swagwrap("export", "--hub", folder, "--figures", tmp_path / "figures.json", *data, posterior)
    card = ModelCard.load(folder / "README.md")
    accuracy = next(r for r in card.data.eval_results if r.metric_type == "accuracy")
    assert card.data.model_name == "hub" and accuracy.metric_args["low"] <= accuracy.metric_value <= accuracy.metric_args["high"]
    net.load_state_dict(load_file(folder / "model.safetensors"), strict=True)
    with torch.no_grad():
        want = net.eval()(images)
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    (got,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})
    assert abs((want.argmax(1).numpy() == labels.numpy()).mean() - accuracy.metric_value) < 1e-9
    torch.testing.assert_close(torch.from_numpy(got), want, rtol=0, atol=1e-5)
