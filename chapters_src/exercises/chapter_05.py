"""Checks of the exercises of chapter 05, on fine-tuning."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from chapters_src.evaluation import accuracy, cross_entropies, paired_bootstrap
from chapters_src.exercises.checking import (
    Missing,
    Wrong,
    as_function,
    as_number,
    exercise,
    is_missing,
    show,
)

SIZES = (10, 4, 2)  # of 5.1: the parts
RANK = 16  # of 5.2
NEAR = 0.012  # of 5.4: a temperature moves a few messages from half to half
PLANTED = 20  # of 5.5
PEEKED = 17  # of 5.5: so many of them the model's own answers
FEWEST, FEWEST_HELD_OUT = 80, 20  # of 5.6
ALIKE = 0.6  # of 5.6: share of words


@exercise("5.1")
def gradient_in_parts(accumulate: object) -> str:
    """Compare with the gradient of the whole batch."""
    asked = as_function(accumulate, "accumulate(model, parts)", may_give_none=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = nn.Linear(6, 3)
        inputs = torch.randn(sum(SIZES), 6)
        labels = torch.randint(3, (sum(SIZES),))
    parts = tuple(zip(inputs.split(SIZES), labels.split(SIZES), strict=True))

    def gradient(weigh: Callable[[int], float], of: Sequence = parts) -> torch.Tensor:
        losses = [weigh(len(y)) * F.cross_entropy(model(x), y, reduction="sum") for x, y in of]
        return torch.autograd.grad(torch.stack(losses).sum(), model.weight)[0]

    before = model.weight.detach().clone()
    whole = gradient(lambda size: 1 / sum(SIZES))
    asked(model, parts)
    found = model.weight.grad
    if not torch.equal(model.weight.detach(), before):
        raise Wrong("The weights have changed. Leave the step to the optimizer.")
    if found is None:
        raise Wrong("Afterwards the model has no gradient in `weight.grad`.")
    start = f"In parts of {', '.join(map(str, SIZES[:-1]))} and {SIZES[-1]}, "
    near = {
        "each part counts the same, whatever its size.": gradient(lambda size: 1 / (len(SIZES) * size)),
        "the means of the parts are added up.": gradient(lambda size: 1 / size),
        "only the last part has left a gradient.": gradient(lambda size: 1 / size, parts[-1:]),
        "only the last part has left a gradient. ": gradient(lambda size: 1 / sum(SIZES), parts[-1:]),
    }
    if not torch.allclose(found, whole, atol=1e-5):
        for what, other in near.items():
            if torch.allclose(found, other, atol=1e-5):
                raise Wrong(start + what)
        cosine = float(F.cosine_similarity(found.flatten(), whole.flatten(), dim=0))
        ratio = float(found.norm() / whole.norm())
        if cosine > 0.9999:
            raise Wrong(f"{start}your gradient has the right direction, and is {ratio:.3g} times as long.")
        raise Wrong(f"{start}it has another direction: its cosine with the right one is {cosine:.2f}.")
    off = float((gradient(lambda size: 1 / (len(SIZES) * size)) - whole).norm() / whole.norm())
    return f"The parts add up to the whole batch. The mean of their means would be off by {off:.0%} here."


@exercise("5.2")
def weights_of_a_rank(
    trained: object, break_even: object, *, width: int, num_layers: int, num_classes: int
) -> str:
    """Count them from the shapes."""
    found, even = as_number(trained, "trained"), as_number(break_even, "break_even")
    corrections = 2 * num_layers * 2 * RANK * width
    head = (width + 1) * num_classes
    start = f"{found:,.0f} is not it. "
    hints = {
        corrections: "Something else is trained besides the corrections.",
        corrections + width * num_classes: "Has the head only a matrix?",
        corrections // 2 + head: f"That is for one matrix in a layer, or for rank {RANK // 2}.",
        corrections // 2: "That has the size of half of it, and no head.",
    }
    if found != corrections + head:
        raise Wrong(start + hints.get(round(found), f"Each matrix has an A and a B of rank {RANK}."))
    if even == width:
        raise Wrong(f"At rank {width}, A alone has as many weights as the matrix; A and B are two.")
    if even != width / 2:
        numbers = f"At rank {even:g}, A and B have {2 * even * width:,.0f} weights, the matrix {width**2:,}."
        raise Wrong(numbers if even > 0 else "A rank is above 0.")
    return "Beyond that rank you would save weights by training the matrix itself."


@exercise("5.3")
def other_shares(adapt: object) -> str:
    """Compare with Bayes' rule where the probability of each message is known."""
    asked = as_function(adapt, "adapt(logits, old_shares, new_shares)")
    generator = np.random.default_rng(5)
    likelihoods = -0.5 * (generator.normal(size=(50, 1)) * 2 - np.array([-1.0, 0.0, 1.5])) ** 2
    shares = {name: np.array(each) for name, each in _SHARES.items()}
    old = shares["many of the first"]
    noise = generator.normal(size=(50, 1))  # A row of logits may have anything added to it.
    for new in shares.values():
        wanted = _softmax(likelihoods + np.log(new))
        logits = likelihoods + np.log(old) + noise
        given = logits.copy()
        found = np.asarray(asked(given, old.copy(), new.copy()), dtype=float)
        if not np.array_equal(given, logits):
            raise Wrong("Your function changes the logits that it is given.")
        if found.shape != logits.shape:
            raise Wrong(f"For 50 messages and 3 classes it gives {show(found)}.")
        if np.allclose(_softmax(found), wanted, atol=1e-4):
            continue
        start = f"With old shares {old.round(2).tolist()} and new ones {new.round(2).tolist()}, "
        if np.allclose(found, wanted, atol=1e-4):
            raise Wrong(f"{start}you give probabilities. Wanted are logits.")
        if np.allclose(_softmax(found), _softmax(logits + np.log(old) - np.log(new)), atol=1e-4):
            raise Wrong(f"{start}the answers move away from what has become common.")
        if np.allclose(_softmax(found), _softmax(logits - np.log(old)), atol=1e-4):
            raise Wrong(f"{start}the answers are those for equal shares.")
        if np.allclose(_softmax(found), _softmax(logits), atol=1e-4):
            raise Wrong(f"{start}the answers are what they were.")
        if np.allclose(_softmax(found), _softmax(logits + np.log(new)), atol=1e-4):
            raise Wrong(f"{start}the old shares are still in it.")
        raise Wrong(f"{start}the probabilities are not those of Bayes' rule.")
    return "It agrees with Bayes' rule for three kinds of use."


