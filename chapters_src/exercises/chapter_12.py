"""Checks of the exercises of chapter 12, a language model of one's own."""

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from chapters_src.data import docstrings, emotions
from chapters_src.exercises.checking import (
    Missing,
    Wrong,
    as_function,
    as_number,
    exercise,
    is_missing,
    show,
)

BITS, BYTES = 1.5, 4.1  # of 12.1: per byte, and per token
SHARES = (1 / 8, 1 / 4, 1 / 2, 1)  # of 12.2
LENGTH, WORDS = 300, 30  # of 12.3: bytes of the text, and different words
PAIRS, HARMLESS, HARMFUL, SOLVED = 16, 0.1, 0.3, 0.6  # of 12.4
EACH, SHORT, ENOUGH, LONGEST = 2, 40, 0.4, 120  # of 12.5: messages of a feeling, their length, share, code


@exercise("12.1")
def nats_from_bits(loss: object, perplexity: object) -> str:
    """Compute both from bits per byte and bytes per token."""
    found = as_number(loss, "loss")
    expected = BITS * BYTES * math.log(2)
    start = f"`loss` is {show(found)}. "
    if abs(found - expected) > 0.006:
        others = {
            BITS * BYTES: "That is in bits per token. How many nats is a bit?",
            BITS * math.log(2): "That is for one byte. A token has several.",
            BITS / BYTES * math.log(2): "Is the loss of a token smaller than that of one of its bytes?",
            BITS * BYTES / math.log(2): "A nat is more than a bit, so there are fewer of them.",
            math.exp(expected): "That is the perplexity.",
        }
        for other, hint in others.items():
            if abs(found - other) < 0.01 * other:
                raise Wrong(start + hint)
        raise Wrong(start + "First bits per token, then nats.")
    found = as_number(perplexity, "perplexity")
    start = f"`perplexity` is {show(found)}. "
    right = math.exp(expected)
    if abs(found - right) > 0.01 * right:
        others = {
            2**expected: "The loss is in nats. Which base belongs to them?",
            math.exp(BITS * BYTES): "That takes bits for nats.",
            math.exp(BITS * math.log(2)): "That is a perplexity per byte.",
            expected: "That is the loss itself.",
        }
        for other, hint in others.items():
            if abs(found - other) < 0.01 * other:
                raise Wrong(start + hint)
        raise Wrong(start + "It is the exponential of the loss in nats.")
    return "With a tokenizer of longer pieces, the same model would have a higher perplexity."


@exercise("12.2")
def more_text_for_counts(curve: object, miss: object, *, known: float) -> str:
    """Compare the end with the chapter's figure, and the miss with the curve."""
    if is_missing(curve):
        raise Missing("`curve`")
    if not isinstance(curve, Mapping) or len(curve) != len(SHARES):
        raise Wrong(
            f"`curve` has to be a dictionary from four numbers of tokens to bits per byte, not {show(curve)}."
        )
    tokens = [as_number(each, "a number of tokens") for each in curve]
    bits = [as_number(each, f"curve[{show(key)}]") for key, each in curve.items()]
    ratios = [b / a for a, b in itertools.pairwise(tokens)]
    if not all(1.6 < ratio < 2.5 for ratio in ratios):
        raise Wrong(
            "From one part to the next the tokens should about double; yours grow by "
            f"{', '.join(f'{ratio:.2f}' for ratio in ratios)}."
        )
    if abs(bits[3] - known) > 0.003:
        raise Wrong(
            f"With all of the text, counts of four tokens need {known:.3f} bits per byte in the chapter; "
            f"yours need {bits[3]:.3f}. Are both on the validation modules?"
        )
    gains = [a - b for a, b in itertools.pairwise(bits)]
    if min(gains) <= 0:
        raise Wrong(f"The doublings bring {', '.join(f'{gain:.3f}' for gain in gains)}: one of them harms.")
    if max(gains) > 0.2:
        raise Wrong(
            f"One doubling brings {max(gains):.3f}. Are the documents shuffled? They are sorted by package, "
            "so the first eighth has only some of the packages."
        )
    slope, start = np.polyfit(np.log(tokens[:3]), bits[:3], 1)
    expected = bits[3] - (start + slope * math.log(tokens[3]))
    found = as_number(miss, "miss")
    if abs(found - expected) > 0.0015:
        begin = f"`miss` is {show(found)}. "
        plain = np.polyfit(tokens[:3], bits[:3], 1)
        every = np.polyfit(np.log(tokens), bits, 1)
        others = {
            -expected: "The sign: positive if more bits were measured than the line says.",
            bits[3] - np.polyval(plain, tokens[3]): "That is a line in the tokens, not in their logarithm.",
            bits[3] - np.polyval(every, math.log(tokens[3])): (
                "That line has seen the fourth point. Hide it from the fit."
            ),
            expected / gains[2]: "That is a share of the last gain; wanted are bits per byte.",
            bits[3] - expected: "That is what the line says. How far is it from what was measured?",
        }
        for other, hint in others.items():
            if abs(found - other) < 0.0015:
                raise Wrong(begin + hint)
        raise Wrong(begin + "Fit a line to the first three points, with the logarithm of the tokens.")
    return (
        f"The last doubling brought {gains[2]:.3f} bits per byte, and the line misses by {expected:.3f}: "
        f"{expected / gains[2]:.0%} of it. "
        f"{'The curve bends, so look' if expected > 0 else 'Look'} at such a line with care."
    )


