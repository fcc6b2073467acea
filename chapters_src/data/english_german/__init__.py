"""English sentences and their German translations, from a grammar written for this book: chapter 09.

A sentence is drawn once, as a language-neutral `Clause`: who does what to whom, when, in which tense. Two
small grammars render it, one in English and one in German. German cases, endings and word order come from
rules, so a pair is right if the tables of words and the rules are.

`lexicon` reads the words, `clauses` says what a sentence is, `in_english` and `in_german` render it,
`drawing` draws, `sense` forbids what makes none, `splits` says what training never has. The card,
`english_german.md` beside this folder, describes what the grammar covers, its conventions, splits and limits.
"""

from chapters_src.data.english_german.checks import (
    count_simple_sentences,
    noun_phrases,
    vocabulary,
)
from chapters_src.data.english_german.clauses import (
    PERSONS,
    Clause,
    Gap,
    Part,
    Person,
    Phrase,
    Prepositional,
    object_case,
    rules_of,
    takes_kein,
)
from chapters_src.data.english_german.dictionary import dictionary, word_by_word
from chapters_src.data.english_german.drawing import Draft, Pair, Writer, render
from chapters_src.data.english_german.in_english import english, english_phrase
from chapters_src.data.english_german.in_german import CASES, decline, german
from chapters_src.data.english_german.lexicon import (
    FOLDER,
    Adjective,
    Adverb,
    Lexicon,
    Noun,
    Verb,
    adjectives,
    adverbs,
    lexicon,
    nouns,
    verbs,
)
from chapters_src.data.english_german.splits import (
    HELD_OUT_RULES,
    HELD_OUT_SPLITS,
    LONGEST,
    MOST,
    SPLITS,
    is_held_out,
    load,
)

__all__ = [
    "CASES", "FOLDER", "HELD_OUT_RULES", "HELD_OUT_SPLITS", "LONGEST", "MOST", "PERSONS", "SPLITS",
    "Adjective", "Adverb", "Clause", "Draft", "Gap", "Lexicon", "Noun", "Pair", "Part", "Person", "Phrase",
    "Prepositional", "Verb", "Writer", "adjectives", "adverbs", "count_simple_sentences",
    "decline", "dictionary", "english", "english_phrase", "german", "is_held_out", "lexicon", "load",
    "noun_phrases", "nouns", "object_case", "render", "rules_of", "takes_kein", "verbs", "vocabulary",
    "word_by_word",
]  # fmt: skip