_SHARES = {
    "many of the last": [0.1, 0.2, 0.7],
    "many of the first": [0.6, 0.3, 0.1],
    "equal": [1 / 3, 1 / 3, 1 / 3],
}


def _softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@exercise("5.4")
def surer_half(surer: object, other: object, *, logits: Any, labels: np.ndarray) -> str:
    """Sort by confidence, and split in the middle."""
    found = as_number(surer, "surer"), as_number(other, "other")
    logits = np.asarray(logits, dtype=float)
    right = logits.argmax(axis=1) == labels
    order = np.argsort(-_softmax(logits).max(axis=1), kind="stable")
    expected = _halves(right[order])
    says = f"{show(found[0])} and {show(found[1])}"
    if _both_near(found, expected):
        return f"On all messages it is right for {right.mean():.1%}."
    if _both_near(found, expected[::-1]):
        raise Wrong(f"{says}: which of the two halves is the surer one?")
    if _both_near(found, _halves(right)):
        raise Wrong(f"{says} belong to the first and the last half of the split, in its order.")
    if _both_near((found[0] / 100, found[1] / 100), expected):
        raise Wrong(f"{says}: write a share as a number from 0 to 1.")
    if _both_near(found, _halves(right[np.argsort(-logits.max(axis=1), kind="stable")])):
        raise Wrong(f"{says} belong to halves by the highest logit. Is that a confidence?")
    raise Wrong(f"{says}: halves by confidence come out otherwise.")


