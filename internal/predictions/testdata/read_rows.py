#!/usr/bin/env python3
"""How others read the rows that score writes: rows.parquet and rows.npz as JSON, in rows.json.

    go test ./internal/predictions -run TestFormats -update     writes the files anew
    python internal/predictions/testdata/read_rows.py           with pyarrow 26 and NumPy 2
"""

import json
import math
import pathlib

import numpy as np
import pyarrow.parquet

HERE = pathlib.Path(__file__).resolve().parent


def plain(v):
    """Lists and numbers, with a word for NaN."""
    if isinstance(v, list):
        return [plain(x) for x in v]
    return "nan" if isinstance(v, float) and math.isnan(v) else v


table = pyarrow.parquet.read_table(HERE / "rows.parquet")
with np.load(HERE / "rows.npz", allow_pickle=False) as f:
    arrays = {k: f[k].tolist() for k in f.files}
out = {
    "parquet": {name: plain(table[name].to_pylist()) for name in table.column_names},
    "npz": {name: plain(v) for name, v in arrays.items()},
    "schema": {name: str(table.schema.field(name).type) for name in table.column_names},
}
(HERE / "rows.json").write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n")
