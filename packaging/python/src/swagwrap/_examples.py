"""Examples out of a dataset: what the network takes, and what the loader made it of."""

from __future__ import annotations

import bisect
import inspect
import io
import itertools
import json
import math
import os
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._later import np

if TYPE_CHECKING:
    import torch

LABELS = ("labels", "label", "label_ids", "target", "targets", "y")


@dataclass
class Examples:
    inputs: dict[str, torch.Tensor]  # by the name of the parameter of forward, or inputs.0 and so on
    labels: np.ndarray | None = None
    class_names: list[str] | None = None
    raw: list[bytes] | None = None
    repeatable: bool = True  # the dataset yields the same inputs each time


def examples(dataset: Any, n: int, model: torch.nn.Module, raw: Any) -> Examples:
    """Some examples from all over a dataset. `raw` is whether to keep raw ones, or the raw ones of the whole dataset."""
    with same_generators():
        loader = _loader(dataset)
        source = loader.dataset if loader is not None else dataset
        at: list[int] | None = None
        batch = _batch(source)
        if batch is not None:
            at = spread(_length(batch), n)
            found = _of_network(_rows(batch, at), model)
        elif _is_table(source):
            at = spread(len(source), n)
            found = _of_table(_dicts(source, at))
        else:
            found, at = _of_items(source, loader, n, model)
        if not found.inputs:
            raise TypeError(f"dataset: {type(dataset).__name__} yields no tensors of one shape: give the dataset that the loader reads, or a batch")
        if at is None:
            return found
        found.class_names = _class_names(source)
        if raw is False or not found.repeatable:
            found.raw = None
        elif raw is not True:
            count = len(source) if batch is None else _length(batch)
            if len(raw) != count:
                raise ValueError(f"raw: {len(raw)} examples, and {count} in the dataset")
            found.raw = _dump(_dicts(raw, at) if _is_table(raw) else [raw[i] for i in at])
            if found.raw is None:
                raise TypeError(f"raw: items of {type(raw[at[0]]).__name__}, want rows, texts, bytes, or paths and pictures")
        elif found.raw is None:
            found.raw = _raw(source, at)
    return found


def spread(count: int, n: int) -> list[int]:
    return [i * count // min(n, count) for i in range(min(n, count))]


@contextmanager
def same_generators() -> Iterator[None]:
    """What is random in here does not change what is random afterwards."""
    import torch

    python, numbers = random.getstate(), np.random.get_state()
    started: Callable[[], bool] = torch.cuda.is_initialized
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if started() else []):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numbers)


def _loader(dataset: Any) -> Any:
    """The loader that was given, or that of a LightningDataModule. None for a dataset."""
    if all(hasattr(dataset, k) for k in ("prepare_data", "setup", "val_dataloader")):
        for ready in (True, False):
            if not ready:
                dataset.prepare_data()
                dataset.setup("validate")
            for name in ("val_dataloader", "test_dataloader", "train_dataloader"):
                try:
                    found = getattr(dataset, name)()
                except Exception:  # not there, or not set up
                    continue
                while isinstance(found, (list, tuple)) and found:
                    found = found[0]
                if hasattr(found, "dataset"):
                    return found
        raise TypeError(f"dataset: {type(dataset).__name__} has no loader of validation, test or training data")
    return dataset if hasattr(dataset, "dataset") and (hasattr(dataset, "collate_fn") or hasattr(dataset, "loader")) else None


def _of_items(source: Any, loader: Any, n: int, model: torch.nn.Module) -> tuple[Examples, list[int] | None]:
    """What a dataset yields. The places are None where it has no order."""
    if not (hasattr(source, "__getitem__") and hasattr(source, "__len__")):
        if loader is None:
            return _of_network(_columns(list(itertools.islice(source, n))), model), None
        batch = next(iter(loader))
        return _of_network(_rows(batch, list(range(min(n, _length(batch))))), model), None
    at = spread(len(source), n)

    def read() -> Examples:
        items = [source[i] for i in at]
        inner = loader
        while inner is not None and not hasattr(inner, "collate_fn"):
            inner = inner.loader
        collate = getattr(inner, "collate_fn", None) if inner is not None and inner.batch_sampler is not None else None
        found = _of_network(collate(items) if collate else _columns(items), model)
        if inner is not loader:  # timm's loader normalises after the dataset
            found.inputs = {k: (v.float() - loader.mean.cpu().float()) / loader.std.cpu().float() for k, v in found.inputs.items()}
        return found

    found, again = read(), read()
    if any(not _same(v, again.inputs[k]) for k, v in found.inputs.items()):
        warnings.warn(
            "swagwrap: the dataset yields other inputs each time, as in training. The raw examples are left out: nothing can make the "
            "same inputs of them. Give the dataset with the transforms of evaluation", stacklevel=4,
        )
        found.repeatable = False
    return found, at


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(np.array_equal(a.numpy(), b.numpy(), equal_nan=a.is_floating_point()))


# Batches, items and rows as columns: a mapping or list of tensors, and None for what is no number.


def _is_array(v: Any) -> bool:
    import torch

    return isinstance(v, (np.ndarray, torch.Tensor))


