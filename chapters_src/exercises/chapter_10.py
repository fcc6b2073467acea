"""Checks of the exercises of chapter 10, on PyTorch's transformer and on pictures as sequences."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chapters_src import evaluation
from chapters_src.exercises.checking import (
    Wrong,
    as_choice,
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

EQUAL = 1e-4  # of 10.1
WIDTH, BATCHES, PAIRS = 8, 25, 3
MASKS = [
    *("src_mask", "tgt_mask", "memory_mask"),
    *("src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"),
]
NOISE = 0.01  # The variance of 10.2.
TOKENS, OPERATIONS = 65 / 17, 4.48  # of 10.3
SIDE = 4  # Patches a side, of 10.4
ENOUGH = 8  # Digits of ten, of 10.5
INK = (2.0, 7.0)
DIGITS = 1797  # of 10.6
VERDICTS = ("helps", "harms", "not settled")


# 10.1: masks of a padded batch -----------------------------------------------------------------------------


def _masks(source_lengths: list[int], target_lengths: list[int]) -> dict[str, Tensor]:
    """Return the masks that are right; the target's padding needs none."""
    source, target = (
        torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None]
        for lengths in (source_lengths, target_lengths)
    )
    return {
        "src_key_padding_mask": source,
        "memory_key_padding_mask": source,
        "tgt_key_padding_mask": target,
        "tgt_mask": torch.ones(2 * [max(target_lengths)], dtype=torch.bool).triu(1),
    }


