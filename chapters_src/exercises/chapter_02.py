"""Checks of the exercises of chapter 02, on meaning and word vectors."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from chapters_src.data import wordnet
from chapters_src.exercises.checking import (
    Wrong,
    as_function,
    as_kind,
    as_number,
    check_number,
    compare,
    exercise,
    is_near,
    sequence_of,
    show,
)
from chapters_src.word_vectors import WordVectors

Pair = tuple[str, str]


@exercise("2.1")
def where_two_trees_part(last_shared: Any) -> str:
    """Compare with the chains of WordNet."""
    book = wordnet.read()
    plant, diagram = (book.chains(name)[0] for name in ("tree.n.01", "tree.n.02"))
    expected = [a for a, b in zip(plant, diagram, strict=False) if a == b][-1]
    if isinstance(last_shared, wordnet.Synset):
        raise Wrong("That is a synset itself. Give its name, with its letter and number.")
    as_kind(last_shared, "last_shared", str, "the name of a synset, such as 'whole.n.02'")
    if last_shared == expected:
        return "One is a thing, the other an abstraction."
    if last_shared == expected.split(".")[0]:
        raise Wrong("That is its word. Give the whole name of the synset, with its letter and number.")
    if last_shared not in book.synsets:
        raise Wrong(f"{show(last_shared)} is not the name of a synset in the extract.")
    above = [name for name, chain in {"plant": plant, "diagram": diagram}.items() if last_shared in chain]
    if not above:
        raise Wrong(f"{last_shared} is above neither of the two trees.")
    raise Wrong(f"{last_shared} is above the {above[0]} only. It has to be above both.")


@exercise("2.2")
def gradients_of_a_guess(gradients: object) -> str:
    """Compare with autograd at fifty random guesses with three noise words."""
    asked = as_function(gradients, "gradients(v, u)")
    generator = torch.Generator().manual_seed(2)
    for _ in range(50):
        v, u = torch.randn(5, generator=generator), torch.randn(4, 5, generator=generator)
        try:
            with torch.inference_mode():  # where autograd records nothing
                of_v, of_u = asked.gives(sequence_of(torch.Tensor, 2), "two gradients, for v and for u", v, u)
        except Wrong as wrong:
            if re.search("requires? grad|grad_fn|inference tensor", str(wrong), re.IGNORECASE):
                raise Wrong("Autograd is switched off here. Derive the two gradients on paper.") from None
            raise
        _compare_gradients(v, u, of_v.clone(), of_u.clone())
    return "They agree with autograd at fifty guesses."


def _compare_gradients(v: torch.Tensor, u: torch.Tensor, of_v: torch.Tensor, of_u: torch.Tensor) -> None:
    """Compare two gradients, and name what is missing in a wrong one."""
    with torch.enable_grad():
        v_, u_ = v.clone().requires_grad_(), u.clone().requires_grad_()
        products = u_ @ v_
        loss = -F.logsigmoid(products[0]) - F.logsigmoid(-products[1:]).sum()
        right_v, right_u = torch.autograd.grad(loss, (v_, u_))
    for found, wanted, name in ((of_v, right_v, "v"), (of_u, right_u, "u")):
        if found.shape != wanted.shape:
            raise Wrong(f"The gradient for {name} is {show(found)}; wanted shape {tuple(wanted.shape)}.")
    if is_near(of_v, -right_v, 1e-4) and is_near(of_u, -right_u, 1e-4):
        raise Wrong("Both have the wrong sign: along these the loss falls. A gradient points where it grows.")
    error, true = torch.sigmoid(u @ v), torch.tensor([1.0, 0, 0, 0])
    slips = {
        "The true word is treated as noise: its sigmoid should come out as something else.": error @ u,
        "The gradient for v has only the true word's part. The noise words move v, too.": (
            (error - true)[0] * u[0]
        ),
    }
    compare(of_v, right_v, slips, "The gradient for v differs from autograd's.", within=1e-4)
    compare(of_u, right_u, {}, "The gradient for v is right; the one for u differs.", within=1e-4)


@exercise("2.3")
def rate_pairs(ratings: Any, *, ours: WordVectors, again: WordVectors, gemma: WordVectors) -> str:
    """Look at the form of the ratings, and say how well each table orders the pairs."""
    wanted = "the dictionary with its twelve pairs"
    as_kind(ratings, "ratings", lambda it: isinstance(it, Mapping) and len(it) == 12, wanted)
    for pair in ratings:
        if not sequence_of(lambda word: word in ours, 2)(pair):
            raise Wrong(f"{show(pair)} is not one of the twelve pairs.")
    numbers = np.array([as_number(rating, f"ratings[{pair!r}]") for pair, rating in ratings.items()])
    if not 0 <= min(numbers) <= max(numbers) <= 10:
        raise Wrong(f"Ratings go from 0 to 10; here from {min(numbers):g} to {max(numbers):g}.")
    if len(set(numbers)) < 4:
        raise Wrong("There are fewer than four different numbers, so there is hardly an order to compare.")
    found = []
    for name, table in {"ours": ours, "another start": again, "Gemma": gemma}.items():
        correlation = _spearman(numbers, np.array([table.similarity(*pair) for pair in ratings]))
        if correlation > 0.999:
            raise Wrong(f"That is the order of the cosines of {name}. Rate before you look.")
        found.append(f"{name} {_with_interval(correlation, len(numbers))}")
    return f"Spearman with your ratings, and a 95% interval for twelve pairs: {'; '.join(found)}."


def _with_interval(r: float, n: int) -> str:
    """Add the interval of a rank correlation, by Fisher's z with the factor of Fieller and others (1957)."""
    z, width = math.atanh(max(-0.999, min(r, 0.999))), 1.96 * math.sqrt(1.06 / (n - 3))
    return f"{r:.2f} ({math.tanh(z - width):.2f} to {math.tanh(z + width):.2f})"


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Correlate ranks; equal values share theirs."""
    first, second = (np.array([(x < y).sum() + (x == y).sum() / 2 for y in x]) for x in (a, b))
    return float(np.corrcoef(first, second)[0, 1])


@exercise("2.4", takes="a second or two")
def agree_less_than_kernel(
    less: object, of: object, of_kernel: object, *,
    spaces: Mapping[str, tuple[WordVectors, Mapping[str, int]]],
) -> str:  # fmt: skip
    """Count anew."""
    found, total = as_number(less, "less"), as_number(of, "of")
    (a, often), (b, often_too) = spaces["sklearn"], spaces["torch"]
    rarer = {w: min(often[w], often_too[w]) for w in often.keys() & often_too.keys()}
    words = sorted(word for word, count in rarer.items() if count >= 20)
    alike = [w for w in words if w != "kernel" and 1 / 1.6 < rarer[w] / rarer["kernel"] < 1.6]
    agrees = _agreement(a, b, words)
    below = sum(agrees[w] < agrees["kernel"] for w in alike)
    rare = "Those rows hold rare words, too. Only words that both use at least twenty times are columns."
    both, one = (_agreement_of_kernel(a, b, sorted(rarer), own) for own in (True, False))
    slips = {
        "That counts the cosine of *kernel* with itself, too; its cosine with itself is 1 in both tables.": (
            _agreement_of_kernel(a, b, words, own=True)
        ),
        rare: lambda value: is_near(value, both, 0.006) or is_near(value, one, 0.006),
    }
    otherwise = "It is not the correlation of the two rows of *kernel*."
    check_number(of_kernel, "of_kernel", agrees["kernel"], slips, otherwise, within=0.006)
    slips = {
        "Those are all shared words, rare and frequent ones. Compare with words as frequent only.": (
            len(words) - 1
        ),
        "That is one word too many: is it *kernel* itself?": len(alike) + 1,
    }
    compare(total, len(alike), slips, f"{show(total)} is not the number of words that are about as frequent.")
    slips = {"That many agree *more* than it does.": len(alike) - below}
    compare(found, below, slips, f"The second number is right. {show(found)} is not how many agree less.")
    return "In these two libraries *kernel* keeps different company."


def _agreement_of_kernel(one: WordVectors, other: WordVectors, words: Sequence[str], own: bool) -> float:
    """Correlate the cosines of *kernel* with some words, itself among them or not."""
    columns = [word for word in words if own or word != "kernel"]
    rows = (
        table.unit[[table.index[word] for word in columns]] @ table.unit[table.index["kernel"]]
        for table in (one, other)
    )
    return float(np.corrcoef(*rows)[0, 1])


def _agreement(one: WordVectors, other: WordVectors, words: Sequence[str]) -> dict[str, float]:
    """Correlate each word's cosines with all others, in two tables."""
    unit = [table.unit[[table.index[word] for word in words]] for table in (one, other)]
    rows = zip(words, *(x @ x.T for x in unit), ~np.eye(len(words), dtype=bool), strict=True)
    return {word: float(np.corrcoef(x[others], y[others])[0, 1]) for word, x, y, others in rows}


