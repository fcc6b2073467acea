"""How this book draws: one matplotlib style, a few charts, and tokens as coloured chips.

Two rules hold everywhere. Colour is never the only cue: lines also differ by their dashes, and chips have a
border. A figure reads on a light page as on a dark one: charts bring their own opaque panel, chips take the
text colour of the page. Every chapter draws in this style; the chips are chapter 03's, and the charts belong
to the chapters that train (04, 05, 09, 10, 12, 14 and 15).
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pandas as pd
from cycler import cycler

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


# Charts ---------------------------------------------------------------------------------------------------
#
# Each returns a figure that pyplot has let go of: as the last line of a cell it is drawn once, and until then
# its axes (`figure.axes`) can still be changed.


def loss_curves(history: Any) -> "Figure":
    """Draw how a training went: the loss of each step, thin as it was and smoothed, and the evaluations.

    A metric called "loss" is marked on the same axes as the training loss; all others get axes of their own
    below. Chapters 05, 09, 10, 12, 14 and 15.

    Args:
        history: what `training.train` returns: `steps` and `evaluations` are sequences of mappings, each with
            "step" (from 1); the former have "loss" (nats), the latter the metrics.

    Returns:
        The figure.

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
    figure, (axes, *below) = _figure(num_panels, sharex=True, figsize=(6.4, 2.4 + 1.4 * num_panels))
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
    """Draw what each true class was taken for: rows add up to 1. Chapters 04, 05, 10 and 12.

    Args:
        matrix: counts, (num_classes, num_classes); rows are true classes, columns predicted ones, as
            `sklearn.metrics.confusion_matrix` has it.
        class_names: one name per class.

    Returns:
        The figure. A class without examples has a row of dashes.

    Raises:
        ValueError: the matrix is not square or has negative numbers, or there are not as many names.
    """
    counts = np.asarray(matrix)
    if counts.shape != (len(class_names), len(class_names)) or counts.size == 0 or not (counts >= 0).all():
        raise ValueError(
            f"{len(class_names)} class names need a matrix of counts with as many rows and columns, none "
            f"negative; its shape is {counts.shape}, and {(counts < 0).sum()} are negative"
        )
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    size = 0.62 * len(class_names)
    figure, [axes] = _figure(figsize=(size + 2.2, size + 1.4))  # inches
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
    """Draw accuracy against confidence, and below how many examples each bin holds. Chapters 05 and 12.

    On the diagonal a model is right as often as it says; below it, it is overconfident.

    Args:
        table: what `evaluation.reliability` returns: "low", "high", "confidence", "accuracy", "count".

    Returns:
        The figure.

    Raises:
        ValueError: a column is missing, or all bins are empty.
    """
    missing = {"low", "high", "confidence", "accuracy", "count"} - set(table.columns)
    if missing or not table["count"].sum():
        raise ValueError(f"the table needs examples and the columns {sorted(missing)}: see reliability()")
    figure, (axes, below) = _figure(2, sharex=True, figsize=(4.8, 5.2), height_ratios=(3, 1))
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
    pyplot.close(figure)  # Else a notebook draws it twice: as open, and as the result of its cell.
    return figure, list(axes[:, 0])


