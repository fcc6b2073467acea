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
    Wrong,
    as_function,
    as_kind,
    as_number,
    check_number,
    compare,
    exercise,
    is_near,
    required,
    sequence_of,
    show,
)

SIZES = (10, 4, 2)  # of 5.1: the parts
RANK = 16  # of 5.2
NEAR = 0.012  # of 5.4: a temperature moves a few messages from half to half
EXACT = 0.0006  # of 5.4: three digits
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
    of_means = gradient(lambda size: 1 / (len(SIZES) * size))
    backward_passes: list[torch.Tensor] = []
    counter = model.weight.register_post_accumulate_grad_hook(backward_passes.append)
    asked(model, parts)
    counter.remove()
    found = model.weight.grad
    if not torch.equal(model.weight.detach(), before):
        raise Wrong("The weights have changed. Leave the step to the optimizer.")
    if found is None:
        raise Wrong("Afterwards the model has no gradient in `weight.grad`.")
    cosine = float(F.cosine_similarity(found.flatten(), whole.flatten(), dim=0))
    times = found.norm() / whole.norm()
    has = f"your gradient has another direction: its cosine with the right one is {cosine:.2f}."
    if cosine > 0.9999:
        has = f"your gradient has the right direction, and is {times:.3g} times as long."
    last = parts[-1:]
    slips = {
        "each part counts the same, whatever its size.": of_means,
        "the means of the parts are added up.": gradient(lambda size: 1 / size),
        "only the last part has left a gradient.": gradient(lambda size: 1 / size, last),
        "only the last part has left a gradient, a small one.": gradient(lambda size: 1 / sum(SIZES), last),
    }
    start = f"With parts of {', '.join(map(str, SIZES[:-1]))} and {SIZES[-1]}, "
    compare(found, whole, slips, has, start=start, within=1e-5)
    if len(backward_passes) == 1:
        raise Wrong(
            "The gradient is right, but one backward pass made it, so all parts were in memory at once. Let "
            "each part have its own."
        )
    off = float((of_means - whole).norm() / whole.norm())
    return f"The parts add up to the whole batch. The mean of their means would be off by {off:.0%} here."


@exercise("5.2")
def weights_of_a_rank(
    trained: object, break_even: object, *, width: int, num_layers: int, num_classes: int
) -> str:
    """Count them from the shapes."""
    corrections, head = 2 * num_layers * 2 * RANK * width, (width + 1) * num_classes
    slips = {
        "Something else is trained besides the corrections.": corrections,
        "Has the head only a matrix?": corrections + width * num_classes,
        f"That is for one matrix in a layer, or for rank {RANK // 2}.": corrections // 2 + head,
        "That has the size of half of it, and no head.": corrections // 2,
    }
    check_number(
        trained, "trained", corrections + head, slips, f"Each matrix has an A and a B of rank {RANK}."
    )
    even = as_number(break_even, "break_even")
    slips = {
        "At this rank A alone has as many weights as the matrix; A and B are two.": width,
        "A rank is above 0.": lambda rank: rank <= 0,
    }
    otherwise = f"There A and B have {2 * even * width:,.0f} weights, the matrix {width**2:,}."
    check_number(break_even, "break_even", width / 2, slips, otherwise)
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
        found = np.asarray(asked(logits, old, new), dtype=float)
        if found.shape != logits.shape:
            raise Wrong(f"For 50 messages and 3 classes it gives {show(found)}.")
        start = f"With old shares {old.round(2).tolist()} and new ones {new.round(2).tolist()}, "
        if is_near(found, wanted, 1e-4):
            raise Wrong(f"{start}you give probabilities. Wanted are logits.")
        slips = {
            "the answers move away from what has become common.": logits + np.log(old) - np.log(new),
            "the answers are those for equal shares.": logits - np.log(old),
            "the answers are what they were.": logits,
            "the old shares are still in it.": logits + np.log(new),
        }
        slips = {hint: _softmax(other) for hint, other in slips.items()}
        otherwise = "the probabilities are not those of Bayes' rule."
        compare(_softmax(found), wanted, slips, otherwise, start=start, within=1e-4)
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
    by_logit = _halves(right[np.argsort(-logits.max(axis=1), kind="stable")])
    start = f"{show(found[0])} and {show(found[1])}: "
    if is_near(found, by_logit, EXACT) and not is_near(found, expected, EXACT):
        raise Wrong(f"{start}those halves are by the highest logit. Is that a confidence?")
    slips = {
        "which of the two halves is the surer one?": expected[::-1],
        "these are the first and the last half of the split, in its order.": _halves(right),
        "write a share as a number from 0 to 1.": [100 * share for share in expected],
    }
    compare(found, expected, slips, "halves by confidence come out otherwise.", start=start, within=NEAR)
    return f"On all messages it is right for {right.mean():.1%}."


