"""Filters: small functions that change the logits of the next token before it is chosen.

A filter takes the logits (B, V) and the ids so far (B, T), and gives new logits (B, V). The ids are the
prompt (for an encoder-decoder: the target) and all that was written after it, with -1 at padding, which is
always on the left. Several filters work from left to right: `[repetition_penalty(1.2), top_p(0.9)]`. The
library's order, whatever the order of its arguments, is: repetition penalty, n-grams, temperature, top-k,
top-p, min-p, typical.

A token that is ruled out gets the logit minus infinity. Whatever the numbers, at least one token stays; only
`no_repeat_ngram` can rule out all.

Each of them gives what the logits processor of the Transformers library gives, bit for bit. Padding is no
token here. The library tells its repetition penalty how much padding there is, but not its n-grams (5.23):
where the end token is also the padding, as is usual with GPT-2, `no_repeat_ngram_size=1` keeps the shorter
prompts of a batch from ever ending.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from chapters_src.decoding.checks import check_count

Filter = Callable[[Tensor, Tensor], Tensor]
PADDING = -1  # In the ids that filters see.


def temperature(value: float) -> Filter:
    """Divide the logits: below 1 the distribution gets sharper, above 1 flatter.

    The Boltzmann distribution of statistical mechanics, with minus the logits as energies.

    Args:
        value: above 0.

    Returns:
        The filter.

    Raises:
        ValueError: the value is 0 or below.
    """
    if not value > 0:
        raise ValueError(f"temperature={value} has to be above 0: for the most probable token use `greedy`")
    return lambda logits, ids: logits / value


def top_k(num_tokens: int, min_tokens_to_keep: int = 1) -> Filter:
    """Keep the k most probable tokens, and all that tie with the last of them.

    Fan et al. (2018), https://arxiv.org/abs/1805.04833.

    Args:
        num_tokens: k. More than there are keeps all.
        min_tokens_to_keep: so many stay in any case. Beam sampling needs more than one.

    Returns:
        The filter.

    Raises:
        ValueError: a number that is no whole number from 1.
    """
    check_count("top_k", num_tokens, "leave the filter out to keep all tokens")
    check_count("min_tokens_to_keep", min_tokens_to_keep)

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        kept = min(max(num_tokens, min_tokens_to_keep), logits.size(-1))
        last = logits.topk(kept).values[:, -1:]  # (B, 1)
        return logits.masked_fill(logits < last, -torch.inf)

    return filtered


def top_p(mass: float, min_tokens_to_keep: int = 1) -> Filter:
    """Keep the nucleus: the smallest set of most probable tokens that has this much probability together.

    Holtzman et al. (2020), section 3.1, https://arxiv.org/abs/1904.09751.

    Args:
        mass: p, above 0 and at most 1.
        min_tokens_to_keep: so many stay in any case. Beam sampling needs more than one.

    Returns:
        The filter.

    Raises:
        ValueError: the mass or the number is out of range.
    """
    if not 0 < mass <= 1:
        raise ValueError(
            f"top_p={mass} has to be above 0 and at most 1: for the most probable token alone use `greedy`"
        )
    check_count("min_tokens_to_keep", min_tokens_to_keep)

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        ordered = logits.sort(dim=-1)  # The least probable first: what these have together may go.
        removed = ordered.values.softmax(dim=-1).cumsum(dim=-1) <= 1 - mass
        removed[:, -min_tokens_to_keep:] = False
        return logits.masked_fill(_in_place_of(removed, ordered.indices), -torch.inf)

    return filtered


def min_p(share: float, min_tokens_to_keep: int = 1) -> Filter:
    """Keep the tokens that are not much less probable than the most probable one.

    Nguyen et al. (2024), https://arxiv.org/abs/2407.01082.

    Args:
        share: of the highest probability; tokens below it go. From 0, which keeps all, to 1.
        min_tokens_to_keep: so many stay in any case. Beam sampling needs more than one.

    Returns:
        The filter.

    Raises:
        ValueError: the share or the number is out of range.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"min_p={share} has to be a share of the highest probability, from 0 to 1")
    check_count("min_tokens_to_keep", min_tokens_to_keep)

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        probabilities = logits.softmax(dim=-1)
        removed = probabilities < share * probabilities.amax(dim=-1, keepdim=True)
        kept = probabilities.topk(min(min_tokens_to_keep, logits.size(-1))).indices
        return logits.masked_fill(removed.scatter(1, kept, False), -torch.inf)

    return filtered


