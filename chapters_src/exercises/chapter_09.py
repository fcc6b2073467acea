"""Checks of the exercises of chapter 09, machine translation."""

import copy
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from chapters_src.data import english_german
from chapters_src.data.english_german import Pair
from chapters_src.data.english_german.lexicon import add_s
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
    mapping_of,
    mapping_with,
    sequence_of,
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
    expected, right = _floor(SMOOTHING, PIECES), 1 - SMOOTHING
    in_one = -right * math.log(right) - SMOOTHING * math.log(SMOOTHING)
    slips = {
        "That is what the right piece alone contributes, before it is weighted.": -math.log(right),
        "Over two pieces this would be so.": _floor(SMOOTHING, 2),
        "That treats all wrong pieces as one. What is the probability of each of them?": in_one,
        "That is in bits; the losses of this book are in nats.": expected / math.log(2),
        "That is about what is left above the floor. Wanted is the floor itself.": 0.83 - expected,
        "That is for a smoothing of 0.1.": _floor(0.1, PIECES),
        "That is for the vocabulary of this chapter.": _floor(SMOOTHING, 3000),
        "That is this chapter's own floor.": _floor(0.1, 3000),
        "That leaves out the right piece.": -SMOOTHING * math.log(SMOOTHING / PIECES),
        "That is the loss of a single wrong piece.": -math.log(SMOOTHING / PIECES),
        "The target is no longer certain, so a model that is certain pays for it.": 0,
    }
    otherwise = "Which distribution has the smallest cross-entropy with the smoothed target? What is it?"
    check_number(floor, "floor", expected, slips, otherwise, within=0.004)
    slips = {
        "The right piece would have a probability of 1. Has it, at the floor?": 0,
        "That is the smoothed loss again.": expected,
        "That is a probability, not a loss.": right,
    }
    otherwise = "The plain loss sees only the right piece. What probability has it, at the floor?"
    check_number(plain, "plain", -math.log(right), slips, otherwise, within=0.004)
    return "So a smoothed loss of 0.83 is at its end. Compare models by their losses without smoothing."


def _floor(smoothing: float, pieces: int) -> float:
    """The entropy of the smoothed target."""
    rest = smoothing / pieces
    right = 1 - smoothing + rest
    return -right * math.log(right) - (pieces - 1) * rest * math.log(rest)


@exercise("9.2")
def bleu_by_hand(score: object) -> str:
    """Compute it by hand, and what comes of the usual mistakes."""
    counts = [_counts(*pair) for pair in TRANSLATED]
    plain = [_counts(*(re.sub(r" [.,]", "", text) for text in pair)) for pair in TRANSLATED]
    lower = [_counts(*(text.lower() for text in pair)) for pair in TRANSLATED]
    sums, without_marks, in_lower = (np.sum(each, axis=0) for each in (counts, plain, lower))
    precisions, penalty = sums[:4] / sums[4:8], _penalty(sums)
    slips = {
        "Of 1, or of 100? BLEU is usually given of 100.": _bleu(sums) / 100,
        "That is the mean of three scores. Sum the counts first.": np.mean([_bleu(each) for each in counts]),
        "Are the translations as long as the references, all together?": _bleu(sums) / penalty,
        "The four precisions are averaged, but not by the geometric mean.": penalty * 100 * precisions.mean(),
        "That is a plain mean of the four precisions, without the brevity penalty.": 100 * precisions.mean(),
        "A comma and a period are words, too.": _bleu(without_marks),
        "A capital letter makes another word: 'Weil' is not 'weil'.": _bleu(in_lower),
        "That is the precision of single words.": 100 * precisions[0],
        "The product still needs its fourth root.": 100 * precisions.prod(),
        "The product of the four still needs its root.": penalty * 100 * precisions.prod(),
    }
    otherwise = f"Of the {sums[4]} words {sums[0]} are in their references, each counted as often as there."
    check_number(score, "score", _bleu(sums), slips, otherwise, within=0.02, relative=0.001)
    return "BLEU sums the counts of all sentences first, and divides once."


