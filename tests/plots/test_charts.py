"""What stands on a chart is what was measured."""

import io
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from color_science import contrast, rgb
from sklearn.metrics import confusion_matrix

from chapters_src import plots
from chapters_src.evaluation import reliability


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


def test_numbers_in_cells_can_be_read_on_every_color(style):
    counts = np.stack([np.arange(101), 100 - np.arange(101)])
    for first, second in counts.T[::5]:
        [axes] = plots.confusion_matrix([[first, second], [0, 100]], ["a", "b"]).axes
        image = axes.images[0]
        assert len(axes.texts) == 4
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
