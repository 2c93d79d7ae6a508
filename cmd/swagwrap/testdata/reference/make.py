"""A tiny network of PyTorch, its checkpoints, and reference outputs that PyTorch computed: right ones, and some that belong to
something else. Made with torch 2.15.0, onnx 1.23.2, onnxscript, numpy. Run: python make.py"""

import copy
import json
import logging
import os
import warnings

import numpy as np
import torch
from torch import nn

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
torch.set_num_threads(1)
torch.manual_seed(0)
os.chdir(os.path.dirname(os.path.abspath(__file__)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.fc, self.aux = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(64, 3), nn.Linear(64, 3)

    def forward(self, x):
        h = torch.relu(self.bn(self.conv(x))).flatten(1)
        return self.fc(h), self.aux(h)


r = np.random.default_rng(0)
X, Y = torch.tensor(r.random((64, 3, 6, 6)).astype("f4")), torch.tensor(r.integers(0, 3, 64))
net, x = Net(), X[:5]
opt, ema = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), copy.deepcopy(net)
states, averages = [], []
for epoch in range(3):
    for i in torch.randperm(64).split(16):
        a, b = net(X[i])
        opt.zero_grad()
        (nn.functional.cross_entropy(a, Y[i]) + nn.functional.cross_entropy(b, 2 - Y[i])).backward()
        opt.step()
        for v, w in zip(ema.state_dict().values(), net.state_dict().values()):
            v.copy_(v * 0.5 + w * 0.5 if v.dtype.is_floating_point else w)
    states.append({k: v.clone() for k, v in net.state_dict().items()})
    averages.append({k: v.clone() for k, v in ema.state_dict().items()})
    torch.save({"epoch": epoch, "state_dict": states[-1], "ema_state_dict": averages[-1]}, f"epoch-{epoch}.pt")
torch.onnx.export(net.eval(), (X[:2],), "model.onnx", input_names=["x"], output_names=["logits", "aux"], dynamo=True, optimize=False,
                  dynamic_shapes=({0: torch.export.Dim("batch")},), external_data=False, verbose=False)


def out(state, x=x, output=0, train=False):
    m = copy.deepcopy(net)
    m.load_state_dict(state)
    with torch.no_grad():
        return m.train(train)(x)[output].numpy()


def save(name, rows, inputs=x, **kw):
    about = {"device": "cpu", "dtype": "float32", "mode": "eval", "versions": {"torch": torch.__version__}}
    np.savez_compressed(name, x=np.asarray(inputs), logits=rows, weights=[f"epoch-{e}.pt" for e in range(3)], about=json.dumps({**about, **kw}))


def flat(i):
    return np.ascontiguousarray(i)


mean, std = torch.tensor([0.485, 0.456, 0.406])[:, None, None], torch.tensor([0.229, 0.224, 0.225])[:, None, None]
good = np.stack([out(s) for s in states])
save("right", good)
save("ema", np.stack([out(s) for s in averages]))
save("epoch-before", good[[0, 0, 1]])
save("training-mode", np.stack([out(s, train=True) for s in states]))
save("bgr", good, flat(x.numpy()[:, ::-1]))
save("channels-last", good, flat(x.numpy().transpose(0, 2, 3, 1)).reshape(x.shape))
save("sides", good, flat(x.numpy().swapaxes(2, 3)))
save("normalised", np.stack([out(s, (x - mean) / std) for s in states]))
save("normalised-twice", good, ((x - mean) / std).numpy())
save("softmax", torch.tensor(good).softmax(-1).numpy())
save("log-softmax", torch.tensor(good).log_softmax(-1).numpy())
save("examples", good[:, [1, 2, 3, 4, 0]])
save("classes", good[:, :, [2, 0, 1]])
save("other-output", np.stack([out(s, output=1) for s in states]))
save("scaled", good * np.float32(1.0005))
save("coarse", good * np.float32(1.0005), device="cuda:0")  # TF32 explains it
half = copy.deepcopy(net).bfloat16()
rows = []
for s in states:
    half.load_state_dict(s)
    with torch.no_grad():
        rows.append(half.eval()(x.bfloat16())[0].float().numpy())
save("bfloat16", np.stack(rows), dtype="bfloat16")
save("bfloat16-unsaid", np.stack(rows))
np.savez_compressed("three-lines", inputs=x.numpy(), outputs=good[2], weights="epoch-2.pt")
np.savez_compressed("unnamed", inputs=x.numpy(), outputs=good[1])
np.savez_compressed("elsewhere", inputs=x.numpy(), outputs=good[1] + 1, weights="other/net.pt")
np.savez_compressed("no-input", y=x.numpy(), outputs=good[1])
np.savez_compressed("shape", inputs=x.numpy()[:, 0], outputs=good[1])
import onnx.numpy_helper as h  # noqa: E402

os.makedirs("zoo", exist_ok=True)
for name, a in (("input_0", x.numpy()), ("output_0", good[2]), ("output_1", out(states[2], output=1))):
    with open(f"zoo/{name}.pb", "wb") as f:
        f.write(h.from_array(a).SerializeToString())
