"""A frozen body and a trained head as a diagram: from the tokens of one message to its classes. Chapter 04.

Read it from top to bottom. Each token keeps its column as long as it has its own vector.
"""

from collections.abc import Sequence

from chapters_src.plots.drawing import Box, Diagram, Line

MAX_TOKENS = 8  # More columns would be too narrow for their text on a phone.
_WIDTH = 420
_MARGIN = 4
_GAP = 22  # Vertical gap between boxes, for an arrow.
_BETWEEN = 6  # Between two columns.


def body_and_head(
    tokens: Sequence[str], ids: Sequence[int], d_model: int, num_layers: int, num_classes: int
) -> Diagram:
    """Draw how one message becomes class probabilities, for a notebook and, to zoom, for the site.

    Special tokens are among the tokens. `num_layers` counts the encoder layers of the body.

    Raises:
        ValueError: there are no tokens or more than `MAX_TOKENS`, or the number of ids differs.
    """
    if not 1 <= len(tokens) <= MAX_TOKENS or len(ids) != len(tokens):
        raise ValueError(
            f"{len(tokens)} tokens with {len(ids)} ids: the diagram has room for 1 to {MAX_TOKENS} tokens, "
            "each with its id"
        )
    sheet = Diagram(
        title="Frozen body, trained head",
        description=(
            f"From top to bottom: the {len(tokens)} tokens of a message with their ids: {', '.join(tokens)}. "
            f"The body embeds each of them and passes all of them through {num_layers} encoder layers; both "
            f"are frozen. Out come {len(tokens)} hidden states of {d_model} numbers, one under each token. "
            "Pooling takes their mean, without padding: one vector for the message, again of "
            f"{d_model} numbers. The head, a linear classifier with {d_model} × {num_classes} weights, is "
            f"the only part that is trained. It gives {num_classes} probabilities, one per class."
        ),
        caption=(
            "The body turns each token into a vector and stays as it is; pooling makes one vector of them; "
            "only the head learns about emotions."
        ),
        width=_WIDTH,
    )
    words = [(("", token), ("", str(i))) for token, i in zip(tokens, ids, strict=True)]
    inputs = _columns(sheet, "data", _MARGIN, words)
    columns = [box.middle[0] for box in inputs]
    embedding = _wide(sheet, inputs[0], columns, "lookup", ("Body: embedding", "frozen"))
    layers = (f"Body: {num_layers} encoder layers", "frozen; tokens see each other")
    body = _wide(sheet, embedding, columns, "attention", layers)
    states = _columns(sheet, "data", body.bottom + _GAP, [(("", str(d_model)),)] * len(tokens))
    for x in columns:
        sheet.arrow((x, body.bottom), (x, states[0].top))
    pooling = ("Pooling: mean of the hidden states", "padding left out")
    pooled = _wide(sheet, states[0], columns, "norm", pooling)
    middle = [_WIDTH / 2]
    vector = _wide(sheet, pooled, middle, "data", ("message vector", f"{d_model} numbers"))
    trained = ("Head: linear classifier", f"{d_model} × {num_classes}, trained")
    head = _wide(sheet, vector, middle, "feed_forward", trained)
    _wide(sheet, head, middle, "data", (f"{num_classes} probabilities", "one per class"))
    return sheet


def _columns(sheet: Diagram, kind: str, top: float, texts: Sequence[tuple[Line, ...]]) -> list[Box]:
    """Put boxes side by side in the middle of the sheet, sized to fit `MAX_TOKENS`."""
    width = (_WIDTH - 2 * _MARGIN - (MAX_TOKENS - 1) * _BETWEEN) / MAX_TOKENS
    step = width + _BETWEEN
    first = (_WIDTH - len(texts) * step + _BETWEEN) / 2
    spans = [(first + i * step, first + i * step + width) for i in range(len(texts))]
    return [sheet.box(kind, span, top, *lines) for span, lines in zip(spans, texts, strict=True)]


def _wide(sheet: Diagram, above: Box, columns: Sequence[float], kind: str, line: Line) -> Box:
    """Put a full-width box below a row, with an arrow to it in each column."""
    box = sheet.box(kind, (_MARGIN, _WIDTH - _MARGIN), above.bottom + _GAP, line)
    for x in columns:
        sheet.arrow((x, above.bottom), (x, box.top))
    return box
