"""What a worker of Spark or Ray does with a batch: an Arrow table goes in, and its rows come out.

Pictures go through the program, so that their pixels and their rows are those of score. Tables of numbers need no pixels: the exported
model stays open.
"""

import functools
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import swagwrap


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
def opened(model):
    """The exported model, opened once for each Python process."""
    import onnxruntime
    return swagwrap.load(model, batch_size=1000, threads=1, providers=onnxruntime.get_available_providers())  # the engine runs a worker for each core


def of_table(table, model):
    """The table with the outputs of the exported model as more columns."""
    for name, values in opened(model).outputs(table).items():
        table = table.append_column(name, pa.array(list(values) if values.shape[1] > 1 else values[:, 0]))
    return table


def of(table, model, *flags):
    """The rows of pictures for an ensemble, and of a table for an exported model."""
    return of_table(table, model) if model.endswith(".onnx") else of_pictures(table, model, *flags)
