"""Makes the language models of this folder and expected.json. Needs torch, onnx, onnxscript.

Each model has a vocabulary of 7 words. expected.json has a text of 3 rows × 11 tokens, and for each model the log-probabilities
of the 10 predictions of each row, [3, 10, 7]: with states that are carried through windows of 4, 4 and 2 tokens, and with states
that are zeros before each window. PyTorch computes them in float64. For lstm2 there are two checkpoints, a and b: "both" is the
logarithm of the mean of their probabilities, each with its own states.
"""
import json
import warnings

import numpy as np
import onnx
import torch
from torch import nn

warnings.filterwarnings("ignore")
WORDS, WIDTH, ROWS, BPTT = 7, 6, 3, 4


class Network(nn.Module):
    def __init__(self, kind=nn.LSTM, layers=1, first=True, flat=False, log=False, cell=False):
        super().__init__()
        self.encoder = nn.Embedding(WORDS, 5)
        self.rnn = nn.LSTMCell(5, WIDTH) if cell else kind(5, WIDTH, layers, batch_first=first)
        self.decoder = nn.Linear(WIDTH, WORDS)
        self.flat, self.log, self.cell = flat, log, cell
        nn.init.normal_(self.encoder.weight, std=1.5)
        for p in self.rnn.parameters():
            nn.init.normal_(p, std=0.6)

    def forward(self, x, *states):
        e = self.encoder(x)
        if self.cell:
            h, c, ys = *states, []
            for t in range(x.shape[1]):
                h, c = self.rnn(e[:, t], (h, c))
                ys.append(h)
            y, states = torch.stack(ys, 1), (h, c)
        elif len(states) == 2:
            y, states = self.rnn(e, states)
        else:
            y, *states = self.rnn(e, *states)
        z = self.decoder(y)
        z = z.view(-1, WORDS) if self.flat else z
        return (z.log_softmax(-1) if self.log else z), *states


# name: network, names of states before and after, exporter, free axes
MODELS = {
    "lstm1": (dict(), "h0 c0", "hn cn", "dynamo", True),
    "lstm2": (dict(layers=2), "h0 c0", "hn cn", "dynamo", True),
    "gru": (dict(kind=nn.GRU, layers=2), "h", "hn", "dynamo", True),
    "flat": (dict(layers=2, first=False, flat=True, log=True), "h0 c0", "hn cn", "torchscript", True),
    "timefirst": (dict(first=False), "a b", "", "dynamo", True),
    "fixed": (dict(layers=3, first=False), "h0 c0", "hn cn", "torchscript", False),
    "rnn": (dict(kind=nn.RNN, layers=2), "h", "h1", "torchscript", True),
    "cell": (dict(cell=True), "h_in c_in", "h_out c_out", "dynamo", False),
}


def zeros(net, rows):
    shape = (rows, WIDTH) if net.cell else (net.rnn.num_layers, rows, WIDTH)
    two = net.cell or isinstance(net.rnn, nn.LSTM)
    return [torch.zeros(shape, dtype=next(net.parameters()).dtype) for _ in range(2 if two else 1)]


def export(net, path, before, after, exporter, free, tied=False):
    first = net.cell or net.rnn.batch_first
    x = torch.zeros((ROWS, BPTT) if first else (BPTT, ROWS), dtype=torch.long)
    states = zeros(net, ROWS)
    if tied:
        states = [states[0]] * 2
    before, after = before.split(), after.split()
    names = dict(input_names=["x", *before])
    if after:
        names["output_names"] = ["scores", *after]
    if exporter == "dynamo":
        B, T = torch.export.Dim("batch"), torch.export.Dim("time")
        axes = ({0: B, 1: T} if first else {0: T, 1: B}, tuple({0 if net.cell else 1: B} for _ in states)) if free else None
        onnx_program = torch.onnx.export(net, (x, *states), dynamo=True, optimize=False, dynamic_shapes=axes, verbose=False, **names)
        onnx_program.save(path)
    else:
        axes = {"x": {0: "batch", 1: "time"} if first else {0: "time", 1: "batch"}, **{n: {1: "batch"} for n in before + after}} if free else None
        torch.onnx.export(net, (x, *states), path, dynamo=False, dynamic_axes=axes, **names)
    model = onnx.load(path)  # leave out what only people read
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for value in [*model.graph.value_info, *model.graph.initializer]:
        del value.metadata_props[:]
        value.doc_string = ""
    onnx.save(model, path)


def predict(net, text, carried):
    out, states = [], None
    for at in range(0, text.shape[1] - 1, BPTT):
        x = text[:, at : min(at + BPTT, text.shape[1] - 1)]
        if states is None or not carried:
            states = zeros(net, ROWS)
        first = net.cell or net.rnn.batch_first
        z, *states = net(x if first else x.T, *states)
        z = z if first else z.view(-1, ROWS, WORDS).transpose(0, 1)
        out.append(z.log_softmax(-1))
    return torch.cat(out, 1)


def export_half():
    """A GRU in float16, which ONNX Runtime cannot run on the processor."""
    weights = [onnx.helper.make_tensor(n, onnx.TensorProto.FLOAT16, shape, np.zeros(shape)) for n, shape in (("w", [6, 3]), ("r", [1, 6, 2]))]
    nodes = [onnx.helper.make_node("Unsqueeze", ["w", "zero"], ["W"]), onnx.helper.make_node("GRU", ["x", "W", "r"], ["", "h"], hidden_size=2), onnx.helper.make_node("Squeeze", ["h", "zero"], ["y"])]
    value = lambda name, *shape: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT16, shape)
    zero = onnx.helper.make_tensor("zero", onnx.TensorProto.INT64, [1], [0])
    graph = onnx.helper.make_graph(nodes, "half", [value("x", 5, "batch", 3)], [value("y", "batch", 2)], [*weights, zero])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9), "half.onnx")


def main():
    export_half()
    torch.manual_seed(5)
    text = torch.randint(WORDS, (ROWS, 11))
    expected = {"text": text.tolist()}
    for name, (how, before, after, exporter, free) in MODELS.items():
        both = []
        for path in ["lstm2-a.onnx", "lstm2-b.onnx"] if name == "lstm2" else [name + ".onnx"]:
            net = Network(**how).eval()
            export(net, path, before, after, exporter, free)
            if name == "lstm1":
                export(net, "tied.onnx", before, after, exporter, free, tied=True)
            net.double()
            with torch.no_grad():
                both.append([predict(net, text, c) for c in (True, False)])
        key = lambda logs: [round(v, 9) for v in logs.flatten().tolist()]
        expected[name] = {"carried": key(both[0][0]), "fresh": key(both[0][1])}
        if len(both) > 1:
            expected["both"] = {k: key(torch.stack([b[i] for b in both]).exp().mean(0).log()) for i, k in enumerate(("carried", "fresh"))}
    with open("expected.json", "w") as f:
        json.dump(expected, f)
        f.write("\n")


main()
