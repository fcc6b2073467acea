"""Checks of the exercises of chapter 14, on summarization."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chapters_src.evaluation import bootstrap_interval, rouge, rouge_n, rouge_tokens
from chapters_src.exercises.checking import (
    Wrong,
    as_function,
    as_kind,
    as_number,
    check_number,
    exercise,
    is_near,
    is_text,
    mapping_with,
    required,
    sequence_of,
    show,
)
from chapters_src.tokenization.sentences import split_sentences

LENGTHS = range(4, 31)  # of 14.2, in words
DENIALS = {"never", "not", "no", "nothing", "none", "cannot", "without"}
MESSAGES = {  # of 14.5: each with what its line has to name
    "Good evening, I bought your coffee machine in May. Since yesterday the lid does not close any more, "
    "and the steam goes everywhere but into the milk. My sister says that I hold it wrong. Please send me a "
    "new lid.": r"\blid\b",
    "Dear library, your calendar says that the reading room is open on Sunday. I stood in front of a locked "
    "door for an hour, in the rain, with two children. Please correct the calendar.": (
        r"calendar|reading room|sunday"
    ),
    "Hi, the new version of your map shows my street under water. My neighbors have begun to ask questions. "
    "The old version had it on dry land. Can you put the street back?": r"\bmap|street|water",
    "Hello, you charged me twice for the same ticket to Bergen. I have written three times, and got three "
    "thanks for my interest. I would like my money back.": r"twice|charge|money|paid",
    "Dear support, my password is refused since Tuesday. I have reset it four times, and every time the "
    "mail with the link comes a day later, when it is no longer valid.": r"password",
    "Good morning, the printer in room 12 prints everything in green. It did so before the holidays, and "
    "you said that it would pass. It has not passed.": r"green",
}
TELLING = {"lid", "coffee", "steam", "calendar", "library", "map", "street", "ticket", "charged", "twice"}
TELLING |= {"password", "printer", "green"}  # Two of them in one example are too many.
NAMED, RUN = 5, 8  # of 14.5: lines that have to name it; words in a row that are taken from a message
SPOILED = ("Never in front", "not behind the first word", "a neighbor's line", "a far text's line")
UNNAMED = ("Fails to in front", "two words exchanged")  # the task does not name them, and they are not judged
KINDS = ("ROUGE-1", "ROUGE-L", "unsupported words")  # of 14.4
BETTER, WORSE = 0.05, 0.02  # of 14.6; the lines of others have to be told apart a little better, too

Lines = Sequence[str]


def _mean(lines: Lines, references: Lines) -> float:
    """The mean ROUGE-1 of lines, of 100."""
    both = zip(lines, references, strict=True)
    return 100 * float(np.mean([rouge_n(line, reference, 1).f1 for line, reference in both]))


@exercise("14.1", takes="a few seconds")
def way_of_the_first_sentence(share: object, *, bodies: Lines, references: Lines) -> str:
    """Score the first sentence, the best one, and the line of another text."""
    as_number(share, "share")
    half = len(references) // 2
    of_each = [
        [rouge_n(sentence, line, 1).f1 for sentence in split_sentences(body)]
        for body, line in zip(bodies, references, strict=True)
    ]
    lead = 100 * float(np.mean([scores[0] for scores in of_each]))
    top = 100 * float(np.mean([max(scores) for scores in of_each]))
    floor = _mean([*references[half:], *references[:half]], references)
    expected = (lead - floor) / (top - floor)
    first_is_best = float(np.mean([scores[0] == max(scores) for scores in of_each]))
    slips = {
        f"That takes the way to begin at 0, but the line of another text has {floor:.1f}.": lead / top,
        "That is how often the first sentence is the best one.": first_is_best,
        "That is the part of the way that it leaves.": 1 - expected,
        "That is the score of the best sentences, the end of the way.": top,
        "That is the score of the first sentence.": lead,
        "That is in percent; a share is from 0 to 1.": 100 * expected,
    }
    otherwise = "How far is the first sentence from another text's line, and how far the best one?"
    check_number(share, "share", expected, slips, otherwise, within=0.006, relative=0.005)
    return (
        f"Another text's line has {floor:.1f}, the first sentence {lead:.1f}, the best one {top:.1f}: even "
        "that is far from 100. It lacks words of the author's line, and has many that the line lacks."
    )


@exercise("14.2", takes="a few seconds")
def first_sentence_cut(k: object, gain: object, *, pairs: Mapping[str, Sequence[Any]]) -> str:
    """Choose on the validation split, and measure on the test split."""
    chosen = as_number(k, "k")
    curves, whole = {}, {}
    for split in ("validation", "test"):
        lines = [pair.summary for pair in pairs[split]]
        firsts = [split_sentences(pair.body)[0] for pair in pairs[split]]
        whole[split] = _mean(firsts, lines)
        curves[split] = {n: _mean([" ".join(first.split()[:n]) for first in firsts], lines) for n in LENGTHS}
    best, best_in_test = (max(curve, key=curve.__getitem__) for curve in curves.values())
    validation, test = curves["validation"], curves["test"]
    seen = "It has to be from 4 to 30"
    if chosen in validation:
        seen = f"There the validation split has {validation[int(chosen)]:.2f}"
    slips = {"That is the best one on the test split. It must not see the test.": best_in_test}
    check_number(k, "k", best, slips, f"{seen}; its best is {validation[best]:.2f}.")
    expected, promised = test[best] - whole["test"], validation[best] - whole["validation"]
    slips = {
        "The sign: positive if cutting helps.": -expected,
        "In points, please, of 100.": lambda found: is_near(found, expected / 100, 0.006),
        "That is the score after the cut. What was it before?": test[best],
        "That is the score on the validation split.": validation[best],
        "That is the gain where you chose. What is it on the test split?": promised,
    }
    otherwise = "Subtract the mean of the whole sentences from that of the cut ones."
    check_number(gain, "gain", expected, slips, otherwise, within=0.06)
    return f"Where it was chosen, the cut brings {promised:+.1f}; on the test split {expected:+.1f}."


@exercise("14.3", takes="a few seconds")
def cheap_denial(
    deny: object, *, lines: Lines, references: Lines, meaning: Callable[[list[str], list[str]], np.ndarray]
) -> str:
    """Look for the denial in each line, and compare what it costs with what "Never" costs."""
    asked = as_function(deny, "deny(line)")
    denied = []
    for line in lines:
        found = asked.gives(str, "a line", line)
        old, new = rouge_tokens(line), rouge_tokens(found)
        said = [i for i, word in enumerate(new) if word in DENIALS and word not in old]
        begin = f"{asked.called(line)} gives {show(found)}"
        if not said:
            raise Wrong(f"{begin}, which has no new word of denial. Commas and capitals deny nothing.")
        if (Counter(old) - Counter(new)).total() > 1 or (Counter(new) - Counter(old)).total() > 2:
            raise Wrong(f"{begin}: that is another line, not this one denied.")
        if 2 * said[0] >= len(new):
            raise Wrong(f"{begin}. A denial so late is not one of the whole line.")
        denied.append(found)
    before = _mean(lines, references)
    cost = before - _mean(denied, references)
    never = before - _mean([f"Never {line}" for line in lines], references)
    if cost >= never:
        costs = f"It costs {cost:.1f} points of ROUGE-1, and *Never* in front costs {never:.1f}."
        raise Wrong(f"{costs} Which words of a line are seldom a match?")
    apart = float(np.mean(meaning(list(lines), list(references)) - meaning(denied, list(references))))
    return (
        f"Every line is denied, for {cost:.1f} points of ROUGE-1 (*Never* in front: {never:.1f}) and "
        f"{apart:.2f} of meaning."
    )


@exercise("14.4", takes="some seconds")
def worth_of_beams(
    greedily: Any, verdicts: Any,
    *, bodies: Lines, references: Lines, lines: Lines, unsupported: Callable[[str, str], list[str]],
    summarize: Callable[..., list[str]],
) -> str:  # fmt: skip
    """Write some lines with one beam, and bootstrap the paired differences."""
    as_kind(greedily, "greedily", sequence_of(length=len(bodies)), f"a list of {len(bodies)} lines")
    if list(greedily) == list(lines):
        raise Wrong("`greedily` has the lines of four beams. How many beams does `summarize` take by itself?")
    few = summarize(list(bodies[:8]), num_beams=1)
    if sum(a == b for a, b in zip(few, greedily, strict=False)) < 7:
        raise Wrong(f"With one beam the first line is {show(few[0])}; yours is {show(greedily[0])}.")
    as_kind(verdicts, "verdicts", mapping_with(KINDS), f"a dictionary with the keys {', '.join(KINDS)}")
    ours, theirs = (100 * rouge(list(some), list(references)) for some in (lines, greedily))
    fewer, more = (
        np.array([len(unsupported(line, body)) for line, body in zip(some, bodies, strict=True)])
        for some in (lines, greedily)
    )
    differences = (ours["rouge1"] - theirs["rouge1"], ours["rougeL"] - theirs["rougeL"], more - fewer)
    gains = dict(zip(KINDS, map(np.asarray, differences), strict=True))
    told = []
    for name, gain in gains.items():
        x, low, high = bootstrap_interval(np.mean, gain)
        word = "ahead" if low > 0 else "behind" if high < 0 else "undecided"
        told.append(f"{name} {x:+.2f} ({low:+.2f} to {high:+.2f})")
        if verdicts[name] != word:
            asked_back = "Who is compared with whom, and is more better?"
            if word == "undecided":
                asked_back = "Does the interval of the differences hold 0?"
            elif verdicts[name] == "undecided":
                asked_back = "Did you take the difference text by text?"
            raise Wrong(f"{name}: not {verdicts[name]!r}. {asked_back}")
    return f"{'; '.join(told)}. About truth none of the three says anything."


@exercise("14.5", takes="half a minute")
def examples_for_messages(my_examples: Any, *, continued: Callable[[list[str]], list[str]]) -> str:
    """Let Gemma sum up six messages, and look for what has to be named."""
    as_kind(my_examples, "my_examples", sequence_of(length=3), "a list of three pairs")
    is_pair = sequence_of(lambda text: is_text(text) and "\n" not in text, 2)
    for pair in my_examples:
        if not is_pair(required(pair, "an example")):
            raise Wrong(f"An example is a pair of a text and a line, without line breaks, not {show(pair)}.")
        if len(pair[1]) >= len(pair[0]):
            raise Wrong(f"The line {show(pair[1])} is not shorter than its text.")
        words = set(rouge_tokens(" ".join(pair)))
        taken = [run for message in MESSAGES for run in _runs(" ".join(pair)) & _runs(message)]
        if taken or len(words & TELLING) > 1:
            what = " ".join(min(taken)) if taken else " and ".join(sorted(words & TELLING))
            raise Wrong(f"An example has {what!r}, as the six messages do. That is telling.")
    shown = "".join(f"Text: {text}\nIn one line: {line}\n\n" for text, line in my_examples)
    lines = continued([f"{shown}Text: {message}\nIn one line:" for message in MESSAGES])
    own = {line.strip().lower() for _, line in my_examples}
    missed = []  # Lines that do not count, each with the reason.
    for (message, named), line in zip(MESSAGES.items(), lines, strict=True):
        if line.strip().lower() in own:
            missed.append((line, " It is the line of one of your examples."))
        elif _is_cut(line, message):
            missed.append((line, " It is cut out of its message."))
        elif not re.search(named, line, re.IGNORECASE):
            missed.append((line, ""))
    right = len(MESSAGES) - len(missed)
    if right < NAMED:
        line, reason = missed[0]
        said = f"{right} of 6 lines name what matters in words of their own; {NAMED} are needed."
        raise Wrong(f"{said} One that does not: {show(line)}.{reason}")
    return (
        f"{right} of 6 lines name what matters: {' / '.join(lines)} Are they true, too? That the check "
        "cannot see."
    )


def _is_cut(line: str, message: str) -> bool:
    """Say whether all words of a line stand in a row in the message; three may."""
    words, there = rouge_tokens(line), rouge_tokens(message)
    return len(words) > 3 and any(there[i : i + len(words)] == words for i in range(len(there)))


def _runs(text: str) -> set[tuple[str, ...]]:
    words = rouge_tokens(text)
    return set(zip(*(words[i:] for i in range(RUN)), strict=False))


@exercise("14.6", takes="half a minute")
def judge_of_support(
    supported: object,
    *, bodies: Lines, references: Lines, unsupported: Callable[[str, str], list[str]],
    neighbor: Sequence[int], has_one: Sequence[bool],
) -> str:  # fmt: skip
    """Ask for authors' lines and spoiled ones, and compare with the chapter's rule."""
    asked = as_function(supported, "supported(lines, bodies)")
    spoiled = _spoiled(references, neighbor)
    tables = []
    for judge in (lambda a, b: [-len(unsupported(*pair)) for pair in zip(a, b, strict=True)], asked):
        own = _numbers(judge, references, bodies)
        rates = {}
        for name, lines in spoiled.items():
            kept = np.array(has_one, dtype=bool) if name == SPOILED[2] else np.ones(len(own), dtype=bool)
            rates[name] = _above(own[kept], _numbers(judge, lines, bodies)[kept])
        tables.append(rates)
    rule, found = tables
    each = {name: f"{name} {found[name]:.2f} ({rule[name]:.2f})" for name in spoiled}
    told = ", ".join(each[name] for name in SPOILED)
    told = f"An author's line is above a spoiled one (in brackets: by the chapter's rule): {told}."
    gains = {name: found[name] - rule[name] for name in SPOILED}
    for name, gain in gains.items():
        if found[name] < 0.5 - WORSE and gain < -WORSE:
            raise Wrong(f"{told} {name}: below one half. Is your sign turned?")
    for name, gain in gains.items():
        if gain < -WORSE:
            raise Wrong(f"{told} {name}: more than {WORSE} is lost.")
    if min(gains[name] for name in SPOILED[:2]) <= BETTER:
        raise Wrong(f"{told} Beat the rule by {BETTER} in each of the first two.")
    if max(gains[name] for name in SPOILED[2:]) < WORSE:
        raise Wrong(f"{told} Denials are found. Beat the rule by {WORSE} in one of the last two as well.")
    return f"{told} Two that were not named: {', '.join(each[name] for name in UNNAMED)}."


def _spoiled(references: Lines, neighbor: Sequence[int]) -> dict[str, list[str]]:
    half, lower = len(references) // 2, [line[:1].lower() + line[1:] for line in references]
    return {
        SPOILED[0]: [f"Never {line}" for line in lower],
        SPOILED[1]: [" ".join([first, "not", *rest]) for first, *rest in map(str.split, references)],
        SPOILED[2]: [references[i] for i in neighbor],
        SPOILED[3]: [*references[half:], *references[:half]],
        UNNAMED[0]: [f"Fails to {line}" for line in lower],
        UNNAMED[1]: [_exchanged(line) for line in references],
    }


def _exchanged(line: str) -> str:
    """Exchange the first and the last of the longer words behind the first one."""
    words = line.rstrip(".").split()
    places = [i for i, word in enumerate(words) if i and len(word) > 3]
    if len(places) > 1:
        a, b = places[0], places[-1]
        words[a], words[b] = words[b], words[a]
    return " ".join(words)


def _numbers(judge: Callable, lines: Lines, bodies: Lines) -> np.ndarray:
    found = judge(list(lines), list(bodies))
    try:
        numbers = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if numbers.shape != (len(lines),) or not np.isfinite(numbers).all():
        raise Wrong(f"`supported` gives {show(found)} for {len(lines)} lines; wanted is a number for each.")
    return numbers


def _above(right: np.ndarray, wrong: np.ndarray) -> float:
    """Return how often a right line is above a wrong one; of equal ones, half of them."""
    difference = right[:, None] - wrong[None, :]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())
