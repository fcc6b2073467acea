"""Recurrent networks as diagrams: unrolled, encoder and decoder, attention by numbers, a walk. Chapter 06.

Time goes from left to right, and what is computed from top to bottom. Thick lines carry a state to the next
step; dashed ones carry what the encoder hands over. After figure 1 of Sutskever, Vinyals and Le (2014),
https://arxiv.org/abs/1409.3215, and figure 1 of Bahdanau, Cho and Bengio (2015),
https://arxiv.org/abs/1409.0473.
"""

import math
from collections.abc import Sequence

from chapters_src.plots.drawing import Box, Diagram

_WIDTH = 420
_LEFT, _RIGHT = 4, 416
_GAP = 22  # Vertical gap between boxes, for an arrow.
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def unrolled() -> Diagram:
    """Draw a recurrent network that reads four points, one column for each step.

    Returns:
        A diagram that a notebook draws, and that readers of the site can zoom.
    """
    sheet = Diagram(
        title="Recurrent network, unrolled",
        description=(
            "Four columns, one for each step, from left to right. In column t the point x of that step goes "
            "down into a box called step, with the weights W, U and b, the same in each column. From it "
            "comes the state h of that step, a vector of the same width each time. It goes on into the "
            "step of the next column; the first step gets the state h₀, which is all zeros. So the state h₄ "
            "depends on all four points, and x₁ reaches it through four steps."
        ),
        caption=(
            "A recurrent network, unrolled in time. Every column is the same step with the same weights. "
            "What x₁ has to tell h₄ passes through every step between them."
        ),
        width=_WIDTH,
    )
    gap, first = 26, 50
    width = (_RIGHT - _LEFT - first - 4 * gap) / 4
    before = None
    for t in range(1, 5):
        left = _LEFT + first + gap + (t - 1) * (width + gap)
        span = (left, left + width)
        point = sheet.box("data", span, 4, (_sub("x", t), f"point {t}"))
        step = sheet.box("feed_forward", span, point.bottom + _GAP, ("step", ""), ("", "W, U, b"))
        if before is None:
            zeros = sheet.box("data", (_LEFT, _LEFT + first), step.top, ("h₀", ""), ("", "zeros"))
            sheet.arrow("residual", (zeros.right, zeros.middle[1]), (step.left, step.middle[1]))
        else:
            turn = step.left - gap / 2 - 1  # A little to the left, which leaves room for the head.
            corners = ((turn, before.middle[1]), (turn, step.middle[1]))
            sheet.arrow("residual", (before.right, before.middle[1]), *corners, (step.left, step.middle[1]))
        before = sheet.box("data", span, step.bottom + _GAP, (_sub("h", t), "state"))
        _down(sheet, point, step)
        _down(sheet, step, before)
    return sheet


def encoder_decoder() -> Diagram:
    """Draw a recurrent encoder and decoder, with two given corners and two to predict.

    Returns: as for `unrolled`.
    """
    sheet = Diagram(
        title="Recurrent encoder and decoder",
        description=(
            "On the left the encoder: two steps of a GRU read corner 1 and corner 2, and hand a state from "
            "step to step. Its last state, and nothing else, is handed over to the decoder on the right: two "
            "more steps, of a GRU with weights of its own. The first of them reads corner 2 again; a linear "
            "head makes its state into an answer, corner 3. The second reads corner 3: in training the "
            "true one, later the decoder's own answer. The same head makes the answer corner 4 of it."
        ),
        caption=(
            "An encoder and a decoder. Only the last state crosses from one to the other (dashed). In "
            "training the decoder reads the true corner 3 (teacher forcing); on its own, its own answer."
        ),
        width=_WIDTH,
    )
    width, gap, frame_top = 84, 18, 74
    names = ("corner 1", "corner 2", "corner 2", "corner 3")
    notes = ("given", "given", "again", "true or own")
    lefts = (14, 14 + width + gap, 224, 224 + width + gap)
    steps = []
    for left, name, note in zip(lefts, names, notes, strict=True):
        span = (left, left + width)
        point = sheet.box("data", span, 4, (name, ""), ("", note))
        step = sheet.box("feed_forward", span, frame_top + 34, ("GRU step", ""))
        _down(sheet, point, step)
        steps.append(step)
    for earlier, later, kind in zip(steps, steps[1:], ("residual", "memory", "residual"), strict=False):
        sheet.arrow(kind, (earlier.right, earlier.middle[1]), (later.left, later.middle[1]))
    for step, number in zip(steps[2:], (3, 4), strict=True):
        span = (step.left, step.right)
        head = sheet.box("lookup", span, step.bottom + _GAP, ("head", "linear"))
        answer = sheet.box("data", span, head.bottom + _GAP + 10, (f"corner {number}", ""), ("", "answer"))
        _down(sheet, step, head)
        _down(sheet, head, answer)
    sheet.box("frame", (_LEFT, 210), frame_top, ("Encoder", ""), height=74, indent=72)
    sheet.box("frame", (216, _RIGHT), frame_top, ("Decoder", ""), height=126, indent=72)
    return sheet


