"""The notebooks of docs, as Jupyter runs them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).parents[3] / "docs"


def run(name: str, folder: Path) -> tuple[list[Any], str]:
    """Runs a notebook in a folder. Returns its outputs, and what it printed."""
    notebook = nbformat.read(DOCS / name, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)  # they would hold paths of a machine
    NotebookClient(notebook, timeout=None, startup_timeout=3600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return shown, "".join(o["text"] for o in shown if "text" in o)


def test_training(tmp_path: Path) -> None:
    """From the training loop to sets. What is deployed is less sure than the network was, and has a lower NLL."""
    shown, printed = run("training.ipynb", tmp_path)
    before, after = (float(re.search(rf"^{name}: NLL ([0-9.]+), ", printed, re.M)[1]) for name in ("your network", "recommended"))  # type: ignore[index]
    covered, size = re.search(r"^sets contain the digit: ([0-9.]+)%, digits in a set: ([0-9.]+)$", printed, re.M).groups()  # type: ignore[union-attr]
    assert after < before and float(covered) > 90 and 0.9 < float(size) < 3
    assert "\nDeploy " in printed and "trajectory: usable" in printed and "parity: the exported graph, largest difference" in printed and "arning" not in printed
    assert any("What swagwrap does" in o.get("data", {}).get("text/html", "") for o in shown)
    assert not list(tmp_path.iterdir())


def test_notebook() -> None:
    shown, printed = run("python.ipynb", DOCS)
    pages = "".join(o["data"].get("text/html", "") for o in shown if "data" in o)
    assert "swagwrap compare" in pages and "sets contain the true class of at least 95 % of new examples" in pages and "95 % interval" in pages
    assert any("image/svg+xml" in o.get("data", {}) for o in shown) and any("image/png" in o.get("data", {}) for o in shown)
    assert any("sets contain the digit: 9" in o.get("text", "") for o in shown)
    assert "error" not in printed and "arning" not in printed


def test_the_page_has_the_calls() -> None:
    """The Python of docs/python.md names what there is."""
    import swagwrap

    page = (DOCS / "python.md").read_text()
    for name in ("load", "try_", "compare", "score", "average", "ProgramError"):
        assert f"swagwrap.{name}" in page and hasattr(swagwrap, name)
    for name in ("predict_proba", "predict", "predict_set", "uncertainty", "predict_interval", "predict_std", "abstain", "table", "outputs", "iterate"):
        assert f"`{name}(" in page and any(hasattr(c, name) for c in (swagwrap.Classifier, swagwrap.Regressor))
