"""Checks of the exercises of chapter 07, on attention."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

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
        found = _tensor(asked, (length, length), scores.clone())
        if torch.allclose(found, expected, atol=1e-5):
            continue
        if torch.allclose(found.diagonal(), expected.diagonal(), atol=1e-5):
            off = found - torch.diag(found.diagonal())
            if (off == 0).all():
                raise Wrong(
                    f"For {length} scores the diagonal is right, and all else is 0. But the weights share a "
                    "denominator, in which every score stands."
                )
            raise Wrong(f"For {length} scores the diagonal is right; look at the other places again.")
        if not torch.allclose(found.sum(dim=-1), torch.zeros(length), atol=1e-5):
            raise Wrong(
                f"For {length} scores a row of your table adds up to {show(found.sum(dim=-1)[0])}. What "
                "happens to a weight if all scores grow by the same amount?"
            )
        raise Wrong(f"For {length} scores your table differs from that of automatic differentiation.")
    return "It equals automatic differentiation at five draws. Is it symmetric, and why?"


@exercise("7.2")
def head_for_the_token_before(W_q: object, W_k: object) -> str:  # noqa: N803  As in the equation.
    """Attend over 3 to 12 positions."""
    for name, matrix in (("W_q", W_q), ("W_k", W_k)):
        if is_missing(matrix):
            raise Missing(f"`{name}`")
        if not isinstance(matrix, Tensor) or matrix.ndim != 2 or len(matrix) != POSITIONS:
            raise Wrong(f"`{name}` is {show(matrix)}; wanted a tensor of shape ({POSITIONS}, {POSITIONS}).")
    asks, asked = W_q.detach().double(), W_k.detach().double()  # type: ignore[union-attr]
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
    found = tuple(
        int(as_number(rank, name))
        for rank, name in ((rank_of_1_3, "rank_of_1_3"), (rank_of_3_1, "rank_of_3_1"))
    )
    change = _changes(encoder, batch)
    places = ((1, 3), (3, 1))
    within = tuple(_rank(change[layer], head) for layer, head in places)
    if found == within:
        return "Each rank is one of 12. What would a clear pattern with a small effect tell you?"
    flat = change.flatten()
    over_all = tuple(_rank(flat, layer * change.shape[1] + head) for layer, head in places)
    said = f"{found[0]} and {found[1]}"
    if found == over_all:
        raise Wrong(
            f"{said} are ranks among all heads. Look where the heads of each layer stand in that list, above "
            "all those of the last layer. Rank within a layer."
        )
    if found == tuple(rank - 1 for rank in within):
        raise Wrong(f"{said}: count from 1, for the largest change.")
    if found == tuple(change.shape[1] + 1 - rank for rank in within):
        raise Wrong(f"{said}: the list is upside down; 1 is the largest change.")
    raise Wrong(
        f"{said} are not their ranks, measured by setting a head's block of the output matrix to zero. Is "
        "padding left out of the means, and is only one head out at a time?"
    )


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
            try:
                for head in range(num_heads):
                    weight.view(len(weight), num_heads, -1)[:, head] = 0
                    moved = (vectors() - whole).norm(dim=-1) / whole.norm(dim=-1)
                    change[layer, head] = moved.mean().item()
                    weight.copy_(kept)
            finally:
                weight.copy_(kept)
    return change


def _rank(values: Tensor, place: int) -> int:
    return int((values > values[place]).sum()) + 1


@exercise("7.4")
def lowest_loss_without_the_mask(lowest_loss: object) -> str:
    """Eleven positions see the answer, the last one guesses."""
    found = as_number(lowest_loss, "lowest_loss")
    guess = math.log(20)
    if abs(found - guess / 12) < 0.002:
        return "Only the last position has to guess."
    if abs(found - guess) < 0.02:
        raise Wrong(f"{show(found)} is the honest loss, with the mask. Without it, most positions can look.")
    if abs(found) < 0.002:
        raise Wrong("0 would need all positions to see their answer. One of them cannot.")
    if abs(found - guess * 11 / 12) < 0.02:
        raise Wrong(f"{show(found)} is the loss if one position cheats and all others guess. Count again.")
    if abs(found - guess / 12 / math.log(2)) < 0.005:
        raise Wrong(f"{show(found)} is in bits; wanted are natural logarithms.")
    if 0.26 < found < 0.6:
        raise Wrong(f"{show(found)} is what some training reaches. A perfect cheat gets lower.")
    raise Wrong(f"{show(found)}: which loss has a position that sees its answer, and how many positions do?")


@exercise("7.5")
def finding_of_your_own(
    relation: object, verdict: object, *, run: Callable[[str], tuple[list[str], Tensor, Any]]
) -> str:
    """Choose a head on the first eight sentences, and test it on the last eight."""
    if is_missing(relation):
        raise Missing("`relation`")
    if is_missing(verdict):
        raise Missing("`verdict`")
    if not isinstance(relation, list | tuple) or len(relation) != SENTENCES:
        raise Wrong(f"Wanted {SENTENCES} sentences in a list, not {show(relation)}.")
    if not isinstance(verdict, str) or verdict not in ("holds", "fails"):
        raise Wrong(f'`verdict` has to be "holds" or "fails", not {show(verdict)}.')
    weights, targets = [], []
    for entry in relation:
        if (
            not isinstance(entry, list | tuple)
            or len(entry) != 3
            or not all(isinstance(e, str) for e in entry)
        ):
            raise Wrong(f"Wanted (sentence, word that attends, word attended to), not {show(entry)}.")
        sentence, *pair = entry
        tokens, attn_weights, _ = run(sentence)
        places = []
        for word in (each.lower() for each in pair):
            if tokens.count(word) != 1:
                raise Wrong(
                    f"{show(word)} is {tokens.count(word)} times among the tokens of {show(sentence)}; "
                    "wanted is a word that occurs once and is not cut."
                )
            places.append(tokens.index(word))
        weights.append(attn_weights[:, :, places[0], places[1]].flatten().cpu())
        targets.append(pair[1].lower())
    twice = set(targets[:HALF]) & set(targets[HALF:])
    if twice:
        raise Wrong(f"{show(min(twice))} is a target in both halves. A head for that one word would pass.")
    if len({entry[0] for entry in relation}) < SENTENCES:
        raise Wrong("A sentence occurs twice.")
    first, last = (torch.stack(half).mean(dim=0) for half in (weights[:HALF], weights[HALF:]))
    best = int(first.argmax())
    rank = _rank(last, best)
    if (rank <= BEST) != (verdict == "holds"):
        raise Wrong(
            "Your verdict is not what the last eight sentences say. Was the head chosen on the first eight "
            "alone, by its mean weight?"
        )
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
            found = _tensor(
                asked, tuple(value.shape), query.clone(), key.clone(), value.clone(), mask.clone(), block
            )
            expected = _attend(query, key, value, mask)
            if torch.allclose(found, expected, atol=CLOSE):
                continue
            start = f"With blocks of {block} of 24 keys"
            if found.isnan().any():
                empty = not mask.any(dim=-1).all()
                what = "a query that may attend to nothing" if empty else "a first block that is hidden"
                raise Wrong(
                    f"{start} some outputs are NaN, for a mask with {what}. What is ∞ - ∞, and 0 / 0?"
                )
            late = mask.any(dim=-1) & ~mask[:, :block].any(dim=-1)  # their first block is hidden
            if late.any() and (found[..., late, :] == 0).all():
                raise Wrong(
                    f"{start} a query whose first block is hidden gets zeros, although it may attend to "
                    "later keys. Did a NaN become a zero? What is ∞ - ∞?"
                )
            rest = 24 % block
            if rest and torch.allclose(
                found, _attend(query, key[..., :-rest, :], value[..., :-rest, :], mask[:, :-rest]), atol=CLOSE
            ):
                raise Wrong(
                    f"{start} the last {rest} keys are left out. They are fewer than a block, but they count."
                )
            if whole_is_right:
                raise Wrong(
                    f"{start} the outputs differ, and with one block for all keys they are right. Are the "
                    "old sums corrected whenever a larger score turns up?"
                )
            raise Wrong(f"{start} the outputs differ from attention with the whole table.")
        whole_is_right = True
    large = _tensor(asked, tuple(value.shape), 1000 * query, key.clone(), value.clone(), masks[0], 5)
    if not large.isfinite().all():
        raise Wrong(
            "With queries a thousand times as long, some outputs are not finite: an exponential overflows."
        )
    if not torch.allclose(large, _attend(1000 * query, key, value, masks[0]), atol=0.01):
        raise Wrong(
            "With queries a thousand times as long, the outputs differ from attention with the whole table. "
            "Where all scores of a query are far below zero, what do its exponentials become?"
        )
    with _Widest() as noted:
        _tensor(asked, tuple(value.shape), query.clone(), key.clone(), value.clone(), masks[0], 5)
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


def _tensor(asked: Asked, shape: tuple[int, ...], *inputs: object) -> Tensor:
    """Call a reader's function that has to give a tensor of this shape."""
    found = asked(*inputs)
    if not isinstance(found, Tensor) or tuple(found.shape) != shape:
        raise Wrong(f"{asked.called(*inputs)} gives {show(found)}; wanted a tensor of shape {shape}.")
    return found.detach().float()
