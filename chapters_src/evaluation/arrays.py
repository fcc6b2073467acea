"""Conversion to NumPy arrays, and checks."""

from typing import Any

import numpy as np
import pandas as pd

Array = Any  # Anything NumPy can convert, and PyTorch tensors on any device.


def to_array(values: Array) -> np.ndarray:
    """Convert to a NumPy array; floating-point tensors become float64.

    Lists of different lengths, such as the references of each text, become an array of lists.
    """
    are_lists = isinstance(values, list | tuple) and all(isinstance(each, list | tuple) for each in values)
    if are_lists and len({len(each) for each in values}) > 1:
        return np.array(values, dtype=object)
    if hasattr(values, "detach"):  # A PyTorch tensor, maybe on a GPU or in bfloat16.
        values = values.detach().cpu()
        values = values.double() if values.is_floating_point() else values
    return np.asarray(values)


def check_classes(labels: Array, predictions: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and predictions as arrays of classes.

    Raises:
        ValueError: there are no examples, the lengths differ, or the values are not classes of one type.
    """
    labels, predictions = to_array(labels), to_array(predictions)
    if labels.shape != predictions.shape or labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"labels {labels.shape} and predictions {predictions.shape} need the same shape (N,), not empty"
        )
    for name, values in (("labels", labels), ("predictions", predictions)):
        if values.dtype.kind not in "biuUSTO" or (values.dtype == object and pd.isna(values).any()):
            raise ValueError(f"{name} ({values.dtype}) are not all classes: for logits, use argmax(-1)")
    if (labels.dtype.kind in "biu") != (predictions.dtype.kind in "biu"):
        raise ValueError(
            f"labels are {labels.dtype}, predictions {predictions.dtype}: use the same type for both"
        )
    return labels, predictions


def to_rows(values: Array, name: str) -> np.ndarray:
    """Return logits or probabilities in float64, (N, num_classes).

    Raises:
        ValueError: they have another shape, are empty, or contain NaN or infinity.
    """
    values = to_array(values).astype(np.float64)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"{name} {values.shape}: expected (N, num_classes), not empty")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} have NaN or infinity in row {np.argwhere(~np.isfinite(values))[0, 0]}")
    return values


def check_columns(rows: np.ndarray, labels: np.ndarray) -> None:
    """Check that each row has a label, and that each label is the index of a column.

    Raises:
        ValueError: a label is missing, not an integer, or out of range.
    """
    if labels.shape != rows.shape[:1]:
        raise ValueError(f"labels {labels.shape} and rows {rows.shape}: each row needs one label")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"labels are {labels.dtype}: expected integers from 0")
    if labels.min() < 0 or labels.max() >= rows.shape[1]:
        raise ValueError(
            f"labels range from {labels.min()} to {labels.max()}, but the labels of {rows.shape[1]} classes "
            f"are 0 to {rows.shape[1] - 1}"
        )


def check_probabilities(rows: np.ndarray) -> None:
    """Check that rows are not negative and sum to 1, up to the rounding of half precision.

    Raises:
        ValueError: they do not; the message names the worst row.
    """
    sums = rows.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if rows.min() < 0 or abs(sums[worst] - 1) > 1e-2:
        raise ValueError(
            f"row {worst} sums to {sums[worst]:.4f}, and the smallest number is {rows.min():.4f}: "
            "probabilities are not negative and sum to 1; for logits, use softmax(-1)"
        )
