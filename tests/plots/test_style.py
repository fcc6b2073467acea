"""Contrast and colour vision are computed, not looked at."""

import io
import itertools
import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from colour_science import VISION, contrast, lab, linear, rgb

from chapters_src import plots


def test_the_oracles_know_black_and_white():
    assert contrast(rgb("black"), rgb("white")) == pytest.approx(21)
    assert lab(linear(rgb("white"))) == pytest.approx([100, 0, 0], abs=0.01)


@pytest.mark.parametrize("colour", plots.PALETTE)
def test_lines_stand_out_from_the_panel(colour):
    assert contrast(rgb(colour), rgb(plots.PANEL)) >= 3


def test_text_stands_out_from_the_panel():
    assert contrast(rgb(plots.INK), rgb(plots.PANEL)) >= 7


@pytest.mark.parametrize("vision", VISION)
def test_the_first_five_colours_stay_apart(vision):
    seen = [lab(VISION[vision] @ linear(rgb(colour))) for colour in plots.PALETTE[:5]]
    for a, b in itertools.combinations(range(5), 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 20, (plots.PALETTE[a], plots.PALETTE[b])


@pytest.mark.parametrize("vision", VISION)
def test_the_colours_of_heatmaps_grow_lighter_evenly(vision):
    shown = matplotlib.colormaps[plots.SEQUENTIAL](np.linspace(0, 1, 32))[:, :3]
    lightness = np.array([lab(VISION[vision] @ linear(colour))[0] for colour in shown])
    assert (np.diff(lightness) > 0).all()
    assert lightness[-1] - lightness[0] > 60


def test_lines_differ_by_more_than_colour(style):
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
    assert picture.shape[1:] == (6.4 * 160, 4)
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


def test_other_kinds_of_charts_work_with_the_cycle(style):
    figure, axes = plt.subplots(2, 3)
    axes[0, 0].bar(["a", "b"], [1, 2])
    axes[0, 1].hist([1, 2, 2, 3], histtype="step")
    axes[0, 2].scatter([1, 2], [2, 1])
    axes[1, 0].errorbar([1, 2], [2, 1], yerr=0.1)
    axes[1, 1].boxplot([[1, 2, 3], [2, 3, 4]])
    axes[1, 2].fill_between([1, 2], [0, 1], [1, 2])
    figure.canvas.draw()
    pd.DataFrame({"a": [1, 2], "b": [2, 1]}).plot().figure.canvas.draw()


def test_the_import_sets_nothing():
    code = """
import matplotlib, sys, chapters_src.plots
assert matplotlib.rcParams["axes.facecolor"] == matplotlib.rcParamsDefault["axes.facecolor"]
assert "matplotlib.pyplot" not in sys.modules
"""
    root = Path(plots.__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(root)})
