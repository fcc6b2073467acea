"""One matplotlib style for all charts, and its colours.

Colour is never the only cue: lines also differ by their dashes. Charts bring their own opaque panel, so they
read on a dark page as on a light one. Every chapter draws in this style.
"""

import matplotlib
from cycler import cycler

PANEL = "#FCFCFA"  # Background of every chart: opaque, so that the chart reads on a dark page too.
INK = "#1C1C1C"  # Text and axes.
# Every colour for lines has a contrast of at least 3:1 against the panel, and the first five stay apart for
# readers with any of the three colour-vision deficiencies. The tests compute both.
PALETTE = ("#0B4FA3", "#D9730D", "#0F9D6A", "#B668A2", "#1C1C1C", "#8A4B14", "#6B7280")
SEQUENTIAL = "viridis"  # Its lightness grows evenly with the value, with or without colour vision.

_DASHES = (
    "-",
    (0, (6, 2)),  # offset, then lengths drawn and left out, in line widths
    (0, (1, 1)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (12, 2)),
    (0, (2, 3)),
)


def use_style() -> None:
    """Set the style of all charts that follow in this process. A notebook's `setup` calls it.

    Colour and dash go round together. Where single points matter, mark them: `plot(x, y, marker="o")`.
    """
    matplotlib.rcParams.update(
        {
            "figure.figsize": (6.4, 3.8),  # inches
            "figure.dpi": 160,
            "figure.facecolor": PANEL,
            "figure.constrained_layout.use": True,
            "savefig.dpi": 160,
            "savefig.facecolor": PANEL,
            "savefig.transparent": False,
            "font.size": 11,
            "text.color": INK,
            "axes.facecolor": PANEL,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "axes.labelsize": 11,
            "axes.titlesize": 12,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "xtick.color": INK,
            "xtick.labelsize": 10,
            "ytick.color": INK,
            "ytick.labelsize": 10,
            "legend.fontsize": 10,
            "legend.frameon": False,
            "legend.handlelength": 3,
            "lines.linewidth": 1.8,
            "lines.markersize": 5,
            "image.cmap": SEQUENTIAL,
            "axes.prop_cycle": cycler(color=PALETTE, linestyle=_DASHES),
        }
    )