def _batch(v: Any) -> Any:
    """A batch as a loader or tokeniser gives it, or None."""
    if _is_array(v):
        return [v]
    if isinstance(v, Mapping):
        if not v or not all(_is_array(x) or isinstance(x, (list, tuple)) for x in v.values()):
            raise TypeError(f"dataset: {type(v).__name__} with {list(v)}: give one of these")
        return v
    if isinstance(v, (tuple, list)) and len(v) > 1 and all(_is_array(x) and x.ndim > 0 for x in v):
        if len({len(x) for x in v}) == 1 and (isinstance(v, tuple) or v[-1].ndim < v[0].ndim):
            return v
    return None


def _length(batch: Any) -> int:
    if isinstance(batch, Mapping):
        return len(next(iter(batch.values())))
    return _length(batch[0]) if isinstance(batch, (tuple, list)) else len(batch)


def _rows(batch: Any, at: list[int]) -> Any:
    if isinstance(batch, Mapping):
        return {k: _stacked([v[i] for i in at]) for k, v in batch.items()}
    if isinstance(batch, (tuple, list)):
        return [_rows(v, at) if _is_array(v) or isinstance(v, (Mapping, tuple, list)) else None for v in batch]
    return _stacked([batch[i] for i in at])


def _columns(items: list[Any]) -> Any:
    first = items[0]
    if isinstance(first, Mapping):
        return {k: _columns([item[k] for item in items]) for k in first}
    if isinstance(first, tuple) or isinstance(first, list) and any(_is_array(v) or isinstance(v, Mapping) for v in first):
        return [_columns([item[k] for item in items]) for k in range(len(first))]
    return _stacked(items)


def _stacked(values: list[Any]) -> torch.Tensor | None:
    import torch

    tensors = []
    for v in values:
        if not isinstance(v, torch.Tensor):
            if hasattr(v, "save") or isinstance(v, (str, bytes)) or v is None:
                return None
            try:
                a = np.asarray(v)
            except ValueError:
                return None
            if a.dtype.kind not in "biuf":
                return None
            v = torch.from_numpy(np.array(a))  # a copy, which may be written to
        tensors.append(v.detach().cpu())
    if len({t.shape for t in tensors}) > 1:
        raise ValueError(
            f"dataset: examples have shapes {tuple(tensors[0].shape)} and {next(tuple(t.shape) for t in tensors if t.shape != tensors[0].shape)}: "
            "give the loader whose collate_fn makes a batch of them, or a batch"
        )
    return torch.stack(tensors)


def _of_network(columns: Any, model: torch.nn.Module) -> Examples:
    """Which columns the network takes, by the parameters of its forward method, and which are labels."""
    names, most = _parameters(model)
    if not isinstance(columns, Mapping):
        columns = list(columns) if isinstance(columns, (list, tuple)) else [columns]
    label = None
    if isinstance(columns, list):
        if len(columns) > 1:
            columns, label = columns[:-1], columns[-1]
            if isinstance(columns[0], (list, tuple, Mapping)):
                columns = columns[0] if isinstance(columns[0], Mapping) else list(columns[0])
            if isinstance(columns, list) and most is not None and most < len(columns):  # such as (x, y, index)
                columns, label = columns[:most], columns[most]
    inputs: dict[str, Any]
    if isinstance(columns, Mapping):
        tensors = {k: v for k, v in columns.items() if k not in LABELS and _is_array(v)}
        inputs = {k: v for k, v in tensors.items() if k in names} or tensors
        if len(inputs) == 1 and not inputs.keys() & set(names[1:]):  # the graph may have another name for it
            inputs = {"inputs.0": v for v in inputs.values()}
        label = next((columns[k] for k in LABELS if k in columns), label)
    else:
        inputs = {f"inputs.{k}": v for k, v in enumerate(columns) if _is_array(v)}
    return Examples({k: _single(v, model) for k, v in inputs.items()}, _classes(label))


def _parameters(model: torch.nn.Module) -> tuple[list[str], int | None]:
    """The names of the parameters of forward, and how many it takes by place. None: any number."""
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return [], None
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in by_place if p.default is p.empty]
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):
        return [p.name for p in by_place], None
    return [p.name for p in by_place], max(1, len(needed) or len(by_place))


def _single(v: torch.Tensor, model: torch.nn.Module) -> torch.Tensor:
    """NumPy's and pandas' numbers are of double precision, and few networks are."""
    import torch

    v = v.detach().cpu()
    double = v.dtype == torch.float64 and not any(p.dtype == torch.float64 for p in model.parameters())
    return v.float() if double else v


def _classes(label: Any) -> np.ndarray | None:
    """Class numbers, one an example."""
    import torch

    if isinstance(label, torch.Tensor) and label.ndim == 1 and not label.is_floating_point():
        return label.numpy().astype(np.int64)
    return None


# Tables


def _is_table(v: Any) -> bool:
    return type(v).__module__.split(".")[0] in ("pandas", "polars") and hasattr(v, "columns")


