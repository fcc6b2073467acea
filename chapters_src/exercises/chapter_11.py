"""Checks of the exercises of chapter 11, on the family of models."""

import random
from collections.abc import Mapping
from typing import Any

import torch

from chapters_src.data import models
from chapters_src.exercises.checking import (
    Asked,
    Wrong,
    as_function,
    as_kind,
    as_number,
    as_numbers,
    check_number,
    compare,
    exercise,
    is_near,
    mapping_with,
    sequence_of,
    show,
)

VOCABULARY, POSITIONS, WIDTH, LAYERS = 50_257, 1_024, 1_600, 48  # of GPT-2 XL, 11.1
CLOSE = 1.0  # percent, of 11.4
MARKS = ("<pre>", "<suf>", "<mid>", "<eot>")  # of 11.5


@exercise("11.1")
def parameters_of_gpt2_xl(gpt2_xl: object) -> str:
    """Count them by the formula."""
    right = (VOCABULARY + POSITIONS) * WIDTH + LAYERS * (12 * WIDTH**2 + 13 * WIDTH) + 2 * WIDTH
    matrices = right - LAYERS * 13 * WIDTH
    off = as_number(gpt2_xl, "gpt2_xl") - right
    own_head = "That counts a head of its own; GPT-2's uses the matrix of the embedding again."
    slips = {
        own_head: right + VOCABULARY * WIDTH,
        "That has the tokens' table and not the positions'.": right - POSITIONS * WIDTH,
        "There is one more norm, after the last layer.": right - 2 * WIDTH,
        "A norm of GPT-2 has a gain and an offset, the last one too.": right - WIDTH,
        "That has the matrices only. Biases and norms are parameters, too.": (
            lambda found: found in (matrices, matrices - 2 * WIDTH)
        ),
        "That is the paper's, and rounded.": lambda found: found in (1_542e6, 1542),
    }
    otherwise = f"That is too {'many' if off > 0 else 'few'}, by {abs(off):,.0f}. Go term by term."
    check_number(gpt2_xl, "gpt2_xl", right, slips, otherwise)
    return "The paper's number is off by 1%, and that of the small model by 6%."


# 11.2: the cache -------------------------------------------------------------------------------------------


@exercise("11.2")
def bytes_of_cache(cache_bytes: object, by_sharing: object) -> str:
    """Compare three published shapes, then the factor of sharing alone."""
    asked = as_function(cache_bytes, "cache_bytes(c)")
    table = models.load()
    for name in ("Llama", "Qwen2", "Gemma 3"):
        c = models.settings(table.loc[name], "published")
        found = as_number(asked(dict(c)), f"cache_bytes of {name}")
        heads, shared = c["num_attention_heads"], c["num_key_value_heads"]
        layers = c["num_hidden_layers"]
        guessed = c["hidden_size"] // heads
        of_one_number = 2 * 2 * layers * shared  # 2 bytes, keys and values
        right = of_one_number * c.get("head_dim", guessed)
        slips = {
            "Is that keys without values, or one byte for a number of 16 bits?": right / 2,
            "That is one layer's.": right / layers,
            "That is right for numbers of 32 bits.": right * 2,
            "What is stored for each token are keys and values, not queries.": right // shared * heads,
            f"The nameplate of {name} says how wide a head is; look there first.": of_one_number * guessed,
        }
        otherwise = f"That is too {'much' if found > right else 'little'}."
        compare(found, right, slips, otherwise, start=f"For {name} it gives {found:,.10g}. ")
    slips = {
        "That is all of the difference. Fewer heads and layers have a part in it.": (
            lambda found: is_near(found, 64 / 7, 0.1)
        ),
        "That compares Llama's heads with Qwen2's. Without sharing, Qwen2 would have 28, not 32.": 8,
        "Turn it round: how many times as much would be stored without sharing?": lambda found: 0 < found < 1,
    }
    otherwise = "How many of Qwen2's heads of queries use one head of keys?"
    check_number(by_sharing, "by_sharing", 7, slips, otherwise, within=0.01)
    return "The rest of the nine is 32/28 for its heads, and as much for its layers."


