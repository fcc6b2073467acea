"""Word tokenization: every word and every punctuation mark is a token (chapter 03).

Sequences are short, but the vocabulary never ends: words that were not in the corpus are unknown, whatever
they mean, and *token*, *tokens* and *tokenize* have nothing in common.
"""

import regex

from chapters_src.tokenization.base import UnitTokenizer

WORD_OR_MARK = regex.compile(r"\w+|[^\w\s]")  # a run of letters and digits, or one other visible character


class WordTokenizer(UnitTokenizer):
    """Each word and each punctuation mark is one token: `"It's 5."` gives `["It", "'", "s", "5", "."]`.

    Arguments as for `UnitTokenizer`. Decoding puts one space between tokens: white space is not preserved.
    """

    @staticmethod
    def units(text: str) -> list[str]:
        """Split a text into words and punctuation marks."""
        return WORD_OR_MARK.findall(text)

    def _text(self, pieces: list[str]) -> str:
        return " ".join(pieces)
