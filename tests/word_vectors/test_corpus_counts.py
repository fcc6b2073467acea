"""Counts against loops in plain Python, mutual information against its definition, the SVD against NumPy."""

import math
from collections import Counter

import numpy as np
import pytest

from chapters_src import word_vectors as wv
from chapters_src.word_vectors.counting import window_weights


@pytest.fixture(scope="module")
def texts():
    """Random texts of a skewed vocabulary, some of them short."""
    generator = np.random.default_rng(0)
    letters = "abcdefghijkl"
    share = 1 / np.arange(1, 13)
    return [
        list(generator.choice(list(letters), generator.integers(0, 15), p=share / share.sum()))
        for _ in range(60)
    ]


def test_a_corpus_is_its_texts_without_the_rare_words(texts):
    counted = Counter(word for text in texts for word in text)
    corpus = wv.read_corpus(texts, min_count=20)
    assert set(corpus.words) == {word for word, n in counted.items() if n >= 20} != set(counted)
    assert dict(zip(corpus.words, corpus.counts.tolist(), strict=True)).items() <= counted.items()
    assert corpus.counts.tolist() == sorted(corpus.counts, reverse=True)
    again = [[] for _ in texts]
    for number, text in zip(corpus.ids, corpus.texts, strict=True):
        again[text].append(corpus.words[number])
    assert again == [[word for word in text if counted[word] >= 20] for text in texts]


def test_words_that_are_equally_frequent_are_in_alphabetical_order():
    assert wv.read_corpus([["b", "c", "a", "c", "b", "a", "d", "d", "d"]], 1).words == ["d", "a", "b", "c"]


def test_what_is_no_corpus():
    with pytest.raises(TypeError, match="split the string"):
        wv.read_corpus(["a text"])
    with pytest.raises(ValueError, match="none of 2 distinct words occurs min_count=3 times"):
        wv.read_corpus([["a", "b", "a"]], 3)


@pytest.mark.parametrize("weighting", ["uniform", "linear", "harmonic"])
@pytest.mark.parametrize("window", [1, 3])
def test_pairs_are_counted_as_a_loop_counts_them(texts, window, weighting):
    corpus = wv.read_corpus(texts, 1)
    expected = np.zeros((len(corpus.words),) * 2)
    number = {word: i for i, word in enumerate(corpus.words)}
    weight = {
        "uniform": lambda distance: 1,
        "linear": lambda distance: (window - distance + 1) / window,
        "harmonic": lambda distance: 1 / distance,
    }[weighting]
    for text in texts:
        for i, word in enumerate(text):
            for j, other in enumerate(text):
                if i != j and abs(i - j) <= window:
                    expected[number[word], number[other]] += weight(abs(i - j))
    found = wv.cooccurrence(corpus, window, weighting).toarray()
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_unknown_windows():
    with pytest.raises(ValueError, match="window=0"):
        window_weights(0, "linear")
    with pytest.raises(ValueError, match="'square': choose from uniform, linear, harmonic"):
        window_weights(2, "square")


@pytest.mark.parametrize("smoothing", [1.0, 0.75])
def test_ppmi_is_its_definition(texts, smoothing):
    counts = wv.cooccurrence(wv.read_corpus(texts, 1), 2)
    found = wv.ppmi(counts, smoothing, shift=0.1).toarray()
    dense = counts.toarray()
    total, contexts = dense.sum(), [column.sum() ** smoothing for column in dense.T]
    for i, row in enumerate(dense):
        for j, n in enumerate(row):
            expected = 0.0
            if n:
                chance = row.sum() / total * contexts[j] / sum(contexts)
                expected = max(0, math.log(n / total / chance) - 0.1)
            assert found[i, j] == pytest.approx(expected, abs=1e-9)


def test_no_counts():
    with pytest.raises(ValueError, match="0 counts"):
        wv.ppmi(wv.cooccurrence(wv.read_corpus([["a"], ["b"]], 1)))


def test_the_main_directions_are_those_of_a_full_decomposition(texts):
    matrix = wv.ppmi(wv.cooccurrence(wv.read_corpus(texts, 1)))
    left, singular, _ = np.linalg.svd(matrix.toarray())
    for power in (0, 0.5, 1):
        found = wv.svd_vectors(matrix, 4, power)
        expected = left[:, :4] * singular[:4] ** power
        np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)
        assert (found[np.abs(found).argmax(axis=0), range(4)] > 0).all()
    with pytest.raises(ValueError, match="dim=12 must be from 1 to 11"):
        wv.svd_vectors(matrix, 12)


def test_coverage_by_type_and_by_token():
    assert wv.coverage({"the": 8, "cat": 1, "xyzzy": 1}, {"the", "cat", "dog"}) == (2 / 3, 0.9)
    assert wv.coverage(Counter("aab"), {}) == (0, 0)
    with pytest.raises(ValueError, match="empty corpus"):
        wv.coverage({}, {"the"})
