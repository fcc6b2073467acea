"""Answers to the exercises of chapter 13, with small models."""

import math
import random
from collections import Counter

import numpy as np
import torch
from planted import Planted, defined
from transformers import AutoTokenizer

from chapters_src import decoding, resources

V = 12  # entries of the vocabulary of 13.3


def planted() -> dict[str, Planted]:
    """Every exercise of the chapter."""
    return {
        "13.1": Planted(
            tuple(defined(13, "T", math=math)),
            {
                "1.73 times as probable": (2,),
                "243 times as probable": (0.2,),
                "above zero": (-1.0,),
                "has to be a number": ("one third",),
            },
            also_right=((torch.tensor(0.5),), (np.float64(0.5),)),
            secrets=("0.5", "half", "1/2"),
        ),
        "13.2": toy_model(),
        "13.3": draft(),
        "13.4": best_of_many(),
        "13.5": stop_strings(),
        "13.6": agreement(),
        "13.7": orders(),
    }


def table(after: dict, default=(0.4, 0.3, 0.3)):
    """A toy model of three words, from probabilities after some beginnings."""
    return lambda beginnings: torch.tensor([after.get(tuple(ids), default) for ids in beginnings]).log()


def toy_model() -> Planted:
    after, right = defined(13, "after", "tricky", torch=torch)
    greedy_fails = {(): [0.5, 0.4, 0.1], (0,): [0.4, 0.3, 0.3], (1,): [0.05, 0.9, 0.05]}

    def one_row(beginnings):
        return table(after)(beginnings[:1]).repeat(len(beginnings), 1)

    def flat(beginnings):
        return table(after)(beginnings)[0]

    def by_tuple(beginnings):
        return torch.tensor([after[ids] for ids in beginnings]).log()

    return Planted(
        (right,),
        {
            "One beam finds": (table(greedy_fails),),
            "Two beams find the best text too": (table({(): [0.8, 0.1, 0.1]}, (0.8, 0.15, 0.05)),),
            "equally probable": (table({}, (0.4, 0.4, 0.2)),),
            "you give probabilities": (lambda beginnings: right(beginnings).exp(),),
            "add up to": (lambda beginnings: 2 * right(beginnings),),
            "Is each row in its place": (one_row,),
            "a row for each beginning": (flat,),
            "unhashable": (by_tuple,),
        },
        secrets=("0.52", "0.36", "0.98"),
    )


def draft() -> Planted:
    (right,) = defined(13, "copying", torch=torch, vocab_size=V)

    def logits(id):
        return torch.nn.functional.one_hot(torch.tensor(id), V).float()

    def last_token_only(ids):
        places = [i for i in range(len(ids) - 1) if ids[i] == ids[-1]]
        return logits(ids[places[-1] + 1]) if places else None

    def end_of_pair(ids):
        found = [i for i in range(len(ids) - 2) if ids[i : i + 2] == ids[-2:]]
        return logits(ids[found[0] + 1]) if found else None

    def finds_itself(ids):
        for i in range(len(ids) - 2, -1, -1):
            if ids[i : i + 2] == ids[-2:]:
                return logits(ids[i + 2])

    def first(ids):
        found = [i for i in range(len(ids) - 2) if ids[i : i + 2] == ids[-2:]]
        return logits(ids[found[0] + 2]) if found else None

    return Planted(
        (right,),
        {
            "does not occur earlier, only": (last_token_only,),
            "That is the end of the pair": (end_of_pair,),
            "IndexError": (finds_itself,),
            "wanted the logits": (lambda ids: ids[-1],),
            "all the same": (lambda ids: torch.zeros(V),),
            "occurs earlier in these ids": (lambda ids: None if ids else ids,),
        },
        {"vocab_size": V},
        also_right=((first,),),
        secrets=("ids[i + 2]",),
    )


