"""Makes distributed checkpoints of one and of four processes, and the same state_dict as one file, dcp.pt.

    python make_dcp.py        torch 2.15.0, gloo
"""

import os
import pathlib
import shutil

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

HERE = pathlib.Path(__file__).resolve().parent


def state():
    torch.manual_seed(0)
    return {"0.weight": torch.randn(10, 6), "0.bias": torch.randn(10).bfloat16(), "1.running_mean": torch.randn(10), "1.num_batches_tracked": torch.tensor(7),
            "3.weight": torch.randn(3, 10), "conv.weight": torch.randn(5, 3, 4), "scale": torch.tensor(0.5)}


def whole(model):
    return {"model": model, "optim": {"state": {"a": torch.ones(3)}, "lr": 0.1}, "epoch": 5}


def work(rank, world):
    os.chdir(HERE)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    mesh = init_device_mesh("cpu", (world,))
    how = {"0.weight": 0, "0.bias": 0, "3.weight": 1, "conv.weight": 2}  # the dimension that is divided, unevenly too
    dcp.save(whole({k: distribute_tensor(v, mesh, [Shard(how[k])]) if k in how else v for k, v in state().items()}), checkpoint_id="dcp-four")
    dist.destroy_process_group()


if __name__ == "__main__":
    os.chdir(HERE)
    for name in ("dcp-one", "dcp-four"):
        shutil.rmtree(name, ignore_errors=True)
    torch.save(whole(state()), "dcp.pt")
    dcp.save(whole(state()), checkpoint_id="dcp-one")
    mp.spawn(work, args=(4,), nprocs=4)
