"""Reference outputs: what the network gives for a few examples where it was trained. `swagwrap fit` holds the graph against them."""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._files import new_files

if TYPE_CHECKING:
    import torch

NAME = "swagwrap-reference.npz"
EXAMPLES = 16
MOST = 2_000_000  # bytes of a file

Inputs = dict[str, "torch.Tensor"]


def reference(
    model: torch.nn.Module,
    dataset: Any,
    n: int = EXAMPLES,
    *,
    path: str | os.PathLike[str] = NAME,
    weights: str | os.PathLike[str] | None = None,
    raw: bool = True,
    inputs: str = "examples",
    max_bytes: int = MOST,
    overwrite: bool = False,
) -> Path:
    """Writes what the network gives for `n` examples: `swagwrap fit` holds the exported graph against it.

    >>> model.load_state_dict(torch.load("checkpoints/epoch-19.pt"))
    >>> swagwrap.reference(model, dataset, path="checkpoints/swagwrap-reference.npz", weights="epoch-19.pt")

    `dataset` is a dataset of torchvision, timm or Hugging Face, rows of pandas, tokenised texts, or a batch of inputs. `weights` is the
    file with the weights that the model has now; without it the outputs may be of any checkpoint, or of the graph. The examples are from
    all over the dataset.

    The file is private data. It has the inputs of the network, labels, and what the loader made them from: pictures, texts, rows.
    `raw=False` leaves the raw examples out. `inputs="synthetic"` takes random numbers in the range of the examples instead, and no example.

    The network computes in evaluation mode on the processor, in float32, without autocast. Its device, type and mode stay as they are.
    A file has at most `max_bytes`; with larger examples it has fewer. Returns the path.

    Raises `FileExistsError` if `path` is there, unless `overwrite` says that it is replaced.
    """
    if inputs not in ("examples", "synthetic"):
        raise ValueError(f'inputs {inputs!r}, want "examples" or "synthetic"')
    if n < 1:
        raise ValueError(f"n {n}, want at least one example")
    path = Path(path)
    found = _examples(dataset, n, raw=raw and inputs == "examples")
    arrays, labels, names = found.inputs, found.labels, found.class_names
    if inputs == "synthetic":
        arrays, labels = {k: _synthetic(v) for k, v in arrays.items()}, None
    file = File(model, arrays, synthetic=inputs == "synthetic")
    file.add(model, None if weights is None else Path(weights).name)
    file.labels, file.class_names, file.raw = labels, names, found.raw
    file.write(path, max_bytes, overwrite=overwrite)
    return path


