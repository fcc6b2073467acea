"""What `benchmarks/norm_order.py` trains, with two layers and a few steps. All of it takes an hour."""

import math

import pytest
import torch
from torch.nn import functional as F

from benchmarks import norm_order
from chapters_src.records import record


def same(losses):
    return pytest.approx(losses, abs=2e-3)


def test_both_orders_begin_with_the_same_weights():
    before, after = (
        norm_order.reversing_model(first, 3, num_layers=1).state_dict() for first in (True, False)
    )
    shared = before.keys() & after.keys()
    assert len(before) - len(shared) == 2  # the last norm, in pre-norm only
    assert all(torch.equal(before[name], after[name]) for name in shared - {"head.weight"})
    other = norm_order.reversing_model(True, 4, num_layers=1).state_dict()
    assert not torch.equal(before["head.weight"], other["head.weight"])


@pytest.mark.parametrize(("reverses", "low", "high"), [(True, 0, 1e-6), (False, 10, math.inf)])
def test_only_a_model_that_reverses_has_no_loss(reverses, low, high):
    def says(ids, mask):
        assert mask is None
        return 50 * F.one_hot(ids.flip(1) if reverses else ids, norm_order.KINDS).float()

    model = {"body": says, "head": lambda states: states}
    assert low <= norm_order.reversing_loss(model, torch.Generator().manual_seed(0)) < high


def test_adam_divides_the_factor_out_and_warm_up_begins_slowly():
    def losses(**options):
        row = norm_order.Row("any", False, 3e-3, 20, **options)
        return norm_order.train(row, seed=0, steps=20, num_layers=2)

    plain = losses()
    assert len(plain) == 2 and plain == losses()  # the mean of each ten steps, the same each time
    assert losses(factor=10.0) == same(plain)
    assert losses(warm_up=1_000) != same(plain)


def test_gradient_norms_are_those_of_each_layer():
    norms = norm_order.gradient_norms(True, seed=0, num_layers=2)
    model = norm_order.reversing_model(True, 0, num_layers=2)
    norm_order.reversing_loss(model, torch.Generator().manual_seed(1_000), 64).backward()
    grads = [model.get_parameter(f"body.stack.layers.{n}.feed_forward.down.weight").grad for n in (0, 1)]
    assert norms == pytest.approx([grad.square().sum().sqrt().item() for grad in grads])


def test_the_record_has_all_rows_and_a_smoke_run_needs_a_file():
    runs = record("norm_order")["figures"]["runs"]
    wanted = [(row.name, seed, row.steps) for row in norm_order.ROWS for seed in range(norm_order.STARTS)]
    assert [(run["name"], run["seed"], run["steps"]) for run in runs] == wanted
    assert all(len(run["losses"]) == run["steps"] / norm_order.EVERY for run in runs)
    with pytest.raises(SystemExit):
        norm_order.main(["--smoke"])
