"""Contrast and color vision are computed, not looked at."""

import io
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from color_science import VISION, contrast, lab, linear, rgb

from chapters_src import plots

SVG = "{http://www.w3.org/2000/svg}"


def test_the_oracles_know_black_and_white():
    assert contrast(rgb("black"), rgb("white")) == pytest.approx(21)
    assert lab(linear(rgb("white"))) == pytest.approx([100, 0, 0], abs=0.01)


PAPERS = {"notebook": plots.PANEL, "light page": "#FFFFFF", "dark page": "#121212"}


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("color", plots.PALETTE)
def test_lines_stand_out_everywhere(color, paper):
    assert contrast(rgb(color), rgb(PAPERS[paper])) >= 3


@pytest.mark.parametrize("paper", PAPERS)
def test_text_stands_out_everywhere(paper):
    ink = plots.DARK[plots.INK] if paper == "dark page" else plots.INK
    assert contrast(rgb(ink), rgb(PAPERS[paper])) >= 7


def test_what_looks_like_the_page_does_so_in_the_dark():
    assert plots.DARK[plots.PANEL] == PAPERS["dark page"]


@pytest.mark.parametrize("vision", VISION)
def test_the_first_six_colors_stay_apart(vision):
    seen = [lab(VISION[vision] @ linear(rgb(color))) for color in plots.PALETTE[:6]]
    for a, b in itertools.combinations(range(6), 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 20, (plots.PALETTE[a], plots.PALETTE[b])


@pytest.mark.parametrize("vision", VISION)
def test_the_colors_of_heatmaps_grow_lighter_evenly(vision):
    shown = matplotlib.colormaps[plots.SEQUENTIAL](np.linspace(0, 1, 32))[:, :3]
    lightness = np.array([lab(VISION[vision] @ linear(color))[0] for color in shown])
    assert (np.diff(lightness) > 0).all()
    assert lightness[-1] - lightness[0] > 60


def test_lines_differ_by_more_than_color(style):
    _, axes = plt.subplots()
    lines = [axes.plot([0, 1], [0, i])[0] for i in range(len(plots.PALETTE))]
    assert [line.get_color() for line in lines] == list(plots.PALETTE)
    assert len({str(line._unscaled_dash_pattern) for line in lines}) == len(lines)


def test_a_figure_brings_an_opaque_panel_in_high_resolution(style):
    figure, axes = plt.subplots()
    axes.plot([1, 2], label="line")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    buffer.seek(0)
    picture = plt.imread(buffer)  # (height, width, 4)
    assert picture.shape[1:] == (920, 4)  # pixels; red, green, blue and opacity
    assert picture[..., 3].min() == 1
    for corner in (picture[0, 0], picture[-1, -1], picture[0, -1]):
        assert corner[:3] == pytest.approx(rgb(plots.PANEL), abs=1e-6)


def test_no_text_is_smaller_than_ten_points(style):
    figure, axes = plt.subplots()
    axes.plot([1, 2], label="line")
    axes.set(title="title", xlabel="x", ylabel="y")
    axes.legend()
    figure.canvas.draw()
    texts = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
    assert len(texts) > 8
    assert min(text.get_fontsize() for text in texts) >= 10


def test_text_is_readable_on_a_narrow_phone(style):
    width = plt.figure().get_size_inches()[0] * 72  # points
    assert 10 * 312 / width >= 9  # CSS pixels; the text column of a phone of 360


def many_kinds_of_charts() -> matplotlib.figure.Figure:
    figure, axes = plt.subplots(2, 3)
    axes[0, 0].bar(["a", "b"], [1, 2])
    axes[0, 1].hist([1, 2, 2, 3], histtype="step")
    axes[0, 2].scatter([1, 2], [2, 1])
    axes[1, 0].errorbar([1, 2], [2, 1], yerr=0.1)
    axes[1, 1].boxplot([[1, 2, 3], [2, 3, 9]])
    axes[1, 2].fill_between([1, 2], [0, 1], [1, 2])
    axes[1, 2].set_title("title")
    return figure


def test_other_kinds_of_charts_work_with_the_cycle(style):
    many_kinds_of_charts().canvas.draw()
    pd.DataFrame({"a": [1, 2], "b": [2, 1]}).plot().figure.canvas.draw()


@pytest.fixture
def site_style(style):
    plots.use_style(site=True)


def paints(drawing: str) -> set[str]:
    """The colors that a drawing names."""
    return {color.upper() for color in re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", drawing)}


def test_a_drawing_holds_only_colors_that_show_on_both_pages(site_style):
    """Ink is exchanged; black would vanish in the dark, and white in the light."""
    found = paints(plots.svg(many_kinds_of_charts()))
    assert plots.INK in found
    assert found <= {plots.INK, *plots.PALETTE}


def test_a_drawing_has_no_background(site_style):
    figure = many_kinds_of_charts()
    root = ElementTree.fromstring(plots.svg(figure))
    groups = {group.get("id"): group for group in root.iter(f"{SVG}g")}
    backgrounds = [groups["patch_1"], *(groups[f"axes_{i}"][0] for i in range(1, 7))]
    styles = [group.find(f"{SVG}path").get("style") for group in backgrounds]
    assert styles == ["fill: none"] * 7


def test_a_drawing_is_the_same_each_time(site_style):
    first, second = (plots.svg(many_kinds_of_charts()) for _ in range(2))
    assert first == second
    assert "<dc:date>" not in first


@pytest.mark.parametrize(("num_marks", "pixels"), [(100, 0), (101, 1)])
@pytest.mark.parametrize("kind", ["scatter", "pcolormesh"])
def test_dense_marks_become_pixels_in_a_drawing(kind, num_marks, pixels, site_style):
    figure, axes = plt.subplots()
    numbers = np.arange(num_marks)
    axes.scatter(numbers, numbers) if kind == "scatter" else axes.pcolormesh(numbers[None])
    root = ElementTree.fromstring(plots.svg(figure))
    assert len(root.findall(f".//{SVG}image")) == pixels
    drawn = root.findall(f".//{SVG}g[@id='{'PathCollection' if kind == 'scatter' else 'QuadMesh'}_1']//*")
    assert bool(drawn) != bool(pixels)


def test_points_in_space_stay_a_vector_without_a_warning(site_style, recwarn):
    axes = plt.figure().add_subplot(projection="3d")
    axes.scatter(*np.ones((3, 200)))
    plots.svg(axes.figure)
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.parametrize(("site", "kind"), [(False, "image/png"), (True, "image/svg+xml")])
def test_a_kernel_shows_one_picture(site, kind):
    code = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
from chapters_src import plots
plots.use_style(site={site})
import matplotlib.pyplot as plt
shown = shell.display_formatter.format(plt.subplots()[0])[0]
assert {{name for name in shown if name.startswith("image/")}} == {{"{kind}"}}, shown.keys()
"""
    run_alone(code, MPLBACKEND="module://matplotlib_inline.backend_inline")  # what a kernel sets


def test_the_import_sets_nothing():
    code = """
import matplotlib, sys, chapters_src.plots
assert matplotlib.rcParams["axes.facecolor"] == matplotlib.rcParamsDefault["axes.facecolor"]
assert "matplotlib.pyplot" not in sys.modules
"""
    run_alone(code)


def run_alone(code: str, **environment: str) -> None:
    """Run code in a process of its own."""
    environment |= {"PYTHONPATH": str(Path(plots.__file__).parents[2])}
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})
