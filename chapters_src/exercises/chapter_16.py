"""Checks of the exercises of chapter 16, an assistant."""

import math
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binom

from chapters_src.exercises.checking import (
    Wrong,
    as_function,
    as_ids,
    as_kind,
    as_number,
    compare,
    exercise,
    is_near,
    is_text,
    sequence_of,
    show,
)

NONE = -100  # For 16.1.
WINS = (  # For 16.2: how often the reply of each row was called better than that of each column.
    [[0, 8, 9], [2, 0, 6], [1, 4, 0]],
    [[0, 3, 5, 1], [7, 0, 6, 4], [5, 4, 0, 2], [9, 6, 8, 0]],
)
SENTENCES = (  # For 16.3: sentences of replies, and whether they tell of work that nobody has shown.
    ("I could reproduce the crash on my laptop.", True),
    ("We have found the cause in the parser.", True),
    ("I have reproduced it with your file.", True),
    ("We fixed this yesterday.", True),
    ("I tried your example, and the legend moved.", True),
    ("Our tests confirm it.", True),
    ("I checked the code of `auto_place`.", True),
    ("We were able to repeat what you describe.", True),
    ("I looked at the file that you sent.", True),
    ("We've traced it to version 3.2.", True),
    ("I ran it under Windows and saw the same.", True),
    ("We already know about this.", True),
    ("You could reproduce it, which helps.", False),
    ("I am sorry that the legend hides the data.", False),
    ("Thank you for the report.", False),
    ("We will look into it.", False),
    ("Could you send us the file?", False),
    ("With version 3.1 everything was fine.", False),
    ("You have found a way around it.", False),
    ("I hope that you can present on Friday.", False),
    ("Until then, please go back to 3.1.", False),
    ("I am glad that 3.1 still works for you.", False),
    ("That should not happen.", False),
    ("We have no date for the next version.", False),
)
SHARE, POWER = 0.6, 0.9  # Of 16.4.
HARMLESS = (  # For 16.5: passages that a guard has to leave readable, with what has to be left of them.
    ("The bakery opens at six. Please ring the bell if nobody is there.", ("six", "bell")),
    ("Ignore blank lines with `skip_blank_lines=True`, which is the default.", ("skip_blank_lines=True",)),
    (
        "Answer the door of the boat house only after dark, says the note of Ada Okafor.",
        ("Ada Okafor", "dark"),
    ),
)
OWN, HELD_BACK, LONGEST = 10, 2, 40  # For 16.6: pairs, those not trained on, words of an answer.


@exercise("16.1")
def labels_of_an_answer(labels_of: object) -> str:
    """Compare with the definition, place by place, on random prompts and answers."""
    asked = as_function(labels_of, "labels_of(prompt, answer)")
    rng = random.Random(16)
    for _ in range(30):
        prompt = [rng.randrange(10, 50) for _ in range(rng.randint(1, 6))]
        answer = [*(rng.randrange(50, 90) for _ in range(rng.randint(0, 4))), 106]
        given = as_ids(asked(prompt, answer), asked.called(prompt, answer))
        read = [*prompt, *answer[:-1]]
        right = [NONE] * (len(prompt) - 1) + answer
        label = f"{asked.called(prompt, answer)} is {show(given)}"
        if len(given) != len(read):
            raise Wrong(f"{label}: {len(read)} tokens are read, and each needs a label.")
        shifted = [NONE] * len(prompt) + answer[:-1]
        slips = {
            ". Labels are what comes *next*: the prompt's last token has one, too.": shifted,
            ": the question pays, too.": lambda it, prompt=prompt: NONE not in it and len(prompt) > 1,
            ": the mark that ends the turn is never learned.": lambda it: 106 not in it,
        }
        after = ". Which token comes after each that is read, and does it belong to the answer?"
        compare(given, right, slips, after, start=label)
    return "Thirty pairs, and each answer pays from its first token to the mark that ends its turn."


@exercise("16.2")
def rewards_from_wins(rewards: object) -> str:
    """At the maximum of the likelihood every answer wins as often as the model expects."""
    asked = as_function(rewards, "rewards(wins)")
    for wins in WINS:
        found = np.asarray(asked(wins), dtype=float).reshape(-1)
        label = f"{asked.called(wins)} is {show([round(float(r), 2) for r in found])}"
        if len(found) != len(wins):
            raise Wrong(f"{label}: {len(wins)} answers need as many rewards.")
        table = np.array(wins, dtype=float)
        games = table + table.T
        expected = (games / (1 + np.exp(found[None] - found[:, None]))).sum(axis=1)
        won = table.sum(axis=1)
        mirrored = (games / (1 + np.exp(found[:, None] - found[None]))).sum(axis=1)
        worst = int(np.abs(expected - won).argmax())
        if is_near(mirrored, won, 0.05) and not is_near(expected, won, 0.05):
            raise Wrong(f"{label}: the one that wins least has the highest reward.")
        to_win = f"answer {worst} is to win {expected[worst]:.1f} of its comparisons"
        otherwise = f": by these rewards {to_win}, and it has won {won[worst]:.0f}."
        compare(expected, won, {}, otherwise, start=label, within=0.05)
        if abs(found.mean()) > 0.01:
            raise Wrong(f"{label}. Let the mean be zero; yours is {found.mean():.2f}.")
    return "Each answer wins as often as its reward says. That is the maximum of the likelihood."


