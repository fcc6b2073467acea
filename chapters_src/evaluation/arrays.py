"""What scores are computed from: arrays of any library as NumPy's, and checked."""

from typing import Any

import numpy as np
import pandas as pd

Array = Any  # What NumPy can turn into an array, and PyTorch tensors on any device.


def to_array(values: Array) -> np.ndarray:
    """Turn anything like an array into one of NumPy's, on the processor; PyTorch's floats become float64.

    Lists that differ in length, such as the references of each text, become an array of lists.
    """
    are_lists = isinstance(values, list | tuple) and all(isinstance(each, list | tuple) for each in values)
    if are_lists and len({len(each) for each in values}) > 1:
        return np.array(values, dtype=object)
    if hasattr(values, "detach"):  # A PyTorch tensor, which may be on a graphics card, or bfloat16.
        values = values.detach().cpu()
        values = values.double() if values.is_floating_point() else values
    return np.asarray(values)


def check_classes(labels: Array, predictions: Array) -> tuple[np.ndarray, np.ndarray]:
    """Give labels and predictions as arrays, once it is clear that both are classes, named one way.

    Raises:
        ValueError: nothing to score, different lengths, or no classes.
    """
    labels, predictions = to_array(labels), to_array(predictions)
    if labels.shape != predictions.shape or labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"labels {labels.shape} and predictions {predictions.shape} need one shape (N,), and N above 0"
        )
    for name, values in (("labels", labels), ("predictions", predictions)):
        if values.dtype.kind not in "biuUSTO" or (values.dtype == object and pd.isna(values).any()):
            raise ValueError(f"{name} ({values.dtype}) are not all classes: of logits take argmax(-1)")
    if (labels.dtype.kind in "biu") != (predictions.dtype.kind in "biu"):
        raise ValueError(f"labels are {labels.dtype}, predictions {predictions.dtype}: name classes one way")
    return labels, predictions


def to_rows(values: Array, name: str) -> np.ndarray:
    """Give logits or probabilities as float64, (N, num_classes).

    Raises:
        ValueError: another shape, no rows, NaN or infinity.
    """
    values = to_array(values).astype(np.float64)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"{name} {values.shape} need the shape (N, num_classes), not empty")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} have NaN or infinity in row {np.argwhere(~np.isfinite(values))[0, 0]}")
    return values


def check_columns(rows: np.ndarray, labels: np.ndarray) -> None:
    """Check that each row has a label, and each label is a column.

    Raises:
        ValueError: otherwise.
    """
    if labels.shape != rows.shape[:1]:
        raise ValueError(f"labels {labels.shape} and rows {rows.shape}: each row needs one label")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"labels are {labels.dtype}; integers from 0 are needed")
    if labels.min() < 0 or labels.max() >= rows.shape[1]:
        raise ValueError(
            f"labels go from {labels.min()} to {labels.max()}, but {rows.shape[1]} classes have labels "
            f"from 0 to {rows.shape[1] - 1}"
        )


def check_probabilities(rows: np.ndarray) -> None:
    """Check that the rows are not negative and add up to 1, within the rounding of half precision.

    Raises:
        ValueError: otherwise, naming the worst row.
    """
    sums = rows.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if rows.min() < 0 or abs(sums[worst] - 1) > 1e-2:
        raise ValueError(
            f"row {worst} adds up to {sums[worst]:.4f}, the smallest number is {rows.min():.4f}: "
            "probabilities are not negative and add up to 1; of logits take softmax(-1)"
        )
