"""The common interface of all tokenizers of chapter 03.

A tokenizer maps text to pieces, pieces to ids, and ids back to text. The algorithms differ in how they split
a text without special tokens into pieces (`_pieces`) and how they join pieces (`_text`); everything else is
here.

Special tokens carry meaning for a model: "the text ends here", "fill this blank". A text that merely
*spells* one must not have that effect, so `tokenize` and `encode` treat it as ordinary characters. To build a
text with special tokens on purpose, pass `allow_special_tokens=True`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import regex

from chapters_src.tokenization.shared import (
    check_ids,
    check_special_tokens,
    check_text,
    check_vocabulary,
    count_words,
    most_frequent,
    read_json,
    with_unknown,
    write_json,
)

LONGEST_CACHED_WORD = 64  # characters; longer words rarely repeat
LARGEST_CACHE = 100_000  # words


class Tokenizer(ABC):
    """The base class of `CharacterTokenizer`, `WordTokenizer` and the three subword tokenizers.

    Attributes:
        vocabulary: Token to id. The ids are 0, 1, 2 ... each once.
        special_tokens: Tokens that stand for an instruction, not for text. Includes `unknown_token`.
        unknown_token: Replaces text that the vocabulary cannot spell; `None` if there is no such text.
    """

    def __init__(
        self, vocabulary: Mapping[str, int], special_tokens: Sequence[str], unknown_token: str | None
    ):
        self.special_tokens = check_special_tokens(special_tokens)
        self.unknown_token = unknown_token
        self.vocabulary = dict(vocabulary)
        check_vocabulary(self.vocabulary, self.special_tokens)
        self._token_of_id = sorted(self.vocabulary, key=self.vocabulary.__getitem__)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tokens)"

    @abstractmethod
    def _pieces(self, text: str) -> list[str]:
        """Split a text without special tokens into pieces of the vocabulary."""

    @abstractmethod
    def _text(self, pieces: list[str]) -> str:
        """Join pieces, including special tokens."""

    def _state(self) -> dict[str, Any]:
        """Return the constructor arguments that recreate this tokenizer."""
        return {
            "vocabulary": self.vocabulary,
            "special_tokens": self.special_tokens,
            "unknown_token": self.unknown_token,
        }

    def tokenize(self, text: str, allow_special_tokens: bool = False) -> list[str]:
        """Split a text into pieces of the vocabulary; an empty one gives an empty list.

        With `allow_special_tokens`, a special token spelled out in the text counts as that token. By default
        it is ordinary text.

        Raises:
            TypeError: `text` is not a `str`.
            ValueError: `text` holds a lone surrogate.
        """
        check_text(text)
        if not (allow_special_tokens and self.special_tokens):
            return self._pieces(text)
        longest_first = sorted(self.special_tokens, key=len, reverse=True)
        parts = regex.split(f"({'|'.join(map(regex.escape, longest_first))})", text)
        pieces: list[str] = []
        for number, part in enumerate(parts):  # Special tokens, the separators, are at odd positions.
            pieces += [part] if number % 2 else self._pieces(part)
        return pieces

    def encode(self, text: str, allow_special_tokens: bool = False) -> list[int]:
        """Turn a text into ids.

        Args, and what is raised: as for `tokenize`.
        """
        return [self.vocabulary[piece] for piece in self.tokenize(text, allow_special_tokens)]

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids back into text, without what the tokenizer does not preserve (say, the case of letters).

        Special tokens are shown as they are spelled.

        Raises:
            TypeError: An id is not an integer.
            ValueError: An id is out of range.
        """
        return self._text([self._token_of_id[token_id] for token_id in check_ids(ids, len(self))])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tokenizer to one JSON file, atomically; its folder has to exist."""
        write_json(path, {"tokenizer": type(self).__name__, **self._state()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a tokenizer that `save` wrote.

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: The file is damaged, or holds a tokenizer of another kind.
        """
        state = read_json(path)
        kind = state.pop("tokenizer", None)
        if kind != cls.__name__:
            found = f"a {kind}: read it with {kind}.load" if isinstance(kind, str) else "no saved tokenizer"
            raise ValueError(f"{path} holds {found}")
        try:
            return cls(**state)
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} is damaged: {error}. Save it again.") from error


class UnitTokenizer(Tokenizer):
    """A tokenizer without subwords: each unit of a text (a character, a word) is known or unknown.

    Arguments are the attributes of `Tokenizer`; `unknown_token` is a special token without being named there.

    Raises:
        ValueError: The ids are not 0, 1, 2 ..., or a special token is not in the vocabulary.
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        special_tokens: Sequence[str] = (),
        unknown_token: str = "<unk>",
    ):
        super().__init__(vocabulary, with_unknown(special_tokens, unknown_token), unknown_token)
        self._unknown = unknown_token
        self._known = self.vocabulary.keys() - set(self.special_tokens)

    @staticmethod
    @abstractmethod
    def units(text: str) -> list[str]:
        """Split a text into units."""

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int | None = None,
        special_tokens: Sequence[str] = (),
        min_frequency: int = 1,
        unknown_token: str = "<unk>",
    ) -> Self:
        """Collect the units of a corpus.

        Args:
            texts: The corpus.
            vocab_size: Total number of tokens, special ones included; `None` keeps all units.
            special_tokens: Get the first ids, in this order.
            min_frequency: Units that occur less often become unknown.
            unknown_token: Gets id 0 unless it is among the special tokens.

        Returns:
            The tokenizer; more frequent units have smaller ids.

        Raises:
            ValueError: The corpus is empty, a special token is repeated, or `vocab_size` is too small.
        """
        special_tokens = with_unknown(special_tokens, unknown_token)
        counts = count_words(texts, cls.units)
        return cls(
            most_frequent(counts, vocab_size, special_tokens, min_frequency), special_tokens, unknown_token
        )

    def _pieces(self, text: str) -> list[str]:
        known, unknown = self._known, self._unknown
        return [unit if unit in known else unknown for unit in self.units(text)]


class SubwordTokenizer(Tokenizer):
    """A tokenizer that splits a text into words, and each word into pieces independently of its neighbors.

    Since words repeat, the pieces of short words are cached. The cache changes the speed, never the result.
    """

    def __init__(
        self, vocabulary: Mapping[str, int], special_tokens: Sequence[str], unknown_token: str | None
    ):
        super().__init__(vocabulary, special_tokens, unknown_token)
        self._cache: dict[str, list[str]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_cache": {}}  # a pickled copy starts with an empty cache

    @staticmethod
    @abstractmethod
    def words(text: str) -> list[str]:
        """Split a text into words: pre-tokenization."""

    @abstractmethod
    def _pieces_of_word(self, word: str) -> list[str]:
        """Split one word into pieces."""

    def _pieces(self, text: str) -> list[str]:
        pieces: list[str] = []
        cache = self._cache
        for word in self.words(text):
            found = cache.get(word)
            if found is None:
                found = self._pieces_of_word(word)
                if len(word) <= LONGEST_CACHED_WORD:
                    if len(cache) >= LARGEST_CACHE:
                        cache.clear()
                    cache[word] = found
            pieces += found
        return pieces
