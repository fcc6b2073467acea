"""Text preparation of the uncased BERT models, before WordPiece (chapter 03).

Four steps: drop control characters, put spaces around Chinese characters, strip accents and lowercase, and
split at white space and punctuation. Pretrained models have only seen text prepared in exactly this way, so
it has to be reproduced to the character, oddities included.

Source: Devlin et al. 2019, https://arxiv.org/abs/1810.04805, and the Tokenizers library (`BertNormalizer` and
`BertPreTokenizer`). The tests compare with the library, character by character.
"""

import unicodedata
from collections.abc import Callable

import regex

# Blocks of Chinese characters, which are written without spaces. Korean and Japanese syllables are not
# among them. The sixth block begins at U+2B820 in Unicode and at U+2B920 in the library.
CHINESE_BLOCKS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)

# The library uses the categories of Unicode 8 (2015). Every mark, control character and punctuation mark in
# these ranges is newer; the library treats it as a letter.
YOUNGER_THAN_UNICODE_8 = [
    (int(first, 16), int(last or first, 16))
    for first, last in regex.findall(
        r"(\w+)-?(\w*)",
        "5C8-5C9 61D 7FD 890-8E2 9FD-9FE A76 AFA-AFF B53-B55 C04-C3C C77 C84 D00 D3B-D3C D81 EBA ECE "
        "180F-1886 1ABF-1AF0 1B4E-1B4F 1B7D-1B7F 1DF6-1DFB 2E43-2E63 A82C A8C5 A8FF A9BD 10D24-10F89 "
        "11070-11074 110C2-110CD 111CF 1123E-11241 1133B 113BB-1145E 11660-1166C 116B9 1182F-11FFF "
        "12FF1-1612F 16D6D-16F4F 16FE2-16FE4 1CF00-1D128 1D25B-1D25C 1E000-1E6F5 1E944-1E95F",
    )
]
CHANGED_SINCE_UNICODE_8 = {0x1734: "Mn", 0x1171E: "Mn", 0x111C9: "Po", 0x166D: "Po"}


def category(character: str) -> str:
    """Return the Unicode category of a character, such as "Lu" or "Mn", as it was in Unicode 8."""
    code = ord(character)
    if code in CHANGED_SINCE_UNICODE_8:
        return CHANGED_SINCE_UNICODE_8[code]
    if any(first <= code <= last for first, last in YOUNGER_THAN_UNICODE_8):
        return "Lo"
    return unicodedata.category(character)


def is_punctuation(character: str) -> bool:
    """Return whether a character is a separate word: punctuation, or an ASCII symbol such as `$` or `~`."""
    return category(character).startswith("P") or (character.isascii() and category(character)[0] in "SP")


def clean(character: str) -> str:
    """Drop control characters, normalize white space, and put spaces around Chinese characters."""
    code = ord(character)
    if character in "\t\n\r" or category(character) in ("Zs", "Zl", "Zp"):
        return " "
    if character in "\0\ufffd" or category(character) in ("Cc", "Cf", "Co"):
        return ""
    if any(first <= code <= last for first, last in CHINESE_BLOCKS):
        return f" {character} "
    return character


def fold(character: str) -> str:
    """Drop accents (separate characters once decomposed), lowercase, and put spaces around punctuation."""
    if category(character) == "Mn":
        return ""
    if is_punctuation(character):
        return f" {character} "
    return character.lower()


class _Table(dict):
    """A table for `str.translate` that calls a function the first time a character occurs."""

    def __init__(self, function: Callable[[str], str]):
        super().__init__()
        self._function = function

    def __missing__(self, code: int) -> str:
        self[code] = replacement = self._function(chr(code))
        return replacement


_CLEAN, _FOLD = _Table(clean), _Table(fold)


def bert_words(text: str) -> list[str]:
    """Prepare a text as for an uncased BERT and split it into words and punctuation marks.

    Words are in lower case, without accents: `"Élan, 東京!"` gives `["elan", ",", "東", "京", "!"]`.
    """
    decomposed = unicodedata.normalize("NFD", text.translate(_CLEAN))
    return decomposed.translate(_FOLD).split()
