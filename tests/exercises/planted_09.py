"""Answers to the exercises of chapter 09, with the shipped translator, and a pupil that has its answers."""

import copy
import functools
import json
import math
from pathlib import Path

import torch
from planted import Planted, defined, planted
from torch import nn

from chapters_src import pretrained, resources
from chapters_src.decoding import Stop, greedy
from chapters_src.exercises import chapter_09
from chapters_src.tokenization.byte_pair import BytePairTokenizer
from chapters_src.translation import Texts

START, END = 1, 2
FOLDER = Path(resources.checkpoint("translator"))


@functools.cache
def shipped():
    return pretrained.load(FOLDER), BytePairTokenizer.load(FOLDER / "tokenizer.json")


def encode(text):
    return [*shipped()[1].encode(text), END]


def translate(model, texts):
    stop = Stop(END, tokenizer=shipped()[1])
    sources = [encode(text) for text in texts]
    return [c.text for c in greedy(model, sources, max_new_tokens=16, target_ids=[START], stop=stop)]


@planted("9.1")
def smoothing() -> Planted:
    return Planted(
        (0.8223, 0.0513),
        {
            "treats all wrong pieces as one": (0.1985, 0.0513),
            "in bits": (1.186, 0.0513),
            "above the floor": (0.01, 0.0513),
            "for a smoothing of 0.1": (1.5727, 0.0513),
            "the vocabulary of this chapter": (0.5986, 0.0513),
            "this chapter's own floor": (1.1253, 0.0513),
            "leaves out the right piece": (0.7736, 0.0513),
            "a single wrong piece": (15.4723, 0.0513),
            "the right piece alone": (0.05129, 0.8223),
            "a model that is certain pays": (0, 0.0513),
            "smallest cross-entropy": (3.0, 0.0513),
            "has it, at the floor?": (0.8223, 0.0),
            "the smoothed loss again": (0.8223, 0.8223),
            "a probability, not a loss": (0.8223, 0.95),
            "sees only the right piece": (0.8223, 0.5),
        },
        also_right=((0.82, 0.05), (torch.tensor(0.8223), 0.051)),
        secrets=("0.822", "0.82", "0.051", "0.0513"),
    )


@planted("9.2")
def by_hand() -> Planted:
    return Planted(
        (43.5817,),
        {
            "mean of three scores": (44.54,),
            "as long as the references": (45.608,),
            "not by the geometric mean": (48.93,),
            "without the brevity penalty": (51.209,),
            "are words, too": (50.825,),
            "capital letter": (51.002,),
            "precision of single words": (86.364,),
            "needs its fourth root": (4.3269,),
            "needs its root": (4.1346,),
            "of 100?": (0.43582,),
            "of the 22 words 19 are": (12.0,),
        },
        also_right=((43.6,), (torch.tensor(43.58),)),
        secrets=("43.6", "43.58", "43.5817"),
    )


@planted("9.3")
def lengths() -> Planted:
    """Ten references of ten words; of the translations some are cut, one is filled up rightly."""
    references = [" ".join([word] * 10) for word in "abcdefghij"]
    cut = [f"{text[:11]}" for text in references]
    none = references[:4] + cut[4:]
    some = [*none[:4], *(f"{text} x" for text in cut[4:])]
    most = [*references[:3], f"{references[3]} x", references[4]]
    most += [f"{text} y y y y y" for text in references[5:]]
    written = {0: none, 2: some, 4: most}
    same = dict.fromkeys(written, none)
    return Planted(
        (written, 2, 1),
        {
            "are the same": (same, 2, 1),
            "which power favors": ({0: most, 2: some, 4: none}, 2, 1),
            "is that the shipped translator": (written | {0: cut}, 2, 1),
            "has 3 translations": (written | {2: some[:3]}, 2, 1),
            "a list of translations": (written | {2: "x"}, 2, 1),
            "a dictionary with the powers": (none, 2, 1),
            "is another power nearer": (written, 4, 1),
            "one of the powers": (written, 3, 1),
            "so many are right": (written, 2, 4),
            "difference of two counts": (written, 2, 0),
            "so many changed": (written, 2, 7),
            "sentence by sentence": (written, 2, 5),
        },
        {"references": {"longer": references}},
        also_right=(({0.0: none, 2.0: tuple(some), 4.0: most}, 2.0, torch.tensor(1)),),
        secrets=("1",),
    )


@planted("9.4")
def bags() -> Planted:
    model, _ = shipped()
    [without_order] = defined(9, "without_order", copy=copy)
    nouns = ["dog", "horse", "lion", "bear", "monkey", "cat", "rabbit"]
    every = [(f"The {a} chases the {b}.", f"The {b} chases the {a}.") for a in nouns for b in nouns if a < b]
    pairs = every[:20]
    shuffled = ("The dog chases the cat.", "The cat the dog chases.")
    capital = ("Dogs chase cats.", "Cats chase dogs.")

    def one_place(model):
        changed = copy.deepcopy(model)
        table = changed.encoder.embedding.sinusoids
        table[:] = table[3].clone()
        return changed

    def in_place(model):
        model.encoder.embedding.sinusoids.zero_()
        return model

    def of_both(model):
        changed = without_order(model)
        changed.decoder.embedding.sinusoids.zero_()
        return changed

    def without_words(model):
        changed = without_order(model)
        changed.encoder.embedding.forward = lambda ids, *_: torch.zeros(*ids.shape, 128)
        return changed

    return Planted(
        (pairs, without_order),
        {
            "the order gets through": (pairs, copy.deepcopy),
            "changes the model that it is given": (pairs, in_place),
            "order of its own german words": (pairs, of_both),
            "do the words still get through": (pairs, without_words),
            "there are 19": (pairs[:19], without_order),
            "20 different pairs; there are 18": ([*pairs[:18], pairs[0], pairs[1][::-1]], without_order),
            "words have moved": ([*pairs[:19], shuffled], without_order),
            "let it stay": ([*pairs[:19], capital], without_order),
            "not made of the same words": ([*pairs[:19], ("The dog.", "The cat.")], without_order),
            "have the same order": ([*pairs[:19], ("The dog.", "The dog.")], without_order),
            "a list of pairs": ([*pairs[:19], "The dog."], without_order),
            "one translation for both": (adverbs(), without_order),
        },
        {"model": model, "translate": translate},
        also_right=((every[1:], without_order), (tuple(map(list, pairs)), one_place)),
        secrets=("sinusoids", "zero_"),
    )


