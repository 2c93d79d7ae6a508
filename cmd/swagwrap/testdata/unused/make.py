"""A network that uses two elements of a learned vector, and has an auxiliary head for training. torch 2.15.0, onnx 1.23.2, safetensors 0.8.0.

folded.onnx is what the older exporter writes by default: exp(gain[0]) and gain[1] are constants. kept.onnx has the vector.
plain.onnx is of a network without the vector: nothing is folded. Run: python make.py
"""
import warnings
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

warnings.simplefilter("ignore")
torch.set_num_threads(1)
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, gain=True):
        super().__init__()
        self.body, self.head, self.aux = nn.Linear(4, 6), nn.Linear(6, 3), nn.Linear(6, 3)
        self.gain = nn.Parameter(torch.tensor([0.3217, -0.7413])) if gain else None

    def forward(self, x):
        h = self.body(x).relu()
        if self.training:
            return self.head(h), self.aux(h)
        return self.head(h) if self.gain is None else self.gain[0].exp() * self.head(h) + self.gain[1] * x[:, :3]


net = Net()
for epoch in range(1, 4):
    for p in net.parameters():
        p.data += 0.05 * torch.randn_like(p)
    save_file(net.state_dict(), f"epoch-{epoch}.safetensors")
x, how = torch.randn(2, 4), dict(dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}}, verbose=False)
keep = dict(training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
torch.onnx.export(net.eval(), (x,), "folded.onnx", **how)
torch.onnx.export(net, (x,), "kept.onnx", **keep, **how)
plain = Net(False).eval()
plain.load_state_dict({k: v for k, v in net.state_dict().items() if k != "gain"})
torch.onnx.export(plain, (x,), "plain.onnx", **keep, **how)
