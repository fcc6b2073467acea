"""What `benchmarks/positions.py` trains, with a few steps. All of it takes ten minutes."""

import pytest
import torch
from torch.nn import functional as F

from benchmarks import positions
from chapters_src.records import record


def says(choose):
    """Make a model that says after each token what a function of the ids names."""
    return lambda ids, mask, positions: F.one_hot(choose(ids), 12).float()


def three_before(ids):
    return ids.roll(3, dims=1)


def test_the_target_is_the_token_three_places_before():
    ids, targets = positions.draw(10, torch.Generator().manual_seed(0))
    assert ids.shape == (positions.BATCH_SIZE, 10)
    assert all(torch.equal(targets[:, place - 3], ids[:, place - 3]) for place in range(3, 10))
    assert positions.right(says(three_before), ids, targets).all()


@pytest.mark.parametrize("guess", [torch.zeros_like, lambda ids: ids, lambda ids: ids.roll(2, dims=1)])
def test_guesses_and_other_places_are_right_one_time_in_twelve(guess):
    shares = positions.scores(says(guess), seed=0)
    assert shares == pytest.approx(dict.fromkeys(shares, 1 / 12), abs=0.02)


def test_longer_begins_after_the_longest_sequence_of_training():
    def wrong_from_the_33rd(ids):
        return (three_before(ids) + (torch.arange(ids.size(1)) >= 32)) % 12

    shares = positions.scores(says(wrong_from_the_33rd), seed=0)
    assert shares == {"within": 1, "longer": 0, "short": 1, "moved by 20": 1, "moved by 40": 1}


@pytest.mark.parametrize("moved", positions.MOVES)
def test_moving_changes_the_positions_and_nothing_else(moved):
    seen = []

    def model(ids, mask, positions):
        seen.append((ids, positions.tolist()))
        return F.one_hot(ids, 12).float()

    ids, targets = positions.draw(12, torch.Generator().manual_seed(0))
    positions.right(model, ids, targets)
    positions.right(model, ids, targets, moved=moved)
    assert [places for _, places in seen] == [[[*range(12)]], [[*range(moved, moved + 12)]]]
    assert torch.equal(seen[0][0], seen[1][0])


@pytest.mark.parametrize("kind", positions.KINDS)
def test_only_a_table_of_positions_notices_the_move(kind):
    model = positions.looking_back(kind, seed=0)
    ids, _ = positions.draw(12, torch.Generator().manual_seed(0))
    with torch.no_grad():
        here, there = (model(ids, None, positions=first + torch.arange(12)[None]) for first in (0, 40))
    assert torch.allclose(here, there, atol=1e-4) == (kind in ("none", "rotary"))


def test_training_leaves_the_rows_of_later_positions_as_they_were():
    new = positions.looking_back("learned", seed=1).decoder.embedding.positions.weight
    trained = positions.train("learned", seed=1, steps=5).decoder.embedding.positions.weight
    assert torch.equal(new[32:], trained[32:])
    assert (new[:8] != trained[:8]).any(dim=1).all()  # even the shortest sequence has these


def test_the_record_has_all_rows_and_a_smoke_run_needs_a_file():
    runs = record("positions")["figures"]["runs"]
    wanted = [(kind, steps, seed) for kind, steps in positions.ROWS for seed in range(positions.STARTS)]
    assert [(run["positions"], run["steps"], run["seed"]) for run in runs] == wanted
    with pytest.raises(SystemExit):
        positions.main(["--smoke"])
