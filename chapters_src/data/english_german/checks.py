"""How much there is: for the card and the tests."""

import itertools
from collections.abc import Iterator

from chapters_src.data.english_german.clauses import Phrase
from chapters_src.data.english_german.drawing import POSSESSIVES
from chapters_src.data.english_german.lexicon import Lexicon, Noun, lexicon


def noun_phrases(noun: Noun, words: Lexicon | None = None) -> Iterator[Phrase]:
    """Yield all phrases of a noun without owner and relative clause."""
    words = words or lexicon()
    numbers = (True,) if "pair" in noun.classes else (False, True) if noun.has_plural else (False,)
    for plural in numbers:
        if "only-the" in noun.classes:
            determiners = ("the",)
        elif "kin" in noun.classes:
            determiners = ("the", *POSSESSIVES)
        else:
            bare = "" if plural or not noun.german_plural else "a"
            this = ("this",) if noun.german_plural else ()
            determiners = ("the", bare, *this, *(POSSESSIVES if "own" in noun.classes else ()))
        for determiner, adjective in itertools.product(determiners, (None, *words.adjectives_of(noun))):
            yield Phrase(noun, plural, determiner, adjective)


def count_simple_sentences(words: Lexicon | None = None) -> int:
    """Count the sentences of one pattern: noun phrase, verb in the present, noun phrase in the accusative.

    Returns:
        Their number, without owners and relative clauses; all other patterns come on top.
    """
    words = words or lexicon()
    sizes = {noun: sum(1 for _ in noun_phrases(noun, words)) for noun in words.nouns}
    found = {
        (verb.prefix + verb.infinitive, subject, patient)
        for verb in words.verbs_of(("acc",))
        for subject in words.nouns_of(verb.subjects)
        for patient in words.nouns_of(verb.objects)
        if subject != patient
    }
    return sum(sizes[subject] * sizes[patient] for _, subject, patient in found)


def vocabulary() -> set[str]:
    """List the German nouns, adjectives and verbs in their base forms, as in bonds."""
    words = lexicon()
    found = {word.german for word in (*words.nouns, *words.adjectives)}
    return found | {verb.prefix + verb.infinitive for verb in words.verbs}
