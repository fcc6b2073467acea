"""The text formats of word2vec and GloVe: a word and its numbers on each line.

The word2vec format has a header line with the number of words and dimensions, GloVe's has none. Otherwise
they are the same. A path that ends with ".gz" is compressed. Files of any size can be read, line by line, and
are written atomically.
"""

import gzip
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Literal

import numpy as np

from chapters_src.files import atomic_write
from chapters_src.word_vectors.vectors import WordVectors


class VectorFileError(ValueError):
    """A file of vectors is damaged, or not a file of vectors. The message names the file and the line."""


def each_vector(path: str | os.PathLike[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Read a file of vectors line by line: a word and its vector, float32, (D,).

    The first line is a header if it is two integers. (This misreads a one-dimensional GloVe file whose first
    word is a number; nobody has one.)

    Raises:
        VectorFileError: lines have different numbers of fields, a field is not a finite number, a word is
            repeated, the bytes are not UTF-8, or the number of lines is not the one in the header.
        OSError: the file cannot be read.
    """
    path = Path(path)
    announced = dim = None
    number, seen = 0, set()
    with _open(path, "rb") as lines:
        for number, line in enumerate(_numbered(path, lines), start=1):
            word, *fields = _text(path, number, line).split(" ")
            if number == 1 and len(fields) == 1 and word.isdecimal() and fields[0].isdecimal():
                announced, dim = int(word), int(fields[0])
                continue
            dim = len(fields) if dim is None else dim
            vector = _vector(path, number, word, fields, dim)
            if word in seen:
                raise _damaged(path, number, f"the word {word!r} is repeated")
            seen.add(word)
            yield word, vector
    if announced not in (None, len(seen)):
        found = f"the file ends after {len(seen)} vectors"
        raise _damaged(path, number, f"{found}; its first line says {announced}")
    if not seen:
        raise _damaged(path, max(number, 1), "there are no vectors")


def read_vectors(path: str | os.PathLike[str]) -> WordVectors:
    """Read a file of vectors, in its order. What is raised: as for `each_vector`."""
    found = dict(each_vector(path))
    return WordVectors(list(found), np.stack(list(found.values())))


def write_vectors(path: str | os.PathLike[str], vectors: WordVectors, header: bool = True) -> None:
    """Write vectors with enough digits to restore the same numbers.

    An existing file is replaced, or stays unchanged on failure. With a header it is in word2vec's format,
    without in GloVe's.

    Raises:
        ValueError: a word is empty or has white space, or a number is not finite.
        OSError: the file cannot be written.
    """
    for word, vector in zip(vectors.words, vectors.matrix, strict=True):
        if not word or len(word.split()) != 1 or word != word.strip():
            raise ValueError(f"the word {word!r} cannot be written: fields are separated by white space")
        if not np.isfinite(vector).all():
            raise ValueError(f"the vector of {word!r} cannot be written: not all its numbers are finite")
    with atomic_write(path) as unfinished, _open(unfinished, "wb") as file:
        if header:
            file.write(f"{len(vectors)} {vectors.matrix.shape[1]}\n".encode())
        for word, vector in zip(vectors.words, vectors.matrix, strict=True):
            numbers = " ".join(f"{value:.9g}" for value in vector.tolist())  # 9 digits: the same float32.
            file.write(f"{word} {numbers}\n".encode())


def _open(path: Path, mode: Literal["rb", "wb"]) -> IO[bytes] | gzip.GzipFile:
    """Open a file of bytes, compressed or not."""
    if path.suffix == ".gz":
        return gzip.GzipFile(path, mode)
    return path.open("rb") if mode == "rb" else path.open("wb")


def _numbered(path: Path, lines: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield from lines
    except (EOFError, gzip.BadGzipFile) as error:
        raise VectorFileError(f"{path} is not a complete compressed file: {error}") from None


def _text(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8").rstrip("\r\n").rstrip(" ")  # The original word2vec adds a space.
    except UnicodeDecodeError:
        raise _damaged(path, number, "the bytes are not UTF-8") from None


def _vector(path: Path, number: int, word: str, fields: list[str], dim: int) -> np.ndarray:
    if len(fields) != dim or not word or not dim:
        raise _damaged(path, number, f"{len(fields)} numbers after the word {word!r}, expected {dim}")
    try:
        with np.errstate(over="ignore"):  # Overflow becomes infinity, which is found below.
            vector = np.array(fields, dtype=np.float32)
    except ValueError as error:
        raise _damaged(path, number, f"{error}, after the word {word!r}") from None
    if not np.isfinite(vector).all():
        raise _damaged(path, number, f"not all numbers after the word {word!r} are finite")
    return vector


def _damaged(path: Path, number: int, problem: str) -> VectorFileError:
    return VectorFileError(f"{path}, line {number}: {problem}")
