"""Reference outputs: what the network gives for a few examples where it was trained. `swagwrap fit` holds the graph against them."""

from __future__ import annotations

import io
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any


from ._examples import examples, same_generators
from ._files import new_files
from ._later import np

if TYPE_CHECKING:
    import torch

NAME = "swagwrap-reference.npz"
EXAMPLES = 16
MOST = 2_000_000  # bytes of a file

# Outputs of an epoch take a second, or this share of the time of an epoch. `fit` holds every checkpoint against two examples.
SECONDS, SHARE, FEWEST = 1.0, 0.02, 2

Inputs = dict[str, "torch.Tensor"]


def reference(
    model: torch.nn.Module,
    dataset: Any,
    n: int = EXAMPLES,
    *,
    path: str | os.PathLike[str] = NAME,
    weights: str | os.PathLike[str] | None = None,
    raw: Any = True,
    inputs: str = "examples",
    max_bytes: int = MOST,
    overwrite: bool = False,
) -> Path:
    """Writes what the network gives for `n` examples: `swagwrap fit` holds the exported graph against it.

    >>> model.load_state_dict(torch.load("checkpoints/epoch-19.pt"))
    >>> swagwrap.reference(model, dataset, path="checkpoints/swagwrap-reference.npz", weights="epoch-19.pt")

    `dataset` is a dataset of torchvision, timm or Hugging Face, a list of (input, label), a DataLoader, a LightningDataModule, a table of
    numbers, tokenised texts, or a batch of inputs. Give it the transforms of evaluation. `weights` is the file with the weights that
    the model has now; without it the outputs may be of any checkpoint, or of the graph. The examples are from all over the dataset.

    The file is private data. It has the inputs of the network, labels, and what the loader made them from: files of pictures, texts, rows.
    Where the dataset does not show these, `raw` may be the list or table of them, in the order of the dataset. `raw=False` leaves them
    out. `inputs="synthetic"` takes random numbers in the range of the examples instead, and no example.

    The network computes in evaluation mode on the processor, in float32, without autocast. Its device, type and mode stay as they are.
    A file has at most `max_bytes`; with larger examples it has fewer. Returns the path.

    Raises `FileExistsError` if `path` is there, unless `overwrite` says that it is replaced.
    """
    import torch

    if inputs not in ("examples", "synthetic"):
        raise ValueError(f'inputs {inputs!r}, want "examples" or "synthetic"')
    if n < 1:
        raise ValueError(f"n {n}, want at least one example")
    path = Path(path)
    model = _inner(model)
    found = examples(dataset, n, model, raw if inputs == "examples" else False)
    arrays, labels = found.inputs, found.labels
    with torch.device("cpu"):
        if inputs == "synthetic":
            arrays, labels = {k: _synthetic(v) for k, v in arrays.items()}, None
    file = File(arrays, synthetic=inputs == "synthetic")
    file.add(model, None if weights is None else Path(weights).name)
    file.labels, file.class_names, file.raw = labels, found.class_names, found.raw
    file.write(path, max_bytes, overwrite=overwrite)
    return path


