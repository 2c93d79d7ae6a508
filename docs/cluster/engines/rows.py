"""What a worker of Spark or Ray does with a batch: an Arrow table goes in, and its rows come out.

Pictures go through the program, so that their pixels and their rows are those of score. The network runs in onnxruntime for tables
of numbers: they need no pixels, and a session stays open.
"""

import functools
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int32)": np.int32, "tensor(int64)": np.int64}


def of_pictures(table, ensemble, *flags):
    """The rows that score writes of the pictures in table, which has the columns path and bytes."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pictures").mkdir()
        # The program goes by a picture's content, but a folder's files without an extension are none.
        paths = {f"pictures/{i:06}.png": path for i, path in enumerate(table["path"].to_pylist())}
        for name, content in zip(paths, table["bytes"]):
            Path(folder, name).write_bytes(content.as_buffer())
        done = subprocess.run(["swagwrap", "score", "-q", "-j", "1", "--probs", "--on-error", "skip", *flags, "-o", "rows.parquet", ensemble, "pictures"],
                              cwd=folder, capture_output=True, text=True)
        if done.returncode not in (0, 3):  # 3: some pictures are unreadable, and their rows have the column error
            raise RuntimeError(f"swagwrap score: exit code {done.returncode}: {done.stderr}")
        rows = pq.read_table(Path(folder, "rows.parquet"))
    if len(rows) != len(table):
        raise RuntimeError(f"swagwrap score: {len(rows)} rows, want {len(table)}")
    names = rows["path"].to_pylist()
    errors = [error and error.replace(name, paths[name]) for name, error in zip(names, rows["error"].to_pylist())]
    for column, values in ("path", [paths[name] for name in names]), ("error", errors):
        rows = rows.set_column(rows.schema.get_field_index(column), column, pa.array(values, pa.string()))
    return rows


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


def of_table(table, model):
    """The table with the outputs of the exported model as more columns."""
    feed, said = {}, columns(model)
    for i in session(model).get_inputs():
        x = np.stack([pc.cast(table[name], pa.float64()).to_numpy() for name in said[i.name]], axis=1)
        if not np.isfinite(x).all():
            raise ValueError(f"columns {said[i.name]}: a cell is empty or not finite")
        feed[i.name] = x.astype(TYPES[i.type])
    for output, values in zip(session(model).get_outputs(), session(model).run(None, feed)):
        table = table.append_column(output.name, pa.array(list(values) if values.shape[1] > 1 else values[:, 0]))
    return table


def of(table, model, *flags):
    """The rows of pictures for an ensemble, and of a table for an exported model."""
    return of_table(table, model) if model.endswith(".onnx") else of_pictures(table, model, *flags)
