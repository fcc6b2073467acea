"""Checks of the exercises of chapter 02, on meaning and word vectors."""

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from chapters_src.data import wordnet
from chapters_src.exercises.checking import (
    Missing,
    Wrong,
    as_function,
    as_number,
    exercise,
    is_missing,
    show,
)
from chapters_src.word_vectors import WordVectors

Pair = tuple[str, str]


@exercise("2.1")
def where_two_trees_part(last_shared: Any) -> str:
    """Compare with the chains of WordNet."""
    if is_missing(last_shared):
        raise Missing("`last_shared`")
    book = wordnet.load()
    plant, diagram = (book.chains(name)[0] for name in ("tree.n.01", "tree.n.02"))
    expected = [a for a, b in zip(plant, diagram, strict=False) if a == b][-1]
    if not isinstance(last_shared, str):
        raise Wrong(f"Wanted the name of a synset, such as 'whole.n.02', not {show(last_shared)}.")
    if last_shared == expected:
        return "One is a thing, the other an abstraction."
    if last_shared == expected.split(".")[0]:
        raise Wrong("That is its word. Give the whole name of the synset, with its letter and number.")
    if last_shared not in book.synsets:
        raise Wrong(f"{show(last_shared)} is not the name of a synset in the extract.")
    above = [last_shared in chain for chain in (plant, diagram)]
    if not any(above):
        raise Wrong(f"{last_shared} is above neither of the two trees.")
    of = "plant" if above[0] else "diagram"
    raise Wrong(f"{last_shared} is above the {of} only. It has to be above both.")


@exercise("2.2")
def gradients_of_a_guess(gradients: Any) -> str:
    """Compare with autograd at fifty random guesses with three noise words."""
    function = as_function(gradients, "gradients(v, u)")
    generator = torch.Generator().manual_seed(2)
    for _ in range(50):
        v, u = torch.randn(5, generator=generator), torch.randn(4, 5, generator=generator)
        found = _by_hand(function, v.clone(), u.clone())
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise Wrong(f"gradients(v, u) gives {show(found)}; wanted two gradients, for v and for u.")
        _compare_gradients(v, u, found)
    return "They agree with autograd at fifty guesses."


def _by_hand(function: Callable[..., Any], v: torch.Tensor, u: torch.Tensor) -> Any:
    """Call the reader's function where autograd records nothing."""
    try:
        with torch.inference_mode():
            return function(v, u)
    except Wrong as wrong:
        if re.search("requires? grad|grad_fn|inference tensor", str(wrong), re.IGNORECASE):
            raise Wrong("Autograd is switched off here. Derive the two gradients on paper.") from None
        raise


def _compare_gradients(v: torch.Tensor, u: torch.Tensor, found: Sequence[Any]) -> None:
    """Compare two gradients, and name what is missing in a wrong one."""
    with torch.enable_grad():
        v_, u_ = v.clone().requires_grad_(), u.clone().requires_grad_()
        products = u_ @ v_
        loss = -F.logsigmoid(products[0]) - F.logsigmoid(-products[1:]).sum()
        right_v, right_u = torch.autograd.grad(loss, (v_, u_))
    error = torch.sigmoid(u @ v) - torch.tensor([1.0, 0, 0, 0])
    of_v, of_u = found
    for gradient, wanted, name in ((of_v, right_v, "v"), (of_u, right_u, "u")):
        shape = getattr(gradient, "shape", None)
        if not isinstance(gradient, torch.Tensor) or shape != wanted.shape:
            raise Wrong(f"The gradient for {name} is {show(gradient)}; wanted shape {tuple(wanted.shape)}.")
    of_v, of_u = of_v.detach().float(), of_u.detach().float()
    if torch.allclose(of_v, -right_v, atol=1e-4) and torch.allclose(of_u, -right_u, atol=1e-4):
        raise Wrong("Both have the wrong sign: along these the loss falls. A gradient points where it grows.")
    if torch.allclose(of_v, (error + torch.tensor([1.0, 0, 0, 0])) @ u, atol=1e-4):
        raise Wrong("The true word is treated as noise: its sigmoid should come out as something else.")
    if torch.allclose(of_v, error[0] * u[0], atol=1e-4):
        raise Wrong("The gradient for v has only the true word's part. The noise words move v, too.")
    if not torch.allclose(of_v, right_v, atol=1e-4):
        raise Wrong("The gradient for v differs from autograd's.")
    if not torch.allclose(of_u, right_u, atol=1e-4):
        raise Wrong("The gradient for v is right; the one for u differs from autograd's.")


