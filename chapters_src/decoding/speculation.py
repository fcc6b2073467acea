"""Speculative decoding: a cheap draft proposes several tokens, the model looks at all of them in one step.

Leviathan et al. (2023), algorithm 1, https://arxiv.org/abs/2211.17192. What comes out is distributed exactly
as if the model had written alone; the draft only decides how fast it goes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from chapters_src.decoding.checks import check_count, check_generator
from chapters_src.decoding.filters import Filter, apply, check_some_left
from chapters_src.decoding.probabilities import accurate, draw, log_probabilities_of
from chapters_src.decoding.prompts import Prompts, Start, TargetIds, begin
from chapters_src.decoding.results import Continuation
from chapters_src.decoding.stopping import ONLY_LENGTH, Stop

# The ids so far, prompt included, to the logits (V,) of the next token; None: nothing to propose. Logarithms
# of probabilities are logits.
Draft = Callable[[Sequence[int]], Tensor | None]


@dataclass(frozen=True)
class Speculation:
    """A continuation, and how the draft did."""

    continuation: Continuation
    num_steps: int  # Of the model, after the prompt. Alone it takes one for each token but the first.
    num_accepted: int  # Of the proposed tokens.
    num_rejected: int  # Those after a rejected one are in neither number: nobody looked at them.

    @property
    def acceptance_rate(self) -> float:
        """The share of the tokens looked at that were accepted; NaN if nothing was proposed.

        It estimates alpha of the paper's section 3.
        """
        looked_at = self.num_accepted + self.num_rejected
        return self.num_accepted / looked_at if looked_at else float("nan")


def speculative(
    model: nn.Module,
    prompts: Prompts,
    attention_mask: Tensor | None = None,
    *,
    draft: nn.Module | Draft,
    max_new_tokens: int,
    num_drafted: int = 4,
    generator: torch.Generator | None = None,
    target_ids: TargetIds = None,
    filters: Sequence[Filter] = (),
    stop: Stop = ONLY_LENGTH,
) -> Speculation:
    """Write as `greedy` or `sample` would, with fewer steps of the model.

    Args:
        model: as for `greedy`, and so are all arguments that are not named here. It has to be able to forget:
            no sliding window.
        prompts: one prompt, `[ids]`: how many tokens are accepted differs from row to row.
        attention_mask: of a tensor.
        draft: another model with the same vocabulary, which reads the same prompt; or a function of the ids
            so far (for an encoder-decoder those of the target), a list, that gives the logits of the next
            token, (V,), or None if it knows nothing.
        max_new_tokens: how many are written at most.
        num_drafted: how many tokens the draft proposes in a row, at most; from 1.
        generator: for sampling; None: the most probable token each time.
        target_ids: for an encoder-decoder.
        filters: for the model and for the draft, whose tokens would be rejected more often without them.
        stop: what ends the continuation before that.

    Returns:
        The continuation, with the number of accepted tokens.

    Raises:
        ValueError: more than one prompt, settings that do not fit, a draft with another vocabulary, or a
            model that cannot forget.
        TypeError: what should be a generator is none, or a model that cannot decode.
    """
    check_count("num_drafted", num_drafted)
    if generator is not None:
        check_generator(generator)
    if len(prompts) != 1:
        raise ValueError(f"{len(prompts)} prompts: speculative decoding takes one, because rows would differ")
    start = begin(model, prompts, attention_mask, max_new_tokens, target_ids, stop)
    if isinstance(draft, nn.Module):
        draft = _ModelDraft(begin(draft, prompts, attention_mask, max_new_tokens, target_ids))
    rules = _Rules(draft, num_drafted, filters, generator)
    return _speculate(start, rules, max_new_tokens, stop)


class _ModelDraft:
    """A model as a draft. It forgets what was not accepted, and reads what is new."""

    def __init__(self, start: Start) -> None:
        self._state, self._device = start.state, start.ids.device
        self._read: list[int] = start.ids[0].tolist()

    def __call__(self, ids: Sequence[int]) -> Tensor:
        shared = _num_shared(self._read, ids)
        if shared == len(ids) < len(self._read):
            shared -= 1  # Its last token is read again, for the logits after it.
        self._state.crop(self._state.length - len(self._read) + shared)  # Refused if it cannot forget.
        if shared < len(ids):
            self._state.step(torch.tensor([ids[shared:]], device=self._device))
        self._read = list(ids)
        return self._state.next_logits[0]


@dataclass(frozen=True)
class _Rules:
    draft: Draft
    num_drafted: int
    filters: Sequence[Filter]
    generator: torch.Generator | None

    def propose(self, ids: list[int], num_tokens: int, like: Tensor) -> tuple[list[int], Tensor]:
        """Let the draft write: tokens, and the filtered logits that they were chosen from, (tokens, V)."""
        tokens, proposed = [], [like.new_empty(0, like.size(-1))]
        while len(tokens) < num_tokens:
            logits = self.draft([*ids, *tokens])
            if logits is None:
                break
            if logits.shape != like.shape[-1:]:
                raise ValueError(
                    f"the draft gives logits {tuple(logits.shape)}, the model has a vocabulary of "
                    f"{like.size(-1)}: they have to share a tokenizer"
                )
            logits = accurate(logits.to(like.device))[None]
            logits = apply(self.filters, logits, torch.tensor([[*ids, *tokens]], device=like.device))
            if torch.isneginf(logits.amax()):  # The filters left nothing to propose.
                break
            tokens.append(self.choose(logits))
            proposed.append(logits)
        return tokens, torch.cat(proposed)

    def choose(self, logits: Tensor) -> int:
        """Choose a token from logits (1, V)."""
        if self.generator is None:
            return logits.argmax(dim=-1).item()
        return draw(logits.softmax(dim=-1), 1, self.generator).item()

    def accept(self, tokens: list[int], proposed: Tensor, wanted: Tensor) -> tuple[int, int]:
        """Compare the proposed tokens with what the model wants.

        Args:
            tokens: k of them.
            proposed: the logits that they were chosen from, (k, V).
            wanted: the model's logits at the same places, and after the last token, (k + 1, V).

        Returns:
            How many are accepted, and the token after those.
        """
        if self.generator is None:
            best = wanted.argmax(dim=-1).tolist()
            num_accepted = _num_shared(best, tokens)
            check_some_left(self.filters, wanted[num_accepted, None])
            return num_accepted, best[num_accepted]
        q, p = proposed.softmax(dim=-1), wanted.softmax(dim=-1)
        chosen = torch.tensor(tokens, dtype=torch.long, device=p.device)
        places = torch.arange(len(tokens), device=p.device), chosen
        uniform = torch.rand(len(tokens), generator=self.generator, device=self.generator.device)
        # Accepted with the probability min(1, p / q). Written so, never if p is 0.
        is_accepted = uniform.to(p) * q[places] < p[places]
        num_accepted = int(is_accepted.long().cumprod(dim=0).sum())
        check_some_left(self.filters, wanted[num_accepted, None])
        left = p[num_accepted]
        if num_accepted < len(tokens):
            more = (left - q[num_accepted]).clamp(min=0)
            left = more if more.any() else left  # All zeros: they were equal but for rounding.
        return num_accepted, draw(left[None], 1, self.generator).item()


def _speculate(start: Start, rules: _Rules, max_new_tokens: int, stop: Stop) -> Speculation:
    state, prompt = start.state, start.ids[0].tolist()
    first = accurate(state.next_logits)  # (1, V)
    new: list[int] = []
    scored: list[float] = []
    num_steps = num_accepted = num_rejected = 0
    reason = None
    while reason is None:
        read, unread = state.length, new[-1:]
        room = max_new_tokens - len(new) - 1  # The last token is always the model's own.
        tokens, proposed = rules.propose([*prompt, *new], min(rules.num_drafted, room), first)
        logits = first[:0] if unread else first
        if unread or tokens:
            steps = state.step(torch.tensor([[*unread, *tokens]], device=first.device))
            logits = torch.cat([logits, accurate(steps[0])])  # (k + 1, V)
            num_steps += 1
        wanted = _filtered(rules.filters, logits, [*prompt, *new], tokens)
        accepted, token = rules.accept(tokens, proposed, wanted)
        num_accepted += accepted
        num_rejected += accepted < len(tokens)
        state.crop(read + len(unread) + accepted)
        written = torch.tensor([*tokens[:accepted], token], device=first.device)
        scored += log_probabilities_of(written, logits[: accepted + 1]).tolist()
        for each in written.tolist():
            new.append(each)
            reason = stop.reason(new) or ("length" if len(new) == max_new_tokens else None)
            if reason is not None:  # What was accepted after the end is not written.
                break
    continuation = Continuation(tuple(new), tuple(scored[: len(new)]), reason, stop.text(new))
    return Speculation(continuation, num_steps, num_accepted, num_rejected)


def _filtered(filters: Sequence[Filter], logits: Tensor, ids: list[int], tokens: list[int]) -> Tensor:
    """Filter the logits (k + 1, V) before and after each of k tokens, each with the ids before it."""
    if not filters:
        return logits
    seen = torch.tensor([[*ids, *tokens]], device=logits.device)
    return torch.cat([apply(filters, logits[i, None], seen[:, : len(ids) + i]) for i in range(len(logits))])


def _num_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the numbers with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
