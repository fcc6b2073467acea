"""Checks of the exercises of chapter 04, on feature extraction."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from chapters_src.data.emotions import LABELS
from chapters_src.evaluation import accuracy, paired_bootstrap
from chapters_src.exercises.checking import (
    Asked,
    Wrong,
    as_choice,
    as_function,
    as_kind,
    as_number,
    check_number,
    exercise,
    is_near,
    is_text,
    mapping_with,
    sequence_of,
    show,
)

FEAR = LABELS.index("fear")
PROMISE, EDITED, HALF = 0.8, 0.2, 0.5
FOLDS = 0.06  # of 4.3: how far the recall may be from what is promised, in folds that are not the reader's
MARKS = " .!?…"  # of 4.4: what may stand at the end of a message
NEAR = 0.035  # of 4.5: how far the means of two times ten splits may be apart
EDGE = 0.06  # of 4.6: so near to 0, an end of the interval may be on the other side in the reader's folds


@exercise("4.1")
def share_that_sorting_saves(share_saved: Any, *, lengths: Sequence[int]) -> str:
    """Count the positions of both orders."""
    sizes = (8, 64, 512)
    as_kind(share_saved, "share_saved", mapping_with(sizes), "a dictionary with the keys 8, 64 and 512")
    for size in sizes:
        orders = (lengths, sorted(lengths), sorted(lengths, reverse=True))
        unsorted, by_length, longest_first = (_positions(order, size) for order in orders)
        right = 1 - by_length / unsorted
        found, name = as_number(share_saved[size], f"share_saved[{size}]"), f"share_saved[{size}]"
        if is_near(found, 1 - longest_first / unsorted, 0.006):  # another last batch
            continue
        slips = {
            "That is the share that remains.": by_length / unsorted,
            "That compares with no padding at all, and sorting leaves some.": 1 - sum(lengths) / unsorted,
            "That is a share of the sorted work, not of the unsorted.": unsorted / by_length - 1,
            "Write a share as a number from 0 to 1.": lambda found: found > 1,
        }
        check_number(found, name, right, slips, "Count both orders with the same batch size.", within=0.006)
    return "Now say why not at the other two."


def _positions(lengths: Sequence[int], size: int) -> int:
    batches = [lengths[start : start + size] for start in range(0, len(lengths), size)]
    return sum(len(batch) * max(batch) for batch in batches)


@exercise("4.2")
def maximum_over_the_tokens(max_pool: object) -> str:
    """Pool messages alone, and beside longer ones."""
    pool = as_function(max_pool, "max_pool(hidden_states, attention_mask)")
    generator = torch.Generator().manual_seed(4)
    states = torch.randn((3, 6, 16), generator=generator) - 1
    states[:, :, 0] = -states[:, :, 0].abs() - 0.1  # never above zero
    states[:, :, 1] -= 20  # nor above a number that is only a little below it
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] * 2 + [0] * 4])
    whole = _pooled(pool, states[:1], mask[:1])
    if not is_near(whole, states[:1].amax(dim=1), 1e-5):
        which = "the mean" if is_near(whole, states[:1].mean(dim=1), 1e-5) else "not the maximum"
        raise Wrong(f"For a message without padding your vector is {which} over its tokens.")
    found = _pooled(pool, states, mask)
    expected = states.masked_fill(mask[..., None] == 0, -torch.inf).amax(dim=1)
    wrong = ~((found - expected).abs() <= 1e-5)  # NaN is wrong, too
    if wrong.any():
        row = int(wrong.any(dim=1).nonzero()[0])
        first = int(wrong[row].nonzero()[0])
        start = (
            f"A message of {int(mask[row].sum())} tokens, padded to 6, has {int(wrong[row].sum())} of 16 "
            "features that differ from those it has alone"
        )
        if is_near(found, states.amax(dim=1), 1e-5):
            raise Wrong(f"{start}: its padding takes part.")
        if found[row, first] == 0:
            raise Wrong(f"{start}: the first of them is 0, and all of its tokens are below that.")
        raise Wrong(f"{start}.")
    return "A message has the same vector alone and in company."


def _pooled(pool: Asked, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    if isinstance(found := pool(states, mask), tuple):  # of `max` with a dimension
        raise Wrong(f"{pool.called(states, mask)} gives {len(found)} things; wanted is one tensor.")
    return pool.tensor((len(states), states.shape[-1]), states, mask).float()


@exercise("4.3")
def threshold_for_fear(
    threshold: object, *, chances: np.ndarray, is_fear: np.ndarray, x: np.ndarray, y: np.ndarray
) -> str:
    """Count what it finds among training messages, in folds of the check's own."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    found = as_number(threshold, "threshold")
    if not 0 < found < 1:
        raise Wrong(f"`threshold` is {show(found)}; a probability lies between 0 and 1.")
    folds = StratifiedKFold(5, shuffle=True, random_state=4)
    unseen = cross_val_predict(_head(), x, y, cv=folds, method="predict_proba")[:, FEAR]
    recall = (unseen[y == FEAR] >= found).mean()
    says = f"In folds of the check's own it finds {recall:.0%} of the training messages of fear"
    if recall < 0.4:  # fewer than messages that were seen in training explain
        raise Wrong(f"{says}. Do {PROMISE:.0%} of their probabilities lie above your threshold, or below it?")
    if recall < PROMISE - FOLDS:
        asked = "Was the probe asked about messages that it was trained on, or about only a few?"
        raise Wrong(f"{says}. Other folds explain a few points, not so many. {asked}")
    if recall > PROMISE + FOLDS:
        raise Wrong(f"{says}, at the price of more false alarms than the promise needs.")
    alarm = np.asarray(chances) >= found
    return (
        f"{says}. On the validation split it finds {alarm[is_fear].mean():.0%}, and "
        f"{is_fear[alarm].mean():.0%} of its alarms are right."
    )