def _dicts(table: Any, at: list[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table[at].to_dicts() if hasattr(table, "to_dicts") else table.iloc[at].to_dict("records")
    return rows


def _of_table(rows: list[dict[str, Any]]) -> Examples:
    import torch

    columns = [c for c in rows[0] if c not in LABELS]
    texts = [c for c in columns if any(not isinstance(r[c], (int, float, np.number, np.bool_)) for r in rows)]
    if texts:
        raise TypeError(f"dataset: no numbers in {texts}: give the dataset of the tensors that the network takes, and these rows as raw=rows")
    label = next(([r[c] for r in rows] for c in LABELS if c in rows[0]), None)
    values = torch.tensor([[float(r[c]) for c in columns] for r in rows], dtype=torch.float32)
    return Examples({"inputs.0": values}, None if label is None else _classes(_stacked(label)), raw=_dump(rows))


# Raw examples: what `swagwrap score` would read.


def _raw(dataset: Any, at: list[int]) -> list[bytes] | None:
    """Files of pictures, texts or rows, before any transform. None where the dataset does not show them."""
    try:
        return _dump([_one(dataset, i) for i in at])
    except Exception:  # they are not needed
        return None


def _one(dataset: Any, i: int) -> Any:
    if hasattr(dataset, "indices") and hasattr(dataset, "dataset"):
        return _one(dataset.dataset, int(dataset.indices[i]))
    if hasattr(dataset, "cumulative_sizes") and hasattr(dataset, "datasets"):
        part = bisect.bisect_right(dataset.cumulative_sizes, i)
        return _one(dataset.datasets[part], i - (dataset.cumulative_sizes[part - 1] if part else 0))
    samples = getattr(dataset, "samples", None) or getattr(dataset, "imgs", None)
    if samples is not None:
        return Path(samples[i][0])
    if hasattr(dataset, "reader"):  # of timm
        return dataset.reader[i][0].read()
    if hasattr(dataset, "with_format") and hasattr(dataset, "features"):  # of Hugging Face
        return _row(dataset, i)
    with _untransformed(dataset):
        item = dataset[i]
    return item[0] if isinstance(item, (tuple, list)) else item


def _row(dataset: Any, i: int) -> Any:
    """The picture's file, the only text, or the columns that are no lists."""
    plain = dataset.with_format(None)
    pictures = [k for k, f in dataset.features.items() if type(f).__name__ == "Image"]
    if pictures:
        from datasets import Image

        stored = plain.select_columns(pictures[:1]).cast_column(pictures[0], Image(decode=False))[i][pictures[0]]
        return stored["bytes"] if stored["bytes"] is not None else Path(stored["path"])
    row = {k: v for k, v in plain[i].items() if not isinstance(v, (list, dict))}
    texts = [v for v in row.values() if isinstance(v, str)]
    return texts[0] if len(texts) == 1 else row


def _dump(items: list[Any]) -> list[bytes] | None:
    """Raw examples as bytes, or None if one is of no known kind."""
    out = []
    for item in items:
        if isinstance(item, bytes):
            out.append(item)
        elif isinstance(item, str):
            out.append(item.encode())
        elif isinstance(item, os.PathLike):
            out.append(Path(item).read_bytes())
        elif isinstance(item, Mapping):
            out.append(json.dumps({str(k): _cell(v) for k, v in item.items()}).encode())
        elif hasattr(item, "save"):  # of Pillow
            b = io.BytesIO()
            item.save(b, "PNG")
            out.append(b.getvalue())
        else:
            return None
    return out


def _cell(v: Any) -> Any:
    """A cell of a table in JSON. An empty one is null."""
    v = v.item() if isinstance(v, np.generic) else v
    if v is None or isinstance(v, float) and not math.isfinite(v):
        return None
    return v if isinstance(v, (bool, int, float, str)) else str(v)


@contextmanager
def _untransformed(dataset: Any) -> Iterator[None]:
    names = [k for k in ("transform", "transforms") if hasattr(dataset, k)]
    if not names:
        raise TypeError
    was = {k: getattr(dataset, k) for k in names}
    try:
        for k in names:
            setattr(dataset, k, None)
        yield
    finally:
        for k, v in was.items():
            setattr(dataset, k, v)


def _class_names(dataset: Any) -> list[str] | None:
    """The names in the order of the class numbers, if nothing changes the numbers."""
    while hasattr(dataset, "indices") and hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    if getattr(dataset, "target_transform", None) is not None:
        return None
    names = getattr(dataset, "classes", None)
    numbers = getattr(getattr(dataset, "reader", None), "class_to_idx", None)
    if names is None and isinstance(numbers, Mapping) and sorted(numbers.values()) == list(range(len(numbers))):
        names = sorted(numbers, key=lambda k: numbers[k])
    features = getattr(dataset, "features", None)
    if names is None and isinstance(features, Mapping):
        classes = [(k not in LABELS, f.names) for k, f in features.items() if getattr(f, "names", None)]
        names = min(classes, key=lambda c: c[0])[1] if classes and (len(classes) == 1 or not min(classes, key=lambda c: c[0])[0]) else None
    return [str(c) for c in names] if isinstance(names, Sequence) and not isinstance(names, str) else None
