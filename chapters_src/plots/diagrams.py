"""A transformer as diagrams: its layers (chapter 08), how it is trained (chapters 09 and 12).

They are read from top to bottom. The thick line is the residual stream: what a layer is given goes past its
sublayers, and each of them adds to it. After figure 1 of Vaswani et al. (2017),
https://arxiv.org/abs/1706.03762; with the normalization first, after figure 1 of Xiong et al. (2020),
https://arxiv.org/abs/2002.04745.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from chapters_src.plots.drawing import LINE_HEIGHT, Box, Diagram, Line, Point, Span

_WIDTH = 420
_MARGIN = 4
_GAP = 22  # Between a box and the next one below it: room for an arrow.
_SHORT_GAP = 16  # The same inside a sublayer.
_RADIUS = 11  # Of the circles that add.
_NORM = ("LayerNorm", "")
_STATES = ("hidden_states", "(B, T, d_model)")
_MEMORY = ("memory", "(B, S, d_model)")
_LETTERS = "B: texts in the batch, T: tokens of a text, H: attention heads"
_SEES_ALL, _SEES_PAST = "no weight on padding", "no weight on later tokens or padding"


def encoder_layer(norm_first: bool = True) -> Diagram:
    """Draw an encoder layer: self-attention, then the feed-forward network.

    Args:
        norm_first: whether each sublayer sees normalized states (pre-norm), or the sum behind it is
            normalized (post-norm), as `Config` has it.

    Returns:
        A diagram that a notebook draws, and that readers of the site can zoom.
    """
    sheet = Diagram(
        title=f"Encoder layer, {_order(norm_first)}",
        description=_layer_in_words(
            norm_first,
            "self-attention, where a token sees all tokens but padding",
            "the feed-forward network, for each token by itself",
        ),
        caption=f"An encoder layer, {_order(norm_first)}. The thick line is the residual stream. {_LETTERS}.",
        width=_WIDTH,
    )
    stack = _layer(sheet, norm_first)
    stack.add(_self_attention("Self-attention", _SEES_ALL))
    stack.add(_feed_forward)
    stack.pass_through("data", _STATES)
    return sheet


def decoder_layer(norm_first: bool = True) -> Diagram:
    """Draw a decoder layer: masked self-attention, attention to the encoder, then the feed-forward network.

    Args and Returns: as for `encoder_layer`.
    """
    sheet = Diagram(
        title=f"Decoder layer, {_order(norm_first)}",
        description=_layer_in_words(
            norm_first,
            "masked self-attention, where a token sees itself and those before it",
            "cross-attention, whose query is made of the residual stream, and whose key and value are made "
            "of the memory: what the encoder gave, of shape (B, S, d_model)",
            "the feed-forward network, for each token by itself",
        ),
        caption=(
            f"A decoder layer, {_order(norm_first)}. The thick line is the residual stream, the dashed ones "
            f"come from the encoder. {_LETTERS}, S: tokens of the text in the encoder."
        ),
        width=_WIDTH,
    )
    stack = _layer(sheet, norm_first)
    stack.add(_self_attention("Masked self-attention", _SEES_PAST))
    memory = sheet.box("data", (188, 416), stack.bottom + _GAP, _MEMORY)
    stack.add(_cross_attention(memory), beside=memory)
    stack.add(_feed_forward)
    stack.pass_through("data", _STATES)
    return sheet


def pytorch_transformer() -> Diagram:
    """Draw PyTorch's `nn.Transformer` as it is by default: where each mask acts, and what is left to do.

    Returns:
        As for `encoder_layer`.
    """
    sheet = Diagram(
        title="nn.Transformer and its masks",
        description=(
            "On the left the encoder: an embedding with positions, which is yours, makes src of shape "
            "(B, S, d_model); then come num_encoder_layers encoder layers, each with self-attention, which "
            "takes src_mask and src_key_padding_mask, and a feed-forward network. Each sublayer adds what it "
            "makes to the stream, and the sum is normalized. One more normalization follows the last layer. "
            "What comes out is the memory, of shape (B, S, d_model). On the right the decoder: an embedding "
            "with positions, which is yours, makes tgt of shape (B, T, d_model); then come "
            "num_decoder_layers decoder layers, each with self-attention, which takes tgt_mask and "
            "tgt_key_padding_mask, cross-attention to the memory, which takes memory_mask and "
            "memory_key_padding_mask, and a feed-forward network. One more normalization follows. The head, "
            "which is yours, makes logits of shape (B, T, vocab_size)."
        ),
        caption=(
            "nn.Transformer with its default norm_first=False. Six masks enter at three places; all of them "
            "are None if nobody gives them. What is called yours is not in it. Shapes with "
            "batch_first=True; B: sequences in the batch, S and T: tokens of source and target."
        ),
        width=_WIDTH,
    )
    yours = (("Yours", ""), ("", "embedding + positions"))
    encoder = _Stack(sheet, False, stream=22, entry=114, sublayers=(46, 182), whole=(12, 182))
    encoder.begin(("source", ""))
    encoder.pass_through("lookup", *yours, arrow="flow")
    encoder.pass_through("data", ("src", "(B, S, d_model)"), arrow="flow")
    with encoder.frame((4, 188), 36, ("Encoder layer", ""), ("", "× num_encoder_layers")):
        encoder.add(_brief("attention", "Self-attention", "src_mask", "src_key_padding_mask"))
        encoder.add(_brief("feed_forward", "Feed-forward", "each token by itself"))
    encoder.pass_through("norm", _NORM)
    memory = encoder.pass_through("data", _MEMORY)

    decoder = _Stack(sheet, False, stream=398, entry=292, sublayers=(210, 374), whole=(210, 409))
    decoder.begin(("target", "one place late"))
    decoder.pass_through("lookup", *yours, arrow="flow")
    decoder.pass_through("data", ("tgt", "(B, T, d_model)"), arrow="flow")
    with decoder.frame((202, 416), 8, ("Decoder layer", ""), ("", "× num_decoder_layers")):
        decoder.add(_brief("attention", "Self-attention", "tgt_mask", "tgt_key_padding_mask"))
        notes = ("memory_mask", "memory_key_padding_mask")
        decoder.add(_brief("attention", "Cross-attention", *notes, memory=memory))
        decoder.add(_brief("feed_forward", "Feed-forward", "each token by itself"))
    decoder.pass_through("norm", _NORM)
    decoder.pass_through("lookup", ("Yours", "head"))
    decoder.pass_through("data", ("logits", "(B, T, vocab_size)"), arrow="flow")
    return sheet


def vision_transformer() -> Diagram:
    """Draw how a picture becomes a sequence, and how its class is read off the first token.

    Returns:
        As for `encoder_layer`.
    """
    sheet = Diagram(
        title="A picture as a sequence: the Vision Transformer",
        description=(
            "A picture of shape (B, C, 8, 8) is cut into 16 patches of 2 x 2 pixels, row by row. One linear "
            "layer makes a vector of each patch, d_model numbers. A learned vector, the class token, is put "
            "in front, and to each of the 17 a learned vector of its position is added: (B, 17, d_model). "
            "The encoder, num_layers layers of self-attention and feed-forward network without a mask, gives "
            "as many states. The head, a linear layer, reads the first of them, that of the class token, and "
            "makes logits of shape (B, num_classes). The states of the patches are not read."
        ),
        caption=(
            "A picture of a digit as a sequence of 17 vectors. All in the middle is the encoder of chapter "
            "08; new are the cut at the top, the class token, and who is read at the end. B: pictures in the "
            "batch, C: channels."
        ),
        width=_WIDTH,
    )
    names = ("class token", "patch 1", "patch 2", "…", "patch 15", "patch 16")
    places = [(4.0, 86.0)] + [(96.0 + 65 * i, 155.0 + 65 * i) for i in range(5)]
    of_patches, of_all = (places[1][0], places[-1][1]), (places[0][0], places[-1][1])
    image = sheet.box("data", of_patches, _MARGIN, ("picture", "(B, C, 8, 8), cut into squares of 2 × 2"))
    top = image.bottom + _GAP
    first, *cut = [
        sheet.box("lookup" if i == 0 else "data", place, top, ("", name))
        for i, (place, name) in enumerate(zip(places, names, strict=True))
    ]
    linear = sheet.box(
        "lookup", of_patches, first.bottom + _GAP, ("linear", "each patch: C · 2 · 2 numbers to d_model")
    )
    added = sheet.box(
        "lookup", of_all, linear.bottom + _GAP, ("+ positions", "one learned vector for each of 17 places")
    )
    encoder = sheet.box(
        "attention",
        of_all,
        added.bottom + _GAP,
        ("Encoder", "self-attention, feed-forward, × num_layers"),
        ("", "(B, 17, d_model), no mask: all see all"),
    )
    top = encoder.bottom + _GAP
    states = [
        sheet.box("data", place, top, ("", "state" if i else "its state")) for i, place in enumerate(places)
    ]
    head = sheet.box(
        "lookup", (4, 286), states[0].bottom + _GAP, ("Head", "linear, reads the class token only")
    )
    logits = sheet.box("data", (4, 286), head.bottom + _GAP, ("logits", "(B, num_classes)"))
    for box in cut:
        for above, below in itertools.pairwise((image, box, linear, added)):
            sheet.arrow("flow", (box.middle[0], above.bottom), (box.middle[0], below.top))
    sheet.arrow("flow", (first.middle[0], first.bottom), (first.middle[0], added.top))
    for box in states:
        x = box.middle[0]
        sheet.arrow("flow", (x, added.bottom), (x, encoder.top))
        sheet.arrow("flow", (x, encoder.bottom), (x, box.top))
    sheet.arrow("flow", (states[0].middle[0], states[0].bottom), (states[0].middle[0], head.top))
    sheet.arrow("flow", (head.middle[0], head.bottom), (logits.middle[0], logits.top))
    return sheet


def next_token_prediction() -> Diagram:
    """Draw how a decoder learns to write: what each token of a block is read for. Chapter 12.

    Returns:
        As for `encoder_layer`.
    """
    tokens = ("end", "Returns", "the", "index", "of", "the")
    sheet = Diagram(
        title="Learning to predict the next token",
        description=(
            f"The ids of {len(tokens) - 1} tokens go into a decoder with causal self-attention, whose head "
            "gives vocab_size logits for each of the (B, T) tokens. They are compared with the next token: "
            f"{'; '.join(f'after {a}, {b}' for a, b in itertools.pairwise(tokens))}. The loss is "
            "the mean of -ln P of these. B: blocks in the batch, T: tokens of a block."
        ),
        caption=(
            "Every token of a block is a lesson: what comes next? The labels are the ids, moved one place to "
            "the left; the causal mask keeps each row of logits from seeing its own label. B: blocks in the "
            "batch, T: tokens of a block."
        ),
        width=_WIDTH,
    )
    places = [(4 + 84 * i, 80 + 84 * i) for i in range(len(tokens) - 1)]
    ids = [
        sheet.box("data", place, _MARGIN, (token, "")) for place, token in zip(places, tokens, strict=False)
    ]
    decoder = sheet.box(
        "attention",
        (places[0][0], places[-1][1]),
        ids[0].bottom + _GAP,
        ("Decoder", "causal self-attention, feed-forward, × num_layers"),
        ("", "(B, T) ids to (B, T, d_model) hidden states"),
    )
    head = sheet.box(
        "lookup",
        (places[0][0], places[-1][1]),
        decoder.bottom + _GAP,
        ("Head", "the embedding's matrix again: (B, T, vocab_size) logits"),
    )
    sheet.arrow("flow", (decoder.middle[0], decoder.bottom), (head.middle[0], head.top))
    for box, place, label in zip(ids, places, tokens[1:], strict=True):
        sheet.arrow("flow", (box.middle[0], box.bottom), (box.middle[0], decoder.top))
        below = sheet.box("data", place, head.bottom + _GAP, ("", "− ln P of"), (label, ""))
        sheet.arrow("flow", (box.middle[0], head.bottom), (box.middle[0], below.top))
    return sheet


def translation() -> Diagram:
    """Draw how a translator learns: one sentence through encoder and decoder, the target shifted. Chapter 09.

    Returns:
        As for `encoder_layer`.
    """
    source, target = ("He", "opens", "the", "door", "."), ("Er", "macht", "die", "Tür", "auf", ".")
    inputs, labels = ("start", *target), (*target, "end")
    pairs = "; ".join(f"at {a} it is to predict {b}" for a, b in zip(inputs, labels, strict=True))
    sheet = Diagram(
        title="Learning to translate",
        description=(
            f"The {len(source)} tokens of the source, {' '.join(source)}, go into the encoder, where every "
            "token sees all others. It gives the memory, a state for each of them. Below, the decoder reads "
            f"the target, shifted right by one: {' '.join(inputs)}. Each of these sees itself and what is on "
            f"its left, and, by cross-attention, the memory. The head gives logits: {pairs}."
        ),
        caption=(
            "A pair in training. The decoder reads the right translation, shifted right by one, so that at "
            "each position it has read everything before the token that it is to predict, and not that token."
            " The causal mask hides what is on the right. Dashed: cross-attention to the source."
        ),
        width=_WIDTH,
    )
    whole = (_MARGIN, 396)
    places = [(10 + 55 * i, 59 + 55 * i) for i in range(len(inputs))]

    def row(tokens: tuple[str, ...], top: float, *above: Line) -> list[Box]:
        fitting = places[: len(tokens)]
        return [sheet.box("data", at, top, *above, (t, "")) for at, t in zip(fitting, tokens, strict=True)]

    def framed(tokens: tuple[str, ...], top: float, note: str) -> list[Box]:
        sheet.box("frame", whole, top, ("", note), height=63, indent=8)
        return row(tokens, top + 27)

    def below(boxes: list[Box], kind: str, *lines: Line) -> Box:
        made = sheet.box(kind, whole, boxes[0].bottom + _GAP + 7, *lines)
        for box in boxes:
            sheet.arrow("flow", (box.middle[0], box.bottom), (box.middle[0], made.top))
        return made

    read = framed(source, _MARGIN, "source: all of it is known from the start")
    encoder = below(read, "attention", ("Encoder", "every token sees every token, × num_layers"))
    memory = sheet.box(
        "data", whole, encoder.bottom + _GAP, ("memory", "a state for each token of the source")
    )
    sheet.arrow("flow", (encoder.middle[0], encoder.bottom), (memory.middle[0], memory.top))
    shifted = framed(inputs, memory.bottom + 14, "decoder input: the target, shifted right by one")
    decoder = below(
        shifted,
        "attention",
        ("Decoder", "every token sees itself and its left, × num_layers"),
        ("", "and the memory, by cross-attention"),
    )
    x = (whole[1] + _WIDTH) / 2
    corners = ((x, memory.middle[1]), (x, decoder.middle[1]))
    sheet.arrow("memory", (memory.right, memory.middle[1]), *corners, (decoder.right, decoder.middle[1]))
    head = sheet.box("lookup", whole, decoder.bottom + _GAP, ("Head", "vocab_size logits at each position"))
    sheet.arrow("flow", (decoder.middle[0], decoder.bottom), (head.middle[0], head.top))
    for box in row(labels, head.bottom + _GAP, ("", "label")):
        sheet.arrow("flow", (box.middle[0], head.bottom), (box.middle[0], box.top))
    return sheet


# Draws a sublayer below a height, and an arrow from a point to it. It gives the last box and where it ends.
_Sublayer = Callable[["_Stack", float, Point], tuple[Box, float]]


@dataclass
class _Stack:
    """Sub-layers drawn one below the other, beside the residual stream that goes past them."""

    sheet: Diagram
    norm_first: bool
    stream: float  # Where the residual stream goes down.
    entry: float  # Where the arrow from a norm to its sublayer goes down.
    sublayers: Span
    whole: Span  # Of what the stream itself goes through.
    states: Box = field(init=False)  # Where the stream comes from.
    bottom: float = field(init=False)

    def begin(self, line: Line) -> None:
        """Draw what goes in."""
        self.states = self.sheet.box("data", self.whole, _MARGIN, line)
        self.bottom = self.states.bottom

    def pass_through(self, kind: str, *lines: Line, arrow: str = "residual") -> Box:
        """Lead the stream, or what is not yet or no more the stream, into a box."""
        box = self.sheet.box(kind, self.whole, self.bottom + _GAP, *lines)
        self.sheet.arrow(arrow, (self.stream, self.states.bottom), (self.stream, box.top))
        self.states, self.bottom = box, box.bottom
        return box

    def add(self, sublayer: _Sublayer, beside: Box | None = None) -> None:
        """Draw a sublayer, its norm, and the circle that adds what it made to the stream."""
        sheet, source, fork = self.sheet, self.states, (self.stream, self.states.bottom)
        top = self.bottom + _GAP if beside is None else beside.top
        if self.norm_first:
            right = self.sublayers[1] if beside is None else beside.left - 12
            norm = sheet.box("norm", (self.sublayers[0], right), top, _NORM)
            sheet.arrow("flow", fork, (self.stream, norm.middle[1]), (self._near(norm), norm.middle[1]))
            last, bottom = sublayer(self, norm.bottom + _SHORT_GAP, (self.entry, norm.bottom))
        else:
            last, bottom = sublayer(self, top if beside is None else beside.bottom + _SHORT_GAP, fork)
        middle = last.middle[1]
        circle = (self.stream - _RADIUS, self.stream + _RADIUS)
        total = sheet.box("add", circle, middle - _RADIUS, height=2 * _RADIUS)
        towards = total.right if self.stream < last.left else total.left
        sheet.arrow("flow", (self._near(last), middle), (towards, middle))
        sheet.arrow("residual", (self.stream, source.bottom), (self.stream, total.top))
        self.states, self.bottom = total, bottom
        if not self.norm_first:
            self.pass_through("norm", _NORM)

    @contextmanager
    def frame(self, span: Span, indent: float, *lines: Line) -> Iterator[None]:
        """Draw a frame around what is added within."""
        top = self.bottom + _GAP
        self.bottom = top + LINE_HEIGHT * len(lines) - 4
        yield
        self.bottom += 12
        self.sheet.box("frame", span, top, *lines, height=self.bottom - top, indent=indent)

    def _near(self, box: Box) -> float:
        """The side of a box that faces the stream."""
        return box.left if self.stream < box.left else box.right


def _layer(sheet: Diagram, norm_first: bool) -> _Stack:
    stack = _Stack(sheet, norm_first, stream=26, entry=68, sublayers=(50, 416), whole=(4, 416))
    stack.begin(_STATES)
    return stack


def _self_attention(title: str, mask: str) -> _Sublayer:
    """Attention whose query, key and value are all made of what the arrow brings."""

    def draw(stack: _Stack, top: float, start: Point) -> tuple[Box, float]:
        inputs = _query_key_value(stack, top, "T")
        _lead(stack, start, *inputs)
        return _attention(stack, top, inputs, (title, "num_heads side by side"), mask, "T")

    return draw


def _cross_attention(memory: Box) -> _Sublayer:
    """Attention whose key and value are made of the memory, a box right above."""

    def draw(stack: _Stack, top: float, start: Point) -> tuple[Box, float]:
        inputs = _query_key_value(stack, top, "S")
        _lead(stack, start, inputs[0])
        for box in inputs[1:]:
            x = box.middle[0]
            stack.sheet.arrow("memory", (x, memory.bottom), (x, box.top))
        return _attention(stack, top, inputs, ("Cross-attention", ""), _SEES_ALL, "S")

    return draw


def _query_key_value(stack: _Stack, top: float, keys: str) -> list[Box]:
    left, right = _inside(stack)
    gap = 6
    width = (right - left - 2 * gap) / 3
    boxes = []
    for i, name in enumerate(("query", "key", "value")):
        x = left + i * (width + gap)
        shape = f"(B, H, {keys if i else 'T'}, head_dim)"
        boxes.append(stack.sheet.box("attention", (x, x + width), top + 46, (name, "linear"), ("", shape)))
    return boxes


def _attention(
    stack: _Stack, top: float, inputs: list[Box], title: Line, mask: str, keys: str
) -> tuple[Box, float]:
    """Draw the rest of an attention sublayer, below query, key and value, and the frame around it."""
    sheet, inside, (query, key, value) = stack.sheet, _inside(stack), inputs
    scores = sheet.box(
        "attention",
        (query.left, key.right),
        query.bottom + _SHORT_GAP,
        ("softmax of the scores", ""),
        ("", "query · keyᵀ / √head_dim"),
        ("", mask),
    )
    mixed = sheet.box(
        "attention",
        inside,
        scores.bottom + _SHORT_GAP,
        ("attn_weights · value", f"(B, H, T, {keys}) · (B, H, {keys}, head_dim)"),
    )
    output = sheet.box(
        "attention", inside, mixed.bottom + _SHORT_GAP, ("join the heads, linear", "(B, T, d_model)")
    )
    for above, below in ((query, scores), (key, scores), (scores, mixed), (value, mixed), (mixed, output)):
        x = above.middle[0]
        sheet.arrow("flow", (x, above.bottom), (x, below.top))
    return output, _close(stack, top, output, title)


def _feed_forward(stack: _Stack, top: float, start: Point) -> tuple[Box, float]:
    """Two linear layers with an activation between them."""
    sheet, inside = stack.sheet, _inside(stack)
    up = sheet.box("feed_forward", inside, top + 46, ("linear", "(B, T, feed_forward_width)"))
    active = sheet.box("feed_forward", inside, up.bottom + _SHORT_GAP, ("activation", "ReLU or GELU"))
    down = sheet.box("feed_forward", inside, active.bottom + _SHORT_GAP, ("linear", "(B, T, d_model)"))
    _lead(stack, start, up)
    for above, below in ((up, active), (active, down)):
        x = above.middle[0]
        sheet.arrow("flow", (x, above.bottom), (x, below.top))
    return down, _close(stack, top, down, ("Feed-forward", "each token by itself"))


def _brief(kind: str, title: str, *notes: str, memory: Box | None = None) -> _Sublayer:
    """A sublayer as one box; what comes from the memory enters it between the stacks."""

    def draw(stack: _Stack, top: float, start: Point) -> tuple[Box, float]:
        top += 0 if stack.norm_first else _RADIUS  # Without a norm above, the arrow needs the room.
        box = stack.sheet.box(kind, stack.sublayers, top, (title, ""), *(("", note) for note in notes))
        _lead(stack, start, box)
        if memory is not None:
            between, middle = box.left - 16, box.middle[1]
            corners = ((between, memory.middle[1]), (between, middle))
            stack.sheet.arrow("memory", (memory.right, memory.middle[1]), *corners, (box.left, middle))
        return box, box.bottom

    return draw


def _lead(stack: _Stack, start: Point, *boxes: Box) -> None:
    """Draw an arrow from a point to the middle of each box, down, across and down again."""
    for box in boxes:
        x, level = box.middle[0], box.top - 13
        stack.sheet.arrow("flow", start, (start[0], level), (x, level), (x, box.top))


def _close(stack: _Stack, top: float, last: Box, title: Line) -> float:
    """Draw the frame around a sublayer; gives where it ends."""
    bottom = last.bottom + 10
    stack.sheet.box("frame", stack.sublayers, top, title, height=bottom - top, indent=30)
    return bottom


def _inside(stack: _Stack) -> Span:
    return stack.sublayers[0] + 6, stack.sublayers[1] - 6


def _order(norm_first: bool) -> str:
    return "normalization first (pre-norm)" if norm_first else "normalization last (post-norm)"


def _layer_in_words(norm_first: bool, *sublayers: str) -> str:
    """Tell what a layer does, for those who cannot see it."""
    how = (
        "normalizes what is in the stream and adds what it makes of it to the stream"
        if norm_first
        else "adds what it makes of the stream to the stream, and then the sum is normalized"
    )
    numbered = "; ".join(f"{i}. {sublayer}" for i, sublayer in enumerate(sublayers, 1))
    return (
        "From top to bottom: hidden_states of shape (B, T, d_model) enter the residual stream. "
        f"Each sublayer {how}. The sublayers are: {numbered}. Out come hidden_states of the same shape. "
        "Attention makes query, key and value with linear layers, takes the softmax of the scores, "
        "query · keyᵀ / √head_dim, sums the values with these weights, joins the heads and ends with a "
        "linear layer. The feed-forward network is a linear layer to feed_forward_width, an activation, and "
        "a linear layer back to d_model."
    )
