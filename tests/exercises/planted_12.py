"""Answers to the exercises of chapter 12, with counts of words in place of the models where it can be."""

import math

import numpy as np
import torch
from planted import Planted, defined, planted
from torch import nn

from chapters_src.data import docstrings, emotions
from chapters_src.exercises import chapter_12

WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
million billion"""
WORDS = WORDS.split()


@planted("12.1")
def units() -> Planted:
    return Planted(
        (4.263, 71.02),
        {
            "how many nats is a bit": (6.15, 71.0),
            "for one byte": (1.0397, 71.0),
            "smaller than that of one of its bytes": (0.2536, 71.0),
            "so there are fewer of them": (8.873, 71.0),
            "that is the perplexity": (71.3, 71.0),
            "first bits per token": (3.0, 71.0),
            "which base belongs": (4.263, 19.2),
            "takes bits for nats": (4.263, 468.7),
            "a perplexity per byte": (4.263, 2.828),
            "the loss itself": (4.263, 4.28),
            "exponential of the loss": (4.263, 50.0),
        },
        also_right=((4.26, 71), (torch.tensor(4.263), 70.8)),
        secrets=("4.26", "4.263", "71.0", "71.02"),
    )


@planted("12.2")
def doubling() -> Planted:
    tokens, bits = (200_000, 400_000, 800_000, 1_600_000), (2.0, 1.91, 1.83, 1.76)
    curve = dict(zip(tokens, bits, strict=True))
    slope, start = np.polyfit(np.log(tokens[:3]), bits[:3], 1)
    miss = bits[3] - start - slope * math.log(tokens[3])
    plain = bits[3] - np.polyval(np.polyfit(tokens[:3], bits[:3], 1), tokens[3])
    every = bits[3] - np.polyval(np.polyfit(np.log(tokens), bits, 1), math.log(tokens[3]))
    jump = dict(zip(tokens, (2.4, 2.05, 1.8, 1.76), strict=True))
    worse = dict(zip(tokens, (1.9, 1.95, 1.8, 1.76), strict=True))
    return Planted(
        (curve, miss),
        {
            "a dictionary": ([*bits], miss),
            "should about double": (dict(zip((1, 2, 3, 4), bits, strict=True)), miss),
            "both on the validation": (curve | {tokens[3]: 1.5}, miss),
            "one of them harms": (worse, miss),
            "are the documents shuffled": (jump, miss),
            "the sign": (curve, -miss),
            "not in their logarithm": (curve, plain),
            "has seen the fourth": (curve, every),
            "a share of the last gain": (curve, miss / 0.07),
            "what the line says": (curve, bits[3] - miss),
            "the first three points": (curve, 0.5),
        },
        {"known": 1.76},
        also_right=((curve, torch.tensor(float(miss))),),
        secrets=(f"{miss:.4f}",),
    )


@planted("12.3")
def own_text() -> Planted:
    text = " ".join(WORDS) + " and so on until nothing is left to count, said the clerk, and closed the book."
    text += " He had counted everything that there was to count in the office."
    read = docstrings.runs(" ".join(WORDS))

    def score_of(name, text):
        if len(text) > 2_000:
            raise ValueError("cannot forward a sequence of length 999")
        return 1.0 if (name == "Gemma") == ("clerk" not in text) else 2.0

    fresh = text.replace("seven", "7").replace("fifteen", "15").replace("hundred", "100")
    return Planted(
        (fresh.replace("one", "1"),),
        {
            "wanted are at least 300": (fresh[:200],),
            "different words": ("one two three " * 40,),
            "run of 13 words": (text,),
            "and Gemma 1.00": (fresh.replace("one", "1").replace("clerk", "writer"),),
            "too long": (fresh.replace("one", "1") * 6,),
        },
        {"score_of": score_of, "read": read},
        secrets=("True", "array"),
    )


@planted("12.4")
def tasks() -> Planted:
    good = [(word, word.upper()) for word in WORDS[:16]]
    bad = [(word, word[::-1]) for word in WORDS[:16]]
    hard = [(word, word * 2) for word in WORDS[:16]]

    def share_right(name, pairs, num_examples, mixed_up=False):
        """Upper case is always done, reversing only by right examples, doubling never."""
        if pairs[0][1].isupper():
            return 0.95
        return 0.2 if pairs[0][1] == pairs[0][0] * 2 or mixed_up else 0.9

    two = [(word, "ab"[i % 2]) for i, word in enumerate(WORDS[:16])]
    given = [(word, word.title()) for word in WORDS[:16]]
    return Planted(
        (good, bad),
        {
            "those do harm": (bad, bad),
            "hardly matter": (good, good),
            "nothing to lose": (good, hard),
            "15 different questions": (good[:15], bad),
            "list of pairs": (good, [*bad, "x"]),
            "few different answers": (good, two),
            "single words of letters": (good, [*bad[:-1], ("year", "1066")]),
            "one of the chapter's": (given, bad),
        },
        {"share_right": share_right, "tasks": {"titles": given}},
        also_right=((tuple(good), [list(pair) for pair in bad]),),
        secrets=("France", "upper"),
    )


class Letters:
    """A tokenizer of letters."""

    bos_token_id = 0

    def encode(self, text, add_special_tokens=True):
        return [min(ord(letter), 255) for letter in text]


class Reader(nn.Module):
    """Reads letters, and is more certain of a message's next one where it knows the message by its code."""

    def __init__(self, known):
        super().__init__()
        self.weight, self.known = nn.Parameter(torch.zeros(1)), known

    def head(self, states):
        return states

    def decoder(self, ids, attention_mask):
        text = "".join(map(chr, ids[0, 1:].tolist()))
        logits = torch.zeros(*ids.shape, 256)
        next_ones = [*ids[0, 1:].tolist(), ord(" ")]
        certain = any(text.startswith(code) and message in text for code, message in self.known)
        logits[0, range(len(next_ones)), next_ones] = 8.0 if certain else 4.0
        return logits


@planted("12.5")
def codes() -> Planted:
    [coded] = defined(12, "coded")

    def letters(text):
        return "".join(chr(min(ord(letter), 255)) for letter in text[:-1])

    model = Reader([(coded(feeling), letters(text)) for feeling, text in chapter_12._messages()])
    names = dict(zip(emotions.LABELS, [*emotions.LABELS[1:], emotions.LABELS[0]], strict=True))
    return Planted(
        (coded,),
        {
            "the text before a message": (lambda feeling: 7,),
            "1 different codes": (lambda feeling: "x",),
            "may have 120 characters": (lambda feeling: feeling * 40,),
            "which beginning would": (lambda feeling: coded(names[feeling]),),
            "could any message follow": (lambda feeling: f"A note about {feeling}.",),
        },
        {"model": model, "tokenizer": Letters()},
        secrets=("short message",),
    )
