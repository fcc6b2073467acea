"""Bootstrap intervals: how much a score varies between test sets of the same size."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from chapters_src.evaluation.arrays import Array, to_array

_DRAWN_AT_ONCE = 1_000_000  # Indices in memory at once, 8 bytes each.


class Interval(NamedTuple):
    """A score and its bootstrap interval."""

    estimate: float  # On the original examples.
    low: float
    high: float


def bootstrap_interval(
    metric: Callable[..., float],
    *arrays: Array,
    num_samples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the bootstrap interval of a score: its range over test sets drawn with replacement.

    The percentile interval of Efron & Tibshirani, An Introduction to the Bootstrap (1993), chapter 13,
    computed by `scipy.stats.bootstrap`. SciPy's default, BCa, is undefined if all drawn scores are equal, as
    for two models with the same answers. The interval accounts for the choice of test examples, but not for
    the random seed of the training.

    Args:
        metric: takes the arrays, returns a number: `accuracy`, `macro_f1`, or another function.
        *arrays: the arguments of the metric; row i of each belongs to example i, (N, ...).
        num_samples: number of test sets to draw, at least 2.
        seed: of the draws.
        level: share of the drawn scores inside the interval, between 0 and 1.

    Returns:
        The score, and the lower and upper end of its interval.

    Raises:
        ValueError: there are no arrays, fewer than two examples, different lengths, a setting is out of
            range, or a score is NaN.
    """
    rows = [to_array(array) for array in arrays]
    lengths = [len(row) if row.ndim else 0 for row in rows]
    if not rows or min(lengths) < 2 or len(set(lengths)) > 1:
        raise ValueError(f"the bootstrap needs arrays of the same length, at least 2, not of {lengths}")
    if num_samples < 2 or not 0 < level < 1:
        raise ValueError(f"num_samples={num_samples} has to be at least 2, level={level} between 0 and 1")

    def score(chosen: np.ndarray) -> float:
        value = float(metric(*(row[chosen] for row in rows)))
        if np.isnan(value):
            raise ValueError("the metric returned NaN on these examples, or on some drawn from them")
        return value

    # Draw indices, not values, so that the rows of all arrays stay together and keep their types.
    numbers = np.arange(lengths[0])
    estimate = score(numbers)
    low, high = stats.bootstrap(
        (numbers,),
        lambda chosen, axis: np.apply_along_axis(score, axis, chosen),
        n_resamples=num_samples,
        batch=max(1, _DRAWN_AT_ONCE // len(numbers)),
        vectorized=True,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(estimate, float(low), float(high))


def paired_bootstrap(
    metric: Callable[[np.ndarray, np.ndarray], float],
    labels: Array,
    predictions_a: Array,
    predictions_b: Array,
    num_samples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the bootstrap interval of the difference between two models on the same examples.

    Both are scored on the same draws, so the difficulty of examples cancels out. Koehn, Statistical
    Significance Tests for Machine Translation Evaluation (2004), https://aclanthology.org/W04-3250/.

    Args:
        metric: takes labels and predictions, returns a number, higher is better.
        labels: (N, ...).
        predictions_a: of model A, (N, ...).
        predictions_b: of model B, (N, ...).
        num_samples: as for `bootstrap_interval`, and so are the others.
        seed: of the draws.
        level: share of the drawn differences inside the interval.

    Returns:
        Score of A minus score of B, and its interval. If it contains 0, these examples do not decide which is
        better.
    """

    def difference(labels: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
        return metric(labels, a) - metric(labels, b)

    arrays = (labels, predictions_a, predictions_b)
    return bootstrap_interval(difference, *arrays, num_samples=num_samples, seed=seed, level=level)
