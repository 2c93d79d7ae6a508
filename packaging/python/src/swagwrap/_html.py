"""What a notebook shows. All text is escaped. Colours follow the page: light or dark."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._model import Model

# Colours of the page itself: text has its colour, and lines are transparent grey.
_STYLE = (
    "<style>.swagwrap{font:14px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}"
    ".swagwrap.card{max-width:46rem}.swagwrap b{font-weight:600}.swagwrap table{table-layout:auto!important;border-collapse:collapse;margin:.4rem 0;width:100%}"
    ".swagwrap th,.swagwrap td{text-align:left!important;padding:.2rem .8rem .2rem 0;border-bottom:1px solid rgba(128,128,128,.35);vertical-align:top;background:none}"
    ".swagwrap th{font-weight:600;white-space:nowrap}.swagwrap th[scope=row]{width:1%}.swagwrap td.n{text-align:right!important;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".swagwrap .wide{overflow-x:auto}.swagwrap .wide td{white-space:nowrap}.swagwrap p{margin:.3rem 0}.swagwrap .soft{opacity:.75}</style>"
)
# A page of the program asks whether it is to be dark. In a frame the answer is the frame's: Jupyter and VS Code may differ from the system.
_THEME = (
    "<style>[data-jp-theme-light=true] .swagwrap.page,.vscode-light .swagwrap.page{color-scheme:light}"
    "[data-jp-theme-light=false] .swagwrap.page,.vscode-dark .swagwrap.page{color-scheme:dark}</style>"
)
_WORDS = {"nll": "NLL", "ece": "ECE", "brier": "Brier score", "auroc": "AUROC", "rmse": "RMSE", "crps": "CRPS", "miou": "mean IoU"}
_SHARES = ("accuracy", "ece", "miou")


def block(*parts: str, kind: str = "") -> str:
    return f'{_STYLE}<div class="swagwrap {kind}">{"".join(parts)}</div>'


def paragraph(text: str, soft: bool = False) -> str:
    return f'<p{" class=soft" if soft else ""}>{escape(text)}</p>'


def rows(pairs: Iterable[tuple[str, str]]) -> str:
    """A table with a name in each row."""
    return "<table>" + "".join(f"<tr><th scope=row>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in pairs) + "</table>"


def grid(head: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    """A table with columns of numbers and texts."""
    lines = "".join("<tr>" + "".join(_cell(v) for v in row) + "</tr>" for row in body)
    return f'<div class=wide><table><tr>{"".join(f"<th>{escape(h)}</th>" for h in head)}</tr>{lines}</table></div>'


def _cell(v: Any) -> str:
    if v is None:
        return "<td>–</td>"
    if isinstance(v, bool) or not hasattr(v, "__float__"):
        return f"<td>{escape(str(v))}</td>"
    return f"<td class=n>{v if isinstance(v, int) else format(float(v), '.4g')}</td>"


def page(html: str, title: str) -> str:
    """A page of the program, in a frame of its own."""
    return (
        f'<iframe class="swagwrap page" title="{escape(title)}" sandbox="allow-scripts" srcdoc="{escape(html)}" '
        f'style="box-sizing:border-box;width:100%;height:40rem;border:1px solid rgba(128,128,128,.35);border-radius:4px"></iframe>{_THEME}'
    )


def picture(svg: str, name: str) -> str:
    """A figure of the program: as large as text, and never wider than the page."""
    return f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}" style="width:35rem;max-width:100%;height:auto">'


def figure_text(name: str, value: float) -> str:
    return f"{100 * value:.1f} %" if name in _SHARES else f"{value:.4f}"


def _count(members: str) -> int:
    """How many members a list such as 0-9,12 has."""
    ends = [part.split("-") for part in members.split(",") if part]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in ends)


def card(model: Model) -> str:
    """What a model is: task, figures, promises."""
    about = model.metadata
    names = model.class_names
    what = model.task
    if names:
        what += f": {', '.join(names[:8])}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    inputs = "; ".join(f"{i.name}: {i.words()}" for i in model.reader.inputs)
    pairs = [("task", what), ("members", str(_count(about.get("swagwrap.members", "")))), ("takes", inputs)]
    if (columns := model.reader.given or model.reader.columns) is not None:
        pairs.append(("columns", "; ".join(", ".join(c) for c in columns.values())))
    if calibration := model._session.json("calibration"):
        t = calibration.get("temperature")
        pairs.append(("calibration", calibration.get("method", "") + (f", T = {t:.4g}" if t else "")))
    if "swagwrap.threshold" in about:
        pairs.append(("threshold", about["swagwrap.threshold"]))
    promise = (model.guarantee or {}).get("promise")
    pairs.append(("promise", promise or "none"))
    shown = ""
    if figures := model.figures:
        body = []
        for f in figures["figures"]:
            low, high = f.get("low"), f.get("high")
            between = "–" if low is None else f"{figure_text(f['name'], low)} to {figure_text(f['name'], high)}"
            body.append([_WORDS.get(f["name"], f["name"]), figure_text(f["name"], f["value"]), between])
        shown = grid(["figure", "value", "95 % interval"], body)
        shown += paragraph(f"{figures['method']} on {figures['examples']:,} examples of {figures['data']}", soft=True)
    return block(f"<p><b>swagwrap {escape(type(model).__name__)}</b> {escape(os.path.basename(model.path))}</p>", rows(pairs), shown, kind="card")