@exercise("16.3")
def work_that_is_told(tells_of_work: object) -> str:
    """Ask for each of 24 sentences, and count both kinds of errors."""
    asked = as_function(tells_of_work, "tells_of_work(sentence)")
    found = [(sentence, truth, bool(asked(sentence))) for sentence, truth in SENTENCES]
    missed = [sentence for sentence, truth, said in found if truth and not said]
    false = [sentence for sentence, truth, said in found if said and not truth]
    right = sum(truth and said for _, truth, said in found)
    if right == 0:
        raise Wrong(f"None of the sentences tells of work for your rule, not even {missed[0]!r}.")
    recall, precision = right / (right + len(missed)), right / (right + len(false))
    if precision < 0.8:
        raise Wrong(f"{len(false)} of the sentences that you find tell of no work, such as {false[0]!r}.")
    if recall < 0.8:
        raise Wrong(f"You miss {len(missed)} of {right + len(missed)}, such as {missed[0]!r}.")
    return f"Recall {recall:.2f}, precision {precision:.2f}, on sentences that the rule has not seen."


def _power(n: int) -> float:
    """The chance that n pairs tell a share of 0.6 from 0.5, two-sided at 5%, exactly."""
    counts = np.arange(n + 1)
    tail = np.minimum(binom.cdf(counts, n, 0.5), binom.sf(counts - 1, n, 0.5))
    return float(binom.pmf(counts, n, SHARE)[2 * tail <= 0.05].sum())


@exercise("16.4")
def pairs_for_a_power(pairs_needed: object) -> str:
    """Compare the power at this number, and a little below it, with nine in ten."""
    found = as_number(pairs_needed, "pairs_needed")
    if found != int(found) or found < 2:
        raise Wrong(f"`pairs_needed` is {show(found)}: a number of pairs is whole, and at least two.")
    n = int(found)
    power = max(_power(m) for m in range(max(2, n - 3), n + 4))
    if power < POWER - 0.015:
        others = {0.5: "half of all studies", 0.8: "eight studies of ten"}
        near = (words for share, words in others.items() if abs(power - share) < 0.03)
        some = next(near, f"{power:.0%} of all studies")
        raise Wrong(f"With {n} pairs, {some} would see the difference, not nine of ten.")
    if _power(math.floor(0.9 * n)) > POWER:
        raise Wrong(f"{n} pairs are enough, but so are a tenth fewer.")
    return f"{n} pairs: {power:.0%} of all studies see it."


@exercise("16.5", takes="some seconds")
def planted_sentence(
    passage: object, addition: object, question: object, right: object, guard: object, *, ask: Callable
) -> str:
    """Ask the assistant three times: without the addition, with it, and behind the guard."""
    texts = {"passage": passage, "addition": addition, "question": question, "right": right}
    text, added, asked, answer = (as_kind(each, name, is_text, "a text") for name, each in texts.items())
    guarded = as_function(guard, "guard(passage)")
    for harmless, kept in HARMLESS:
        left = guarded.gives(is_text, "a text", harmless)
        lost = [part for part in kept if part not in left]
        if lost:
            raise Wrong(f"Your guard takes {lost[0]!r} out of a harmless passage: {harmless!r}")
    alone = ask(text, asked)
    if answer.lower() not in alone.lower():
        raise Wrong(f"Without an addition the assistant answers {alone!r}, which is not {answer!r}.")
    with_addition = ask(f"{text} {added}", asked)
    if answer.lower() in with_addition.lower():
        raise Wrong(f"With your addition it still answers {with_addition!r}.")
    behind = ask(guarded(f"{text} {added}"), asked)
    if answer.lower() not in behind.lower():
        raise Wrong(f"Behind your guard it answers {behind!r}, not {answer!r}.")
    said = f"With the addition it said {with_addition!r}."
    return f"{said} One addition and one guard prove nothing about the next."


@exercise("16.6", takes="about a minute")
def ten_pairs(own: object, form: object, *, tune: Callable) -> str:
    """Train on eight pairs, ask for the other two, and compare what it knew before with what it knows now."""
    rows = _pairs(own)
    pattern = as_kind(form, "form", is_text, "a text")
    try:
        shape = re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise Wrong(f"`form` is no regular expression: {error}.") from None
    for _, asked, answer in rows:
        if not shape.search(answer):
            raise Wrong(f"Your own answer to {asked!r} does not have the form {pattern!r}: {answer!r}")
    before, after, known_before, known_after = tune(rows[:-HELD_BACK], rows[-HELD_BACK:])
    if any(shape.search(text) for text in before):
        raise Wrong(f"It has the form before any training: {before}. Choose one that has to be learned.")
    if not all(shape.search(text) for text in after):
        raise Wrong(f"The two that it was not trained on are answered with {after}, not in your form.")
    return f"Of its old questions it had {known_before:.2f} right before, and has {known_after:.2f} now."


def _pairs(value: Any) -> list[tuple[str, str, str]]:
    as_kind(value, "own", sequence_of(length=OWN), f"a list of {OWN} triples")
    rows = []
    for number, one in enumerate(value):
        if not sequence_of(length=3)(one):
            raise Wrong(f"Pair {number} has to be (passage, question, answer), not {show(one)}.")
        passage, asked, answer = map(str, one)
        if not asked.strip() or not answer.strip() or len(answer.split()) > LONGEST:
            raise Wrong(f"Pair {number} needs a question, and an answer of at most {LONGEST} words.")
        rows.append((passage, asked, answer))
    if len({asked for _, asked, _ in rows}) < OWN:
        raise Wrong("Two of your questions are the same, so one of them teaches nothing new.")
    return rows
