"""Contrast, colour vision and structure are computed, not looked at."""

import io
import itertools
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import nbclient
import nbformat
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix

from chapters_src import plots
from chapters_src.evaluation import reliability
from chapters_src.plots import token_chips

# Severity 1.0 of Machado, Oliveira & Fernandes, A Physiologically-based Model for Simulation of Color Vision
# Deficiency (2009), table 1, https://doi.org/10.1109/TVCG.2009.113: matrices for linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
# Text and background as readers meet them; the site's dark theme puts output of this kind on a light box.
PAGES = {
    "site, light": ("#222832", "#FFFFFF"),
    "site, dark, output box": ("#222832", "#CED6DD"),
    "site, dark": ("#CED6DD", "#14181E"),
    "JupyterLab, dark": ("#E0E0E0", "#111111"),
    "Colab, dark": ("#D5D5D5", "#383838"),
}


def rgb(colour):
    """Give red, green and blue from 0 to 1, as displayed."""
    return np.array(matplotlib.colors.to_rgb(colour))


def linear(shown):
    return np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    """Give the contrast ratio of WCAG 2.1, https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio."""
    dark, light = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (a, b))
    return (light + 0.05) / (dark + 0.05)


def lab(light):
    """Give CIELAB of linear RGB under D65."""
    ratio = TO_XYZ @ np.clip(light, 0, 1) / (0.95047, 1, 1.08883)
    x, y, z = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


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


@pytest.fixture
def style():
    with plt.rc_context():
        plots.use_style()
        yield
    plt.close("all")


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


# Charts ---------------------------------------------------------------------------------------------------


def history(num_steps=100, **evaluations):
    """Make what `training.train` returns: losses 1, 2, 3 ... and evaluations every tenth step."""
    steps = [{"step": i, "loss": float(i)} for i in range(1, num_steps + 1)]
    every_tenth = range(10, num_steps + 1, 10)
    rows = [{"step": i, **{name: f(i) for name, f in evaluations.items()}} for i in every_tenth]
    return SimpleNamespace(steps=steps, evaluations=rows if evaluations else [])


def table(**changes):
    columns = {
        "low": [0, 0.25, 0.5, 0.75],
        "high": [0.25, 0.5, 0.75, 1],
        "confidence": [np.nan, 0.4, 0.6, 0.9],
        "accuracy": [np.nan, 0.5, 0.5, 0.7],
        "count": [0, 3, 30, 300],
    }
    return pd.DataFrame({**columns, **changes})


CHARTS = {
    "losses": lambda: plots.loss_curves(history(loss=lambda i: i / 2, accuracy=lambda i: i / 100)),
    "losses of one step": lambda: plots.loss_curves(history(1)),
    "confusion": lambda: plots.confusion_matrix([[8, 2], [1, 3]], ["yes", "no"]),
    "confusion of twelve": lambda: plots.confusion_matrix(
        np.eye(12), [f"a long name {i}" for i in range(12)]
    ),
    "reliability": lambda: plots.reliability_diagram(table()),
}


@pytest.mark.parametrize("chart", CHARTS)
def test_charts_have_labels_and_text_of_ten_points_inside_an_opaque_panel(style, chart):
    figure = CHARTS[chart]()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    buffer.seek(0)
    assert plt.imread(buffer)[..., 3].min() == 1
    assert all(axes.get_ylabel() for axes in figure.axes) and figure.axes[-1].get_xlabel()
    texts = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text() and text.get_visible()]
    assert min(text.get_fontsize() for text in texts) >= 10
    for text in texts:
        box = text.get_window_extent()
        shown = any(text in (*axes.texts, axes.xaxis.label, axes.yaxis.label) for axes in figure.axes)
        assert not shown or figure.bbox.padded(1).containsx(box.x0), text
        assert not shown or figure.bbox.padded(1).containsx(box.x1), text


@pytest.mark.parametrize("chart", CHARTS)
def test_pyplot_lets_go_of_charts(style, chart):
    CHARTS[chart]()
    assert not plt.get_fignums()


