#!/usr/bin/env python3
"""Tables as pandas and PyArrow write them, and what PyArrow says is in them.

    python make.py        with pyarrow 26

good.parquet has columns that can be read, in row groups of 3; golden.json has their values by PyArrow. bad.parquet has
columns that cannot. half.parquet has float16, whose values table_test.go lists.
"""

import datetime
import decimal
import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).resolve().parent
good = pa.table({
    "whole": pa.array([0, -1, 1 << 62, 16777217, 5, -(1 << 63), (1 << 63) - 1]),
    "small": pa.array([1, -2, 3, 4, 5, 6, 7], pa.int8()),
    "unsigned": pa.array([0, (1 << 32) - 1, 2, 3, 4, 5, 6], pa.uint32()),
    "yes": pa.array([True, False, True, True, False, False, True]),
    "single": pa.array([0.1, -1e30, 3, 4, 5, 6, 7], pa.float32()),
    "double": pa.array([0.1, 1e-300, -3.5, 4, 5, 6, 7]),
    "none missing": pa.array([0.5, 1, 2, 3, 4, 5, 6]),
    "ids": pa.array([[1, 2, 3], [4], [], [5, 6], [7], [], [8, 9, 10, 11]]),
    "three": pa.array([[i / 3, i, -i] for i in range(7)], pa.list_(pa.float32(), 3)),
    "steps": pa.array([[[1.5, 2]], [[3, 4], [5, 6]], [], [[7, 8]], [[9, 10], [11, 12], [13, 14]], [[15, 16]], []]),
    "time": pa.array([datetime.datetime(2020, 1, d + 1) for d in range(7)], pa.timestamp("ms")),
    "word": pa.array(["a", "b", None, "", "a", "ü", "=1"]).dictionary_encode(),
    "class": pa.array([2, None, 0, 1, 2, 0, 1]),
    "target": pa.array([0.1, 1 / 3, float("nan"), None, 1e300, -0.0, 2], pa.float64()),
    "marks": pa.array([[1, 0], [0, 1], [1, 1], [0, 0], [None, 1], [], None], pa.list_(pa.int64())),
})
pq.write_table(good, HERE / "good.parquet", row_group_size=3)
read = pq.read_table(HERE / "good.parquet")
numbers = [n for n in good.column_names if n not in ("word", "class", "target", "marks", "time")]
golden = {n: read[n].to_pylist() for n in numbers}
(HERE / "golden.json").write_text(json.dumps(golden, indent=1))
bad = pa.table({
    "null": pa.array([1, 2, None]),
    "nan": pa.array([1.0, float("nan"), 2.0]),
    "null list": pa.array([[1], None, [2]]),
    "null in a list": pa.array([[1], [1, None], [2]]),
    "empty in a list": pa.array([[[1]], [[1], []], [[2]]]),
    "other widths": pa.array([[[1, 2]], [[1, 2], [3]], [[2, 3]]]),
    "large": pa.array([1, 1 << 63, 2], pa.uint64()),
    "decimal": pa.array([decimal.Decimal("1.5")] * 3),  # kinds.py has those that are read
    "text": pa.array(["1", "2", "3"]),
    "fields": pa.array([{"a": 1, "b": 2}] * 3),
})
pq.write_table(pa.table({"half": pa.array([0.5, -2, 65504, 6e-8], pa.float16()), "list": pa.array([[0.25], [], [1, 2], [0.1]], pa.list_(pa.float16()))}), HERE / "half.parquet")
pq.write_table(bad, HERE / "bad.parquet")
pq.write_table(pa.table({"x": pa.array([], pa.int64())}), HERE / "empty.parquet")
pq.write_table(pa.table({"x": pa.array([0] * 9_000_000, pa.int8())}), HERE / "bomb.parquet", compression="zstd")
