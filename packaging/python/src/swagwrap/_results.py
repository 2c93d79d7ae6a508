"""What commands of the program return in Python: tables and figures for notebooks."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _html
from ._files import new_files
from ._program import run, said
from ._tables import table
from ._words import ARGS, spoken

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._model import Model

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def paths(of: Paths) -> list[str]:
    """One path or several, as a list."""
    return [os.fspath(of)] if isinstance(of, (str, os.PathLike)) else [os.fspath(p) for p in of]


@dataclass(frozen=True)
class Figure:
    """A figure of the program."""

    name: str
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return _html.picture(self.svg, self.name)


@dataclass(frozen=True)
class Scores:
    """The rows of `swagwrap score`, N of them."""

    columns: dict[str, NDArray[Any]]
    """Arrays with N rows: docs/formats.md, Predictions."""
    meta: dict[str, Any]
    """What the run was made from, and what it found."""
    warnings: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.columns["path"])

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    @property
    def table(self) -> Any:
        """A row for each example: a DataFrame of pandas if that is installed, else a list of dicts. Arrays are lists."""
        return table(self.columns)

    def _repr_html_(self) -> str:
        shown = [name for name, v in self.columns.items() if v.ndim == 1]
        parts = [f"<p><b>swagwrap score</b> {len(self):,} examples</p>", *(_html.paragraph("warning: " + w) for w in self.warnings)]
        if promise := (self.meta.get("guarantee") or {}).get("coverage"):
            realised = self.meta.get("realised") or {}
            kept = (realised.get("coverage") or {}).get("covered")
            what = f"guaranteed coverage: {100 * promise['level']:.5g} %" if "level" in promise else f"guaranteed size of sets: at most {promise['size']:g} on average"
            parts.append(_html.paragraph(what + ("" if kept is None else f"; coverage of these examples: {kept:.1%}")))
            if realised.get("void"):
                parts.append(_html.paragraph("warning: the guarantee is void for these examples: " + "; ".join(realised.get("void_because") or [])))
        parts.append(_html.grid(shown, ([self.columns[n][i].item() for n in shown] for i in range(min(10, len(self))))))
        if len(self) > 10:
            parts.append(_html.paragraph(f"and {len(self) - 10:,} more", soft=True))
        return _html.block(*parts)


def score(ensemble: str | os.PathLike[str], data: Paths, *, args: Sequence[str] = ()) -> Scores:
    """Runs `swagwrap score`: every member of the ensemble over the data.

    >>> rows = swagwrap.score("ensemble.safetensors", "images/")
    >>> rows.table

    `data` is a path, or a list of paths. `args` are further arguments, such as `["--on-error", "skip"]`. Raises ProgramError.
    """
    import numpy as np

    with tempfile.TemporaryDirectory(prefix="swagwrap-") as work:
        out = os.path.join(work, "rows.npz")
        with spoken(ARGS):
            done = run("score", "-o", out, *args, os.fspath(ensemble), *paths(data), accept=(0, 3))
        with np.load(out, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
        return Scores(columns, json.loads(Path(out + ".meta.json").read_text(encoding="utf-8")), said(done.stderr)["warning"])


_SHOWN = ("accuracy", "nll", "ece", "brier", "auroc", "rmse", "crps", "miou", "perplexity")


def methods(figures: dict[str, Any]) -> dict[str, list[Any]]:
    """The figures of compare as columns, a row for each method."""
    rows = figures["methods"]
    names = [k for k in ("method", "members", "networks", *_SHOWN) if any(row.get(k) is not None for row in rows)]
    return {name: [row.get(name) for row in rows] for name in names}


@dataclass(frozen=True)
class Comparison:
    """What `swagwrap compare` found."""

    json: dict[str, Any]
    """All figures, with intervals, as `compare --json` prints them."""
    report: str
    """The page of the program, with tables and figures."""
    figures: dict[str, Figure]
    """The page's figures, by name."""
    warnings: list[str] = field(default_factory=list)

    @property
    def table(self) -> Any:
        """A row for each method: a DataFrame of pandas if that is installed, else a list of dicts."""
        return table(methods(self.json))

    @property
    def verdict(self) -> list[str]:
        """The answer, in sentences."""
        return [str(s) for s in self.json.get("verdict") or ()]

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the page as .html, or the figures as .json, which `swagwrap export --figures` reads.

        Raises `FileExistsError` if `path` is there with another content, unless `overwrite` says that it is replaced.
        """
        if not str(path).endswith((".html", ".json")):
            raise ValueError(f"{os.fspath(path)}: want a name that ends in .html or .json")
        text = json.dumps(self.json) if str(path).endswith(".json") else self.report
        with new_files(Path(path).parent, overwrite=overwrite) as work:
            Path(work, Path(path).name).write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        return "\n".join(["Comparison:", *self.verdict])

    def _repr_html_(self) -> str:
        return _html.page(self.report, "swagwrap compare")


def compare(
    posterior: Paths, test: str | os.PathLike[str], *, bn_data: str | os.PathLike[str] | None = None, val: str | os.PathLike[str] | None = None, args: Sequence[str] = ()
) -> Comparison:
    """Runs `swagwrap compare`: the methods on labelled test data.

    >>> found = swagwrap.compare("posterior.safetensors", "test.npz", bn_data="train.npz", val="val.npz")
    >>> found.verdict, found.table

    `posterior` is a path, or a list of the posteriors of several runs. `args` are further arguments, such as
    `["--members", "10"]`. Raises ProgramError.
    """
    more = [word for flag, value in (("--bn-data", bn_data), ("--val", val)) if value is not None for word in (flag, os.fspath(value))]
    with tempfile.TemporaryDirectory(prefix="swagwrap-") as work:
        report, plots = Path(work, "report.html"), Path(work, "plots")
        with spoken(ARGS):
            done = run("compare", "--json", "--report", report, "--plots", plots, *more, *args, *paths(posterior), os.fspath(test))
        figures = {p.stem: Figure(p.stem, p.read_text(encoding="utf-8")) for p in sorted(plots.glob("*.svg"))}
        # The commands to run next write beside the page, which is in a folder that disappears.
        found, page = (text.replace(work + os.sep, "") for text in (done.stdout, report.read_text(encoding="utf-8")))
        return Comparison(json.loads(found), page, figures, said(done.stderr)["warning"])


@dataclass(frozen=True)
class Tried(os.PathLike[str]):
    """The folder that `swagwrap try` made. It can be used as a path."""

    folder: Path

    def __fspath__(self) -> str:
        return str(self.folder)

    @property
    def json(self) -> dict[str, Any]:
        """All figures, with intervals, as `compare --json` prints them."""
        found: dict[str, Any] = json.loads((self.folder / "figures.json").read_text(encoding="utf-8"))
        return found

    @property
    def table(self) -> Any:
        """A row for each method: a DataFrame of pandas if that is installed, else a list of dicts."""
        return table(methods(self.json))

    @property
    def verdict(self) -> list[str]:
        """The answer, in sentences."""
        return [str(s) for s in self.json.get("verdict") or ()]

    @property
    def next(self) -> str:
        """What to do now: NEXT.md."""
        return (self.folder / "NEXT.md").read_text(encoding="utf-8")

    def model(self, **how: Any) -> Model:
        """The recommended ensemble, as `swagwrap.load` opens it. Raises FileNotFoundError if nothing is recommended."""
        from ._model import load

        path = self.folder / "ensemble.onnx"
        if not path.exists():
            raise FileNotFoundError(f"{path}: the comparison recommends no ensemble: {' '.join(self.verdict)}")
        opened: Model = load(path, **how)
        return opened

    def __repr__(self) -> str:
        return "\n".join([f"Tried({os.fspath(self.folder)!r}):", *self.verdict])

    def _repr_html_(self) -> str:
        return _html.page((self.folder / "report.html").read_text(encoding="utf-8"), "swagwrap try")
