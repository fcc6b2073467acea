"""Neighbors and analogies against gensim's; the matrix for a network; a tokenizer on its vocabulary."""

import numpy as np
import pytest
import torch
from gensim.models import KeyedVectors
from transformers import BertTokenizer

from chapters_src import word_vectors as wv
from chapters_src.tokenization import WordPieceTokenizer


@pytest.fixture(scope="module")
def vectors():
    words = [f"word{i}" for i in range(40)]
    return wv.WordVectors(words, np.random.default_rng(0).normal(size=(40, 6)))


@pytest.fixture(scope="module")
def theirs(vectors):
    keyed = KeyedVectors(6)
    keyed.add_vectors(vectors.words, vectors.matrix)
    return keyed


def test_neighbors_are_those_of_gensim(vectors, theirs):
    for word in vectors.words:
        ours, expected = vectors.neighbors(word, 7), theirs.most_similar(word, topn=7)
        assert [name for name, _ in ours] == [name for name, _ in expected]
        np.testing.assert_allclose([c for _, c in ours], [c for _, c in expected], atol=1e-5)
    assert vectors.similarity("word1", "word2") == pytest.approx(
        theirs.similarity("word1", "word2"), abs=1e-5
    )


def test_analogies_are_those_of_gensim(vectors, theirs):
    for one, to, other in (("word0", "word1", "word2"), ("word9", "word5", "word30")):
        expected = theirs.most_similar(positive=[to, other], negative=[one], topn=6)
        assert [name for name, _ in vectors.analogy(one, to, other, 6)] == [name for name, _ in expected]


def test_a_vector_of_zeros_is_near_nothing():
    vectors = wv.WordVectors(["zero", "one"], [[0, 0], [1, 0]])
    assert vectors.neighbors("zero") == [("one", 0.0)]
    assert vectors.analogy("one", "one", "zero") == []


def test_unknown_words_and_wrong_shapes(vectors):
    for ask in (vectors.__getitem__, vectors.neighbors, lambda word: vectors.similarity("word1", word)):
        with pytest.raises(KeyError, match="'nowhere' has no vector: it is not one of the 40 words"):
            ask("nowhere")
    assert "word3" in vectors and "nowhere" not in vectors and len(vectors) == 40
    with pytest.raises(ValueError, match="'a' is repeated"):
        wv.WordVectors(["a", "b", "a"], np.eye(3))
    with pytest.raises(ValueError, match=r"3 words need as many rows, not shape \(2, 2\)"):
        wv.WordVectors(["a", "b", "c"], np.eye(2))


def test_the_embedding_gives_each_word_its_vector_and_special_tokens_zeros(vectors):
    vocabulary, matrix = wv.embedding_matrix(vectors)
    embedding = torch.nn.Embedding.from_pretrained(torch.from_numpy(matrix), padding_idx=vocabulary["[PAD]"])
    assert list(vocabulary)[:2] == ["[PAD]", "[UNK]"] and list(vocabulary.values()) == list(range(42))
    for word in vectors.words:
        assert (embedding(torch.tensor(vocabulary[word])).numpy() == vectors[word]).all()
    assert not matrix[:2].any()
    with pytest.raises(ValueError, match="'word3' is repeated, or is also a word"):
        wv.embedding_matrix(vectors, ("[PAD]", "word3"))


def test_a_tokenizer_on_the_vocabulary_knows_its_words_and_nothing_else(vectors):
    """Ours and the library's, made of the same vocabulary, agree."""
    vocabulary, _ = wv.embedding_matrix(vectors)
    ours = WordPieceTokenizer(vocabulary, special_tokens=("[PAD]", "[UNK]"))
    theirs = BertTokenizer(vocab=vocabulary)
    for text in ("word3 word17", "Word3, nowhere; WORD0!", "", "word3word17"):
        expected = theirs.encode(text, add_special_tokens=False)
        assert ours.encode(text) == expected
        known = [vocabulary.get(word, vocabulary["[UNK]"]) for word in ours.words(text)]
        assert ours.encode(text) == known