def _counts(translation: str, reference: str) -> list[int]:
    """Matching n-grams of one to four words, all n-grams likewise, both lengths."""
    ours, theirs = translation.split(), reference.split()
    right, there = [], []
    for n in range(1, 5):
        runs = (zip(*(words[i:] for i in range(n)), strict=False) for words in (ours, theirs))
        grams, wanted = map(Counter, runs)
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
    written: Any, fits: object, rescued: object, *, references: Mapping[str, Sequence[str]]
) -> str:
    """See that the translations grow with the power, which fits, and how many become right."""
    as_kind(written, "written", mapping_with(POWERS), f"a dictionary with the powers {POWERS}")
    wanted = references["longer"][:TRANSLATIONS]
    for power in POWERS:
        texts = as_kind(written[power], f"written[{power}]", sequence_of(str), "a list of translations")
        if len(texts) != len(wanted):
            raise Wrong(f"written[{power}] has {len(texts)} translations for {len(wanted)} references.")
    none, some, most = (list(written[power]) for power in POWERS)
    if none == some == most:
        raise Wrong("The three lists are the same. Does `length_penalty` reach the beam search?")
    right = [sum(map(str.__eq__, texts, wanted)) for texts in (none, some, most)]
    share = right[0] / len(wanted)
    if not 0.05 < share < 0.8:
        asked_back = "Is that the shipped translator, on the sentences of *longer*?"
        raise Wrong(f"With a power of 0, {share:.0%} are exactly right. {asked_back}")
    words = [sum(len(text.split()) for text in texts) for texts in (none, some, most)]
    if not words[0] < words[1] < words[2]:
        numbers = ", ".join(map(str, words))
        raise Wrong(f"The numbers of words are {numbers}. Which power favors long translations?")
    of_references = sum(len(text.split()) for text in wanted)
    found, lengths = as_number(fits, "fits"), dict(zip(POWERS, words, strict=True))
    if found not in lengths:
        raise Wrong(f"`fits` is {show(found)}. Wanted is one of the powers {POWERS}.")
    if found != min(POWERS, key=lambda power: abs(lengths[power] - of_references)):
        there = f"With it there are {lengths[found]} words, and the references have {of_references}."
        raise Wrong(f"`fits` is {show(found)}. {there} Is another power nearer?")
    both = list(zip(none, most, wanted, strict=True))
    expected = sum(a != b == c for a, c, b in both)
    slips = {
        "So many are right with a power of 4, most of them with a power of 0, too.": right[2],
        "That is a difference of two counts. Some sentences may have been lost.": right[2] - right[0],
        "That is how many were lost.": sum(a == b != c for a, c, b in both),
        "So many changed. Are they right now?": sum(a != c for a, c, _ in both),
    }
    otherwise = "Compare sentence by sentence: wrong with a power of 0, exactly right with a power of 4."
    check_number(rescued, "rescued", expected, slips, otherwise)
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
        both = f"{same[0][0]!r} and {same[0][1]!r} become {text!r}"
        raise Wrong(f"{len(same)} pairs have one translation for both: {both}. Exchange who does it to whom.")
    bag = _changed_model(asked, model)
    written = translate(bag, flat)
    for (one, other), a, b in zip(pairs, written[::2], written[1::2], strict=True):
        if a != b:
            raise Wrong(f"Still {one!r} becomes {a!r}, and {other!r} {b!r}: the order gets through.")
    if len(set(written)) < 2:
        one = show(written[0])
        raise Wrong(f"Your {PAIRS} pairs have one translation, {one}. Do the words still get through?")
    return f"{PAIRS - len(same)} of {PAIRS} pairs have two translations; without the source's order none has."


def _exchanged(pairs: Any) -> list[tuple[str, str]]:
    """See that in each pair two words have changed places."""
    as_kind(pairs, "pairs", sequence_of(sequence_of(str, 2)), "a list of pairs of sentences")
    different = len({frozenset(pair) for pair in pairs})
    if different != PAIRS or len(pairs) != PAIRS:
        raise Wrong(f"Wanted {PAIRS} different pairs; there are {different}.")
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
            exchange = "exchange only who does it and who suffers it"
            raise Wrong(f"In {other!r} {moved} words have moved. That is no English: {exchange}.")
    return [(one, other) for one, other in pairs]


def _changed_model(asked: Asked, model: Any) -> Any:
    """Call `without_order` with a copy, and see that it changes neither that nor the decoder."""
    given = copy.deepcopy(model)
    found = asked.gives(nn.Module, "a translator", given)
    before, after = ([*each.parameters(), *each.buffers()] for each in (model, given))
    if not all(map(torch.equal, before, after)):
        raise Wrong("Your function changes the model that it is given. Change a copy: `copy.deepcopy`.")
    decoder = getattr(getattr(found, "decoder", None), "embedding", None)
    sinusoids, as_before = getattr(decoder, "sinusoids", None), model.decoder.embedding.sinusoids
    if sinusoids is None or not torch.equal(sinusoids, as_before):
        raise Wrong("The decoder has lost the order of its own German words. Only the source is to lose it.")
    return found


