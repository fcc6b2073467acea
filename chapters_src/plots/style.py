"""One matplotlib style for all charts, and its colors.

Color is never the only cue: lines also differ by their dashes. In a notebook a chart is a bitmap on an opaque
panel. On the site it is an SVG without a background: its lines work on light and dark pages, and its ink is
replaced on dark ones. Every chapter draws in this style.
"""

import io
from typing import TYPE_CHECKING

import matplotlib
from cycler import cycler

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL = "#FCFCFA"  # Background of every chart in a notebook; on the site, the color of the page.
INK = "#1C1C1C"  # Text and axes.
DARK = {INK: "#CED6DD", PANEL: "#121212"}  # Their replacements on the site's dark pages.
# Every line color has a contrast of at least 3:1 against light and dark pages, and readers with any of the
# three color-vision deficiencies can tell the first six apart. The tests compute both.
PALETTE = ("#3B68C8", "#D9730D", "#0F9D6A", "#C564B1", "#7645EC", "#7F5E1D", "#6B7280")
SEQUENTIAL = "viridis"  # Perceptually uniform, also for color-blind readers.
DENSE = 100  # More marks of one kind are rasterized inside the SVG.

_DASHES = (
    "-",
    (0, (6, 2)),  # offset, then lengths drawn and left out, in line widths
    (0, (1, 1)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (12, 2)),
    (0, (2, 3)),
)


def use_style(site: bool = False) -> None:
    """Set the style of all later charts in this process. A notebook's `setup` calls it.

    Color and dash cycle in step. Where single points matter, mark them: `plot(x, y, marker="o")`. A notebook
    that is executed for the `site` shows figures as `svg` draws them.
    """
    background = "none" if site else PANEL
    matplotlib.rcParams.update(
        {
            "figure.figsize": (4.6, 3.0),  # inches; narrow enough for a phone to show the text
            "figure.dpi": 200,
            "figure.labelsize": 10,
            "figure.titlesize": 10,
            "figure.facecolor": background,
            "figure.constrained_layout.use": True,
            "savefig.dpi": 200,
            "savefig.facecolor": background,
            "savefig.transparent": False,
            "svg.hashsalt": "the same names inside each time",
            "font.size": 10,
            "text.color": INK,
            "axes.facecolor": background,
            "axes.edgecolor": INK,
            "axes.formatter.min_exponent": 7,  # An exponent would be too small to read.
            "axes.labelcolor": INK,
            "axes.titlesize": 10,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            **{f"axes3d.{axis}axis.panecolor": (0.5, 0.5, 0.5, 0.1) for axis in "xyz"},
            "boxplot.boxprops.color": INK,
            "boxplot.capprops.color": INK,
            "boxplot.flierprops.markeredgecolor": INK,
            "boxplot.whiskerprops.color": INK,
            "grid.color": PALETTE[-1],
            "patch.edgecolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "xtick.labelsize": 10,
            "ytick.labelsize": 10,
            "legend.fontsize": 10,
            "legend.frameon": False,
            "legend.handlelength": 3,
            "lines.linewidth": 1.5,
            "lines.markersize": 4,
            "image.cmap": SEQUENTIAL,
            "axes.prop_cycle": cycler(color=PALETTE, linestyle=_DASHES),
        }
    )
    if site:
        _show_as_svg()


def svg(figure: "Figure") -> str:
    """Draw a figure as the site shows it: as the text of an SVG file, the same for the same figure.

    Dense collections are rasterized, and stay marked as that.
    """
    from matplotlib.collections import Collection

    for marks in figure.findobj(Collection):
        in_space = hasattr(marks, "do_3d_projection")  # which matplotlib cannot rasterize
        if not in_space and max(len(marks.get_offsets()), len(marks.get_paths())) > DENSE:
            marks.set_rasterized(True)
    file = io.StringIO()
    figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    return file.getvalue()


def _show_as_svg() -> None:
    """Make this kernel, if there is one, show figures as `svg` draws them instead of as PNG."""
    from IPython import get_ipython

    if (shell := get_ipython()) is not None:
        from matplotlib.figure import Figure
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats()  # None of the built-in formats.
        shell.display_formatter.formatters["image/svg+xml"].for_type(Figure, svg)
