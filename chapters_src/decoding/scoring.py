"""How probable a model finds sequences that are given."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from chapters_src.decoding.probabilities import accurate, log_probabilities_of
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
    """Give the log-probability of each continuation after its prompt, and of each of its tokens.

    All tokens are looked at in one step. A language model says nothing about the first token of a text: to
    score a whole text, take its first token, or a start token, as the prompt.

    Args:
        model: as for `greedy`.
        prompts: ids, a list for each prompt; or a tensor (B, T), padded on either side. For an
            encoder-decoder the sources.
        continuations: the ids that are scored, a list for each prompt; of an encoder-decoder the targets
            without what they begin with. An end token belongs to it if the end is to be scored.
        attention_mask: of a tensor of prompts: 1 for a token, 0 for padding.
        target_ids: for an encoder-decoder, and only there: what each target begins with.

    Returns:
        One for each.

    Raises:
        ValueError: not as many continuations as prompts, one without a token, ids that are not in the
            vocabulary, or the longest prompt and the longest continuation do not fit into the context.
        TypeError: a model that cannot decode.
    """
    rows = to_rows(continuations, None)
    if len(rows) != len(prompts):
        raise ValueError(f"{len(rows)} continuations of {len(prompts)} prompts: one for each is needed")
    ids, _ = pad(rows, "right")  # Nobody looks to the right, so what stands there does not matter.
    state, seen = begin(model, prompts, attention_mask, ids.size(1), target_ids)
    vocab_size = state.next_logits.size(-1)
    if ids.min() < 0 or ids.max() >= vocab_size:
        raise ValueError(
            f"continuations with ids from {ids.min()} to {ids.max()}: they have to be in the vocabulary, "
            f"0 ... {vocab_size - 1}"
        )
    ids = ids.to(seen.device)
    logits = state.next_logits[:, None]  # (B, 1, V)
    if ids.size(1) > 1:
        logits = torch.cat([logits, state.step(ids[:, :-1])], dim=1)  # (B, T, V)
    scored = log_probabilities_of(ids, accurate(logits)).tolist()
    return [Scored(tuple(numbers[: len(row)])) for numbers, row in zip(scored, rows, strict=True)]