def _ink_on(colour: Sequence[float]) -> str:
    """Black or white, whichever stands out more: at least 4.5:1 on any colour."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3])
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue  # WCAG 2.1
    return "black" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "white"


# Chips ----------------------------------------------------------------------------------------------------

MAX_CHIPS = 300  # Tokens of one row that can still be looked at one by one.

_CHIP_COLOURS = ("46,134,193", "214,108,20", "20,150,110")  # Red, green, blue; the background mixes them in.
_FIGURE = "margin:1em 0;padding:0;max-width:100%;color:inherit"
_CAPTION = "margin:0;padding:0;text-align:start;font-style:italic;color:inherit"
_LABEL = "margin:.7em 0 .25em;padding:0;font-weight:bold;color:inherit"
_ROW = (
    "display:flex;flex-wrap:wrap;gap:.3em .25em;margin:0;padding:0;list-style:none;overflow-wrap:anywhere;"
    "font:.9em/1.5 ui-monospace,Menlo,Consolas,monospace"
)
_CHIP = (
    "box-sizing:border-box;max-width:100%;margin:0;padding:.1em .4em;border-radius:.3em;color:inherit;"
    "border:1px solid rgba({0},.9);background:rgba({0},.16)"
)
_STAND_INS = {" ": ("␣", "space"), "\n": ("⏎", "newline"), "\t": ("⇥", "tab"), "\r": ("␍", "carriage return")}
_JOINING = re.compile("[\u200c\u200d\ufe00-\ufe0f\U000e0020-\U000e007f]")  # Joiners, variants, flag letters.
_INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}  # Unicode categories that draw nothing.


@dataclass(frozen=True)
class TokenChips:
    """One text cut by several tokenizers, to be looked at in a notebook. Made by `token_chips`."""

    rows: Mapping[str, Sequence[str]]  # Name of the tokenizer -> its tokens.
    caption: str

    def _repr_html_(self) -> str:
        rows = "".join(_row(name, tokens) for name, tokens in self.rows.items())
        caption = f'<figcaption style="{_CAPTION}">{html.escape(self.caption)}</figcaption>'
        return f'<figure style="{_FIGURE}">{caption}<dl style="margin:0;padding:0">{rows}</dl></figure>'

    def __repr__(self) -> str:
        rows = (f"{name} ({_count(tokens)}): {_as_text(tokens)}" for name, tokens in self.rows.items())
        return "\n".join([self.caption, *rows])


def token_chips(rows: Mapping[str, Sequence[str]], caption: str) -> TokenChips:
    """Show one text through several tokenizers, each token a chip. Chapter 03.

    Whitespace and characters that draw nothing get a visible sign, which carries its name for screen readers.

    Args:
        rows: name of the tokenizer -> its tokens, as they stand in its vocabulary.
        caption: what is shown, as a sentence.

    Returns:
        An object that a notebook draws as HTML; printed, it is plain text.

    Raises:
        TypeError: a row is not a sequence of strings.
        ValueError: there are no rows or no caption, or a row has more than `MAX_CHIPS` tokens.
    """
    if not rows or not caption.strip():
        raise ValueError(f"chips need rows and a caption, not rows={rows!r} and caption={caption!r}")
    for name, tokens in rows.items():
        if isinstance(tokens, str | bytes) or not all(isinstance(token, str) for token in tokens):
            raise TypeError(f"row {name!r} is not a sequence of strings: {str(tokens)[:60]}")
        if len(tokens) > MAX_CHIPS:
            raise ValueError(
                f"row {name!r} has {len(tokens)} tokens, more than the {MAX_CHIPS} that can be looked at: "
                "show a shorter text"
            )
    return TokenChips({name: tuple(tokens) for name, tokens in rows.items()}, caption)


def _row(name: str, tokens: Sequence[str]) -> str:
    label = f'{html.escape(name)} <span style="font-weight:normal">· {_count(tokens)}</span>'
    chips = "".join(_chip(token, _CHIP_COLOURS[i % len(_CHIP_COLOURS)]) for i, token in enumerate(tokens))
    row = f'<ol role="list" dir="{_direction(tokens)}" style="{_ROW}">{chips}</ol>' if tokens else ""
    return f'<dt style="{_LABEL}">{label}</dt><dd style="margin:0;padding:0">{row}</dd>'


def _chip(token: str, colour: str) -> str:
    signs = "".join(
        f'<span role="img" aria-label="{spoken}">{sign}</span>' if spoken else html.escape(sign)
        for sign, spoken in _signs(token)
    )
    return f'<li style="{_CHIP.format(colour)}"><bdi>{signs}</bdi></li>'


def _count(tokens: Sequence[str]) -> str:
    return "1 token" if len(tokens) == 1 else f"{len(tokens)} tokens"


def _as_text(tokens: Sequence[str]) -> str:
    return " | ".join("".join(sign for sign, _ in _signs(token)) for token in tokens)


def _signs(token: str) -> Iterator[tuple[str, str]]:
    """Yield what to draw for each character and, where that is a stand-in, the name to speak."""
    if not token:
        yield "∅", "empty token"
    for before, character in zip(" " + token, token, strict=False):
        if character in _STAND_INS:
            yield _STAND_INS[character]
        elif _draws_nothing(character, alone=before.isspace()):
            code = f"U+{ord(character):04X}"
            yield f"⟨{code}⟩", unicodedata.name(character, code).lower()
        elif before.isspace() and unicodedata.category(character).startswith("M"):
            yield f"◌{character}", ""  # A combining mark needs something to stand on.
        else:
            yield character, ""


def _draws_nothing(character: str, alone: bool) -> bool:
    """Whether a character needs a stand-in; one that changes its neighbour does only when it has none."""
    return alone if _JOINING.match(character) else unicodedata.category(character) in _INVISIBLE


def _direction(tokens: Sequence[str]) -> str:
    """Direction in which a row is read: that of the first character that has one."""
    classes = (unicodedata.bidirectional(character) for character in "".join(tokens))
    return "ltr" if next((kind for kind in classes if kind in ("L", "R", "AL")), "L") == "L" else "rtl"
