"""The table of models of chapter 11, in four parts: ideas, sizes, designs, data and ranking.

The page holds the whole table. The script beside this file (`model_table.js`) shows one part at a time,
sorts, filters, and puts two models side by side. Without it, and on paper, the parts stand one below the
other.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_NONE = "–"  # Of what is not known, or does not apply.
_STYLE = """
.model-table { margin: 1em 0; padding: 0; color: inherit; max-width: 100%; font-size: .9em; }
.model-table fieldset, .model-table .mt-line { border: 0; margin: .3em 0; padding: 0; display: flex;
  flex-wrap: wrap; gap: .3em 1.1em; align-items: center; }
.model-table legend { float: left; font-weight: bold; padding: 0; margin: 0 1em 0 0; font-size: 1em;
  width: auto; }
.model-table label { display: inline-flex; gap: .4em; align-items: center; min-height: 28px; margin: 0; }
.model-table :is(input[type="search"], select, .mt-line button) { font: inherit; color: inherit;
  background: transparent; border: 1px solid currentColor; border-radius: .3em; padding: .2em .4em;
  min-height: 28px; max-width: 100%; }
.model-table option { color: #222832; background: #fff; }
.model-table :is(input, select, button):focus-visible { outline: 2px solid currentColor;
  outline-offset: 2px; }
.model-table table { border-collapse: collapse; width: 100%; margin: .6em 0 1.2em; display: table; }
.model-table caption { caption-side: top; text-align: start; font-weight: bold; color: inherit; padding: 0; }
.model-table :is(th, td) { text-align: start; vertical-align: top; padding: .3em .5em;
  border-bottom: 1px solid rgba(107,114,128,.45); font-weight: normal; }
.model-table thead th { vertical-align: bottom; font-weight: bold; border-bottom-width: 2px; }
.model-table tbody th { min-width: 6.5em; }
.model-table tbody th a { font-weight: bold; }
.model-table .mt-number { text-align: end; font-variant-numeric: tabular-nums; }
.model-table td.mt-number { white-space: nowrap; }
.model-table thead button { font: inherit; color: inherit; background: none; border: 0; padding: 2px 0;
  text-align: inherit; cursor: pointer; min-height: 24px; }
.model-table thead button::after { content: " \\21C5"; }
.model-table [aria-sort="ascending"] button::after { content: " \\2191"; }
.model-table [aria-sort="descending"] button::after { content: " \\2193"; }
.model-table figcaption { font-style: italic; margin-top: .5em; text-align: start; }
@media screen { .model-table :is([hidden], thead span) { display: none !important; } }
@media print {
  .model-table table { display: table !important; }
  .model-table tr { display: table-row !important; }
  .model-table :is(.mt-tools, .mt-compare, thead button) { display: none !important; }
}
@media screen and (max-width: 700px) {
  .model-table thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .model-table thead button { visibility: hidden; }
  .model-table :is(table, tbody, tbody tr, caption) { display: block; }
  .model-table tbody tr { padding: .5em 0; border-bottom: 1px solid rgba(107,114,128,.6); }
  .model-table tbody :is(th, td) { display: grid; grid-template-columns: 8em 1fr; gap: .6em; border: 0;
    padding: .1em 0; overflow-wrap: anywhere; text-align: start !important; white-space: normal !important; }
  .model-table tbody th { display: block; font-size: 1.1em; }
  .model-table td::before { content: attr(data-label); }
}
"""


@dataclass(frozen=True)
class _Column:
    """A column: its title, and the text, the link and the value to sort by that a model has there."""

    title: str
    key: str
    link: str = ""
    millions: bool = False
    number: bool = False

    def cell(self, row: Mapping[str, Any]) -> tuple[str, str, str]:
        value = row[self.key]
        if str(value) in ("", "None", "nan", "<NA>"):
            return _NONE, "", ""
        if self.millions:
            text = f"{float(value) / 1e6:,.1f}".removesuffix(".0")
            return text, row.get(self.link) or "", str(value)
        text = f"{int(value):,}" if self.number else str(value)
        return text, row.get(self.link) or "", str(value) if self.number or self.key == "year" else ""


_PARTS = {
    "ideas": (_Column("year", "year"), _Column("after", "parent"), _Column("what is new", "idea")),
    "sizes": (
        _Column("kind", "family"),
        _Column("parameters, millions", "counted", millions=True),
        _Column("at work, millions", "at_work", millions=True),
        _Column("published, millions", "paper_parameters", "source", millions=True),
        _Column("vocabulary", "vocabulary", number=True),
        _Column("context", "context", number=True),
    ),
    "designs": (
        _Column("asked for", "objective"),
        _Column("positions", "positions"),
        _Column("norm", "norm"),
        _Column("in the library", "library"),
    ),
    "data and ranking": (
        _Column("trained on", "data", "data_source"),
        _Column("ranked on", "ranked", "ranked_source"),
    ),
}


@dataclass(frozen=True)
class ModelTable:
    """A table of models, for a notebook. Made by `model_table`."""

    rows: dict[str, dict[str, Any]]  # By name, the columns of the file.
    caption: str

    def _repr_html_(self) -> str:
        script = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
        tables = "".join(self._part(name, columns) for name, columns in _PARTS.items())
        return (
            f'<figure class="model-table"><style>{_STYLE}</style>{tables}'
            f"<figcaption>{html.escape(self.caption)}</figcaption><script>{script}</script></figure>"
        )

    def _part(self, name: str, columns: tuple[_Column, ...]) -> str:
        heads = "".join(_head(column) for column in columns)
        body = "".join(self._row(model, row, columns) for model, row in self.rows.items())
        return (
            f'<table role="table"><caption>{name.capitalize()}</caption>'
            '<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">model</th>'
            f'{heads}</tr></thead><tbody role="rowgroup">{body}</tbody></table>'
        )

    def _row(self, model: str, row: Mapping[str, Any], columns: tuple[_Column, ...]) -> str:
        size = f" {html.escape(row['size'])}" if row["size"] else ""
        cells = "".join(_cell(column, row) for column in columns)
        name = _linked(model, row["paper"])
        return f'<tr role="row"><th role="rowheader" scope="row">{name}{size}</th>{cells}</tr>'

    def __repr__(self) -> str:
        return f"{self.caption}\n{', '.join(self.rows)}"


def model_table(models: "pd.DataFrame", counted: Mapping[str, int], caption: str) -> ModelTable:
    """Make a table of models, in the order of the years.

    `models` are the result of `data.models.load`, with the columns that its card describes; `counted` has the
    parameters of each model that has been counted; the caption is a sentence about what is shown.
    """
    by_year = models.sort_values("year", kind="stable")
    rows = {name: dict(row) | {"counted": counted.get(name)} for name, row in by_year.iterrows()}
    return ModelTable(rows, caption)


def _head(column: _Column) -> str:
    of_numbers = ' class="mt-number"' if column.millions or column.number else ""
    return f'<th role="columnheader" scope="col"{of_numbers}>{html.escape(column.title)}</th>'


def _cell(column: _Column, row: Mapping[str, Any]) -> str:
    text, address, value = column.cell(row)
    of_numbers = ' class="mt-number"' if column.millions or column.number else ""
    sort = f' data-value="{html.escape(value)}"' if value else ""
    label = html.escape(column.title)
    return f'<td role="cell" data-label="{label}"{of_numbers}{sort}>{_linked(text, address)}</td>'


def _linked(text: str, address: str) -> str:
    return f'<a href="{html.escape(address)}">{html.escape(text)}</a>' if address else html.escape(text)