# 11.3: a nameplate -----------------------------------------------------------------------------------------


@exercise("11.3")
def parameters_of_mixtral(count_mixtral: object) -> str:
    """Compare both numbers for the published shape and for two others."""
    asked = as_function(count_mixtral, "count_mixtral(c)")
    row = models.load().loc["Mixtral"]
    published = models.settings(row, "published")
    changes = {
        "a Mixtral with 16 experts, 3 at work": {"num_local_experts": 16, "num_experts_per_tok": 3},
        "a Mixtral with heads that share nothing": {"num_key_value_heads": 32},
    }
    _compare_counts(asked, published, "Mixtral")
    for name, change in changes.items():
        _compare_counts(asked, published | change, name)
    return "A row of your own is on the tree as soon as it is in the table."


def _compare_counts(asked: Asked, c: Mapping[str, Any], name: str) -> None:
    wanted = f"two numbers for {name}, all and those at work"
    found = as_numbers(asked.gives(sequence_of(length=2), wanted, dict(c)), "count_mixtral(c)", 2)
    expert, width = 3 * c["hidden_size"] * c["intermediate_size"], c["hidden_size"]
    layers, experts, chosen = (
        c[key] for key in ("num_hidden_layers", "num_local_experts", "num_experts_per_tok")
    )
    right = models.FORMULAS["MixtralForCausalLM"](**c)
    at_work = right - layers * (experts - chosen) * expert
    routers = layers * width * experts
    total, work = found
    start = f"For {name} it gives {total:.0f} and {work:.0f}. "
    if (total, work) == (at_work, right):
        raise Wrong(start + "First comes the larger number.")
    slips = {
        "The routers are missing.": right - routers,
        "The first has one expert in each layer.": right - layers * (experts - 1) * expert,
        "Here the head has a matrix of its own.": right - c["vocab_size"] * width,
        "An expert is a gated network: it has one more matrix.": right - layers * experts * expert // 3,
    }
    otherwise = f"The first is too {'many' if total > right else 'few'}, by {abs(total - right):,.0f}."
    compare(total, right, slips, otherwise, start=start)
    slips = {
        "So all experts are at work on a token.": right,
        "A router scores all experts.": at_work - routers + chosen * layers * width,
        "The second lacks the routers: they work on every token.": at_work - routers,
    }
    otherwise = f"The second is too {'many' if work > at_work else 'few'}, by {abs(work - at_work):,.0f}."
    compare(work, at_work, slips, otherwise, start=start)


# 11.4: two ideas of ALBERT ---------------------------------------------------------------------------------


@exercise("11.4")
def what_two_ideas_save(saved: Any) -> str:
    """Compare the four shares, each against a model with neither idea."""
    as_kind(saved, "saved", mapping_with(["base", "xxlarge"]), "a dictionary with the keys base and xxlarge")
    for size, width in {"base": 768, "xxlarge": 4_096}.items():
        found = as_numbers(saved[size], f"saved[{size!r}]", 2)
        right, of_both = _shares(width)
        one_gone = 12 / 11 * right[0]
        slips = {
            "Wanted is percent.": [share / 100 for share in right],
            "They are the wrong way around: first comes what sharing saves.": right[::-1],
            "These are shares of ALBERT as it is. Divide by the model with neither idea.": of_both,
            "With sharing, one of the twelve layers is still there.": (
                lambda it, one_gone=one_gone: abs(it[0] - one_gone) < CLOSE
            ),
        }
        which = "first" if abs(found[0] - right[0]) > CLOSE else "second"
        otherwise = f"The {which} number is off by more than one percentage point."
        compare(found, right, slips, otherwise, start=f"For {size}: ", within=CLOSE)
    return "Sharing saves more at both sizes, and the wider the model, the smaller the part of the tables."


