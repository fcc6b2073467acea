"""Speculative decoding: a fast draft proposes several tokens, and the model checks them all in one step.

Leviathan et al. (2023), algorithm 1, https://arxiv.org/abs/2211.17192. The result has exactly the model's own
distribution; the draft affects only the speed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from chapters_src.decoding.filters import Filter, apply, check_some_left
from chapters_src.decoding.probabilities import check_generator, draw, log_probabilities_of, upcast
from chapters_src.decoding.prompts import Start, TargetIds, begin
from chapters_src.decoding.results import Continuation
from chapters_src.decoding.stopping import ONLY_LENGTH, Stop
from chapters_src.transformer.checks import as_integer

# From the ids so far, including the prompt, to the logits (V,) of the next token, which may be
# log-probabilities; None: no proposal.
Draft = Callable[[Sequence[int]], Tensor | None]


@dataclass(frozen=True)
class Speculation:
    """A continuation, and how many of the draft's tokens were accepted."""

    continuation: Continuation
    num_steps: int  # Of the model, after the prompt. Without a draft: one per token except the first.
    num_accepted: int  # Proposed tokens that were accepted.
    num_rejected: int  # Proposed tokens that were rejected, without those that follow one.

    @property
    def acceptance_rate(self) -> float:
        """The share of the checked tokens that were accepted; NaN if nothing was proposed.

        It estimates alpha of the paper's section 3.
        """
        num_checked = self.num_accepted + self.num_rejected
        return self.num_accepted / num_checked if num_checked else float("nan")


def speculative(
    model: nn.Module,
    prompt: Sequence[int],
    *,
    draft: nn.Module | Draft,
    max_new_tokens: int,
    num_drafted: int = 4,
    generator: torch.Generator | None = None,
    target_ids: TargetIds = None,
    filters: Sequence[Filter] = (),
    stop: Stop = ONLY_LENGTH,
) -> Speculation:
    """Generate as `greedy` or `sample` would, with fewer steps of the model.

    Args:
        model: as for `greedy`, without a sliding window, because rejected tokens have to be discarded.
        prompt: the ids of one prompt, because rows would accept different numbers of tokens.
        draft: another model with the same vocabulary, which reads the same prompt; or a function that takes
            the list of ids so far (for an encoder-decoder, those of the target) and returns the logits of the
            next token, (V,), or None for no proposal.
        max_new_tokens: as for `greedy`.
        num_drafted: maximum number of tokens that the draft proposes at once.
        generator: for sampling; None for greedy decoding.
        target_ids: as for `greedy`.
        filters: applied to the logits of the model, and to those of the draft, so that fewer tokens are
            rejected.
        stop: as for `greedy`.

    Raises:
        ValueError: an argument is not valid, the draft has another vocabulary, or the model has a sliding
            window.
        TypeError: `generator` is not a generator, or the model cannot decode.
    """
    num_drafted = as_integer("num_drafted", num_drafted)
    if generator is not None:
        check_generator(generator)
    start = begin(model, [prompt], None, max_new_tokens, target_ids, stop)
    if isinstance(draft, nn.Module):
        draft = _ModelDraft(begin(draft, [prompt], None, max_new_tokens, target_ids))
    rules = _Rules(draft, num_drafted, filters, generator)
    return _speculate(start, rules, stop)