def _halves(right: np.ndarray) -> tuple[float, float]:
    first, second = np.array_split(right, 2)
    return float(first.mean()), float(second.mean())


def _both_near(found: Sequence[float], expected: Sequence[float]) -> bool:
    return all(abs(a - b) < NEAR for a, b in zip(found, expected, strict=True))


@exercise("5.5")
def plausible_errors(
    count: object,
    planted: object,
    *,
    logits: Any,
    given: np.ndarray,
    correct: np.ndarray,
    second: Mapping[int, int],
) -> str:
    """Look for second readings and for the reader's errors in the highest tenth."""
    found = as_number(count, "count")
    rows = np.array(sorted(second))
    reread = [second[row] for row in rows]
    expected = _in_tenth(logits, _changed(correct, rows, reread), rows)
    if found != expected:
        start = f"`count` is {show(found)}. "
        if found == _in_tenth(logits, _changed(given, rows, reread), rows):
            raise Wrong(f"{start}The labels that were wrong before are still wrong in that.")
        if found == _in_tenth(logits, correct, rows):
            raise Wrong(f"{start}So many of these messages are there with their first reading.")
        raise Wrong(f"{start}Sort by the loss for the new labels; a tenth is {len(given) // 10} messages.")
    if is_missing(planted):
        raise Missing("`planted`")
    own_rows, own_labels = _as_planted(planted, logits, correct, second)
    losses = cross_entropies(logits, _changed(correct, own_rows, own_labels))
    highest = np.argsort(-losses, kind="stable")[: len(losses) // 10]
    hidden = sorted(set(own_rows.tolist()) - set(highest.tolist()))
    which = f" (rows {', '.join(map(str, hidden))})" if hidden else ""
    by_chance = _hidden_by_chance(logits, correct)
    return (
        f"{len(hidden)} of your {PLANTED} hide below the highest tenth{which}; of random errors "
        f"{by_chance:.1f} would."
    )


def _as_planted(
    planted: object, logits: Any, correct: np.ndarray, second: Mapping[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(planted, Mapping) or len(planted) != PLANTED:
        raise Wrong(f"`planted` has to be a dictionary of {PLANTED} rows and labels, not {show(planted)}.")
    for row, label in planted.items():
        if not 0 <= int(row) < len(correct) or not 0 <= int(label) < np.shape(logits)[1]:
            raise Wrong(f"Row {row} with label {label}: there is no such row or class.")
        if correct[row] == label:
            raise Wrong(f"Row {row}: {label} is the right label.")
        if second.get(int(row)) == label:
            raise Wrong(f"Row {row} can be read that way, so the label is not wrong.")
    rows, labels = np.array(list(planted)), np.array(list(planted.values()))
    if (np.asarray(logits)[rows].argmax(axis=1) == labels).sum() >= PEEKED:
        raise Wrong("These are the model's own answers. Choose without it: read the messages.")
    return rows, labels


def _changed(labels: np.ndarray, rows: Any, new: Any) -> np.ndarray:
    changed = labels.copy()
    changed[rows] = new
    return changed


def _in_tenth(logits: Any, labels: np.ndarray, rows: np.ndarray) -> int:
    highest = np.argsort(-cross_entropies(logits, labels), kind="stable")[: len(labels) // 10]
    return int(np.isin(highest, rows).sum())


def _hidden_by_chance(logits: Any, correct: np.ndarray) -> float:
    generator = np.random.default_rng(5)
    num_classes, hidden = np.shape(logits)[1], []
    for _ in range(50):
        rows = generator.choice(len(correct), PLANTED, replace=False)
        labels = (correct[rows] + generator.integers(1, num_classes, PLANTED)) % num_classes
        hidden.append(PLANTED - _in_tenth(logits, _changed(correct, rows, labels), rows))
    return float(np.mean(hidden))


@exercise("5.6", takes="a few seconds")
def classifier_of_your_own(
    folder: object, own_train: object, own_test: object, *, vectors_of: Callable[[list[str]], np.ndarray]
) -> str:
    """Load the folder, score it anew, and compare its card and a probe with it."""
    if is_missing(folder):
        raise Missing("`folder`")
    train, test = _as_pairs(own_train, "own_train"), _as_pairs(own_test, "own_test")
    if len(train) + len(test) < FEWEST or len(test) < FEWEST_HELD_OUT:
        raise Wrong(
            f"{len(train)} and {len(test)} messages: wanted are {FEWEST}, {FEWEST_HELD_OUT} of them to test."
        )
    names = sorted({label for _, label in train})
    if len(names) < 2 or {label for _, label in test} != set(names):
        raise Wrong("Both sides need all of your classes, two or more.")
    _refuse_twins([text for text, _ in train], [text for text, _ in test])
    predicted = _answers(folder, [text for text, _ in test])
    unknown = set(predicted) - set(names)
    if unknown:
        raise Wrong(f"The folder answers {show(sorted(unknown))}, and your classes are {show(names)}.")
    true = np.array([names.index(label) for _, label in test])
    found = np.array([names.index(label) for label in predicted])
    measured = {"accuracy": accuracy(true, found), "largest class": np.bincount(true).max() / len(true)}
    _compare_card(Path(str(folder)) / "README.md", measured)
    probed = _probed(train, test, names, vectors_of)
    gain = paired_bootstrap(accuracy, true, found, probed, seed=5)
    return (
        f"It loads in one line, and the card is true: accuracy {measured['accuracy']:.2f}, largest class "
        f"{measured['largest class']:.2f}. Gain over a probe: {gain.estimate:+.2f} ({gain.low:+.2f} to "
        f"{gain.high:+.2f}, 95%)."
    )


def _as_pairs(value: object, name: str) -> list[tuple[str, str]]:
    if is_missing(value):
        raise Missing(f"`{name}`")
    if not isinstance(value, list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(each, str) for each in pair)
        for pair in value
    ):
        raise Wrong(f"`{name}` has to be a list of pairs (message, name of its class), not {show(value)}.")
    return [(text, label) for text, label in value]


def _refuse_twins(train: Sequence[str], test: Sequence[str]) -> None:
    words = [set(re.findall(r"\w+", text.lower())) for text in train]
    for text in test:
        own = set(re.findall(r"\w+", text.lower()))
        for other, known in zip(words, train, strict=True):
            if own and len(own & other) >= ALIKE * len(own | other):
                raise Wrong(f"{show(text)} is tested, and {show(known)} trained on: nearly the same.")


def _answers(folder: object, texts: list[str]) -> list[str]:
    from transformers import pipeline

    if not Path(str(folder)).is_dir():
        raise Wrong(f"There is no folder {show(str(folder))}.")
    try:
        classify = pipeline("text-classification", model=str(folder), device="cpu")
        return [answer["label"] for answer in classify(texts)]
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().split("\n")[0][:120]
        raise Wrong(f"`pipeline` cannot load the folder: {reason}") from None


def _compare_card(card: Path, measured: Mapping[str, float]) -> None:
    if not card.is_file():
        raise Wrong("The folder has no README.md.")
    text = card.read_text(encoding="utf-8")
    for name, value in measured.items():
        written = re.search(rf"{name}[^\d\n]*([01]?\.\d+|[01])\b", text)
        if not written:
            raise Wrong(f"The card does not say the {name}, as in `{name}: 0.87`.")
        if abs(float(written[1]) - value) > 0.006:
            raise Wrong(f"The card says {name} {written[1]}; on your test messages it is another number.")


def _probed(
    train: Sequence[tuple[str, str]],
    test: Sequence[tuple[str, str]],
    names: list[str],
    vectors_of: Callable[[list[str]], np.ndarray],
) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, held = (np.asarray(vectors_of([text for text, _ in side])) for side in (train, test))
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000))
    return probe.fit(x, [names.index(label) for _, label in train]).predict(held)