@exercise("4.4", takes="a few seconds")
def another_shortcut(
    edit: object, removed: object,
    *, vectors_of: Callable[[list[str]], np.ndarray], texts: Sequence[str], x: np.ndarray, y: np.ndarray,
) -> str:  # fmt: skip
    """Edit messages, take the direction out, train again, and count the answers that change."""
    change = as_function(edit, "edit(text)")
    texts = list(texts)
    edited = [change.gives(str, "a string", text) for text in texts]
    for text, other in zip(texts, edited, strict=True):
        if _letters(text) != _letters(other):
            raise Wrong(f"{change.called(text)} gives {show(other)}: it changes letters or digits.")
        if _words(text) != _words(other):
            raise Wrong(f"{change.called(text)} gives {show(other)}: it joins words, or cuts them.")
    exclaims = sum(map(_exclaims, texts, edited))
    if 2 * exclaims > len(texts):
        known = "the shortcut that the chapter has found. Find another one."
        raise Wrong(f"Your edit puts an `!` into {exclaims} of {len(texts)} messages: {known}")
    before, after = np.asarray(vectors_of(texts)), np.asarray(vectors_of(edited))
    head = _head().fit(x, y)
    share = (head.predict(before) != head.predict(after)).mean()
    says = f"Your edit changes {share:.0%} of {len(texts)} answers"
    if is_near(before, after, 1e-5):
        raise Wrong(f"{says}: to the encoder the texts are the same. It drops upper case, for one.")
    if share < EDITED:
        raise Wrong(f"{says}, and {EDITED:.0%} are wanted.")

    def is_direction(it: Any) -> bool:
        return np.shape(it) == (x.shape[1],) and is_near(np.linalg.norm(it), 1, 1e-3)

    as_kind(removed, "removed", is_direction, f"a vector of length 1 with {x.shape[1]} entries")
    u = np.asarray(removed, dtype=float)
    own = (after - before).mean(axis=0)
    if abs(own @ u) > 0.9999 * np.linalg.norm(own):
        raise Wrong("`removed` is the direction of the very messages that are scored. Take others.")
    head = _head().fit(_without(x, u), y)
    left = (head.predict(_without(before, u)) != head.predict(_without(after, u))).mean()
    if left > HALF * share:
        raise Wrong(f"{says}, and {left:.0%} still change without the direction: more than half as many.")
    return f"{says}; without the direction, {left:.0%}."


def _exclaims(text: str, other: str) -> bool:
    """Whether an edit adds an exclamation mark, or ends a message with one and does nothing else."""
    text, other = (unicodedata.normalize("NFKC", each) for each in (text, other))  # wide and double marks
    at_the_end = other.rstrip().endswith("!") and other.rstrip(MARKS) == text.rstrip(MARKS)
    return at_the_end or other.count("!") > text.count("!")


def _letters(text: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFC", text) if char.isalnum()).lower()


def _words(text: str) -> list[str]:
    """Return the runs of letters and digits; an apostrophe, or what nobody sees, does not end one."""
    return re.findall(r"[^\W_]+", re.sub(r"['\u2019\u00ad\u200b-\u200f\u2060\ufeff]", "", text.lower()))


def _without(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    return x - np.outer(x @ u, u)


def _head() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=2000))


@exercise("4.5", takes="a few seconds")
def copies_before_and_after_a_split(
    copied_then_split: object, split_then_copied: object, *, x: np.ndarray, y: np.ndarray
) -> str:
    """Do both with splits of the check's own."""
    first = as_number(copied_then_split, "copied_then_split")
    second = as_number(split_then_copied, "split_then_copied")
    wrong_order, right_order, plain_accuracy = _both_orders(x, y)
    said = f"Your scores are {show(first)} and {show(second)}."
    if abs(first - second) < NEAR / 2 and second > right_order + NEAR:
        raise Wrong(f"{said} Do the rows that are held out have copies in both?")
    if abs(first - right_order) < NEAR and abs(second - wrong_order) < NEAR:
        raise Wrong(f"{said} Which of the two orders flatters?")
    slips = {
        "A mean of recalls lies between 0 and 1.": lambda found: not 0 <= found <= 1,
        "Is that the accuracy, in place of the mean of the recalls?": plain_accuracy,
    }
    given = {"copied_then_split": (first, wrong_order), "split_then_copied": (second, right_order)}
    for name, (found, expected) in given.items():
        otherwise = "It comes out otherwise in splits of the check's own."
        check_number(found, name, expected, slips, otherwise, within=NEAR)
    return f"The wrong order flatters by {100 * (first - second):.0f} points."


