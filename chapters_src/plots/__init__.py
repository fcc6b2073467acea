"""Plots of this book: one matplotlib style, charts, tokens as colored chips, and drawings.

`style` holds the colors, `charts` the charts of the chapters that train, `chips` the tokens of chapter 03,
and `load_drawing` shows an SVG file of `chapters_src/drawings`. All work on light and dark pages, and color
is never the only cue.
"""

from chapters_src.plots.charts import confusion_matrix, loss_curves, reliability_diagram
from chapters_src.plots.chips import MAX_CHIPS, TokenChips, token_chips
from chapters_src.plots.drawings import Drawing, load_drawing
from chapters_src.plots.style import DARK, INK, PALETTE, PANEL, SEQUENTIAL, svg, use_style
