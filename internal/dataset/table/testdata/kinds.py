#!/usr/bin/env python3
"""Decimals, times and categories as PyArrow, pandas and Polars write them, and LZ4.

    python kinds.py        with pyarrow 26, pandas 3, polars 1

kinds.json has the decimals as float() of Python's Decimal reads them, and the texts of the times.
"""

import datetime as dt
import decimal
import json
import pathlib

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).resolve().parent
D = decimal.Decimal
decimals = {
    "int32": (["2.00", "-0.05", "1234567.89", "0.00"], pa.decimal32(9, 2)),
    "int64": (["0.1", "-123456789012345.6", "7", "-0.1"], pa.decimal64(16, 1)),
    "fixed": (["0.3333333333333333333333333333", "-1", "123456789.5", "0"], pa.decimal128(38, 28)),
    "wide": (["-1701411834604692317316873037158841057.25", "1e-2", "3", "-3"], pa.decimal256(60, 2)),
    "whole": (["9007199254740993", "-5", "0", "1"], pa.decimal128(20, 0)),
}
columns = {k: pa.array([D(v).quantize(D(1).scaleb(-t.scale), context=decimal.Context(prec=80)) for v in vs], t) for k, (vs, t) in decimals.items()}
columns["list"] = pa.array([[D("1.50")], [D("-2.25"), D("3.00")], [D("0.10")], [D("4.00")]], pa.list_(pa.decimal128(9, 2)))
golden = {k: [float(v) for v in c.to_pylist()] for k, c in columns.items() if k != "list"}
golden["list"] = [[float(x) for x in v] for v in columns["list"].to_pylist()]
when = [dt.datetime(2026, 11, 28, 19, 40, 1, 250000), dt.datetime(1969, 12, 31, 23, 59, 59, 500000), dt.datetime(1970, 1, 1), dt.datetime(2000, 2, 29, 1)]
times = {
    "s": pa.array([w.replace(microsecond=0) for w in when], pa.timestamp("s")),
    "ms": pa.array(when, pa.timestamp("ms")),
    "us": pa.array(when, pa.timestamp("us")),
    "ns": pa.array(when, pa.timestamp("ns")),
    "tz": pa.array([w.replace(tzinfo=dt.timezone.utc) for w in when], pa.timestamp("us", tz="Europe/Zurich")),
    "date32": pa.array([w.date() for w in when], pa.date32()),
    "date64": pa.array([w.date() for w in when], pa.date64()),
    "time32": pa.array([w.time() for w in when], pa.time32("ms")),
    "time64": pa.array([w.time() for w in when], pa.time64("ns")),
    "duration": pa.array([dt.timedelta(seconds=s) for s in (1, 2, 3, 4)], pa.duration("ms")),
    "durations": pa.array([[dt.timedelta(seconds=s)] for s in (1, 2, 3, 4)], pa.list_(pa.duration("us"))),
}
columns.update(times)
pq.write_table(pa.table(columns), HERE / "kinds.parquet", compression="zstd")
pq.write_table(pa.table({"int96": times["ns"]}), HERE / "int96.parquet", use_deprecated_int96_timestamps=True)
texts = {k: [("%s" % w.strftime("%Y-%m-%dT%H:%M:%S")) + ((".%06d" % w.microsecond).rstrip("0") if w.microsecond and k != "s" else "") for w in when] for k in ("s", "ms", "us", "ns", "tz")}
texts["date32"] = texts["date64"] = [w.date().isoformat() for w in when]
(HERE / "kinds.json").write_text(json.dumps({"decimals": golden, "texts": texts}, indent=1) + "\n")

frame = pd.DataFrame({
    "chosen": pd.Categorical(["lo", "hi", "lo", "mid"], categories=["mid", "lo", "hi", "never"]),
    "sorted": pd.Categorical(["lo", "hi", "lo", "mid"]),
    "plain": ["lo", "hi", "lo", "mid"],
})
frame.to_parquet(HERE / "pandas.parquet", index=False, row_group_size=2)
pl.DataFrame({
    "enum": pl.Series(["lo", "hi", "lo", "mid"], dtype=pl.Enum(["mid", "lo", "hi", "never"])),
    "occurring": pl.Series(["lo", "hi", "lo", "mid"], dtype=pl.Categorical),
}).write_parquet(HERE / "polars.parquet")
pq.write_table(pa.table({"x": pa.array([i * 0.37 for i in range(200)])}), HERE / "lz4.parquet", compression="lz4", use_dictionary=False)
pq.write_table(pa.table({"yes": pa.array([i % 20 > 9 for i in range(100)])}), HERE / "runs.parquet", data_page_version="2.0")
pq.write_table(pa.table({"yes": pa.array([None if i % 7 == 0 else i % 20 > 9 for i in range(100)])}), HERE / "plain.parquet")
