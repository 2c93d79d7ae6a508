"""Tables for people: of pandas if that is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any


def table(columns: Mapping[str, Sequence[Any] | Any]) -> Any:
    """A DataFrame of pandas, or a list of dicts."""
    if importlib.util.find_spec("pandas"):
        import pandas

        return pandas.DataFrame({name: list(v) if getattr(v, "ndim", 1) > 1 else v for name, v in columns.items()})
    values = [v.tolist() if hasattr(v, "tolist") else list(v) for v in columns.values()]
    return [dict(zip(columns, row)) for row in zip(*values)]
