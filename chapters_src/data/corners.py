"""Sequences of corners of squares and other polygons: the data of chapter 06, generated when needed.

A sequence is a walk along corners; a model gets its first part and has to predict the rest. `polygons` walks
once around a regular polygon, so two corners determine all others. `laps` visits the corners of a square in
random order, and then in the same order again: predicting the second lap means remembering every corner of
the first.

The card beside this file, `corners.md`, describes the sequences and their limits.
"""

import math

import torch
from torch import Tensor


def polygons(
    count: int, num_corners: int, *, noise: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Walk once around a regular polygon, from a random corner, clockwise or not.

    Its center is the origin, at distance 1 from each side: the corners of the square, counterclockwise, are
    (1, 1), (-1, 1), (-1, -1) and (1, -1).

    Args:
        count: number of sequences.
        num_corners: corners of the polygon, at least 3.
        noise: standard deviation of the noise added to each coordinate.
        generator: draws starts, directions and noise.

    Returns:
        The points, (count, num_corners, 2), and whether each sequence goes clockwise, boolean, (count,).

    Raises:
        ValueError: no sequences, fewer than 3 corners, or negative noise.
    """
    if num_corners < 3:
        raise ValueError(f"num_corners={num_corners}: a polygon has at least 3")
    _check(count, noise)
    start = torch.randint(num_corners, (count, 1), generator=generator)
    clockwise = torch.rand(count, generator=generator) < 0.5
    steps = torch.where(clockwise, -1, 1)[:, None] * torch.arange(num_corners)  # (count, num_corners)
    points = _regular_polygon(num_corners)[(start + steps) % num_corners]
    return _with_noise(points, noise, generator), clockwise


def laps(count: int, length: int, *, noise: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Visit corners of the square in random order, never the same twice in a row, then repeat that order.

    Each lap has its own noise, so the second repeats the corners of the first, not its exact points.

    Args:
        count: number of sequences.
        length: corners in one lap, at least 1.
        noise: standard deviation of the noise added to each coordinate.
        generator: draws corners and noise.

    Returns:
        The points, (count, 2 * length, 2), and the index of each corner, 0 to 3, counterclockwise from
        (1, 1), integers, (count, 2 * length).

    Raises:
        ValueError: no sequences, an empty lap, or negative noise.
    """
    if length < 1:
        raise ValueError(f"length={length}: a lap has at least one corner")
    _check(count, noise)
    start = torch.randint(4, (count, 1), generator=generator)
    moves = torch.randint(1, 4, (count, length - 1), generator=generator)  # never 0: always another corner
    lap = torch.cat([start, moves], dim=1).cumsum(dim=1) % 4
    corners = lap.repeat(1, 2)
    return _with_noise(_regular_polygon(4)[corners], noise, generator), corners


def source_query_target(points: Tensor, given: int) -> tuple[Tensor, Tensor, Tensor]:
    """Split sequences into the encoder's input, the decoder's input, and the target.

    The decoder reads the last given corner and then the true ones, one position early: teacher forcing. Of
    points (count, length, ...), of which the first `given` are known, the source is (count, given, ...), and
    query and target are (count, length - given, ...) each.

    Raises:
        ValueError: nothing is given, or nothing is left to predict.
    """
    if not 1 <= given < points.size(1):
        raise ValueError(
            f"given={given} of {points.size(1)} positions: at least one must be known, and at least one left"
        )
    return points[:, :given], points[:, given - 1 : -1], points[:, given:]


def _regular_polygon(num_corners: int) -> Tensor:
    """Compute the corners, counterclockwise: (num_corners, 2)."""
    angles = (torch.arange(num_corners, dtype=torch.float64) + 0.5) * (2 * math.pi / num_corners)
    radius = 1 / math.cos(math.pi / num_corners)  # so that the sides touch the circle of radius 1
    return (radius * torch.stack([angles.cos(), angles.sin()], dim=1)).float()


def _with_noise(points: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    return points + noise * torch.randn(points.shape, generator=generator)


def _check(count: int, noise: float) -> None:
    if count < 1:
        raise ValueError(f"count={count}: at least one sequence is needed")
    if not noise >= 0:
        raise ValueError(f"noise={noise}: a standard deviation is at least 0")
