"""Checks of the exercises of chapter 11, on the family of models."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from chapters_src.data import models
from chapters_src.exercises.checking import (
    Asked,
    Missing,
    Wrong,
    as_function,
    as_number,
    exercise,
    is_missing,
    show,
)

VOCABULARY, POSITIONS, WIDTH, LAYERS = 50_257, 1_024, 1_600, 48  # of GPT-2 XL, 11.1
CLOSE = 1.0  # percent, of 11.4
MARKS = ("<pre>", "<suf>", "<mid>", "<eot>")  # of 11.5


@exercise("11.1")
def parameters_of_gpt2_xl(gpt2_xl: object) -> str:
    """Count them by the formula."""
    found = as_number(gpt2_xl, "gpt2_xl")
    right = (VOCABULARY + POSITIONS) * WIDTH + LAYERS * (12 * WIDTH**2 + 13 * WIDTH) + 2 * WIDTH
    off = found - right
    start = f"`gpt2_xl` is {show(int(found) if found == int(found) else found)}. "
    if off == VOCABULARY * WIDTH:
        raise Wrong(start + "That counts a head of its own; GPT-2's uses the matrix of the embedding again.")
    if off == -POSITIONS * WIDTH:
        raise Wrong(start + "That has the tokens' table and not the positions'.")
    if off == -2 * WIDTH:
        raise Wrong(start + "There is one more norm, after the last layer.")
    if off == -WIDTH:
        raise Wrong(start + "A norm of GPT-2 has a gain and an offset, the last one too.")
    if off in (-LAYERS * 13 * WIDTH, -LAYERS * 13 * WIDTH - 2 * WIDTH):
        raise Wrong(start + "That has the matrices only. Biases and norms are parameters, too.")
    if found == 1_542e6 or found == 1542:
        raise Wrong(start + "That is the paper's, and rounded.")
    if off:
        more = "many" if off > 0 else "few"
        raise Wrong(f"{start}That is too {more}, by {abs(off):,.0f}. Take the formula term by term.")
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
        heads, layers = c["num_attention_heads"], c["num_hidden_layers"]
        head_dim = c.get("head_dim", c["hidden_size"] // heads)
        right = 2 * 2 * layers * c["num_key_value_heads"] * head_dim
        start = f"For {name} it gives {found:,.10g}. "
        if found == right / 2:
            raise Wrong(start + "Is that keys without values, or one byte for a number of 16 bits?")
        if found == right / layers:
            raise Wrong(start + "That is one layer's.")
        if found == right * 2:
            raise Wrong(start + "That is right for numbers of 32 bits.")
        if found == right // c["num_key_value_heads"] * heads != right:
            raise Wrong(start + "What is stored for each token are keys and values, not queries.")
        if found == 2 * 2 * layers * c["num_key_value_heads"] * (c["hidden_size"] // heads) != right:
            raise Wrong(f"{start}The nameplate of {name} says how wide a head is; look for it there first.")
        if found != right:
            raise Wrong(f"{start}That is too {'much' if found > right else 'little'}.")
    found = as_number(by_sharing, "by_sharing")
    start = f"`by_sharing` is {show(found)}. "
    if abs(found - 64 / 7) < 0.1:
        raise Wrong(start + "That is all of the difference. Fewer heads and fewer layers have a part in it.")
    if found == 8:
        heads = "You compared Llama's heads with Qwen2's. Without sharing, Qwen2 would have 28, not 32."
        raise Wrong(start + heads)
    if 0 < found < 1:
        raise Wrong(start + "Turn it round: how many times as much would be stored without sharing?")
    if abs(found - 7) > 0.01:
        raise Wrong(start + "How many of Qwen2's heads of queries use one head of keys?")
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
    found = asked(dict(c))
    if not isinstance(found, list | tuple) or len(found) != 2:
        raise Wrong(f"For {name} it gives {show(found)}; wanted are two numbers, all and those at work.")
    total, work = (as_number(number, "a count") for number in found)
    expert = 3 * c["hidden_size"] * c["intermediate_size"]
    layers, experts, chosen = (
        c[key] for key in ("num_hidden_layers", "num_local_experts", "num_experts_per_tok")
    )
    right = models.FORMULAS["MixtralForCausalLM"](**c)
    at_work = right - layers * (experts - chosen) * expert
    routers = layers * c["hidden_size"] * experts
    start = f"For {name} it gives {show(int(total))} and {show(int(work))}. "
    if (total, work) == (at_work, right):
        raise Wrong(start + "First comes the larger number.")
    if total == work == right:
        raise Wrong(start + "So all experts are at work on a token.")
    if total == right - routers:
        raise Wrong(start + "The routers are missing.")
    if total == right - layers * (experts - 1) * expert:
        raise Wrong(start + "The first has one expert in each layer.")
    if total == right - c["vocab_size"] * c["hidden_size"]:
        raise Wrong(start + "Here the head has a matrix of its own.")
    if total == right - layers * experts * expert // 3:
        raise Wrong(start + "An expert is a gated network: it has one more matrix.")
    if total != right:
        more = "many" if total > right else "few"
        raise Wrong(f"{start}The first is too {more}, by {abs(total - right):,.0f}.")
    if work == at_work - routers + layers * c["hidden_size"] * chosen:
        raise Wrong(start + "A router looks at every token, and scores all experts.")
    if work == at_work - routers:
        raise Wrong(start + "The second lacks the routers: they work on every token.")
    if work != at_work:
        more = "many" if work > at_work else "few"
        raise Wrong(f"{start}The second is too {more}, by {abs(work - at_work):,.0f}.")


# 11.4: two ideas of ALBERT ---------------------------------------------------------------------------------


@exercise("11.4")
def what_two_ideas_save(saved: object) -> str:
    """Compare the four shares, each against a model with neither idea."""
    if is_missing(saved):
        raise Missing("`saved`")
    if not isinstance(saved, Mapping) or set(saved) != {"base", "xxlarge"}:
        raise Wrong(f"`saved` has to have the keys base and xxlarge, not be {show(saved)}.")
    for size, width in {"base": 768, "xxlarge": 4_096}.items():
        pair = saved[size]
        if is_missing(pair):
            raise Missing(f"`saved[{size!r}]`")
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise Wrong(f"For {size} wanted are two numbers, by sharing and by factors, not {show(pair)}.")
        found = [as_number(number, f"a share of {size}") for number in pair]
        right, of_both = _shares(width)
        start = f"For {size} you have {show(found[0])} and {show(found[1])}. "
        if _near(found, right):
            continue
        if _near([100 * share for share in found], right):
            raise Wrong(start + "Wanted is percent.")
        if _near(found, right[::-1]):
            raise Wrong(f"For {size} they are the wrong way round: first comes what sharing saves.")
        if _near(found, of_both):
            raise Wrong(start + "These are shares of ALBERT as it is. Divide by the model with neither idea.")
        if abs(found[0] - 12 / 11 * right[0]) < CLOSE < abs(found[0] - right[0]):
            raise Wrong(start + "With sharing, one of the twelve layers is still there.")
        which = "first" if abs(found[0] - right[0]) > CLOSE else "second"
        raise Wrong(f"For {size} the {which} number is off by more than one percentage point.")
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


def _near(found: Sequence[float], wanted: Sequence[float]) -> bool:
    return all(abs(a - b) <= CLOSE for a, b in zip(found, wanted, strict=True))


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
        called, found = asked.called(text, a, b), asked(list(text), a, b)
        if not isinstance(found, list | tuple) or len(found) != 2:
            raise Wrong(f"{called} gives {show(found)}; wanted are two lists.")
        given, written = found
        for words in (given, written):
            if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
                raise Wrong(f"{called} gives {show(found)}; wanted are two lists of words.")
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
    missing = [mark for mark in MARKS if (given + written).count(mark) != 1]
    if missing:
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
        found = asked(order.clone())
        called = f"permutation_mask(tensor({order.tolist()}))"
        shape = (len(order), len(order))
        if not isinstance(found, torch.Tensor) or tuple(found.shape) != shape:
            raise Wrong(f"{called} gives {show(found)}; wanted is a tensor of shape {shape}.")
        if found.dtype != torch.bool:
            raise Wrong(f"{called} gives numbers ({found.dtype}); wanted is True and False.")
        turns = {token: turn for turn, token in enumerate(order.tolist())}
        right = torch.tensor([[turns[k] <= turns[q] for k in range(len(order))] for q in range(len(order))])
        if torch.equal(found, right):
            continue
        if torch.equal(found, right.T):
            raise Wrong(f"{called} is transposed: rows are queries, columns are keys.")
        if torch.equal(found, right & ~torch.eye(len(order), dtype=torch.bool)):
            raise Wrong(f"{called} hides each token from itself.")
        if torch.equal(found, ~right):
            raise Wrong(f"{called} has True and False exchanged: True is for what may be seen.")
        if torch.equal(found, order[:, None] >= order[None, :]):
            raise Wrong(f"{called} compares the entries of the order. When has each token its turn?")
        query, key = (found != right).nonzero()[0].tolist()
        may = "sees" if found[query, key] else "does not see"
        raise Wrong(f"{called}: token {query} {may} token {key}. Who of the two comes first in the order?")
    return "50 orders, and the usual one gives the causal mask."