def _halves(right: np.ndarray) -> tuple[float, float]:
    first, second = np.array_split(right, 2)
    return float(first.mean()), float(second.mean())


@exercise("5.5")
def plausible_errors(
    count: object, planted: object,
    *, logits: Any, given: np.ndarray, correct: np.ndarray, second: Mapping[int, int],
) -> str:  # fmt: skip
    """Look for second readings and for the reader's errors in the highest tenth."""
    as_number(count, "count")
    rows = np.array(sorted(second))
    reread = [second[row] for row in rows]
    still_wrong = "The labels that were wrong before are still wrong in that."
    slips = {
        still_wrong: _in_tenth(logits, _changed(given, rows, reread), rows),
        "So many of these messages are there with their first reading.": _in_tenth(logits, correct, rows),
    }
    otherwise = f"Sort by the loss for the new labels; a tenth is {len(given) // 10} messages."
    expected = _in_tenth(logits, _changed(correct, rows, reread), rows)
    check_number(count, "count", expected, slips, otherwise)
    own_rows, own_labels = _as_planted(planted, logits, correct, second)
    losses = cross_entropies(logits, _changed(correct, own_rows, own_labels))
    highest = np.argsort(-losses, kind="stable")[: len(losses) // 10]
    hidden = sorted(set(own_rows.tolist()) - set(highest.tolist()))
    which = f" (rows {', '.join(map(str, hidden))})" if hidden else ""
    told = f"{len(hidden)} of your {PLANTED} hide below the highest tenth{which}"
    return f"{told}; of random errors {_hidden_by_chance(logits, correct):.1f} would."


def _as_planted(
    planted: Any, logits: Any, correct: np.ndarray, second: Mapping[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    wanted = f"a dictionary of {PLANTED} rows and labels"
    as_kind(planted, "planted", lambda it: isinstance(it, Mapping) and len(it) == PLANTED, wanted)
    for row, label in planted.items():
        if isinstance(row, str) or isinstance(label, str):
            raise Wrong(f"Row {show(row)} with label {show(label)}: write both as numbers.")
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
    required(folder, "folder")
    wanted = "a list of pairs (message, name of its class)"
    train, test = (
        as_kind(pairs, name, sequence_of(sequence_of(str, 2)), wanted)
        for pairs, name in ((own_train, "own_train"), (own_test, "own_test"))
    )
    if len(train) + len(test) < FEWEST or len(test) < FEWEST_HELD_OUT:
        wanted = f"wanted are {FEWEST}, {FEWEST_HELD_OUT} of them to test."
        raise Wrong(f"{len(train)} and {len(test)} messages: {wanted}")
    names = sorted({label for _, label in train})
    if len(names) < 2 or {label for _, label in test} != set(names):
        raise Wrong("Both sides need all of your classes, two or more.")
    _refuse_twins([text for text, _ in train], [text for text, _ in test])
    predicted = _answers(folder, [text for text, _ in test])
    if unknown := set(predicted) - set(names):
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


def _refuse_twins(train: Sequence[str], test: Sequence[str]) -> None:
    def words(text: str) -> set[str]:
        return set(re.findall(r"\w+", text.lower()))

    known = {text: words(text) for text in train}
    for text in test:
        own = words(text)
        for twin, other in known.items():
            if own and len(own & other) >= ALIKE * len(own | other):
                raise Wrong(f"{show(text)} is tested, and {show(twin)} trained on: nearly the same.")


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
    train: Sequence[Sequence[str]], test: Sequence[Sequence[str]], names: list[str], vectors_of: Callable
) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, held = (np.asarray(vectors_of([text for text, _ in side])) for side in (train, test))
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000))
    return probe.fit(x, [names.index(label) for _, label in train]).predict(held)
