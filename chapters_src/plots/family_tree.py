"""The family tree of the models of chapter 11: each below the one whose design it changes, by year."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from chapters_src.plots.style import PALETTE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_MARKS = "XosDP^vh*p"  # Of the kinds, in the order in which they come.
_ROW = 0.21  # Inches of height for a model.
_APART = 0.3  # Years between a model and its child of the same year.


def family_tree(models: "pd.DataFrame") -> "Figure":
    """Draw a tree of models: a row for each, placed by year, with a line from its parent.

    The table is that of `data.models.load`, with the columns "year", "family" and "parent". A model without a
    parent begins a tree.

    Raises:
        ValueError: there are no models, or a parent is not among them.
    """
    import matplotlib.pyplot as plt

    place = {name: (x, y) for y, (name, x) in enumerate(in_order(models))}
    lost = [name for name in models.index if name not in place]
    if lost or not place:
        raise ValueError(f"not below any model of the table: {', '.join(lost) or 'nothing to draw'}")
    kinds = list(dict.fromkeys(models["family"]))
    figure, axes = plt.subplots(figsize=(4.6, 1.2 + _ROW * len(place)))
    line = {"color": PALETTE[-1], "linestyle": "-", "lw": 0.8, "zorder": 0}
    for child, parent in models["parent"].items():
        if parent:
            (x0, y0), (x1, y1) = place[parent], place[child]
            axes.plot([x0, x0, x1], [y0, y1, y1], **line)
    for i, kind in enumerate(kinds):
        names = models.index[models["family"] == kind]
        x, y = zip(*(place[name] for name in names), strict=True)
        color, mark = PALETTE[i % len(PALETTE)], _MARKS[i % len(_MARKS)]
        axes.scatter(x, y, marker=mark, color=color, s=26, label=kind)
        for name in names:
            axes.text(place[name][0] + 0.2, place[name][1], name, va="center")
    first, last = int(models["year"].min()), int(models["year"].max())
    right = max(x for x, _ in place.values()) + 2.7  # Room for a name.
    axes.set(xlim=(first - 0.3, right), ylim=(len(place), -1), xlabel="year", yticks=[])
    axes.set_ylabel("models, each below its parent")
    years = range(first, last + 1)
    axes.set_xticks(years, [str(year) if (year - first) % 2 == 0 else "" for year in years])
    figure.legend(loc="outside upper center", ncols=2, handlelength=1)
    return figure


def in_order(models: "pd.DataFrame") -> Iterator[tuple[str, float]]:
    """Go through a tree, a table like that of `family_tree`, from parents to children, older ones first.

    With the name of a model comes the year where it is drawn, a little later than its parent's.
    """
    by_year = models.sort_values("year", kind="stable")

    def below(parent: str, earliest: float) -> Iterator[tuple[str, float]]:
        for name in by_year.index[by_year["parent"] == parent]:
            x = max(float(by_year.loc[name, "year"]), earliest)
            yield name, x
            yield from below(name, x + _APART)

    yield from below("", 0.0)
