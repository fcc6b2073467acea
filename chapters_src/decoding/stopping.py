"""When to stop: end ids, stop strings, and the text that is certain before a continuation has ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_INCOMPLETE = "\ufffd"  # What tokenizers on bytes show where a character is not complete.


class Decodes(Protocol):
    """A tokenizer, as far as decoding needs one: one of ours, or of Tokenizers or Transformers."""

    def decode(self, ids: list[int], /) -> str:
        """Turn ids into text."""


@dataclass(frozen=True)
class Stop:
    """What ends a continuation, besides its length.

    An end id ends it, and is the last of its ids; its text is without it. A stop string ends it with the
    token in which the string is complete, and that token is the last of the ids; the text is cut where the
    string begins. A string may begin and end in the middle of tokens. It is looked for in the new text alone:
    the library finds one that begins in the prompt, too.

    Raises:
        ValueError: a number that is no id, an empty stop string, or stop strings without a tokenizer.
    """

    end_ids: int | Sequence[int] = ()
    stop_strings: str | Sequence[str] = ()
    tokenizer: Decodes | None = None  # To look for stop strings, and to give the text of continuations.

    def __post_init__(self) -> None:
        end_ids = (self.end_ids,) if isinstance(self.end_ids, int) else tuple(self.end_ids)
        strings = (self.stop_strings,) if isinstance(self.stop_strings, str) else tuple(self.stop_strings)
        for end_id in end_ids:
            if isinstance(end_id, bool) or not isinstance(end_id, int) or end_id < 0:
                raise ValueError(f"end_ids={self.end_ids!r} have to be whole numbers from 0; () for none")
        if not all(isinstance(string, str) and string for string in strings):
            raise ValueError(
                f"stop_strings={self.stop_strings!r}: an empty one would stop at once; () for none"
            )
        if strings and self.tokenizer is None:
            raise ValueError(
                f"stop_strings={self.stop_strings!r} need a tokenizer: they are looked for in the text"
            )
        object.__setattr__(self, "end_ids", end_ids)  # Always tuples, once it is made.
        object.__setattr__(self, "stop_strings", strings)

    def reason(self, ids: Sequence[int]) -> str | None:
        """Say why a continuation ends with its last token.

        Args:
            ids: of the continuation, without the prompt; no earlier token has ended it.

        Returns:
            "end" for an end id, "stop" for a stop string; None: it goes on.
        """
        if ids[-1] in self.end_ids:
            return "end"
        if self.stop_strings and self._first_stop(self._whole_text(ids)) is not None:
            return "stop"
        return None

    def text(self, ids: Sequence[int]) -> str | None:
        """Give the text of a continuation: without its end token, cut before the stop string.

        Args:
            ids: of the continuation, without the prompt.

        Returns:
            The text; None if there is no tokenizer.
        """
        if self.tokenizer is None:
            return None
        text = self._whole_text(ids)
        return text[: self._first_stop(text)]

    def certain_text(self, ids: Sequence[int]) -> str:
        """Give as much of the text as no further token can change.

        At its end a character may not be complete, and what looks like a stop string may become one; both
        wait. The text of some ids has to begin with the text of the first of them, as with tokenizers on
        bytes or characters.

        Args:
            ids: of a continuation that goes on, without the prompt.

        Returns:
            The beginning of its text; empty if there is no tokenizer.
        """
        if self.tokenizer is None:
            return ""
        text = self._whole_text(ids).rstrip(_INCOMPLETE)
        begun = max((_overlap(text, string) for string in self.stop_strings), default=0)
        return text[: len(text) - begun]

    def _whole_text(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode([each for each in ids if each not in self.end_ids])

    def _first_stop(self, text: str) -> int | None:
        found = [text.find(string) for string in self.stop_strings]
        return min((place for place in found if place >= 0), default=None)


ONLY_LENGTH = Stop()


def _overlap(text: str, string: str) -> int:
    """Count the characters at the end of a text with which a longer string begins."""
    return next((n for n in range(len(string) - 1, 0, -1) if text.endswith(string[:n])), 0)
