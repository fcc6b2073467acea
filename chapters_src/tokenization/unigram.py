"""The Unigram model, the tokenizer of T5, ALBERT and XLNet (chapter 03).

Each piece has a probability, and the probability of a segmentation is the product over its pieces, as if they
were drawn independently. *Encoding* takes the most probable segmentation of each word. For learning the
pieces, see `unigram_training`.

Spaces become part of the words, as the visible character "▁" before each of them, so that they survive
decoding.

Sources: Kudo 2018, https://arxiv.org/abs/1804.10959 (Section 3); Kudo and Richardson 2018,
https://arxiv.org/abs/1808.06226 (the space as a character).
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Self

import regex

from chapters_src.tokenization.base import SubwordTokenizer
from chapters_src.tokenization.lattice import best_segmentation, build_trie
from chapters_src.tokenization.shared import check_alphabet, count_words, with_unknown
from chapters_src.tokenization.unigram_training import learn_pieces

SPACE = "▁"  # U+2581
WORD = regex.compile(f"{SPACE}[^{SPACE}]*")
UNKNOWN_PENALTY = 10.0  # nats below the lowest score of the vocabulary, as in SentencePiece and the library


class UnigramTokenizer(SubwordTokenizer):
    """Unigram with scores for its pieces.

    `pieces`, an attribute, too, have their log-probabilities, in the order of ids, as in the Tokenizers
    library. The scores of special tokens are not used for encoding. `unknown_token`, one of them, replaces
    characters that no piece begins with; neighboring ones become one token.

    Raises:
        ValueError: A piece is repeated or empty, or a special token is missing.
    """

    def __init__(
        self,
        pieces: Iterable[tuple[str, float]],
        special_tokens: Sequence[str] = (),
        unknown_token: str = "<unk>",
    ):
        self.pieces = [(piece, float(score)) for piece, score in pieces]
        vocabulary = {piece: number for number, (piece, _) in enumerate(self.pieces)}
        if len(vocabulary) < len(self.pieces) or "" in vocabulary:
            raise ValueError("pieces must be distinct and not empty")
        super().__init__(vocabulary, with_unknown(special_tokens, unknown_token), unknown_token)
        self._unknown = unknown_token
        self._scores = {piece: score for piece, score in self.pieces if piece not in self.special_tokens}
        self._trie = build_trie(self._scores)
        self._unknown_score = min(score for _, score in self.pieces) - UNKNOWN_PENALTY

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        special_tokens: Sequence[str] = (),
        min_frequency: int = 1,
        unknown_token: str = "<unk>",
    ) -> Self:
        """Learn pieces and their probabilities from a corpus.

        Args: as for `UnitTokenizer.train`; substrings rarer than `min_frequency` do not become pieces,
        unless they are single characters.

        Returns:
            The tokenizer. It is smaller than `vocab_size` if the corpus does not have enough substrings.

        Raises:
            ValueError: The corpus is empty, a special token is repeated, or `vocab_size` is too small for the
                special tokens and the characters.
        """
        special_tokens = with_unknown(special_tokens, unknown_token)
        words = count_words(texts, cls.words)
        check_alphabet(set().union(*words), vocab_size, special_tokens)
        pieces = learn_pieces(words, vocab_size - len(special_tokens), min_frequency, excluded=special_tokens)
        return cls([*((token, 0.0) for token in special_tokens), *pieces], special_tokens, unknown_token)

    @staticmethod
    def words(text: str) -> list[str]:
        """Write each space as "▁", add one in front of the text if it has none, and split before each.

        Only the space U+0020 is a boundary; other white space stays inside words, as in the library's
        `Metaspace`.
        """
        marked = text.replace(" ", SPACE)
        return WORD.findall(marked if marked.startswith(SPACE) else SPACE + marked) if text else []

    def segment(self, word: str) -> list[str]:
        """Split a word, as `words` returns it, into its most probable pieces.

        Parts that are no pieces are unknown; neighboring unknown characters stay together.
        """
        best = best_segmentation(word, self._trie, self._scores, self._unknown_score)
        parts: list[str] = []
        for known, run in groupby(best, key=self._scores.__contains__):
            neighbors = list(run)
            parts += neighbors if known else ["".join(neighbors)]
        return parts

    def _pieces_of_word(self, word: str) -> list[str]:
        return [part if part in self._scores else self._unknown for part in self.segment(word)]

    def _text(self, pieces: list[str]) -> str:
        return "".join(pieces).replace(SPACE, " ").removeprefix(" ")

    def _state(self) -> dict[str, Any]:
        return {
            "pieces": self.pieces,
            "special_tokens": self.special_tokens,
            "unknown_token": self.unknown_token,
        }
