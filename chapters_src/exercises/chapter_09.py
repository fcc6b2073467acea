"""Checks of the exercises of chapter 09, machine translation."""

import copy
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from chapters_src.data import english_german
from chapters_src.data.english_german import Pair
from chapters_src.data.english_german.lexicon import add_s
from chapters_src.exercises.checking import (
    Asked,
    Missing,
    Wrong,
    as_function,
    as_number,
    exercise,
    is_missing,
    show,
)

Translate = Callable[[Any, Sequence[str]], list[str]]
START, END = 1, 2  # ids of the special tokens
SMOOTHING, PIECES = 0.05, 262_144  # of 9.1
TRANSLATED = (  # of 9.2: translation and reference, a word a space
    ("Er räumt heute die Küche auf .", "Er räumt heute die Küche nicht auf ."),
    ("Die Frau hilft den Mann .", "Die Frau hilft dem Mann ."),
    ("Weil er nicht schlafen kann , liest er .", "Er liest , weil er nicht schlafen kann ."),
)
POWERS, TRANSLATIONS = (0, 2, 4), 100  # of 9.3
PAIRS, DIFFERENT = 20, 18  # of 9.4
WORDS_OF_CLAUSES = (  # of 9.5: the source, the German so far, the word; the first one is a single piece
    ("She sleeps and he reads the book.", "Sie schläft und er", "liest"),
    ("She sleeps because he reads the book.", "Sie schläft und er", "liest"),
    ("She sleeps because he reads the book.", "Sie schläft, weil er", "das"),
    ("The lawyer always photographs the bridge.", "Der Anwalt", "fotografiert"),
    ("The queen sells the pears.", "Die Königin verkauft die", "Birnen"),
)
WORDS, DRAWN, SEED = 7, 10_000, 9_600  # of 9.6
SCORED, LEARNED, KEPT, SENTENCES, ENOUGH = 100, 75, 90, 5, 3


@exercise("9.1")
def floor_of_smoothing(floor: object, plain: object) -> str:
    """Compute both from the smoothed distribution."""
    found = as_number(floor, "floor")
    start = f"`floor` is {show(found)}. "
    expected = _floor(SMOOTHING, PIECES)
    if abs(found - expected) > 0.006:
        others = {
            -math.log(
                1 - SMOOTHING
            ): "That is what the right piece alone contributes, before it is weighted.",
            _floor(SMOOTHING, 2): "Over two pieces this would be so.",
            -(1 - SMOOTHING) * math.log(1 - SMOOTHING) - SMOOTHING * math.log(SMOOTHING): (
                "That treats all wrong pieces as one. What is the probability of each of them?"
            ),
            expected / math.log(2): "That is in bits; the losses of this book are in nats.",
            0.83 - expected: "That is about what is left above the floor. Wanted is the floor itself.",
            _floor(0.1, PIECES): "That is for a smoothing of 0.1.",
            _floor(SMOOTHING, 3000): "That is for the vocabulary of this chapter.",
            _floor(0.1, 3000): "That is this chapter's own floor.",
            -SMOOTHING * math.log(SMOOTHING / PIECES): "That leaves out the right piece.",
            -math.log(SMOOTHING / PIECES): "That is the loss of a single wrong piece.",
            0.0: "The target is no longer certain, so a model that is certain pays for it.",
        }
        for other, hint in others.items():
            if abs(found - other) < 0.004:
                raise Wrong(start + hint)
        raise Wrong(
            start + "Which distribution has the smallest cross-entropy with the smoothed target? What is it?"
        )
    found = as_number(plain, "plain")
    start = f"`plain` is {show(found)}. "
    if abs(found) < 1e-9:
        raise Wrong(start + "The right piece would have a probability of 1. Has it, at the floor?")
    if abs(found - expected) < 0.006:
        raise Wrong(start + "That is the smoothed loss again.")
    if abs(found - (1 - SMOOTHING)) < 0.006:
        raise Wrong(start + "That is a probability, not a loss.")
    if abs(found + math.log(1 - SMOOTHING)) > 0.004:
        raise Wrong(
            start + "The plain loss sees only the right piece. What probability has it, at the floor?"
        )
    return "So a smoothed loss of 0.83 is at its end. Compare models by their losses without smoothing."


