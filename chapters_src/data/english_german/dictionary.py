"""A dictionary that knows words and no grammar."""

import functools
import re

from chapters_src.data.english_german.drawing import POSITIONS
from chapters_src.data.english_german.lexicon import add_s, lexicon
from chapters_src.data.english_german.sentences import AND, BUT, SUBORDINATE

_FUNCTION_WORDS = {
    "the": "der", "a": "ein", "an": "ein", "this": "dieser", "these": "diese", "i": "ich", "me": "mich",
    "you": "du", "he": "er", "him": "ihn", "she": "sie", "her": "ihr", "we": "wir", "us": "uns",
    "they": "sie", "them": "sie", "my": "mein", "your": "dein", "his": "sein", "our": "unser",
    "their": "ihr", "am": "bin", "is": "ist", "are": "sind", "was": "war", "were": "waren", "be": "sein",
    "do": "", "does": "", "did": "", "not": "nicht", "can": "kann", "cannot": "kann nicht",
    "will": "wird", "should": "sollte", "would like to": "möchte", "would": "", "like to": "gern",
    "likes to": "gern", "have to": "müssen", "has to": "muss", "want to": "wollen", "wants to": "will",
    "allowed to": "darf", "to": "zu", "who": "wer", "whom": "wen", "what": "was", "when": "wann",
    "where": "wo", "why": "warum", "from": "aus", "of": "von", "about": "über", "over": "über",
    "against": "gegen", "with": "mit", "without": "ohne", "for": "für", "in": "in", "at": "an",
    "because of": "wegen", "despite": "trotz", "that": "dass", "whether": "ob",
}  # fmt: skip


@functools.cache
def dictionary() -> dict[str, str]:
    """Return the German translation of each lowercase English word or expression by itself.

    Nouns are in the nominative, verbs in the third person or the infinitive, adjectives and articles without
    the ending that a sentence requires. For ambiguous words, nouns come before verbs, and the first row of a
    table before later ones.
    """
    found = dict(_FUNCTION_WORDS)
    pairs = [*POSITIONS["surface"], *SUBORDINATE, AND, BUT]
    words = lexicon()
    pairs += [(noun.english, noun.german) for noun in words.nouns]
    pairs += [(noun.english_plural, noun.german_plural) for noun in words.nouns]
    pairs += [(word.english, word.german) for word in (*words.adjectives, *words.adverbs)]
    for verb in words.verbs:
        base, past, participle = verb.english
        pairs += [(base, verb.prefix + verb.infinitive), (add_s(base), f"{verb.present[2]} {verb.prefix}")]
        pairs += [(past, verb.participle), (participle, verb.participle)]
    for expression, translation in pairs:
        found.setdefault(expression.lower(), translation.strip())
    return found


def word_by_word(sentence: str) -> str:
    """Translate English word by word with the dictionary; unknown words stay as they are.

    The longest entry that fits is taken, from left to right.
    """
    words = re.findall(r"[\w]+|[.,?]", sentence.replace("'s", "").replace("s'", "s"))
    translated = []
    while words:
        for length in (3, 2, 1):
            entry = dictionary().get(" ".join(words[:length]).lower())
            if entry is not None or length == 1:
                break
        translated.append(words[0] if entry is None else entry)
        words = words[length:]
    line = re.sub(r" +([.,?])", r"\1", " ".join(filter(None, translated)))
    return line[:1].upper() + line[1:]
