"""Prompts of different lengths, and the state of a model that has read them."""

from collections.abc import Sequence
from numbers import Integral
from typing import NamedTuple

import torch
from torch import Tensor, nn

from chapters_src.decoding.filters import PADDING
from chapters_src.decoding.stopping import ONLY_LENGTH, Stop
from chapters_src.transformer import DecodingState, start_decoding
from chapters_src.transformer.checks import as_integer

Prompts = Sequence[Sequence[int]] | Tensor
TargetIds = Sequence[int] | Tensor | None


class Start(NamedTuple):
    """A decoding state, and how to go on from it."""

    state: DecodingState
    ids: Tensor  # The ids the decoder has read, as filters take them, (B, T): padding is on the left, as -1.
    max_new_tokens: int


def begin(
    model: nn.Module,
    prompts: Prompts,
    attention_mask: Tensor | None,
    max_new_tokens: int,
    target_ids: TargetIds = None,
    stop: Stop = ONLY_LENGTH,
) -> Start:
    """Let a model read the prompts, or the sources and the beginnings of their targets.

    Prompts are padded on the left. Sources are padded on the right, because in some of the library's
    encoders padding takes up positions.

    Args:
        model: a model that `start_decoding` accepts.
        prompts: ids, one list per prompt; or a tensor (B, T), padded on either side. For an encoder-decoder,
            the sources.
        attention_mask: for a tensor: 1 for a token, 0 for padding; None: there is no padding.
        max_new_tokens: at least 1.
        target_ids: for an encoder-decoder, and only there: the first tokens of each target. One list of ids
            for all of them, or a tensor (B, tokens).
        stop: its end ids have to be in the vocabulary.

    Returns:
        The state, and what it has read.

    Raises:
        ValueError: there are no prompts, a prompt has no token, the attention mask does not match, an end id
            is not in the vocabulary, or as for `start_decoding`.
        TypeError: as for `start_decoding`.
    """
    max_new_tokens = as_integer("max_new_tokens", max_new_tokens)
    device = next(model.parameters()).device
    rows = to_rows(prompts, attention_mask)
    ids, mask = (each.to(device) for each in pad(rows, "left" if target_ids is None else "right"))
    seen = ids.masked_fill(mask == 0, PADDING)
    if target_ids is not None:
        seen = _as_int64(torch.as_tensor(target_ids, device=device))
        if seen.ndim == 1:
            seen = seen.expand(len(rows), -1)
    targets = None if target_ids is None else seen
    state = start_decoding(model, ids, mask, max_new_tokens=max_new_tokens, target_ids=targets)
    vocab_size = state.next_logits.size(-1)
    if outside := [each for each in stop.end_ids if each >= vocab_size]:
        raise ValueError(f"end_ids={outside} are not in the model's vocabulary, 0 ... {vocab_size - 1}")
    return Start(state, seen, max_new_tokens)


def to_rows(prompts: Prompts, attention_mask: Tensor | None) -> list[list[int]]:
    """Remove the padding.

    Args:
        prompts: lists of ids, or a tensor (B, T).
        attention_mask: for a tensor: 1 for a token, 0 for padding; None: there is no padding.

    Returns:
        The ids of each prompt.

    Raises:
        ValueError: there are no prompts, one has no token, or the mask does not match; or a single list of
            ids, or texts, were passed.
    """
    if isinstance(prompts, Tensor) and prompts.ndim == 2:
        mask = torch.ones_like(prompts) if attention_mask is None else attention_mask
        if mask.shape != prompts.shape or not ((mask == 0) | (mask == 1)).all():
            raise ValueError(
                f"attention_mask {tuple(mask.shape)} for prompts {tuple(prompts.shape)}: expected 1 for each "
                "token and 0 for padding"
            )
        rows = [row[is_token].tolist() for row, is_token in zip(prompts, mask.bool(), strict=True)]
    elif attention_mask is not None:
        raise ValueError("attention_mask is only for a tensor of ids (batch, tokens): leave it out for lists")
    elif len(prompts) == 0 or isinstance(prompts, Tensor) or isinstance(prompts[0], Integral | str):
        raise ValueError(
            f"prompts={prompts!r}: expected one list of ids per prompt; for one prompt, pass [ids]"
        )
    else:
        rows = [list(row) for row in prompts]
    for number, row in enumerate(rows):
        if not row:
            raise ValueError(f"prompt {number} has no token: begin it with a start token")
    return rows


def pad(rows: Sequence[Sequence[int]], side: str, padding_id: int = 0) -> tuple[Tensor, Tensor]:
    """Pad rows of different lengths, and return them as a tensor.

    Args:
        rows: lists of ids.
        side: where to pad: "left" or "right".
        padding_id: the id to pad with.

    Returns:
        The ids and their attention mask, both (B, length of the longest row).
    """
    longest = max(map(len, rows))

    def filled(row: Sequence[int], filling: int) -> list[int]:
        rest = [filling] * (longest - len(row))
        return [*rest, *row] if side == "left" else [*row, *rest]

    ids = _as_int64(torch.tensor([filled(row, padding_id) for row in rows]))
    return ids, torch.tensor([filled([1] * len(row), 0) for row in rows])


def _as_int64(ids: Tensor) -> Tensor:
    """Convert integers of any type; leave other numbers for `start_decoding` to refuse."""
    return ids if ids.is_floating_point() else ids.long()
