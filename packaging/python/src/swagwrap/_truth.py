"""Labels and targets that a caller gives: what they must be for a model. A mistake would only give a low score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNLABELLED = (-1, -100)
"""In pixels and tokens these count nowhere, as in the program."""


def _array(y: Any) -> NDArray[Any]:
    import numpy as np

    if y is None:
        raise ValueError("y: None, want what is true of each example")
    if hasattr(y, "detach"):  # a tensor of PyTorch
        y = y.detach().cpu().numpy()
    try:
        return np.asarray(y)
    except ValueError as e:
        raise ValueError("y: rows of different lengths, want an array. MultiLabelBinarizer of scikit-learn makes it of lists of labels; rows of tokens end with -100") from e


def _codes(y: Any, count: int, names: Sequence[str] | None) -> Any:
    """The numbers of categories that are texts, as pandas' Categorical and Polars' Enum have them: by the names of the model, or else in
    their own order, if there are as many as classes. Other labels come back unchanged."""
    kind = getattr(y, "dtype", None)
    all_of = getattr(kind, "categories", None)
    if all_of is None or type(kind).__name__ == "Categorical":  # those of Polars have the order in which they occur
        return y
    texts = [str(c) for c in all_of]
    if all(t.lstrip("+-").isdigit() for t in texts):
        return y
    if names and set(texts) <= set(names):
        number = {t: list(names).index(t) for t in texts}
    elif not names and len(texts) == count:
        number = {t: i for i, t in enumerate(texts)}
    else:
        return y
    values = list(y)
    if any(v is None or v != v for v in values):
        raise ValueError(f"y: row {next(i for i, v in enumerate(values) if v is None or v != v)} has no label")
    return [number[str(v)] for v in values]


def classes(y: Any, known: NDArray[Any], names: Sequence[str] | None, shape: Sequence[int] | None = None, ignored: Sequence[int] = ()) -> NDArray[Any]:
    """[N] classes, of which each must be known. `names` are those of the classes. `shape` is that of the predictions, if they are there.

    `ignored` are labels of pixels or tokens that count nowhere.
    """
    import numpy as np

    numbers = known.dtype.kind not in "UO"
    found = _array(_codes(y, len(known), names) if numbers else y)
    if not ignored and found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if not ignored and found.ndim == 2 and found.shape[1] == len(known):
        raise ValueError(f"y: shape {list(found.shape)}, want a class for each example: of one-hot rows y.argmax(axis=1)")
    if shape is not None and found.shape != tuple(shape):
        raise ValueError(f"y: shape {list(found.shape)}, want {list(shape)}, as the predictions of X have")
    if numbers and found.dtype.kind == "O":
        try:
            found = found.astype(np.float64)
        except (TypeError, ValueError):
            found = found.astype(str)
    elif not numbers:
        found = found.astype(str)
    strange = [v for v in np.unique(found).tolist() if v not in known.tolist() and v not in ignored]
    if strange:
        want = f"{known[0]} to {known[-1]}" if numbers and len(known) > 2 else ", ".join(map(str, known[:10]))
        remedy = ""
        if numbers and names and all(str(v) in names for v in strange):
            remedy = ": load(path, names=True) predicts names"
        elif not numbers and all(v.isdigit() for v in strange):
            remedy = ": load(path) predicts numbers"
        elif numbers and found.dtype.kind in "US":
            remedy = ": the model knows no names of classes. np.searchsorted(NAMES, y) makes numbers, with the names in the order of training" if not names else ""
        raise ValueError(f"y: {strange[0]!r} is no class, want {want}{remedy}")
    return found


def reduced(y: Any) -> NDArray[Any]:
    """Labels of masks that count classes from 1, as classes: 0 and 255 count nowhere, as in `score`."""
    import numpy as np

    found = _array(y)
    if found.dtype.kind not in "iuf":
        return found
    found = found.astype(np.int64) if found.dtype.kind in "iu" else found
    return np.where((found == 0) | (found == 255), -1, np.where(found > 0, found - 1, found))


def flags(y: Any, labels: int, count: int | None = None) -> NDArray[Any]:
    """[N, labels] of 0 and 1."""
    import numpy as np

    found = _array(y)
    if found.ndim == 1 and labels == 1:
        found = found[:, None]
    if found.ndim != 2 or found.shape[1] != labels or count is not None and len(found) != count:
        raise ValueError(f"y: shape {list(found.shape)}, want [{count or 'examples'}, {labels}] with 0 and 1 for each label")
    if found.dtype.kind not in "biuf" or not np.isin(found, (0, 1)).all():
        raise ValueError(f"y: {next(v for v in found.ravel().tolist() if v not in (0, 1))!r}, want 0 or 1 for each label")
    return found


def targets(y: Any, width: int, count: int | None = None) -> NDArray[np.float64]:
    """[N, width] finite numbers."""
    import numpy as np

    given = _array(y)
    found = given[:, None] if given.ndim == 1 else given
    if found.ndim != 2 or found.shape[1] != width or count is not None and len(found) != count:
        raise ValueError(f"y: shape {list(given.shape)}, want [{count or 'examples'}{f', {width}' if width > 1 else ''}]")
    try:
        numbers = found.astype(np.float64)
    except (TypeError, ValueError) as e:
        raise TypeError(f"y: {e}, want numbers") from e
    if not np.isfinite(numbers).all():
        raise ValueError(f"y: row {int(np.argwhere(~np.isfinite(numbers))[0][0])} is not finite: leave out examples without a target")
    return numbers


def weights(sample_weight: Any, count: int) -> NDArray[np.float64]:
    """[N] the weight of each example."""
    import numpy as np

    w = np.ones(count) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if w.shape != (count,):
        raise ValueError(f"sample_weight: shape {list(w.shape)}, want [{count}]")
    if not np.isfinite(w).all() or w.min() < 0 or w.sum() == 0:
        raise ValueError("sample_weight: want numbers from 0 up, and not all 0")
    return w

