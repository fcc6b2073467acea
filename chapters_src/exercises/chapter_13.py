"""Checks of the exercises of chapter 13, on decoding."""

import math
from collections import Counter
from itertools import product

import numpy as np
import regex
import torch
from torch import Tensor

from chapters_src.exercises.checking import (
    Asked,
    Wrong,
    as_function,
    as_number,
    exercise,
    is_near,
    sequence_of,
    show,
)

Ids = tuple[int, ...]

NUM_WORDS, LENGTH = 3, 3  # of the toy model of 13.2: words in its vocabulary, words in a text
SENTENCE = [*range(10, 22), 4]  # For 13.3: the ids of a sentence with its line break.
TICKETS = (  # For 13.4: a message, the values that are right, and values that must not pass.
    (
        "Since Friday 3.10 hides my bars, and 3.9 did not. Ines Vogel",
        ("Ines Vogel", "3.10", "Friday"),
        {
            "this version does not stand in the message": ("Ines Vogel", "8.0", "Friday"),
            "a period has to be a period": ("Ines Vogel", "3x10", "Friday"),
            "this name does not stand in the message": ("Hello World", "3.10", "Friday"),
            "this day does not stand in the message": ("Ines Vogel", "3.10", "Monday"),
        },
    ),
    (
        "I am Tove Lind. On Sunday Sami Aalto gave me 0.7; on Tuesday it broke.",
        ("Tove Lind", "0.7", "Tuesday"),
        {
            "this version does not stand in the message": ("Tove Lind", "0.8", "Tuesday"),
            "this name does not stand in the message": ("Lind Tove", "0.7", "Tuesday"),
            "this day does not stand in the message": ("Tove Lind", "0.7", "Friday"),
        },
    ),
    (  # The second person, whose name follows a capitalized word.
        "I am Tove Lind. On Sunday Sami Aalto gave me 0.7; on Tuesday it broke.",
        ("Sami Aalto", "0.7", "Sunday"),
        {},
    ),
    (
        "Yesterday I left 2.11, today 2.12 is slow. It is Monday. Zoë Åberg",
        ("Zoë Åberg", "2.12", "Monday"),
        {
            "today is no weekday": ("Zoë Åberg", "2.12", "today"),
            "yesterday is no weekday": ("Zoë Åberg", "2.12", "Yesterday"),
        },
    ),
)


@exercise("13.1")
def temperature_for_a_ratio(temperature: object) -> str:
    """Compute the ratio with a softmax."""
    found = as_number(temperature, "temperature")
    if found <= 0:
        raise Wrong(f"A temperature is above zero, and yours is {show(found)}.")
    first, second = math.log(0.6) / found, math.log(0.2) / found  # whatever the others are
    if not is_near(log_ratio := first - second, math.log(9), relative=1e-3):
        more = "less" if log_ratio < math.log(9) else "more"
        ratio = f"{math.exp(log_ratio):.3g}" if log_ratio < 20 else f"e to the power {log_ratio:.3g}"
        raise Wrong(
            f"At {show(found)} the first is {ratio} times as probable as the second, {more} than asked."
        )
    return "It is the same whatever the other tokens are."


@exercise("13.2")
def model_that_beams_get_wrong(tricky: object) -> str:
    """Search all 27 texts, and with one and two beams."""
    next_word = as_function(tricky, "tricky(beginnings)")
    log_p = _log_probabilities(next_word)
    texts = {
        ids: sum(log_p[ids[:i]][word] for i, word in enumerate(ids))
        for ids in product(range(NUM_WORDS), repeat=LENGTH)
    }
    best, second = sorted(texts, key=texts.__getitem__, reverse=True)[:2]
    if math.isclose(texts[best], texts[second], abs_tol=1e-4):
        raise Wrong(f"Two texts, {best} and {second}, are equally probable. Let only one be the best.")
    one, two = (_beam_search(log_p, num_beams) for num_beams in (1, 2))

    def shown(ids: Ids) -> str:
        return f"{ids}, with probability {math.exp(texts[ids]):.3f}"

    if one != best:
        raise Wrong(f"One beam finds {shown(one)}. It should find the best text, {shown(best)}.")
    if two == best:
        dropped = "Look at the candidates after two words: it has to be dropped there."
        raise Wrong(f"Two beams find the best text too, {shown(best)}. {dropped}")
    probabilities = (f"{math.exp(texts[ids]):.3f}" for ids in (best, two))
    return "The best text has probability {}, and what two beams find has {}.".format(*probabilities)


def _log_probabilities(next_word: Asked) -> dict[Ids, list[float]]:
    """Ask for the next word after all beginnings, each alone and those of a length together."""
    found: dict[Ids, list[float]] = {}
    for length in range(LENGTH):
        beginnings = [list(ids) for ids in product(range(NUM_WORDS), repeat=length)]
        alone = [_rows(next_word, [ids])[0] for ids in beginnings]
        for ids, row in zip(beginnings, alone, strict=True):
            total = row.exp().sum().item()
            if (row >= 0).all() and math.isclose(row.sum().item(), 1, abs_tol=1e-3):
                raise Wrong(f"After {ids} you give probabilities; wanted are their logarithms.")
            if not math.isclose(total, 1, abs_tol=1e-3):
                raise Wrong(f"After {ids} the probabilities of the three words add up to {total:.3g}.")
            found[tuple(ids)] = row.tolist()
        for ids, row, other in zip(beginnings, alone, _rows(next_word, beginnings), strict=True):
            if not torch.allclose(row, other, atol=1e-5):
                raise Wrong(
                    f"{next_word.called([ids])} is right for one beginning, but among "
                    f"{len(beginnings)} of them the row of {ids} is another. Is each row in its place?"
                )
    return found


