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
    Wrong,
    as_function,
    as_kind,
    as_number,
    check_number,
    exercise,
    is_text,
    sequence_of,
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
    expected, per_token = BITS * BYTES * math.log(2), BITS * BYTES
    slips = {
        "That is in bits per token. How many nats is a bit?": per_token,
        "That is for one byte. A token has several.": BITS * math.log(2),
        "Is the loss of a token smaller than that of one of its bytes?": BITS / BYTES * math.log(2),
        "A nat is more than a bit, so there are fewer of them.": per_token / math.log(2),
        "That is the perplexity.": math.exp(expected),
    }
    otherwise = "First bits per token, then nats."
    check_number(loss, "loss", expected, slips, otherwise, within=0.006, relative=0.004)
    slips = {
        "The loss is in nats. Which base belongs to them?": 2**expected,
        "That takes bits for nats.": math.exp(per_token),
        "That is a perplexity per byte.": math.exp(BITS * math.log(2)),
        "That is the loss itself.": expected,
    }
    otherwise = "It is the exponential of the loss in nats."
    check_number(perplexity, "perplexity", math.exp(expected), slips, otherwise, relative=0.01)
    return "With a tokenizer of longer pieces, the same model would have a higher perplexity."


@exercise("12.2")
def more_text_for_counts(curve: Any, miss: object, *, known: float) -> str:
    """Compare the end with the chapter's figure, and the miss with the curve."""
    wanted = "a dictionary from four numbers of tokens to bits per byte"
    as_kind(curve, "curve", lambda it: isinstance(it, Mapping) and len(it) == len(SHARES), wanted)
    tokens = [as_number(each, "a number of tokens") for each in curve]
    bits = [as_number(each, f"curve[{show(key)}]") for key, each in curve.items()]
    ratios = [b / a for a, b in itertools.pairwise(tokens)]
    if not all(1.6 < ratio < 2.5 for ratio in ratios):
        grow = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        raise Wrong(f"From part to part the tokens should about double; yours grow by {grow}.")
    if abs(bits[3] - known) > 0.003:
        raise Wrong(
            f"With all of the text, counts of four tokens need {known:.3f} bits per byte in the chapter; "
            f"yours need {bits[3]:.3f}. Are both on the validation modules?"
        )
    gains = [a - b for a, b in itertools.pairwise(bits)]
    if min(gains) <= 0:
        raise Wrong(f"The doublings bring {', '.join(f'{gain:.3f}' for gain in gains)}: one of them harms.")
    if max(gains) > 0.2:
        asked_back = "Are the documents shuffled? They are sorted by package."
        raise Wrong(f"One doubling brings {max(gains):.3f}. {asked_back}")
    slope, start = np.polyfit(np.log(tokens[:3]), bits[:3], 1)
    expected = bits[3] - (start + slope * math.log(tokens[3]))
    plain, every = np.polyfit(tokens[:3], bits[:3], 1), np.polyfit(np.log(tokens), bits, 1)
    of_every = bits[3] - np.polyval(every, math.log(tokens[3]))
    slips = {
        "The sign: positive if more bits were measured than the line says.": -expected,
        "That is a line in the tokens, not in their logarithm.": bits[3] - np.polyval(plain, tokens[3]),
        "That line has seen the fourth point. Hide it from the fit.": of_every,
        "That is a share of the last gain; wanted are bits per byte.": expected / gains[2],
        "That is what the line says. How far is it from what was measured?": bits[3] - expected,
    }
    otherwise = "Fit a line to the first three points, with the logarithm of the tokens."
    check_number(miss, "miss", expected, slips, otherwise, within=0.0015)
    return (
        f"The last doubling brought {gains[2]:.3f} bits per byte, and the line misses by {expected:.3f}: "
        f"{expected / gains[2]:.0%} of it. "
        f"{'The curve bends, so look' if expected > 0 else 'Look'} at such a line with care."
    )


