"""Answers to the exercises of chapter 13, with small models."""

import math
import random

import numpy as np
import regex
import torch
from planted import Planted, defined, planted

V = 12  # entries of the vocabulary of 13.5


@planted("13.1")
def temperature() -> Planted:
    return Planted(
        tuple(defined(13, "T", math=math)),
        {"1.73 times as probable": (2,), "243 times as probable": (0.2,), "above zero": (-1.0,)},
        also_right=((torch.tensor(0.5),), (np.float64(0.5),)),
        secrets=("0.5", "half", "1/2"),
    )


def table(after: dict, default=(0.4, 0.3, 0.3)):
    """A toy model of three words, from probabilities after some beginnings."""
    return lambda beginnings: torch.tensor([after.get(tuple(ids), default) for ids in beginnings]).log()


@planted("13.2")
def toy_model() -> Planted:
    after, right = defined(13, "after", "tricky", torch=torch)
    greedy_fails = {(): [0.5, 0.4, 0.1], (0,): [0.4, 0.3, 0.3], (1,): [0.05, 0.9, 0.05]}

    def one_row(beginnings):
        return table(after)(beginnings[:1]).repeat(len(beginnings), 1)

    return Planted(
        (right,),
        {
            "One beam finds": (table(greedy_fails),),
            "Two beams find the best text too": (table({(): [0.8, 0.1, 0.1]}, (0.8, 0.15, 0.05)),),
            "equally probable": (table({}, (0.4, 0.4, 0.2)),),
            "you give probabilities": (lambda beginnings: right(beginnings).exp(),),
            "add up to": (lambda beginnings: 2 * right(beginnings),),
            "Is each row in its place": (one_row,),
            "unhashable": (lambda beginnings: torch.tensor([after[ids] for ids in beginnings]).log(),),
        },
        secrets=("0.52", "0.36", "0.98"),
    )


@planted("13.5")
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
            "all the same": (lambda ids: torch.zeros(V),),
            "occurs earlier in these ids": (lambda ids: None if ids else ids,),
        },
        {"vocab_size": V},
        also_right=((first,),),
        secrets=("ids[i + 2]",),
    )


@planted("13.4")
def tickets() -> Planted:
    (right,) = defined(13, "ticket_pattern", regex=regex)
    days = "(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
    names, numbers = r"\p{Lu}\p{L}+ \p{Lu}\p{L}+", r"\d+\.\d+"

    def written(name, version, day):
        return rf'\{{"name": "{name}", "version": "{version}", "day": "{day}"\}}'

    def found(form, message, escape=regex.escape):
        return "(" + "|".join(map(escape, (m[0] for m in regex.finditer(form, message)))) + ")"

    def pattern(name=None, version=None, day=None, escape=regex.escape):
        """A pattern of these forms; where there is none, of what stands in the message."""
        forms = ((name, names), (version, numbers), (day, days))
        return lambda message: written(*(form or found(own, message, escape) for form, own in forms))

    def first_only(message):
        first = [regex.escape(regex.search(form, message)[0]) for form in (names, numbers, days)]
        return written(*first)

    def plain_letters(message):
        return written(found("[A-Z][a-z]+ [A-Z][a-z]+", message), numbers, found(days, message))

    def any_word_with_day(message):
        return pattern(name=names, day=r"\w+day")(message) if "today" in message else right(message)

    return Planted(
        (right,),
        {
            "Sami Aalto": (lambda message: plain_letters(message) if "Sami" in message else right(message),),
            "today is no weekday": (any_word_with_day,),
            "this version does not stand": (pattern(version=numbers),),
            "this name does not stand": (pattern(name=names),),
            "this day does not stand": (pattern(day=days),),
            "a period has to be a period": (pattern(escape=str),),
            "does not match": (first_only,),
            "no ticket": (lambda message: ".*" + right(message),),
            "gives no regular expression": (lambda message: "(" + right(message),),
        },
        also_right=((lambda message: regex.compile(right(message)),),),
        secrets=("regex.escape", "findall"),
    )


@planted("13.3")
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
