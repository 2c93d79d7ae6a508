"""Makes the networks with a cache of keys and values of this folder, and caches.json. Needs torch, onnx, onnxruntime, onnxscript, transformers.

gpt2 has the names, inputs and axes of an export by Optimum, llama those of the exporter of transformers. caches.json has
the log-probabilities of the 10 predictions of each row of the text of expected.json, [3, 10, 7], by transformers in float64: one
forward pass over 8 tokens, which are the context, and one over the last two, without any cache. llama16 is llama in float16,
and its cache too. ONNX Runtime computes its log-probabilities, in windows of 4, 4 and 2 tokens: the last one begins anew.
"""
import json
import os
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.transformers.float16 import convert_float_to_float16
from torch import nn
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

warnings.filterwarnings("ignore")
WORDS, CONTEXT = 7, 8
ids = dict(bos_token_id=None, eos_token_id=None, pad_token_id=None)
gpt2 = lambda: GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=CONTEXT, n_embd=4, n_layer=1, n_head=2, n_inner=4, initializer_range=0.35, attn_implementation="eager", **ids))
llama = lambda: LlamaForCausalLM(LlamaConfig(vocab_size=WORDS, hidden_size=8, intermediate_size=4, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, initializer_range=0.35, **ids))


class AsOptimum(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, input_ids, attention_mask, position_ids, key, value):
        out = self.net(input_ids, past_key_values=DynamicCache([(key, value)]), attention_mask=attention_mask, position_ids=position_ids, use_cache=True)
        layer = out.past_key_values.layers[0]
        return out.logits, layer.keys, layer.values


def export_gpt2(net, path):
    past, present = (["%s.0.key" % n, "%s.0.value" % n] for n in ("past_key_values", "present"))
    B, T, P, total = "batch_size", "sequence_length", "past_sequence_length", "past_sequence_length + sequence_length"
    axes = {n: {0: B, 1: T} for n in ("input_ids", "position_ids", "logits")} | {"attention_mask": {0: B, 1: total}}
    axes |= {n: {0: B, 2: P} for n in past} | {n: {0: B, 2: total} for n in present}
    example = torch.zeros(2, 3, dtype=torch.long), torch.ones(2, 8, dtype=torch.long), torch.arange(5, 8).repeat(2, 1), torch.ones(2, 2, 5, 2), torch.ones(2, 2, 5, 2)
    torch.onnx.export(AsOptimum(net).eval(), example, path, dynamo=False, input_names=["input_ids", "attention_mask", "position_ids", *past], output_names=["logits", *present], dynamic_axes=axes)
    smaller(path)


def export_llama(net, path):
    inputs = dict(input_ids=torch.zeros(2, 3, dtype=torch.long), attention_mask=torch.ones(2, 8, dtype=torch.long), past_key_values=net(torch.zeros(2, 5, dtype=torch.long)).past_key_values)
    OnnxExporter.save_program(OnnxExporter().export(net, inputs, config=OnnxConfig(dynamic=True)).program, path)
    onnx.save(onnx.load(path), path)
    os.remove(path + ".data")
    smaller(path)


def smaller(path):
    """Folds constants, and leaves out what only people read."""
    axes = {v.name: v for g in [onnx.load(path).graph] for v in [*g.input, *g.output]}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.optimized_model_filepath = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC, path
    onnxruntime.InferenceSession(path, options)
    model = onnx.load(path)
    for v in [*model.graph.input, *model.graph.output]:
        v.CopyFrom(axes[v.name])
    for i, node in enumerate(model.graph.node):
        node.name, node.doc_string = "", ""
        del node.metadata_props[:]
    kept = {v.name for v in [*model.graph.input, *model.graph.output]}
    short = {}
    for names in [n.input for n in model.graph.node] + [n.output for n in model.graph.node]:
        for k, name in enumerate(names):
            if name and name not in kept:
                names[k] = short.setdefault(name, "v%d" % len(short))
    for t in model.graph.initializer:
        t.name = short.get(t.name, t.name)
    del model.graph.value_info[:]
    onnx.checker.check_model(model)
    onnx.save(model, path)


def carried(path, text):
    """Log-probabilities of a Llama in float16, with its cache carried from window to window."""
    session, out, cache = onnxruntime.InferenceSession(path), [], None
    names = [v.name for v in session.get_inputs() if "past" in v.name]
    for at, end in ((0, 4), (4, 8), (8, 10)):
        if at % CONTEXT == 0:
            cache = [np.zeros((len(text), 2, 0, 2), np.float16) for _ in names]
        mask = np.ones((len(text), cache[0].shape[2] + end - at), np.int64)
        logits, *cache = session.run(None, {"input_ids": text[:, at:end], "attention_mask": mask, **dict(zip(names, cache))})
        out.append(torch.tensor(logits).double().log_softmax(-1))
    return torch.cat(out, 1)


@torch.no_grad()
def main():
    torch.manual_seed(7)
    text = torch.tensor(json.load(open("expected.json"))["text"])
    expected = {}
    for name, make, export in ("gpt2", gpt2, export_gpt2), ("llama", llama, export_llama):
        net = make().eval()
        export(net, name + ".onnx")
        net.double()
        logs = torch.cat([net(text[:, a:b], use_cache=False).logits.log_softmax(-1) for a, b in ((0, CONTEXT), (CONTEXT, 10))], 1)
        expected[name] = [round(v, 8) for v in logs.flatten().tolist()]
    onnx.save(convert_float_to_float16(onnx.load("llama.onnx")), "llama16.onnx")
    expected["llama16"] = [round(v, 8) for v in carried("llama16.onnx", text.numpy()).flatten().tolist()]
    with open("caches.json", "w") as f:
        json.dump(expected, f)
        f.write("\n")


main()
