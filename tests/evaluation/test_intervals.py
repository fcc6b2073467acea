"""Intervals against closed forms, brute force and simulation."""

import math
import time

import numpy as np
import pytest
import scipy.stats
from predictions import draw

from chapters_src.evaluation import accuracy, bootstrap_interval, intervals, macro_f1, paired_bootstrap


def answers(seed, size, rate):
    labels = np.random.default_rng(seed).integers(0, 2, size)
    right = np.arange(size) < rate * size
    return labels, np.where(right, labels, 1 - labels)


@pytest.mark.parametrize(("size", "rate", "level"), [(1000, 0.8, 0.95), (400, 0.5, 0.9), (2000, 0.95, 0.99)])
def test_the_interval_of_an_accuracy_is_binomial(size, rate, level):
    labels, predictions = answers(0, size, rate)
    estimate, low, high = bootstrap_interval(accuracy, labels, predictions, num_samples=4000, level=level)
    assert estimate == pytest.approx(rate)
    expected = np.array(scipy.stats.binom.interval(level, size, rate)) / size
    assert (low, high) == pytest.approx(expected, abs=0.1 * (expected[1] - expected[0]))


def test_the_interval_is_that_of_a_loop_over_drawn_test_sets():
    logits, labels = draw(6)
    predictions = logits.argmax(axis=1)
    ours = bootstrap_interval(macro_f1, labels, predictions, num_samples=4000, level=0.9)
    generator = np.random.default_rng(1)
    draws = (generator.integers(300, size=300) for _ in range(4000))
    low, high = np.quantile([macro_f1(labels[rows], predictions[rows]) for rows in draws], [0.05, 0.95])
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.006)


def test_what_is_drawn_at_once_changes_nothing(monkeypatch):
    values = np.random.default_rng(0).normal(size=50)
    at_once = bootstrap_interval(np.mean, values, num_samples=99)
    monkeypatch.setattr(intervals, "_DRAWN_AT_ONCE", 120)  # two test sets
    assert bootstrap_interval(np.mean, values, num_samples=99) == at_once


def test_the_seed_decides():
    values = np.random.default_rng(0).normal(size=50)
    before = np.random.get_state()[1].copy()
    first, again, other = (
        bootstrap_interval(np.mean, values, seed=seed, num_samples=200) for seed in (3, 3, 4)
    )
    assert first == again != other
    assert (np.random.get_state()[1] == before).all()


def test_pairing_sees_differences_that_separate_intervals_do_not():
    labels, a = answers(2, 500, 0.80)
    b = a.copy()
    b[:12] = 1 - labels[:12]  # B is A, with twelve answers spoiled.
    difference = paired_bootstrap(accuracy, labels, a, b)
    assert difference.estimate == pytest.approx(12 / 500)
    assert difference.low > 0
    # Twelve of 500 differ: the count of them in a drawn test set is binomial.
    expected = np.array(scipy.stats.binom.interval(0.95, 500, 12 / 500)) / 500
    assert (difference.low, difference.high) == pytest.approx(expected, abs=0.003)
    separate = [bootstrap_interval(accuracy, labels, predictions) for predictions in (a, b)]
    assert separate[0].low < separate[1].high


def test_a_pair_of_equals_differs_by_nothing():
    labels, predictions = answers(3, 100, 0.6)
    assert paired_bootstrap(macro_f1, labels, predictions, predictions, num_samples=50) == (0, 0, 0)
    assert paired_bootstrap(accuracy, labels, labels, 1 - labels, num_samples=50) == (1, 1, 1)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ((), {}, r"not of \[\]"),
        (([], []), {}, "not of .0, 0."),
        (([1, 2], [1]), {}, "not of .2, 1."),
        ((3.0,), {}, "not of .0."),
        (([1], [1]), {}, "at least 2, not of .1, 1."),
        (([1, 2], [1, 2]), {"num_samples": 1}, "num_samples=1"),
        (([1, 2], [1, 2]), {"level": 1}, "level=1"),
        (([1, 2], [1, 2]), {"level": 95}, "level=95"),
    ],
)
def test_what_cannot_be_resampled_is_refused(arrays, options, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(accuracy, *arrays, **options)


def test_a_metric_that_is_not_always_a_number_is_refused():
    for values in ([0, 0, 1], [0, 0]):
        with pytest.raises(ValueError, match="metric returned NaN"):
            bootstrap_interval(lambda x: math.nan if x.sum() == 0 else 1.0, np.array(values), num_samples=200)


def test_texts_are_drawn_as_texts():
    texts = ["a", "bb", "ccc", "a longer one"]

    def metric(drawn, lengths):
        assert [len(text) for text in drawn] == lengths.tolist() and lengths.dtype == int
        return lengths.mean()

    assert bootstrap_interval(metric, texts, [len(text) for text in texts], num_samples=20).estimate == 4.5


@pytest.mark.parametrize(("metric", "seconds"), [(accuracy, 1), (macro_f1, 3)])
def test_two_thousand_samples_of_a_thousand_examples_are_fast(metric, seconds):
    generator = np.random.default_rng(0)
    labels, predictions = generator.integers(0, 6, size=(2, 1000))
    start = time.process_time()
    bootstrap_interval(metric, labels, predictions, num_samples=2000)
    assert time.process_time() - start < seconds


def test_examples_may_have_different_numbers_of_references():
    """As BLEU and ROUGE have them: a list of texts for each."""
    texts = ["a", "b", "c", "d"]
    references = [["a"], ["x", "b"], ["y"], ["d", "z", "w"]]

    def share_found(texts, references):
        return np.mean([text in each for text, each in zip(texts, references, strict=True)])

    interval = bootstrap_interval(share_found, texts, references, num_samples=200)
    assert interval.estimate == 0.75 and 0 <= interval.low < 0.75 < interval.high <= 1