def test_a_notebook_draws_a_chart_once():
    cells = [
        "from chapters_src import plots\nplots.use_style()",
        "plots.confusion_matrix([[1]], ['one'])",
        "1 + 1",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    folder = str(Path(plots.__file__).parent.parent)
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": folder}}).execute()
    outputs = [[output for output in cell.outputs] for cell in notebook.cells]
    assert [len(shown) for shown in outputs] == [0, 1, 1]
    assert "image/png" in outputs[1][0].data


def curve(axes, label):
    [line] = [line for line in axes.lines if line.get_label() == label]
    return line


def test_the_loss_is_drawn_as_it_was_and_smoothed(style):
    losses = history()
    for i, record in enumerate(losses.steps):
        record["loss"] += (-1) ** i
    [axes] = plots.loss_curves(losses).axes
    raw, smooth = axes.lines
    assert raw.get_xydata() == pytest.approx(np.array([[s["step"], s["loss"]] for s in losses.steps]))
    assert raw.get_linewidth() < smooth.get_linewidth()
    assert smooth.get_label() == "training, mean of 11 steps"
    y = smooth.get_ydata()
    assert y[50] == pytest.approx(np.mean([s["loss"] for s in losses.steps[45:56]]))
    assert y[0] == pytest.approx(np.mean([s["loss"] for s in losses.steps[:6]]))


def test_a_short_history_is_not_smoothed(style):
    [axes] = plots.loss_curves(history(9)).axes
    [line] = axes.lines
    assert line.get_label() == "training" and line.get_ydata().tolist() == [*range(1, 10)]


def test_the_loss_of_evaluations_is_marked_and_other_metrics_are_below(style):
    both = history(loss=lambda i: i / 2, accuracy=lambda i: i / 100, f1=lambda i: i / 200)
    above, below = plots.loss_curves(both).axes
    marks = curve(above, "evaluation")
    assert marks.get_marker() == "o"
    assert marks.get_xydata().tolist() == [[i, i / 2] for i in range(10, 101, 10)]
    assert [line.get_label() for line in below.lines] == ["accuracy", "f1"]
    assert curve(below, "f1").get_ydata().tolist() == pytest.approx([i / 200 for i in range(10, 101, 10)])
    assert below.get_shared_x_axes().joined(above, below)
    [axes] = plots.loss_curves(history(loss=lambda i: i)).axes
    assert curve(axes, "evaluation").get_ydata().tolist() == [*range(10, 101, 10)]


def test_a_history_without_steps_is_refused():
    with pytest.raises(ValueError, match="has no steps"):
        plots.loss_curves(history(0))


def test_confusions_are_shares_of_the_true_class(style):
    matrix = confusion_matrix(["a", "a", "a", "b", "b"], ["a", "a", "b", "c", "b"], labels=["a", "b", "c"])
    [axes] = plots.confusion_matrix(matrix, ["a", "b", "c"]).axes
    cells = {text.get_position(): text.get_text() for text in axes.texts}  # (column, row)
    assert [cells[column, 0] for column in range(3)] == ["0.67", "0.33", "0.00"]
    assert [cells[column, 1] for column in range(3)] == ["0.00", "0.50", "0.50"]
    assert [cells[column, 2] for column in range(3)] == ["–"] * 3
    assert axes.images[0].get_array()[0].tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    assert axes.images[0].get_clim() == (0, 1)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a (3)", "b (2)", "c (0)"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c"]
    assert "true" in axes.get_ylabel() and "predicted" in axes.get_xlabel()
    assert axes.yaxis_inverted()


def test_numbers_in_cells_can_be_read_on_every_colour(style):
    counts = np.stack([np.arange(101), 100 - np.arange(101)])
    for first, second in counts.T[::5]:
        [axes] = plots.confusion_matrix([[first, second], [0, 100]], ["a", "b"]).axes
        image = axes.images[0]
        for text in axes.texts:
            column, row = text.get_position()
            paper = image.to_rgba(image.get_array())[row, column, :3]
            assert contrast(rgb(text.get_color()), paper) >= 4.5


@pytest.mark.parametrize(
    ("matrix", "names"),
    [([[1, 2]], ["a", "b"]), ([[1]], ["a", "b"]), ([[1, -2], [1, 1]], ["a", "b"]), (np.empty((0, 0)), [])],
)
def test_a_matrix_that_does_not_fit_its_names_is_refused(matrix, names):
    with pytest.raises(ValueError, match=f"{len(names)} class names need a matrix"):
        plots.confusion_matrix(matrix, names)


def test_reliability_is_drawn_against_the_diagonal(style):
    above, below = plots.reliability_diagram(table()).axes
    assert curve(above, "confidence = accuracy").get_xydata().tolist() == [[0, 0], [1, 1]]
    points = curve(above, "mean of a bin")
    assert points.get_marker() == "o"
    assert points.get_xydata().tolist() == [[0.4, 0.5], [0.6, 0.5], [0.9, 0.7]], "empty bins have no point"
    [gaps] = above.collections
    assert [line.tolist() for line in gaps.get_segments()][2] == [[0.9, 0.9], [0.9, 0.7]]
    bars = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in below.patches]
    assert bars == [(0, 0.25, 0), (0.25, 0.25, 3), (0.5, 0.25, 30), (0.75, 0.25, 300)]


