"""The pictures of chapter 01: a timeline of models, one body with many heads, and the libraries around them.

Each is drawn from a table, so that a new row in a data file adds a box to the picture.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from chapters_src.plots.drawing import Box, Diagram

if TYPE_CHECKING:
    import pandas as pd

_WIDTH = 424
_MARGIN = 4
_YEAR = 32  # Width of the column of years.
_GAP = 5
_COLUMNS = {  # Timeline columns: from the heading to the kind and the width of the boxes.
    "encoder": ("attention", 79),
    "decoder": ("feed_forward", 91),
    "encoder-decoder": ("norm", 99),
    "other": ("lookup", 95),
}
_ARROW = 26  # Room between two rows of boxes for an arrow.


class Head(NamedTuple):
    """A head and its task."""

    task: str
    reads: str  # Which hidden states.
    shape: str  # Of its matrix, such as "384 × 2".
    gives: str


def timeline(models: "pd.DataFrame") -> Diagram:
    """Draw a timeline of models, one row per year, that readers of the site can zoom.

    The table is that of `data.models.load`, with the columns "year" and "family". A family without its own
    column is written below the name.

    Raises:
        ValueError: there are no models.
    """
    if models.empty:
        raise ValueError("there are no models to draw")
    years = range(int(models["year"].min()), int(models["year"].max()) + 1)
    sheet = Diagram(title="A timeline of transformers", description="", caption="", width=_WIDTH)
    spans, left = {}, _MARGIN + _YEAR + _GAP
    for heading, (_, width) in _COLUMNS.items():
        spans[heading] = (left, left + width)
        sheet.box("data", spans[heading], _MARGIN, ("", heading), height=28)
        left += width + _GAP
    top, said = _MARGIN + 28 + _GAP, []
    for year in years:
        of_year = models[models["year"] == year]
        bottom = top + 24
        sheet.box("data", (_MARGIN, _MARGIN + _YEAR), top, ("", str(year)), height=24)
        for heading, (kind, _) in _COLUMNS.items():
            line = top
            for name, family in of_year["family"].items():
                if (family if family in _COLUMNS else "other") != heading:
                    continue
                lines = [("", name)] if family in _COLUMNS else [("", name), ("", family)]
                box = sheet.box(kind, spans[heading], line, *lines, height=9 + 15 * len(lines))
                line = box.bottom + 3
            bottom = max(bottom, line - 3)
        families = of_year["family"].items()
        told = ", ".join(f"{name} ({family})" for name, family in families)
        said.append(f"{year}: {told or 'none of this file'}.")
        top = bottom + 2 * _GAP
    sheet.description = f"A table with a row for each year. {' '.join(said)}"
    sheet.caption = (
        f"{len(models)} models by the year in which they came, from {years[0]} to {years[-1]}; chapter 11 "
        "tells what each of them changed."
    )
    return sheet


def one_body(body: str, note: str, heads: Sequence[Head]) -> Diagram:
    """Draw one body with a head for each task, one to five from left to right; a note says what the body has.

    Raises:
        ValueError: there are no heads, or more than five.
    """
    if not 1 <= len(heads) <= 5:
        raise ValueError(f"{len(heads)} heads: there is room for 1 to 5")
    told = "; ".join(
        f"{h.task}: it reads {h.reads}, has {h.shape.removesuffix(' weights')} weights and gives {h.gives}"
        for h in heads
    )
    sheet = Diagram(
        title="One body, many heads",
        description=(
            f"At the top the tokens of a text go into the body, {body}, {note}. Below it are the heads, side "
            f"by side, each with an arrow from the body. {told}."
        ),
        caption=(
            "One kind of body under every task, with a small update for each but the search; only "
            "the head differs altogether. A head reads one hidden state or all of them."
        ),
        width=_WIDTH,
    )
    whole = (_MARGIN, _WIDTH - _MARGIN)
    tokens = sheet.box("data", whole, _MARGIN, ("tokens of a text", ""))
    trunk = sheet.box("attention", whole, tokens.bottom + _ARROW, (body, note))
    _down(sheet, tokens, trunk)
    width = (_WIDTH - 2 * _MARGIN - (len(heads) - 1) * _GAP) / len(heads)
    for i, head in enumerate(heads):
        left = _MARGIN + i * (width + _GAP)
        span = (left, left + width)
        lines = (("", head.reads), ("", head.shape))
        layer = sheet.box("feed_forward", span, trunk.bottom + _ARROW, *lines)
        out = sheet.box("data", span, layer.bottom + _ARROW, ("", head.task), ("", head.gives))
        _down(sheet, trunk, layer)
        _down(sheet, layer, out)
    return sheet


def ecosystem(libraries: "pd.DataFrame") -> Diagram:
    """Draw the path of a model and its data through the libraries of `data.models.libraries`.

    Raises:
        ValueError: a library gives to one that is not one level below it.
    """
    sheet = Diagram(
        title="The libraries around a model",
        description=" ".join(
            f"{name}: {row['does']}"
            + (f"; an arrow leads to {', '.join(row['gives_to'].split())}." if row["gives_to"] else ".")
            for name, row in libraries.iterrows()
        ),
        caption=(
            "The way of a model and its data, from the Hub down to the arithmetic: an arrow leads to where "
            "they go next. It does not say which library imports which; Transformers uses Accelerate, and "
            "both use PyTorch."
        ),
        width=_WIDTH,
    )
    boxes: dict[str, Box] = {}
    top = _MARGIN
    for _, row in libraries.groupby("level", sort=True):
        width = (_WIDTH - 2 * _MARGIN - (len(row) - 1) * _GAP) / len(row)
        for i, (name, facts) in enumerate(row.iterrows()):
            left = _MARGIN + i * (width + _GAP)
            kind = "lookup" if facts["level"] == 0 else "attention" if len(row) == 1 else "feed_forward"
            boxes[name] = sheet.box(kind, (left, left + width), top, (name, ""), ("", facts["does"]))
        top = boxes[name].bottom + _ARROW
    for name, facts in libraries.iterrows():
        for other in facts["gives_to"].split():
            if other not in boxes or libraries.loc[other, "level"] != facts["level"] + 1:
                raise ValueError(f"{name} gives to {other!r}, which is not one level below it")
            _down(sheet, boxes[name], boxes[other])
    return sheet


def _down(sheet: Diagram, above: Box, below: Box) -> None:
    x = min(above, below, key=lambda box: box.width).middle[0]
    sheet.arrow((x, above.bottom), (x, below.top))
