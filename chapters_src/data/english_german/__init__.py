"""English sentences and their German translations, from a grammar written for this book: chapter 09.

A sentence is drawn once, as a language-neutral `Clause`: who does what to whom, when, in which tense. Two
small grammars render it, one in English and one in German. German cases, endings and word order come from
rules, so a pair is right if the tables of words and the rules are.

`lexicon` reads the words, `clauses` says what a sentence is made of, `in_english` and `in_german` render it,
`drawing` draws clauses and `sentences` sentences, `sense` forbids what makes none, `splits` says what
training never has, and `dictionary` knows words alone. The card, `english_german.md` beside this folder,
describes what the grammar covers, its conventions, splits and limits.
"""

from chapters_src.data.english_german.dictionary import word_by_word
from chapters_src.data.english_german.lexicon import lexicon
from chapters_src.data.english_german.sentences import Pair
from chapters_src.data.english_german.splits import (
    HELD_OUT_RULES,
    HELD_OUT_SPLITS,
    LONGEST,
    MOST,
    SPLITS,
    pairs,
)