def best_of_many() -> Planted:
    (right,) = defined(13, "best_of", decoding=decoding)

    def variant(choose=max, heat=lambda t: t, neighbors=True, generator=None):
        def best_of(model, prompts, temperature, num_draws, num_tokens, given):
            rows = [row for row in prompts for _ in range(num_draws)] if neighbors else prompts * num_draws
            tries = decoding.sample(
                model, rows, filters=[decoding.temperature(heat(temperature))],
                max_new_tokens=num_tokens, generator=generator or given,
            )  # fmt: skip
            groups = [tries[i : i + num_draws] for i in range(0, len(tries), num_draws)]
            return [choose(group, key=lambda each: each.log_probability) for group in groups]

        return best_of

    return Planted(
        (right,),
        {
            "Yours is number": (variant(choose=min),),
            "almost surely the most probable text": (variant(choose=lambda group, key: group[0]),),
            "Which rows of the batch": (variant(neighbors=False),),
            "is `num_draws` in use": (lambda m, p, t, n, k, g: right(m, p, t, max(n, 16), k, g),),
            "acts upside down": (variant(heat=lambda t: 1 / t),),
            "almost surely the greedy": (variant(heat=lambda t: 1.0),),
            "draw from `generator` alone": (variant(generator=torch.Generator().manual_seed(1)),),
            "one continuation for each": (lambda *inputs: right(*inputs)[0],),
            "continuations of 4 tokens": (lambda m, p, t, n, k, g: right(m, p, t, n, 3, g),),
        },
        secrets=("for _ in range(num_draws)",),
    )


def stop_strings() -> Planted:
    tokenizer = AutoTokenizer.from_pretrained(resources.checkpoint("language-model"))
    known = {"tokenizer": tokenizer, "decoding": decoding}
    _, _, simple, stop = defined(13, "by_text", "beginnings_of", "simple_fires", "stop_fires", **known)
    return Planted(
        (simple, stop),
        {
            "fires, but after no token": (lambda ids: ". " in tokenizer.decode(ids), stop),
            "after token 4 of": (lambda ids: tokenizer.decode(ids).endswith(". "), stop),
            "after token 5 of": (lambda ids: any(tokenizer.decode(i).endswith(". ") for i in ids), stop),
            "Is it asked at every beginning": (simple, simple),
            "wanted True or False": (lambda ids: int(simple(ids)), stop),
        },
        {"tokenizer": tokenizer},
        secrets=("any(",),
    )


def agreement() -> Planted:
    likeness, most_agreed = defined(13, "likeness", "most_agreed", Counter=Counter)

    def no_factor(a, b):
        return likeness(a, b) / 2

    def of_sets(a, b):
        return 2 * len({*a} & {*b}) / (len({*a}) + len({*b}))

    def of_keys(a, b):
        return 2 * len(Counter(a) & Counter(b)) / (len(a) + len(b))

    def over_all(a, b):
        return len({*a} & {*b}) / len({*a} | {*b})

    def of_one(a, b):
        return 2 * (Counter(a) & Counter(b)).total() / len(a)

    def no_return(a, b):
        likeness(a, b)

    return Planted(
        (likeness, most_agreed),
        {
            "half of what it should be": (no_factor, most_agreed),
            "counts a token once": (of_sets, most_agreed),
            "however often both lists have it": (of_keys, most_agreed),
            "1 in common": (over_all, most_agreed),
            "at most 1": (of_one, most_agreed),
            "Does it end with a `return`": (no_return, most_agreed),
            "least like the others": (
                likeness,
                lambda drawn: min(drawn, key=lambda a: sum(likeness(a, b) for b in drawn)),
            ),
            "another one is more like the rest": (likeness, lambda drawn: drawn[0]),
            "wanted one of these lists": (likeness, lambda drawn: 0),
        },
        secrets=("Counter", "&"),
    )


def orders() -> Planted:
    _, one_order, new_orders = defined(13, "shuffled", "one_order", "new_orders")

    def in_place(ids, generator):
        generator.shuffle(ids)
        return [ids] * 5

    def of_random(ids, generator):
        return [random.sample(ids, len(ids)) for _ in range(5)]

    def as_an_array(ids, generator):
        return generator.permuted([ids] * 5, axis=1)

    def also_the_end(ids, generator):
        return [generator.permutation(ids) for _ in range(5)]

    return Planted(
        (one_order, new_orders),
        {
            "gives orders that differ": (new_orders, new_orders),
            "more than once": (one_order, one_order),
            "in the order of the sentence": (lambda ids, generator: [ids] * 5, new_orders),
            "changes its argument": (in_place, new_orders),
            "draw from `generator` alone": (one_order, of_random),
            "not the tokens of the sentence": (
                one_order,
                lambda ids, g: [g.choice(ids, len(ids)) for _ in range(5)],
            ),
            "wanted five parts": (lambda ids, g: one_order(ids, g)[:4], new_orders),
            "has the order of the sentence": (one_order, lambda ids, g: [ids, *new_orders(ids, g)[1:]]),
        },
        also_right=((one_order, also_the_end), (one_order, as_an_array)),
        secrets=("other words", "disorder"),
    )
