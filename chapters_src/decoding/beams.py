"""Beam search: several hypotheses at once, and beam sampling.

One step of a source with N beams: each beam can go on with each of V tokens; of these N times V candidates
the best are looked at, in order. Those that end are hypotheses if they are among the first N; of the others
the best N are the beams of the next step. It is the search of the Transformers library, whose rules are told
here where they are not what one expects.

Shapes: S open sources, N = num_beams, K candidates that are looked at, V = vocab_size.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from chapters_src.decoding.checks import check_count, check_generator
from chapters_src.decoding.filters import Filter, apply, check_some_left
from chapters_src.decoding.probabilities import accurate, draw
from chapters_src.decoding.prompts import Prompts, Start, TargetIds, begin
from chapters_src.decoding.results import Continuation
from chapters_src.decoding.stopping import ONLY_LENGTH, Stop

Pick = Callable[[Tensor, int], Tensor]  # Sums (S, N * V) and K to the places of K candidates, (S, K).


def beam_search(
    model: nn.Module,
    prompts: Prompts,
    attention_mask: Tensor | None = None,
    *,
    num_beams: int,
    max_new_tokens: int,
    length_penalty: float = 1.0,
    early_stopping: bool | str = False,
    num_hypotheses: int = 1,
    target_ids: TargetIds = None,
    filters: Sequence[Filter] = (),
    stop: Stop = ONLY_LENGTH,
) -> list[list[Continuation]]:
    """Look for the most probable continuation, keeping several beginnings at each step.

    The score of a hypothesis is the sum of its log-probabilities, as the filters leave them, divided by its
    length to the power of `length_penalty`: with 0 the sum, with 1 the mean. Above 0 it helps long
    hypotheses, below 0 short ones. Filters see log-probabilities, and what they leave is not normalized.

    Args:
        model: as for `greedy`, and so are all arguments that are not named here.
        prompts: ids, a list for each prompt; or a tensor.
        attention_mask: of a tensor.
        num_beams: N, from 1.
        max_new_tokens: how many are written at most.
        length_penalty: the power.
        early_stopping: when a source is done. True: as soon as it has N hypotheses. False: when the best
            beam, if it ended now, would not be better than the worst of N; with a penalty above 0 it could
            still become better. "never": only when it cannot become better any more.
        num_hypotheses: how many are given back, at most `num_beams`.
        target_ids: for an encoder-decoder.
        filters: what changes the log-probabilities before candidates are looked at, from left to right.
        stop: what ends a hypothesis before that.

    Returns:
        For each prompt its hypotheses, the best first, with their scores. There may be fewer than asked for
        if no others exist. (The library then fills up with copies, scored -1e9 over a power of the length.)

    Raises:
        ValueError: prompts, settings or sizes that do not fit, or filters that leave no token.
        TypeError: a model that cannot decode.
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
    early_stopping: bool | str = False,
    num_hypotheses: int = 1,
    target_ids: TargetIds = None,
    filters: Sequence[Filter] = (),
    stop: Stop = ONLY_LENGTH,
) -> list[list[Continuation]]:
    """Search with beams, where the candidates are drawn and not the best ones.

    They are drawn from all continuations of all beams, in proportion to the probability of the whole
    hypothesis, without replacement. Candidates that are drawn later count as worse when it comes to ending;
    the best of them go on, whenever they were drawn.

    Args:
        model: as for `greedy`; the other arguments are those of `beam_search`.
        prompts: ids, a list for each prompt; or a tensor.
        attention_mask: of a tensor.
        generator: where the randomness comes from; the same seed gives the same tokens.
        num_beams: N, from 1.
        max_new_tokens: how many are written at most.
        length_penalty: the power.
        early_stopping: when a source is done: True, False or "never".
        num_hypotheses: how many are given back, at most `num_beams`.
        target_ids: for an encoder-decoder.
        filters: what changes the log-probabilities before candidates are drawn, from left to right. As
            candidates are drawn from all beams together, a temperature changes what one token adds, not the
            sum; the library does the same.
        stop: what ends a hypothesis before that.

    Returns:
        For each prompt its hypotheses, the best first, with their scores; fewer if no others were found.

    Raises:
        ValueError: prompts, settings or sizes that do not fit, or filters that leave no token.
        TypeError: no generator, or a model that cannot decode.
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
    early_stopping: bool | str
    num_hypotheses: int
    stop: Stop

    def __post_init__(self) -> None:
        check_count("num_beams", self.num_beams)
        check_count("num_hypotheses", self.num_hypotheses)
        if self.num_hypotheses > self.num_beams:
            raise ValueError(
                f"num_hypotheses={self.num_hypotheses} are more than num_beams={self.num_beams} keep: search "
                "with more beams"
            )
        if not math.isfinite(self.length_penalty):
            raise ValueError(f"length_penalty={self.length_penalty} has to be finite; 0 is none, 1 the mean")
        if self.early_stopping not in (True, False, "never"):
            raise ValueError(f'early_stopping={self.early_stopping!r} has to be True, False or "never"')

    def score(self, total: float, length: int) -> float:
        return total / length**self.length_penalty

    @property
    def num_candidates(self) -> int:
        """How many candidates are looked at, so that N are left if all others end with an end id."""
        return max(2, 1 + len(self.stop.end_ids)) * self.num_beams


class _Beam(NamedTuple):
    """The beginning of a hypothesis."""

    total: float  # The sum of its log-probabilities, as the filters left them.
    ids: tuple[int, ...] = ()
    log_probabilities: tuple[float, ...] = ()  # The model's own.
    row: int = 0  # Of the state, where it comes from.


@dataclass
class _Source:
    """One prompt: the beams that go on, and the best hypotheses so far."""

    rules: _Rules
    beams: list[_Beam]
    hypotheses: list[Continuation] = field(default_factory=list)

    def advance(self, candidates: Sequence[_Beam]) -> None:
        """Sort candidates into those that end and those that go on."""
        rules, going_on = self.rules, []
        for rank, beam in enumerate(candidates):
            if beam.total == -math.inf:  # Ruled out by a filter, or behind a beam that is none.
                continue
            at_end = "length" if len(beam.ids) == rules.max_new_tokens else None
            reason = rules.stop.reason(beam.ids) or at_end
            if reason is None:
                going_on.append(beam)
            elif rank < rules.num_beams:
                self.hypotheses.append(self._hypothesis(beam, reason))
        self.hypotheses.sort(key=lambda hypothesis: -hypothesis.score)
        del self.hypotheses[rules.num_beams :]
        going_on.sort(key=lambda beam: -beam.total)
        self.beams = going_on[: rules.num_beams]

    def is_done(self) -> bool:
        """Say whether the best beam is not to be followed any further."""
        if not self.beams:
            return True
        rules = self.rules
        if len(self.hypotheses) < rules.num_beams:
            return False
        length = len(self.beams[0].ids)
        if rules.early_stopping == "never" and rules.length_penalty > 0:
            length = rules.max_new_tokens  # The longer, the better: so it can become this good at most.
        may_reach = rules.score(self.beams[0].total, length)
        return rules.early_stopping is True or may_reach <= self.hypotheses[-1].score

    def full_beams(self) -> list[_Beam]:
        """Give N beams: where there are fewer, copies of the first, with a probability of 0."""
        missing = self.rules.num_beams - len(self.beams)
        return self.beams + missing * [self.beams[0]._replace(total=-math.inf)]

    def _hypothesis(self, beam: _Beam, reason: str) -> Continuation:
        score = self.rules.score(beam.total, len(beam.ids))
        text = self.rules.stop.text(beam.ids)
        return Continuation(beam.ids, beam.log_probabilities, reason, text, score)


def _search(start: Start, rules: _Rules, filters: Sequence[Filter], pick: Pick) -> list[list[Continuation]]:
    state, seen = start
    sources = [_Source(rules, [_Beam(0.0)]) for _ in seen]
    rows = torch.arange(len(seen), device=seen.device).repeat_interleave(rules.num_beams)
    state.select(rows)
    logits, seen, still_open = state.next_logits, seen[rows], sources
    while True:
        beams = [source.full_beams() for source in still_open]
        candidates = _candidates(logits, seen, beams, filters, pick, rules.num_candidates)
        for source, its_candidates in zip(still_open, candidates, strict=True):
            source.advance(its_candidates)
        still_open = [source for source in still_open if not source.is_done()]
        if not still_open:
            return [source.hypotheses[: rules.num_hypotheses] for source in sources]
        going_on = [beam for source in still_open for beam in source.full_beams()]
        rows = torch.tensor([beam.row for beam in going_on], device=seen.device)
        ids = torch.tensor([beam.ids[-1] for beam in going_on], device=seen.device)
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
    """Let each beam of each source, (S, N), go on, and pick K of the N times V candidates of a source."""
    log_probabilities = accurate(logits).log_softmax(dim=-1)  # (S * N, V)
    filtered = apply(filters, log_probabilities, seen)
    totals = filtered.new_tensor([[beam.total for beam in its_beams] for its_beams in beams])  # (S, N)
    sums = (totals.reshape(-1, 1) + filtered).reshape(len(beams), -1)  # (S, N * V)
    check_some_left(filters, sums)
    picked = pick(sums, min(num_candidates, sums.size(1)))  # (S, K)
    own = log_probabilities.reshape(sums.shape).gather(1, picked)
    numbers = torch.stack([sums.gather(1, picked), own], dim=-1).tolist()  # (S, K, 2)
    vocab_size, num_beams = logits.size(-1), len(beams[0])
    found = []
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