@exercise("2.3")
def rate_pairs(ratings: Any, *, ours: WordVectors, again: WordVectors, gemma: WordVectors) -> str:
    """Look at the form of the ratings, and say how well each table orders the pairs."""
    if is_missing(ratings):
        raise Missing("`ratings`")
    if not isinstance(ratings, Mapping) or len(ratings) != 12:
        raise Wrong(f"`ratings` has to be the dictionary with its twelve pairs, not {show(ratings)}.")
    numbers = []
    for pair, rating in ratings.items():
        if not isinstance(pair, tuple) or len(pair) != 2 or any(w not in ours for w in pair):
            raise Wrong(f"{show(pair)} is not one of the twelve pairs.")
        numbers.append(as_number(rating, f"ratings[{pair!r}]"))
    if not 0 <= min(numbers) <= max(numbers) <= 10:
        raise Wrong(f"Ratings go from 0 to 10; here from {min(numbers):g} to {max(numbers):g}.")
    if len(set(numbers)) < 4:
        raise Wrong("There are fewer than four different numbers, so there is hardly an order to compare.")
    found = []
    for name, table in {"ours": ours, "another start": again, "Gemma": gemma}.items():
        cosines = np.array([table.similarity(*pair) for pair in ratings])
        if _spearman(np.array(numbers), cosines) > 0.999:
            raise Wrong(f"That is the order of the cosines of {name}. Rate before you look.")
        found.append(f"{name} {_with_interval(_spearman(np.array(numbers), cosines), len(numbers))}")
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
    less: Any, of: Any, of_kernel: Any, *, spaces: Mapping[str, tuple[WordVectors, Mapping[str, int]]]
) -> str:
    """Count anew."""
    found = as_number(less, "less"), as_number(of, "of")
    correlation = as_number(of_kernel, "of_kernel")
    (a, often), (b, often_too) = spaces["sklearn"], spaces["torch"]
    rarer = {w: min(often[w], often_too[w]) for w in often.keys() & often_too.keys()}
    words = sorted(word for word, count in rarer.items() if count >= 20)
    alike = [w for w in words if w != "kernel" and 1 / 1.6 < rarer[w] / rarer["kernel"] < 1.6]
    agrees = _agreement(a, b, words)
    below = sum(agrees[w] < agrees["kernel"] for w in alike)
    others = [w for w in words if w != "kernel"]
    _compare_correlation(a, b, words, agrees["kernel"], correlation)
    if found == (below, len(alike)):
        return "In these two libraries *kernel* keeps different company."
    if found[1] == len(others):
        raise Wrong(
            "Those are all shared words, rare and frequent ones. Compare with words as frequent only."
        )
    if found[1] == len(alike) + 1:
        raise Wrong("That is one word too many: is it *kernel* itself?")
    if found[1] != len(alike):
        raise Wrong(f"{show(found[1])} is not the number of words that are about as frequent.")
    if found[0] == len(alike) - below:
        raise Wrong("That many agree *more* than it does.")
    raise Wrong(f"The second number is right. {show(found[0])} is not how many agree less.")


def _compare_correlation(
    one: WordVectors, other: WordVectors, words: Sequence[str], wanted: float, correlation: float
) -> None:
    """Compare the agreement of *kernel*, to two decimals, and name what is wrong in another one."""
    if abs(correlation - wanted) < 0.006:
        return
    x, y = (
        table.unit[[table.index[word] for word in words]] @ table.unit[table.index["kernel"]]
        for table in (one, other)
    )
    if abs(correlation - np.corrcoef(x, y)[0, 1]) < 0.006:
        raise Wrong("The correlation of *kernel* counts its cosine with itself, which is 1 in both tables.")
    raise Wrong(f"{show(correlation)} is not the correlation of the two rows of *kernel*.")