def attention(asking: Sequence[float], states: Sequence[Sequence[float]]) -> Diagram:
    """Draw a step of dot-product attention with its numbers: a decoder state asks three encoder states.

    Args:
        asking: the state s of the decoder.
        states: three states of the encoder, of the size of `asking`.

    Returns: as for `unrolled`.

    Raises:
        ValueError: there are not three states, or their size is not the size of `asking`.
    """
    if len(states) != 3 or any(len(state) != len(asking) for state in states):
        raise ValueError(
            f"the diagram needs 3 states of {len(asking)} numbers, like `asking`; "
            f"got {[len(state) for state in states]}"
        )
    scores = [sum(a * b for a, b in zip(asking, state, strict=True)) for state in states]
    total = sum(map(math.exp, scores))
    weights = [math.exp(score) / total for score in scores]
    context = [
        sum(w * x for w, x in zip(weights, column, strict=True)) for column in zip(*states, strict=True)
    ]
    told = "; ".join(
        f"h{j} = {_vector(state)} has the score {_number(score)} and the weight {weight:.2f}"
        for j, (state, score, weight) in enumerate(zip(states, scores, weights, strict=True), 1)
    )
    sheet = Diagram(
        title="Attention, step by step",
        description=(
            f"At the top the decoder's state s = {_vector(asking)} and three states of the encoder. s and "
            f"each state are compared by their dot product, which gives a score; the softmax over all scores "
            f"gives weights. {told}. The average of the states with these weights is the context "
            f"{_vector(context)}. The context and s are joined, and then a head makes the answer."
        ),
        caption=(
            "Attention with the numbers of the example: compare, normalize, average. One softmax spans all "
            "scores (dotted). Dashed lines come from the encoder: each state is used for its score and again "
            "for the average."
        ),
        width=_WIDTH,
    )
    width, gap, first = 102, 12, 66
    lefts = [_RIGHT - width * (3 - j) - gap * (2 - j) for j in range(3)]
    asks = sheet.box("data", (_LEFT, _LEFT + first), 4, ("s", ""), ("", _vector(asking)))
    bus, row = asks.bottom + 14, asks.bottom + 34
    sums = row + 44 + 28 + 44 + 30  # Where the average is: below scores and weights.
    average = sheet.box("attention", (lefts[0], _RIGHT), sums, ("average", "Σ weight · state"))
    for j, left in enumerate(lefts):
        name = _sub("h", j + 1)
        state = sheet.box("data", (left, left + width), 4, (name, ""), ("", _vector(states[j])))
        span = (left, left + 76)
        score = sheet.box("attention", span, row, (f"s · {name}", ""), ("", f"score {_number(scores[j])}"))
        share = ("", f"weight {weights[j]:.2f}")
        weight = sheet.box("attention", span, score.bottom + 28, ("softmax", ""), share)
        enters = left + 20
        sheet.arrow(
            "flow", (asks.middle[0], asks.bottom), (asks.middle[0], bus), (enters, bus), (enters, row)
        )
        sheet.arrow("memory", (left + 52, state.bottom), (left + 52, row))
        sheet.arrow("memory", (left + 90, state.bottom), (left + 90, average.top))
        _down(sheet, score, weight)
        sheet.arrow("flow", (weight.middle[0], weight.bottom), (weight.middle[0], average.top))
    sheet.box("frame", (lefts[0] - 8, _RIGHT), weight.top - 10, height=weight.height + 20)
    made = sheet.box("data", (lefts[0], _RIGHT), average.bottom + _GAP, ("context", _vector(context)))
    _down(sheet, average, made)
    joined = sheet.box("lookup", (_LEFT, _RIGHT), made.bottom + _GAP, ("join, then head", "context and s"))
    sheet.arrow("flow", (asks.left + 14, asks.bottom), (asks.left + 14, joined.top))
    sheet.arrow("flow", (made.middle[0], made.bottom), (made.middle[0], joined.top))
    answer = sheet.box("data", (_LEFT, _RIGHT), joined.bottom + _GAP, ("answer", ""))
    _down(sheet, joined, answer)
    return sheet


