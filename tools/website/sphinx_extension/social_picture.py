"""The picture that a shared link to the book shows: its name, and boxes joined as attention joins tokens."""

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

SIZE = (1200, 630)  # pixels, what sites that show links ask for
WORDS = ("it", "attends", "to", "what", "matters")
COLORS = ("#5aa9e6", "#f08a3c", "#2fc08f")
PAPER, INK, BOX = "#121212", "#f3f4f5", "#3a414b"
MARGIN, RIGHT = 80, 1120
BOX_SIZE = (150, 40)


def draw(path: Path, name: str) -> None:
    """Draw the picture.

    Args:
        path: where to write it, as a PNG file; its folder has to be there.
        name: of the book. What comes after a comma goes on a line of its own.
    """
    figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, SIZE[0]), ylim=(SIZE[1], 0))
    axes.set_axis_off()
    title = name.replace(", ", ",\n")
    axes.text(MARGIN, 70, title, color=INK, size=52, weight="bold", va="top", linespacing=1.25)
    axes.text(MARGIN, 268, "A book of executed notebooks", color=INK, size=26, va="top")
    places = [348 + i * 50 for i in range(len(WORDS))]
    _lines(axes, places)
    for place, word in zip(places, WORDS, strict=True):
        for left in (MARGIN, RIGHT - BOX_SIZE[0]):
            _box(axes, left, place, word)
    FigureCanvasAgg(figure).print_png(path)


def _lines(axes, places: list[int]) -> None:
    """A curve from each box on the left to each on the right: the opaquer, the more weight."""
    rng = np.random.default_rng(3)
    left, right = MARGIN + BOX_SIZE[0], RIGHT - BOX_SIZE[0]
    t = np.linspace(0, 1, 60)
    step = t * t * (3 - 2 * t)
    for i, start in enumerate(places):
        weights = rng.dirichlet(np.full(len(places), 0.35))
        for weight, end in zip(weights, places, strict=True):
            y = start + (end - start) * step + BOX_SIZE[1] / 2
            axes.plot(
                left + (right - left) * t, y, color=COLORS[i % 3], lw=5, alpha=weight, solid_capstyle="butt"
            )


def _box(axes, left: float, top: float, word: str) -> None:
    style = "round,pad=0,rounding_size=8"
    axes.add_patch(FancyBboxPatch((left, top), *BOX_SIZE, boxstyle=style, facecolor=BOX, linewidth=0))
    middle = left + BOX_SIZE[0] / 2, top + BOX_SIZE[1] / 2
    axes.text(*middle, word, color=INK, size=17, ha="center", va="center")