def _shares(width: int) -> tuple[list[float], list[float]]:
    """What sharing and factors save, in percent of a model with neither, and of one with both."""
    inner, tables = 128, 30_000 + 512 + 2
    layer = 12 * width**2 + 13 * width
    wide = tables * width + 2 * width
    factors = wide - (tables * inner + 2 * inner + inner * width + width)
    neither = wide + 12 * layer + width**2 + width
    saved = (11 * layer, factors)
    both = neither - sum(saved)
    return [100 * part / neither for part in saved], [100 * part / both for part in saved]


# 11.5: fill in the middle ----------------------------------------------------------------------------------


@exercise("11.5")
def fill_in_the_middle(fim: object) -> str:
    """Restore 200 texts, those with empty parts among them."""
    asked = as_function(fim, "fim(text, a, b)")
    generator = random.Random(115)
    for draw in range(200):
        text = [f"w{number}" for number in range(generator.randint(1, 12))]
        a = generator.randint(0, len(text))
        b = generator.randint(a, len(text))
        if draw < 4:
            a, b = ((0, len(text)), (0, 0), (len(text), len(text)), (0, 1))[draw]
        parts = text[:a], text[a:b], text[b:]
        called = asked.called(text, a, b)
        given, written = asked.gives(sequence_of(sequence_of(str), 2), "two lists of words", text, a, b)
        _compare_fim(called, list(given), list(written), parts)
    return "200 texts come back whole, and no word of the middle is in what was given."


def _compare_fim(called: str, given: list[str], written: list[str], parts: tuple[list[str], ...]) -> None:
    before, middle, after = parts
    if (given, written) == (["<pre>", *before, "<suf>", *after, "<mid>"], [*middle, "<eot>"]):
        return
    said = f"{called} gives {show(' '.join(given))} and {show(' '.join(written))}. "
    if set(middle) & set(given):
        raise Wrong(said + "Words of the middle are in what is given: there would be nothing to fill in.")
    if written[-1:] != ["<eot>"]:
        raise Wrong(said + "Without <eot> at the end of what is written, the decoder would not know to stop.")
    if given[-1:] != ["<mid>"]:
        raise Wrong(said + "What is given has to end with <mid>, or it is not clear when to begin.")
    if missing := [mark for mark in MARKS if (given + written).count(mark) != 1]:
        raise Wrong(f"{said}Wanted is {missing[0]} once, even where a part is empty.")
    if written[:-1] != middle:
        raise Wrong(said + "What is written is not the middle.")
    if given == ["<pre>", *after, "<suf>", *before, "<mid>"]:
        raise Wrong(said + "Beginning and end have changed places.")
    raise Wrong(said + "The beginning stands after <pre>, the end after <suf>.")


# 11.6: an order of one's own -------------------------------------------------------------------------------


@exercise("11.6")
def mask_of_an_order(permutation_mask: object) -> str:
    """Compare with the definition, for 50 orders."""
    asked = as_function(permutation_mask, "permutation_mask(order)")
    generator = torch.Generator().manual_seed(116)
    orders = [torch.arange(5)]
    orders += [torch.randperm(int(n), generator=generator) for n in torch.arange(1, 50) % 9 + 2]
    for order in orders:
        called = f"permutation_mask(tensor({order.tolist()}))"
        found = asked.tensor((len(order), len(order)), order)
        if found.dtype != torch.bool:
            raise Wrong(f"{called} gives numbers ({found.dtype}); wanted is True and False.")
        turns = order.argsort()
        right = turns[None, :] <= turns[:, None]
        slips = {
            " is transposed: rows are queries, columns are keys.": right.T,
            " hides each token from itself.": right & ~torch.eye(len(order), dtype=torch.bool),
            " has True and False exchanged: True is for what may be seen.": ~right,
            " compares the entries of the order. When has each token its turn?": order[:, None] >= order,
        }
        query, key = next(iter((found != right).nonzero().tolist()), (0, 0))
        may = "sees" if found[query, key] else "does not see"
        otherwise = f": token {query} {may} token {key}. Who of the two comes first in the order?"
        compare(found, right, slips, otherwise, start=called)
    return "50 orders, and the usual one gives the causal mask."
