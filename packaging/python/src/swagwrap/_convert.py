"""Checkpoints of other frameworks as files of named tensors."""

from __future__ import annotations

import os
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union


from ._later import np
from ._states import AVERAGE, write_weights

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

PathLike = Union[str, "os.PathLike[str]"]

# Parts of names below which optimizers keep their own numbers.
_OTHERS = re.compile(r"(^|/)(optimizer|optimizer_weights|opt_state|optimizer_state|_optimizer|save_counter|rngs?|dropout_rng|key)(/|$)|\.OPTIMIZER_SLOT")


@dataclass
class _Checkpoint:
    """What a file has: weights by names, and what shows that they are an average."""

    weights: dict[str, Array]
    metadata: dict[str, str] = field(default_factory=dict)


def convert(source: PathLike | Sequence[PathLike], target: PathLike, model: Any = None, *, overwrite: bool = False) -> list[Path]:
    """Writes checkpoints of Keras, JAX, PaddlePaddle or TensorFlow as .safetensors files for `swagwrap fit`.

    >>> swagwrap.convert("epoch-05.keras", "epoch-05.safetensors")
    >>> swagwrap.convert("run", "converted")     # all checkpoints of a folder
    $ python -m swagwrap.convert run converted

    `source` is a file (.keras, .weights.h5, .h5, .msgpack, .pdparams), a folder of Orbax, a checkpoint of TensorFlow, a list of these, or
    a folder with them. `target` is a file for one checkpoint, and else a folder. The library of the format must be there: h5py, flax,
    orbax, paddle or tensorflow.

    Names are those of the file. With `model`, a model of Keras, they are the paths of its weights, as `swagwrap.keras` writes them. The
    model gets back its own weights at the end. Either way `fit` needs a graph with the weights of one of the files: `swagwrap.keras.export`,
    `swagwrap.jax.export` or `swagwrap.paddle.export`.

    Warns of a file with the moving average of Keras's `use_ema`, and marks it: `fit` leaves it out. Returns the files.
    """
    one = isinstance(source, (str, os.PathLike))
    sources = _checkpoints(Path(source)) if one else [Path(s) for s in source]  # type: ignore[arg-type, union-attr]
    target = Path(target)
    single = target.suffix == ".safetensors"
    if single and len(sources) > 1:
        raise ValueError(f"{target}: one file for {len(sources)} checkpoints: name a folder")
    written: list[Path] = []
    for path in sources:
        found = _read(path) if model is None else _of_model(path, model)
        if not found.weights:
            raise ValueError(f"{path}: no weights of float types")
        name = target if single else target / (_stem(path) + ".safetensors")
        if name in written:
            raise ValueError(f"{path}: a second file for {name}: convert them into different folders")
        if found.metadata:
            warnings.warn(f"swagwrap: {path}: {found.metadata[AVERAGE]}: SWAG needs the weights that the optimizer moved", stacklevel=2)
        write_weights(found.weights, name, overwrite=overwrite, metadata=found.metadata or None)
        written.append(name)
    return written


def _stem(path: Path) -> str:
    name = path.name
    for suffix in (".weights.h5", ".keras", ".h5", ".hdf5", ".msgpack", ".pdparams", ".index"):
        name = name.removesuffix(suffix)
    return name


def _checkpoints(path: Path) -> list[Path]:
    """A checkpoint, or those in a folder in the order of their numbers."""
    if not path.is_dir() or _is_orbax(path):
        return [path]
    found = [p for p in path.iterdir() if _reader(p) is not None]
    if not found:
        raise ValueError(f"{path}: no checkpoint of Keras, JAX, PaddlePaddle or TensorFlow in this folder")
    return sorted(found, key=lambda p: [(int(a or 0), b) for a, b in re.findall(r"(\d+)|(\D+)", p.name)])


def _read(path: Path) -> _Checkpoint:
    if not path.exists() and not path.with_name(path.name + ".index").exists():
        raise FileNotFoundError(f"{path}: no such checkpoint")
    reader = _reader(path)
    if reader is None:
        raise ValueError(f"{path}: want .keras, .weights.h5, .h5, .msgpack, .pdparams, a folder of Orbax or a checkpoint of TensorFlow")
    return reader(path)


def _reader(path: Path) -> Callable[[Path], _Checkpoint] | None:
    if path.is_dir():
        return _read_orbax if _is_orbax(path) else None
    if path.name.endswith(".index") or path.with_name(path.name + ".index").exists():
        return _read_tensorflow
    readers = {".keras": _read_keras, ".h5": _read_keras, ".hdf5": _read_keras, ".msgpack": _read_msgpack, ".pdparams": _read_paddle}
    return readers.get(path.suffix)


def _read_keras(path: Path) -> _Checkpoint:
    """Weights by the names of their layers, such as `dense/0`. Keras 2 also wrote their own: `dense/kernel`."""
    import h5py

    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as z, z.open("model.weights.h5") as inner, h5py.File(inner, "r") as f:
            return _of_h5(f)
    with h5py.File(path, "r") as f:
        return _of_h5(f)


