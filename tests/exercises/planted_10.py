"""Answers to the exercises of chapter 10, with a network that takes every picture for a one."""

import itertools
import re

import numpy as np
import torch
import torch.nn.functional as F
from planted import Planted, defined, planted
from sklearn.datasets import load_digits

from chapters_src import evaluation
from chapters_src.attention import causal_mask
from chapters_src.exercises import chapter_10

DIGITS = load_digits()


@planted("10.1")
def masks() -> Planted:
    [right] = defined(10, "masks", torch=torch, causal_mask=causal_mask)

    def but(change):
        def masks(*lengths):
            found = right(*lengths)
            change(found)
            return found

        return masks

    def turn(*names):
        return but(lambda found: found.update({name: ~found[name] for name in names}))

    def forget(name):
        return but(lambda found: found.pop(name))

    padding = [f"{part}_key_padding_mask" for part in ("src", "tgt", "memory")]
    longer = but(lambda found: found.update(src_key_padding_mask=torch.ones(3, 9).bool()))
    floats = but(lambda found: found.update(src_key_padding_mask=found["src_key_padding_mask"].float()))
    shifted = but(lambda found: found.update(src_key_padding_mask=found["src_key_padding_mask"].flip(0)))
    return Planted(
        (right,),
        {
            "equal lengths hide that": (forget("memory_key_padding_mask"),),
            "is kept from seeing the next": (forget("tgt_mask"),),
            "and not those before it": (but(lambda found: found.update(tgt_mask=found["tgt_mask"].T)),),
            "tokens are hidden": (turn(*padding),),
            "nothing is hidden": (lambda *lengths: {},),
            "whose keys are among": (lambda *lengths: {"mask": torch.ones(3)},),
            "is added to the scores": (floats,),
            "refuses these masks": (longer,),
            "off what each pair gives alone": (shifted,),
        },
        also_right=((forget("tgt_key_padding_mask"),),),
        secrets=("triu", ">="),
    )


@planted("10.2")
def reversed_mask() -> Planted:
    return Planted(
        (0.0072, 0.31, "loss"),
        {
            "above 0": (0.5, 0.31, "loss"),
            "this model is honest": (0.0121, 0.0124, "loss"),
            "train longer": (0.03, 0.31, "loss"),
            "does it read its own answers": (0.0072, 0.0075, "loss"),
            "let the model answer alone": (0.0072, 0.31, "error"),
        },
        also_right=((torch.tensor(0.0072), 0.31, "loss"),),
        secrets=("reversed",),
    )


@planted("10.3")
def smaller_patches() -> Planted:
    return Planted(
        (3.8235, 4.48),
        {
            "that counts patches": (4, 4.48),
            "how many tokens": (2, 4.48),
            "which operations grow faster": (3.8235, 3.8235),
            "is the square": (3.8235, 14.62),
            "upside down": (3.8235, 0.223),
            "with the math kernel": (3.8235, 4.1),
        },
        also_right=((3.82, torch.tensor(4.5)),),
        secrets=("3.82", "3.8235", "4.48", "65", "17"),
    )


@planted("10.4")
def neighbors() -> Planted:
    [right] = defined(10, "likeness", torch=torch, F=F)

    def slip(number):
        return lambda positions: list(chapter_10._slips_of_likeness(positions).values())[number]

    return Planted(
        (right,),
        {
            "no neighbor of itself": (slip(0),),
            "is each row itself": (slip(1),),
            "belongs to the class token": (slip(2),),
            "share no edge": (slip(3),),
            "are far apart": (slip(4),),
            "the wrong way around": (slip(5),),
            "take two patches": (lambda positions: (0.5, 0.25),),
        },
        also_right=((lambda positions: torch.tensor(right(positions)),),),
        secrets=("normalize",),
    )


@planted("10.5")
def strokes() -> Planted:
    picture, nearest_neighbor, drawn = defined(
        10, "picture", "nearest_neighbor", "STROKES", torch=torch, itertools=itertools
    )
    images = (torch.tensor(DIGITS.images, dtype=torch.float32)[:, None] - 5) / 6
    labels = torch.tensor(DIGITS.target)
    odd = 7, drawn[7]
    turned = {digit: drawn[(digit + 1) % 10] for digit in drawn}
    tiny = {digit: [[(16, 16), (17, 17)]] for digit in drawn}
    black = {digit: [[(0, y), (32, y)] for y in range(0, 33, 4)] for digit in drawn}
    return Planted(
        (drawn, odd),
        {
            "a list of strokes for each digit": (list(drawn.values()), odd),
            "the strokes of 3 cannot be drawn": (drawn | {3: [[("x", 1), (2, 2)]]}, odd),
            "too thin": (tiny, odd),
            "too thick": (black, odd),
            "of your ten digits; it misses": (turned, odd),
            "is it still a 3?": (drawn, (3, drawn[8])),
            "reads the odd one, too": (drawn, (1, drawn[1])),
        },
        {
            "picture": picture,
            "nearest": lambda pictures: nearest_neighbor(images, pictures, labels),
            "answer": lambda pictures: torch.ones(len(pictures), dtype=torch.long),
        },
        also_right=((drawn | {9: drawn[8]}, list(odd)),),
        secrets=("lean",),
    )


@planted("10.6")
def augmentation() -> Planted:
    """A change that mends one form in two: the forms differ far more than digits do."""
    text = "".join(map(str, DIGITS.target))
    starts = [found.start() for found in re.finditer(r"0?1234567?8?9(?:01234567?8?9){2}09556", text)]
    form = np.searchsorted(starts, np.arange(len(text)), side="right")
    labels = DIGITS.target
    wrong = np.arange(len(text)) % 10 == 0
    before = np.where(wrong, (labels + 1) % 10, labels)
    after = np.where(wrong & (form % 2 == 0), (labels + 1) % 10, labels)
    change = (after == labels).astype(float) - (before == labels)
    each = np.array([change[form == number].mean() for number in range(1, 15)])
    found, narrow = (evaluation.bootstrap_interval(np.mean, x, seed=1) for x in (each, change))
    gain = (found.estimate, found.low, found.high)
    mean = found.estimate
    no = np.where(
        wrong & (form > 7) | (np.arange(len(text)) % 10 == 1) & (form > 8), (labels + 1) % 10, labels
    )
    other = (no == labels).astype(float) - (before == labels)
    other = np.array([other[form == number].mean() for number in range(1, 15)])
    even = evaluation.bootstrap_interval(np.mean, other, seed=1)
    return Planted(
        (before, after, gain, "helps"),
        {
            "are the same answers": (before, before, gain, "helps"),
            "has the wrong sign": (before, after, (-mean, -gain[2], -gain[1]), "helps"),
            "draw forms": (before, after, (mean, narrow.low, narrow.high), "helps"),
            "average each form": (before, after, (mean, 0.0, 0.5), "helps"),
            "does not hold 0": (before, after, gain, "harms"),
            "interval holds 0": (before, no, (even.estimate, even.low, even.high), "helps"),
            "for each of the 1797 digits": (before[:100], after, gain, "helps"),
        },
        {"form": form, "labels": torch.tensor(labels)},
        also_right=((list(before), torch.tensor(after), list(gain), "helps"),),
        secrets=(f"{gain[1]:.3f}", f"{gain[2]:.3f}", f"{mean:.3f}"),
    )