def _rows(next_word: Asked, beginnings: list[list[int]]) -> Tensor:
    return next_word.tensor((len(beginnings), NUM_WORDS), beginnings).cpu().double()


def _beam_search(log_p: dict[Ids, list[float]], num_beams: int) -> Ids:
    beams = {(): 0.0}
    for _ in range(LENGTH):
        longer = {
            (*ids, word): total + more for ids, total in beams.items() for word, more in enumerate(log_p[ids])
        }
        beams = dict(sorted(longer.items(), key=lambda item: -item[1])[:num_beams])
    return next(iter(beams))


@exercise("13.3")
def orders_of_a_sentence(one_order: object, new_orders: object) -> str:
    """Look at the five parts: the same tokens, in orders that are new or not."""
    once = as_function(one_order, "one_order(ids, generator)")
    parts = _five_parts(once)
    if any(part != parts[0] for part in parts):
        raise Wrong(f"`{once.name}` gives orders that differ; all five should have the one that was drawn.")
    if parts[0] == SENTENCE:
        raise Wrong(f"`{once.name}` leaves the tokens in the order of the sentence.")
    each = as_function(new_orders, "new_orders(ids, generator)")
    parts = _five_parts(each)
    if SENTENCE in parts:
        raise Wrong(f"A part of `{each.name}` has the order of the sentence; all five should be random.")
    if len(set(map(tuple, parts))) < 5:
        raise Wrong(f"`{each.name}` gives the same order more than once; each part should have its own.")
    return "Measure both with `mean_scores`. What else could make the second one gain?"


def _five_parts(shuffle: Asked) -> list[list[int]]:
    """Ask for the parts, twice with equal generators."""
    is_five = sequence_of(length=5)
    first, again = (
        [np.asarray(part).tolist() for part in shuffle.gives(is_five, "five parts", SENTENCE, generator)]
        for generator in (np.random.default_rng(0), np.random.default_rng(0))
    )
    call = shuffle.called(SENTENCE, np.random.default_rng(0))
    for part in first:
        if Counter(part) != Counter(SENTENCE):
            raise Wrong(f"{call} has a part {show(part)}: not the tokens of the sentence, each as often.")
    if first != again:
        raise Wrong("Two generators in the same state give different orders: draw from `generator` alone.")
    return first


@exercise("13.4")
def pattern_that_cannot_invent(ticket_pattern: object) -> str:
    """Try tickets that are right, their beginnings, and tickets with a value from elsewhere."""
    make = as_function(ticket_pattern, "ticket_pattern(message)")
    for message, right, wrong in TICKETS:
        found = make.gives(str | regex.Pattern, "a regular expression", message)
        pattern = _pattern(found, make.called(message))
        ticket = _ticket(*right)
        if pattern.fullmatch(ticket) is None:
            raise Wrong(f"The pattern for {message!r} does not match {ticket}.")
        begun = next((n for n in range(len(ticket)) if not pattern.fullmatch(ticket[:n], partial=True)), None)
        if begun is not None:
            raise Wrong(f"The pattern for {message!r} does not let this be continued: {ticket[:begun]}")
        for why, values in wrong.items():
            if pattern.fullmatch(_ticket(*values)):
                raise Wrong(f"The pattern for {message!r} lets {_ticket(*values)} pass: {why}.")
        if pattern.fullmatch(f"A ticket: {ticket}") or pattern.fullmatch("{}"):
            raise Wrong(f"The pattern for {message!r} lets something pass that is no ticket.")
    return "Nothing is invented. Which of the values that stand there is the right one, it cannot know."


def _ticket(name: str, version: str, day: str) -> str:
    return f'{{"name": "{name}", "version": "{version}", "day": "{day}"}}'


def _pattern(found: str | regex.Pattern, call: str) -> regex.Pattern:
    if isinstance(found, regex.Pattern):
        return found
    try:
        return regex.compile(found)
    except regex.error as error:
        raise Wrong(f"{call} gives no regular expression: {error}.") from None


@exercise("13.5")
def draft_that_copies(copying: object, *, vocab_size: int) -> str:
    """Compare the proposed token with all that followed the last two tokens earlier."""
    draft = as_function(copying, "copying(ids)", may_give_none=True)
    a, b, c, d = range(vocab_size - 4, vocab_size)
    for ids in ([a, b, c, a, b], [d, d, a, c, b, d, a, c], [a, b, c, a, b, d, a, b], [b, b, b, b]):
        proposed = _proposed(draft, ids, vocab_size)
        followed = {z for *xy, z in zip(ids, ids[1:], ids[2:], strict=False) if xy == ids[-2:]}
        if proposed is None:
            raise Wrong(f"{draft.called(ids)} gives None, but {ids[-2:]} occurs earlier in these ids.")
        if proposed not in followed:
            own = " That is the end of the pair, not what comes after it." * (proposed == ids[-1])
            raise Wrong(
                f"{draft.called(ids)} proposes {proposed}, which did not follow {ids[-2:]} earlier.{own}"
            )
    for ids, why in (
        ([a, b, c, d, b], f"{[d, b]} does not occur earlier, only {b} does"),
        ([a, b], f"{[a, b]} occurs only at the end"),
        ([a], "there is only one token"),
    ):
        if (proposed := _proposed(draft, ids, vocab_size)) is not None:
            raise Wrong(f"{draft.called(ids)} proposes {proposed}, but {why}. Return None then.")
    return "It proposes what came next before. How many steps it needs is for you to count and explain."


def _proposed(draft: Asked, ids: list[int], vocab_size: int) -> int | None:
    if draft(ids) is None:
        return None
    logits = draft.tensor((vocab_size,), ids)
    if logits.max() == logits.min():
        raise Wrong(f"{draft.called(ids)} gives logits that are all the same, so no token is proposed.")
    return int(logits.argmax())