def _both_orders(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Return the mean recall in both orders, over ten splits, and the accuracy in the second."""
    generator = np.random.default_rng(4)
    distance = (x**2).sum(axis=1) - 2 * x @ x.T
    scores = []
    for _ in range(10):
        order = generator.permutation(len(y))
        mixed = generator.permutation(_copied(order, y, generator))
        fifth, fifth_mixed = len(order) // 5, len(mixed) // 5
        held, rest = order[:fifth], order[fifth:]
        wrong_order, _ = _nearest(mixed[fifth_mixed:], mixed[:fifth_mixed], distance, y)
        scores.append((wrong_order, *_nearest(rest, held, distance, y)))
    first, second, third = np.mean(scores, axis=0).tolist()
    return first, second, third


def _copied(rows: np.ndarray, y: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    most = np.bincount(y[rows]).max()
    parts = [rows]
    for label in np.unique(y[rows]):
        own = rows[y[rows] == label]
        parts.append(generator.choice(own, most - len(own)))
    return np.concatenate(parts)


def _nearest(rows: np.ndarray, held: np.ndarray, distance: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return mean recall and accuracy of the nearest neighbor."""
    rows = np.unique(rows)  # copies change no neighbor
    right = y[rows][distance[np.ix_(held, rows)].argmin(axis=1)] == y[held]
    recalls = [right[y[held] == label].mean() for label in np.unique(y[held])]
    return float(np.mean(recalls)), float(right.mean())


@exercise("4.6", takes="a few seconds")
def texts_of_your_own(
    own_texts: object, own_labels: object, verdict: object, *, vectors_of: Callable[[list[str]], np.ndarray]
) -> str:
    """Compare both classifiers in folds of the check's own."""
    texts, labels = (
        list(as_kind(answer, name, sequence_of(is_text), "a list of strings, none of them empty"))
        for answer, name in ((own_texts, "own_texts"), (own_labels, "own_labels"))
    )
    as_choice(verdict, "verdict", ("encoder", "counts", "open"))
    if len(texts) != len(labels) or len(texts) < 60:
        raise Wrong(f"{len(texts)} texts and {len(labels)} labels: wanted are as many, and 60 or more.")
    plain = [" ".join(_words(text)) or text for text in texts]  # another mark makes no other text
    twice = [text for text, own in zip(texts, plain, strict=True) if plain.count(own) > 1]
    if twice:
        again = "occurs more than once, or again with other marks: it could be on both sides of a split."
        raise Wrong(f"{show(twice[0])} {again}")
    names, counts = np.unique(labels, return_counts=True)
    if not 2 <= len(names) <= 5 or counts.min() < 5:
        wanted = "Wanted are two to five classes of 5 texts or more."
        raise Wrong(f"You have {len(names)} classes, the smallest of {counts.min()}. {wanted}")
    encoder, counted = _in_folds(np.asarray(vectors_of(texts)), texts, labels)
    true = np.unique(labels, return_inverse=True)[1]
    lead = paired_bootstrap(accuracy, true, encoder, counted, seed=4)
    found = "encoder" if lead.low > 0 else "counts" if lead.high < 0 else "open"
    scores = (
        f"Encoder {accuracy(true, encoder):.2f}, counts {accuracy(true, counted):.2f}, largest class "
        f"{counts.max() / counts.sum():.2f}; the lead is {lead.low:+.2f} to {lead.high:+.2f}"
    )
    allowed = {found}
    if min(abs(lead.low), abs(lead.high)) < EDGE:  # other folds may say otherwise
        allowed |= {"open", "encoder" if lead.estimate > 0 else "counts" if lead.estimate < 0 else "open"}
    if verdict not in allowed:
        raise Wrong(f"{scores}, in the check's folds. Does that go with your verdict?")
    return f"{scores}."


def _in_folds(x: np.ndarray, texts: list[str], labels: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Classify each text by classifiers that have not seen it: on vectors, and on word counts."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    y = np.unique(labels, return_inverse=True)[1]
    folds = StratifiedKFold(5, shuffle=True, random_state=4)
    counter = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=10, max_iter=2000))
    encoder = cross_val_predict(_head(), x, y, cv=folds)
    return encoder, cross_val_predict(counter, texts, y, cv=folds)