def test_the_table_of_evaluation_can_be_drawn(style):
    made = reliability([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    above, _ = plots.reliability_diagram(made).axes
    assert curve(above, "mean of a bin").get_xydata().tolist() == [[0.6, 0], [0.9, 1]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (table().drop(columns="count"), "'count'"),
        (table(count=0), "examples"),
        (pd.DataFrame(), "'accuracy'"),
    ],
)
def test_a_table_without_examples_or_columns_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        plots.reliability_diagram(wrong)


# Chips ----------------------------------------------------------------------------------------------------


class Tree(HTMLParser):
    """Reads HTML strictly into (tag, attributes, children); text is a string among the children."""

    def __init__(self, text):
        super().__init__()
        self.root = ("root", {}, [])
        self.open = [self.root]
        self.feed(text)
        self.close()
        assert self.open == [self.root]

    def handle_starttag(self, tag, attrs):
        element = (tag, dict(attrs), [])
        self.open[-1][2].append(element)
        self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        self.open[-1][2].append(data)


def find(element, tag):
    """Yield the elements of a kind, in order."""
    for child in element[2]:
        if not isinstance(child, str):
            if child[0] == tag:
                yield child
            yield from find(child, tag)


def text_of(element):
    return "".join(child if isinstance(child, str) else text_of(child) for child in element[2])


def spoken(element):
    """What a screen reader says: names of images instead of their signs."""
    label = element[1].get("aria-label")
    return label or "".join(child if isinstance(child, str) else spoken(child) for child in element[2])


def parse(tokens):
    return Tree(token_chips({"row": tokens}, "A caption.")._repr_html_()).root


def chips(tokens):
    return list(find(parse(tokens), "li"))


ROWS = {"words": ["Tokenizing", "text", "."], "BPE & Co": ["Token", "izing", "Ġtext", "."], "one": ["x"]}


def test_a_figure_with_a_caption_and_a_labelled_list_for_each_row():
    root = Tree(token_chips(ROWS, "One <sentence>.")._repr_html_()).root
    [figure] = root[2]
    assert figure[0] == "figure"
    assert figure[2][0][0] == "figcaption" and text_of(figure[2][0]) == "One <sentence>."
    assert [text_of(label) for label in find(root, "dt")] == [
        "words · 3 tokens",
        "BPE & Co · 4 tokens",
        "one · 1 token",
    ]
    [definitions] = find(root, "dl")
    assert [child[0] for child in definitions[2]] == ["dt", "dd"] * 3
    lists = list(find(root, "ol"))
    assert [[text_of(item) for item in find(one, "li")] for one in lists] == list(ROWS.values())
    assert all(child[0] == "li" for one in lists for child in one[2])


def test_it_needs_neither_scripts_nor_style_sheets():
    text = token_chips(ROWS, "A caption.")._repr_html_()
    assert not re.search(r"<script|<style|class=|\son\w+=|\sid=|url\(|https?:", text)


def test_it_wraps_on_a_phone():
    text = token_chips(ROWS, "A caption.")._repr_html_()
    assert "flex-wrap:wrap" in text and "overflow-wrap:anywhere" in text
    assert not re.search(r"[;\"](min-)?width:|nowrap", text)


def test_text_is_escaped_everywhere():
    nasty = '<img src=x onerror="alert(1)">&amp;\''
    root = Tree(token_chips({nasty: [nasty]}, nasty)._repr_html_()).root
    assert not list(find(root, "img"))
    assert text_of(next(find(root, "figcaption"))) == nasty
    assert text_of(next(find(root, "dt"))).startswith(nasty)
    assert text_of(next(find(root, "li"))).replace("␣", " ") == nasty


@pytest.mark.parametrize(
    ("token", "shown", "said"),
    [
        (" core", "␣core", "spacecore"),
        ("a\nb", "a⏎b", "anewlineb"),
        ("\t", "⇥", "tab"),
        ("\r", "␍", "carriage return"),
        ("", "∅", "empty token"),
        ("\x07", "⟨U+0007⟩", "u+0007"),
        ("a\u00a0b", "a⟨U+00A0⟩b", "ano-break spaceb"),
        ("\u200b", "⟨U+200B⟩", "zero width space"),
        ("\u202e", "⟨U+202E⟩", "right-to-left override"),
        ("\u200d", "⟨U+200D⟩", "zero width joiner"),
        ("\ufe0f", "⟨U+FE0F⟩", "variation selector-16"),
        ("\ud800", "⟨U+D800⟩", "u+d800"),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
        ("\u2764\ufe0f", "\u2764\ufe0f", "\u2764\ufe0f"),
        ("\u0301", "◌\u0301", "◌\u0301"),
        ("e\u0301", "e\u0301", "e\u0301"),
        ("##ing", "##ing", "##ing"),
        ("日本", "日本", "日本"),
    ],
)
def test_what_cannot_be_seen_gets_a_sign_with_a_name(token, shown, said):
    [chip] = chips([token])
    assert text_of(chip) == shown
    assert spoken(chip) == said
    for sign in find(chip, "span"):
        assert sign[1]["role"] == "img", "a name is only allowed on an element with a role"
    text_of(chip).encode("utf-8")


@pytest.mark.parametrize(
    ("tokens", "direction"),
    [
        (["hello", "שלום"], "ltr"),
        (["12", " ", "שלום", "hello"], "rtl"),
        (["مرحبا"], "rtl"),
        (["12", "!"], "ltr"),
    ],
)
def test_rows_are_read_in_the_direction_of_their_first_letter(tokens, direction):
    [row] = find(parse(tokens), "ol")
    assert row[1]["dir"] == direction
    assert all(item[2][0][0] == "bdi" and len(item[2]) == 1 for item in find(row, "li"))


def backgrounds():
    styles = [chip[1]["style"] for chip in chips(["a", "b", "c"])]
    for style in styles:
        *colour, alpha = map(float, re.search(r"background:rgba\(([^)]*)\)", style)[1].split(","))
        *edge, _ = map(float, re.search(r"solid rgba\(([^)]*)\)", style)[1].split(","))
        assert "color:inherit" in style
        yield np.array(colour) / 255, alpha, np.array(edge) / 255


@pytest.mark.parametrize("page", PAGES)
def test_chips_read_on_light_and_dark_pages(page):
    ink, paper = map(rgb, PAGES[page])
    for colour, alpha, _ in backgrounds():
        assert contrast(ink, alpha * colour + (1 - alpha) * paper) >= 4.5


@pytest.mark.parametrize("page", ["site, light", "site, dark", "JupyterLab, dark"])
def test_borders_of_chips_are_seen(page):
    for _, _, edge in backgrounds():
        assert contrast(edge, rgb(PAGES[page][1])) >= 3


def test_neighbours_differ():
    styles = [chip[1]["style"] for chip in chips(list("abcdef"))]
    assert all(a != b for a, b in itertools.pairwise(styles))


def test_printed_it_is_plain_text():
    assert repr(token_chips({"BPE": ["a", " b", "\n"], "one": ["x"]}, "A caption.")) == (
        "A caption.\nBPE (3 tokens): a | ␣b | ⏎\none (1 token): x"
    )


def test_a_row_without_tokens_says_so():
    root = parse([])
    assert text_of(next(find(root, "dt"))) == "row · 0 tokens"
    assert not list(find(root, "ol"))


def test_later_changes_of_the_rows_do_not_reach_it():
    tokens = ["a"]
    shown = token_chips({"row": tokens}, "A caption.")
    tokens.append("b")
    assert "1 token" in repr(shown)


@pytest.mark.parametrize("bad", ["a string", b"bytes", [1, 2], ["a", None]])
def test_rows_that_are_no_sequences_of_strings_are_refused(bad):
    with pytest.raises(TypeError, match="row 'ids' is not a sequence of strings"):
        token_chips({"ids": bad}, "A caption.")


@pytest.mark.parametrize(("rows", "caption"), [({}, "A caption."), ({"row": ["a"]}, "  ")])
def test_rows_and_a_caption_are_needed(rows, caption):
    with pytest.raises(ValueError, match="need rows and a caption"):
        token_chips(rows, caption)


def test_too_many_tokens_are_refused():
    assert len(chips(["a"] * plots.MAX_CHIPS)) == plots.MAX_CHIPS
    with pytest.raises(ValueError, match=r"'row' has 301 tokens.*shorter text"):
        parse(["a"] * 301)


def test_the_import_sets_nothing():
    code = """
import matplotlib, sys, chapters_src.plots
assert matplotlib.rcParams["axes.facecolor"] == matplotlib.rcParamsDefault["axes.facecolor"]
assert "matplotlib.pyplot" not in sys.modules
"""
    root = Path(plots.__file__).parent.parent
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(root)})