@exercise("12.3")
def little_one_wins(my_text: object, *, score_of: Callable[[str, str], float], read: Collection[int]) -> str:
    """Score the text with both models, unless it was read."""
    if is_missing(my_text):
        raise Missing("`my_text`")
    if not isinstance(my_text, str):
        raise Wrong(f"`my_text` has to be a string, not {show(my_text)}.")
    size = len(my_text.encode())
    if size < LENGTH:
        raise Wrong(f"It has {size} bytes; wanted are at least {LENGTH}.")
    words = set(re.findall(r"[a-z]+", my_text.lower()))
    if len(words) < WORDS:
        raise Wrong(f"It has {len(words)} different words. A text has at least {WORDS}.")
    if not docstrings.runs(my_text).isdisjoint(read):
        raise Wrong(
            "It shares a run of 13 words with the text that the book's model was trained on. That is reading "
            "the test."
        )
    try:
        ours, gemma = (float(score_of(name, my_text)) for name in ("the book's model", "Gemma"))
    except ValueError as error:
        raise Wrong(f"It is too long for the book's model: {error}") from None
    if ours >= gemma:
        raise Wrong(
            f"The book's model needs {ours:.2f} bits per byte, and Gemma {gemma:.2f}. What has the small one "
            "read a thousand times, in all its packages?"
        )
    return f"The book's model needs {ours:.2f} bits per byte, Gemma {gemma:.2f}: {gemma - ours:.2f} more."


@exercise("12.4", takes="some seconds")
def two_tasks(
    harmless: object,
    harmful: object,
    *,
    share_right: Callable[..., float],
    tasks: Mapping[str, Sequence[tuple[str, str]]],
) -> str:
    """Run both tasks on Gemma, with right examples and with mixed-up ones."""
    given = {tuple(map(str, pair)) for pairs in tasks.values() for pair in pairs}
    rates = {}
    for name, pairs in (("harmless", harmless), ("harmful", harmful)):
        checked = _pairs(name, pairs, given)
        right = float(share_right("Gemma", checked, 4))
        if right < SOLVED:
            raise Wrong(
                f"`{name}`: with four right examples Gemma gets {right:.0%}; at least {SOLVED:.0%} are "
                "needed, else there is nothing to lose. Take an easier task."
            )
        rates[name] = right, float(share_right("Gemma", checked, 4, mixed_up=True))
    right, mixed = rates["harmless"]
    if mixed < right - HARMLESS:
        raise Wrong(
            f"`harmless`: {right:.0%} with right examples, {mixed:.0%} with mixed-up ones. Those do harm. "
            "What have the chapter's capitals that this has not?"
        )
    right, mixed = rates["harmful"]
    if mixed > right - HARMFUL:
        raise Wrong(
            f"`harmful`: {right:.0%} with right examples, {mixed:.0%} with mixed-up ones. They hardly "
            "matter. What have the chapter's opposites that this has not?"
        )
    told = (
        f"{name}: {a:.0%} with right examples, {b:.0%} with mixed-up ones" for name, (a, b) in rates.items()
    )
    return f"{'; '.join(told)}."


