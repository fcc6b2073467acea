"""Checks of the exercises of chapter 01, a tour of tasks."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from chapters_src.exercises.checking import Missing, Wrong, as_number, exercise, is_missing, show

OTHERS = ((0.0, 2.0), (1.0, 0.0))  # The vectors of *comes* and *it*.


@exercise("1.1")
def tokens_of_a_name(num_tokens: Any) -> str:
    """Four pieces: mere ##te fa ##lk."""
    count = as_number(num_tokens, "num_tokens")
    if count == 2:
        raise Wrong("Those are words. This tokenizer cuts a rare word into pieces.")
    if count == 1:
        raise Wrong("That is after aggregation, which puts the tokens of a name together.")
    if count == len("Merete Falk") or count == len("MereteFalk"):
        raise Wrong("Those are characters.")
    if count == 6:
        raise Wrong("That counts the two special tokens, too, which belong to no name.")
    if count != 4:
        raise Wrong(
            f"{show(count)} is too {'few' if count < 4 else 'many'}: count the tokens of the two words."
        )
    return "Without aggregation each of them has a label of its own, and they need not agree."


@exercise("1.2")
def a_vector_for_legend(legend: Any) -> str:
    """Compute the weights of *it*."""
    if is_missing(legend):
        raise Missing("`legend`")
    plain = legend.tolist() if hasattr(legend, "tolist") else legend
    if not isinstance(plain, list | tuple) or len(plain) != 2:
        raise Wrong(f"`legend` has to be a vector of two numbers, such as [2.0, 0.0], not {show(legend)}.")
    numbers = [as_number(number, "each of the two") for number in plain]
    it = OTHERS[1]
    products = [sum(a * b for a, b in zip(it, other, strict=True)) for other in (numbers, *OTHERS)]
    share = _softmax([product / math.sqrt(2) for product in products])
    if share[0] > 0.9:
        return f"*it* pays *legend* {share[0]:.0%} of its attention."
    if _softmax(products)[0] > 0.9:
        raise Wrong(f"*it* pays it {share[0]:.0%}. Divide the products by the square root of 2.")
    if share[0] / (share[0] + share[1]) > 0.9:
        raise Wrong(f"*it* pays it {share[0]:.0%}. *it* looks at itself, too.")
    if numbers[1] > max(numbers[0], 2):
        raise Wrong(f"*it* pays it {share[0]:.0%}. Does the second number change anything?")
    raise Wrong(f"*it* pays it {share[0]:.0%}, which is too little.")


def _softmax(scores: Sequence[float]) -> list[float]:
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    return [power / sum(powers) for power in powers]


@exercise("1.3")
def descriptions_of_nine_kinds(
    my_kinds: Any,
    right_in_train: Any,
    right_in_test: Any,
    *,
    kinds: Mapping[str, str],
    embed: Callable,
    library: Any,
    vectors: torch.Tensor,
    data: Mapping[str, Sequence],
) -> str:
    """Count anew, for the reader's descriptions and the chapter's."""
    if is_missing(my_kinds):
        raise Missing("`my_kinds`")
    if not isinstance(my_kinds, dict) or not all(isinstance(words, str) for words in my_kinds.values()):
        raise Wrong(f"`my_kinds` has to be a dictionary from kind to description, not {show(my_kinds)}.")
    if my_kinds.keys() != kinds.keys():
        raise Wrong(f"The kinds have to be {', '.join(kinds)}; yours are {', '.join(map(str, my_kinds))}.")
    if len({*my_kinds.values()}) < len(kinds):
        raise Wrong("Two kinds have the same description.")
    if my_kinds == dict(kinds):
        raise Wrong("These are our descriptions. Write your own.")
    reported = {
        "train": as_number(right_in_train, "right_in_train"),
        "test": as_number(right_in_test, "right_in_test"),
    }
    names = {split: {one.paragraph for one in data[split]} for split in reported}

    def right(descriptions: Mapping[str, str]) -> list[bool]:
        described = torch.stack([embed(words) for words in descriptions.values()])
        nearest = (vectors @ described.T).argmax(dim=1).tolist()
        return [list(descriptions)[one] == kind for one, kind in zip(nearest, library.kind, strict=True)]

    def of_split(found: list[bool], split: str) -> int:
        return sum(each for each, name in zip(found, library.name, strict=True) if name in names[split])

    mine, ours = right(my_kinds), right(kinds)
    counts = {split: of_split(mine, split) for split in reported}
    if reported["train"] == counts["test"] != counts["train"] == reported["test"]:
        raise Wrong("The two counts are swapped.")
    for split, count in counts.items():
        value = reported[split]
        if value == count:
            continue
        if 0 < value < 1:
            raise Wrong(f"`right_in_{split}` is a share; wanted how many paragraphs are right.")
        if value == sum(mine):
            raise Wrong(f"`right_in_{split}` counts the paragraphs of all splits.")
        raise Wrong(f"`right_in_{split}` is {show(value)}; with your descriptions it comes out otherwise.")
    size = len(names["test"])
    return (
        f"Train: yours {counts['train']}, ours {of_split(ours, 'train')}. Test: yours {counts['test']}, ours"
        f" {of_split(ours, 'test')}, of {size}, where a paragraph more is {100 / size:.1f} points."
    )


