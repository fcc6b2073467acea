"""The n-gram model against its definition, written out with dictionaries."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chapters_src.ngrams import NGramModel

VOCAB_SIZE, END = 6, 5
DOCUMENTS = st.lists(st.lists(st.integers(0, 4), max_size=8), min_size=1, max_size=12)


def by_definition(documents, order):
    """Make the function P(token, history) from dictionaries, one count at a time."""
    raw = Counter()
    for document in documents:
        ids = [END] * (order - 1) + list(document) + [END]
        for i in range(order - 1, len(ids)):
            for length in range(1, order + 1):
                raw[tuple(ids[i - length + 1 : i + 1])] += 1
    predecessors = defaultdict(set)
    for gram in raw:
        predecessors[gram[1:]].add(gram[0])
    tables = {}
    for length in range(1, order + 1):
        table = {}
        for gram in (gram for gram in raw if len(gram) == length):
            is_raw = length == order or (length > 1 and gram[0] == END)
            table[gram] = raw[gram] if is_raw else len(predecessors[gram])
        once, twice = (sum(count == times for count in table.values()) for times in (1, 2))
        discount = once / (once + 2 * twice) if once else 0
        tables[length] = table, min(max(discount, 0.1), 0.9)

    def probability(token, history):
        history = tuple(history)
        table, discount = tables[len(history) + 1]
        followers = {gram[-1]: count for gram, count in table.items() if gram[:-1] == history}
        shorter = probability(token, history[1:]) if history else 1 / VOCAB_SIZE
        if not followers:
            return shorter
        total = sum(followers.values())
        own = max(followers.get(token, 0) - discount, 0) / total
        return own + discount * len(followers) / total * shorter

    return probability


@settings(max_examples=60, deadline=None)
@given(documents=DOCUMENTS, text=st.lists(st.integers(0, 4), max_size=6), order=st.integers(1, 4))
def test_it_is_what_its_definition_says(documents, text, order):
    model = NGramModel(documents, order, vocab_size=VOCAB_SIZE, end_id=END)
    expected = by_definition(documents, order)
    ids = [END] * (order - 1) + text + [END]
    places = range(order - 1, len(ids))
    one_by_one = [math.log(expected(ids[i], ids[i - order + 1 : i])) for i in places]
    np.testing.assert_allclose(model.log_probabilities(text), one_by_one, atol=1e-12)
    for i in places:
        history = ids[i - order + 1 : i]
        distribution = model.probabilities(ids[order - 1 : i])
        np.testing.assert_allclose(
            distribution, [expected(token, history) for token in range(VOCAB_SIZE)], atol=1e-12
        )
        assert distribution.sum() == pytest.approx(1, abs=1e-12)


def test_the_largest_code_fits():
    model = NGramModel([[8190, 8191], [8191] * 9], 4, vocab_size=8192, end_id=8191)
    assert np.isfinite(model.log_probabilities([8191, 8190, 8191, 8191])).all()
    assert model.probabilities([8191] * 5).sum() == pytest.approx(1)


def test_sizes_of_numpy_do_not_overflow():
    """A vocabulary size in 32 bits, to the power of the order, does not fit into them."""
    documents = [[29_999, 29_998, 5, 6, 29_999, 29_998, 5, 7], [1, 2, 29_998, 5, 6]]
    models = [
        NGramModel(documents, order, vocab_size=size, end_id=end)
        for order, size, end in ((4, 30_000, 0), (np.int64(4), np.int32(30_000), np.uint8(0)))
    ]
    expected, found = (model.log_probabilities(documents[0]) for model in models)
    assert np.array_equal(found, expected)
    assert np.array_equal(models[1].probabilities([29_998, 5]), models[0].probabilities([29_998, 5]))


@pytest.mark.parametrize(
    ("documents", "order", "match"),
    [
        ([[0]], 0, "order=0"),
        ([[0]], 25, "at most 24"),
        ([], 2, "no documents"),
        ([[0, 6]], 2, "from 0 to 5"),
        ([[-1]], 2, "from 0 to 5"),
        ([[[0]]], 2, r"\(1, 1\)"),
    ],
)
def test_bad_input(documents, order, match):
    with pytest.raises(ValueError, match=match):
        NGramModel(documents, order, vocab_size=VOCAB_SIZE, end_id=END)
