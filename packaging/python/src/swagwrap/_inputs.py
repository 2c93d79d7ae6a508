"""What users have, as the batches that a model takes: arrays, tables, and pictures."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ._columns import Table, is_table, some
from ._program import prepared
from ._words import LOADED, spoken

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Arrays = Literal["auto", "seen", "pixels"]
FileOrder = Literal["text", "number", "given"]
Columns = Mapping[str, Sequence[str]] | None

_LARGEST = 2**24  # float32 holds all whole numbers up to it
_FILE = (str, os.PathLike, bytes)
_PATHS = ("path", "file", "image", "filename")  # columns with paths of pictures


@dataclass(frozen=True)
class Input:
    """An input of the model. The first dimension is the batch; None is open."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]

    def words(self) -> str:
        return f"{self.dtype} [examples, {', '.join('any' if n is None else str(n) for n in self.shape)}]"


@dataclass(frozen=True)
class Reader:
    """Reads examples for a model."""

    model: str
    inputs: list[Input]
    normalised: bool
    """The card has a mean or a standard deviation."""
    pixels: bool
    """The model takes 8-bit pixels, and normalises them itself."""
    columns: Columns
    given: Columns
    """Columns that the caller named."""
    arrays: Arrays
    file_order: FileOrder | None
    batch: int

    @property
    def pictures(self) -> bool:
        """The model takes one tensor of pictures."""
        shape = self.inputs[0].shape
        return len(self.inputs) == 1 and len(shape) == 3 and (shape[0] in (1, 3, 4, None) or shape[2] in (1, 3, 4))

    def batches(self, X: Any) -> Iterator[tuple[Sequence[str] | None, dict[str, NDArray[Any]]]]:
        """Yields names and inputs of at most `batch` examples at a time. The names are None if nothing has one."""
        if isinstance(X, (str, os.PathLike)):
            path = os.path.expanduser(os.fspath(X))
            if not os.path.exists(path) and not any(c in path for c in "*?[{"):
                raise FileNotFoundError(f"{path}: no such file or folder")
            yield from self._prepared(path, *(["--labels", "y"] if isinstance(X, Beside) else []))
        elif is_table(X):
            yield from self._table(Table(X))
        elif isinstance(X, Mapping):
            yield from self._mapping(X)
        elif (files := _files(X, self.pictures)) is not None:
            yield from self._files(files)
        else:
            yield from self._array(X)

    def _prepared(self, data: str, *args: str, names: Sequence[str] | None = None, stored: bool = False) -> Iterator[tuple[Sequence[str] | None, dict[str, NDArray[Any]]]]:
        """What the program reads. `names` replace its own. `stored` says that data is a file that the caller does not know."""
        more = ["-b", str(self.batch), "--arrays", self.arrays, *(["--file-order", self.file_order] if self.file_order else []), *args]
        for name, columns in (self.given or {}).items():
            more += ["--columns", ",".join(columns) if len(self.inputs) == 1 else f"{name}={','.join(columns)}"]
        done = 0
        with spoken(LOADED, _stored_names(data) if stored else None):
            for own, values in prepared(len(self.inputs), *more, "--", self.model, data):
                yield own if names is None else names[done : done + len(own)], dict(zip([i.name for i in self.inputs], values))
                done += len(own)
        if done == 0:
            raise ValueError("no examples, want at least one")

    def _files(self, files: list[Any]) -> Iterator[tuple[Sequence[str] | None, dict[str, NDArray[Any]]]]:
        """Pictures, one by one: paths, the bytes of files, or images of Pillow."""
        if not files:
            raise ValueError("no examples, want at least one")
        with tempfile.TemporaryDirectory(prefix="swagwrap-") as work:
            paths: list[str] = []
            for i, file in enumerate(files):
                if not isinstance(file, str):
                    Path(work, str(i)).write_bytes(file if isinstance(file, bytes) else _as_file(file, i))
                    paths.append(os.path.join(work, str(i)))
                    continue
                path = os.path.abspath(os.path.expanduser(file))
                if not os.path.isfile(path):
                    raise FileNotFoundError(f"{file}: {'a folder, want a file' if os.path.isdir(path) else 'no such file'}")
                paths.append(path)
            listed = os.path.join(work, "list.csv")
            with open(listed, "w", newline="", encoding="utf-8") as out:
                rows = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
                rows.writerow(["path"])
                rows.writerows([path] for path in paths)
            names = [file if isinstance(file, str) else str(i) for i, file in enumerate(files)]
            yield from self._prepared(listed, "--path-column", "path", names=names, stored=True)

    def _array(self, X: Any) -> Iterator[tuple[None, dict[str, NDArray[Any]]]]:
        """An array of the only input."""
        if len(self.inputs) > 1:
            raise ValueError(f"the model takes {len(self.inputs)} inputs, want a dict or a table with {', '.join(i.name for i in self.inputs)}")
        (only,) = self.inputs
        x = _as_array(X)
        if x.ndim == 0 or len(x) == 0:
            raise ValueError("no examples, want at least one" if x.ndim else f"a single number, want {only.words()}")
        if x.ndim == len(only.shape) and len(only.shape) != 3 and _reshaped(x.shape, only.shape) is not None and _reshaped(x.shape[1:], only.shape) is None:
            raise ValueError(f"shape {_dims(x.shape)}, want {only.words()}: for one example X[None], of a table X.iloc[[0]]")
        if self._for_program(x, only):
            yield from self._stored({only.name: x})
            return
        for lo in range(0, len(x), self.batch):
            yield None, {only.name: fitted(x[lo : lo + self.batch], only, lo)}

    def _for_program(self, x: NDArray[Any], only: Input) -> bool:
        """Pixels that the program must resize or normalise, or floats of which only it can say what they are."""
        if x.dtype == "uint8":
            return only.dtype != "uint8" or _reshaped(x.shape[1:], only.shape) is None
        if x.dtype.kind != "f":
            return len(only.shape) == 3 and only.dtype.kind == "f"  # refused there: nobody says what such pixels are
        return self.pixels or self.arrays == "pixels" or self.arrays == "auto" and self.normalised

    def _stored(self, arrays: dict[str, NDArray[Any]]) -> Iterator[tuple[None, dict[str, NDArray[Any]]]]:
        """Arrays that the program reads, as it reads a file of them."""
        import numpy as np

        for name, x in arrays.items():
            if x.dtype.kind == "f" and (bad := ~np.isfinite(x)).any():
                i, *place = (int(k) for k in np.argwhere(bad)[0])
                where = f'"{name}", ' if len(arrays) > 1 else ""
                raise ValueError(f"{where}row {i}, element {place}: {x[(i, *place)]}, want a finite number")
        arrays = {name: x.astype(np.float32) if x.dtype.kind == "f" else x for name, x in arrays.items()}
        with tempfile.TemporaryDirectory(prefix="swagwrap-") as work:
            path = os.path.join(work, "X.npy" if len(arrays) == 1 else "X.npz")
            if len(arrays) == 1:
                np.save(path, next(iter(arrays.values())), allow_pickle=False)
            else:
                np.savez(path, allow_pickle=False, **arrays)
            for _, feeds in self._prepared(path, stored=True):
                yield None, feeds

    def _mapping(self, X: Mapping[str, Any]) -> Iterator[tuple[Sequence[str] | None, dict[str, NDArray[Any]]]]:
        """Arrays by the names of the inputs."""
        missing = [i.name for i in self.inputs if i.name not in X]
        if missing:
            known = {c for columns in (self.given or self.columns or {}).values() for c in columns}
            table = ": for columns pandas.DataFrame(X)" if known and known <= set(X) else ""
            raise ValueError(f"no array {', '.join(missing)} among {some([str(k) for k in X])}{table}")
        if len(self.inputs) == 1:
            yield from self.batches(X[self.inputs[0].name])
            return
        arrays = {i.name: _as_array(X[i.name]) for i in self.inputs}
        counts = {name: len(a) if a.ndim else 0 for name, a in arrays.items()}
        if len(set(counts.values())) > 1 or 0 in counts.values():
            raise ValueError(f"numbers of examples: {counts}, want the same for all inputs, at least one")
        if any(len(i.shape) == 3 and self._for_program(arrays[i.name], i) for i in self.inputs):
            yield from self._stored(arrays)
            return
        for lo in range(0, next(iter(counts.values())), self.batch):
            yield None, {i.name: fitted(arrays[i.name][lo : lo + self.batch], i, lo) for i in self.inputs}

    def _table(self, X: Table) -> Iterator[tuple[Sequence[str] | None, dict[str, NDArray[Any]]]]:
        """The columns of a table, by name."""
        if X.rows == 0:
            raise ValueError("no rows, want at least one")
        if self.pictures:
            column = next((c for c in X.names if c.lower() in _PATHS), None)
            if column is None:
                raise ValueError(f"columns {some(X.names)}: the model takes pictures, want a column {', '.join(_PATHS)}")
            yield from self._files(_paths(X.values(column), f', column "{column}"'))
            return
        named = self.given or self.columns or {i.name: [i.name] for i in self.inputs if i.name in X.names}
        wanted = [c for i in self.inputs for c in named.get(i.name, ())]
        if not all(named.get(i.name) for i in self.inputs) or any("*" in c for c in wanted):
            inputs = "[...]" if len(self.inputs) == 1 else "{INPUT: [...]}"
            raise ValueError(f"the model does not know the names of its columns: load(path, columns={inputs}) says them in the order of training, and swagwrap fit --columns A,B puts them into models")
        X.check(wanted)
        if any(X.lists(c) for c in wanted) or any(len(i.shape) != 1 for i in self.inputs):
            yield from self._written(X, wanted)
            return
        values = {c: X.numbers(c) for c in wanted}
        import numpy as np

        for lo in range(0, X.rows, self.batch):
            rows = slice(lo, lo + self.batch)
            yield None, {i.name: fitted(np.stack([values[c][rows] for c in named[i.name]], axis=1), i, lo, named[i.name]) for i in self.inputs}

    def _written(self, X: Table, wanted: list[str]) -> Iterator[tuple[None, dict[str, NDArray[Any]]]]:
        """A table with lists, or for inputs of other ranks: the program reads it."""
        columns = [[_plain(v) for v in X.values(c)] for c in wanted]
        with ExitStack() as stack:
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix="swagwrap-"))
            path = os.path.join(work, "table.jsonl")
            with open(path, "w", encoding="utf-8") as out:
                for i, row in enumerate(zip(*columns)):
                    try:
                        out.write(json.dumps(dict(zip(wanted, row)), default=_plain_of, allow_nan=False) + "\n")
                    except ValueError as e:
                        raise ValueError(f"row {i}: NaN or an infinite number in a list, want finite numbers") from e
            for _, feeds in self._prepared(path, stored=True):
                yield None, feeds


