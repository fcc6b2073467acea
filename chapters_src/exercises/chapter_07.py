"""Checks of the exercises of chapter 07, on attention."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from chapters_src.exercises.checking import (
    Wrong,
    as_choice,
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

POSITIONS, SHARE = 12, 0.9  # of 7.2: rows of the identity, and the weight of the token before
SENTENCES, HALF, BEST = 16, 8, 3  # of 7.5
CLOSE = 1e-4


@exercise("7.1")
def derivative_of_the_softmax(softmax_jacobian: object) -> str:
    """Compare the table with automatic differentiation at five draws."""
    asked = as_function(softmax_jacobian, "softmax_jacobian(scores)")
    generator = torch.Generator().manual_seed(71)
    for length in (2, 3, 5, 8, 4):
        scores = torch.randn(length, generator=generator)
        expected = torch.autograd.functional.jacobian(lambda s: s.softmax(dim=-1), scores)
        found = asked.tensor((length, length), scores)
        start = f"For {length} scores "
        if is_near(found.diagonal(), expected.diagonal(), 1e-5) and not is_near(found, expected, 1e-5):
            if (found - torch.diag(found.diagonal()) == 0).all():
                shared = "But the weights share a denominator, in which every score stands."
                raise Wrong(f"{start}the diagonal is right, and all else is 0. {shared}")
            raise Wrong(f"{start}the diagonal is right; look at the other places again.")
        if not is_near(found.sum(dim=-1), torch.zeros(length), 1e-5):
            asked_back = "What happens to a weight if all scores grow by the same amount?"
            raise Wrong(f"{start}a row of your table adds up to {show(found.sum(dim=-1)[0])}. {asked_back}")
        otherwise = "your table differs from that of automatic differentiation."
        compare(found, expected, {}, otherwise, start=start, within=1e-5)
    return "It equals automatic differentiation at five draws. Is it symmetric, and why?"


@exercise("7.2")
def head_for_the_token_before(W_q: Any, W_k: Any) -> str:  # noqa: N803  As in the equation.
    """Attend over 3 to 12 positions."""

    def is_matrix(it: Any) -> bool:
        return isinstance(it, Tensor) and it.ndim == 2 and len(it) == POSITIONS

    for name, matrix in (("W_q", W_q), ("W_k", W_k)):
        as_kind(matrix, name, is_matrix, f"a tensor of shape ({POSITIONS}, {POSITIONS})")
    asks, asked = W_q.detach().double(), W_k.detach().double()
    if asks.shape != asked.shape:
        raise Wrong(f"Queries of width {asks.shape[1]} and keys of width {asked.shape[1]} have no product.")
    for length in range(3, POSITIONS + 1):
        scores = (asks @ asked.T)[:length, :length] / math.sqrt(asks.shape[1])
        weights = scores.softmax(dim=-1)
        worst = weights.diagonal(-1).min().item()
        if worst >= SHARE:
            continue
        start = f"With {length} tokens, the token before gets {worst:.2f} of some token's weight."
        for name, other in (("the token after", 1), ("the token itself", 0)):
            if weights.diagonal(other).min() > max(worst, 1 / length):
                raise Wrong(f"{start} Yours looks at {name}.")
        if (weights[1:].argmax(dim=-1) == torch.arange(length - 1)).all():
            raise Wrong(f"{start} The direction is right; the choice has to be sharper.")
        raise Wrong(start)
    return "The token before gets at least 0.9 of the weight, with 3 to 12 tokens."


@exercise("7.3", takes="a few seconds")
def ranks_within_layers(
    rank_of_1_3: object, rank_of_3_1: object, *, encoder: nn.Module, batch: Mapping[str, Tensor]
) -> str:
    """Take each head out by setting its block of the output matrix to zero, and compare the ranks."""
    found = [as_number(rank_of_1_3, "rank_of_1_3"), as_number(rank_of_3_1, "rank_of_3_1")]
    change = _changes(encoder, batch)
    places = ((1, 3), (3, 1))
    within = [_rank(change[layer], head) for layer, head in places]
    num_heads = change.shape[1]
    slips = {
        "these are ranks among all heads. Look where the heads of each layer stand. Rank within a layer.": [
            _rank(change.flatten(), layer * num_heads + head) for layer, head in places
        ],
        "count from 1, for the largest change.": [rank - 1 for rank in within],
        "the list is upside down; 1 is the largest change.": [num_heads + 1 - rank for rank in within],
    }
    otherwise = (
        "they are not their ranks, measured by setting a head's block of the output matrix to zero. Is "
        "padding left out of the means, and is only one head out at a time?"
    )
    compare(found, within, slips, otherwise, start=f"{found[0]:g} and {found[1]:g}: ")
    return "Each rank is one of 12. What would a clear pattern with a small effect tell you?"


def _changes(encoder: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """Return how far the mean vectors move without each head, (layers, heads)."""
    num_heads = encoder.config.num_attention_heads  # type: ignore[union-attr]
    outputs = [
        [each for each in module.modules() if isinstance(each, nn.Linear)][3]
        for name, module in encoder.named_modules()
        if name.endswith(".attention")
    ]
    real = batch["attention_mask"].unsqueeze(-1)

    def vectors() -> Tensor:
        return (encoder(**batch).last_hidden_state * real).sum(dim=1) / real.sum(dim=1)

    with torch.inference_mode():
        whole = vectors()
        change = torch.zeros(len(outputs), num_heads)
        for layer, output in enumerate(outputs):
            weight, kept = output.weight.data, output.weight.detach().clone()
            for head in range(num_heads):
                try:
                    weight.view(len(weight), num_heads, -1)[:, head] = 0
                    moved = (vectors() - whole).norm(dim=-1) / whole.norm(dim=-1)
                    change[layer, head] = moved.mean().item()
                finally:
                    weight.copy_(kept)
    return change


def _rank(values: Tensor, place: int) -> int:
    return int((values > values[place]).sum()) + 1


@exercise("7.4")
def lowest_loss_without_the_mask(lowest_loss: object) -> str:
    """Eleven positions see the answer, the last one guesses."""
    found, guess = as_number(lowest_loss, "lowest_loss"), math.log(20)
    slips = {
        "That is the honest loss, with the mask. Without it, most positions can look.": guess,
        "That would need all positions to see their answer. One of them cannot.": 0,
        "That is the loss if one position cheats and all others guess. Count again.": guess * 11 / 12,
        "That is in bits; wanted are natural logarithms.": guess / 12 / math.log(2),
        "That is what some training reaches. A perfect cheat gets lower.": lambda it: 0.26 < it < 0.6,
    }
    otherwise = "Which loss has a position that sees its answer, and how many positions do?"
    check_number(found, "lowest_loss", guess / 12, slips, otherwise, within=0.001, relative=0.006)
    return "Only the last position has to guess."


@exercise("7.5")
def finding_of_your_own(
    relation: Any, verdict: object, *, run: Callable[[str], tuple[list[str], Tensor, Any]]
) -> str:
    """Choose a head on the first eight sentences, and test it on the last eight."""
    wanted = f"a list of {SENTENCES} triples: sentence, word that attends, word attended to"
    as_kind(relation, "relation", sequence_of(sequence_of(str, 3), SENTENCES), wanted)
    as_choice(verdict, "verdict", ("holds", "fails"))
    weights, targets = [], []
    for entry in relation:
        sentence, *pair = entry
        tokens, attn_weights, _ = run(sentence)
        places = []
        for word in (each.lower() for each in pair):
            if tokens.count(word) != 1:
                there = f"{show(word)} is {tokens.count(word)} times among the tokens of {show(sentence)}"
                raise Wrong(f"{there}; wanted is a word that occurs once and is not cut.")
            places.append(tokens.index(word))
        weights.append(attn_weights[:, :, places[0], places[1]].flatten().cpu())
        targets.append(pair[1].lower())
    if twice := set(targets[:HALF]) & set(targets[HALF:]):
        raise Wrong(f"{show(min(twice))} is a target in both halves. A head for that one word would pass.")
    if len({entry[0] for entry in relation}) < SENTENCES:
        raise Wrong("A sentence occurs twice.")
    first, last = (torch.stack(half).mean(dim=0) for half in (weights[:HALF], weights[HALF:]))
    best = int(first.argmax())
    rank = _rank(last, best)
    if (rank <= BEST) != (verdict == "holds"):
        chosen = "Was the head chosen on the first eight alone, by its mean weight?"
        raise Wrong(f"Your verdict is not what the last eight sentences say. {chosen}")
    layer, head = divmod(best, attn_weights.shape[1])
    return (
        f"Head {layer}.{head}, chosen on the first eight, has rank {rank} of {len(last)} on the last eight: "
        f"weight {last[best]:.2f}, the median head {last.median():.2f}. What else could such a head be about?"
    )


@exercise("7.6")
def softmax_in_blocks(attend_in_blocks: object) -> str:
    """Compare with the whole table, for twenty masks and several sizes of a block."""
    asked = as_function(attend_in_blocks, "attend_in_blocks(query, key, value, mask, block)")
    generator = torch.Generator().manual_seed(76)
    query, key, value = torch.randn((3, 2, 3, 24, 8), generator=generator)
    masks = [torch.ones(24, 24).tril().bool(), torch.ones(24, 24).triu(diagonal=1).bool()]
    masks += [torch.rand((24, 24), generator=generator) < 0.1 * (1 + i % 9) for i in range(17)]
    masks += [torch.arange(24).expand(24, 24) >= 18]
    whole_is_right = False
    for block in (24, 5, 1, 7):
        for mask in masks:
            found = asked.tensor(value.shape, query, key, value, mask, block).float()
            if is_near(found, _attend(query, key, value, mask), CLOSE):
                continue
            start = f"With blocks of {block} of 24 keys"
            if found.isnan().any():
                empty = not mask.any(dim=-1).all()
                what = "a query that may attend to nothing" if empty else "a first block that is hidden"
                raise Wrong(f"{start} some outputs are NaN, for a mask with {what}. What is ∞ - ∞? 0 / 0?")
            late = mask.any(dim=-1) & ~mask[:, :block].any(dim=-1)  # their first block is hidden
            if late.any() and (found[..., late, :] == 0).all():
                raise Wrong(
                    f"{start} a query whose first block is hidden gets zeros, although it may attend to "
                    "later keys. Did a NaN become a zero? What is ∞ - ∞?"
                )
            rest = 24 % block
            if rest:
                without_rest = _attend(query, key[..., :-rest, :], value[..., :-rest, :], mask[:, :-rest])
                if is_near(found, without_rest, CLOSE):
                    raise Wrong(f"{start} the last {rest} keys are left out. They are fewer, but they count.")
            if whole_is_right:
                corrected = "Are the old sums corrected whenever a larger score turns up?"
                raise Wrong(f"{start} the outputs differ, and with one block they are right. {corrected}")
            raise Wrong(f"{start} the outputs differ from attention with the whole table.")
        whole_is_right = True
    start = "With queries a thousand times as long"
    large = asked.tensor(value.shape, 1000 * query, key, value, masks[0], 5).float()
    if not large.isfinite().all():
        raise Wrong(f"{start}, some outputs are not finite: an exponential overflows.")
    if not is_near(large, _attend(1000 * query, key, value, masks[0]), 0.01):
        raise Wrong(
            f"{start}, the outputs differ from attention with the whole table. Where all scores of a query "
            "are far below zero, what do its exponentials become?"
        )
    with _Widest() as noted:
        asked.tensor(value.shape, query, key, value, masks[0], 5)
    if noted.whole:
        raise Wrong(
            "The outputs are right, but with blocks of 5 your function still computes a table of 24 times 24 "
            "scores. Nothing wider than a block may be held."
        )
    return "Twenty masks, four sizes of a block, and large scores: the same as with the whole table."


class _Widest(TorchFunctionMode):
    """Note whether a function of PyTorch returns scores or weights for all keys at once."""

    whole = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.is_floating_point():
            # More than one table: a mask made into numbers, (24, 24), is not meant.
            self.whole |= result.shape[-2:] == (24, 24) and result.numel() > 24 * 24
        return result


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    scores = (query @ key.mT / math.sqrt(key.shape[-1])).masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1).masked_fill(~mask, 0.0) @ value
