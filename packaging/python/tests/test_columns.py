"""Tables: columns by name, whatever holds them, and what is no table for a model."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import swagwrap as sw
import torch
from conftest import swagwrap
from ensembles import COLUMNS, Made

Maker = Callable[[str], Made]


@pytest.mark.parametrize("kind", ["arrow", "record batch", "arrow nulls elsewhere", "decimals", "polars decimals", "arrow dtypes", "sparse", "index", "integers", "text elsewhere", "one row"])
def test_same_rows(made: Maker, kind: str) -> None:
    """No way to hold a table changes its rows. The columns are not in the order of training."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    m = made("table")
    frame = pd.read_csv(m.data).round(2)[["bp", "label", "age", "bmi"]]
    if kind == "integers":
        frame = (100 * frame).round().astype(np.int16)
    data: Any = {
        "arrow": lambda: pa.Table.from_pandas(frame), "record batch": lambda: pa.RecordBatch.from_pandas(frame),
        "arrow nulls elsewhere": lambda: pa.Table.from_pandas(frame.assign(other=[None] * 60)), "decimals": lambda: frame.astype(str).map(Decimal),
        "polars decimals": lambda: pl.from_pandas(frame).cast(pl.Decimal(10, 2)), "arrow dtypes": lambda: frame.convert_dtypes(dtype_backend="pyarrow"), "sparse": lambda: frame.astype(pd.SparseDtype(float)),
        "index": lambda: frame.set_index(np.arange(60)[::-1] % 7), "integers": lambda: frame, "text elsewhere": lambda: frame.assign(name="a"), "one row": lambda: frame.iloc[[0]],
    }[kind]()
    model = sw.load(m.model)
    np.testing.assert_array_equal(model.predict_proba(data), model.predict_proba(frame[COLUMNS].to_numpy())[: len(data)])


def test_names_are_texts(made: Maker) -> None:
    """Columns may have numbers for names."""
    import pandas as pd

    m = made("unnamed")
    want = sw.load(m.model).predict_proba(m.x)
    for columns in ([0, 1, 2], ["0", "1", "2"], pd.RangeIndex(3), {"x": [0, 1, 2]}):
        np.testing.assert_array_equal(sw.load(m.model, columns=columns).predict_proba(pd.DataFrame(m.x)[[2, 0, 1]]), want)


def test_small_numbers(made: Maker) -> None:
    """Arrays of 8 and 16 bits are numbers for a model of numbers."""
    model, x = sw.load(made("unnamed").model), np.arange(30).reshape(10, 3)
    for dtype in (np.uint8, np.int8, np.float16, np.float64, np.int64):
        np.testing.assert_array_equal(model.predict_proba(x.astype(dtype)), model.predict_proba(x.astype(np.float32)))


def test_wanted_columns_keep_their_names() -> None:
    import pandas as pd

    from swagwrap._columns import Table

    with pytest.raises(ValueError, match=r"no columns x10 among x1, x2$"):  # renaming x1 would miss x1
        Table(pd.DataFrame({"x1": [1], "x2": [2]})).check(["x1", "x2", "x10"])


def test_refused(made: Maker) -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import scipy.sparse

    model = sw.load(made("table").model)
    good = pd.DataFrame({"age": [1.0, 2], "bmi": [3, 4], "bp": [5, 6]})
    none: list[float | None] = [None, 1]
    for frame, error, message in (
        (good[[]], ValueError, "no columns age, bmi, bp among "),
        (good[:0], ValueError, "no rows"),
        (good.drop(columns="bmi"), ValueError, "no columns bmi among age, bp"),
        (pd.concat([good, good[["age"]]], axis=1), ValueError, "columns age: found twice"),
        (good.rename(columns={"bmi": "BMI"}), ValueError, r"did you mean 'BMI'\? X.rename\(columns=\{'BMI': 'bmi'\}\)"),
        (good.add_prefix("standardscaler__"), ValueError, "verbose_feature_names_out=False"),
        (pd.DataFrame(good.to_numpy()), ValueError, r"X.to_numpy\(\) takes them in the order of training"),
        (pa.Table.from_pandas(good).drop(["bmi"]), ValueError, "no columns bmi among age, bp"),
        (good.to_dict("list"), ValueError, r"no array x among age, bmi, bp: for columns pandas.DataFrame\(X\)"),
        (good.iloc[0], ValueError, r"of a table X.iloc\[\[0\]\]"),
        (good.assign(bmi=[1, np.nan]), ValueError, 'row 1, column "bmi": nan, want a finite number: fill empty cells, or drop their rows'),
        (good.assign(bmi=["1", "2"]), TypeError, r"row 0, column \"bmi\": '1', want a number, and not a text: convert the column with .astype\(float\)"),
        (pa.table({"age": [1, 2], "bmi": none, "bp": [3, 4]}), ValueError, 'row 0, column "bmi": nan'),
        (pa.table({"age": [1], "bmi": pa.array(["x"]).dictionary_encode(), "bp": [3]}), TypeError, 'column "bmi": dictionary'),
        (good.assign(bmi=pd.Categorical([1, 2])), TypeError, 'column "bmi": category'),
        (good.assign(bmi=pd.to_datetime(["2020", "2021"])), TypeError, 'column "bmi": datetime64'),
        (good.assign(bmi=pd.array(none, dtype="Int64")), ValueError, 'row 0, column "bmi": nan'),
        (pl.DataFrame({"age": [1, 2], "bmi": none, "bp": [3, 4]}), ValueError, 'row 0, column "bmi": nan'),
        (pl.DataFrame({"age": ["x"], "bmi": [1], "bp": [1]}), TypeError, 'column "age": \'x\''),
        (scipy.sparse.csr_matrix(np.eye(3)), TypeError, "a sparse matrix"),
    ):
        with pytest.raises(error, match=message):
            model.predict(frame)
    pd.testing.assert_frame_equal(model.table(good), model.table(good.assign(bmi=np.array([3, 4], dtype=object))))
    # A model without names refuses a table, until someone names the columns.
    unnamed = made("unnamed").model
    with pytest.raises(ValueError, match="does not know the names of its columns: load"):
        sw.load(unnamed).predict(good)
    named = sw.load(unnamed, columns=COLUMNS)
    np.testing.assert_array_equal(named.predict_proba(good[["bp", "bmi", "age"]]), named.predict_proba(good.to_numpy()))
    with pytest.raises(ValueError, match="want a column path"):
        sw.load(made("pictures").model).predict(good)


def test_try_takes_the_columns_of_reference_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test data may have the columns in another order than training."""
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)).astype(np.float32), columns=["age", "bmi", "bp"])
    label = ((2 * table.age - table.bmi) > 0).astype(int)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.tensor(table.values), torch.tensor(label.values)
    Path("run").mkdir()
    for epoch in range(3):
        for _ in range(20):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        torch.save(net.state_dict(), f"run/epoch-{epoch}.pt")
    sw.export(net, x[:16], "run/model.onnx", reference=False)
    sw.reference(net, table.iloc[:16], path="run/swagwrap-reference.npz", weights="epoch-2.pt")
    turned = table[["bp", "bmi", "age"]].assign(label=label)
    turned.to_csv("test.csv", index=False)

    swagwrap("try", "run", "test.csv", "-n", "3", "--methods", "sgd,swa")
    columns = sw.read_posterior("swagwrap-result/posterior.safetensors").card["columns"]
    assert list(columns.values()) == [["age", "bmi", "bp"]]
