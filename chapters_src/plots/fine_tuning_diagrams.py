"""Fine-tuning as diagrams: body and head, trained in three ways, and LoRA's two paths. Chapter 05.

They are drawn with `drawing`, like the layers of chapter 08, and read from top to bottom. What is trained is
blue and says so. LoRA after figure 1 of Hu et al. (2021), https://arxiv.org/abs/2106.09685.
"""

from chapters_src.plots.drawing import Box, Diagram

_WIDTH = 420
_GAP = 18  # Vertical gap between boxes, for an arrow.
_RADIUS = 11  # Of the addition circle.


def body_and_head(num_layers: int, num_classes: int) -> Diagram:
    """Draw what is trained with frozen features, in fine-tuning and with LoRA, and how far the gradient goes.

    Args:
        num_layers: number of layers in the body.
        num_classes: number of classes of the head.

    Returns:
        A diagram that a notebook draws, and that readers of the site can zoom.
    """
    sheet = Diagram(
        title="Body and head, trained in three ways",
        description=(
            f"Three columns. In each, ids go through a body of {num_layers} layers, which makes one vector "
            f"per text; a head makes {num_classes} logits of it, and the loss compares them with the label. "
            "With frozen features only the head is trained, and the gradient of the loss ends at the head. "
            "In fine-tuning body and head are trained, and the gradient goes through all layers. With LoRA "
            "the weights of the body are frozen; small matrices A and B beside them and the head are "
            "trained, and the gradient has to go through the frozen layers to reach them."
        ),
        caption=(
            "The same model, trained in three ways. Blue is trained, gray is frozen; the dashed line is the "
            "gradient, which goes back from the loss. Frozen features are cheap because it stops at the "
            "head. LoRA trains few weights, but the gradient still crosses the whole body."
        ),
        width=_WIDTH,
    )
    body = f"{num_layers} layers"
    for number, name in enumerate(("frozen features", "fine-tuning", "LoRA")):
        left = 4 + 140 * number
        span, lane = (left + 4, left + 104), left + 124  # The gradient goes back along the lane.
        top = sheet.box("data", (left, left + 132), 4, (name, ""))
        ids = sheet.box("data", span, top.bottom + 10, ("", "ids"))
        under = ids.bottom + _GAP
        if name == "LoRA":
            frozen = sheet.box(
                "data", (span[0], span[0] + 50), under, ("body", ""), ("", body), ("", "frozen")
            )
            small = sheet.box(
                "attention", (span[0] + 56, span[1]), under, ("A, B", ""), ("", "small"), ("", "trained")
            )
            parts, trained = [frozen, small], small
        else:
            kind, word = ("attention", "trained") if name == "fine-tuning" else ("data", "frozen")
            parts = [sheet.box(kind, span, under, ("body", ""), ("", body), ("", word))]
            trained = parts[0] if kind == "attention" else None
        vector = sheet.box("data", span, parts[0].bottom + _GAP, ("", "one vector"))
        for part in parts:
            x = part.middle[0]
            sheet.arrow("flow", (x, ids.bottom), (x, part.top))
            sheet.arrow("flow", (x, part.bottom), (x, vector.top))
        head = sheet.box(
            "attention",
            span,
            vector.bottom + _GAP,
            ("head", ""),
            ("", f"{num_classes} logits"),
            ("", "trained"),
        )
        _down(sheet, vector, head)
        loss = sheet.box("data", span, head.bottom + _GAP, ("loss", ""))
        _down(sheet, head, loss)
        for end in filter(None, (head, trained)):
            y = end.middle[1]
            sheet.arrow(
                "memory", (loss.right, loss.middle[1]), (lane, loss.middle[1]), (lane, y), (end.right, y)
            )
    return sheet


def lora(width: int, rank: int, alpha: float) -> Diagram:
    """Draw a linear layer with LoRA: the frozen matrix, and the thin path beside it.

    Args:
        width: input and output size of the layer.
        rank: rank of the update.
        alpha: the update is scaled by `alpha / rank`.

    Returns:
        A diagram that a notebook draws, and that readers of the site can zoom.
    """
    sheet = Diagram(
        title=f"A linear layer with LoRA of rank {rank}",
        description=(
            f"A vector x of {width} numbers takes two paths. On the left it goes through the frozen matrix "
            f"W, of {width} by {width}: {width * width:,} numbers. On the right it goes through A, {rank} by "
            f"{width}, which leaves {rank} numbers, and through B, {width} by {rank}, back to {width}: "
            f"together {2 * width * rank:,} numbers, which are trained. B starts at zero. The result of the "
            f"right path, times {alpha:g}/{rank}, is added to that of the left path."
        ),
        caption=(
            f"LoRA squeezes x through {rank} numbers and adds the result, scaled, to what the frozen matrix "
            f"gives. Only A and B are trained: {2 * width * rank:,} numbers instead of {width * width:,}. B "
            "starts at zero, so that the start is the model as it was."
        ),
        width=_WIDTH,
    )
    left, right = (4, 200), (220, 416)
    x = sheet.box("data", (4, 416), 4, ("x", f"{width} numbers"))
    top = x.bottom + _GAP
    first = sheet.box("attention", right, top, ("A", f"{rank} × {width}, trained"))
    thin = sheet.box("data", (283, 353), first.bottom + _GAP, ("", f"{rank} numbers"))
    second = sheet.box(
        "attention", right, thin.bottom + _GAP, ("B", f"{width} × {rank}, trained"), ("", "starts at zero")
    )
    scale = sheet.box("data", (283, 353), second.bottom + _GAP, ("", f"× {alpha:g}/{rank}"))
    frozen = sheet.box("data", left, top, ("W", f"{width} × {width}, frozen"), height=second.bottom - top)
    for box in (frozen, first):
        sheet.arrow("flow", (box.middle[0], x.bottom), (box.middle[0], box.top))
    for above, below in ((first, thin), (thin, second), (second, scale)):
        _down(sheet, above, below)
    across, down = frozen.middle[0], scale.middle[1]
    plus = sheet.box("add", (across - _RADIUS, across + _RADIUS), down - _RADIUS, height=2 * _RADIUS)
    _down(sheet, frozen, plus)
    sheet.arrow("flow", (scale.left, down), (plus.right, down))
    after = sheet.box("data", (4, 416), scale.bottom + _GAP, ("W x + correction", f"{width} numbers"))
    sheet.arrow("flow", (across, plus.bottom), (across, after.top))
    return sheet


def _down(sheet: Diagram, above: Box, below: Box) -> None:
    sheet.arrow("flow", (above.middle[0], above.bottom), (above.middle[0], below.top))
