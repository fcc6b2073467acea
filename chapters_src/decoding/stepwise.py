"""Greedy decoding and sampling, complete or as a stream of tokens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor, nn

from chapters_src.decoding.filters import Filter, apply, check_some_left
from chapters_src.decoding.probabilities import check_generator, draw, log_probabilities_of, upcast
from chapters_src.decoding.prompts import Prompts, Start, TargetIds, begin
from chapters_src.decoding.results import Continuation
from chapters_src.decoding.stopping import ONLY_LENGTH, Stop

Choose = Callable[[Tensor], Tensor]  # From filtered logits (B, V) to the ids of the next tokens (B,).


def greedy(
    model: nn.Module,
    prompts: Prompts,
    attention_mask: Tensor | None = None,
    *,
    max_new_tokens: int,
    target_ids: TargetIds = None,
    filters: Sequence[Filter] = (),
    stop: Stop = ONLY_LENGTH,
) -> list[Continuation]:
    """Generate by taking the most probable token at each step.

    Args:
        model: a `LanguageModel` or an `EncoderDecoder`, or a model of the Transformers library that can
            `generate` with a key-value cache; in evaluation mode.
        prompts: ids, one list per prompt; or a tensor (B, T), padded on either side. For an encoder-decoder,
            the sources.
        attention_mask: for a tensor: 1 for a token, 0 for padding; None: there is no padding.
        max_new_tokens: maximum number of tokens to generate, at least 1.
        target_ids: for an encoder-decoder, and only there: the first tokens of each target, which are not
            part of the result. One list of ids for all targets, or a tensor (B, tokens).
        filters: applied to the logits in this order before a token is chosen.
        stop: what ends a continuation earlier.

    Returns:
        One continuation per prompt.

    Raises:
        ValueError: an argument is not valid, the context is too small, or the filters leave no token.
        TypeError: the model cannot decode.
    """
    start = begin(model, prompts, attention_mask, max_new_tokens, target_ids, stop)
    return _collect(_generate(start, _most_probable, filters, stop), stop)


def sample(
    model: nn.Module,
    prompts: Prompts,
    attention_mask: Tensor | None = None,
    *,
    generator: torch.Generator,
    max_new_tokens: int,
    target_ids: TargetIds = None,
    filters: Sequence[Filter] = (),
    stop: Stop = ONLY_LENGTH,
) -> list[Continuation]:
    """Generate by drawing each token from the model's filtered distribution. All else is as for `greedy`.

    The same seed of the generator gives the same tokens. All prompts of a batch share the generator, so the
    result for one depends on the others. For several continuations of one prompt, repeat it: `[ids] * 5`.

    Raises:
        ValueError: as for `greedy`.
        TypeError: `generator` is not a generator, or the model cannot decode.
    """
    choose = _drawn_with(generator)
    start = begin(model, prompts, attention_mask, max_new_tokens, target_ids, stop)
    return _collect(_generate(start, choose, filters, stop), stop)


@dataclass(frozen=True)
class Streamed:
    """One token of a stream."""

    id: int
    log_probability: float  # The model's own, before any filter.
    text: str  # The text that has become certain with it; may be empty, and is without a tokenizer.
    finished: str | None  # For the last token, why it is the last, as in `Continuation`.


def stream(
    model: nn.Module,
    prompt: Sequence[int],
    *,
    max_new_tokens: int,
    generator: torch.Generator | None = None,
    target_ids: TargetIds = None,
    filters: Sequence[Filter] = (),
    stop: Stop = ONLY_LENGTH,
) -> Iterator[Streamed]:
    """Yield the tokens of `greedy`, or with a generator of `sample`, for one prompt, each once it is chosen.

    A character of several bytes may take several tokens; its text comes with the last of them. Text that may
    be the beginning of a stop string is held back until that is clear. Joined, the pieces of text are the
    text of the continuation; there is text if `stop` has a tokenizer.

    Arguments are those of `greedy`, and checked right away, not when the iterator is used.

    Raises:
        ValueError: an argument is not valid, or the context is too small.
        TypeError: `generator` is not a generator, or the model cannot decode.
    """
    choose = _most_probable if generator is None else _drawn_with(generator)
    start = begin(model, [prompt], None, max_new_tokens, target_ids, stop)
    return _streamed(_generate(start, choose, filters, stop), stop)


class _Step(NamedTuple):
    """One new token for each unfinished row."""

    rows: list[int]  # The rows that the tokens belong to.
    ids: list[int]
    log_probabilities: Tensor  # (rows,), on the device, because decoding does not need their values.
    finished: list[str | None]


def _generate(start: Start, choose: Choose, filters: Sequence[Filter], stop: Stop) -> Iterator[_Step]:
    """Choose tokens and step; finished rows are removed from the batch."""
    state, seen, max_new_tokens = start
    rows = list(range(len(seen)))
    written: list[list[int]] = [[] for _ in rows]
    logits = upcast(state.next_logits)
    for length in count(1):
        filtered = apply(filters, logits, seen)
        check_some_left(filters, filtered)
        chosen = choose(filtered)
        ids = chosen.tolist()  # The only point where a step waits for the device.
        for row, token in zip(rows, ids, strict=True):
            written[row].append(token)
        otherwise = "length" if length == max_new_tokens else None
        finished = [stop.reason(written[row]) or otherwise for row in rows]
        yield _Step(rows, ids, log_probabilities_of(chosen, logits), finished)
        open_places = [place for place, reason in enumerate(finished) if reason is None]
        if not open_places:
            return
        seen = torch.cat([seen, chosen[:, None]], dim=1)
        if len(open_places) < len(rows):
            kept = torch.tensor(open_places, device=seen.device)
            state.select(kept)
            seen, chosen = seen[kept], chosen[kept]
            rows = [rows[place] for place in open_places]
        logits = upcast(state.step(chosen))


def _collect(steps: Iterator[_Step], stop: Stop) -> list[Continuation]:
    """Collect the tokens of each row."""
    taken = list(steps)
    numbers = iter(torch.cat([step.log_probabilities for step in taken]).tolist())
    ids: list[list[int]] = [[] for _ in taken[0].rows]
    log_probabilities: list[list[float]] = [[] for _ in taken[0].rows]
    finished = [""] * len(ids)
    for step in taken:
        for row, token, reason in zip(step.rows, step.ids, step.finished, strict=True):
            ids[row].append(token)
            log_probabilities[row].append(next(numbers))
            finished[row] = reason or ""
    return [
        Continuation(tuple(written), tuple(scored), reason, stop.text(written))
        for written, scored, reason in zip(ids, log_probabilities, finished, strict=True)
    ]


def _streamed(steps: Iterator[_Step], stop: Stop) -> Iterator[Streamed]:
    ids: list[int] = []
    shown = 0
    for step in steps:
        ids += step.ids
        reason = step.finished[0]
        text = stop.certain_text(ids) if reason is None else stop.text(ids) or ""
        yield Streamed(ids[-1], step.log_probabilities.item(), text[shown:], reason)
        shown = len(text)


def _most_probable(logits: Tensor) -> Tensor:
    return logits.argmax(dim=-1)


def _drawn_with(generator: torch.Generator) -> Choose:
    check_generator(generator)
    return lambda logits: draw(logits.softmax(dim=-1), 1, generator).squeeze(1)
