"""What a worker of Spark or Ray does with a batch: a pandas table goes in, and its rows come out.

Pictures go through the program, so that their pixels and their rows are those of score. The network runs in onnxruntime for tables
of numbers: they need no pixels, and a session stays open.
"""

import functools
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int32)": np.int32, "tensor(int64)": np.int64}


def of_pictures(frame, ensemble, *flags):
    """The rows that score writes of the pictures in frame, which has the columns path and bytes."""
    with tempfile.TemporaryDirectory() as folder:
        pictures = Path(folder, "pictures")
        pictures.mkdir()
        names = {f"pictures/{i:06}{Path(path).suffix}": path for i, path in enumerate(frame["path"])}
        for name, content in zip(names, frame["bytes"]):
            Path(folder, name).write_bytes(content)
        done = subprocess.run(["swagwrap", "score", "-q", "-j", "1", "--probs", "--on-error", "skip", *flags, "-o", "rows.parquet", ensemble, "pictures"],
                              cwd=folder, capture_output=True, text=True)
        if done.returncode not in (0, 3):  # 3: some pictures are unreadable, and their rows have the column error
            raise RuntimeError(f"swagwrap score: exit code {done.returncode}: {done.stderr}")
        rows = pd.read_parquet(Path(folder, "rows.parquet"))
    errors = rows["error"] if "error" in rows else [None] * len(rows)
    rows["error"] = [error.replace(name, names[name]) if isinstance(error, str) else None for name, error in zip(rows["path"], errors)]
    return rows.assign(path=rows["path"].map(names))


@functools.cache
def session(model):
    """The exported model, opened once for each Python process."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the engine runs a worker for each core
    return onnxruntime.InferenceSession(model, options, providers=onnxruntime.get_available_providers())


def columns(model):
    """The columns of each input, by name, as fit --columns remembered them."""
    card = json.loads(session(model).get_modelmeta().custom_metadata_map["swagwrap.model_card"])
    said = {i.name: card.get("columns", {}).get(i.name, ["*"]) for i in session(model).get_inputs()}
    if any("*" in name for names in said.values() for name in names):
        raise ValueError(f"{model}: the model does not name its columns: fit --columns A,B,C does")
    return said


def of_table(frame, model):
    """The table with the outputs of the exported model as more columns."""
    feed, said = {}, columns(model)
    for i in session(model).get_inputs():
        x = frame[said[i.name]].to_numpy(np.float64)
        if not np.isfinite(x).all():
            raise ValueError(f"columns {said[i.name]}: a cell is empty or not finite")
        feed[i.name] = x.astype(TYPES[i.type])
    names = [o.name for o in session(model).get_outputs()]
    values = dict(zip(names, session(model).run(names, feed)))
    return frame.assign(**{name: list(v) if v.shape[1] > 1 else v[:, 0] for name, v in values.items()})


def of(frame, model, *flags):
    """The rows of pictures for an ensemble, and of a table for an exported model."""
    return of_table(frame, model) if model.endswith(".onnx") else of_pictures(frame, model, *flags)