class File:
    """Inputs, and the outputs of one network after another with them."""

    def __init__(self, model: torch.nn.Module, inputs: Inputs, *, synthetic: bool = False) -> None:
        self.inputs = {k: v.detach().cpu() for k, v in inputs.items()}
        self.synthetic = synthetic
        self.weights: list[str | None] = []
        self.rows: list[list[np.ndarray]] = []  # by network and output
        self.about: dict[str, Any] = {}
        self.labels: np.ndarray | None = None
        self.class_names: list[str] | None = None
        self.raw: list[bytes] | None = None

    def add(self, model: torch.nn.Module, weights: str | None) -> None:
        """Adds the outputs of the model as it is, which has the weights of that file."""
        outputs, self.about = compute(model, self.inputs)
        if weights in self.weights:
            at = self.weights.index(weights)
            del self.weights[at], self.rows[at]
        self.weights.append(weights)
        self.rows.append(outputs)

    def arrays(self, n: int, raw: bool, first: int = 0) -> dict[str, Any]:
        """The arrays of the file, with n examples and the rows from the first on."""
        out: dict[str, Any] = {k: v[:n].numpy() for k, v in self.inputs.items()}
        rows = [[o[:n] for o in row] for row in self.rows[first:]]
        names = self.weights[first:]
        for k in range(len(rows[0])):
            out[f"outputs.{k}"] = np.stack([row[k] for row in rows]) if names != [None] else rows[0][k]
        if names != [None]:
            out["weights"] = np.array([name or "" for name in names])
        about = {**self.about, "inputs": "synthetic"} if self.synthetic else self.about
        more: dict[str, Any] = {"about": json.dumps(about)}
        if self.labels is not None:
            more["labels"] = self.labels[:n]
        if self.class_names:
            more["class_names"] = np.array(self.class_names)
        if raw and self.raw:
            some = self.raw[:n]
            more["raw"], more["raw_sizes"] = np.frombuffer(b"".join(some), np.uint8), np.array([len(b) for b in some])
        for key, value in more.items():
            out[key if key not in out else f"reference.{key}"] = value
        return out

    def write(self, path: Path, max_bytes: int = MOST, *, overwrite: bool = False) -> bool:
        """Writes as much as there is room for. The newest outputs stay longest, and raw examples are the first to go."""
        n, raw, first = len(next(iter(self.inputs.values()))), True, 0
        while True:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **self.arrays(n, raw, first))
            if buffer.tell() <= max_bytes:
                break
            if raw and self.raw:
                raw = False
            elif n > 2:
                n = max(2, n // 2)
            elif first + 1 < len(self.rows):
                first += 1
            elif n > 1:
                n = 1
            else:
                warnings.warn(f"swagwrap: one example with its outputs has more than {max_bytes} bytes: {path} is not written", stacklevel=3)
                return False
        with new_files(path.parent, overwrite=overwrite) as work:
            (work / path.name).write_bytes(buffer.getvalue())
        return True

    def goes_on_from(self, path: Path, files: Callable[[str], bool]) -> None:
        """Takes the outputs of earlier files of the same run, which had the same inputs."""
        try:
            with np.load(path) as old:
                if any(k not in old or not np.array_equal(old[k], v.numpy()) for k, v in self.inputs.items()):
                    return
                names = [str(w) for w in old["weights"]]
                outputs = [old[k] for k in sorted((k for k in old if k.startswith("outputs.")), key=lambda k: int(k.split(".")[1]))]
        except (OSError, ValueError, KeyError, TypeError):
            return
        for i, name in enumerate(names):
            if files(name):
                self.weights.append(name)
                self.rows.append([o[i] for o in outputs])


def beside_graph(model: torch.nn.Module, example: torch.Tensor, graph: Path, folder: Path) -> None:
    """Writes the outputs of an exported network into a folder, unless the graph's own has a file of another one."""
    old = graph.parent / NAME
    try:
        if old.exists() and not _is_of(old, graph.name):
            return
        file = File(model, {"inputs.0": example[:EXAMPLES]})
        file.add(model, graph.name)
        file.write(folder / NAME)
    except Exception as e:  # the graph matters more
        warnings.warn(f"swagwrap: no reference outputs beside {graph}: {e}", stacklevel=4)


def _is_of(path: Path, name: str) -> bool:
    try:
        with np.load(path) as old:
            return [str(w) for w in np.atleast_1d(old["weights"])] == [name]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _own_version() -> dict[str, str]:
    """Nothing where the module runs from its sources, without an installation."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return {"swagwrap": version("swagwrap")}
    except PackageNotFoundError:
        return {}


def compute(model: torch.nn.Module, inputs: Inputs) -> tuple[list[np.ndarray], dict[str, Any]]:
    """The outputs in evaluation mode, on the processor in float32, and how they were made. The model stays as it is."""
    import torch

    about: dict[str, Any] = {"device": "cpu", "dtype": "float32", "mode": "eval", "versions": {"torch": torch.__version__, **_own_version()}}
    with _evaluating(model), torch.no_grad(), torch.random.fork_rng(devices=[]), torch.autocast("cpu", enabled=False):
        state = {k: _plain(v) for k, v in (*model.named_parameters(), *model.named_buffers())}
        args, kwargs = _arguments(inputs)
        try:
            out = torch.func.functional_call(model, state, tuple(_plain(a) for a in args), {k: _plain(v) for k, v in kwargs.items()})
        except Exception:  # something that is no parameter or buffer stays on its device
            p = next(model.parameters())
            args = tuple(a.to(p.device, p.dtype if a.is_floating_point() else None) for a in args)
            out = model(*args, **{k: v.to(p.device, p.dtype if v.is_floating_point() else None) for k, v in kwargs.items()})
            about.update(device=str(p.device), dtype=str(p.dtype).removeprefix("torch."), tf32=bool(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32))
    n = len(next(iter(inputs.values())))
    outputs = [o.detach().cpu().float() if o.dtype in (torch.float16, torch.bfloat16) else o.detach().cpu() for o in _tensors(out)]
    outputs = [o for o in outputs if not o.is_complex()]
    if not outputs or any(o.ndim == 0 or len(o) != n for o in outputs[:1]):
        raise ValueError(f"the network gives no row of outputs for each of {n} examples")
    return [o.numpy() for o in outputs], about


def _plain(t: torch.Tensor) -> torch.Tensor:
    import torch

    t = t.detach().to("cpu")
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t


def _arguments(inputs: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of forward: by place, or by name."""
    if all(k.startswith("inputs.") for k in inputs):
        return tuple(inputs.values()), {}
    return (), dict(inputs)


def _tensors(out: Any) -> Iterator[torch.Tensor]:
    import torch

    if isinstance(out, torch.Tensor):
        yield out
    elif isinstance(out, Mapping):
        for v in out.values():
            yield from _tensors(v)
    elif isinstance(out, (tuple, list)):
        for v in out:
            yield from _tensors(v)


@contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    training = [m for m in model.modules() if m.training]
    try:
        model.eval()
        yield
    finally:
        for m in training:
            m.training = True


def _synthetic(t: torch.Tensor) -> torch.Tensor:
    """Random numbers in the range of the examples."""
    import torch

    r = torch.Generator().manual_seed(1)
    low, high = t.min().item(), t.max().item()
    if t.is_floating_point():
        return torch.rand(t.shape, generator=r, dtype=t.dtype) * (high - low) + low
    if t.dtype == torch.bool or {low, high} <= {0, 1}:
        return torch.ones_like(t)  # a mask
    return torch.randint(int(low), int(high) + 1, t.shape, generator=r, dtype=t.dtype)


class _Found:
    def __init__(self, inputs: Inputs, labels: np.ndarray | None = None, class_names: list[str] | None = None, raw: list[bytes] | None = None) -> None:
        self.inputs, self.labels, self.class_names, self.raw = inputs, labels, class_names, raw


_LABELS = ("labels", "label", "target", "targets", "y")


def _examples(dataset: Any, n: int, *, raw: bool) -> _Found:
    """Some examples from all over a dataset: their inputs, and what else is known of them."""
    import torch

    if type(dataset).__module__.startswith("pandas"):
        some = dataset.iloc[_spread(len(dataset), n)]
        values = torch.tensor(some.select_dtypes(["number", "bool"]).to_numpy("float32"))
        rows = [json.dumps(r, default=str).encode() for r in some.to_dict("records")] if raw else None
        return _Found({"inputs.0": values}, raw=rows)
    if isinstance(dataset, np.ndarray):
        dataset = torch.from_numpy(dataset)
    if isinstance(dataset, torch.Tensor):
        return _Found({"inputs.0": dataset[_spread(len(dataset), n)]})
    if isinstance(dataset, Mapping) and all(hasattr(v, "__len__") for v in dataset.values()):  # what a tokeniser gives
        columns = {k: torch.as_tensor(np.asarray(v)) for k, v in dataset.items() if k not in _LABELS}
        at = _spread(len(next(iter(columns.values()))), n)
        labels = next((np.asarray(dataset[k])[at] for k in _LABELS if k in dataset), None)
        return _Found({k: v[at] for k, v in columns.items()}, labels)
    at = _spread(len(dataset), n)
    items = [dataset[i] for i in at]
    base, places = _underlying(dataset, at)
    names = getattr(base, "classes", None)
    features = getattr(base, "features", None)
    if names is None and isinstance(features, Mapping):
        names = next((getattr(features[k], "names", None) for k in _LABELS if k in features), None)
    names = [str(c) for c in names] if isinstance(names, Sequence) and not isinstance(names, str) else None
    if isinstance(items[0], Mapping):
        kept = {k: _stacked([item[k] for item in items]) for k in items[0] if k not in _LABELS}
        inputs = {k: v for k, v in kept.items() if v is not None}
        labels = next((_whole([item[k] for item in items]) for k in _LABELS if k in items[0]), None)
    else:
        pairs = [item if isinstance(item, (tuple, list)) else (item,) for item in items]
        stacked = [_stacked([p[k] for p in pairs]) for k in range(max(1, len(pairs[0]) - 1))]
        inputs = {f"inputs.{k}": v for k, v in enumerate(stacked) if v is not None}
        labels = _whole([p[-1] for p in pairs]) if len(pairs[0]) > 1 else None
    if not inputs:
        raise TypeError(f"dataset: items of {type(items[0]).__name__} have no tensors of one shape: give the dataset that the loader reads, or a batch")
    return _Found(inputs, labels, names, _raw(base, places) if raw else None)


def _spread(count: int, n: int) -> list[int]:
    return [i * count // min(n, count) for i in range(min(n, count))]


def _stacked(values: list[Any]) -> torch.Tensor | None:
    import torch

    try:
        return torch.stack([torch.as_tensor(np.asarray(v) if not isinstance(v, torch.Tensor) else v) for v in values]).cpu()
    except (TypeError, ValueError, RuntimeError):
        return None


def _whole(values: list[Any]) -> np.ndarray | None:
    try:
        a = np.asarray([int(v) for v in values])
    except (TypeError, ValueError):
        return None
    return a


def _underlying(dataset: Any, at: list[int]) -> tuple[Any, list[int]]:
    """The dataset below subsets, and the places there."""
    while hasattr(dataset, "indices") and hasattr(dataset, "dataset"):
        at, dataset = [int(dataset.indices[i]) for i in at], dataset.dataset
    return dataset, at


def _raw(dataset: Any, at: list[int]) -> list[bytes] | None:
    """The files of pictures, or what the dataset holds before its transforms. None where it does not show it."""
    samples = getattr(dataset, "samples", None) or getattr(dataset, "imgs", None)
    try:
        if samples is not None:
            return [Path(samples[i][0]).read_bytes() for i in at]
        if hasattr(dataset, "with_format") and hasattr(dataset, "features"):  # of Hugging Face
            plain = dataset.with_format(None)
            return _bytes([next((v for v in plain[i].values() if _is_raw(v)), None) for i in at])
        with _untransformed(dataset):
            items = [dataset[i] for i in at]
        return _bytes([item[0] if isinstance(item, (tuple, list)) else item for item in items])
    except Exception:  # it is not needed
        return None


def _is_raw(v: Any) -> bool:
    return isinstance(v, (str, bytes)) or hasattr(v, "save")


def _bytes(items: list[Any]) -> list[bytes] | None:
    out = []
    for item in items:
        if isinstance(item, str):
            out.append(item.encode())
        elif isinstance(item, bytes):
            out.append(item)
        elif hasattr(item, "save"):  # of Pillow
            b = io.BytesIO()
            item.save(b, "PNG")
            out.append(b.getvalue())
        else:
            return None
    return out


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

