"""Answers to the exercises of chapter 11."""

from types import SimpleNamespace

import numpy as np
import torch
from planted import Planted, defined, planted


@planted("11.1")
def xl() -> Planted:
    return Planted(
        (1_557_611_200,),
        {
            "a head of its own": (1_638_022_400,),
            "not the positions'": (1_555_972_800,),
            "one more norm": (1_557_608_000,),
            "a gain and an offset": (1_557_609_600,),
            "matrices only": (1_556_609_600,),
            "paper's, and rounded": (1_542_000_000,),
            "too many, by 800": (1_557_612_000,),
        },
        also_right=((1_557_611_200.0,), (np.int64(1_557_611_200),)),
        secrets=("1557611200", "1,557,611,200"),
    )


@planted("11.2")
def cache() -> Planted:
    (right,) = defined(11, "cache_bytes")

    def narrow(c):
        return right({key: value for key, value in c.items() if key != "head_dim"})

    return Planted(
        (right, 7.0),
        {
            "keys without values": (lambda c: right(c) / 2, 7),
            "one layer's": (lambda c: right(c) / c["num_hidden_layers"], 7),
            "numbers of 32 bits": (lambda c: 2 * right(c), 7),
            "not queries": (lambda c: right(c | {"num_key_value_heads": c["num_attention_heads"]}), 7),
            "how wide a head is": (narrow, 7),
            "that is too much": (lambda c: right(c) + 1, 7),
            "all of the difference": (right, 9.14),
            "would have 28, not 32": (right, 8),
            "turn it round": (right, 1 / 7),
            "use one head of keys": (right, 4),
        },
        also_right=((right, 7), (lambda c: float(right(c)), torch.tensor(7.0))),
        secrets=("7", "7.0", "524288", "524,288", "57344", "57,344", "18432", "18,432"),
    )


