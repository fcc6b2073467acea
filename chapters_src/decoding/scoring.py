"""The log-probabilities of given sequences."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from chapters_src.decoding.probabilities import log_probabilities_of, upcast
from chapters_src.decoding.prompts import Prompts, TargetIds, begin, to_rows
from chapters_src.decoding.results import Scored
from chapters_src.padding import pad


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

    `continuations` are lists of ids, for an encoder-decoder the targets without `target_ids`; include the end
    token to score the end. All else is as for `greedy`.

    Raises:
        ValueError: the numbers of continuations and prompts differ, a continuation has no token, an id is not
            in the vocabulary, or the longest prompt and continuation together exceed the context.
        TypeError: the model cannot decode.
    """
    rows = to_rows(continuations, None)
    if len(rows) != len(prompts):
        raise ValueError(f"{len(rows)} continuations for {len(prompts)} prompts: pass one for each")
    state, seen, _ = begin(model, prompts, attention_mask, max(map(len, rows)), target_ids)
    logits = state.next_logits[:, None]  # (B, 1, V)
    # With a causal mask, padding on the right does not matter.
    ids = pad(rows, padding_id=0, vocab_size=logits.size(-1))[0].to(seen.device)
    if ids.size(1) > 1:
        logits = torch.cat([logits, state.step(ids[:, :-1])], dim=1)  # (B, T, V)
    scored = log_probabilities_of(ids, upcast(logits)).tolist()
    return [Scored(tuple(numbers[: len(row)])) for numbers, row in zip(scored, rows, strict=True)]