def _pairs(name: str, pairs: Any, given: Collection[tuple[str, ...]]) -> list[tuple[str, str]]:
    """See that a task is a list of new pairs of words."""
    if is_missing(pairs):
        raise Missing(f"`{name}`")
    if not isinstance(pairs, list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(word, str) for word in pair)
        for pair in pairs
    ):
        raise Wrong(f"`{name}` has to be a list of pairs of strings, not {show(pairs)}.")
    found = [(pair[0], pair[1]) for pair in pairs]
    if not all(word.isalpha() for pair in found for word in pair):
        raise Wrong(
            f"`{name}` may have only single words of letters. Just the first token of an answer is compared, "
            "and for a number it can be a mere blank."
        )
    if len({question for question, _ in found}) < PAIRS:
        raise Wrong(
            f"`{name}` has {len({question for question, _ in found})} different questions; wanted are at "
            f"least {PAIRS}."
        )
    if len({answer for _, answer in found}) < len(found) / 2:
        raise Wrong(f"`{name}`: so few different answers that mixed-up ones may be right.")
    if sum(pair in given for pair in found) > len(found) / 4:
        raise Wrong(f"`{name}` is one of the chapter's tasks. Invent another one.")
    return found


@exercise("12.5", takes="some seconds")
def codes_for_feelings(coded: object, *, model: Any, tokenizer: Any) -> str:
    """Score messages after each of the six codes, and choose the best."""
    asked = as_function(coded, "coded(feeling)")
    codes = {}
    for feeling in emotions.LABELS:
        code = asked(feeling)
        if not isinstance(code, str) or not code.strip():
            raise Wrong(f"{asked.called(feeling)} gives {show(code)}; wanted is the text before a message.")
        codes[feeling] = code
    if len(set(codes.values())) < len(codes):
        raise Wrong(f"There are {len(set(codes.values()))} different codes for six feelings.")
    if any(len(code) > LONGEST for code in codes.values()):
        raise Wrong(
            f"A code may have {LONGEST} characters; one of yours has {max(map(len, codes.values()))}."
        )
    messages = _messages()
    rows = [[_bits(model, tokenizer, code, text) for code in codes.values()] for _, text in messages]
    best = [[*codes][row.index(min(row))] for row in rows]
    right = sum(a == b for a, (b, _) in zip(best, messages, strict=True))
    most, times = Counter(best).most_common(1)[0]
    share = f"The right code is the best of six for {right} of {len(messages)} messages"
    if right < ENOUGH * len(messages):
        if times > len(messages) / 2:
            raise Wrong(
                f"{share}; {times} messages cost the fewest bits after the code for {most}. Could any "
                "message follow that code?"
            )
        raise Wrong(f"{share}. Which beginning would make the model expect such a message?")
    is_right = np.array([[code == b for code in codes] for b, _ in messages])
    none = np.mean([_bits(model, tokenizer, "", text) for _, text in messages])
    after, wrong = np.array(rows)[is_right].mean(), np.array(rows)[~is_right].mean()
    return (
        f"{share}. So a language model can classify without having been trained to. With nothing before it "
        f"a message costs {none:.1f} bits, after a wrong code {wrong:.1f}, after the right one {after:.1f}."
    )


@functools.cache
def _messages() -> list[tuple[str, str]]:
    """As many held-out messages of each feeling."""
    rows = [(emotions.LABELS[row["label"]], row["text"]) for row in emotions.load()["test"]]
    rows = [row for row in rows if len(row[1]) <= SHORT]
    of_each = {feeling: [row for row in rows if row[0] == feeling] for feeling in emotions.LABELS}
    return [row for some in of_each.values() for row in some[:EACH]]


@torch.inference_mode()
def _bits(model: Any, tokenizer: Any, code: str, message: str) -> float:
    """The bits of a message's tokens, after a code."""
    before = tokenizer.encode(code, add_special_tokens=False)
    after = tokenizer.encode(f" {message}", add_special_tokens=False)
    ids = torch.tensor([tokenizer.bos_token_id, *before, *after])
    ids = ids.to(next(model.parameters()).device)
    states: Tensor = model.decoder(ids[None, :-1], None)[0, len(before) :]
    nats = F.cross_entropy(model.head(states).float(), ids[1 + len(before) :], reduction="sum")
    return float(nats) / math.log(2)
