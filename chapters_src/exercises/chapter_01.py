"""Checks of the exercises of chapter 01, a tour of tasks."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from chapters_src.exercises.checking import (
    Wrong,
    as_kind,
    as_number,
    as_numbers,
    check_number,
    exercise,
    is_text,
    show,
)

COMES, IT = (0.0, 2.0), (1.0, 0.0)  # The vectors of two words of 1.2.


@exercise("1.1")
def tokens_of_a_name(num_tokens: object) -> str:
    """Four pieces: mere ##te fa ##lk."""
    slips = {
        "Those are words. This tokenizer cuts a rare word into pieces.": 2,
        "That is after aggregation, which puts the tokens of a name together.": 1,
        "Those are characters.": lambda count: count in (len("Merete Falk"), len("MereteFalk")),
        "That counts the two special tokens, too, which belong to no name.": 6,
        "That is too few: count the tokens of the two words.": lambda count: count < 4,
    }
    check_number(num_tokens, "num_tokens", 4, slips, "That is too many: count the tokens of the two words.")
    return "Without aggregation each of them has a label of its own, and they need not agree."


@exercise("1.2")
def a_vector_for_legend(legend: object) -> str:
    """Compute the weights of *it*."""
    numbers = as_numbers(legend, "legend", 2)
    products = [sum(a * b for a, b in zip(IT, other, strict=True)) for other in (numbers, COMES, IT)]
    share = _softmax([product / math.sqrt(2) for product in products])
    said = f"*it* pays *legend* {share[0]:.0%} of its attention"
    if share[0] > 0.9:
        return f"{said}."
    if _softmax(products)[0] > 0.9:
        raise Wrong(f"{said}. Divide the products by the square root of 2.")
    if share[0] / (share[0] + share[1]) > 0.9:
        raise Wrong(f"{said}. *it* looks at itself, too.")
    if numbers[1] > max(numbers[0], 2):
        raise Wrong(f"{said}. Does the second number change anything?")
    raise Wrong(f"{said}, which is too little.")


def _softmax(scores: Sequence[float]) -> list[float]:
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


@exercise("1.3")
def descriptions_of_nine_kinds(
    my_kinds: Any, right_in_train: object, right_in_test: object,
    *, kinds: Mapping[str, str], embed: Callable, library: Any, vectors: torch.Tensor,
    data: Mapping[str, Sequence],
) -> str:  # fmt: skip
    """Count anew, for the reader's descriptions and the chapter's."""
    as_kind(my_kinds, "my_kinds", dict, "a dictionary from kind to description")
    if my_kinds.keys() != kinds.keys():
        raise Wrong(f"The kinds have to be {', '.join(kinds)}; yours are {', '.join(map(str, my_kinds))}.")
    for kind, words in my_kinds.items():
        as_kind(words, f"my_kinds[{kind!r}]", str, "a description")
    if len({*my_kinds.values()}) < len(kinds):
        raise Wrong("Two kinds have the same description.")
    if my_kinds == dict(kinds):
        raise Wrong("These are our descriptions. Write your own.")
    answers = {"train": right_in_train, "test": right_in_test}
    found = {split: as_number(answer, f"right_in_{split}") for split, answer in answers.items()}
    of_split = {
        split: library.name.isin({one.paragraph for one in data[split]}).to_numpy() for split in answers
    }

    def right(descriptions: Mapping[str, str]) -> tuple[dict[str, int], int]:
        """Count the paragraphs that are right, in each split and in all."""
        described = torch.stack([embed(words) for words in descriptions.values()])
        nearest = (vectors @ described.T).argmax(dim=1).tolist()
        is_right = (library.kind == [list(descriptions)[one] for one in nearest]).to_numpy()
        return {split: int(is_right[own].sum()) for split, own in of_split.items()}, int(is_right.sum())

    (mine, of_all), (ours, _) = right(my_kinds), right(kinds)
    if found["train"] == mine["test"] != mine["train"] == found["test"]:
        raise Wrong("The two counts are swapped.")
    slips = {
        "That is a share; wanted is how many paragraphs are right.": lambda value: 0 < value < 1,
        "That counts the paragraphs of all splits.": of_all,
    }
    for split, count in mine.items():
        otherwise = "With your descriptions it comes out otherwise."
        check_number(found[split], f"right_in_{split}", count, slips, otherwise)
    size = of_split["test"].sum()
    return (
        f"Train: yours {mine['train']}, ours {ours['train']}. Test: yours {mine['test']}, ours "
        f"{ours['test']}, of {size}, where a paragraph more is {100 / size:.1f} points."
    )


