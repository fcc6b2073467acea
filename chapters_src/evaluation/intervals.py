"""Bootstrap intervals: how far a score may move with another test set of the same size."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from chapters_src.evaluation.arrays import Array, to_array

_DRAWN_AT_ONCE = 1_000_000  # row numbers, of 8 bytes each: what is held in memory


class Interval(NamedTuple):
    """A score and the interval of a bootstrap around it."""

    estimate: float  # On the examples as they are.
    low: float
    high: float


def bootstrap_interval(
    metric: Callable[..., float],
    *arrays: Array,
    num_samples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Say how far a score may move with another test set of this size: draw examples with replacement.

    The percentile interval of Efron & Tibshirani, An Introduction to the Bootstrap (1993), chapter 13, as
    `scipy.stats.bootstrap` computes it. SciPy's default, BCa, is undefined where all drawn scores are equal,
    as they are for two models that answer alike; percentiles always exist. The interval knows about the
    choice of test examples, not about the seed that the model was trained with.

    Args:
        metric: takes the arrays, gives a number: `accuracy`, `macro_f1`, or a function of one's own.
        *arrays: what the metric takes; row i of each belongs to example i, (N, ...).
        num_samples: how many test sets are drawn, at least 2.
        seed: of the draws.
        level: share of the scores of drawn test sets that lie in the interval, between 0 and 1.

    Returns:
        The score, and the lower and upper end of its interval.

    Raises:
        ValueError: no arrays, fewer than two examples, different lengths, settings out of range, or a score
            that is NaN.
    """
    rows = [to_array(array) for array in arrays]
    lengths = [len(row) if row.ndim else 0 for row in rows]
    if not rows or min(lengths) < 2 or len(set(lengths)) > 1:
        raise ValueError(f"the bootstrap needs arrays of one length, at least 2, not of {lengths}")
    if num_samples < 2 or not 0 < level < 1:
        raise ValueError(f"num_samples={num_samples} has to be at least 2, level={level} between 0 and 1")

    def score(chosen: np.ndarray) -> float:
        value = float(metric(*(row[chosen] for row in rows)))
        if np.isnan(value):
            raise ValueError("the metric gave NaN on these examples, or on some of them that were drawn")
        return value

    # Row numbers are drawn, and not values: so examples stay whole and keep their types.
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
    """Compare two models on the same examples: how much better is A than B, and is that more than luck?

    Both are scored on the same draws, so what makes an example hard for both cancels. Koehn, Statistical
    Significance Tests for Machine Translation Evaluation (2004), https://aclanthology.org/W04-3250/.

    Args:
        metric: takes labels and predictions, gives a number, higher is better.
        labels: what is true, (N, ...).
        predictions_a: what model A says, (N, ...).
        predictions_b: what model B says, (N, ...).
        num_samples: how many test sets are drawn.
        seed: of the draws.
        level: share of the differences that lie in the interval, between 0 and 1.

    Returns:
        Score of A minus score of B, and its interval. If that holds 0, these examples do not settle it.

    Raises:
        ValueError: as `bootstrap_interval`.
    """

    def difference(labels: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
        return metric(labels, a) - metric(labels, b)

    arrays = (labels, predictions_a, predictions_b)
    return bootstrap_interval(difference, *arrays, num_samples=num_samples, seed=seed, level=level)