def _floor(smoothing: float, pieces: int) -> float:
    """The entropy of the smoothed target."""
    rest = smoothing / pieces
    right = 1 - smoothing + rest
    return -right * math.log(right) - (pieces - 1) * rest * math.log(rest)


@exercise("9.2")
def bleu_by_hand(score: object) -> str:
    """Compute it by hand, and what comes of the usual mistakes."""
    found = as_number(score, "score")
    counts = [_counts(*pair) for pair in TRANSLATED]
    sums = [sum(column) for column in zip(*counts, strict=True)]
    expected = _bleu(sums)
    if abs(found - expected) < 0.06:
        return "BLEU sums the counts of all sentences first, and divides once."
    start = f"`score` is {show(found)}. "
    if abs(found - expected / 100) < 0.0006:
        raise Wrong(start + "Of 1, or of 100? BLEU is usually given of 100.")
    precisions = [right / there for right, there in zip(sums[:4], sums[4:8], strict=True)]
    plain = [_counts(*(re.sub(r" [.,]", "", text) for text in pair)) for pair in TRANSLATED]
    lower = [_counts(*(text.lower() for text in pair)) for pair in TRANSLATED]
    others = {
        sum(map(_bleu, counts)) / 3: "That is the mean of three scores. Sum the counts first.",
        100 * math.exp(sum(map(math.log, precisions)) / 4): (
            "Are the translations as long as the references, all together?"
        ),
        _penalty(sums) * 25 * sum(precisions): (
            "The four precisions are averaged, but not by the geometric mean."
        ),
        25 * sum(precisions): "That is a plain mean of the four precisions, without the brevity penalty.",
        _bleu([sum(column) for column in zip(*plain, strict=True)]): "A comma and a period are words, too.",
        _bleu([sum(column) for column in zip(*lower, strict=True)]): (
            "A capital letter makes another word: 'Weil' is not 'weil'."
        ),
        100 * precisions[0]: "That is the precision of single words.",
        100 * math.prod(precisions): "The product still needs its fourth root.",
        _penalty(sums) * 100 * math.prod(precisions): "The product of the four still needs its root.",
    }
    for other, hint in others.items():
        if abs(found - other) < 0.06:
            raise Wrong(start + hint)
    raise Wrong(
        f"{start}Of the {sums[4]} words {sums[0]} are in their references, each counted as often as it is "
        "there. Go on with the pairs of words."
    )


def _counts(translation: str, reference: str) -> list[int]:
    """Matching n-grams of one to four words, all n-grams likewise, both lengths."""
    ours, theirs = translation.split(), reference.split()
    right, there = [], []
    for n in range(1, 5):
        grams, wanted = (
            Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)) for words in (ours, theirs)
        )
        right.append((grams & wanted).total())
        there.append(grams.total())
    return [*right, *there, len(ours), len(theirs)]


def _penalty(sums: Sequence[int]) -> float:
    return min(1.0, math.exp(1 - sums[9] / sums[8]))


def _bleu(sums: Sequence[int]) -> float:
    """BLEU of summed counts; where nothing matches, as sacrebleu smooths it."""
    logs, halving = [], 1.0
    for right, there in zip(sums[:4], sums[4:8], strict=True):
        if not right:
            halving *= 2
        logs.append(math.log(right / there if right else 1 / (halving * there)))
    return 100 * _penalty(sums) * math.exp(sum(logs) / 4)


