"""Charts of the chapters that train: 04, 05, 09, 10, 12, 14 and 15.

Each returns a figure that is closed in pyplot: as the last line of a cell it is drawn once, and until then
its axes (`figure.axes`) can still be changed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from chapters_src.plots.style import PALETTE, PANEL, SEQUENTIAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def loss_curves(history: Any) -> "Figure":
    """Draw training curves: the loss of each step, raw (thin) and smoothed, and the evaluations.

    A metric called "loss" is marked on the same axes as the training loss; all others get separate axes
    below. Chapters 05, 09, 10, 12, 14 and 15.

    The history is what `training.train` returns: `steps` and `evaluations` are sequences of mappings with
    "step" (from 1); the former have "loss" (nats), the latter the metrics.

    Raises:
        ValueError: the history has no steps.
    """
    if not history.steps:
        raise ValueError("the history has no steps: there is nothing to draw before the first one")
    losses = pd.DataFrame(history.steps).set_index("step")["loss"]
    evaluations = pd.DataFrame(history.evaluations, columns=None if history.evaluations else ["step"])
    metrics = evaluations.set_index("step")
    others = metrics.drop(columns="loss", errors="ignore")
    num_panels = 1 if others.empty else 2
    figure, (axes, *below) = _figure(num_panels, sharex=True, figsize=(4.6, 1.8 + 1.2 * num_panels))
    window = len(losses) // 20 * 2 + 1  # A tenth of the steps, and odd, so that it has a middle.
    smooth = losses.rolling(window, center=True, min_periods=1).mean()
    if window > 1:
        axes.plot(losses.index, losses, color=PALETTE[0], linestyle="-", linewidth=0.7, alpha=0.4)
    label = f"training, mean of {window} steps" if window > 1 else "training"
    axes.plot(smooth.index, smooth, label=label)
    if "loss" in metrics:
        axes.plot(metrics.index, metrics["loss"], marker="o", label="evaluation")
    axes.set_ylabel("loss")
    for name in others:
        below[0].plot(others.index, others[name], marker="o", label=name)
        below[0].set_ylabel("evaluation")
    for panel in (axes, *below):
        panel.legend()
    figure.axes[-1].set_xlabel("step")
    figure.axes[-1].xaxis.get_major_locator().set_params(integer=True)
    return figure


def confusion_matrix(matrix: Any, class_names: Sequence[str]) -> "Figure":
    """Draw a confusion matrix, with rows normalized to 1. Chapters 04, 05, 10 and 12.

    The matrix has counts, (num_classes, num_classes); rows are true classes, columns predicted ones, as in
    `sklearn.metrics.confusion_matrix`. A class without examples has a row of dashes.

    Raises:
        ValueError: the matrix is not square or has negative numbers, or the number of names does not match.
    """
    counts = np.asarray(matrix)
    if counts.shape != (len(class_names), len(class_names)) or counts.size == 0 or not (counts >= 0).all():
        raise ValueError(
            f"{len(class_names)} class names need a matrix of counts with as many rows and columns, none "
            f"negative; its shape is {counts.shape}, and {(counts < 0).sum()} are negative"
        )
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    size = 0.45 * len(class_names)
    figure, [axes] = _figure(figsize=(size + 2.2, size + 1.2))  # inches
    picture = axes.imshow(shares, cmap=SEQUENTIAL, vmin=0, vmax=1)
    for (row, column), share in np.ndenumerate(shares):
        text = f"{share:.2f}" if totals[row, 0] else "–"
        ink = _ink_on(picture.to_rgba(share))
        axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=10)
    rows = [f"{name} ({total:,})" for name, total in zip(class_names, totals[:, 0], strict=True)]
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(range(len(rows)), class_names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set(xlabel="predicted class", ylabel="true class (examples)")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return figure


def reliability_diagram(table: pd.DataFrame) -> "Figure":
    """Draw accuracy against confidence, and below it the number of examples in each bin. Chapters 05 and 12.

    The table is that of `evaluation.reliability`. On the diagonal a model is as accurate as it is confident;
    below it, the model is overconfident.

    Raises:
        ValueError: a column is missing, or all bins are empty.
    """
    missing = {"low", "high", "confidence", "accuracy", "count"} - set(table.columns)
    if missing or not table["count"].sum():
        raise ValueError(f"the table needs examples and the columns {sorted(missing)}: see reliability()")
    figure, (axes, below) = _figure(2, sharex=True, figsize=(4.6, 5), height_ratios=(3, 1))
    filled = table[table["count"] > 0]
    axes.plot([0, 1], [0, 1], color=PALETTE[-1], linestyle="--", linewidth=1.2, label="confidence = accuracy")
    axes.vlines(filled["confidence"], filled["confidence"], filled["accuracy"], color=PALETTE[1], label="gap")
    axes.plot(
        filled["confidence"],
        filled["accuracy"],
        marker="o",
        clip_on=False,
        color=PALETTE[0],
        label="mean of a bin",
    )
    axes.set(xlim=(0, 1), ylim=(0, 1.02), ylabel="accuracy")
    axes.legend()
    width = table["high"] - table["low"]
    below.bar(table["low"], table["count"], width=width, align="edge", edgecolor=PANEL)
    below.set(xlabel="confidence", ylabel="examples")
    return figure


def _figure(num_rows: int = 1, **options: Any) -> "tuple[Figure, list[Axes]]":
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(num_rows, squeeze=False, **options)
    pyplot.close(figure)  # Otherwise a notebook draws it twice: also as an open figure.
    return figure, list(axes[:, 0])


def _ink_on(color: Sequence[float]) -> str:
    """Return black or white, whichever has more contrast: at least 4.5:1 on any color."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3])
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue  # WCAG 2.1
    return "black" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "white"