@exercise("1.4", takes="a few seconds")
def she_or_he(
    share_known: Any,
    share_occupations: Any,
    *,
    fill: Any,
    frames: Sequence[str],
    known: Sequence[Sequence[str]],
    occupations: Sequence[Sequence[str]],
) -> str:
    """Compare all pairs anew."""
    found = {"share_known": share_known, "share_occupations": share_occupations}
    for (name, answer), lists in zip(found.items(), (known, occupations), strict=True):
        value = as_number(answer, name)
        first, second = ([_bet(word, fill, frames) for word in words] for words in lists)
        expected = sum(a > b for a in first for b in second) / (len(first) * len(second))
        if abs(value - expected) < 0.006:
            continue
        if abs(value - (1 - expected)) < 0.006:
            raise Wrong(f"`{name}` is the other way round: check the sign of the difference.")
        if abs(value - sum(a > b for a, b in zip(first, second, strict=True)) / len(first)) < 0.006:
            raise Wrong(
                f"`{name}` compares only within pairs, a word with the one below it. Compare all pairs."
            )
        if value > 1:
            raise Wrong(f"`{name}` has to be a share, from 0 to 1, not {show(value)}.")
        raise Wrong(f"`{name}` is {show(value)}, and it comes out otherwise. Did you use both frames?")
    return "The first share says whether the probe measures anything; for the second, look at its p."


def _bet(word: str, fill: Any, frames: Sequence[str]) -> float:
    bets = []
    for frame in frames:
        text = frame.format(word).replace("[MASK]", fill.tokenizer.mask_token)
        scores = {each["token_str"]: each["score"] for each in fill(text, targets=["she", "he"])}
        bets.append(math.log(scores["she"] / scores["he"]))
    return sum(bets) / len(bets)


@exercise("1.5", takes="a few seconds")
def without_the_span_rules(
    unreadable: Any, *, token_scores: Callable, asked: Sequence[Any], sentences_read: Sequence[str]
) -> str:
    """Count the pairs anew."""
    count = as_number(unreadable, "unreadable")
    pairs = list(zip(asked, sentences_read, strict=True))[:100]
    scored = [token_scores(one.question, sentence) for one, sentence in pairs]
    backwards = outside = empty = 0
    for starts, ends, inside, _ in scored:
        first, last = int(starts.argmax()), int(ends.argmax())
        if first == last == 0:
            empty += 1
        elif not (inside[first] and inside[last]):
            outside += 1
        elif last < first:
            backwards += 1
    expected = backwards + outside
    if count == expected:
        return f"Without the rules, {expected} of {len(scored)} pairs are no span of the text."
    if count in (backwards, outside):
        raise Wrong("That is one of two ways to be unreadable.")
    if count == expected + empty:
        raise Wrong("That counts the pairs that say there is no answer, too; those can be read.")
    if 0 < count < 1:
        raise Wrong("That is a share; wanted a count.")
    raise Wrong(f"{show(count)} is too {'few' if count < expected else 'many'}.")


@exercise("1.6", takes="some seconds")
def a_message_of_your_own(
    my_message: Any,
    my_names: Any,
    my_answers: Any,
    *,
    tag: Callable,
    closest_sentence: Callable,
    read_answer: Callable,
    after: Callable,
    prompt: str,
) -> str:
    """Look for names and answers in the text, and run the models on it."""
    if is_missing(my_message):
        raise Missing("`my_message`")
    if not isinstance(my_message, str) or len(my_message.split()) < 30:
        raise Wrong("`my_message` has to be a text of at least 30 words.")
    if "Merete Falk" in my_message:
        raise Wrong("That is the message of the chapter. Write your own.")
    if is_missing(my_names):
        raise Missing("`my_names`")
    if not isinstance(my_names, list | tuple) or len({*my_names}) < 3:
        raise Wrong("`my_names` has to be a list of at least three names.")
    if is_missing(my_answers):
        raise Missing("`my_answers`")
    if not isinstance(my_answers, dict) or len(my_answers) < 3:
        raise Wrong("`my_answers` has to be a dictionary of at least three questions and answers.")
    text = " ".join(my_message.split())
    for words in (*my_names, *my_answers.values()):
        if not isinstance(words, str) or not words.strip() or not _stands(words, text):
            raise Wrong(f"{show(words)} does not stand in your message, word for word.")
    for question in my_answers:
        if not question.strip().endswith("?"):
            raise Wrong(f"{show(question)} does not end with a question mark.")
    marked = {text[one["start"] : one["end"]] for one in tag(text)}
    ask = after(prompt + text + "\n")
    right = {"the reader": 0, "Gemma": 0, "the rule": 0}
    for question, answer in my_answers.items():
        by_reader = read_answer(question, closest_sentence(question, text))
        by_gemma = ask(f"Question: {question}\nAnswer:")
        by_rule = by_gemma if by_gemma and by_gemma in text else by_reader
        for name, found in zip(right, (by_reader, by_gemma, by_rule), strict=True):
            right[name] += found == answer
    counted = ", ".join(f"{name} {count}" for name, count in right.items())
    return (
        f"The tagger marked {len(marked & {*my_names})} of your {len(my_names)} names. Right, of "
        f"{len(my_answers)}: {counted}. So few questions show how it works, not which is better."
    )


def _stands(words: str, text: str) -> bool:
    """Tell whether the words stand in the text, and not only as a part of longer ones."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None
