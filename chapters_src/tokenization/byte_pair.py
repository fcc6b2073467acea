r"""Byte-pair encoding on bytes, the tokenizer of the GPT family (chapter 03).

*Training* starts with single bytes and repeatedly merges the most frequent pair of neighbors. The model is
the list of merges, in the order learned. *Encoding* applies it to a new word: of all pairs of neighbors in
the word, merge the one that was learned first, until no learned pair is left.

Sources: Sennrich et al. 2016, https://arxiv.org/abs/1508.07909 (Algorithm 1: the merges); Radford et al.
2019, https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf
(Section 2.2: bytes in place of characters, and no merges across kinds of characters).
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Self

import regex

from chapters_src.tokenization.base import SubwordTokenizer
from chapters_src.tokenization.pair_counts import PairCounts
from chapters_src.tokenization.shared import check_alphabet, check_special_tokens, count_words

# GPT-2's definition of a word: an English contraction, or letters, digits or symbols, each with the space
# before them; remaining spaces are separate. Except in contractions, letters, digits and symbols never mix.
WORD = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d"
    r"| ?\p{L}+"  # letters
    r"| ?\p{N}+"  # digits
    r"| ?[^\s\p{L}\p{N}]+"  # everything else that is visible
    r"|\s+(?!\S)"  # white space, without its last character if a word follows
    r"|\s+"
)


def byte_alphabet() -> dict[int, str]:
    """Map each of the 256 bytes to a visible character, so that pieces can be read and stored as text.

    A byte whose Latin-1 character is visible keeps it (65 is "A"). The 68 others - control characters, the
    space, the no-break space, the soft hyphen - get the characters from U+0100 on, in order: the space,
    byte 32, becomes "Ġ", the newline, byte 10, "Ċ".
    """
    substitutes = (chr(number) for number in count(256))
    return {
        byte: chr(byte) if chr(byte).isprintable() and byte != ord(" ") else next(substitutes)
        for byte in range(256)
    }


ALPHABET = byte_alphabet()
BYTE_OF = {character: byte for byte, character in ALPHABET.items()}


def spell(word: str) -> str:
    """Write the UTF-8 bytes of a word with the byte alphabet: " né" becomes "ĠnÃ©"."""
    return "".join([ALPHABET[byte] for byte in word.encode("utf-8")])


def learn_merges(
    words: Mapping[str, int], vocabulary: Mapping[str, int], vocab_size: int, min_frequency: int = 1
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Learn merges from counted words: the most frequent pair first.

    Ties go to the pair with the smaller ids: without a fixed order, two programs would learn different merges
    from the same text.

    All pairs are in a heap with the count they had when they were pushed. The count on top may be stale, but
    only too high: then the pair is pushed again with its current count. So the first entry that is up to date
    is the most frequent pair.

    Args:
        words: Each word, spelled in one-character symbols, with its number of occurrences.
        vocabulary: Special tokens and the single symbols, with their ids.
        vocab_size: Number of tokens to stop at.
        min_frequency: Rarer pairs are not merged.

    Returns:
        The vocabulary with the new pieces, and the merges in the order learned. There are fewer than
        `vocab_size` tokens if the words hold no further pair.
    """
    vocabulary = dict(vocabulary)
    symbols = list(vocabulary)
    pairs = PairCounts([([vocabulary[symbol] for symbol in word], number) for word, number in words.items()])
    heap = [(-number, pair) for pair, number in pairs.counts.items()]
    heapq.heapify(heap)
    merges = []
    while heap and len(vocabulary) < vocab_size:
        noted, pair = heapq.heappop(heap)
        frequency = pairs.counts[pair]
        if frequency < max(min_frequency, 1):
            continue
        if frequency != -noted:
            heapq.heappush(heap, (-frequency, pair))
            continue
        left, right = symbols[pair[0]], symbols[pair[1]]
        if left + right in vocabulary:  # spells a special token, which text must not produce
            continue
        merges.append((left, right))
        symbols.append(left + right)
        merged = vocabulary[left + right] = len(vocabulary)
        for changed in pairs.merge(pair, merged):
            if merged in changed:
                heapq.heappush(heap, (-pairs.counts[changed], changed))
    return vocabulary, merges


