"""What `swagwrap score -o FILE.npz` writes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported where it is needed: the launcher imports this module, too, and must be quick
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Predictions:
    """Rows of predictions, in the order of the inputs; N of them, of C classes.

    Entropies are in nats. An example without a prediction has −1 and NaN, and says why in `error`.
    """

    path: NDArray[np.str_]
    """[N] the image, or `test.npz[17]` for an element of an array."""
    label: NDArray[np.int64] | None
    """[N], where the data has labels; −1 where an example has none."""
    prediction: NDArray[np.int64]
    """[N] the most probable class, from 0."""
    confidence: NDArray[np.float64]
    """[N] its averaged probability."""
    predictive_entropy: NDArray[np.float64]
    """[N] the entropy of the averaged probabilities."""
    expected_entropy: NDArray[np.float64]
    """[N] the average of the members' entropies."""
    mutual_information: NDArray[np.float64]
    """[N] their difference: what the members disagree about."""
    probs: NDArray[np.float64]
    """[N, C] the averaged probabilities."""
    member_probs: NDArray[np.float32] | None
    """[N, S, C] each member's, with --keep-members."""
    error: NDArray[np.str_] | None
    """[N] with --on-error skip; empty where there is a prediction."""
    columns: dict[str, NDArray[Any]]
    """All arrays of the file by name, those above among them."""
    meta: dict[str, Any] | None
    """FILE.meta.json, if it is there: ensemble, class names, how the data was preprocessed."""

    @property
    def class_names(self) -> list[str] | None:
        """The name of every class, class 0 first, where they are known."""
        names = (self.meta or {}).get("class_names")
        return None if not names else [str(n) for n in names]

    def __len__(self) -> int:
        return len(self.path)


_ALWAYS = ("path", "prediction", "confidence", "predictive_entropy", "expected_entropy", "mutual_information", "probs")


def read_predictions(path: str | os.PathLike[str]) -> Predictions:
    """Reads predictions of a classifier that `swagwrap score` wrote as `.npz`.

    ValueError says what a file is not. Nothing in it is run.
    """
    import numpy as np

    path = Path(path)
    with np.load(path, allow_pickle=False) as file:
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError(f"{path}: one array, want the .npz of swagwrap score")
        columns = {name: file[name] for name in file.files}
    missing = [name for name in _ALWAYS if name not in columns]
    if missing:
        raise ValueError(f"{path}: no array {', '.join(missing)}: want predictions of a classifier by swagwrap score")
    rows = len(columns["path"])
    for name, values in columns.items():
        if values.ndim == 0 or len(values) != rows:
            raise ValueError(f'{path}: array "{name}": shape {values.shape}, want {rows} rows as "path" has')
    beside = path.with_name(path.name + ".meta.json")
    meta = json.loads(beside.read_text()) if beside.exists() else None
    optional: dict[str, Any] = {name: columns.get(name) for name in ("label", "member_probs", "error")}
    return Predictions(**{name: columns[name] for name in _ALWAYS}, **optional, columns=columns, meta=meta)