class _ModelDraft:
    """A model as a draft. It discards tokens that were not accepted, and reads the new ones."""

    def __init__(self, start: Start) -> None:
        self._state, self._device = start.state, start.ids.device
        self._read: list[int] = start.ids[0].tolist()

    def __call__(self, ids: Sequence[int]) -> Tensor:
        shared = _num_shared(self._read, ids)
        if shared == len(ids) < len(self._read):
            shared -= 1  # Read the last token again, for the logits after it.
        # Raises an error with a sliding window.
        self._state.crop(self._state.length - len(self._read) + shared)
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
        """Return tokens of the draft, and the filtered logits they were chosen from, (tokens, V)."""
        tokens: list[int] = []
        proposed = [like.new_empty(0, like.size(-1))]
        while len(tokens) < num_tokens:
            logits = self.draft([*ids, *tokens])
            if logits is None:
                break
            if logits.shape != like.shape[-1:]:
                raise ValueError(
                    f"the draft returned logits {tuple(logits.shape)}, but the model has a vocabulary of "
                    f"{like.size(-1)}: they need the same tokenizer"
                )
            logits = upcast(logits.to(like.device))[None]
            logits = apply(self.filters, logits, torch.tensor([[*ids, *tokens]], device=like.device))
            if torch.isneginf(logits.amax()):  # The filters left nothing to propose.
                break
            tokens.append(self.choose(logits))
            proposed.append(logits)
        return tokens, torch.cat(proposed)

    def choose(self, logits: Tensor) -> int:
        """Choose a token from logits (1, V)."""
        if self.generator is None:
            return int(logits.argmax(dim=-1))
        return int(draw(logits.softmax(dim=-1), 1, self.generator))

    def accept(self, tokens: list[int], proposed: Tensor, wanted: Tensor) -> tuple[int, int]:
        """Accept or reject k proposed tokens; return how many are accepted, and the token that follows them.

        `proposed` are the draft's logits for them, (k, V), and `wanted` the model's, with those after the
        last one, (k + 1, V).
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
        # Accept with probability min(1, p / q); in this form, never if p is 0.
        is_accepted = uniform.to(p) * q[places] < p[places]
        num_accepted = int(is_accepted.long().cumprod(dim=0).sum())
        check_some_left(self.filters, wanted[num_accepted, None])
        left = p[num_accepted]
        if num_accepted < len(tokens):
            more = (left - q[num_accepted]).clamp(min=0)
            left = more if more.any() else left  # All zeros: p and q are equal up to rounding.
        return num_accepted, int(draw(left[None], 1, self.generator))


def _speculate(start: Start, rules: _Rules, stop: Stop) -> Speculation:
    state, max_new_tokens, prompt = start.state, start.max_new_tokens, start.ids[0].tolist()
    first = upcast(state.next_logits)  # (1, V)
    new: list[int] = []
    scored: list[float] = []
    num_steps = num_accepted = num_rejected = 0
    reason = None
    while reason is None:
        read, unread = state.length, new[-1:]
        num_tokens = min(rules.num_drafted, max_new_tokens - len(new) - 1)  # The last one is the model's own.
        tokens, proposed = rules.propose([*prompt, *new], num_tokens, first)
        logits = first[:0] if unread else first
        if unread or tokens:
            steps = state.step(torch.tensor([[*unread, *tokens]], device=first.device))
            logits = torch.cat([logits, upcast(steps[0])])  # (k + 1, V)
            num_steps += 1
        wanted = _filtered(rules.filters, logits, [*prompt, *new], tokens)
        accepted, token = rules.accept(tokens, proposed, wanted)
        num_accepted += accepted
        num_rejected += accepted < len(tokens)
        state.crop(read + len(unread) + accepted)
        added = torch.tensor([*tokens[:accepted], token], device=first.device)
        scored += log_probabilities_of(added, logits[: accepted + 1]).tolist()
        for each in added.tolist():
            new.append(each)
            reason = stop.reason(new) or ("length" if len(new) == max_new_tokens else None)
            if reason is not None:  # Tokens accepted after the end are dropped.
                break
    continuation = Continuation(tuple(new), tuple(scored[: len(new)]), reason, stop.text(new))
    return Speculation(continuation, num_steps, num_accepted, num_rejected)


def _filtered(filters: Sequence[Filter], logits: Tensor, ids: list[int], tokens: list[int]) -> Tensor:
    """Filter the logits (k + 1, V) before, between and after k tokens, each with the ids before it."""
    if not filters:
        return logits
    seen = torch.tensor([[*ids, *tokens]], device=logits.device)
    return torch.cat([apply(filters, logits[i, None], seen[:, : len(ids) + i]) for i in range(len(logits))])


def _num_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
