"""The notebook of docs/python.md, as Jupyter runs it."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).parents[3] / "docs"


def test_notebook() -> None:
    notebook = nbformat.read(DOCS / "python.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)  # they would hold paths of a machine
    NotebookClient(notebook, timeout=None, startup_timeout=3600, kernel_name="python3", resources={"metadata": {"path": str(DOCS)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pages = "".join(o["data"].get("text/html", "") for o in shown if "data" in o)
    assert "swagwrap compare" in pages and "sets contain the true class of at least 95 % of new examples" in pages and "95 % interval" in pages
    assert any("image/svg+xml" in o.get("data", {}) for o in shown) and any("image/png" in o.get("data", {}) for o in shown)
    assert any("sets contain the digit: 9" in o.get("text", "") for o in shown)
    printed = "".join(o["text"] for o in shown if "text" in o)
    assert "error" not in printed and "arning" not in printed


def test_the_page_has_the_calls() -> None:
    """The Python of docs/python.md names what there is."""
    import swagwrap

    page = (DOCS / "python.md").read_text()
    for name in ("load", "try_", "compare", "score", "average", "ProgramError"):
        assert f"swagwrap.{name}" in page and hasattr(swagwrap, name)
    for name in ("predict_proba", "predict", "predict_set", "uncertainty", "predict_interval", "predict_std", "abstain", "table", "outputs", "iterate"):
        assert f"`{name}(" in page and any(hasattr(c, name) for c in (swagwrap.Classifier, swagwrap.Regressor))
