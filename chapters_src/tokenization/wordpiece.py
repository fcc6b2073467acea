"""WordPiece, the tokenizer of BERT (chapter 03).

*Encoding* is greedy: take the longest piece of the vocabulary that the word begins with, then continue after
it. Pieces that continue a word begin with "##". If no piece fits somewhere, the entire word is unknown.

*Training* merges pairs as byte-pair encoding does, but with another score: how much more often the two are
neighbors than they would be by chance,

    score(a, b) = count(a b) / (count(a) count(b)).

If symbols are drawn independently, each merged occurrence of the pair makes the corpus more probable by this
factor, up to a constant.

Sources: Schuster and Nakajima 2012, https://research.google.com/pubs/archive/37842.pdf (training by
likelihood); Wu et al. 2016, https://arxiv.org/abs/1609.08144 (Section 4.1); Devlin et al. 2019,
https://arxiv.org/abs/1810.04805. BERT's own trainer was never published, and the trainer of the Tokenizers
library merges by frequency.
"""

import heapq
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from chapters_src.tokenization.base import SubwordTokenizer
from chapters_src.tokenization.bert_text import bert_words
from chapters_src.tokenization.pair_counts import Pair, PairCounts
from chapters_src.tokenization.shared import check_alphabet, count_words, with_unknown

CONTINUATION = "##"
BERT_SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MAX_CHARACTERS = 100  # longer words are unknown, as in BERT


def spell(word: str) -> list[str]:
    """Split a word into single characters: "cat" becomes `["c", "##a", "##t"]`."""
    return [word[0], *(CONTINUATION + character for character in word[1:])]


def score(pairs: PairCounts, pair: Pair) -> float:
    """Compare the count of a pair with those of its two symbols: count(ab) / (count(a) count(b))."""
    left, right = pair
    return pairs.counts[pair] / (pairs.symbol_counts[left] * pairs.symbol_counts[right])


def learn_pieces(
    words: Mapping[str, int], vocabulary: Mapping[str, int], vocab_size: int, min_frequency: int = 1
) -> dict[str, int]:
    """Learn pieces from counted words: the pair with the highest score first.

    Arguments are as for `byte_pair.learn_merges`. Ties go to the more frequent pair, then to the one with the
    smaller ids. A merge makes its two symbols rarer, which raises the score of every other pair that contains
    them. So all these pairs are pushed again, and stale entries are dropped. The vocabulary with the new
    pieces has fewer than `vocab_size` tokens if the words hold no further pair.
    """
    vocabulary = dict(vocabulary)
    symbols = list(vocabulary)
    pairs = PairCounts(
        [([vocabulary[symbol] for symbol in spell(word)], number) for word, number in words.items()]
    )
    pairs_with: defaultdict[int, set[Pair]] = defaultdict(set)
    heap: list[tuple[float, int, Pair]] = []

    def rank(pair: Pair) -> tuple[float, int, Pair]:
        return -score(pairs, pair), -pairs.counts[pair], pair

    def note(pair: Pair) -> None:
        if pairs.counts[pair] >= max(min_frequency, 1):
            heapq.heappush(heap, rank(pair))
            for symbol in pair:
                pairs_with[symbol].add(pair)

    for pair in list(pairs.counts):
        note(pair)
    while heap and len(vocabulary) < vocab_size:
        *_, pair = entry = heapq.heappop(heap)
        piece = symbols[pair[0]] + symbols[pair[1]].removeprefix(CONTINUATION)
        if pair not in pairs.counts or entry != rank(pair) or piece in vocabulary:
            continue
        symbols.append(piece)
        merged = vocabulary[piece] = len(vocabulary)
        changed = pairs.merge(pair, merged)
        for other in changed | pairs_with[pair[0]] | pairs_with[pair[1]]:
            note(other)
    return vocabulary


