"""Labelled examples, and the numbers that evaluations in PyTorch print for the network of ../reference: right ones, and some of something
else. Made with torch 2.15.0, numpy. Run: python make.py"""

import json
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
os.chdir(os.path.dirname(os.path.abspath(__file__)))
N = 150


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc, self.aux = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(64, 3), nn.Linear(64, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.bn(self.conv(x))).flatten(1))


def net(epoch, key="state_dict"):
    m = Net()
    m.load_state_dict(torch.load(f"../reference/epoch-{epoch}.pt")[key])
    return m.eval()


r = np.random.default_rng(1)
images = r.integers(0, 256, (N, 3, 6, 6), dtype=np.uint8)
x = torch.tensor(images).float() / 255
with torch.no_grad():
    y = net(2)(x).argmax(1)
wrong = torch.tensor(r.random(N) < 0.3)
y[wrong] = torch.tensor(r.integers(0, 3, N))[wrong]
np.savez_compressed("test.npz", images=images, labels=y.numpy())
order = torch.tensor([1, 2, 0])
np.savez_compressed("permuted.npz", images=images, labels=order[y].numpy())


def evaluate(m, x=x, y=y, batch=N, smoothing=0.0):
    with torch.no_grad():
        out = torch.cat([m(b).float() for b in x.split(batch)])
    return (out.argmax(1) == y).float().mean().item(), F.cross_entropy(out, y, label_smoothing=smoothing).item()


def says(accuracy, loss, n=None, digits=4):
    return f"accuracy={accuracy:.{digits}f} loss={loss:.{digits}f}" + (f" n={n}" if n else "")


def over_batches(size):
    parts = [evaluate(net(2), a, b) for a, b in zip(x.split(size), y.split(size))]
    return says(*np.mean(parts, axis=0), digits=6)


a, l = evaluate(net(2))
mean = net(2)
states = [net(k).state_dict() for k in range(3)]
with torch.no_grad():
    for k, p in mean.named_parameters():
        p.copy_(sum(s[k] for s in states) / 3)
half = net(2).bfloat16()
cases = {
    "right": [says(a, l, N), ""],
    "right, as Keras prints it": [f"val_loss: {l:.4f} - val_sparse_categorical_accuracy: {a:.4f}", ""],
    "right, as timm prints it": [f"acc1={100 * a:.2f} loss={l:.3f}", ""],
    "right, as Python prints it": [f"acc {a}".replace(" ", "=") + f", loss={l}", ""],
    "right, error": [f"error={1 - a:.4f}", ""],
    "right, float16": [says(*evaluate(lambda v: net(2).half()(v.half()))), ""],
    "ema": [says(*evaluate(net(2, "ema_state_dict"))), "ema_state_dict in"],
    "epoch before": [says(*evaluate(net(1))), "epoch-1.pt"],
    "average": [says(*evaluate(mean)), "the average of the checkpoints, SWA"],
    "first 100": [says(*evaluate(net(2), x[:100], y[:100]), 100), "the first 100 of 150"],
    "drop_last": [says(*evaluate(net(2), x[:128], y[:128]), digits=6), "drop_last"],
    "other examples": [says(*evaluate(net(2), x.flip(3), y), 200), "your evaluation counted 200, and here are 150"],
    "batches of 64": [over_batches(64), "over batches of 64, of which the last has 22"],
    "batches of 100": [over_batches(100), "over batches of 100, of which the last has 50"],
    "smoothing": [says(*evaluate(net(2), smoothing=0.1)), "label smoothing of 0.1"],
    "training mode": [says(*evaluate(net(2).train(), batch=32)), "the statistics of each batch of 32"],
    "bfloat16": [says(*evaluate(lambda v: half(v.bfloat16())), digits=5), "half precision"],
    "channels": [says(*evaluate(net(2), x.flip(1))), "?"],
    "twice the loss": [says(a, 2 * l), "?"],
}
json.dump(cases, open("numbers.json", "w"), indent=1)
print(json.dumps(cases, indent=1))
