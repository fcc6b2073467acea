"""Round trips, gensim as another reader and writer, and what each kind of damage says."""

import gzip
import os

import numpy as np
import pytest
from gensim.models import KeyedVectors

from chapters_src import word_vectors as wv


@pytest.fixture
def vectors():
    matrix = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    matrix[0] = [1e-30, -0.1, 16777217]
    return wv.WordVectors(["the", "Größe", "3", "🙂"], matrix)


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
@pytest.mark.parametrize("header", [True, False])
def test_a_round_trip_changes_nothing(vectors, header, name, tmp_path):
    wv.write_vectors(tmp_path / name, vectors, header=header)
    again = wv.read_vectors(tmp_path / name)
    assert again.words == vectors.words
    assert (again.matrix == vectors.matrix).all()
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("header", [True, False])
def test_gensim_reads_what_we_write(vectors, header, tmp_path):
    wv.write_vectors(tmp_path / "vectors.txt", vectors, header=header)
    theirs = KeyedVectors.load_word2vec_format(tmp_path / "vectors.txt", no_header=not header)
    assert theirs.index_to_key == vectors.words
    assert (theirs.vectors == vectors.matrix).all()


@pytest.mark.parametrize("header", [True, False])
def test_we_read_what_gensim_writes(vectors, header, tmp_path):
    theirs = KeyedVectors(3)
    theirs.add_vectors(vectors.words, vectors.matrix)
    theirs.save_word2vec_format(tmp_path / "vectors.txt", write_header=header, sort_attr=None)
    ours = wv.read_vectors(tmp_path / "vectors.txt")
    np.testing.assert_allclose(np.stack([ours[word] for word in vectors.words]), vectors.matrix, rtol=1e-6)


def test_lines_are_read_one_at_a_time(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("one 1 2\ntwo 3 4\nthree 5\n")
    lines = wv.each_vector(path)
    assert [next(lines)[0], next(lines)[0]] == ["one", "two"]  # The damage further on is not seen yet.
    with pytest.raises(wv.VectorFileError, match="line 3: 1 numbers after the word 'three', expected 2"):
        next(lines)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"2 2\none 1 2\ntwo 3\n", "line 3: 1 numbers after the word 'two', expected 2"),
        (b"one 1 2\ntwo 3 4 5\n", "line 2: 3 numbers after the word 'two', expected 2"),
        (b"one 1 2\ntwo 3 x\n", "line 2: could not convert .* after the word 'two'"),
        (b"one 1 2\ntwo 3 nan\n", "line 2: not all numbers after the word 'two' are finite"),
        (b"one 1 2\ntwo 3 1e99\n", "line 2: not all numbers after the word 'two' are finite"),
        (b"one 1 2\n\ntwo 3 4\n", "line 2: 0 numbers after the word ''"),
        (b"one 1 2\n 3 4\n", "line 2: 2 numbers after the word ''"),
        (b"one 1 2\nt\xffo 3 4\n", "line 2: the bytes are not UTF-8"),
        (b"3 2\none 1 2\ntwo 3 4\n", "line 3: the file ends after 2 vectors; its first line says 3"),
        (b"1 2\none 1 2\ntwo 3 4\n", "line 3: the file ends after 2 vectors; its first line says 1"),
        (b"", "line 1: there are no vectors"),
        (b"one\n", "line 1: 0 numbers"),
        (b"one 1 2\none 3 4\n", "line 2: the word 'one' is repeated"),
    ],
)
def test_damage_is_named_with_its_line(content, message, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    with pytest.raises(wv.VectorFileError, match=rf"vectors\.txt, {message}"):
        wv.read_vectors(path)


def test_half_a_compressed_file(vectors, tmp_path):
    path = tmp_path / "vectors.gz"
    path.write_bytes(gzip.compress(b"".join(b"word%d 1 2\n" % i for i in range(9_000)))[:-20])
    with pytest.raises(wv.VectorFileError, match="not a complete compressed file"):
        list(wv.each_vector(path))


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("word", "value"), [("two words", 1), ("", 1), ("tab\t", 1), ("fine", np.inf)])
def test_what_could_not_be_read_is_not_written(word, value, vectors, tmp_path):
    path = tmp_path / "vectors.txt"
    wv.write_vectors(path, vectors)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="cannot be written"):
        wv.write_vectors(path, wv.WordVectors(["the", word], np.array([[1, 2], [value, 3]])))
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["vectors.txt"]