class Beside(str):
    """The path of examples that belong to the rows of an array, by their place. The program asks if their order is not known."""


def beside(X: Any) -> Any:
    """X, as examples that belong to the rows of an array."""
    return Beside(os.fspath(X)) if isinstance(X, (str, os.PathLike)) else X


def _stored_names(data: str) -> dict[str, str]:
    """How a caller knows a file that holds X. Pictures of a list are X[i]."""
    return {
        re.escape(data): "X",
        re.escape(os.path.dirname(data)) + r"/(\d+)(?=\D|$)": r"X[\1]",
        r"save it again as ((?:np\.\w+\()?)a\b": r"want \1X",
    }


def fitted(x: NDArray[Any], to: Input, first: int, columns: Sequence[str] | None = None) -> NDArray[Any]:
    """The array as the input takes it. Raises ValueError for what it does not hold. `first` is the number of the first example."""
    import numpy as np

    shape = _reshaped(x.shape[1:], to.shape)
    if shape is None:
        raise ValueError(f"shape {_dims(x.shape)}, want {to.words()}")
    x = x.reshape(len(x), *shape)

    def at(bad: NDArray[np.bool_]) -> str:
        i, *place = (int(k) for k in np.argwhere(bad)[0])
        where = f'column "{columns[place[0]]}"' if columns else f"element {place}"
        return f"row {first + i}, {where}: {x[(i, *place)]}"

    if x.dtype.kind == "f" and not np.isfinite(x).all():
        empty = ": fill empty cells, or drop their rows" if columns and np.isnan(x).any() else ""
        raise ValueError(f"{at(~np.isfinite(x))}, want a finite number{empty}")
    if to.dtype.kind == "f":
        if x.dtype.kind in "iu" and np.issubdtype(to.dtype, np.floating) and (bad := (x > _LARGEST) | (x < -_LARGEST)).any():
            raise ValueError(f"{at(bad)}, want at most {_LARGEST}: float32 does not hold larger whole numbers")
        with np.errstate(over="ignore"):
            new = np.ascontiguousarray(x, dtype=to.dtype)
        if not np.isfinite(new).all():
            raise ValueError(f"{at(~np.isfinite(new))}, want a number that {to.dtype} holds")
        return new
    if x.dtype.kind == "f" and (bad := x != np.rint(x)).any():
        raise ValueError(f"{at(bad)}, want a whole number: the input takes {to.dtype}")
    if to.dtype.kind in "iu":
        limits = np.iinfo(to.dtype)
        low, high = (x < limits.min), (x > limits.max)
        if (bad := low | high).any():
            raise ValueError(f"{at(bad)}, want {limits.min} to {limits.max}")
    return np.ascontiguousarray(x).astype(to.dtype)


