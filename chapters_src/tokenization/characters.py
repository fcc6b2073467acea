"""Character tokenization: every character is a token (chapter 03).

The vocabulary is the smallest, and sequences are the longest. Training only collects the characters; one that
was not in the corpus is unknown.
"""

from chapters_src.tokenization.base import UnitTokenizer


class CharacterTokenizer(UnitTokenizer):
    """Each character (Unicode code point) is one token: `"né"` gives `["n", "é"]`.

    Arguments as for `UnitTokenizer`. Decoding restores the text, with `unknown_token` for unknown characters.
    """

    @staticmethod
    def units(text: str) -> list[str]:
        """Split a text into its characters."""
        return list(text)

    def _text(self, pieces: list[str]) -> str:
        return "".join(pieces)
