"""Scores pictures or a table on Ray.

    python ray_rows.py ENSEMBLE.safetensors PICTURES OUTPUT
    python ray_rows.py ENSEMBLE.onnx TABLE.parquet OUTPUT

PICTURES is a folder, and OUTPUT becomes a folder of Parquet files. All machines have swagwrap and see the model at the same path.
There is an actor for each GPU, or for each core but one, which reads and writes. An actor that is lost is started again, and so are its batches.
"""

import argparse
import os

import ray

import rows

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("data")
parser.add_argument("output")
parser.add_argument("--batch", type=int, default=1000, help="rows of one call; for pictures each call opens the networks")
args = parser.parse_args()
model = os.path.abspath(args.model)

ray.init(runtime_env={"py_modules": [rows.__file__]})  # of a cluster: RAY_ADDRESS=auto
have = ray.cluster_resources()
gpus = int(have.get("GPU", 0))
flags = ["--provider", "cuda"] if gpus else []


class Score:
    def __call__(self, table):
        return rows.of(table, model, *flags)


data = ray.data.read_parquet(args.data) if model.endswith(".onnx") else ray.data.read_binary_files(args.data, include_paths=True)
actors = ray.data.ActorPoolStrategy(size=gpus or max(1, int(have["CPU"]) - 1))
data.map_batches(Score, batch_format="pyarrow", batch_size=args.batch, compute=actors, num_gpus=1 if gpus else 0).write_parquet(args.output)
