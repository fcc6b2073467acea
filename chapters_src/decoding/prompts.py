"""Prompts of different lengths, and the state of a model that has read them."""

import operator
from collections.abc import Sequence
from numbers import Integral
from typing import NamedTuple

import torch
from torch import Tensor, nn

from chapters_src.decoding.filters import PADDING
from chapters_src.decoding.state import DecodingState, start_decoding
from chapters_src.decoding.stopping import ONLY_LENGTH, Stop
from chapters_src.padding import pad
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

    Arguments are those of `greedy`. Prompts are padded on the left. Sources are padded on the right, because
    in some of the library's encoders padding takes up positions.

    Raises:
        ValueError: as for `to_rows` and `start_decoding`, or an end id of `stop` is not in the vocabulary.
        TypeError: as for `start_decoding`.
    """
    max_new_tokens = as_integer("max_new_tokens", max_new_tokens)
    device = next(model.parameters()).device
    rows = to_rows(prompts, attention_mask)
    ids, mask = pad(rows, padding_id=0, side="left" if target_ids is None else "right")
    ids, mask = ids.to(device), None if mask is None else mask.to(device)
    if target_ids is None:
        targets, seen = None, ids if mask is None else ids.masked_fill(mask == 0, PADDING)
    else:
        targets = torch.as_tensor(target_ids, device=device)
        if not targets.is_floating_point():  # Such numbers are left for `start_decoding` to refuse.
            targets = targets.long()
        seen = targets = targets.expand(len(rows), -1) if targets.ndim == 1 else targets
    state = start_decoding(model, ids, mask, max_new_tokens=max_new_tokens, target_ids=targets)
    vocab_size = state.next_logits.size(-1)
    if outside := [each for each in stop.end_ids if each >= vocab_size]:
        raise ValueError(f"end_ids={outside} are not in the model's vocabulary, 0 ... {vocab_size - 1}")
    return Start(state, seen, max_new_tokens)


def to_rows(prompts: Prompts, attention_mask: Tensor | None) -> list[list[int]]:
    """Return the ids of each prompt, without padding. Arguments are those of `greedy`.

    Raises:
        ValueError: there are no prompts, one has no token or is no list of ids, or the mask does not match.
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
    elif len(prompts) == 0 or isinstance(prompts, Tensor) or isinstance(prompts[0], Integral):
        raise ValueError(
            f"prompts={prompts!r}: expected one list of ids per prompt; for one prompt, pass [ids]"
        )
    else:
        rows = [row.tolist() if hasattr(row, "tolist") else list(row) for row in prompts]
    for number, row in enumerate(rows):
        if not row:
            raise ValueError(f"prompt {number} has no token: begin it with a start token")
        try:
            rows[number] = [operator.index(each) for each in row]
        except TypeError as error:
            raise ValueError(f"prompt {number} is {row!r}: expected integers, its ids") from error
    return rows