@exercise("12.3")
def little_one_wins(my_text: Any, *, score_of: Callable[[str, str], float], read: Collection[int]) -> str:
    """Score the text with both models, unless it was read."""
    as_kind(my_text, "my_text", str, "a string")
    size = len(my_text.encode())
    if size < LENGTH:
        raise Wrong(f"It has {size} bytes; wanted are at least {LENGTH}.")
    words = set(re.findall(r"[a-z]+", my_text.lower()))
    if len(words) < WORDS:
        raise Wrong(f"It has {len(words)} different words. A text has at least {WORDS}.")
    if not docstrings.runs(my_text).isdisjoint(read):
        raise Wrong("It shares a run of 13 words with what the book's model was trained on. That is no test.")
    try:
        ours, gemma = (float(score_of(name, my_text)) for name in ("the book's model", "Gemma"))
    except ValueError as error:
        raise Wrong(f"It is too long for the book's model: {error}") from None
    if ours >= gemma:
        needs = f"The book's model needs {ours:.2f} bits per byte, and Gemma {gemma:.2f}."
        raise Wrong(f"{needs} What has the small one read a thousand times, in all its packages?")
    return f"The book's model needs {ours:.2f} bits per byte, Gemma {gemma:.2f}: {gemma - ours:.2f} more."


@exercise("12.4", takes="some seconds")
def two_tasks(
    harmless: object, harmful: object,
    *, share_right: Callable[..., float], tasks: Mapping[str, Sequence[tuple[str, str]]],
) -> str:  # fmt: skip
    """Run both tasks on Gemma, with right examples and with mixed-up ones."""
    given = {tuple(map(str, pair)) for pairs in tasks.values() for pair in pairs}
    rates = {}
    for name, pairs in (("harmless", harmless), ("harmful", harmful)):
        checked = _pairs(name, pairs, given)
        right = float(share_right("Gemma", checked, 4))
        if right < SOLVED:
            easier = f"at least {SOLVED:.0%} are needed, else there is nothing to lose. Take an easier task."
            raise Wrong(f"`{name}`: with four right examples Gemma gets {right:.0%}; {easier}")
        rates[name] = right, float(share_right("Gemma", checked, 4, mixed_up=True))
    told = {
        name: f"`{name}`: {right:.0%} with right examples, {mixed:.0%} with mixed-up ones."
        for name, (right, mixed) in rates.items()
    }
    has_not = "that this has not?"
    right, mixed = rates["harmless"]
    if mixed < right - HARMLESS:
        raise Wrong(f"{told['harmless']} Those do harm. What have the chapter's capitals {has_not}")
    right, mixed = rates["harmful"]
    if mixed > right - HARMFUL:
        raise Wrong(f"{told['harmful']} They hardly matter. What have the chapter's opposites {has_not}")
    return " ".join(told.values())


def _pairs(name: str, pairs: Any, given: Collection[tuple[str, ...]]) -> list[tuple[str, str]]:
    """See that a task is a list of new pairs of words."""
    as_kind(pairs, name, sequence_of(sequence_of(str, 2)), "a list of pairs of strings")
    found = [(pair[0], pair[1]) for pair in pairs]
    if not all(word.isalpha() for pair in found for word in pair):
        raise Wrong(
            f"`{name}` may have only single words of letters. Just the first token of an answer is compared, "
            "and for a number it can be a mere blank."
        )
    different = len({question for question, _ in found})
    if different < PAIRS:
        raise Wrong(f"`{name}` has {different} different questions; wanted are at least {PAIRS}.")
    if len({answer for _, answer in found}) < len(found) / 2:
        raise Wrong(f"`{name}`: so few different answers that mixed-up ones may be right.")
    if sum(pair in given for pair in found) > len(found) / 4:
        raise Wrong(f"`{name}` is one of the chapter's tasks. Invent another one.")
    return found


@exercise("12.5", takes="some seconds")
def codes_for_feelings(coded: object, *, model: Any, tokenizer: Any) -> str:
    """Score messages after each of the six codes, and choose the best."""
    asked = as_function(coded, "coded(feeling)")
    wanted = "the text before a message"
    codes = {feeling: asked.gives(is_text, wanted, feeling) for feeling in emotions.LABELS}
    if len(set(codes.values())) < len(codes):
        raise Wrong(f"There are {len(set(codes.values()))} different codes for six feelings.")
    if (longest := max(map(len, codes.values()))) > LONGEST:
        raise Wrong(f"A code may have {LONGEST} characters; one of yours has {longest}.")
    messages = _messages()
    rows = [[_bits(model, tokenizer, code, text) for code in codes.values()] for _, text in messages]
    best = [[*codes][row.index(min(row))] for row in rows]
    right = sum(a == b for a, (b, _) in zip(best, messages, strict=True))
    most, times = Counter(best).most_common(1)[0]
    share = f"The right code is the best of six for {right} of {len(messages)} messages"
    if right < ENOUGH * len(messages):
        if times > len(messages) / 2:
            cost = f"{times} messages cost the fewest bits after the code for {most}"
            raise Wrong(f"{share}; {cost}. Could any message follow that code?")
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
