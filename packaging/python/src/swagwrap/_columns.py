"""Tables of pandas, Polars and Arrow: their columns, by name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NO_NUMBERS = ("date", "time", "duration", "dictionary", "category", "categorical", "enum")


def is_table(X: Any) -> bool:
    """Whether X has columns with names."""
    return hasattr(type(X), "column_names") or hasattr(type(X), "columns") and hasattr(X, "__getitem__")


class Table:
    """The columns of a table by name. Names are texts, as in the model."""

    def __init__(self, X: Any) -> None:
        if hasattr(X, "compute"):
            raise TypeError(f"{type(X).__name__} of {type(X).__module__.split('.')[0]}, want X.compute()")
        if hasattr(X, "collect"):  # polars, lazy
            X = X.collect()
        arrow = hasattr(X, "column_names")
        self.names = [str(c) for c in (X.column_names if arrow else X.columns)]
        self.rows = len(X)
        """The number of rows."""
        self._at = [X.column(i) for i in range(len(self.names))] if arrow else None
        self._of = {str(c): c for c in X.columns}
        self._table = X

    def __getitem__(self, name: str) -> Any:
        if self._at is not None:
            return self._at[self.names.index(name)]
        return self._table[self._of[name]]

    def values(self, name: str) -> list[Any]:
        """A column's values."""
        column = self[name]
        values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
        return values

    def lists(self, name: str) -> bool:
        """Whether a column holds lists."""
        first = next(iter(self.values(name)[:1]), None)
        return isinstance(first, (list, tuple)) or getattr(first, "ndim", 0) > 0

    def check(self, wanted: Sequence[str]) -> None:
        """Raises ValueError if a column is missing, or there twice."""
        if twice := [c for c in wanted if self.names.count(c) > 1]:
            raise ValueError(f"columns {some(twice)}: found twice")
        if missing := [c for c in wanted if c not in self.names]:
            raise ValueError(f"no columns {some(missing)} among {some(self.names)}{self._remedy(missing, wanted)}")

    def _remedy(self, missing: Sequence[str], wanted: Sequence[str]) -> str:
        """What to do about missing columns, if their names are there in another form."""
        if all(any(have.endswith("__" + c) for have in self.names) for c in missing):
            return ": ColumnTransformer(..., verbose_feature_names_out=False) keeps the names"
        if all(c.isdigit() for c in self.names):
            return ": the table has numbers for names. X.columns = [...] names them, and X.to_numpy() takes them in the order of training"
        lower = {have.lower(): have for have in self.names if have not in wanted}  # a wanted column keeps its name
        for c in missing:
            if near := difflib.get_close_matches(c.lower(), lower, n=1):
                return f": did you mean {lower[near[0]]!r}? X.rename(columns={{{lower[near[0]]!r}: {c!r}}})"
        return ""

    def numbers(self, name: str) -> NDArray[Any]:
        """A column of numbers. An empty cell is NaN."""
        import numpy as np

        column = self[name]
        kind = getattr(column, "dtype", None) if hasattr(column, "dtype") else column.type
        if str(kind).lower().startswith(_NO_NUMBERS):
            raise TypeError(f'column "{name}": {kind}, want numbers')
        values = column.to_numpy(zero_copy_only=False) if hasattr(column, "to_pylist") else column.to_numpy()
        if values.dtype.kind in "biuf":
            return np.asarray(values, dtype=np.float64 if values.dtype.kind == "b" else None)
        return np.array([_number(v, f'row {i}, column "{name}"') for i, v in enumerate(values.tolist())], dtype=np.float64)


def _number(v: Any, where: str) -> float:
    if v is None or v.__class__.__name__ == "NAType":
        return math.nan
    if isinstance(v, (int, float, Decimal)) or hasattr(v, "dtype") and getattr(v, "ndim", 1) == 0:
        return float(v)
    text = ", and not a text: convert the column with .astype(float), of Polars .cast(float)" if isinstance(v, str) else ""
    raise TypeError(f"{where}: {str(v)[:40]!r}, want a number{text}")


def named(columns: Any, inputs: Mapping[str, int | None]) -> dict[str, list[str]] | None:
    """The argument `columns` of load: the names for each input. `inputs` has the number of each one's columns, if the model says it."""
    if columns is None:
        return None
    if isinstance(columns, (str, bytes)):
        raise TypeError(f'columns: {columns!r}, want a list such as ["age", "bmi"]')
    if not isinstance(columns, Mapping):
        if len(inputs) > 1:
            raise ValueError(f"columns: a list, want a dict with a list for each of {', '.join(inputs)}")
        columns = {next(iter(inputs)): columns}
    out = {str(i): [str(c) for c in names] for i, names in columns.items()}
    if unknown := [i for i in out if i not in inputs]:
        raise ValueError(f"columns: no input {', '.join(unknown)}, the model has {', '.join(inputs)}")
    for i, names in out.items():
        if inputs[i] is not None and len(names) != inputs[i]:
            raise ValueError(f"columns: {len(names)} names, want {inputs[i]}, as the input {i} takes")
    return out


def some(names: Sequence[str]) -> str:
    """Some names, for messages."""
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