def typical_p(mass: float, min_tokens_to_keep: int = 1) -> Filter:
    """Keep the tokens that are about as surprising as one expects, until they have this much probability.

    How surprising a token is, is minus its log-probability; what one expects is the entropy. So the most
    probable token may go. Meister et al. (2023), https://arxiv.org/abs/2202.00666.

    Args:
        mass: above 0 and below 1.
        min_tokens_to_keep: so many stay in any case. Beam sampling needs more than one.

    Returns:
        The filter.

    Raises:
        ValueError: the mass or the number is out of range.
    """
    if not 0 < mass < 1:
        raise ValueError(
            f"typical_p={mass} has to be above 0 and below 1: leave the filter out to keep all tokens"
        )
    check_count("min_tokens_to_keep", min_tokens_to_keep)

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        log_probabilities = logits.log_softmax(dim=-1)
        # Where a token is ruled out, 0 times minus infinity is NaN, and stands for 0.
        entropy = -(log_probabilities * log_probabilities.exp()).nansum(dim=-1, keepdim=True)
        ordered = (-log_probabilities - entropy).abs().sort(dim=-1)
        together = logits.gather(1, ordered.indices).softmax(dim=-1).cumsum(dim=-1)
        last = (together < mass).sum(dim=-1, keepdim=True).clamp(max=logits.size(-1) - 1)
        removed = ordered.values > ordered.values.gather(1, last)
        removed[:, :min_tokens_to_keep] = False
        return logits.masked_fill(_in_place_of(removed, ordered.indices), -torch.inf)

    return filtered


def repetition_penalty(penalty: float) -> Filter:
    """Make tokens that are there already less probable, once for each token, however often it is there.

    A positive logit is divided by the penalty, a negative one multiplied. Keskar et al. (2019), section 4.1,
    https://arxiv.org/abs/1909.05858, divide every logit, which helps a negative one; with the sign looked at
    it is the library's form. Beam search filters log-probabilities, which are never positive.

    Args:
        penalty: above 0. Above 1 is a penalty, below 1 a reward.

    Returns:
        The filter.

    Raises:
        ValueError: the penalty is 0 or below.
    """
    if not penalty > 0:
        raise ValueError(f"repetition_penalty={penalty} has to be above 0; 1 changes nothing")

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        punished = torch.where(logits < 0, logits * penalty, logits / penalty)
        return torch.where(_tokens_among(ids, logits), punished, logits)

    return filtered


def no_repeat_ngram(size: int) -> Filter:
    """Rule out each token that would complete a run of this many tokens which is there already.

    Paulus et al. (2018), section 2.5, https://arxiv.org/abs/1705.04304, for runs of three.

    Args:
        size: n, from 1. With 1 no token comes twice.

    Returns:
        The filter.

    Raises:
        ValueError: the size is no whole number from 1.
    """
    check_count("no_repeat_ngram", size, "leave the filter out to allow repetition")

    def filtered(logits: Tensor, ids: Tensor) -> Tensor:
        if ids.size(1) < size:
            return logits
        runs = ids.unfold(1, size, 1)  # (B, number of runs, n)
        begun = ids[:, ids.size(1) - size + 1 :]  # (B, n - 1), of which the next token makes a run.
        # Padding is all on the left, so a run that has some is like no other.
        is_repeated = (runs[..., :-1] == begun[:, None]).all(dim=-1)
        banned = runs[..., -1].masked_fill(~is_repeated, PADDING)
        return logits.masked_fill(_tokens_among(banned, logits), -torch.inf)

    return filtered


def apply(filters: Sequence[Filter], logits: Tensor, ids: Tensor) -> Tensor:
    """Let one filter work after the other: the same arguments and result as those of a filter."""
    for each in filters:
        logits = each(logits, ids)
    return logits


def check_some_left(filters: Sequence[Filter], logits: Tensor) -> None:
    """Raise an error if the filters have ruled out everything in a row of logits, (B, any number)."""
    if filters and bool(torch.isneginf(logits.amax(dim=-1)).any()):
        raise ValueError(
            "the filters leave no token to go on with: use a smaller max_new_tokens, or a larger "
            "no_repeat_ngram"
        )


def _in_place_of(marks: Tensor, order: Tensor) -> Tensor:
    """Bring marks of sorted logits back to the places that these came from."""
    return marks.scatter(1, order, marks)


def _tokens_among(ids: Tensor, logits: Tensor) -> Tensor:
    """Say which tokens of the vocabulary are among the ids: boolean, (B, V)."""
    vocab_size = logits.size(-1)
    is_entry = (ids >= 0) & (ids < vocab_size)
    places = torch.where(is_entry, ids, vocab_size)  # All else goes to a spare column.
    there = torch.zeros(len(ids), vocab_size + 1, dtype=torch.bool, device=logits.device)
    return there.scatter(1, places, True)[:, :vocab_size]
