"""The recipe of the small recurrent networks: a smoke run, its starts and its tasks."""

import json

import pytest
import torch
from torch import nn

from recipes import recurrent_memory as recipe


@pytest.mark.slow
def test_a_smoke_run_writes_the_record_and_repeats_nothing(tmp_path, monkeypatch):
    recipe.main(["--output", str(tmp_path), "--smoke"])
    found = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))["figures"]
    assert {row["seed"] for row in found["starts"]} == set(range(4))
    assert {row["start"] for row in found["laps"]} == {None, 3.0}
    monkeypatch.setattr(recipe, "trained", None)  # All was trained.
    recipe.main(["--output", str(tmp_path), "--smoke"])


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_the_bias_opens_the_gate_that_keeps(kind):
    """With an enormous bias the first state (of an LSTM: the cell) stays what it was."""
    torch.manual_seed(0)
    made = recipe.network(kind, 50.0)
    first = torch.randn(1, 1, recipe.KEPT)
    points = torch.randn(1, 30, 2)
    if kind == "GRU":
        torch.testing.assert_close(made(points, first)[1], first)
    else:
        with torch.no_grad():
            made.bias_ih_l0[: recipe.KEPT] = -50.0  # Nothing is written.
        torch.testing.assert_close(made(points, (torch.zeros_like(first), first))[1][1], first)


def test_the_start_of_a_plain_network_is_orthogonal_times_its_factor():
    made = recipe.network("RNN", 1.2)
    product = made.weight_hh_l0 @ made.weight_hh_l0.T
    torch.testing.assert_close(product.detach(), 1.44 * torch.eye(recipe.KEPT), atol=1e-5, rtol=0)


def test_the_corner_to_name_comes_first_and_noise_follows():
    (points,), labels = recipe.first_corners(500, torch.Generator().manual_seed(0))
    assert points.shape == (500, 1 + recipe.DISTANCE, 2)
    centers = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    assert (points[:, 0] - centers[labels]).norm(dim=1).max() < 1
    assert abs(points[:, 1:].std().item() - 1) < 0.05


def test_the_plain_network_is_pytorchs_own():
    torch.manual_seed(3)
    ours = recipe.network("GRU", None)
    torch.manual_seed(3)
    theirs = nn.GRU(2, recipe.KEPT, batch_first=True)
    assert all(map(torch.equal, ours.parameters(), theirs.parameters()))
