"""The log-probabilities of given sequences."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from chapters_src.decoding.probabilities import log_probabilities_of, upcast
from chapters_src.decoding.prompts import Prompts, TargetIds, begin, pad, to_rows
from chapters_src.decoding.results import Scored


def sequence_log_probability(
    model: nn.Module,
    prompts: Prompts,
    continuations: Sequence[Sequence[int]],
    *,
    attention_mask: Tensor | None = None,
    target_ids: TargetIds = None,
) -> list[Scored]:
    """Return the log-probability of each continuation after its prompt, and of each of its tokens.

    All tokens are scored in one step. A language model does not predict the first token of a text: to score a
    complete text, pass its first token, or a start token, as the prompt.

    Args:
        model: as for `greedy`.
        prompts: ids, one list per prompt; or a tensor (B, T), padded on either side. For an encoder-decoder,
            the sources.
        continuations: the ids to score, one list per prompt; for an encoder-decoder, the targets without
            `target_ids`. Include the end token to score the end.
        attention_mask: for a tensor of prompts: 1 for a token, 0 for padding.
        target_ids: for an encoder-decoder, and only there: the first tokens of each target.

    Returns:
        One result per prompt.

    Raises:
        ValueError: the numbers of continuations and prompts differ, a continuation has no token, an id is not
            in the vocabulary, or the longest prompt and continuation together exceed the context.
        TypeError: the model cannot decode.
    """
    rows = to_rows(continuations, None)
    if len(rows) != len(prompts):
        raise ValueError(f"{len(rows)} continuations for {len(prompts)} prompts: pass one for each")
    ids, _ = pad(rows, "right")  # With a causal mask, padding on the right does not matter.
    state, seen, _ = begin(model, prompts, attention_mask, ids.size(1), target_ids)
    vocab_size = state.next_logits.size(-1)
    if ids.min() < 0 or ids.max() >= vocab_size:
        raise ValueError(
            f"continuations have ids from {ids.min()} to {ids.max()}, but those of the vocabulary are 0 ... "
            f"{vocab_size - 1}"
        )
    ids = ids.to(seen.device)
    logits = state.next_logits[:, None]  # (B, 1, V)
    if ids.size(1) > 1:
        logits = torch.cat([logits, state.step(ids[:, :-1])], dim=1)  # (B, T, V)
    scored = log_probabilities_of(ids, upcast(logits)).tolist()
    return [Scored(tuple(numbers[: len(row)])) for numbers, row in zip(scored, rows, strict=True)]
