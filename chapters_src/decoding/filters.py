"""Filters: functions that modify the logits of the next token before it is chosen.

A filter takes the logits (B, V) and the ids so far (B, T), and returns new logits (B, V). The ids are those
of the prompt (for an encoder-decoder, the target) and of all tokens generated since; padding is always on the
left, as -1. Filters are applied in the order given: `[repetition_penalty(1.2), top_p(0.9)]`. The library has
a fixed order: repetition penalty, n-grams, temperature, top-k, top-p, min-p, typical.

A token that is ruled out gets minus infinity. At least one token always remains, except that
`no_repeat_ngram` can rule out all. Beam sampling needs more than one: `min_tokens_to_keep`.

Each filter returns exactly what the corresponding logits processor of the Transformers library returns,
except for padding, which is not a token here. The library ignores padding in its repetition penalty, but not
in its n-grams (5.23): if the end token is also the padding token, as is usual with GPT-2,
`no_repeat_ngram_size=1` keeps the shorter prompts of a batch from ever ending.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from chapters_src.transformer.checks import as_integer

Filter = Callable[[Tensor, Tensor], Tensor]
PADDING = -1  # In the ids that filters see.


def temperature(value: float) -> Filter:
    """Divide the logits by a temperature: below 1 the distribution gets sharper, above 1 flatter.

    This is the Boltzmann distribution of statistical mechanics, with the negative logits as energies.

    Raises:
        ValueError: the value is not positive.
    """
    if not value > 0:
        raise ValueError(f"temperature={value} has to be positive: for the most probable token, use `greedy`")
    return lambda logits, ids: logits / value


def top_k(num_tokens: int, min_tokens_to_keep: int = 1) -> Filter:
    """Keep the k most probable tokens, and those that tie with the last of them.

    Fan et al. (2018), https://arxiv.org/abs/1805.04833.

    Raises:
        ValueError: a number is not a positive integer.
    """
    num_tokens = as_integer("top_k", num_tokens, hint="leave the filter out to keep all tokens")
    min_tokens_to_keep = as_integer("min_tokens_to_keep", min_tokens_to_keep)

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        kept = min(max(num_tokens, min_tokens_to_keep), logits.size(-1))
        last = logits.topk(kept).values[:, -1:]  # (B, 1)
        return logits.masked_fill(logits < last, -torch.inf)

    return filtered


def top_p(mass: float, min_tokens_to_keep: int = 1) -> Filter:
    """Keep the nucleus: the smallest set of most probable tokens whose total probability is at least p.

    Holtzman et al. (2020), section 3.1, https://arxiv.org/abs/1904.09751.

    Raises:
        ValueError: p is not greater than 0 and at most 1, or the other number is not a positive integer.
    """
    if not 0 < mass <= 1:
        raise ValueError(
            f"top_p={mass} has to be greater than 0 and at most 1: for the most probable token, use `greedy`"
        )
    min_tokens_to_keep = as_integer("min_tokens_to_keep", min_tokens_to_keep)

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        ordered = logits.sort(dim=-1)  # In ascending order.
        removed = ordered.values.softmax(dim=-1).cumsum(dim=-1) <= 1 - mass
        removed[:, -min_tokens_to_keep:] = False
        return logits.masked_fill(_in_place_of(removed, ordered.indices), -torch.inf)

    return filtered


def min_p(share: float, min_tokens_to_keep: int = 1) -> Filter:
    """Keep the tokens whose probability is at least a share of the highest one.

    Nguyen et al. (2024), https://arxiv.org/abs/2407.01082.

    Raises:
        ValueError: the share is not from 0 to 1, or the other number is not a positive integer.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"min_p={share} has to be a share of the highest probability, from 0 to 1")
    min_tokens_to_keep = as_integer("min_tokens_to_keep", min_tokens_to_keep)

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        probabilities = logits.softmax(dim=-1)
        removed = probabilities < share * probabilities.amax(dim=-1, keepdim=True)
        kept = probabilities.topk(min(min_tokens_to_keep, logits.size(-1))).indices
        return logits.masked_fill(removed.scatter(1, kept, False), -torch.inf)

    return filtered