def octagon() -> Diagram:
    """Draw the walk around an octagon, and at which positions of a decoder each corner is input and output.

    Returns: as for `unrolled`.
    """
    rows = [4 + 66 * i for i in range(4)]
    columns = [_LEFT + 107 * i for i in range(4)]
    places = [(1, 0), (2, 0), (3, 1), (3, 2), (2, 3), (1, 3), (0, 2), (0, 1)]  # Column and row, clockwise.
    sheet = Diagram(
        title="Walk around an octagon",
        description=(
            "Eight corners of an octagon, in the order of a clockwise walk. Corners 1 and 2 are given, and "
            "the decoder predicts the six others. Its input 1 is corner 2, and its output 1 is corner 3; "
            "input 2 is corner 3, and output 2 is corner 4; and so on, until input 6 is corner 7 and output 6"
            " is corner 8. So in training, what a position has to predict is the input of the next one."
        ),
        caption=(
            "The walk as training data. The output of one position of the decoder is the input of the next: "
            "with teacher forcing the right answer stands in the input, one position to the right."
        ),
        width=_WIDTH,
    )
    corners: list[Box] = []
    for number, (column, row) in enumerate(places, 1):
        output = ("", f"output {number - 2}" if number > 2 else "given")
        read = ("", f"input {number - 1}" if 1 < number < 8 else "no input")
        span = (columns[column], columns[column] + 91)
        kind = "lookup" if number > 2 else "data"
        corners.append(sheet.box(kind, span, rows[row], (f"corner {number}", ""), output, read, height=52))
    sheet.arrow("flow", (corners[0].right, corners[0].middle[1]), (corners[1].left, corners[1].middle[1]))
    sheet.arrow("flow", *_elbow(corners[1], corners[2]))
    _down(sheet, corners[2], corners[3])
    sheet.arrow("flow", *_elbow(corners[4], corners[3])[::-1])
    sheet.arrow("flow", (corners[4].left, corners[4].middle[1]), (corners[5].right, corners[5].middle[1]))
    sheet.arrow("flow", *_elbow(corners[5], corners[6]))
    sheet.arrow("flow", (corners[6].middle[0], corners[6].top), (corners[7].middle[0], corners[7].bottom))
    return sheet


def _elbow(start: Box, end: Box) -> tuple[tuple[float, float], ...]:
    """Lead from the side of a box across and then up or down into another."""
    side = start.right if end.middle[0] > start.right else start.left
    face = end.top if end.top > start.middle[1] else end.bottom
    return (side, start.middle[1]), (end.middle[0], start.middle[1]), (end.middle[0], face)


def _down(sheet: Diagram, above: Box, below: Box) -> None:
    """Draw an arrow straight down, from the middle of the narrower box."""
    x = min(above, below, key=lambda box: box.width).middle[0]
    sheet.arrow("flow", (x, above.bottom), (x, below.top))


def _sub(name: str, number: int) -> str:
    return f"{name}{number}".translate(_SUBSCRIPTS)


def _vector(numbers: Sequence[float]) -> str:
    return f"({', '.join(map(_number, numbers))})"


def _number(value: float) -> str:
    return f"{value:.4g}" if value == round(value, 1) else f"{value:.2f}"
