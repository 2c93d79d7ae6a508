"""Makes marks-*.pt: files whose weights are an average, as five training programs mark it. Their layouts are those of mosaicml 0.32.1,
lightning 2.6.6, mmengine and torch_ema 0.3.

    python make_marks.py            torch 2.15.0
"""

import os
import pathlib

import torch

os.chdir(pathlib.Path(__file__).parent)
average, iterate = ({"fc.weight": torch.full((2, 3), v) + torch.arange(3.0), "fc.bias": torch.full((2,), v)} for v in (1.5, 2.5))
torch.save({"state": {"model": average, "algorithms": [("EMA", {"ema_weights_active": True, "ema_model": {"named_parameters_dict": iterate}})]}}, "marks-composer.pt")
torch.save({"state": {"model": iterate, "algorithms": [("EMA", {"ema_weights_active": False})]}}, "marks-composer-iterate.pt")
torch.save({"state_dict": average, "current_model_state": iterate, "averaging_state": {"n_averaged": torch.tensor(4)}}, "marks-weight-averaging.pt")
torch.save({"state_dict": average, "callbacks": {"StochasticWeightAveraging": {"n_averaged": 4, "average_model_state": {k: v.clone() for k, v in average.items()}}}},
           "marks-stochastic.pt")
torch.save({"meta": {"mmengine_version": "0.10.7"}, "state_dict": average, "ema_state_dict": iterate}, "marks-mmengine.pt")
torch.save({"model": average, "ema": {"decay": 0.9, "num_updates": 7, "shadow_params": list(average.values()), "collected_params": list(iterate.values())}}, "marks-torch-ema.pt")
