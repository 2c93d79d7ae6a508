"""Makes the LoRA adapters of this folder, their network and expected.json. With torch 2.15, transformers 5.24, peft 0.21, onnx 1.23.

A Llama of 11 words, four adapters that PEFT saves, and model.onnx with the fourth one. The ranks and alphas of the layers
differ, the scale is that of rsLoRA, and the whole last layer is trained. expected.json has the tokens of a text, and −log of the
probability of each predicted one: by transformers and PEFT in float64, with the adapter as it is and merged. Members are drawn
here as docs/formats.md says it, from moments that NumPy computes as in Algorithm 1 of the paper.
"""
import json
import os
import pathlib
import tempfile
import warnings

import numpy as np
import onnx
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

warnings.filterwarnings("ignore")
WORDS, WINDOW, STRIDE, ADAPTERS = 11, 8, 4, 4
HERE = pathlib.Path(__file__).resolve().parent
MASK = 2**64 - 1


class Network(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_ids):
        return self.net(input_ids=input_ids, use_cache=False).logits


def export(net):
    x = torch.zeros(2, 5, dtype=torch.long)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("time", min=2, max=64)}
    program = torch.onnx.export(Network(net), (x,), dynamo=True, optimize=False, input_names=["input_ids"], output_names=["logits"], dynamic_shapes=(axes,), verbose=False)
    program.save(HERE / "model.onnx")
    model = onnx.load(HERE / "model.onnx")
    for node in [*model.graph.node, *(n for f in model.functions for n in f.node)]:  # leave out what only people read
        del node.metadata_props[:]
        node.doc_string = ""
    for value in [*model.graph.initializer, *model.graph.input, *model.graph.output]:
        del value.metadata_props[:]
    del model.graph.value_info[:]
    onnx.save(model, HERE / "model.onnx")
    return [t.name for t in model.graph.initializer]


def losses(net, text):
    """Windows that overlap: each scores the tokens that no window before has scored."""
    out, end = [], 1
    for at in range(0, len(text), STRIDE):
        window = text[at : at + WINDOW]
        logs = net(torch.tensor([window]), use_cache=False).logits[0].log_softmax(-1)
        out += [-logs[t - at - 1, text[t]].item() for t in range(end, at + len(window))]
        end = at + len(window)
        if end == len(text):
            return out


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def ziggurat():
    r, a, f = 3.654152885361009, 0.004928673233974658, lambda x: np.exp(-x * x / 2)
    w = [a / f(r), r]
    while len(w) < 256:
        w.append(np.sqrt(-2 * np.log(a / w[-1] + f(w[-1]))))
    return w + [0.0], f, r


def variate(seed, member, c):
    w, f, r = EDGES
    step = 0x9E3779B97F4A7C15
    u = mix(mix(seed) + (member * 2**40 + c + 1) * step & MASK)

    def uniform():
        nonlocal u
        u = mix(u + step & MASK)
        return ((u >> 12) + 0.5) / 2**52

    while True:
        i, j = u % 256, (u >> 32) - (u >> 63 << 32)
        x = j * float(np.float32(w[i] / 2**31))
        if abs(j) < int(w[i + 1] / w[i] * 2**31):
            return x
        if i == 0:
            while True:
                y = -np.log(uniform()) / r
                if -2 * np.log(uniform()) >= y * y:
                    return float(np.copysign(r + y, j))
        if f(w[i]) + uniform() * (f(w[i + 1]) - f(w[i])) < f(x):
            return x
        u = mix(u + step & MASK)


EDGES = ziggurat()


def moments(thetas):
    """Algorithm 1: the mean, the variances, and deviations from the running mean."""
    mean = np.mean(thetas, 0)
    deviations = np.float32([t - np.mean(thetas[: i + 1], 0) for i, t in enumerate(thetas)])
    return mean.astype(np.float32).astype(np.float64), np.mean(np.square(thetas), 0) - np.square(mean), deviations


def member(thetas, seed, m, alpha=0.5):
    mean, variance, deviations = moments(thetas)
    k = len(deviations)
    z1 = np.array([variate(seed, m, i) for i in range(len(mean))])
    low = sum(d * np.float32(np.sqrt(alpha / (k - 1)) * variate(seed, m, 2**40 - 1 - i)) for i, d in enumerate(deviations))
    return (mean + (np.sqrt(alpha * variance) * z1 + low)).astype(np.float32)


def main():
    torch.manual_seed(3)
    ids = dict(bos_token_id=None, eos_token_id=None, pad_token_id=None)
    config = LlamaConfig(vocab_size=WORDS, hidden_size=8, intermediate_size=4, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, initializer_range=0.25, **ids)
    base = tempfile.mkdtemp()
    LlamaForCausalLM(config).save_pretrained(base)
    load = lambda: LlamaForCausalLM.from_pretrained(base).eval()
    net = get_peft_model(load(), LoraConfig(r=2, lora_alpha=3, use_rslora=True, rank_pattern={"down_proj": 1}, alpha_pattern={"v_proj": 5}, target_modules=["q_proj", "v_proj", "down_proj"], modules_to_save=["lm_head"], lora_dropout=0.1, task_type="CAUSAL_LM")).eval()
    for p in net.parameters():  # from the end of training on, as it were
        if p.requires_grad:
            p.data += 0.2 * torch.randn_like(p)
    folders = [HERE / ("checkpoint-%d" % (100 * (k + 1))) for k in range(ADAPTERS)]
    for folder in folders:
        for p in net.parameters():
            if p.requires_grad:
                p.data += 0.05 * torch.randn_like(p)
        net.save_pretrained(folder)
        os.remove(folder / "README.md")
        path = folder / "adapter_config.json"
        path.write_text(path.read_text().replace(base, "base"))
    names = export(net)
    of = lambda name: name.removeprefix("net.").replace(".default", "").replace(".modules_to_save", "")
    saved = [load_file(f / "adapter_model.safetensors") for f in folders]
    names = [of(n) for n in names if of(n) in saved[0]]
    assert sorted(names) == sorted(saved[0])
    thetas = [np.concatenate([s[n].numpy().ravel() for n in names]).astype(np.float64) for s in saved]

    text = torch.randint(WORDS, (42,)).tolist()
    expected = {"text": text, "adapters": []}
    for folder in folders:
        net = PeftModel.from_pretrained(load(), folder).eval().double()
        plain, merged = losses(net, text), losses(net.merge_and_unload(), text)
        assert np.allclose(plain, merged, rtol=0, atol=1e-12)
        expected["adapters"].append(plain)

    def drawn(theta):
        net = PeftModel.from_pretrained(load(), folders[0]).eval().double()
        own, at = {of("net." + n): p for n, p in net.named_parameters()}, 0
        for n in names:
            p = own[n]
            p.data = torch.tensor(theta[at : at + p.numel()], dtype=torch.float64).reshape(p.shape)
            at += p.numel()
        return losses(net, text)

    expected["swa"] = drawn(moments(thetas)[0])
    expected["members"] = [drawn(member(thetas, 1, m)) for m in range(3)]
    with open(HERE / "expected.json", "w") as f:
        json.dump({k: np.round(v, 9).tolist() for k, v in expected.items()}, f)
        f.write("\n")


with torch.no_grad():
    main()