def apply_merges(symbols: list[str], ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """Merge neighbors in a word, always the pair that was learned first, until none is left.

    The word, in single symbols, is a linked list, with a list of positions for each pair that can be merged,
    so the cost of a merge does not depend on the length of the word. Searching the word again after each
    merge would take quadratic time. A pair only comes up while its newer piece is being made, from left to
    right, so its positions are sorted too.

    `ranks` has each learned pair with its rank. A pair has to come after the merges that make its two pieces,
    and no two pairs may make the same piece.
    """
    pieces = list(symbols)
    end = len(pieces)
    following, preceding = list(range(1, end + 1)), list(range(-1, end - 1))
    places: defaultdict[int, list[int]] = defaultdict(list)  # rank to positions of the left piece
    waiting: list[int] = []  # a heap of the ranks in `places`

    def note(left: int, right: int) -> None:
        rank = ranks.get((pieces[left], pieces[right]))
        if rank is not None:
            if rank not in places:
                heapq.heappush(waiting, rank)
            places[rank].append(left)

    for position in range(end - 1):
        note(position, position + 1)
    while waiting:
        rank = heapq.heappop(waiting)
        for here in places.pop(rank):
            there = following[here]
            if there == end or ranks.get((pieces[here], pieces[there])) != rank:
                continue  # one of the two has since been merged with another neighbor
            pieces[here] += pieces[there]
            pieces[there] = ""
            following[here] = after = following[there]
            if preceding[here] >= 0:
                note(preceding[here], here)
            if after < end:
                preceding[after] = here
                note(here, after)
    return [piece for piece in pieces if piece]


def pieces_of_merges(merges: Iterable[tuple[str, str]]) -> set[str]:
    """List every piece that text can be split into: the single bytes, and what the merges make, in order.

    Raises:
        ValueError: a merge needs a piece that no earlier merge has made, or makes an existing piece.
    """
    pieces = set(BYTE_OF)
    for number, (left, right) in enumerate(merges):
        if left not in pieces or right not in pieces:
            raise ValueError(
                f"merge {number} joins {left!r} and {right!r}, but no earlier merge has made both"
            )
        if left + right in pieces:
            raise ValueError(f"merge {number} makes {left + right!r}, which is already a piece")
        pieces.add(left + right)
    return pieces


class BytePairTokenizer(SubwordTokenizer):
    """Byte-level BPE. Any text can be encoded and decodes to itself, so there is no unknown token.

    Arguments are the attributes of `Tokenizer`, here with all 256 characters of the byte alphabet in the
    vocabulary, and `merges`, pairs of pieces in the order learned, which are an attribute, too.

    Raises:
        ValueError: The vocabulary lacks a byte or the result of a merge, the merges are not in the order
            learned, a special token is spelled like a piece of text, or the ids are not 0, 1, 2 ...
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        merges: Iterable[tuple[str, str]],
        special_tokens: Sequence[str] = (),
    ):
        super().__init__(vocabulary, special_tokens, unknown_token=None)
        self.merges = [(left, right) for left, right in merges]
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        pieces = pieces_of_merges(self.merges)
        if missing := sorted(pieces - self.vocabulary.keys()):
            raise ValueError(
                f"{len(missing)} bytes or merged pieces are not in the vocabulary: {missing[:5]} ..."
            )
        if spelled := sorted(pieces.intersection(self.special_tokens)):
            raise ValueError(f"special tokens {spelled} are pieces of text too: write them like <|name|>")

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        special_tokens: Sequence[str] = (),
        min_frequency: int = 1,
    ) -> Self:
        """Learn merges from a corpus.

        Args: as for `UnitTokenizer.train`; pairs rarer than `min_frequency` are not merged.

        Returns:
            The tokenizer: special tokens, 256 bytes, and one token for each merge. It is smaller than
            `vocab_size` if the corpus has no more pairs.

        Raises:
            ValueError: The corpus is empty, a special token is repeated or is a single byte, or `vocab_size`
                is too small for the special tokens and the bytes.
        """
        special_tokens = check_special_tokens(special_tokens)
        check_alphabet(BYTE_OF, vocab_size, special_tokens)
        words = {spell(word): number for word, number in count_words(texts, cls.words).items()}
        start = {token: number for number, token in enumerate([*special_tokens, *sorted(BYTE_OF)])}
        vocabulary, merges = learn_merges(words, start, vocab_size, min_frequency)
        return cls(vocabulary, merges, special_tokens)

    @staticmethod
    def words(text: str) -> list[str]:
        """Split a text into words, which concatenate to the text."""
        return WORD.findall(text)

    def _pieces_of_word(self, word: str) -> list[str]:
        return apply_merges(list(spell(word)), self._ranks)

    def _text(self, pieces: list[str]) -> str:
        """Decode the bytes of all pieces as UTF-8; invalid bytes become U+FFFD."""
        return b"".join(map(self._bytes, pieces)).decode("utf-8", errors="replace")

    def _bytes(self, piece: str) -> bytes:
        if piece in self.special_tokens:
            return piece.encode("utf-8")
        return bytes([BYTE_OF[character] for character in piece])

    def _state(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary, "merges": self.merges, "special_tokens": self.special_tokens}
