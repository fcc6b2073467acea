"""The recipe of the small networks on digits: a smoke run, the forms, the changes and the maps."""

import json

import pytest
import torch

from recipes import pictures as recipe


@pytest.mark.slow
def test_a_smoke_run_writes_the_record_and_repeats_nothing(tmp_path, monkeypatch):
    recipe.main(["--output", str(tmp_path), "--smoke"])
    found = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))["figures"]
    assert {(row["network"], row["change"]) for row in found["groups"]} == {
        (network, change) for network, changes in recipe.CHANGES.items() for change in changes
    }
    assert all(len(row["answers"]) == 1797 for row in found["groups"])
    assert {"maps", "rectangle", "few", "one writer", "random"} <= set(found)
    monkeypatch.setattr(recipe, "fit", None)  # All was trained.
    recipe.main(["--output", str(tmp_path), "--smoke"])


def test_the_forms_are_fourteen_and_the_last_three_are_a_group():
    images, labels, form = recipe.load()
    assert images.shape == (1797, 1, 8, 8) and len(labels) == 1797
    assert set(form) == set(range(14)) and (form[1:] >= form[:-1]).all()
    group = recipe.group_of(form)
    assert set(form[group == 0]) == {11, 12, 13} and set(form[group == 4]) == {0, 1}


def test_changed_digits_keep_their_paper_and_most_of_their_ink():
    torch.manual_seed(0)
    images, _, _ = recipe.load()
    paper = torch.full((4, 1, 8, 8), recipe.PAPER)
    torch.testing.assert_close(recipe.changed(paper), paper)
    before, after = images[:200], recipe.changed(images[:200])
    assert after.min() >= recipe.PAPER - 1e-5 and not torch.equal(before, after)
    ink = [(pictures - recipe.PAPER).sum().item() for pictures in (before, after)]
    assert 0.85 < ink[1] / ink[0] < 1.15


def test_an_order_moves_whole_patches():
    images, _, _ = recipe.load()
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    moved = recipe.rearranged(images[:5], order)
    patches = [recipe.package.patches(pictures, recipe.P) for pictures in (images[:5], moved)]
    torch.testing.assert_close(patches[1], patches[0][:, order])


def test_half_of_the_patches_are_grayed():
    images, _, _ = recipe.load()
    seen, hidden = recipe.grayed(images[:50])
    assert (hidden.sum(dim=1) == 8).all()
    patches = recipe.package.patches(seen, recipe.P)
    assert (patches[hidden] == 0).all()
    assert torch.equal(patches[~hidden], recipe.package.patches(images[:50], recipe.P)[~hidden])


def test_a_longer_training_has_to_be_worth_it():
    rows = [
        {"network": "a", "rate": rate, "epochs": epochs, "right": right}
        for rate, epochs, right in ((1, 15, 0.90), (2, 15, 0.91), (1, 30, 0.914), (2, 30, 0.913))
    ]
    assert recipe.best(rows, "a") == {"rate": 2, "epochs": 15}
    rows[2]["right"] = 0.916
    assert recipe.best(rows, "a") == {"rate": 1, "epochs": 30}


def test_rows_of_the_rollout_are_shares_and_hiding_counts():
    torch.manual_seed(0)
    images, _, _ = recipe.load()
    model = recipe.transformer().eval()
    maps = recipe.maps_of(model, images[:6])
    assert all(ranks.shape == (6, 16) for ranks in maps.values())
    rollout = maps["rollout"]
    assert (rollout > 0).all() and (rollout.sum(dim=1) < 1).all()
    with torch.no_grad():
        before = model(images[:6], None)
    torch.testing.assert_close(recipe.without(model, images[:6], rollout, 0), before)
    most = rollout.argmax(dim=1)
    other = images[:6].clone()
    for picture, patch in zip(other, most.tolist(), strict=True):
        row, column = 2 * (patch // 4), 2 * (patch % 4)
        picture[:, row : row + 2, column : column + 2] = 2.0  # What is hidden cannot matter.
    torch.testing.assert_close(
        recipe.without(model, other, rollout, 1), recipe.without(model, images[:6], rollout, 1)
    )
