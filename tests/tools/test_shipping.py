"""The benchmark of chapter 15's exports, and the layer in eight bits that it takes from the page."""

import pytest
import torch
from torch import nn

from benchmarks import shipping
from chapters_src.records import record


@pytest.fixture(scope="module")
def in_eight_bits():
    [function] = shipping.of_the_page("in_eight_bits", needs=("Int8Linear",))
    return function


def linear(weight: torch.Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight.data = weight
    return layer


def test_whole_numbers_survive_eight_bits(in_eight_bits):
    """Where both scales are 1 nothing is lost, so the product is that of the whole numbers."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randint(-126, 127, (24, 40), generator=generator).float()
    states = torch.randint(-126, 127, (2, 5, 40), generator=generator).float()
    weight[:, 3], states[..., 7] = 127.0, -127.0
    model = nn.Sequential(linear(weight))
    assert torch.equal(in_eight_bits(model)(states), model(states))


def test_the_error_is_within_its_bound(in_eight_bits):
    """Each factor is off by at most half a step, so a product by the sum of three terms."""
    generator = torch.Generator().manual_seed(1)
    weight, states = torch.randn(24, 40, generator=generator), torch.randn(3, 40, generator=generator)
    states[1] = 0.0
    model = nn.Sequential(linear(weight))
    found, exact = in_eight_bits(model)(states), model(states)
    half_w = weight.abs().amax(1) / 254
    half_x = states.abs().amax(1, keepdim=True) / 254
    bound = half_x * weight.abs().sum(1) + half_w * states.abs().sum(1, keepdim=True) + 40 * half_x * half_w
    assert ((found - exact).abs() <= bound + 1e-6).all()
    assert not torch.equal(found, exact) and torch.equal(found[1], torch.zeros(24))


def test_the_model_itself_stays_and_layers_with_a_bias_are_left_alone(in_eight_bits):
    model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8, bias=False)))
    small = in_eight_bits(model)
    assert isinstance(model[1][0], nn.Linear) and not isinstance(small[1][0], nn.Linear)
    assert isinstance(small[0], nn.Linear)


def test_a_name_that_the_page_does_not_define_is_an_error():
    with pytest.raises(KeyError, match="in_two_bits"):
        shipping.of_the_page("in_two_bits")


def test_a_row_of_the_record_says_what_was_measured(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda model: model)  # A compiler may be missing.
    calls = []
    row = shipping.compiled("some work", nn.Identity(), calls.append, turns=3)
    assert len(calls) == 1 + 2 * (1 + 3), "the first call, then turns after one to warm up"
    assert row.keys() == record("shipping")["figures"]["compiling"][0].keys()
    assert row["what"] == "some work" and row["first call, s"] == 0
