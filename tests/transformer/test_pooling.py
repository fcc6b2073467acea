"""The mean of the tokens: its definition in float64, in any precision, whatever stands at padding."""

import math

import pytest
import torch
from small_models import random_states

from chapters_src.transformer import mean_pool

PADDING = torch.tensor([[1, 1, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]])


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_it_is_the_mean_of_the_tokens(dtype):
    states = random_states(3, 4, 5)
    expected = [row[is_token].mean(0) for row, is_token in zip(states, PADDING.bool(), strict=True)]
    pooled = mean_pool(states, PADDING.to(dtype))
    assert pooled.dtype == torch.float64
    torch.testing.assert_close(pooled, torch.stack(expected), atol=1e-12, rtol=0)


def test_without_padding_no_mask_is_needed():
    states = random_states(3, 4, 5)
    torch.testing.assert_close(mean_pool(states, None), states.mean(dim=1), atol=1e-12, rtol=0)
    torch.testing.assert_close(
        mean_pool(states, None), mean_pool(states, torch.ones_like(PADDING)), atol=1e-12, rtol=0
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("is_masked", [True, False])
def test_sums_of_half_precision_are_taken_in_float32(dtype, is_masked):
    states = (30 + random_states(2, 4096, 8)).to(dtype)  # 4096 * 30 is more than float16 has
    mask = torch.ones(2, 4096, dtype=torch.int64) if is_masked else None
    pooled = mean_pool(states, mask)
    assert pooled.dtype == dtype
    expected = states.double().mean(dim=1)
    rounding = torch.finfo(dtype).eps * 30
    torch.testing.assert_close(pooled.double(), expected, atol=rounding, rtol=0)
    in_half_precision = torch.zeros(2, 8, dtype=dtype)
    for place in range(4096):  # what is guarded against
        in_half_precision += states[:, place]
    assert ((in_half_precision / 4096).double() - expected).abs().min() > 10 * rounding


@pytest.mark.parametrize("anything", [math.nan, math.inf, -math.inf, 1e300])
def test_what_stands_at_padding_does_not_matter(anything):
    states, is_padding = random_states(3, 4, 5), (PADDING == 0)[..., None]
    spoiled = states.masked_fill(is_padding, anything).requires_grad_()
    pooled = mean_pool(spoiled, PADDING)
    assert torch.equal(pooled, mean_pool(states, PADDING))
    (gradient,) = torch.autograd.grad(pooled.sum(), spoiled)
    assert gradient.isfinite().all() and (gradient[PADDING == 0] == 0).all()
    torch.testing.assert_close(gradient.sum(dim=1), torch.ones(3, 5).double())


def test_a_sequence_without_tokens_has_no_mean():
    pooled = mean_pool(random_states(2, 3, 5), torch.tensor([[0, 0, 0], [0, 1, 0]]))
    assert pooled[0].isnan().all() and pooled[1].isfinite().all()


def test_it_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"\(2, 3, 4\).*\(2, 4\)"):
        mean_pool(torch.ones(2, 3, 4), torch.ones(2, 4, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"\(2, 3, 4\).*torch.float32.*integers or booleans"):
        mean_pool(torch.ones(2, 3, 4), torch.ones(2, 3))
    for mask in (None, torch.ones(2, 3, dtype=torch.int64)):
        with pytest.raises(ValueError, match=r"\(2, 3\).*\(batch, tokens, d_model\)"):
            mean_pool(torch.ones(2, 3), mask)
