"""Runs the lines that apply a calibration in PyTorch, and writes pytorch.json with what they give. TestPyTorchLines compares.

    python internal/task/testdata/pytorch.py

Written with PyTorch 2.15.0.
"""

import json
import pathlib
import subprocess

import torch

here = pathlib.Path(__file__).parent
file = here / "pytorch.json"
subprocess.run(["go", "test", "-count=1", "-run", "TestPyTorchLines", ".", "-lines", str(file)], cwd=here.parent, check=True)
cases = json.loads(file.read_text())
for c in cases:
    have = {"torch": torch, "x": torch.tensor(c["Scores"]).reshape(c["Shape"]), "model": lambda x: x}
    exec("\n".join(c["Lines"]), have)
    c["Result"] = have["probabilities"].flatten().tolist()
file.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