@exercise("9.3")
def penalty_for_length(
    written: object, fits: object, rescued: object, *, references: Mapping[str, Sequence[str]]
) -> str:
    """See that the translations grow with the power, which fits, and how many become right."""
    if is_missing(written):
        raise Missing("`written`")
    if not isinstance(written, dict):
        raise Wrong(f"Wanted a dictionary with the powers {POWERS}, not {show(written)}.")
    if set(written) != set(POWERS):
        raise Wrong(f"Wanted are the powers {POWERS}; `written` has {show(list(written))}.")
    wanted = references["longer"][:TRANSLATIONS]
    for power in POWERS:
        texts = written[power]
        if is_missing(texts):
            raise Missing(f"`written[{power}]`")
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            raise Wrong(f"written[{power}] has to be a list of translations, not {show(texts)}.")
        if len(texts) != len(wanted):
            raise Wrong(f"written[{power}] has {len(texts)} translations for {len(wanted)} references.")
    none, some, most = (list(written[power]) for power in POWERS)
    if none == some == most:
        raise Wrong("The three lists are the same. Does `length_penalty` reach the beam search?")
    right = [sum(map(str.__eq__, texts, wanted)) for texts in (none, some, most)]
    share = right[0] / len(wanted)
    if not 0.05 < share < 0.8:
        raise Wrong(
            f"With a power of 0, {share:.0%} are exactly right. Is that the shipped translator, on the "
            "sentences of *longer*?"
        )
    words = [sum(len(text.split()) for text in texts) for texts in (none, some, most)]
    if not words[0] < words[1] < words[2]:
        raise Wrong(
            f"The numbers of words are {', '.join(map(str, words))}. Which power favors long translations?"
        )
    of_references = sum(len(text.split()) for text in wanted)
    found, lengths = as_number(fits, "fits"), dict(zip(POWERS, words, strict=True))
    if found not in lengths:
        raise Wrong(f"`fits` is {show(found)}. Wanted is one of the powers {POWERS}.")
    if found != min(POWERS, key=lambda power: abs(lengths[power] - of_references)):
        raise Wrong(
            f"`fits` is {show(found)}. With it there are {lengths[found]} words, and the references have "
            f"{of_references}. Is another power nearer?"
        )
    found = as_number(rescued, "rescued")
    both = list(zip(none, most, wanted, strict=True))
    expected = sum(a != b == c for a, c, b in both)
    if found != expected:
        start = f"`rescued` is {show(found)}. "
        others = {
            right[2]: "So many are right with a power of 4, most of them with a power of 0, too.",
            right[2] - right[0]: "That is a difference of two counts. Some sentences may have been lost.",
            sum(a == b != c for a, c, b in both): "That is how many were lost.",
            sum(a != c for a, c, _ in both): "So many changed. Are they right now?",
        }
        hint = "Compare sentence by sentence: wrong with a power of 0, exactly right with a power of 4."
        raise Wrong(start + others.get(found, hint))
    return (
        f"From a power of 0 to 4 the words grow from {words[0] / of_references:.0%} to "
        f"{words[2] / of_references:.0%} of the references', and {expected} of the "
        f"{len(wanted) - right[0]} wrong sentences become right."
    )


@exercise("9.4")
def bag_of_words(pairs: object, without_order: object, *, model: Any, translate: Translate) -> str:
    """Translate the pairs, with the order of the source and without."""
    pairs = _exchanged(pairs)
    asked = as_function(without_order, "without_order(model)")
    flat = [sentence for pair in pairs for sentence in pair]
    written = translate(model, flat)
    same = [pair for pair, a, b in zip(pairs, written[::2], written[1::2], strict=True) if a == b]
    if PAIRS - len(same) < DIFFERENT:
        text = translate(model, [same[0][0]])[0]
        raise Wrong(
            f"{len(same)} pairs have one translation for both sentences: {same[0][0]!r} and {same[0][1]!r} "
            f"become {text!r}. Exchange who does it and who suffers it, in words that the translator knows."
        )
    bag = _changed_model(asked, model)
    written = translate(bag, flat)
    for pair, a, b in zip(pairs, written[::2], written[1::2], strict=True):
        if a != b:
            raise Wrong(
                f"Still {pair[0]!r} becomes {a!r}, and {pair[1]!r} becomes {b!r}: the order gets through."
            )
    if len(set(written)) < 2:
        raise Wrong(
            f"Your {PAIRS} pairs have one translation, {show(written[0])}. Do the words still get through?"
        )
    return (
        f"{PAIRS - len(same)} of {PAIRS} pairs have two translations, and without the order of the source "
        "none has."
    )