@exercise("9.5")
def who_holds_the_verb_back(next_word: object, holder: object, *, model: Any, tokenizer: Any) -> str:
    """Compute the probabilities token by token, and see what changes them."""
    asked = as_function(next_word, "next_word(english, german, word)")
    for case in WORDS_OF_CLAUSES:
        found, label = asked.number(*case), asked.called(*case)
        steps = _probabilities(model, tokenizer, *case)

        def near(other: float, found: float = found) -> bool:
            return is_near(found, other, 1e-6, 0.003)

        expected, pieces = math.prod(steps), len(steps)
        if near(expected):
            continue
        if found < 0 and is_near(math.exp(found), expected, relative=0.003):
            raise Wrong(f"{label} gives {show(found)}: a logarithm. Wanted is the probability.")
        start = f"{label} gives {show(found)}"
        if not 0 <= found <= 1:
            raise Wrong(f"{start}, which is no probability.")
        if pieces > 1 and near(steps[0]):
            raise Wrong(f"{start}. {case[2]!r} has {pieces} pieces here, and that is the first one's.")
        if pieces > 1 and near(sum(steps) / pieces):
            raise Wrong(f"{start}, the mean over its {pieces} pieces. All of them have to be written.")
        slips: dict[str, dict[str, Any]] = {
            "In training, sources ended with the end token. Does yours?": {"end": False},
            "In training, the decoder read the start token first. Does yours?": {"start": False},
            f"Inside a sentence the piece of a word has its space: ' {case[2]}'.": {"space": ""},
            "Which position predicts the word: the one before it, or its own?": {"shift": 1},
        }
        for hint, slip in slips.items():
            if near(math.prod(_probabilities(model, tokenizer, *case, **slip))):
                raise Wrong(f"{start}. {hint}")
        raise Wrong(f"{start}, which is too {'high' if found > expected else 'low'}.")
    if as_choice(holder, "holder", ("source", "written")) == "source":
        raise Wrong("Force one beginning, exchange only the source, and compare; then the reverse.")
    return "`next_word` is right, and the source may say what it likes: after 'weil er' comes no verb."


def _probabilities(
    model: Any, tokenizer: Any, english: str, german: str, word: str,
    *, start: bool = True, end: bool = True, space: str = " ", shift: int = 0,
) -> list[float]:  # fmt: skip
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
def words_of_your_own(my_rows: Any, taught: Any, my_sentences: object, *, translate: Translate) -> str:
    """Draw new sentences with the reader's words and without, and translate them and the reader's."""
    wanted = "a dictionary from tables to lists of rows"
    as_kind(my_rows, "my_rows", mapping_of(object, sequence_of(str)), wanted)
    groups = _new_words(my_rows)
    as_kind(taught, "taught", nn.Module, "the translator after its training")
    own = _own_sentences(my_sentences, groups)
    new, old = _drawn(json.dumps({table: [*lines] for table, lines in my_rows.items()}))
    for word, forms in groups.items():
        if not any(_has(forms, pair.english) for pair in new):
            asked_back = "Do a verb's objects, or an adjective's nouns, have its class?"
            raise Wrong(f"{word!r} is in none of {DRAWN:,} sentences that the grammar draws. {asked_back}")
    if len(new) < SCORED:
        raise Wrong(f"Only {len(new)} of {DRAWN:,} sentences have one of your words. Give them more classes.")
    wrong_new, wrong_old = (_mistakes(taught, translate, some[:SCORED]) for some in (new, old))
    learned, kept = SCORED - len(wrong_new), SCORED - len(wrong_old)
    of_100 = f"of {SCORED}"
    if learned < LEARNED:
        first, text = wrong_new[0]
        said = f"{learned} {of_100} new sentences with your words are exactly right; {LEARNED} are wanted."
        raise Wrong(f"{said} {first.english!r} becomes {text!r}.")
    if kept < KEPT:
        first, text = wrong_old[0]
        said = f"Of {SCORED} old sentences only {kept} are exactly right; {KEPT} are wanted."
        raise Wrong(f"Your words are learned. {said} {first.english!r} becomes {text!r}.")
    found = translate(taught, list(own))
    missed = [(*pair, text) for pair, text in zip(own.items(), found, strict=True) if text != pair[1]]
    passed = SENTENCES - len(missed)
    if passed < ENOUGH:
        english, german, text = missed[0]
        said = f"Of your own sentences {passed} are translated as you did; {ENOUGH} are wanted."
        raise Wrong(f"{said} {english!r} becomes {text!r}, not {german!r}.")
    return (
        f"{learned} {of_100} new sentences with your words, {kept} {of_100} old ones, and {passed} of "
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
    wanted = "a dictionary from English to German sentences"
    as_kind(sentences, "my_sentences", mapping_of(is_text, is_text), wanted)
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
    pairs = english_german.pairs(DRAWN, num_held_out=1, seed=SEED, more=more)["train"]
    forms = frozenset().union(*_new_words(more).values())
    both: tuple[list[Pair], list[Pair]] = ([], [])
    for pair in pairs:
        both[not _has(forms, pair.english)].append(pair)
    return both


def _mistakes(taught: nn.Module, translate: Translate, pairs: Sequence[Pair]) -> list[tuple[Pair, str]]:
    """The pairs that are not translated as the grammar does, with the translation."""
    written = translate(taught, [pair.english for pair in pairs])
    return [(pair, text) for pair, text in zip(pairs, written, strict=True) if text != pair.german]
