"""Character tokenization: every character is a token (chapter 03).

The smallest vocabulary and the longest sequences. Nothing is learned but the list of characters, and a
character that was not in the corpus is unknown.
"""

from chapters_src.tokenization.base import UnitTokenizer


class CharacterTokenizer(UnitTokenizer):
    """Each character (Unicode code point) is one token: `"né"` gives `["n", "é"]`.

    Arguments as for `UnitTokenizer`. Decoding gives the text back, with `unknown_token` for each unknown
    character.
    """

    @staticmethod
    def units(text: str) -> list[str]:
        """Cut a text into its characters."""
        return list(text)

    def _text(self, pieces: list[str]) -> str:
        return "".join(pieces)
