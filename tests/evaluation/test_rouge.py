"""ROUGE against the package rouge-score, and examples worked out by hand."""

import inspect
import itertools
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from rouge_score.rouge_scorer import RougeScorer

from chapters_src.evaluation import (
    RougeScore,
    rouge,
    rouge_l,
    rouge_l_sum,
    rouge_n,
    rouge_tokens,
)

KINDS = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
THEIRS = RougeScorer(KINDS)
# Few words, so that they meet: in other cases, with umlauts that lower() changes, alone and in a row.
WORDS = ["a", "A", "b", "ab", "c", "7", "İ", "ß", "naïve", "K", "über", "日本", "U.S.", "x_y", "-", ""]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).flatmap(
    lambda words: st.lists(
        st.sampled_from([" ", "\n", "\n\n", ", ", "\t"]), min_size=len(words), max_size=len(words)
    ).map(lambda gaps: "".join(itertools.chain(*zip(words, gaps, strict=True))))
)


def of_pair(prediction, reference, **options):
    return {
        "rouge1": rouge_n(prediction, reference, 1, **options),
        "rouge2": rouge_n(prediction, reference, 2, **options),
        "rougeL": rouge_l(prediction, reference, **options),
        "rougeLsum": rouge_l_sum(prediction, reference, **options),
    }


def same(ours, theirs):
    return all(ours[kind] == pytest.approx(tuple(theirs[kind]), abs=1e-12) for kind in KINDS)


def test_an_example_worked_out_by_hand():
    prediction, reference = "The cat sat on the mat.", "the cat on the mat sat down"
    assert rouge_n(prediction, reference, 1) == pytest.approx((6 / 6, 6 / 7, 12 / 13))
    # "the cat", "on the", "the mat" of five and six pairs.
    assert rouge_n(prediction, reference, 2) == pytest.approx((3 / 5, 3 / 6, 6 / 11))
    assert rouge_l(prediction, reference) == pytest.approx((5 / 6, 5 / 7, 10 / 13))  # all but "sat"
    assert rouge_n("one two", "one two", 3) == (0, 0, 0), "there are no runs of three"


def test_the_order_of_sentences_does_not_matter_to_the_sum():
    prediction, reference = "Dogs bark.\nCats purr.", "Cats purr.\nDogs bark."
    assert rouge_l_sum(prediction, reference).f1 == 1 > rouge_l(prediction, reference).f1 == 0.5
    # Example of Lin, section 3.2: w1 w2, and w1 w3 w5, of five words of the reference.
    example = rouge_l_sum("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5")
    assert example.recall == 4 / 5


@given(TEXTS, TEXTS)
def test_it_is_rouge_score(prediction, reference):
    assert same(of_pair(prediction, reference), THEIRS.score(reference, prediction))


@given(st.text(max_size=40), st.text(max_size=40))
def test_it_is_rouge_score_on_any_characters(prediction, reference):
    assert same(of_pair(prediction, reference), THEIRS.score(reference, prediction))
    assert same(of_pair(prediction, prediction), THEIRS.score(prediction, prediction))


def test_it_is_rouge_score_on_real_texts_with_and_without_its_stemmer():
    texts = [inspect.getdoc(value) or "" for value in vars(np).values() if inspect.isroutine(value)]
    texts = [text[:800] for text in texts if len(text) > 800][:30]
    assert len(texts) == 30 and all("\n" in text for text in texts)
    stemmed, stem = RougeScorer(KINDS, use_stemmer=True), PorterStemmer().stem

    def tokenize(text):  # As rouge-score does it: short words stay.
        return [stem(word) if len(word) > 3 else word for word in rouge_tokens(text)]

    differ = 0
    for prediction, reference in itertools.pairwise(texts):
        plain = of_pair(prediction, reference)
        assert same(plain, THEIRS.score(reference, prediction))
        with_stems = of_pair(prediction, reference, tokenize=tokenize)
        assert same(with_stems, stemmed.score(reference, prediction))
        differ += plain != with_stems
    assert differ > 20


@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=4))
def test_the_best_of_several_references_counts(pairs):
    predictions, references = zip(*pairs, strict=True)
    table = rouge(predictions, references)
    assert list(table) == KINDS and len(table) == len(pairs)
    for row, prediction, those in zip(table.to_dict("records"), predictions, references, strict=True):
        theirs = THEIRS.score_multi(those, prediction)
        assert row == pytest.approx({kind: theirs[kind].fmeasure for kind in KINDS}, abs=1e-12)


def test_empty_texts_score_nothing():
    for prediction, reference in (("", ""), ("", "a word"), ("a word", ""), ("...", "日本"), ("\n", "a")):
        assert set(of_pair(prediction, reference).values()) == {RougeScore(0, 0, 0)}


def test_words_of_other_languages_need_a_tokenizer():
    assert rouge_tokens("U.S. naïve, v1.2") == ["u", "s", "na", "ve", "v1", "2"]
    assert rouge_l("日本語", "日本").f1 == 0
    assert rouge_l("日本語", "日本", tokenize=list) == pytest.approx((2 / 3, 1, 4 / 5))


def test_three_thousand_pairs_take_seconds():
    generator = np.random.default_rng(0)
    vocabulary = np.array([f"w{i}" for i in range(50)])
    texts = [" ".join(generator.choice(vocabulary, 60)) for _ in range(6000)]
    start = time.process_time()
    rouge(texts[:3000], texts[3000:])
    assert time.process_time() - start < 6


@pytest.mark.parametrize(
    ("predictions", "references", "error", "message"),
    [
        ([], [], ValueError, "0 predictions and 0 references"),
        (["a"], ["a", "b"], ValueError, "1 predictions and 2 references"),
        (["a", "b"], [["a"], []], ValueError, "prediction 1 has no reference"),
        ("a text", ["a text"], TypeError, "predictions is a single text, 'a text'"),
        (["a text"], "a text", TypeError, "references is a single text, 'a text'"),
        ([[1, 2]], ["a"], TypeError, r"row 0 contains \[1, 2\], which is not a text: decode"),
        (["a"], [["a", None]], TypeError, "row 0 contains None"),
    ],
)
def test_what_cannot_be_compared_is_refused(predictions, references, error, message):
    with pytest.raises(error, match=message):
        rouge(predictions, references)


def test_texts_come_in_any_sequence():
    expected = rouge(["a b", "c"], ["a", "c"])
    pd.testing.assert_frame_equal(rouge(pd.Series(["a b", "c"]), np.array(["a", "c"])), expected)
    with pytest.raises(ValueError, match="n=0"):
        rouge_n("a", "a", 0)