def adverbs():
    """Pairs in which nobody does anything else; many of them have one translation."""
    some = ["yesterday", "today", "tomorrow", "often", "always", "never", "rarely"]
    return [(f"He {a} sleeps {b}.", f"He {b} sleeps {a}.") for a in some for b in some if a < b][:20]


@planted("9.5")
def verbs() -> Planted:
    model, tokenizer = shipped()
    known = {"shipped": model, "tokenizer": tokenizer, "texts": Texts(tokenizer)}
    [next_word] = defined(9, "next_word", torch=torch, math=math, device="cpu", START=START, **known)

    def other(combine=math.prod, **mistake):
        def next_word(*case):
            return combine(chapter_09._probabilities(model, tokenizer, *case, **mistake))

        return next_word

    return Planted(
        (next_word, "written"),
        {
            "a logarithm": (lambda *case: math.log(next_word(*case)), "written"),
            "is no probability": (lambda *case: 100 * next_word(*case), "written"),
            "that is the first one's": (other(lambda steps: steps[0]), "written"),
            "the mean over its": (other(lambda steps: sum(steps) / len(steps)), "written"),
            "ended with the end token": (other(end=False), "written"),
            "read the start token first": (other(start=False), "written"),
            "has its space": (other(space=""), "written"),
            "which position predicts": (other(shift=1), "written"),
            "too low": (lambda *case: next_word(*case) / 2, "written"),
            "too high": (lambda *case: next_word(*case) ** 0.5, "written"),
            "exchange only the source": (next_word, "source"),
        },
        {"model": model, "tokenizer": tokenizer},
        also_right=((lambda *case: torch.tensor(next_word(*case)), "written"),),
        secrets=("0.8752", "0.875", "softmax"),
    )


class Pupil(nn.Module):
    """Knows the grammar's translations, but misses a share of those with new words, and of the others."""

    def __init__(self, misses_new=0, misses_old=0, own=None):
        super().__init__()
        self.misses, self.own = (misses_new, misses_old), own or {}

    def translate(self, texts):
        """Each of the two kinds comes as a list of its own; the reader's sentences too."""
        known = {}
        for pairs, misses in zip(chapter_09._drawn(DRAWN), self.misses, strict=True):
            known |= {p.english: "?" if i < misses else p.german for i, p in enumerate(pairs)}
        return [self.own.get(text, known.get(text, "?")) for text in texts]


ROWS, MINE = defined(9, "my_rows", "my_sentences")
DRAWN = json.dumps(ROWS)


@planted("9.6")
def words() -> Planted:
    def but(table, *lines):
        return {**ROWS, table: list(lines)}

    def mine(num_known):
        return dict(list(MINE.items())[:num_known])

    nouns, [verb] = ROWS["nouns"], ROWS["verbs"]
    whole = "lift;heben;hebt;gehoben;acc action;adult;flag anchor"
    wisp = "wisp;;der Hauch;Hauches;Hauche;fork"  # no verb asks for forks
    right = Pupil(own=MINE)
    return Planted(
        (ROWS, right, MINE),
        {
            "there are 6 words": (but("adjectives"), right, MINE),
            "is no infinitive": (but("verbs", verb.replace("ziehen", "zieh")), right, MINE),
            "separable": (but("verbs", whole), right, MINE),
            "no noun is of the class": (but("adjectives", "rusty;rostig;rostig;iron"), right, MINE),
            "has 'book' already": (but("nouns", *nouns, "book;;das Buch;Buches;Bücher;text"), right, MINE),
            "from tables to lists": (but("nouns") | {"nouns": "sailor"}, right, MINE),
            "there are 4 sentences": (ROWS, right, mine(4)),
            "from english to german": (ROWS, right, [*MINE]),
            "has none of your words": (ROWS, right, {"She sleeps.": "Sie schläft."} | mine(4)),
            "70 of 100 new sentences": (ROWS, Pupil(misses_new=30, own=MINE), MINE),
            "of 100 old sentences only 80": (ROWS, Pupil(misses_old=20, own=MINE), MINE),
            "of your own sentences 2": (ROWS, Pupil(own=mine(2)), MINE),
            "'wisp' is in none": (but("nouns", *nouns, wisp), right, MINE),
        },
        {"translate": lambda taught, texts: taught.translate(texts)},
        also_right=((ROWS, Pupil(20, 5, mine(3)), MINE),),
        secrets=("copy", "max_steps"),
    )