class File:
    """Inputs, and the outputs of one network after another with them."""

    def __init__(self, inputs: Mapping[str, torch.Tensor | np.ndarray], *, synthetic: bool = False) -> None:
        self.inputs = {k: v if isinstance(v, np.ndarray) else _plain(v).numpy() for k, v in inputs.items()}
        self.synthetic = synthetic
        self.weights: list[str | None] = []
        self.rows: list[dict[int, np.ndarray]] = []  # of each network, by the place of the output
        self.about: dict[str, Any] = {}
        self.labels: np.ndarray | None = None
        self.class_names: list[str] | None = None
        self.raw: list[bytes] | None = None

    def add(self, model: torch.nn.Module, weights: str | None) -> None:
        """Adds the outputs of the model as it is, which has the weights of that file."""
        import torch

        self.put(*compute(model, {k: torch.from_numpy(v) for k, v in self.inputs.items()}), weights)

    def put(self, outputs: dict[int, np.ndarray], about: dict[str, Any], weights: str | None) -> None:
        """Adds outputs, and how they were made."""
        self.about = about
        if weights in self.weights:
            at = self.weights.index(weights)
            del self.weights[at], self.rows[at]
        self.weights.append(weights)
        self.rows.append(outputs)

    def arrays(self, n: int, raw: bool, first: int = 0) -> dict[str, Any]:
        """The arrays of the file, with n examples and the rows from the first on."""
        out: dict[str, Any] = {k: v[:n] for k, v in self.inputs.items()}
        rows, names = self.rows[first:], self.weights[first:]
        for k in rows[-1]:
            out[f"outputs.{k}"] = np.stack([row[k][:n] for row in rows]) if names != [None] else rows[0][k][:n]
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
        """Writes as much as there is room for. With two examples raw ones go, then the oldest outputs."""
        n, raw, first = len(next(iter(self.inputs.values()))), bool(self.raw), 0
        while True:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **self.arrays(n, raw, first))
            if buffer.tell() <= max_bytes:
                break
            if n > 2:
                n = max(2, n // 2)
            elif raw:
                n, raw = len(next(iter(self.inputs.values()))), False
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


def goes_on_from(path: Path, inputs: Mapping[str, torch.Tensor | np.ndarray], files: Callable[[str], bool]) -> File | None:
    """The outputs of earlier files of the same run, which had the same inputs."""
    try:
        with np.load(path) as old:
            n = len(old["inputs.0"])
            file = File({k: v[:n] for k, v in inputs.items()})
            if not all(np.array_equal(old[k], v) for k, v in file.inputs.items()):
                return None
            outputs = {int(k.removeprefix("outputs.")): old[k] for k in old if k.startswith("outputs.")}
            for i, name in enumerate(map(str, old["weights"])):
                if files(name):
                    file.weights.append(name)
                    file.rows.append({k: o[i] for k, o in outputs.items()})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return file


def affordable(run: Callable[[int], Any], most: int, epoch: float) -> int:
    """How many examples a network computes in the time for them. `run` computes so many. An epoch of training took so many seconds."""
    begin = time.perf_counter()
    run(FEWEST)
    one = max((time.perf_counter() - begin) / FEWEST, 1e-6)
    return max(FEWEST, min(most, int(max(SECONDS, SHARE * epoch) / one)))


def beside_graph(model: torch.nn.Module, example: torch.Tensor, graph: Path, folder: Path) -> None:
    """Writes the outputs of an exported network into a folder, unless the graph's own has a file of another one."""
    old = graph.parent / NAME
    try:
        if old.exists() and not _is_of(old, graph.name):
            return
        file = File({"inputs.0": example[:EXAMPLES]})
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


def own_version() -> dict[str, str]:
    """Nothing where the module runs from its sources, without an installation."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return {"swagwrap": version("swagwrap")}
    except PackageNotFoundError:
        return {}


def compute(model: torch.nn.Module, inputs: Inputs) -> tuple[dict[int, np.ndarray], dict[str, Any]]:
    """The outputs in evaluation mode, on the processor in float32, and how they were made. The model stays as it is."""
    import torch

    about: dict[str, Any] = {"device": "cpu", "dtype": "float32", "mode": "eval", "versions": {"torch": torch.__version__, **own_version()}}
    if any(p.dtype == torch.float64 for p in model.parameters()):
        about["dtype"] = "float64"
    args = () if not _by_place(inputs) else tuple(inputs.values())
    kwargs = {} if _by_place(inputs) else inputs
    with _evaluating(model), torch.no_grad(), same_generators(), _exact_products(), torch.autocast("cpu", enabled=False):
        try:
            with torch.device("cpu"):  # of what the network makes itself
                state = {k: _plain(v) for k, v in model.named_parameters()} | {k: _plain(v).clone() for k, v in model.named_buffers()}
                out = torch.func.functional_call(model, state, args, kwargs)
        except Exception:  # something that is no parameter or buffer stays on its device
            p = next(model.parameters())
            if p.device.type == "cpu" and p.dtype in (torch.float32, torch.float64):
                raise
            there = {k: v.to(p.device, p.dtype if v.is_floating_point() else None) for k, v in inputs.items()}
            with torch.autocast(p.device.type, enabled=False):
                out = model(*there.values()) if args else model(**there)
            about.update(device=str(p.device), dtype=str(p.dtype).removeprefix("torch."), tf32=bool(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32))
    n = len(next(iter(inputs.values())))
    outputs = {k: _plain(o).numpy() for k, o in enumerate(_tensors(out)) if not o.is_complex() and o.ndim and len(o) == n}
    if not outputs:
        raise ValueError(f"the network gives no row of outputs for each of {n} examples")
    return outputs, about


@contextmanager
def _exact_products() -> Iterator[None]:
    """Float32 is float32, and nothing is compiled."""
    import torch

    with torch.compiler.set_stance("force_eager"):
        try:
            was = torch.get_float32_matmul_precision()
        except RuntimeError:  # set in the newer way, for each backend
            yield
            return
        try:
            torch.set_float32_matmul_precision("highest")
            yield
        finally:
            torch.set_float32_matmul_precision(was)


def _by_place(inputs: Inputs) -> bool:
    return all(k.startswith("inputs.") for k in inputs)


def _inner(model: torch.nn.Module) -> torch.nn.Module:
    """The network itself: parallel, compiled and averaged ones are looked into."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if type(model).__name__ in ("DataParallel", "DistributedDataParallel", "AveragedModel"):
            inner = model.module
        if inner is None:
            return model
        model = inner


def _plain(t: torch.Tensor) -> torch.Tensor:
    import torch

    t = t.detach().to("cpu")
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t


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
    numbers = t[torch.isfinite(t)] if t.is_floating_point() else t
    low, high = (numbers.min().item(), numbers.max().item()) if len(numbers) else (0, 0)
    if t.is_floating_point():
        return torch.rand(t.shape, generator=r, dtype=t.dtype) * (high - low) + low
    if t.dtype == torch.bool or {low, high} <= {0, 1}:
        return torch.full_like(t, high)  # a mask, or the kinds of tokens
    return torch.randint(int(low), int(high) + 1, t.shape, generator=r, dtype=t.dtype)