def _exchanged(pairs: Any) -> list[tuple[str, str]]:
    """See that in each pair two words have changed places."""
    if is_missing(pairs):
        raise Missing("`pairs`")
    if not isinstance(pairs, list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        for pair in pairs
    ):
        raise Wrong(f"Wanted a list of pairs of sentences, not {show(pairs)}.")
    if len({frozenset(pair) for pair in pairs}) != PAIRS or len(pairs) != PAIRS:
        raise Wrong(f"Wanted {PAIRS} different pairs; there are {len({frozenset(pair) for pair in pairs})}.")
    for one, other in pairs:
        first, second = (re.findall(r"[\w']+|[^\w\s]", text) for text in (one, other))
        moved = sum(map(str.__ne__, first, second))
        if Counter(first) != Counter(second):
            low = Counter(map(str.lower, first)) == Counter(map(str.lower, second))
            hint = " The first one has a capital letter: let it stay." if low else ""
            raise Wrong(f"{one!r} and {other!r} are not made of the same words.{hint}")
        if moved == 0:
            raise Wrong(f"{one!r} and {other!r} have the same order.")
        if moved > 2:
            raise Wrong(
                f"In {other!r} {moved} words have moved. A shuffled sentence is no English: exchange only "
                "who does it and who suffers it."
            )
    return [(one, other) for one, other in pairs]


def _changed_model(asked: Asked, model: Any) -> Any:
    """Call `without_order` with a copy, and see that it changes neither that nor the decoder."""
    given = copy.deepcopy(model)
    found = asked(given)
    if not isinstance(found, nn.Module):
        raise Wrong(f"{asked.called(model)} gives {show(found)}; wanted a translator.")
    if any(not torch.equal(a, b) for a, b in zip(_tensors(given), _tensors(model), strict=True)):
        raise Wrong(
            f"{asked.called(model)} changes the model that it is given. Change a copy: `copy.deepcopy`."
        )
    decoder = getattr(getattr(found, "decoder", None), "embedding", None)
    sinusoids, as_before = getattr(decoder, "sinusoids", None), model.decoder.embedding.sinusoids
    if sinusoids is None or not torch.equal(sinusoids, as_before):
        raise Wrong(
            "The decoder has lost the order of its own German words, too. Only the source is to lose it."
        )
    return found


def _tensors(model: nn.Module) -> list[torch.Tensor]:
    return [*model.parameters(), *model.buffers()]


