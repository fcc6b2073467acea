"""Corner sequences: against plain geometry with complex numbers, and counts of what was drawn."""

import cmath
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from chapters_src.data import corners


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def as_complex(points):
    """Points as complex numbers, so that a turn is a product."""
    return torch.view_as_complex(points.double().contiguous())


@given(num_corners=st.integers(3, 40), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_each_corner_is_the_one_before_turned_by_the_same_angle(num_corners, seed):
    points, clockwise = corners.polygons(5, num_corners, noise=0, generator=generator(seed))
    assert points.shape == (5, num_corners, 2) and points.dtype == torch.float32
    assert clockwise.shape == (5,) and clockwise.dtype == torch.bool
    for walk, goes_clockwise in zip(as_complex(points), clockwise, strict=True):
        turn = cmath.exp((-1 if goes_clockwise else 1) * 2j * math.pi / num_corners)
        torch.testing.assert_close(walk[1:], walk[:-1] * turn, atol=1e-6, rtol=1e-6)


@given(num_corners=st.integers(3, 40))
@settings(max_examples=20, deadline=None)
def test_the_sides_have_a_distance_of_one(num_corners):
    """The middle of a side is its point that is nearest to the origin."""
    points, _ = corners.polygons(2, num_corners, noise=0, generator=generator())
    middles = (points + points.roll(1, dims=1)) / 2
    torch.testing.assert_close(middles.norm(dim=-1), torch.ones(2, num_corners))


def test_starts_and_directions_are_drawn_evenly_and_independently():
    points, clockwise = corners.polygons(8000, 4, noise=0, generator=generator())
    start = (points[:, 0] > 0).long() @ torch.tensor([2, 1])
    counts = torch.bincount(start * 2 + clockwise, minlength=8)
    assert ((counts - 1000).abs() < 150).all()  # five standard deviations


def test_noise_has_the_standard_deviation_asked_for_and_is_new_everywhere():
    noisy, _ = corners.polygons(4000, 5, noise=0.3, generator=generator())
    clean, _ = corners.polygons(4000, 5, noise=0, generator=generator())
    error = (noisy - clean).flatten(1)
    assert abs(error.mean()) < 0.01
    torch.testing.assert_close(error.T.cov(), 0.09 * torch.eye(10), atol=0.01, rtol=0)


@given(length=st.integers(1, 30), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_the_second_lap_repeats_the_first_and_no_corner_follows_itself(length, seed):
    points, ids = corners.laps(4, length, noise=0, generator=generator(seed))
    assert points.shape == (4, 2 * length, 2) and ids.shape == (4, 2 * length)
    assert ids.dtype == torch.int64
    assert torch.equal(ids[:, :length], ids[:, length:])
    assert (ids[:, 1:length] != ids[:, : length - 1]).all()
    square = [complex(1, 1) * 1j**k for k in range(4)]  # against the clock
    expected = torch.tensor([[square[k] for k in row] for row in ids.tolist()])
    torch.testing.assert_close(as_complex(points), expected.to(torch.complex128), atol=1e-6, rtol=0)


def test_laps_begin_anywhere_and_go_anywhere():
    _, ids = corners.laps(12_000, 3, noise=0, generator=generator())
    counts = torch.bincount(ids[:, 0] * 16 + ids[:, 1] * 4 + ids[:, 2], minlength=64)
    walks = counts[counts > 0]
    assert len(walks) == 4 * 3 * 3
    assert ((walks - 12_000 / 36).abs() < 95).all()  # five standard deviations


def test_each_lap_has_noise_of_its_own():
    noisy, ids = corners.laps(4000, 2, noise=0.2, generator=generator())
    clean, same_ids = corners.laps(4000, 2, noise=0, generator=generator())
    assert torch.equal(ids, same_ids)
    covariance = (noisy - clean).flatten(1).T.cov()
    torch.testing.assert_close(covariance, 0.04 * torch.eye(8), atol=0.005, rtol=0)


MAKERS = {"polygons": corners.polygons, "laps": corners.laps}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_generator_alone_decides(make):
    torch.manual_seed(1)
    first = make(6, 5, noise=0.1, generator=generator(3))
    torch.manual_seed(2)
    state = torch.random.get_rng_state()
    again = make(6, 5, noise=0.1, generator=generator(3))
    other = make(6, 5, noise=0.1, generator=generator(4))
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], other[0])
    assert torch.equal(torch.random.get_rng_state(), state)


@given(length=st.integers(2, 12), data=st.data())
@settings(max_examples=30, deadline=None)
def test_source_and_target_are_the_sequence_and_the_query_is_one_place_behind(length, data):
    known = data.draw(st.integers(1, length - 1))
    points, _ = corners.laps(3, length, noise=0.1, generator=generator())
    source, query, target = corners.source_query_target(points, known)
    assert torch.equal(torch.cat([source, target], dim=1), points)
    assert torch.equal(query[:, 1:], target[:, :-1])
    assert torch.equal(query[:, 0], source[:, -1])


@pytest.mark.parametrize("known", [0, -1, 4, 9])
def test_parts_refuses_to_leave_one_empty(known):
    with pytest.raises(ValueError, match=f"given={known} of 4 positions"):
        corners.source_query_target(torch.zeros(2, 4, 2), known)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("noise", [-0.1, math.nan])
def test_noise_is_no_negative_number(make, noise):
    with pytest.raises(ValueError, match=f"noise={noise}"):
        make(2, 5, noise=noise, generator=generator())


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_at_least_one_sequence(make):
    with pytest.raises(ValueError, match="count=0"):
        make(0, 5, noise=0.1, generator=generator())


def test_too_few_corners():
    with pytest.raises(ValueError, match="num_corners=2"):
        corners.polygons(2, 2, noise=0.1, generator=generator())
    with pytest.raises(ValueError, match="length=0"):
        corners.laps(2, 0, noise=0.1, generator=generator())