def _slips(right: dict[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Return masks with one mistake each, by a hint."""
    padding = {name: ~mask for name, mask in right.items() if name != "tgt_mask"}
    memory = {name: mask for name, mask in right.items() if name != "memory_key_padding_mask"}
    target = right["tgt_mask"]
    return {
        "the target looks at the source's padding in the memory (batches of equal lengths hide that)": memory,
        "no token of a target is kept from seeing the next": right | {"tgt_mask": target & False},
        "each token of a target sees the next ones, and not those before it": right | {"tgt_mask": target.T},
        "padding is what is looked at, and tokens are hidden": right | padding,
        "nothing is hidden": {},
    }


@exercise("10.1", takes="a few seconds")
def masks_of_a_batch(masks: object) -> str:
    """Compare padded batches with each pair alone."""
    make = as_function(masks, "masks(source_lengths, target_lengths)")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(101)
        model = nn.Transformer(WIDTH, 2, 1, 1, 16, dropout=0.0, batch_first=True)
        for parameter in model.parameters():
            parameter.data.add_(0.3 * torch.randn(parameter.shape))
    generator = torch.Generator().manual_seed(101)
    largest = 0.0
    for _ in range(BATCHES):
        lengths = [torch.randint(1, 7, (PAIRS,), generator=generator).tolist() for _ in range(2)]
        source, target = (torch.randn(PAIRS, max(n), WIDTH, generator=generator) for n in lengths)
        given = make(*lengths)
        call = f"{make.called(*lengths)} gives {show(given)}"
        if not isinstance(given, Mapping) or not set(given) <= set(MASKS):
            raise Wrong(f"{call}; wanted a dictionary whose keys are among nn.Transformer's six masks.")
        if not all(isinstance(mask, Tensor) for mask in given.values()):
            raise Wrong(f"{call}; wanted are tensors.")
        if any(mask.is_floating_point() for mask in given.values()):
            raise Wrong(f"{call}. A mask of floats is added to the scores; wanted are booleans.")
        found = _outputs(model, source, target, lengths, dict(given))
        alone = _alone(model, source, target, lengths)
        gap = (found - alone).abs().max().item()
        slips = {
            f"{words}.": lambda it, source=source, target=target, lengths=lengths, slip=slip: is_near(
                it, _outputs(model, source, target, lengths, slip), EQUAL
            )
            for words, slip in _slips(_masks(*lengths)).items()
        }
        start = f"For the lengths {lengths} an output is {show(gap)} off what each pair gives alone: "
        compare(found, alone, slips, "it is none of the usual slips.", start=start, within=EQUAL)
        largest = max(largest, gap)
    return f"In {BATCHES} batches each pair gives what it gives alone, up to {largest:.0e}."


def _outputs(
    model: nn.Module, source: Tensor, target: Tensor, lengths: list[list[int]], masks: dict
) -> Tensor:
    """Return the outputs of all tokens, padding left out."""
    try:
        with torch.no_grad():
            found = model(source, target, **masks)
    except (RuntimeError, AssertionError) as error:
        raise Wrong(f"For the lengths {lengths} nn.Transformer refuses these masks: {error}") from error
    return torch.cat([row[:length] for row, length in zip(found, lengths[1], strict=True)])


def _alone(model: nn.Module, source: Tensor, target: Tensor, lengths: list[list[int]]) -> Tensor:
    """Return the outputs of each pair alone."""
    found = []
    with torch.no_grad():
        for i, (s, t) in enumerate(zip(*lengths, strict=True)):
            causal = torch.ones(t, t, dtype=torch.bool).triu(1)
            found.append(model(source[i : i + 1, :s], target[i : i + 1, :t], tgt_mask=causal)[0])
    return torch.cat(found)


# 10.2: a reversed mask in training --------------------------------------------------------------------------


@exercise("10.2")
def reversed_mask(in_training: object, alone: object, telling: object) -> str:
    """Compare the two errors with the variance of the noise."""
    loss, error = as_number(in_training, "in_training"), as_number(alone, "alone")
    as_choice(telling, "telling", ("loss", "error"))
    numbers = f"A loss of {show(loss)} and an error of {show(error)}"
    if not 0 < loss < 0.1 or not 0 < error < 10:
        raise Wrong(f"{numbers}: both are mean squared errors, above 0.")
    if loss >= NOISE:
        end = "this model is honest" if error < 3 * loss else "train longer, or a little faster"
        raise Wrong(f"{numbers}: no honest loss is below {NOISE}, the variance of the noise; {end}.")
    if error < 2 * loss:
        raise Wrong(f"{numbers}, hardly above it: does it read its own answers?")
    if telling == "error":
        raise Wrong("To see that figure you have to let the model answer alone.")
    return "No model that may not look ahead predicts noise, so such a loss is too good to be true."


# 10.3: smaller patches -------------------------------------------------------------------------------------


@exercise("10.3")
def patches_of_one_pixel(tokens: object, operations: object) -> str:
    """Compare two ratios with what was counted."""
    slips = {"That counts patches. Is there another token?": 4}
    otherwise = "How many tokens has a digit with patches of 1 and of 2 pixels?"
    check_number(tokens, "tokens", TOKENS, slips, otherwise, within=0.01)
    slips = {
        "That is the ratio of the tokens. Which operations grow faster than they do?": TOKENS,
        "That is the square: then all operations would be those of the scores.": TOKENS**2,
        "That is upside down.": lambda ratio: ratio < 1,
    }
    otherwise = "Count both with the math kernel, or scores are left out; change nothing but `patch_size`."
    check_number(operations, "operations", OPERATIONS, slips, otherwise, within=0.06)
    return "Linear layers grow with the tokens, scores with their square, and 65 tokens are still few."


# 10.4: neighbors among positions ----------------------------------------------------------------------------


@exercise("10.4")
def likeness_of_neighbors(likeness: object) -> str:
    """Compare with brute force, on random tables."""
    asked = as_function(likeness, "likeness(positions)")
    generator = torch.Generator().manual_seed(104)
    for _ in range(20):
        table = torch.randn(1 + SIDE**2, 12, generator=generator) + 0.5
        values = as_numbers(asked(table), asked.called(table), 2)
        start = f"Of a random table you find {show(values)}. "
        otherwise = "Take two patches, 1 and 2, and go through it."
        compare(values, _likeness(table), _slips_of_likeness(table), otherwise, start=start, within=1e-4)
    return "Twenty random tables, twenty times the same two means."


def _beside(diagonal: bool = False, around: bool = False) -> Tensor:
    """Say which patches are neighbors, (16, 16)."""
    place = torch.stack(torch.meshgrid(*2 * [torch.arange(SIDE)], indexing="ij"), dim=-1).view(-1, 2)
    steps = (place[:, None] - place).abs()
    if around:
        index = torch.arange(SIDE**2)
        return (index[:, None] - index).abs() == 1
    return steps.amax(dim=-1) == 1 if diagonal else steps.sum(dim=-1) == 1


def _likeness(table: Tensor, beside: Tensor | None = None, itself: bool = False) -> list[float]:
    rows = F.normalize(table[-(SIDE**2) :].double(), dim=1)
    cosines, beside = rows @ rows.T, _beside() if beside is None else beside
    own = torch.eye(SIDE**2, dtype=torch.bool)
    if itself:
        return [cosines[beside | own].mean().item(), cosines[~beside & ~own].mean().item()]
    return [cosines[beside].mean().item(), cosines[~beside & ~own].mean().item()]


def _slips_of_likeness(table: Tensor) -> dict[str, list[float]]:
    right, rows = _likeness(table), F.normalize(table[1:].double(), dim=1)
    with_itself = (rows @ rows.T)[~_beside()].mean().item()
    below = "The last patch of a row and the first of the next are far apart; patches stand below each other."
    return {
        "A row is no neighbor of itself.": _likeness(table, itself=True),
        "Among the others is each row itself, with a cosine of 1.": [right[0], with_itself],
        "Row 0 belongs to the class token, which has no place.": _likeness(table[:-1]),
        "Patches that only touch at a corner share no edge.": _likeness(table, _beside(diagonal=True)),
        below: _likeness(table, _beside(around=True)),
        "The two are the wrong way around.": right[::-1],
    }


# 10.5: digits of one's own ----------------------------------------------------------------------------------


@exercise("10.5")
def digits_of_your_own(mine: Any, odd: Any, *, picture: Callable, nearest: Callable, answer: Callable) -> str:
    """Let the nearest neighbor and the transformer read them."""
    as_kind(mine, "mine", mapping_with(range(10)), "a dictionary with a list of strokes for each digit")

    def is_pair(it: Any) -> bool:
        return sequence_of(length=2)(it) and it[0] in range(10)

    as_kind(odd, "odd", is_pair, "a pair: which digit it is, and its strokes")
    pictures = torch.cat([_picture(picture, digit, mine[digit]) for digit in range(10)])
    ink = (6 * pictures + 5).mean().item()
    if not INK[0] < ink < INK[1]:
        thin = "thin, or the digits too small" if ink <= INK[0] else "thick"
        raise Wrong(f"A pixel has {show(ink)} of 16 on average, one of the data 4.9: your pen is too {thin}.")
    read = (nearest(pictures) == torch.arange(10)).tolist()
    if sum(read) < ENOUGH:
        unread = ", ".join(str(digit) for digit in range(10) if not read[digit])
        raise Wrong(f"The nearest neighbor reads {sum(read)} of your ten digits; it misses {unread}.")
    digit, strange = odd[0], _picture(picture, odd[0], odd[1])
    taken, other = int(nearest(strange)[0]), int(answer(strange)[0])
    if taken != digit:
        raise Wrong(f"The nearest neighbor takes the odd one for {taken}: is it still a {digit}?")
    if other == digit:
        raise Wrong("The transformer reads the odd one, too. Turn it, move it, stretch it a little.")
    found = int((answer(pictures) == torch.arange(10)).sum())
    return f"The transformer reads {found} of your ten digits, and takes the odd one for {other}."


def _picture(picture: Callable, digit: int, strokes: Any) -> Tensor:
    try:
        return picture(strokes)
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        wanted = "A stroke is a list of at least two points (x, y)."
        said = f"{type(error).__name__}: {error}"
        raise Wrong(f"The strokes of {digit} cannot be drawn: {said}. {wanted}") from error


# 10.6: an augmentation --------------------------------------------------------------------------------------


@exercise("10.6")
def augmentation_of_your_own(
    before: object, after: object, gain: object, verdict: object, *, form: np.ndarray, labels: Tensor
) -> str:
    """Compute the gain and its interval over forms."""
    answers = [_answers(value, name) for value, name in ((before, "before"), (after, "after"))]
    values = as_numbers(gain, "gain", 3)
    right = [(found == np.asarray(labels)).astype(float) for found in answers]
    if np.array_equal(answers[0], answers[1]):
        raise Wrong("`before` and `after` are the same answers.")
    change = right[1] - right[0]
    each = [change[form == number] for number in np.unique(form)]
    wanted = _interval(np.array([part.mean() for part in each]))
    if _close(values, [-wanted[0], -wanted[2], -wanted[1]]):
        raise Wrong("The gain has the wrong sign: it is what the change adds.")
    if _close(values, _interval(change)) and not _close(values, wanted):
        raise Wrong("That interval draws digits. What would be new next time is a writer: draw forms.")
    if not _close(values, wanted):
        shown = ", ".join(map(show, values))
        raise Wrong(f"From your answers the gain is not {shown}. Average each form, then draw.")
    as_choice(verdict, "verdict", VERDICTS)
    true = "helps" if wanted[1] > 0 else "harms" if wanted[2] < 0 else "not settled"
    if verdict != true:
        where = "holds 0" if true == "not settled" else "does not hold 0"
        raise Wrong(f"Your interval {where}: what does it say then?")
    return "Gain, interval and verdict follow from your answers. Whether other seeds agree is open."


def _answers(value: Any, name: str) -> np.ndarray:
    def is_answered(it: Any) -> bool:
        return np.shape(it) == (DIGITS,) and bool(np.isin(np.asarray(it), np.arange(10)).all())

    as_kind(value, name, is_answered, f"an answer from 0 to 9 for each of the {DIGITS} digits")
    return np.asarray(value)


def _interval(values: np.ndarray) -> list[float]:
    found = evaluation.bootstrap_interval(np.mean, values, seed=106)
    return [found.estimate, found.low, found.high]


def _close(values: list[float], wanted: list[float]) -> bool:
    """Allow for rounding, and for other draws of the ends."""
    wide = 0.0004 + 0.06 * (wanted[2] - wanted[1])
    return is_near(values[0], wanted[0], 0.0006) and is_near(values[1:], wanted[1:], wide)
