"""Answers to the exercises of chapter 02, with small tables of vectors."""

import itertools

import numpy as np
import torch
from planted import Planted, defined, planted

from chapters_src.data import wordnet
from chapters_src.word_vectors import WordVectors

STEMS = [f"stem{letter}" for letter in "abcdefghijkl"]


@planted("2.1")
def trees() -> Planted:
    book = wordnet.read()
    return Planted(
        ("entity.n.01",),
        {
            "above the plant only": ("whole.n.02",),
            "above the diagram only": ("abstraction.n.06",),
            "its word": ("entity",),
            "not the name of a synset": ("tree.n.99",),
            "above neither": (book.of("motel")[0].name,),
            "a synset itself": (book.synsets["entity.n.01"],),
            "has to be the name": (3,),
        },
        secrets=("entity", "entity.n.01"),
    )


@planted("2.2")
def guesses() -> Planted:
    (gradients,) = defined(2, "gradients", torch=torch)

    def errors(v, u, first=-1.0):
        error = torch.sigmoid(u @ v)
        return torch.cat([error[:1] + first, error[1:]])

    def by_autograd(v, u):
        v.requires_grad_(), u.requires_grad_()
        products = u @ v
        (-torch.nn.functional.logsigmoid(torch.cat([products[:1], -products[1:]])).sum()).backward()
        return v.grad, u.grad

    return Planted(
        (gradients,),
        {
            "Autograd is switched off": (by_autograd,),
            "wrong sign": (lambda v, u: [-each for each in gradients(v, u)],),
            "treated as noise": (lambda v, u: (errors(v, u, 0) @ u, torch.outer(errors(v, u), v)),),
            "only the true word's part": (
                lambda v, u: (errors(v, u)[0] * u[0], torch.outer(errors(v, u), v)),
            ),
            "for v differs": (lambda v, u: (errors(v, u) @ u * 2, gradients(v, u)[1]),),
            "for u differs": (lambda v, u: (gradients(v, u)[0], gradients(v, u)[1] * 2),),
            "wanted shape": (lambda v, u: (gradients(v, u)[0], errors(v, u)),),
            "wanted two gradients": (lambda v, u: gradients(v, u)[0],),
        },
        also_right=((lambda v, u: list(gradients(v, u)),),),
        secrets=("error @ u",),
    )


@planted("2.3")
def rated() -> Planted:
    draw = np.random.default_rng(2)
    pairs = [(f"one{i}", f"other{i}") for i in range(12)]
    words = [word for pair in pairs for word in pair]
    ours, again, gemma = (WordVectors(words, draw.normal(size=(24, 8))) for _ in range(3))
    cosines = [ours.similarity(*pair) for pair in pairs]
    mine = dict(zip(pairs, (8, 8, 2, 6, 7, 1, 6, 1, 9, 6, 0, 0), strict=True))
    copied = {pair: 5 + 5 * cosine for pair, cosine in zip(pairs, cosines, strict=True)}
    return Planted(
        (mine,),
        {
            "Ratings go from 0 to 10": ({pair: 20 * rating for pair, rating in mine.items()},),
            "fewer than four": (dict.fromkeys(pairs, 5) | {pairs[0]: 1},),
            "the order of the cosines": (copied,),
            "twelve pairs, not": ([1, 2, 3],),
            "not one of the twelve": ({("one0", "zibble" + str(i)): i for i in range(10)} | {1: 2, 3: 4},),
        },
        {"ours": ours, "again": again, "gemma": gemma},
        also_right=(({pair: rating / 2 for pair, rating in mine.items()},),),
        secrets=tuple(f"{cosine:.2f}" for cosine in cosines),
    )


