"""Word vectors: nearest neighbors, analogies, and a matrix for `nn.Embedding`."""

from collections.abc import Sequence

import numpy as np


class WordVectors:
    """V distinct words and their vectors, one row per word, (V, D), stored as float32.

    Raises:
        ValueError: a word is repeated, or the numbers of words and rows differ.
    """

    def __init__(self, words: Sequence[str], matrix: np.ndarray) -> None:
        self.words = list(words)
        self.matrix = np.ascontiguousarray(matrix, dtype=np.float32)
        self.index = {word: i for i, word in enumerate(self.words)}
        if self.matrix.ndim != 2 or len(self.matrix) != len(self.words):
            raise ValueError(f"{len(self.words)} words need as many rows, not shape {self.matrix.shape}")
        if len(self.index) < len(self.words):
            twice = next(word for i, word in enumerate(self.words) if self.index[word] != i)
            raise ValueError(f"the word {twice!r} is repeated: each needs one vector")
        lengths = np.linalg.norm(self.matrix, axis=1, keepdims=True)
        self.unit = self.matrix / np.where(lengths > 0, lengths, 1)  # Of length 1, or 0 for a zero vector.

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __getitem__(self, word: str) -> np.ndarray:
        """Return the vector of a word, (D,)."""
        return self.matrix[self._row(word)]

    def _row(self, word: str) -> int:
        if word not in self.index:
            raise KeyError(f"{word!r} has no vector: it is not one of the {len(self)} words")
        return self.index[word]

    def similarity(self, one: str, other: str) -> float:
        """Return the cosine similarity of two words' vectors, from -1 to 1.

        Raises:
            KeyError: a word has no vector.
        """
        return float(self.unit[self._row(one)] @ self.unit[self._row(other)])

    def neighbors(self, word: str, count: int = 10) -> list[tuple[str, float]]:
        """Find the words with the most similar vectors, the nearest first, with their cosines.

        A word is not its own neighbor.

        Raises:
            KeyError: the word has no vector.
        """
        row = self._row(word)
        return self._nearest(self.unit @ self.unit[row], {row}, count)

    def analogy(self, one: str, to: str, other: str, count: int = 5) -> list[tuple[str, float]]:
        """Find the word that is to `other` as `to` is to `one`: the words near `to - one + other`.

        The best comes first, each with its cosine. Mikolov, Yih & Zweig (2013),
        https://aclanthology.org/N13-1090/. As there, the vectors have length 1, and the three words cannot be
        the answer. That last rule matters more than it seems: without it the answer is mostly `other` itself.

        Raises:
            KeyError: a word has no vector.
        """
        rows = [self._row(word) for word in (one, to, other)]
        wanted = self.unit[rows[1]] - self.unit[rows[0]] + self.unit[rows[2]]
        length = np.linalg.norm(wanted)
        return self._nearest(self.unit @ (wanted / length if length else wanted), set(rows), count)

    def _nearest(self, cosines: np.ndarray, without: set[int], count: int) -> list[tuple[str, float]]:
        order = np.argsort(-cosines, kind="stable")[: count + len(without)]
        return [(self.words[i], float(cosines[i])) for i in order if i not in without][:count]


def embedding_matrix(
    vectors: WordVectors, special_tokens: Sequence[str] = ("[PAD]", "[UNK]")
) -> tuple[dict[str, int], np.ndarray]:
    """Put rows of zeros for S special tokens before V vectors, for `nn.Embedding` and for a tokenizer.

    Returned are the vocabulary, from token to id, special tokens first; and the matrix, float32, (S + V, D),
    whose row `vocabulary[word]` is the word's vector. No special token may be a word.

    Raises:
        ValueError: a special token is repeated, or is also a word.
    """
    tokens = [*special_tokens, *vectors.words]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    if len(vocabulary) < len(tokens):
        twice = next(token for i, token in enumerate(tokens) if vocabulary[token] != i)
        raise ValueError(f"the special token {twice!r} is repeated, or is also a word")
    zeros = np.zeros((len(special_tokens), vectors.matrix.shape[1]), dtype=np.float32)
    return vocabulary, np.concatenate([zeros, vectors.matrix])
