#!/bin/sh
# Expected: add_weighted_adapter with n LoRA adapters of one run and the weights 1/n gives their mean, also with combination_type="linear".
# Happens: linear mixes the two factors A and B of all adapters, each with the square root of the weight. The mean of n equal adapters is
#   the adapter times n: ten checkpoints of one run give an update 10 times too large. cat and svd give the mean.
# Versions: peft 0.21.2, torch 2.15.0.
# Matters: this is the library's call for averaging adapters, and checkpoints of one run are nearly equal.
# Source: the documentation calls linear a rough approximation; the factor n was seen by running.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
from seen import near, seen, versions
import peft, torch

versions("peft", "torch")
for count in (2, 10):
    torch.manual_seed(0)
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["0"], init_lora_weights=False)
    net = peft.get_peft_model(torch.nn.Sequential(torch.nn.Linear(16, 16)), config, adapter_name="0")
    names = [str(i) for i in range(count)]
    layer = net.base_model.model[0]
    for name in names[1:]:  # checkpoints 1 % apart
        net.add_adapter(name, config)
        for factor in (layer.lora_A, layer.lora_B):
            first = factor["0"].weight.data
            factor[name].weight.data.copy_(first + .01 * first.std() * torch.randn_like(first))
    mean = sum(map(layer.get_delta_weight, names)) / count
    for kind, size in (("cat", 1), ("svd", 1), ("linear", count)):
        net.add_weighted_adapter(names, [1 / count] * count, kind, combination_type=kind)
        got = layer.get_delta_weight(kind)
        pair = round(float(got.norm() / mean.norm()), 4), round(float((got * mean).sum() / got.norm() / mean.norm()), 4)
        seen(f"{count} adapters, {kind}: size of the update / size of the mean, cosine", pair, near([size, 1], .01))
END