def _agreement(one: WordVectors, other: WordVectors, words: Sequence[str]) -> dict[str, float]:
    """Correlate each word's cosines with all others, in two tables."""
    unit = [table.unit[[table.index[word] for word in words]] for table in (one, other)]
    cosines = [x @ x.T for x in unit]
    apart = ~np.eye(len(words), dtype=bool)
    rows = zip(words, *cosines, apart, strict=True)
    return {word: float(np.corrcoef(x[y], z[y])[0, 1]) for word, x, z, y in rows}


@exercise("2.5", takes="a second")
def family_that_needs_the_offset(pairs_of_mine: Any, added: Any, *, gemma: WordVectors) -> str:
    """Ask all questions of the family in three ways."""
    if is_missing(pairs_of_mine):
        raise Missing("`pairs_of_mine`")
    if not isinstance(pairs_of_mine, list | tuple):
        raise Wrong(f"Wanted a list of pairs, not {show(pairs_of_mine)}.")
    for pair in pairs_of_mine:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise Wrong(f"Wanted pairs of two words; {show(pair)} is none.")
        for word in pair:
            if not isinstance(word, str) or word not in gemma:
                raise Wrong(f"{show(word)} is no row of the table: another word is needed.")
    if len({word for pair in pairs_of_mine for word in pair}) != 2 * len(pairs_of_mine):
        raise Wrong("A word stands in the family twice.")
    if len(pairs_of_mine) != 12:
        raise Wrong(f"The family has {len(pairs_of_mine)} pairs; wanted twelve.")
    share = as_number(added, "added")
    offset, alone, sums, least = _solved(gemma, [tuple(pair) for pair in pairs_of_mine])
    said = f"The offset solves {offset:.0%} and the third word alone {alone:.0%}"
    if alone >= 0.2:
        raise Wrong(f"{said}: alone it does too well, so the arithmetic is hardly needed.")
    if offset <= 0.6:
        raise Wrong(f"{said}: the offset fails, too.")
    if abs(share - sums) < 0.006:
        return f"{said}; without the subtraction, the sum solves {sums:.0%}."
    if abs(share - least) < 0.006:
        raise Wrong(
            "In `added` the words of a question may be its answer. Exclude all three, as for the offset."
        )
    if abs(share - 100 * sums) < 0.6 or abs(share - round(sums * 132)) < 0.5:
        raise Wrong(f"`added` has to be a share, from 0 to 1, not {show(share)}.")
    raise Wrong(f"{said}. That is what is asked for; but `added` comes out otherwise.")


def _solved(vectors: WordVectors, pairs: Sequence[Pair]) -> tuple[float, float, float, float]:
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
    return shares[0], shares[1], shares[2], shares[3]


@exercise("2.6")
def glove_of_frequent_words(glove_small: Any, *, frequent: Sequence[str], task: Sequence[Pair]) -> str:
    """Look for partners among the frequent words."""
    if is_missing(glove_small):
        raise Missing("`glove_small`")
    if not isinstance(glove_small, WordVectors):
        raise Wrong(f"Wanted a WordVectors of the words and their vectors, not {show(glove_small)}.")
    if set(glove_small.words) != set(frequent):
        raise Wrong(
            f"The words have to be the {len(frequent):,} of `frequent`; here are {len(glove_small):,}."
        )
    if not np.isfinite(glove_small.matrix).all():
        raise Wrong("Some numbers are infinite or NaN: is the logarithm of 0 among the targets?")
    pairs = [pair for pair in task if pair[0] in glove_small and pair[1] in glove_small]
    hits = [b in dict(glove_small.neighbors(a, 10)) for a, b in pairs]
    share, chance = float(np.mean(hits)), 10 / len(frequent)
    if share < 3 * chance:
        raise Wrong(
            f"It finds {share:.1%} of the partners, and chance {chance:.1%}: do the rows fit the words?"
        )
    if share <= 20 * chance:
        raise Wrong(
            f"It finds {share:.1%} of the partners, {share / chance:.0f} times chance: but too little."
        )
    return (
        f"It finds {share:.1%} of the partners, {share / chance:.0f} times chance. "
        "The check does not see how the vectors were learned."
    )
