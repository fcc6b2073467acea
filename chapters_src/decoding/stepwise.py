"""Token by token: greedy decoding and sampling, all at once or as a stream."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor, nn

from chapters_src.decoding.checks import check_generator
from chapters_src.decoding.filters import Filter, apply, check_some_left
from chapters_src.decoding.probabilities import accurate, draw, log_probabilities_of
from chapters_src.decoding.prompts import Prompts, Start, TargetIds, begin
from chapters_src.decoding.results import Continuation
from chapters_src.decoding.stopping import ONLY_LENGTH, Stop

Choose = Callable[[Tensor], Tensor]  # Filtered logits (B, V) to the ids of the next tokens (B,).


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
    """Take the most probable token again and again.

    Args:
        model: a `LanguageModel` or an `EncoderDecoder`, or a model of the Transformers library that can
            `generate`; in evaluation mode.
        prompts: ids, a list for each prompt; or a tensor (B, T), padded on either side. For an
            encoder-decoder the sources.
        attention_mask: of a tensor: 1 for a token, 0 for padding; None: nothing is padding.
        max_new_tokens: how many are written at most, from 1.
        target_ids: for an encoder-decoder, and only there: what each target begins with. One list of ids
            for all of them, or a tensor (B, tokens). It is not part of what is returned.
        filters: what changes the logits before the choice, from left to right.
        stop: what ends a continuation before that.

    Returns:
        One continuation for each prompt.

    Raises:
        ValueError: prompts, settings or sizes that do not fit, or filters that leave no token.
        TypeError: a model that cannot decode.
    """
    start = begin(model, prompts, attention_mask, max_new_tokens, target_ids, stop)
    return _collect(_write(start, _most_probable, filters, stop, max_new_tokens), stop)


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
    """Draw each token from the model's distribution, as the filters leave it.

    One generator draws for all prompts of a batch; so what is drawn for one depends on its neighbors. For
    several continuations of one prompt, name it several times: `[ids] * 5`.

    Args:
        model: as for `greedy`, and so are all arguments that are not named here.
        prompts: ids, a list for each prompt; or a tensor.
        attention_mask: of a tensor.
        generator: where the randomness comes from; the same seed gives the same tokens.
        max_new_tokens: how many are written at most.
        target_ids: for an encoder-decoder.
        filters: what changes the logits before a token is drawn, from left to right.
        stop: what ends a continuation before that.

    Returns:
        One continuation for each prompt.

    Raises:
        ValueError: prompts, settings or sizes that do not fit, or filters that leave no token.
        TypeError: no generator, or a model that cannot decode.
    """
    choose = _drawn_with(generator)
    start = begin(model, prompts, attention_mask, max_new_tokens, target_ids, stop)
    return _collect(_write(start, choose, filters, stop, max_new_tokens), stop)


@dataclass(frozen=True)
class Streamed:
    """One token of a stream."""

    id: int
    log_probability: float  # The model's own, without filters.
    text: str  # What is certain now and was not before; may be empty. Empty without a tokenizer.
    finished: str | None  # With the last token: why it is the last, as in `Continuation`.


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
    """Give the tokens of one prompt as soon as they are chosen: those of `greedy`, or of `sample`.

    A character of several bytes may need several tokens. Its text comes with the last of them; and what may
    be the beginning of a stop string waits until that is clear. All pieces of text together are the text of
    the continuation.

    Args:
        model: as for `greedy`, and so are all arguments that are not named here.
        prompt: the ids of one prompt.
        max_new_tokens: how many are written at most.
        generator: for sampling; None: the most probable token each time.
        target_ids: for an encoder-decoder.
        filters: what changes the logits before the choice, from left to right.
        stop: what ends the continuation before that; with a tokenizer if text is wanted.

    Returns:
        An iterator. What does not fit is an error here, and not only when it is used.

    Raises:
        ValueError: settings or sizes that do not fit.
        TypeError: what should be a generator is none, or a model that cannot decode.
    """
    choose = _most_probable if generator is None else _drawn_with(generator)
    start = begin(model, [prompt], None, max_new_tokens, target_ids, stop)
    return _streamed(_write(start, choose, filters, stop, max_new_tokens), stop)


class _Step(NamedTuple):
    """One new token for each row that goes on."""

    rows: list[int]  # Whose tokens these are.
    ids: list[int]
    log_probabilities: Tensor  # (rows,). On the device: they are not needed in order to go on.
    finished: list[str | None]


def _write(
    start: Start, choose: Choose, filters: Sequence[Filter], stop: Stop, max_new_tokens: int
) -> Iterator[_Step]:
    """Choose and step; rows that ended leave the computation."""
    state, seen = start
    rows = list(range(len(seen)))
    written: list[list[int]] = [[] for _ in rows]
    logits = accurate(state.next_logits)
    for length in count(1):
        filtered = apply(filters, logits, seen)
        check_some_left(filters, filtered)
        chosen = choose(filtered)
        ids = chosen.tolist()  # Here a step waits for the device.
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
        logits = accurate(state.step(chosen))


def _collect(steps: Iterator[_Step], stop: Stop) -> list[Continuation]:
    """Put the tokens of each row together."""
    taken = list(steps)
    numbers = iter(torch.cat([step.log_probabilities for step in taken]).tolist())
    ids, log_probabilities = ([[] for _ in taken[0].rows] for _ in range(2))
    finished = [""] * len(ids)
    for step in taken:
        for row, token, reason in zip(step.rows, step.ids, step.finished, strict=True):
            ids[row].append(token)
            log_probabilities[row].append(next(numbers))
            finished[row] = reason
    return [
        Continuation(tuple(written), tuple(scored), reason, stop.text(written))
        for written, scored, reason in zip(ids, log_probabilities, finished, strict=True)
    ]


def _streamed(steps: Iterator[_Step], stop: Stop) -> Iterator[Streamed]:
    ids, shown = [], 0
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