@planted("2.4")
def kernel() -> Planted:
    draw = np.random.default_rng(2)
    words = ["kernel", *(f"word{i}" for i in range(39))]
    base = draw.normal(size=(40, 6))
    tables = [WordVectors(words, base + 0.2 * draw.normal(size=base.shape)) for _ in range(2)]
    matrix = tables[1].matrix.copy()
    matrix[[0, 3, 5, 20]] = draw.normal(size=(4, 6))
    tables[1] = WordVectors(words, matrix)
    counts = {word: 25 if i < 15 else 400 for i, word in enumerate(words)}
    everything = [*words, *(f"rare{i}" for i in range(20))]
    full = [
        WordVectors(everything, np.concatenate([table.matrix, draw.normal(size=(20, 6))])) for table in tables
    ]
    spaces = {"sklearn": (full[0], counts | dict.fromkeys(everything[40:], 30))}
    spaces["torch"] = full[1], counts | dict.fromkeys(everything[40:], 7)
    less = sum(agreement(tables, words, i) < agreement(tables, words, 0) for i in range(1, 15))
    everywhere = sum(agreement(tables, words, i) < agreement(tables, words, 0) for i in range(1, 40))
    own = agreement(tables, words, 0)
    with_itself = np.corrcoef(*(table.unit @ table.unit[0] for table in tables))[0, 1]
    return Planted(
        (less, 14, own),
        {
            "rare and frequent ones": (everywhere, 39, own),
            "one word too many": (less, 15, own),
            "not the number of words": (less, 20, own),
            "agree *more*": (14 - less, 14, own),
            "not how many agree less": (less + 2, 14, own),
            "its cosine with itself": (less, 14, with_itself),
            "hold rare words": (less, 14, agreement(full, everything, 0)),
            "not the correlation": (less, 14, own - 0.3),
        },
        {"spaces": spaces},
        also_right=((float(less), np.int64(14), round(own, 2)),),
        secrets=("14", f"{own:.2f}"),
    )


def agreement(tables, words, row) -> float:
    """In a way of its own: one word, with a loop."""
    rows = [[table.similarity(words[row], word) for word in words if word != words[row]] for table in tables]
    return float(np.corrcoef(*rows)[0, 1])


@planted("2.5")
def families() -> Planted:
    draw = np.random.default_rng(2)
    stems = 3 * draw.normal(size=(12, 30))
    more, most = draw.normal(size=(2, 30))
    words, rows = [], []
    for stem, vector in zip(STEMS, stems, strict=True):
        words += [stem, stem + "er", stem + "est", stem + "x"]
        longest = vector + 3 * most + 2 * draw.normal(size=30)
        rows += [vector, vector + more, longest, draw.normal(size=30)]
    gemma = WordVectors(words, np.array(rows))
    best = [(stem, stem + "est") for stem in STEMS]
    share, careless = added(gemma, best, exclude=True), added(gemma, best, exclude=False)
    return Planted(
        (best, share),
        {
            "alone it does too well": ([(stem, stem + "er") for stem in STEMS], share),
            "the offset fails, too": ([(stem, stem + "x") for stem in STEMS], share),
            "no row of the table": ([*best[:11], ("stema", "zibble")], share),
            "stands in the family twice": ([*best[:11], best[0]], share),
            "wanted twelve": (best[:5], share),
            "pairs of two words": (STEMS, share),
            "a list of pairs": ("tall, tallest", share),
            "may be its answer": (best, careless),
            "has to be a share": (best, 100 * share),
            "comes out otherwise": (best, share - 0.2),
        },
        {"gemma": gemma},
        also_right=((tuple(map(list, best)), round(share, 2)),),
        secrets=("est", "superlative"),
    )


def added(table, pairs, exclude) -> float:
    """In a way of its own: one question after the other, without the subtraction."""
    right = []
    for (a, b), (c, d) in itertools.permutations(pairs, 2):
        cosines = table.unit @ (table.unit[table.index[b]] + table.unit[table.index[c]])
        for word in (a, b, c) if exclude else ():
            cosines[table.index[word]] = -9
        right.append(table.words[cosines.argmax()] == d)
    return float(np.mean(right))


@planted("2.6")
def glove() -> Planted:
    draw = np.random.default_rng(2)
    frequent = [f"{word}{s}" for word in (f"w{i}" for i in range(500)) for s in ("", "s")]
    task = [(word, word + "s") for word in frequent[::2]]
    stems = np.repeat(draw.normal(size=(500, 20)), 2, axis=0)
    noise = draw.normal(size=stems.shape)
    learned = WordVectors(frequent, stems + 0.5 * noise)
    broken = learned.matrix.copy()
    broken[7] = np.nan
    return Planted(
        (learned,),
        {
            "do the rows fit": (WordVectors(frequent, noise),),
            "but too little": (WordVectors(frequent, stems + 2.6 * noise),),
            "here are 900": (WordVectors(frequent[:900], learned.matrix[:900]),),
            "infinite or NaN": (WordVectors(frequent, broken),),
        },
        {"frequent": frequent, "task": task},
        also_right=((WordVectors(frequent[::-1], learned.matrix[::-1]),),),
        secrets=("Adagrad",),
    )