@exercise("1.4", takes="a few seconds")
def she_or_he(
    share_known: object, share_occupations: object,
    *, fill: Any, frames: Sequence[str], known: Sequence[Sequence[str]], occupations: Sequence[Sequence[str]],
) -> str:  # fmt: skip
    """Compare all pairs anew."""
    found = {"share_known": share_known, "share_occupations": share_occupations}
    for (name, answer), lists in zip(found.items(), (known, occupations), strict=True):
        as_number(answer, name)
        first, second = ([_bet(word, fill, frames) for word in words] for words in lists)
        expected = sum(a > b for a in first for b in second) / (len(first) * len(second))
        within_pairs = sum(a > b for a, b in zip(first, second, strict=True)) / len(first)
        slips = {
            "It is the other way around: check the sign of the difference.": 1 - expected,
            "That compares only within pairs, a word with the one below it. Compare all.": within_pairs,
            "It has to be a share, from 0 to 1.": lambda value: value > 1,
        }
        otherwise = "It comes out otherwise. Did you use both frames?"
        check_number(answer, name, expected, slips, otherwise, within=0.006)
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
    unreadable: object, *, token_scores: Callable, asked: Sequence[Any], sentences_read: Sequence[str]
) -> str:
    """Count the pairs anew."""
    as_number(unreadable, "unreadable")
    pairs = list(zip(asked, sentences_read, strict=True))[:100]
    backwards = outside = empty = 0
    for one, sentence in pairs:
        starts, ends, inside, _ = token_scores(one.question, sentence)
        first, last = int(starts.argmax()), int(ends.argmax())
        if first == last == 0:
            empty += 1
        elif not (inside[first] and inside[last]):
            outside += 1
        elif last < first:
            backwards += 1
    expected = backwards + outside
    slips = {
        "That is one of two ways to be unreadable.": lambda count: count in (backwards, outside),
        "That counts the pairs that say there is no answer, too; those can be read.": expected + empty,
        "That is a share; wanted is a count.": lambda count: 0 < count < 1,
        "That is too few.": lambda count: count < expected,
    }
    check_number(unreadable, "unreadable", expected, slips, "That is too many.")
    return f"Without the rules, {expected} of {len(pairs)} pairs are no span of the text."


@exercise("1.6", takes="some seconds")
def a_message_of_your_own(
    my_message: Any, my_names: Any, my_answers: Any,
    *, tag: Callable, closest_sentence: Callable, read_answer: Callable, after: Callable, prompt: str,
) -> str:  # fmt: skip
    """Look for names and answers in the text, and run the models on it."""
    wanted = "a text of at least 30 words"
    as_kind(my_message, "my_message", lambda it: isinstance(it, str) and len(it.split()) >= 30, wanted)
    if "Merete Falk" in my_message:
        raise Wrong("That is the message of the chapter. Write your own.")
    wanted = "a list of at least three names"
    as_kind(my_names, "my_names", lambda it: isinstance(it, list | tuple) and len({*it}) >= 3, wanted)
    wanted = "a dictionary of at least three questions and answers"
    as_kind(my_answers, "my_answers", lambda it: isinstance(it, dict) and len(it) >= 3, wanted)
    text = " ".join(my_message.split())
    for words in (*my_names, *my_answers.values()):
        if not is_text(words) or not re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text):
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
