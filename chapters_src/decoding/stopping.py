"""When to stop: end ids, stop strings, and the text that is certain before a continuation ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Protocol

from chapters_src.transformer.checks import as_integer

_INCOMPLETE = "\ufffd"  # What byte-level tokenizers return for an incomplete character.


class Decodes(Protocol):
    """What decoding needs of a tokenizer: one of ours, of Tokenizers or of Transformers."""

    def decode(self, ids: list[int], /) -> str:
        """Turn ids into text."""


@dataclass(frozen=True, init=False)
class Stop:
    """The conditions that end a continuation before its maximum length.

    An end id ends it and is the last of its ids, but not part of the text. A stop string ends it with the
    token that completes the string; the text is cut before the string, which may begin and end inside tokens.
    Only new text is searched, whereas the library also finds a string that begins in the prompt.
    """

    end_ids: tuple[int, ...]
    stop_strings: tuple[str, ...]
    tokenizer: Decodes | None

    def __init__(
        self,
        end_ids: int | Sequence[int] = (),
        stop_strings: str | Sequence[str] = (),
        tokenizer: Decodes | None = None,
    ) -> None:
        """Check the conditions. Stop strings require a tokenizer; without one continuations have no text.

        Raises:
            ValueError: a number is not an id, a stop string is empty, or stop strings have no tokenizer.
        """
        ids = (end_ids,) if isinstance(end_ids, int | Integral) else tuple(end_ids)
        strings = (stop_strings,) if isinstance(stop_strings, str) else tuple(stop_strings)
        if not all(isinstance(string, str) and string for string in strings):
            raise ValueError(f"stop_strings={stop_strings!r} have to be non-empty strings; () for none")
        if strings and tokenizer is None:
            raise ValueError(f"stop_strings={stop_strings!r} need a tokenizer to look for them in the text")
        ids = tuple(as_integer("end_ids", each, 0, "() for none") for each in ids)
        object.__setattr__(self, "end_ids", ids)
        object.__setattr__(self, "stop_strings", strings)
        object.__setattr__(self, "tokenizer", tokenizer)

    def reason(self, ids: Sequence[int]) -> str | None:
        """Return why a continuation ends with the last of its ids; no earlier one has ended it.

        It is "end" for an end id, "stop" for a stop string; None if it does not end.
        """
        if ids[-1] in self.end_ids:
            return "end"
        if self.stop_strings and self._first_stop(self._full_text(ids)) is not None:
            return "stop"
        return None

    def text(self, ids: Sequence[int]) -> str | None:
        """Return the text of a continuation, without its end token, cut before the stop string.

        It is None without a tokenizer.
        """
        if self.tokenizer is None:
            return None
        text = self._full_text(ids)
        return text[: self._first_stop(text)]

    def certain_text(self, ids: Sequence[int]) -> str:
        """Return the part of the text of an unfinished continuation that no further token can change.

        It excludes an incomplete character at the end, and whatever may become a stop string. This requires
        that the text of the first ids is the beginning of the text of all ids, as with tokenizers on bytes or
        characters. Without a tokenizer it is empty.
        """
        if self.tokenizer is None:
            return ""
        text = self._full_text(ids).rstrip(_INCOMPLETE)
        begun = max((_overlap(text, string) for string in self.stop_strings), default=0)
        return text[: len(text) - begun]

    def _full_text(self, ids: Sequence[int]) -> str:
        if self.tokenizer is None:
            return ""
        return self.tokenizer.decode([each for each in ids if each not in self.end_ids])

    def _first_stop(self, text: str) -> int | None:
        found = [text.find(string) for string in self.stop_strings]
        return min((place for place in found if place >= 0), default=None)


ONLY_LENGTH = Stop()


def _overlap(text: str, string: str) -> int:
    """Return how many characters at the end of a text may begin this string, which is not in it."""
    return next((n for n in range(len(string) - 1, 0, -1) if text.endswith(string[:n])), 0)
