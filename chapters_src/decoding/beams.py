"""Beam search and beam sampling: several hypotheses at once.

In each step, each of a source's N beams can continue with each of V tokens. Of these N * V candidates, the
best K are considered in order. Candidates that end become hypotheses if they are among the first N; the best
N of the others are the beams of the next step. This is the search of the Transformers library; comments
explain its less obvious rules.

Shapes: S unfinished sources, N = num_beams, K candidates, V = vocab_size.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from chapters_src.decoding.filters import Filter, apply, check_some_left
from chapters_src.decoding.probabilities import check_generator, draw, upcast
from chapters_src.decoding.prompts import Prompts, Start, TargetIds, begin
from chapters_src.decoding.results import Continuation
from chapters_src.decoding.stopping import ONLY_LENGTH, Stop
from chapters_src.transformer.checks import as_integer

Pick = Callable[[Tensor, int], Tensor]  # From sums (S, N * V) and K to the indices of K candidates, (S, K).


def beam_search(
    model: nn.Module,
    prompts: Prompts,
    attention_mask: Tensor | None = None,
    *,
    num_beams: int,
    max_new_tokens: int,
    length_penalty: float = 1.0,
    early_stopping: bool | Literal["never"] = False,
    num_hypotheses: int = 1,
    target_ids: TargetIds = None,
    filters: Sequence[Filter] = (),
    stop: Stop = ONLY_LENGTH,
) -> list[list[Continuation]]:
    """Search for the most probable continuation, keeping the best N beginnings at each step.

    The score of a hypothesis is the sum of its filtered log-probabilities divided by its length to the power
    of `length_penalty`: 0 gives the sum, 1 the mean. Positive values favor long hypotheses, negative values
    short ones. Filters are applied to the log-probabilities, which are not normalized again.

    `early_stopping` says when a source is finished. True: as soon as it has N hypotheses. False: if the best
    beam, ended now, would not beat the worst of N hypotheses, although with a positive penalty it could still
    improve. "never": only if it can no longer beat them. Arguments that are not named here are as for
    `greedy`.

    Returns:
        The best `num_hypotheses` (at most N) of each prompt with their scores, the best first. There are
        fewer if no others exist. (The library adds copies, scored -1e9 over a power of the length.)

    Raises:
        ValueError: an argument is not valid, the context is too small, or the filters leave no token.
        TypeError: the model cannot decode.
    """
    rules = _Rules(num_beams, max_new_tokens, length_penalty, early_stopping, num_hypotheses, stop)
    start = begin(model, prompts, attention_mask, max_new_tokens, target_ids, stop)
    return _search(start, rules, filters, _best)


def beam_sample(
    model: nn.Module,
    prompts: Prompts,
    attention_mask: Tensor | None = None,
    *,
    generator: torch.Generator,
    num_beams: int,
    max_new_tokens: int,
    length_penalty: float = 1.0,
    early_stopping: bool | Literal["never"] = False,
    num_hypotheses: int = 1,
    target_ids: TargetIds = None,
    filters: Sequence[Filter] = (),
    stop: Stop = ONLY_LENGTH,
) -> list[list[Continuation]]:
    """Search with beams, but draw the candidates at random. Arguments and result are those of `beam_search`.

    Candidates are drawn without replacement from the continuations of all beams, with probabilities in
    proportion to those of the whole hypotheses. A candidate that ends becomes a hypothesis if it is among the
    first N drawn. Of the others, the N most probable become beams, whenever they were drawn.

    The same seed of the generator gives the same tokens. As in the library, a temperature among the filters
    applies to the new token, not to the sum.

    Raises:
        ValueError: as for `beam_search`.
        TypeError: `generator` is not a generator, or the model cannot decode.
    """
    check_generator(generator)
    rules = _Rules(num_beams, max_new_tokens, length_penalty, early_stopping, num_hypotheses, stop)
    start = begin(model, prompts, attention_mask, max_new_tokens, target_ids, stop)
    return _search(start, rules, filters, lambda sums, k: draw(sums.softmax(dim=-1), k, generator))


@dataclass(frozen=True)
class _Rules:
    num_beams: int
    max_new_tokens: int
    length_penalty: float
    early_stopping: bool | Literal["never"]
    num_hypotheses: int
    stop: Stop

    def __post_init__(self) -> None:
        for name in ("num_beams", "num_hypotheses", "max_new_tokens"):
            object.__setattr__(self, name, as_integer(name, getattr(self, name)))
        if self.num_hypotheses > self.num_beams:
            raise ValueError(
                f"num_hypotheses={self.num_hypotheses} exceeds num_beams={self.num_beams}: use more beams"
            )
        if not math.isfinite(self.length_penalty):
            raise ValueError(f"length_penalty={self.length_penalty} has to be finite; 0 is no penalty")
        if isinstance(self.early_stopping, bool | np.bool_):
            object.__setattr__(self, "early_stopping", bool(self.early_stopping))
        elif not isinstance(self.early_stopping, str) or self.early_stopping != "never":
            raise ValueError(f'early_stopping={self.early_stopping!r} has to be True, False or "never"')

    def score(self, total: float, length: int) -> float:
        return total / length**self.length_penalty

    @property
    def num_candidates(self) -> int:
        """K: enough to leave N candidates if all others end with an end id."""
        return max(2, 1 + len(self.stop.end_ids)) * self.num_beams


class _Beam(NamedTuple):
    """The beginning of a hypothesis."""

    total: float  # The sum of its filtered log-probabilities.
    ids: tuple[int, ...] = ()
    log_probabilities: tuple[float, ...] = ()  # The model's own.
    row: int = 0  # The row of the state that it continues.


class _Hypothesis(NamedTuple):
    """A beam that has ended."""

    beam: _Beam
    finished: str
    score: float


@dataclass
class _Source:
    """One prompt: its beams, and its best hypotheses so far."""

    rules: _Rules
    beams: list[_Beam]
    hypotheses: list[_Hypothesis] = field(default_factory=list)

    def advance(self, candidates: Sequence[_Beam]) -> None:
        """Turn the candidates into hypotheses and beams."""
        rules = self.rules
        unfinished: list[_Beam] = []
        for rank, beam in enumerate(candidates):
            if beam.total == -math.inf:  # Ruled out by a filter, or the continuation of a filler.
                continue
            at_end = "length" if len(beam.ids) == rules.max_new_tokens else None
            reason = rules.stop.reason(beam.ids) or at_end
            if reason is None:
                unfinished.append(beam)
            elif rank < rules.num_beams:
                score = rules.score(beam.total, len(beam.ids))
                self.hypotheses.append(_Hypothesis(beam, reason, score))
        self.hypotheses.sort(key=lambda hypothesis: -hypothesis.score)
        del self.hypotheses[rules.num_beams :]
        unfinished.sort(key=lambda beam: -beam.total)
        self.beams = unfinished[: rules.num_beams]

    def is_done(self) -> bool:
        """Return whether to stop following the beams."""
        if not self.beams:
            return True
        rules = self.rules
        if len(self.hypotheses) < rules.num_beams:
            return False
        length = len(self.beams[0].ids)
        if rules.early_stopping == "never" and rules.length_penalty > 0:
            length = rules.max_new_tokens  # At this length, its score would be highest.
        best_score = rules.score(self.beams[0].total, length)
        return rules.early_stopping is True or best_score <= self.hypotheses[-1].score

    def full_beams(self) -> list[_Beam]:
        """Return N beams, filled up with copies of the first one with a probability of 0."""
        missing = self.rules.num_beams - len(self.beams)
        return self.beams + missing * [self.beams[0]._replace(total=-math.inf)]

    def continuations(self) -> list[Continuation]:
        """Return the best hypotheses."""
        return [
            Continuation(beam.ids, beam.log_probabilities, finished, self.rules.stop.text(beam.ids), score)
            for beam, finished, score in self.hypotheses[: self.rules.num_hypotheses]
        ]


def _search(start: Start, rules: _Rules, filters: Sequence[Filter], pick: Pick) -> list[list[Continuation]]:
    state, seen, _ = start
    sources = [_Source(rules, [_Beam(0.0)]) for _ in seen]
    rows = torch.arange(len(seen), device=seen.device).repeat_interleave(rules.num_beams)
    state.select(rows)
    logits, seen, unfinished = state.next_logits, seen[rows], sources
    while True:
        beams = [source.full_beams() for source in unfinished]
        candidates = _candidates(logits, seen, beams, filters, pick, rules.num_candidates)
        for source, its_candidates in zip(unfinished, candidates, strict=True):
            source.advance(its_candidates)
        unfinished = [source for source in unfinished if not source.is_done()]
        if not unfinished:
            return [source.continuations() for source in sources]
        next_beams = [beam for source in unfinished for beam in source.full_beams()]
        rows = torch.tensor([beam.row for beam in next_beams], device=seen.device)
        ids = torch.tensor([beam.ids[-1] for beam in next_beams], device=seen.device)
        seen = torch.cat([seen[rows], ids[:, None]], dim=1)
        state.select(rows)
        logits = state.step(ids)


def _candidates(
    logits: Tensor,
    seen: Tensor,
    beams: list[list[_Beam]],
    filters: Sequence[Filter],
    pick: Pick,
    num_candidates: int,
) -> list[list[_Beam]]:
    """Pick K of the N * V continuations of each source's beams."""
    log_probabilities = upcast(logits).log_softmax(dim=-1)  # (S * N, V)
    filtered = apply(filters, log_probabilities, seen)
    totals = filtered.new_tensor([[beam.total for beam in its_beams] for its_beams in beams])  # (S, N)
    sums = (totals.reshape(-1, 1) + filtered).reshape(len(beams), -1)  # (S, N * V)
    check_some_left(filters, sums)
    picked = pick(sums, min(num_candidates, sums.size(1)))  # (S, K)
    own = log_probabilities.reshape(sums.shape).gather(1, picked)
    numbers = torch.stack([sums.gather(1, picked), own], dim=-1).tolist()  # (S, K, 2)
    vocab_size, num_beams = logits.size(-1), len(beams[0])
    found: list[list[_Beam]] = []
    for number, (places, its_numbers) in enumerate(zip(picked.tolist(), numbers, strict=True)):
        found.append([])
        for place, (total, log_probability) in zip(places, its_numbers, strict=True):
            beam, token = divmod(place, vocab_size)
            before = beams[number][beam]
            ids = (*before.ids, token)
            scored = (*before.log_probabilities, log_probability)
            found[-1].append(_Beam(total, ids, scored, number * num_beams + beam))
    return found


def _best(sums: Tensor, num_candidates: int) -> Tensor:
    return sums.topk(num_candidates).indices
