#!/bin/sh
# Expected: NaN > 0.5 is false everywhere, so a row whose probability is NaN is never counted as confident.
# Happens: DuckDB and Polars order NaN above all numbers, also in comparisons: the row passes "p > 0.5". pandas and Arrow say false. DuckDB
#   gives other answers where it need not look: it reads the NaN of a pandas table as NULL, and a Parquet file whose largest stored
#   number is 0.9 has no row above 0.95 by the file's statistics, which leave NaN out. So "p > 0.5" counts the row and "p > 0.95" does not.
# Versions: duckdb 2.0.1, polars 2.1.0, pandas 3.1.1, pyarrow 26.0.1.
# Matters: coverage and accuracy above a threshold of confidence count broken rows as the surest ones.
# Source: the order is documented by both; that tables, files and thresholds differ was seen by running.
. "$(dirname "$0")/lib.sh"
packages duckdb==2.0.1 polars==2.1.0 pandas==3.1.1 pyarrow==26.0.1 numpy==2.4.6
check <<'END'
from seen import seen, versions
import duckdb, pandas as pd, polars as pl, pyarrow.compute as pc, pyarrow.parquet as pq

versions("duckdb", "polars", "pandas", "pyarrow")
values = [.1, float("nan"), .9]
pl.DataFrame({"p": values}).write_parquet("scores.parquet")
table = pd.DataFrame({"p": values})
polars, duck = pl.read_parquet("scores.parquet"), duckdb.read_parquet("scores.parquet")
arrow = pq.read_table("scores.parquet")["p"]
count = lambda relation, bound: relation.filter(f"p > {bound}").aggregate("count(*)").fetchall()[0][0]
for bound, above in ((.5, 1), (.95, 0)):
    seen(f"p > {bound}: Polars", polars.filter(pl.col("p") > bound).height, lambda n: n == above + 1)
    seen(f"p > {bound}: DuckDB, the file", count(duck, bound), lambda n: n == (2 if bound == .5 else 0))
    seen(f"p > {bound}: DuckDB, the pandas table", count(duckdb.from_df(table), bound), lambda n: n == above)
    others = int((table.p > bound).sum()), pc.sum(pc.greater(arrow, bound)).as_py()
    seen(f"p > {bound}: pandas, Arrow", others, others == (above, above))
means = [r.aggregate("avg(p)").fetchall()[0][0] for r in (duck, duckdb.from_df(table))]
seen("mean: DuckDB, the file and the pandas table", means, lambda m: m[0] != m[0] and m[1] == .5)
END