@exercise("2.5", takes="a second")
def family_that_needs_the_offset(pairs_of_mine: Any, added: object, *, gemma: WordVectors) -> str:
    """Ask all questions of the family in three ways."""
    as_kind(pairs_of_mine, "pairs_of_mine", list | tuple, "a list of pairs")
    for pair in pairs_of_mine:
        if not sequence_of(length=2)(pair):
            raise Wrong(f"Wanted pairs of two words; {show(pair)} is none.")
        for word in pair:
            if not isinstance(word, str) or word not in gemma:
                raise Wrong(f"{show(word)} is no row of the table: another word is needed.")
    if len({word for pair in pairs_of_mine for word in pair}) != 2 * len(pairs_of_mine):
        raise Wrong("A word stands in the family twice.")
    if len(pairs_of_mine) != 12:
        raise Wrong(f"The family has {len(pairs_of_mine)} pairs; wanted twelve.")
    as_number(added, "added")
    offset, alone, sums, least = _solved(gemma, [tuple(pair) for pair in pairs_of_mine])
    said = f"The offset solves {offset:.0%} and the third word alone {alone:.0%}"
    if alone >= 0.2:
        raise Wrong(f"{said}: alone it does too well, so the arithmetic is hardly needed.")
    if offset <= 0.6:
        raise Wrong(f"{said}: the offset fails, too.")
    slips = {
        "There the words of a question may be its answer. Exclude all three, as for the offset.": least,
        "It has to be a share, from 0 to 1.": lambda value: value > 1,
    }
    otherwise = f"{said}. That is what is asked for; but `added` comes out otherwise."
    check_number(added, "added", sums, slips, otherwise, within=0.006)
    return f"{said}; without the subtraction, the sum solves {sums:.0%}."