def _reshaped(have: Sequence[int], want: Sequence[int | None]) -> tuple[int, ...] | None:
    """The shape of an example as the input takes it. Dimensions of size 1 may be missing or too many. None if it does not fit."""

    def fits(a: Sequence[int], b: Sequence[int | None]) -> bool:
        return len(a) == len(b) and all(n is None or m == n for m, n in zip(a, b))

    if fits(have, want):
        return tuple(have)
    if None not in want and fits([n for n in have if n != 1], [n for n in want if n != 1]):
        return tuple(n for n in want if n is not None)
    return None


def _as_array(X: Any) -> NDArray[Any]:
    """An array of numbers."""
    import numpy as np

    if hasattr(X, "toarray"):
        raise TypeError(f"{type(X).__name__}: a sparse matrix, want X.toarray()")
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise TypeError("a masked array, want a value for each element")
    if _is_image(X):
        raise TypeError("a picture, want a list of pictures: [X]")
    if isinstance(X, (list, tuple)):
        for i, v in enumerate(X):
            if _is_image(v) and v.mode not in ("L", "RGB", "RGBA"):  # NumPy drops the palette, and does not know what the channels are
                raise TypeError(f'X[{i}]: a picture of mode {v.mode}, want [x.convert("RGB") for x in X]')
    if hasattr(X, "detach"):  # a tensor of PyTorch
        X = X.detach().cpu().numpy()
    try:
        x = np.asarray(X)
    except ValueError as e:
        raise ValueError("rows of different lengths, want an array. Of pictures of different sizes, want their paths or the bytes of their files") from e
    if x.dtype.names or x.dtype.kind == "O" and x.ndim == 1 and len(x) and isinstance(x[0], Mapping):
        raise TypeError("an array of records, want a table: pandas.DataFrame(X)")
    if x.dtype.kind == "O" and x.ndim == 0:
        raise TypeError(f"{type(X).__name__}, want an array, a table, or paths of pictures" + (": list(X)" if hasattr(X, "__iter__") else ""))
    if x.dtype.kind == "O":
        try:
            x = x.astype(np.float64)
        except (TypeError, ValueError) as e:
            raise TypeError(f"an array of objects: {e}, want numbers") from e
    if x.dtype.kind in "UST":
        raise TypeError("an array of texts, want numbers: X.astype(float); or a list of the paths of pictures")
    if x.dtype.kind not in "biuf":
        raise TypeError(f"an array of {x.dtype}, want numbers")
    return x