def _of_h5(f: Any) -> _Checkpoint:
    import h5py

    arrays: dict[str, Array] = {}
    f.visititems(lambda name, o: arrays.update({name: _bfloat16(o)}) if isinstance(o, h5py.Dataset) else None)
    kept_by = {k: arrays.pop(k) for k in list(arrays) if k.startswith("optimizer/")}
    steps = kept_by.get("optimizer/vars/0", np.zeros(()))
    # After one step the average is the iterate.
    average = _keras_average(arrays, list(kept_by.values())) if steps.ndim == 0 and steps > 1 else {}
    kept = {k: v for k, v in arrays.items() if v.dtype.kind == "f" and not _OTHERS.search(k)}
    return _Checkpoint({_layer_name(f, k): v for k, v in kept.items()}, average)


def _bfloat16(o: Any) -> Array:
    """Keras stores bfloat16 as 16-bit numbers with a mark."""
    value: Array = np.asarray(o)
    if o.attrs.get("dtype") in ("bfloat16", b"bfloat16"):
        value = (value.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return value


def _layer_name(f: Any, key: str) -> str:
    """`dense/0` of `layers/dense_1/vars/0`: Keras 3 counts layers by class, and keeps their names beside."""
    if "/vars/" not in "/" + key:
        return re.sub(r":0$", "", key.removeprefix("model_weights/"))
    parts = key.split("/")
    names, at = [], ""
    for part in parts[: parts.index("vars") + 1]:
        group = f[at + "vars"] if at + "vars" in f else None
        name = group.attrs.get("name") if group is not None else None
        if name is not None:
            names.append(name if isinstance(name, str) else name.decode())
        at += part + "/"
    return "/".join([*names[1:], parts[-1]]) if names else key  # without the name of the model


def _keras_average(weights: Mapping[str, Array], kept: Sequence[Array]) -> dict[str, str]:
    """What shows that the weights are the average of use_ema: the optimizer keeps the same numbers."""
    some = [w for w in weights.values() if w.dtype.kind == "f" and w.size > 1 and np.ptp(w) > 0]
    if any(w.shape == k.shape and np.array_equal(w, k) for w in some for k in kept):
        return {AVERAGE: "the optimizer's average of use_ema has the same weights"}
    return {}


def _of_model(path: Path, model: Any) -> _Checkpoint:
    """The same weights by the paths of a model's variables."""
    from . import keras

    before = model.get_weights()
    metadata = _read(path).metadata
    try:
        model.load_weights(path)
        return _Checkpoint(dict(keras.Network(model, None).weights()), metadata)
    finally:
        model.set_weights(before)


def _is_orbax(path: Path) -> bool:
    return any((path / name).exists() for name in ("_METADATA", "_CHECKPOINT_METADATA", "manifest.ocdbt", "_sharding"))


def _read_orbax(path: Path) -> _Checkpoint:
    import orbax.checkpoint

    path = path.resolve()
    items = [p for p in sorted(path.iterdir()) if p.is_dir() and (p / "_METADATA").exists()]
    if not (path / "_METADATA").exists() and len(items) == 1:  # a step of CheckpointManager, or of StandardCheckpointer
        path = items[0]
    return _of_tree(orbax.checkpoint.PyTreeCheckpointer().restore(path))


def _read_msgpack(path: Path) -> _Checkpoint:
    from flax import serialization

    return _of_tree(serialization.msgpack_restore(path.read_bytes()))


def _of_tree(tree: Any) -> _Checkpoint:
    """Weights by their paths, as `swagwrap.jax` writes them."""
    return _Checkpoint({name: v for name, v in _leaves(tree, "") if _is_float(v) and not _OTHERS.search(name)})


def _leaves(tree: Any, path: str) -> Iterator[tuple[str, Array]]:
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            inner = path if key == "value" and len(tree) == 1 else f"{path}/{key}" if path else str(key)
            yield from _leaves(value, inner)
    elif isinstance(tree, (list, tuple)):
        for i, value in enumerate(tree):
            yield from _leaves(value, f"{path}/{i}" if path else str(i))
    elif hasattr(tree, "shape") and hasattr(tree, "dtype"):
        yield path, np.asarray(tree) if "key<" not in str(tree.dtype) else np.zeros(0, np.uint32)


def _is_float(v: Array) -> bool:
    return bool(v.dtype.kind == "f" or v.dtype.name == "bfloat16")


def _read_paddle(path: Path) -> _Checkpoint:
    import paddle

    state = paddle.load(str(path))
    # numpy() of a bfloat16 gives its bits.
    held = {k: v.astype("float32") if str(v.dtype) == "paddle.bfloat16" else v for k, v in state.items() if hasattr(v, "dtype")}
    arrays = {k: np.array(v.numpy() if hasattr(v, "numpy") else v) for k, v in held.items()}
    return _Checkpoint({k: v for k, v in arrays.items() if _is_float(v)})


def _read_tensorflow(path: Path) -> _Checkpoint:
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(path).removesuffix(".index"))
    names = [n for n in reader.get_variable_to_shape_map() if not _OTHERS.search(n) and not n.endswith("/ExponentialMovingAverage")]
    arrays = {n.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE"): np.asarray(reader.get_tensor(n)) for n in sorted(names)}
    return _Checkpoint({k: v for k, v in arrays.items() if _is_float(v)})