@exercise("9.5")
def who_holds_the_verb_back(next_word: object, holder: object, *, model: Any, tokenizer: Any) -> str:
    """Compute the probabilities token by token, and see what changes them."""
    asked = as_function(next_word, "next_word(english, german, word)")
    for case in WORDS_OF_CLAUSES:
        found, label = as_number(asked(*case), asked.called(*case)), asked.called(*case)
        steps = _probabilities(model, tokenizer, *case)
        expected = math.prod(steps)
        if math.isclose(found, expected, rel_tol=0.003, abs_tol=1e-6):
            continue
        if found < 0 and math.isclose(math.exp(found), expected, rel_tol=0.003):
            raise Wrong(f"{label} gives {show(found)}: a logarithm. Wanted is the probability.")
        start = f"{label} gives {show(found)}"
        if not 0 <= found <= 1:
            raise Wrong(f"{start}, which is no probability.")

        def near(other: float, found: float = found) -> bool:
            return math.isclose(found, other, rel_tol=0.003, abs_tol=1e-9)

        if len(steps) > 1 and near(steps[0]):
            raise Wrong(f"{start}. {case[2]!r} has {len(steps)} pieces here, and that is the first one's.")
        if len(steps) > 1 and near(sum(steps) / len(steps)):
            raise Wrong(f"{start}, the mean over its {len(steps)} pieces. All of them have to be written.")
        if near(math.prod(_probabilities(model, tokenizer, *case, end=False))):
            raise Wrong(f"{start}. In training, sources ended with the end token. Does yours?")
        if near(math.prod(_probabilities(model, tokenizer, *case, start=False))):
            raise Wrong(f"{start}. In training, the decoder read the start token first. Does yours?")
        if near(math.prod(_probabilities(model, tokenizer, *case, space=""))):
            raise Wrong(f"{start}. Inside a sentence the piece of a word has its space: ' {case[2]}'.")
        if near(math.prod(_probabilities(model, tokenizer, *case, shift=1))):
            raise Wrong(f"{start}. Which position predicts the word: the one before it, or its own?")
        raise Wrong(f"{start}, which is too {'high' if found > expected else 'low'}.")
    if is_missing(holder):
        raise Missing("`holder`")
    if holder not in ("source", "written") or not isinstance(holder, str):
        raise Wrong(
            f'`next_word` is right. Wanted for `holder` is "source" or "written", not {show(holder)}.'
        )
    if holder == "source":
        raise Wrong(
            "`next_word` is right. Force one beginning, exchange only the source, and compare; then the "
            "reverse."
        )
    return "`next_word` is right, and the source may say what it likes: after 'weil er' comes no verb."


def _probabilities(
    model: Any,
    tokenizer: Any,
    english: str,
    german: str,
    word: str,
    *,
    start: bool = True,
    end: bool = True,
    space: str = " ",
    shift: int = 0,
) -> list[float]:
    """The probability of each piece of the word, with a mistake if wanted."""
    device = next(model.parameters()).device
    source = tokenizer.encode(english) + [END] * end
    before, pieces = [START] * start + tokenizer.encode(german), tokenizer.encode(space + word)
    inputs = torch.tensor([before + pieces], device=device)
    with torch.no_grad():
        logits = model(torch.tensor([source], device=device), None, inputs, None)
    chances = logits[0].softmax(dim=-1)
    return [float(chances[len(before) - 1 + i + shift, piece]) for i, piece in enumerate(pieces)]


@exercise("9.6", takes="a few seconds")
def words_of_your_own(my_rows: object, taught: object, my_sentences: object, *, translate: Translate) -> str:
    """Draw new sentences with the reader's words and without, and translate them and the reader's."""
    if is_missing(my_rows):
        raise Missing("`my_rows`")
    if not isinstance(my_rows, dict) or not all(
        isinstance(lines, list | tuple) and all(isinstance(line, str) for line in lines)
        for lines in my_rows.values()
    ):
        raise Wrong(f"Wanted a dictionary from tables to lists of rows, not {show(my_rows)}.")
    groups = _new_words(my_rows)
    if is_missing(taught):
        raise Missing("`taught`")
    if not isinstance(taught, nn.Module):
        raise Wrong(f"`taught` has to be the translator after its training, not {show(taught)}.")
    own = _own_sentences(my_sentences, groups)
    new, old = _drawn(json.dumps({table: [*lines] for table, lines in my_rows.items()}))
    for word, forms in groups.items():
        if not any(_has(forms, pair.english) for pair in new):
            raise Wrong(
                f"{word!r} is in none of {DRAWN:,} sentences that the grammar draws. Do a verb's objects, or "
                "an adjective's nouns, have its class?"
            )
    if len(new) < SCORED:
        raise Wrong(f"Only {len(new)} of {DRAWN:,} sentences have one of your words. Give them more classes.")
    wrong_new, wrong_old = (_mistakes(taught, translate, some[:SCORED]) for some in (new, old))
    learned, kept = SCORED - len(wrong_new), SCORED - len(wrong_old)
    if learned < LEARNED:
        raise Wrong(
            f"{learned} of {SCORED} new sentences with your words are exactly right; {LEARNED} are wanted. "
            f"{wrong_new[0][0].english!r} becomes {wrong_new[0][1]!r}."
        )
    if kept < KEPT:
        raise Wrong(
            f"Your words are learned, but of {SCORED} old sentences only {kept} are exactly right; {KEPT} "
            f"are wanted. {wrong_old[0][0].english!r} becomes {wrong_old[0][1]!r}."
        )
    found = translate(taught, list(own))
    missed = [(*pair, text) for pair, text in zip(own.items(), found, strict=True) if text != pair[1]]
    passed = SENTENCES - len(missed)
    if passed < ENOUGH:
        english, german, text = missed[0]
        raise Wrong(
            f"Of your own sentences {passed} are translated as you did; {ENOUGH} are wanted. {english!r} "
            f"becomes {text!r}, not {german!r}."
        )
    return (
        f"{learned} of {SCORED} new sentences with your words, {kept} of {SCORED} old ones, and {passed} of "
        f"your own {SENTENCES} are exactly right."
    )