def typical_p(mass: float, min_tokens_to_keep: int = 1) -> Filter:
    """Keep the tokens whose information content is closest to the entropy, up to this total probability.

    The information content of a token is its negative log-probability, and the entropy is its expected value,
    so even the most probable token may be ruled out. Meister et al. (2023), https://arxiv.org/abs/2202.00666.

    Raises:
        ValueError: the mass is not between 0 and 1, or the other number is not a positive integer.
    """
    if not 0 < mass < 1:
        raise ValueError(
            f"typical_p={mass} has to be between 0 and 1: leave the filter out to keep all tokens"
        )
    min_tokens_to_keep = as_integer("min_tokens_to_keep", min_tokens_to_keep)

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        log_probabilities = logits.log_softmax(dim=-1)
        # For a token that is ruled out, 0 times minus infinity is NaN, and counts as 0.
        entropy = -(log_probabilities * log_probabilities.exp()).nansum(dim=-1, keepdim=True)
        ordered = (-log_probabilities - entropy).abs().sort(dim=-1)
        cumulative = logits.gather(1, ordered.indices).softmax(dim=-1).cumsum(dim=-1)
        last = (cumulative < mass).sum(dim=-1, keepdim=True).clamp(max=logits.size(-1) - 1)
        removed = ordered.values > ordered.values.gather(1, last)
        removed[:, :min_tokens_to_keep] = False
        return logits.masked_fill(_in_place_of(removed, ordered.indices), -torch.inf)

    return filtered


def repetition_penalty(penalty: float) -> Filter:
    """Make tokens that have occurred less probable (below 1: more), no matter how often they have occurred.

    Positive logits are divided by the penalty, negative ones multiplied, as in the library. Keskar et al.
    (2019), section 4.1, https://arxiv.org/abs/1909.05858, divide all, which makes tokens with negative logits
    more probable. Beam search filters log-probabilities, which are never positive.

    Raises:
        ValueError: the penalty is not positive.
    """
    if not penalty > 0:
        raise ValueError(f"repetition_penalty={penalty} has to be positive; 1 has no effect")

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        punished = torch.where(logits < 0, logits * penalty, logits / penalty)
        return torch.where(_tokens_among(ids, logits), punished, logits)

    return filtered


def no_repeat_ngram(size: int) -> Filter:
    """Rule out each token that would repeat an n-gram; with a size of 1, no token occurs twice.

    Paulus et al. (2018), section 2.5, https://arxiv.org/abs/1705.04304, for trigrams.

    Raises:
        ValueError: the size is not a positive integer.
    """
    size = as_integer("no_repeat_ngram", size, hint="leave the filter out to allow repetition")

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        if ids.size(1) < size:
            return logits
        ngrams = ids.unfold(1, size, 1)  # (B, number of n-grams, n)
        begun = ids[:, ids.size(1) - size + 1 :]  # (B, n - 1), which the next token completes.
        # Padding is on the left, so an n-gram with padding equals no other.
        is_repeated = (ngrams[..., :-1] == begun[:, None]).all(dim=-1)
        banned = ngrams[..., -1].masked_fill(~is_repeated, PADDING)
        return logits.masked_fill(_tokens_among(banned, logits), -torch.inf)

    return filtered


def apply(filters: Sequence[Filter], logits: Tensor, ids: Tensor) -> Tensor:
    """Apply filters one after the other; arguments and result are those of a filter."""
    for each in filters:
        logits = each(logits, ids)
    return logits


def check_some_left(filters: Sequence[Filter], logits: Tensor) -> None:
    """Raise a ValueError if the filters have ruled out everything in a row of logits, (B, any number)."""
    if filters and bool(torch.isneginf(logits.amax(dim=-1)).any()):
        raise ValueError(
            "the filters leave no token to choose from: use a smaller max_new_tokens, or a larger "
            "no_repeat_ngram"
        )


def _in_place_of(marks: Tensor, order: Tensor) -> Tensor:
    """Reorder marks of sorted logits to match the unsorted ones."""
    return marks.scatter(1, order, marks)


def _tokens_among(ids: Tensor, logits: Tensor) -> Tensor:
    """Return which tokens of the vocabulary are among the ids: boolean, (B, V)."""
    vocab_size = logits.size(-1)
    is_entry = (ids >= 0) & (ids < vocab_size)
    places = torch.where(is_entry, ids, vocab_size)  # All others go to an extra column.
    there = torch.zeros(len(ids), vocab_size + 1, dtype=torch.bool, device=logits.device)
    return there.scatter(1, places, True)[:, :vocab_size]
