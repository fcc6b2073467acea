"""BLEU and chrF against sacrebleu's own corpus scores, and the formula."""

import math
import sys
import time

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from chapters_src.evaluation import bleu, bleu_of_statistics, bleu_statistics, bootstrap_interval, chrf

WORDS = ["the", "The", "cat", "sat", "on", "a", "mat", "naïve", "日本", "U.S.", "3.5", "don't", ","]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)


def corpus(size=200):
    generator = np.random.default_rng(0)
    references = [" ".join(generator.choice(WORDS, generator.integers(4, 15))) for _ in range(size)]
    keep = generator.random(size) < 0.5
    return [r if k else r.replace("the", "one") for r, k in zip(references, keep, strict=True)], references


def test_an_example_worked_out_by_hand():
    prediction, reference = "the cat sat on the mat today", "the cat sat on the old mat today , too"
    statistics = bleu_statistics([prediction], [reference])
    # Right: 7 words, "the cat", "cat sat", "sat on", "on the", "mat today", then 3 triples and 2 runs of 4.
    assert statistics.tolist() == [[7, 5, 3, 2, 7, 6, 5, 4, 7, 10]]
    precision = (7 / 7 * 5 / 6 * 3 / 5 * 2 / 4) ** (1 / 4)
    assert bleu([prediction], [reference]) == pytest.approx(100 * math.exp(1 - 10 / 7) * precision)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
def test_it_is_sacrebleu(pairs):
    predictions, references = map(list, zip(*pairs, strict=True))
    assert bleu(predictions, references) == sacrebleu.corpus_bleu(predictions, [references]).score
    assert chrf(predictions, references) == sacrebleu.corpus_chrf(predictions, [references]).score


@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=5))
def test_it_is_sacrebleu_with_several_references(pairs):
    predictions, references = map(list, zip(*pairs, strict=True))
    streams = [[those[i] if i < len(those) else None for those in references] for i in range(3)]
    streams = [stream for stream in streams if any(text is not None for text in stream)]
    assert bleu(predictions, references) == sacrebleu.corpus_bleu(predictions, streams).score
    assert chrf(predictions, references) == sacrebleu.corpus_chrf(predictions, streams).score


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "zh", "none"])
def test_the_tokenizers_are_sacrebleus(tokenize):
    predictions, references = corpus()
    theirs = sacrebleu.corpus_bleu(predictions, [references], tokenize=tokenize).score
    assert bleu(predictions, references, tokenize) == theirs
    assert tokenize == "13a" or theirs != bleu(predictions, references)


def test_statistics_of_drawn_texts_give_their_corpus_score():
    predictions, references = corpus(60)
    statistics = bleu_statistics(predictions, references)
    for rows in np.random.default_rng(1).integers(60, size=(20, 60)):
        drawn = bleu([predictions[i] for i in rows], [references[i] for i in rows])
        assert bleu_of_statistics(statistics[rows]) == drawn


def test_a_bootstrap_of_two_thousand_texts_takes_seconds():
    predictions, references = corpus(2000)
    start = time.process_time()
    bootstrap_interval(bleu_of_statistics, bleu_statistics(predictions, references))
    assert time.process_time() - start < 6


def test_a_corpus_without_matches_scores_nothing():
    assert bleu(["", "x"], ["a", "b"]) == 0 == chrf(["", "x"], ["a", "b"])


@pytest.mark.parametrize("score", [bleu, bleu_statistics, chrf])
def test_what_cannot_be_compared_is_refused(score):
    with pytest.raises(ValueError, match="1 predictions and 2 references"):
        score(["a"], ["a", "b"])
    with pytest.raises(TypeError, match="references is a single text"):
        score(["a"], "a")


def test_settings_are_checked():
    with pytest.raises(ValueError, match="tokenize='spm' has to be one of 13a, intl"):
        bleu(["a"], ["a"], tokenize="spm")
    with pytest.raises(ValueError, match=r"statistics \(1, 4\) are not \(N, 10\)"):
        bleu_of_statistics([[1, 2, 3, 4]])


def test_without_sacrebleu_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    for call in (bleu, chrf):
        with pytest.raises(ImportError, match="pip install sacrebleu"):
            call(["a"], ["a"])