def _new_words(rows: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    """The forms of each new English word."""
    try:
        words = english_german.lexicon(rows)
    except ValueError as error:
        raise Wrong(f"{error}.") from None
    old = english_german.lexicon()
    verbs = words.verbs[len(old.verbs) :]
    groups = {noun.english: {noun.english, noun.english_plural} for noun in words.nouns[len(old.nouns) :]}
    groups |= {word.english: {word.english} for word in words.adjectives[len(old.adjectives) :]}
    groups |= {word.english: {word.english} for word in words.adverbs[len(old.adverbs) :]}
    groups |= {verb.english[0]: {*verb.english, add_s(verb.english[0])} for verb in verbs}
    if len(groups) < WORDS:
        raise Wrong(f"There are {len(groups)} words in your rows; {WORDS} are wanted.")
    if not any(verb.prefix for verb in verbs):
        raise Wrong("None of your verbs is separable: write one with a bar, as in auf|räumen.")
    known = {word.english for word in (*old.nouns, *old.adjectives, *old.adverbs)}
    known |= {verb.english[0] for verb in old.verbs}
    if again := sorted(word for word in groups if word in known):
        raise Wrong(f"The grammar has {again[0]!r} already. Take another word.")
    return {word: frozenset(forms - {""}) for word, forms in groups.items()}


def _own_sentences(sentences: Any, groups: Mapping[str, frozenset[str]]) -> dict[str, str]:
    if is_missing(sentences):
        raise Missing("`my_sentences`")
    if not isinstance(sentences, dict) or not all(
        isinstance(text, str) and text for pair in sentences.items() for text in pair
    ):
        raise Wrong(f"Wanted a dictionary from English to German sentences, not {show(sentences)}.")
    if len(sentences) != SENTENCES:
        raise Wrong(f"There are {len(sentences)} sentences; {SENTENCES} are wanted.")
    forms = frozenset().union(*groups.values())
    for english in sentences:
        if not _has(forms, english):
            raise Wrong(f"{english!r} has none of your words.")
    return sentences


def _has(forms: frozenset[str], english: str) -> bool:
    text = english.lower()
    return any(re.search(rf"\b{re.escape(form.lower())}\b", text) for form in forms)


@functools.cache
def _drawn(rows: str) -> tuple[list[Pair], list[Pair]]:
    """Draw sentences with the new words and without, both of the kind of training."""
    more = json.loads(rows)
    pairs = english_german.load(DRAWN, num_held_out=1, seed=SEED, more=more)["train"]
    forms = frozenset().union(*_new_words(more).values())
    both: tuple[list[Pair], list[Pair]] = ([], [])
    for pair in pairs:
        both[not _has(forms, pair.english)].append(pair)
    return both


def _mistakes(taught: nn.Module, translate: Translate, pairs: Sequence[Pair]) -> list[tuple[Pair, str]]:
    """The pairs that are not translated as the grammar does, with the translation."""
    written = translate(taught, [pair.english for pair in pairs])
    return [(pair, text) for pair, text in zip(pairs, written, strict=True) if text != pair.german]