def _solved(vectors: WordVectors, pairs: Sequence[Pair]) -> list[float]:
    """Answer every question of two pairs: with the offset, the third word alone, and the sum in two ways.

    In the last way the words of a question may be its answer.
    """
    questions = [(*one, *other) for one, other in itertools.permutations(pairs, 2)]
    a, b, c, d = ([vectors.index[words[i]] for words in questions] for i in range(4))
    unit = vectors.unit
    ways = [(unit[b] - unit[a] + unit[c], (a, b, c)), (unit[c], (a, b, c))]
    ways += [(unit[b] + unit[c], (a, b, c)), (unit[b] + unit[c], ())]
    shares = []
    for wanted, excluded in ways:
        cosines = wanted @ unit.T
        for given in excluded:
            cosines[range(len(given)), given] = -9
        shares.append(float((cosines.argmax(axis=1) == d).mean()))
    return shares


@exercise("2.6")
def glove_of_frequent_words(glove_small: Any, *, frequent: Sequence[str], task: Sequence[Pair]) -> str:
    """Look for partners among the frequent words."""
    as_kind(glove_small, "glove_small", WordVectors, "a WordVectors of the words and their vectors")
    if set(glove_small.words) != set(frequent):
        raise Wrong(f"Wanted are the {len(frequent):,} words of `frequent`; here are {len(glove_small):,}.")
    if not np.isfinite(glove_small.matrix).all():
        raise Wrong("Some numbers are infinite or NaN: is the logarithm of 0 among the targets?")
    pairs = [pair for pair in task if pair[0] in glove_small and pair[1] in glove_small]
    hits = [b in dict(glove_small.neighbors(a, 10)) for a, b in pairs]
    share, chance = float(np.mean(hits)), 10 / len(frequent)
    said = f"It finds {share:.1%} of the partners, {share / chance:.0f} times chance"
    if share < 3 * chance:
        raise Wrong(f"{said}: do the rows fit the words?")
    if share <= 20 * chance:
        raise Wrong(f"{said}: but too little.")
    return f"{said}. The check does not see how the vectors were learned."