def _is_image(v: Any) -> bool:
    """An image of Pillow, which is not imported for it."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(v, pillow.Image)


def _as_file(image: Any, i: int) -> bytes:
    """A file with the pixels and the orientation of an image of Pillow, so the program reads it as the file that it came from."""
    from PIL import Image

    image.load()  # it turns TIFF
    if image.mode in ("F", "I", "LAB"):
        raise TypeError(f"X[{i}]: a picture of mode {image.mode}, which has no black and white of 8 bits: want levels from 0 to 255 as mode L, or mode RGB")
    mode = image.mode if image.mode in ("1", "L", "RGB") else "RGB"
    try:
        if image.mode.startswith("I;16"):
            import numpy as np

            plain = Image.fromarray(np.asarray(image).astype(np.uint16))
        elif image.mode in ("La", "RGBa"):  # alpha is multiplied in
            plain = image.convert(image.mode.upper()).convert("RGB")
        else:
            plain = image.convert(mode)
    except ValueError as e:
        raise TypeError(f'X[{i}]: a picture of mode {image.mode}: {e}, want x.convert("RGB")') from e
    tag = None
    try:
        tag = image.getexif().get(0x112)
    except Exception:  # damaged: the program reads none either
        pass
    how: dict[str, Any] = {}
    if isinstance(tag, int) and 2 <= tag <= 8:
        how["exif"] = Image.Exif()
        how["exif"][0x112] = tag
    plain = plain.copy()
    plain.info = {}  # a color profile, a transparent color
    out = io.BytesIO()
    plain.save(out, "PNG", compress_level=1, **how)
    return out.getvalue()


def _files(X: Any, pictures: bool) -> list[Any] | None:
    """Paths, the bytes of files or, for a model of pictures, images of Pillow. None for other things."""
    if isinstance(X, (bytes, bytearray)):
        raise TypeError("bytes, want a list of the bytes of pictures")
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if not isinstance(X, (list, tuple)) and kind not in ("U", "O", "T") and not (hasattr(X, "to_list") and not hasattr(X, "ndim")):
        if not (hasattr(X, "to_list") and len(X) and (isinstance(first := next(iter(X)), _FILE) or _is_image(first))):
            return None
    if getattr(X, "ndim", 1) == 2 and X.shape[1] == 1:  # a column of paths
        X = X[:, 0]
    values = list(X)
    if not any(isinstance(v, _FILE) or pictures and _is_image(v) for v in values):
        return None
    return _paths(values)


def _paths(values: Sequence[Any], where: str = "") -> list[Any]:
    """Paths, the bytes of files, or images of Pillow. Raises TypeError for others."""
    out: list[Any] = []
    for i, v in enumerate(values):
        if isinstance(v, bytes) or _is_image(v):
            out.append(v)
        elif isinstance(v, (str, os.PathLike)):
            out.append(str(os.fspath(v)))
        else:
            what = "empty" if v is None or v != v else type(v).__name__
            raise TypeError(f"row {i}{where}: {what}, want the path of a picture")
    return out


def _plain(v: Any) -> Any:
    return v.tolist() if hasattr(v, "tolist") else v


def _plain_of(v: Any) -> Any:
    """A number of NumPy in a list, as a number of Python."""
    if hasattr(v, "tolist"):
        return v.tolist()
    raise TypeError(f"{type(v).__name__} in a list, want numbers")


def _dims(shape: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"

