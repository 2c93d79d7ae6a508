#!/bin/sh
# Expected: a distributed checkpoint (torch.distributed.checkpoint) of replicated tensors holds those of rank 0.
# Happens: each tensor that all ranks have is written by one of them, chosen to spread the bytes: which one depends on the sizes of all
#   tensors. Running statistics differ between ranks unless they are synchronised. One batch-norm layer may come back with
#   running_mean of rank 1 and running_var of rank 0: a pair that no network ever had.
# Versions: torch 2.15.0.
# Matters: such a file is averaged as one checkpoint. Statistics must be recomputed, or come from SyncBatchNorm.
# Source: DefaultSavePlanner(dedup_save_to_lowest_rank=False) is documented; what it does to batch norm was seen by running.
. "$(dirname "$0")/lib.sh"
packages $TORCH
check <<'END'
import os, socket, sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


def rank(number, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(number), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))
    for buffer in net.buffers():
        buffer.fill_(number)
    dcp.save(net.state_dict(), checkpoint_id="spread")
    dcp.save(net.state_dict(), checkpoint_id="lowest", planner=dcp.DefaultSavePlanner(dedup_save_to_lowest_rank=True))
    dist.destroy_process_group()


if __name__ == "__main__":
    from seen import seen, versions
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    versions("torch")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    torch.multiprocessing.spawn(rank, (port,), 2)
    for folder, want in (("spread", {0, 1}), ("lowest", {0})):
        dcp_to_torch_save(folder, "one.pt")
        state = torch.load("one.pt")
        layers = {k[:1]: (int(v[0]), int(state[k.replace("mean", "var")][0])) for k, v in sorted(state.items()) if "running_mean" in k}
        seen(f"{folder}: rank of running_mean and running_var, by layer", layers, {r for pair in layers.values() for r in pair} == want)
        if folder == "spread":
            seen("a layer has both ranks", any(a != b for a, b in layers.values()), lambda b: b)
END
