"""score, compare and try_ for notebooks, and errors of the program."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import swagwrap as sw
from ensembles import Made
from swagwrap._program import said

Maker = Callable[[str], Made]


def test_score(made: Maker) -> None:
    m = made("table")
    rows, want = sw.score(m.ensemble, m.data), m.score()
    assert set(rows.columns) == set(want) and len(rows) == 60 and rows.meta["rows"] == 60
    assert rows.table["prediction"].tolist() == rows["prediction"].tolist() == want["prediction"].tolist()
    page = rows._repr_html_()
    assert "guaranteed coverage: 80 %; coverage of these examples: " in page and "and 50 more" in page
    assert "path" in sw.score(m.ensemble, [m.data], args=["--topk", "2"]).columns


def test_compare(made: Maker, tmp_path: Path) -> None:
    m = made("table")
    found = sw.compare(m.ensemble.with_name("p.safetensors"), m.data, args=["-n", "3", "--methods", "swa,swag"])
    assert found.table["method"].tolist() == ["SWA", "SWAG"] and {"accuracy", "nll"} <= set(found.table.columns)
    assert found.verdict and "\n".join(found.verdict) in repr(found)
    assert found.figures and all(f._repr_svg_().lstrip().startswith(("<svg", "<?xml")) and f._repr_html_().startswith("<img") for f in found.figures.values())
    page = found._repr_html_()
    assert "swagwrap-" not in page and "swagwrap-" not in str(found.json["next"])  # the folder that the page was in
    assert page.startswith("<iframe") and "<script" not in page and "srcdoc" in page
    found.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == found.report
    found.save(tmp_path / "page.html")  # the same again
    with pytest.raises(ValueError, match="html or .json"):
        found.save(tmp_path / "page.txt")
    (tmp_path / "figures.json").write_text("my own")
    with pytest.raises(FileExistsError, match="figures.json"):
        found.save(tmp_path / "figures.json")
    assert (tmp_path / "figures.json").read_text() == "my own"
    found.save(tmp_path / "figures.json", overwrite=True)
    assert json.loads((tmp_path / "figures.json").read_text()) == found.json and len(list(tmp_path.iterdir())) == 2


def test_errors_of_the_program(made: Maker, tmp_path: Path) -> None:
    m = made("table")
    with pytest.raises(sw.ProgramError) as caught:
        sw.score(m.ensemble.with_name("p.safetensors"), m.data)
    e = caught.value
    assert e.code == 65 and "want an ensemble" in e.message and "swagwrap sample" in e.hint and "hint: " in str(e)
    again = pickle.loads(pickle.dumps(e))
    assert (again.code, again.message, again.hint, str(again)) == (e.code, e.message, e.hint, str(e))
    with pytest.raises(sw.ProgramError) as caught:
        sw.compare(m.ensemble, tmp_path / "missing.csv", args=["--bogus"])
    assert caught.value.code == 64
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(sw.ProgramError, match="bad.png"):
        sw.load(made("pictures").model).predict([os.fspath(tmp_path / "bad.png")])


def test_said() -> None:
    text = "note\nwarning: one\n         and more\nerror: two\nhint: three\nhint: four\n      five\nnote: six\n"
    assert said(text) == {"error": ["two"], "hint": ["three", "four five"], "warning": ["one and more"], "note": ["six"]}


def test_a_stream_that_ends_early(made: Maker) -> None:
    """The program is ended when nobody wants more batches."""
    m = made("pictures")
    model = sw.load(m.model, batch_size=2)
    batches = model.iterate(m.data)
    names, first = next(batches)
    assert names == ["data.npz[0]", "data.npz[1]"] and first["prob"].shape == (2, 4)
    batches.close()
    assert len(np.concatenate([got["prob"] for _, got in model.iterate(m.data)])) == 60
