"""Drawings for light and dark pages: the exchange of ink, and how wide they are shown."""

import re

import matplotlib.pyplot as plt
import pytest

from chapters_src import plots
from website.sphinx_extension import drawings


@pytest.fixture
def style():
    with plt.rc_context():
        plots.use_style(site=True)
        yield
    plt.close("all")


def test_in_the_dark_only_ink_and_paper_change():
    light = f"fill: {plots.INK.lower()}; stroke: {plots.PANEL}; fill: #440154; stroke: #3b68c8; id=#1c1c1cff"
    dark = "fill: #ced6dd; stroke: #121212; fill: #440154; stroke: #3b68c8; id=#1c1c1cff"
    assert drawings.in_the_dark(light) == dark


def test_a_drawing_keeps_its_lines_in_the_dark(style):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    light = plots.svg(figure)
    dark = drawings.in_the_dark(light)
    assert dark.count("#ced6dd") == light.count("#1c1c1c") > 0
    paths = [re.findall(r' d="([^"]*)"', drawing) for drawing in (light, dark)]
    assert paths[0] == paths[1]


@pytest.mark.parametrize(
    ("text", "smallest"), [("words", 8), ("$2^3$", 8 * 0.7), ("", 10)], ids=["words", "exponent", "no text"]
)
def test_the_smallest_text_decides_how_narrow_a_drawing_may_be(text, smallest, style):
    figure, axes = plt.subplots()
    axes.set_xlabel("ten points", fontsize=10)
    axes.set_ylabel(text, fontsize=8)
    drawing = plots.svg(figure)
    points = float(re.search(r'viewBox="0 0 (\S+) ', drawing)[1])
    width, least = drawings.widths(drawing)
    assert smallest * least / points == pytest.approx(9, abs=0.05)
    assert smallest * least / points >= 9
    assert width == pytest.approx(max(points * 4 / 3 * drawings.ZOOM, least), abs=1)


def test_a_drawing_without_text_may_be_as_narrow_as_it_likes(style):
    figure, axes = plt.subplots()
    axes.set_axis_off()
    assert drawings.widths(plots.svg(figure))[1] == 0


def test_tiny_text_widens_a_drawing_everywhere(style):
    figure, _ = plt.subplots()
    figure.suptitle("tiny", fontsize=3)
    width, least = drawings.widths(plots.svg(figure))
    assert width == least
