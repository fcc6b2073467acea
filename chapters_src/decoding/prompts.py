"""Where decoding starts: prompts of different lengths, in a state that has read them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from chapters_src.decoding.checks import check_count
from chapters_src.decoding.filters import PADDING
from chapters_src.decoding.stopping import ONLY_LENGTH, Stop
from chapters_src.transformer import DecodingState, start_decoding

Prompts = Sequence[Sequence[int]] | Tensor
TargetIds = Sequence[int] | Tensor | None


class Start(NamedTuple):
    """A state, and what its decoder has read."""

    state: DecodingState
    ids: Tensor  # As filters take them, (B, T): what padding there is, is on the left, and -1.


def begin(
    model: nn.Module,
    prompts: Prompts,
    attention_mask: Tensor | None,
    max_new_tokens: int,
    target_ids: TargetIds = None,
    stop: Stop = ONLY_LENGTH,
) -> Start:
    """Let a model read prompts, or sources and the beginning of their targets.

    Prompts are padded anew, on the left; sources on the right, because some of the library's encoders give
    padding a position.

    Args:
        model: whatever `start_decoding` takes.
        prompts: ids, a list for each prompt; or a tensor (B, T), padded on either side. For an
            encoder-decoder the sources.
        attention_mask: of a tensor: 1 for a token, 0 for padding; None: nothing is padding.
        max_new_tokens: from 1.
        target_ids: for an encoder-decoder, and only there: what each target begins with. One list of ids
            for all of them, or a tensor (B, tokens).
        stop: whose end ids have to be in the vocabulary.

    Returns:
        The start.

    Raises:
        ValueError: no prompts, a prompt without a token, an attention mask that does not fit, end ids outside
            the vocabulary, no room for as many tokens, and all else that `start_decoding` refuses.
    """
    check_count("max_new_tokens", max_new_tokens)
    device = next(model.parameters()).device
    rows = to_rows(prompts, attention_mask)
    ids, mask = (each.to(device) for each in pad(rows, "left" if target_ids is None else "right"))
    if target_ids is not None:
        target_ids = torch.as_tensor(target_ids, device=device)
        if target_ids.ndim == 1:
            target_ids = target_ids.expand(len(rows), -1)
    state = start_decoding(model, ids, mask, max_new_tokens=max_new_tokens, target_ids=target_ids)
    vocab_size = state.next_logits.size(-1)
    if outside := [each for each in stop.end_ids if each >= vocab_size]:
        raise ValueError(f"end_ids={outside} are not in the model's vocabulary, 0 ... {vocab_size - 1}")
    return Start(state, ids.masked_fill(mask == 0, PADDING) if target_ids is None else target_ids)


def to_rows(prompts: Prompts, attention_mask: Tensor | None) -> list[list[int]]:
    """Take the padding away: one list of ids for each prompt.

    Args:
        prompts: lists of ids, or a tensor (B, T).
        attention_mask: of a tensor: 1 for a token, 0 for padding; None: nothing is padding.

    Returns:
        The ids of each.

    Raises:
        ValueError: no prompts, one without a token, a single list, or a mask that does not fit.
    """
    if isinstance(prompts, Tensor) and prompts.ndim == 2:
        mask = torch.ones_like(prompts) if attention_mask is None else attention_mask
        if mask.shape != prompts.shape or not ((mask == 0) | (mask == 1)).all():
            raise ValueError(
                f"attention_mask {tuple(mask.shape)} for prompts {tuple(prompts.shape)}: 1 for each token "
                "and 0 for padding are needed"
            )
        rows = [row[is_token].tolist() for row, is_token in zip(prompts, mask.bool(), strict=True)]
    elif attention_mask is not None:
        raise ValueError(
            "attention_mask is for a padded tensor of ids (batch, tokens): leave it out for lists"
        )
    elif len(prompts) == 0 or isinstance(prompts, Tensor) or isinstance(prompts[0], (int, str)):
        raise ValueError(f"prompts={prompts!r}: a list of ids for each prompt is needed; for one write [ids]")
    else:
        rows = [list(row) for row in prompts]
    for number, row in enumerate(rows):
        if not row:
            raise ValueError(f"prompt {number} has no token: begin it with a start token")
    return rows


def pad(rows: Sequence[Sequence[int]], side: str, padding_id: int = 0) -> tuple[Tensor, Tensor]:
    """Put rows of different lengths into one tensor.

    Args:
        rows: whole numbers.
        side: where the padding goes: "left" or "right".
        padding_id: what stands there.

    Returns:
        The ids, and 1 for each of them and 0 for padding; both (B, as many as the longest has).
    """
    longest = max(map(len, rows))

    def filled(row: Sequence[int], filling: int) -> list[int]:
        rest = [filling] * (longest - len(row))
        return [*rest, *row] if side == "left" else [*row, *rest]

    ids = torch.tensor([filled(row, padding_id) for row in rows])
    return ids, torch.tensor([filled([1] * len(row), 0) for row in rows])