class WordPieceTokenizer(SubwordTokenizer):
    """WordPiece with the text preparation of the uncased BERT models.

    Decoding joins the pieces of each word and puts one space between words. Capitals, accents and the
    original white space are lost.

    Arguments are as for `UnitTokenizer`. A word that cannot be spelled, or has more than 100 characters, is
    replaced by `unknown_token`.

    Raises:
        ValueError: The ids are not 0, 1, 2 ..., or a special token is not in the vocabulary.
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        special_tokens: Sequence[str] = BERT_SPECIAL_TOKENS,
        unknown_token: str = "[UNK]",
    ):
        super().__init__(vocabulary, with_unknown(special_tokens, unknown_token), unknown_token)
        self._unknown = unknown_token
        self._known = self.vocabulary.keys() - set(self.special_tokens)
        self._longest = max(map(len, self._known), default=0)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read the `vocab.txt` of a BERT model, with its five special tokens: one a line, ordered by id.

        Raises:
            ValueError: A token is repeated, or a special token is missing.
        """
        with Path(path).open(encoding="utf-8", newline="\n") as lines:
            tokens = [line.rstrip("\r\n") for line in lines]
        vocabulary = {token: number for number, token in enumerate(tokens)}
        if len(vocabulary) < len(tokens):
            twice = next(token for number, token in enumerate(tokens) if vocabulary[token] != number)
            raise ValueError(f"{path} holds the token {twice!r} twice: tokens must be distinct")
        return cls(vocabulary)

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        special_tokens: Sequence[str] = BERT_SPECIAL_TOKENS,
        min_frequency: int = 1,
        unknown_token: str = "[UNK]",
    ) -> Self:
        """Learn pieces from a corpus.

        The score favors rare symbols: two that occur only once, next to each other, have the highest possible
        score. `min_frequency` excludes such accidents.

        Args: as for `UnitTokenizer.train`; pairs rarer than `min_frequency` are not merged.

        Returns:
            The tokenizer. It is smaller than `vocab_size` if the corpus has no more pairs.

        Raises:
            ValueError: The corpus is empty, a special token is repeated, or `vocab_size` is too small for the
                special tokens and the single characters (with and without "##", as they occur).
        """
        special_tokens = with_unknown(special_tokens, unknown_token)
        counts = count_words(texts, cls.words)
        words = {word: number for word, number in counts.items() if len(word) <= MAX_CHARACTERS}
        alphabet = {symbol for word in words for symbol in spell(word)}
        check_alphabet(alphabet, vocab_size, special_tokens)
        start = {token: number for number, token in enumerate([*special_tokens, *sorted(alphabet)])}
        return cls(learn_pieces(words, start, vocab_size, min_frequency), special_tokens, unknown_token)

    def encode(
        self, text: str, allow_special_tokens: bool = False, add_special_tokens: bool = False
    ) -> list[int]:
        """Turn a text into ids, as BERT expects with `add_special_tokens`: between `[CLS]` and `[SEP]`.

        Raises:
            TypeError: `text` is not a `str`.
            ValueError: `text` holds a lone surrogate, or the vocabulary has no `[CLS]` and `[SEP]`.
        """
        ids = super().encode(text, allow_special_tokens)
        if not add_special_tokens:
            return ids
        if not {"[CLS]", "[SEP]"} <= set(self.special_tokens):
            raise ValueError(f"[CLS] and [SEP] are not among the special tokens {self.special_tokens}")
        return [self.vocabulary["[CLS]"], *ids, self.vocabulary["[SEP]"]]

    @staticmethod
    def words(text: str) -> list[str]:
        """Prepare a text and split it into words: see `bert_text.bert_words`."""
        return bert_words(text)

    def _pieces_of_word(self, word: str) -> list[str]:
        if len(word) > MAX_CHARACTERS:
            return [self._unknown]
        pieces: list[str] = []
        start = 0
        while start < len(word):
            piece = self._longest_piece(word, start)
            if piece is None:
                return [self._unknown]
            pieces.append(piece)
            start += len(piece.removeprefix(CONTINUATION)) if start else len(piece)
        return pieces

    def _longest_piece(self, word: str, start: int) -> str | None:
        prefix = CONTINUATION if start else ""
        for end in range(min(len(word), start + self._longest), start, -1):
            piece = prefix + word[start:end]
            if piece in self._known:
                return piece
        return None

    def _text(self, pieces: list[str]) -> str:
        return " ".join(pieces).replace(f" {CONTINUATION}", "")