@planted("11.3")
def mixtral() -> Planted:
    right, _ = defined(11, "count_mixtral", "count_llama")

    def sizes(c):
        layers, width = c["num_hidden_layers"], c["hidden_size"]
        expert, head = layers * 3 * width * c["intermediate_size"], c["vocab_size"] * width
        of_all = {"all": c["num_local_experts"], "chosen": c["num_experts_per_tok"]}
        return SimpleNamespace(expert=expert, third=expert // 3, router=layers * width, head=head, **of_all)

    def without(of_total, of_work):
        return lambda c: tuple(
            found - less(sizes(c)) for found, less in zip(right(c), (of_total, of_work), strict=True)
        )

    def nothing(s):
        return 0

    def routers(s):
        return s.router * s.all

    return Planted(
        (right,),
        {
            "larger number": (lambda c: right(c)[::-1],),
            "all experts are at work": (lambda c: (right(c)[0],) * 2,),
            "the routers are missing": (without(routers, routers),),
            "one expert in each layer": (
                without(lambda s: (s.all - 1) * s.expert, lambda s: (s.chosen - 1) * s.expert),
            ),
            "a matrix of its own": (without(lambda s: s.head, lambda s: s.head),),
            "one more matrix": (without(lambda s: s.all * s.third, lambda s: s.chosen * s.third),),
            "the first is too many, by 5": (without(lambda s: -5, nothing),),
            "scores all experts": (without(nothing, lambda s: s.router * (s.all - s.chosen)),),
            "the second lacks the routers": (without(nothing, routers),),
            "with 16 experts, 3 at work": (without(nothing, lambda s: (s.chosen - 2) * s.expert),),
            "wanted two numbers": (lambda c: right(c)[0],),
            "raised KeyError": (lambda c: c["experts"],),
        },
        also_right=((lambda c: list(right(c)),), (lambda c: tuple(map(float, right(c))),)),
        secrets=("1048576", "1,048,576"),
    )


@planted("11.4")
def albert() -> Planted:
    saved = {"base": shares(768), "xxlarge": shares(4_096)}

    def scaled(size, *by):
        return saved | {size: tuple(a * b for a, b in zip(saved[size], by, strict=True))}

    one_layer = {size: (pair[0] * 12 / 11, pair[1]) for size, pair in saved.items()}
    of_both = {size: tuple(100 * x / (100 - sum(pair)) for x in pair) for size, pair in saved.items()}
    return Planted(
        (saved,),
        {
            "wanted is percent": ({size: [x / 100 for x in pair] for size, pair in saved.items()},),
            "the wrong way around": ({size: pair[::-1] for size, pair in saved.items()},),
            "ALBERT as it is": (of_both,),
            "still there": (one_layer,),
            "the first number is off by more than": (scaled("xxlarge", 0.9, 1),),
            "the second number is off by more than": (scaled("base", 1, 1.2),),
            "the keys base and xxlarge": ({"base": (1, 2)},),
        },
        also_right=(({size: [round(x) for x in pair] for size, pair in saved.items()},),),
        secrets=tuple(f"{x:.{n}f}" for pair in saved.values() for x in pair for n in (0, 1)),
    )


def shares(width):
    """By sharing, by factors: from the sizes alone."""
    rows, inner = 30_000 + 512 + 2, 128
    layer = 12 * width * width + 13 * width
    factors = rows * (width - inner) - inner * width + 2 * (width - inner) - width
    neither = rows * width + 2 * width + 12 * layer + width * width + width
    return 100 * 11 * layer / neither, 100 * factors / neither


@planted("11.5")
def fim() -> Planted:
    (right,) = defined(11, "fim")

    def with_middle(text, a, b):
        given, written = right(text, a, b)
        return [*given[:-1], *text[a:b], "<mid>"], written

    def no_empty(text, a, b):
        given, written = right(text, a, b)
        return ([word for word in given if word != "<suf>"], written) if b == len(text) else (given, written)

    def turned(text, a, b):
        return ["<pre>", *text[b:], "<suf>", *text[:a], "<mid>"], right(text, a, b)[1]

    def end_first(text, a, b):
        return ["<suf>", *text[b:], "<pre>", *text[:a], "<mid>"], right(text, a, b)[1]

    return Planted(
        (right,),
        {
            "would be nothing to fill in": (with_middle,),
            "not know to stop": (lambda text, a, b: (right(text, a, b)[0], text[a:b]),),
            "when to begin": (lambda text, a, b: (right(text, a, b)[0][:-1], right(text, a, b)[1]),),
            "Wanted is <suf> once": (no_empty,),
            "is not the middle": (lambda text, a, b: (right(text, a, b)[0], [*text[a:], "<eot>"]),),
            "have changed places": (turned,),
            "stands after <pre>": (end_first,),
            "two lists of words": (lambda text, a, b: tuple(map(" ".join, right(text, a, b))),),
            "wanted two lists": (lambda text, a, b: right(text, a, b)[0],),
        },
        also_right=((lambda text, a, b: list(map(tuple, right(text, a, b))),),),
        secrets=("text[:a]", "text[b:]"),
    )


@planted("11.6")
def orders() -> Planted:
    (right,) = defined(11, "permutation_mask", torch=torch)

    def eye(order):
        return torch.eye(len(order), dtype=torch.bool)

    def neighbor(order):
        mask = right(order).clone()
        mask[order[-1], order[0]] = False
        return mask

    return Planted(
        (right,),
        {
            "is transposed": (lambda order: right(order).T,),
            "hides each token from itself": (lambda order: right(order) & ~eye(order),),
            "exchanged": (lambda order: ~right(order),),
            "entries of the order": (lambda order: order[:, None] >= order[None, :],),
            "does not see token": (neighbor,),
            "True and False": (lambda order: right(order).float(),),
        },
        also_right=((lambda order: order.argsort()[:, None] >= order.argsort()[None, :],),),
        secrets=("argsort", "rank"),
    )
