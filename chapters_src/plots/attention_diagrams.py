"""Attention as diagrams: the split into heads, masks as grids. Chapter 07.

They are drawn with `drawing`, like the layers of chapter 08, and read from top to bottom. After section 3.2
of Vaswani et al. (2017), https://arxiv.org/abs/1706.03762.
"""

from chapters_src.plots.drawing import Box, Diagram, Span

_WIDTH = 420
_GAP = 16  # Between a box and the next one below it: room for an arrow.


def head_split(d_model: int, num_heads: int) -> Diagram:
    """Draw how the width of a model is split into heads, and joined again.

    Args:
        d_model: the width of the model.
        num_heads: 2 to 4, a divisor of `d_model`.

    Returns:
        A diagram that a notebook draws, and that readers of the site can zoom.

    Raises:
        ValueError: the heads do not divide the width, or there is no room for them.
    """
    if not 2 <= num_heads <= 4 or d_model % num_heads:
        raise ValueError(f"{num_heads} heads for a width of {d_model}: draw 2 to 4 that divide it")
    head_dim = d_model // num_heads
    sheet = Diagram(
        title=f"A width of {d_model}, split into {num_heads} heads",
        description=(
            f"From top to bottom: hidden_states of shape (T, {d_model}) go through one linear layer, which "
            f"makes queries, keys and values for all heads, (T, 3 · {d_model}). They are split into "
            f"{num_heads} heads. Each head has a query, a key and a value of shape (T, {head_dim}), its own "
            f"table of attention weights of shape (T, T), and gives an output of shape (T, {head_dim}). The "
            f"outputs are joined side by side, (T, {d_model}), and a last linear layer mixes them, "
            f"(T, {d_model})."
        ),
        caption=(
            f"{num_heads} heads share a width of {d_model}: each attends by itself in {head_dim} dimensions, "
            "with its own weights. Only the last linear layer brings the heads together. T: tokens."
        ),
        width=_WIDTH,
    )
    whole = (4, 416)
    states = sheet.box("data", whole, 4, ("hidden_states", f"(T, {d_model})"))
    fused = sheet.box(
        "attention", whole, states.bottom + _GAP, ("query_key_value", f"one linear layer: (T, 3 · {d_model})")
    )
    _down(sheet, states, fused)
    lasts = []
    for i, span in enumerate(_columns(whole, num_heads)):
        parts = ("", "query, key,"), ("", f"value: (T, {head_dim})")
        head = sheet.box("attention", span, fused.bottom + _GAP + 6, (f"head {i}", ""), *parts)
        weights = sheet.box("attention", span, head.bottom + _GAP, ("", "attn_weights"), ("", "(T, T)"))
        mixed = sheet.box("attention", span, weights.bottom + _GAP, ("", f"output: (T, {head_dim})"))
        sheet.arrow("flow", (head.middle[0], fused.bottom), (head.middle[0], head.top))
        _down(sheet, head, weights)
        _down(sheet, weights, mixed)
        lasts.append(mixed)
    joined = sheet.box("data", whole, lasts[0].bottom + _GAP + 6, ("join", f"side by side: (T, {d_model})"))
    for mixed in lasts:
        sheet.arrow("flow", (mixed.middle[0], mixed.bottom), (mixed.middle[0], joined.top))
    _down(
        sheet,
        joined,
        sheet.box(
            "attention",
            whole,
            joined.bottom + _GAP,
            ("output", f"a linear layer mixes the heads: (T, {d_model})"),
        ),
    )
    return sheet


def mask_grids() -> Diagram:
    """Draw four masks as grids: padding, causal, both, and the padding of another text.

    Returns:
        A diagram that a notebook draws, and that readers of the site can zoom.
    """
    text, target = ("I", "like", "fruit", "flies", "pad"), ("ich", "mag")
    sheet = Diagram(
        title="Four masks",
        description=(
            "Four grids. Rows ask, columns are asked, a check mark means: may attend. The text is: I like "
            "fruit flies, then one position of padding. The padding mask hides the last column. The causal "
            "mask keeps the diagonal and what is left of it. Both together keep what both allow. In "
            "cross-attention the rows are those of another text, ich mag, and the last column is hidden "
            "again: the grid has as many rows as the text that asks and as many columns as the text that is "
            "asked."
        ),
        caption=(
            "Rows ask, columns are asked; ✓ means “may attend”. A padding mask hides columns, a causal mask "
            "the upper triangle. Together they keep the cells that both keep. In cross-attention, the rows "
            "belong to another text, and the grid need not be square."
        ),
        width=_WIDTH,
    )
    grids = {
        "padding mask": (text, lambda _, asked: text[asked] != "pad"),
        "causal mask": (text, lambda asks, asked: asked <= asks),
        "both: causal & padding": (text, lambda asks, asked: asked <= asks and text[asked] != "pad"),
        "cross-attention": (target, lambda _, asked: text[asked] != "pad"),
    }
    label, side, low = 38, 32, 24  # The width of words that ask, and of cells; the height of cells.
    for number, (name, (asking, may)) in enumerate(grids.items()):
        left, top = 4 + 213 * (number % 2), 4 + 204 * (number // 2)
        title = sheet.box("data", (left, left + label + side * len(text)), top, (name, ""))
        first = left + label
        for column, word in enumerate(text):
            x = first + side * column
            sheet.box("data", (x, x + side), title.bottom + 6, ("", word), height=low)
        for row, word in enumerate(asking):
            y = title.bottom + 6 + low * (row + 1)
            sheet.box("data", (left, first), y, ("", word), height=low)
            for column in range(len(text)):
                x = first + side * column
                kind, *mark = ("attention", ("✓", "")) if may(row, column) else ("data",)
                sheet.box(kind, (x, x + side), y, *mark, height=low)
    return sheet


def _down(sheet: Diagram, above: Box, below: Box) -> None:
    sheet.arrow("flow", (above.middle[0], above.bottom), (above.middle[0], below.top))


def _columns(span: Span, number: int, gap: float = 8) -> list[Span]:
    """Divide a span into columns of the same width."""
    width = (span[1] - span[0] - gap * (number - 1)) / number
    return [(span[0] + i * (width + gap), span[0] + i * (width + gap) + width) for i in range(number)]
