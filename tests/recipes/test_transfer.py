"""The recipe of the transfer: a smoke run from data to record, the draws, and what a start changes."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM

from chapters_src import records, resources
from chapters_src.data import emotions
from recipes import transfer

pytestmark = pytest.mark.usefixtures("quiet_library")
STARTS = set(transfer.STARTS)


def assert_best(chosen):
    """What was chosen has the best mean of both scores on validation."""
    means = {float(name): np.mean(list(one.values())) for name, one in chosen["validation"].items()}
    assert means[chosen["learning_rate" if "start" in chosen else "C"]] == max(means.values())


# A run ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_smoke_run_goes_from_the_data_to_the_record_and_repeats_nothing(tmp_path, monkeypatch):
    options = ["--output", str(tmp_path), "--smoke"]
    transfer.main([*options, "--starts", "random", "messages"])
    assert not (tmp_path / "transfer.json").exists(), "not all runs are there"
    transfer.main(options)
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    found = records.record("transfer")
    assert found["script"] == "recipes/transfer.py"
    figures = found["figures"]
    [labels] = transfer.SMOKE.steps
    seeds = range(transfer.SMOKE.seeds)
    wanted = {(start, labels, seed) for start in STARTS for seed in seeds}
    assert {(run["start"], run["labels"], run["seed"]) for run in figures["runs"]} == wanted
    assert len(figures["runs"]) == len(wanted)
    assert len(figures["baselines"]) == 3 * len(seeds)
    assert len(figures["chosen"]) == len(STARTS) + 2
    for entry in figures["chosen"]:
        assert len(entry["validation"]) == 3
        assert_best(entry)
    assert {run["learning_rate"] for run in figures["runs"]} <= set(transfer.RATES)
    assert [entry["start"] for entry in figures["adaptation"]] == ["messages"]
    assert not list(tmp_path.rglob(".*"))
    monkeypatch.setattr(transfer, "train", lambda *_, **__: pytest.fail("it was repeated"))
    transfer.main(options)
    assert records.record("transfer") == found


@pytest.mark.slow
def test_an_adapted_encoder_is_a_checkpoint_and_another_encoder_than_it_was(tmp_path):
    transfer.adapt(transfer.load(24), transfer.SMOKE, tmp_path)
    adapted = AutoModelForMaskedLM.from_pretrained(tmp_path / "messages").eval()
    ids = torch.tensor([[101, 1996, 5722, 102]])
    with torch.inference_mode():
        states = adapted.bert(ids).last_hidden_state
        former = transfer.body_of("documentation", tmp_path).eval()(ids).last_hidden_state
        now = transfer.body_of("messages", tmp_path).eval()(ids).last_hidden_state
    assert torch.allclose(states, now, atol=1e-5)
    assert not torch.allclose(former, now, atol=1e-3)


# Its parts ------------------------------------------------------------------------------------------------


def test_smaller_draws_are_parts_of_larger_ones_and_have_all_classes_in_proportion():
    labels = np.array(emotions.load()["train"]["label"])
    shares = np.bincount(labels) / len(labels)
    for seed in range(4):
        draws = {count: transfer.drawn(labels, count, seed) for count in transfer.Sizes().steps}
        for count, rows in draws.items():
            assert len(set(rows.tolist())) == count
            assert np.abs(np.bincount(labels[rows]) - count * shares).max() <= 1
        fewest, some, most = map(set, draws.values())
        assert fewest < some < most
    assert set(transfer.drawn(labels, 50, 0)) != set(transfer.drawn(labels, 50, 1))


def test_a_draw_without_a_class_is_refused():
    with pytest.raises(ValueError, match=r"1 labels are too few: classes \[\d\]"):
        transfer.drawn(np.array([0, 1, 1, 1]), 1, 0)


def test_messages_are_the_splits_and_their_labels_stay_wrong():
    data, messages = transfer.load(None), emotions.load()
    assert {split: len(found.texts) for split, found in data.items()} == {
        "train": 1500,
        "validation": 500,
        "test": 1000,
    }
    assert not set(data["train"].texts) & {*data["validation"].texts, *data["test"].texts}
    for split, found in data.items():
        assert found.labels.tolist() == messages[split]["label"]


def test_messages_that_occur_twice_are_refused(monkeypatch):
    splits = emotions.load()
    splits["test"] = splits["train"]
    monkeypatch.setattr(emotions, "load", lambda: splits)
    with pytest.raises(ValueError, match="a message occurs twice"):
        transfer.load(4)


def test_starts_differ_in_the_encoder_alone(tmp_path):
    models = {
        start: transfer.classifier(transfer.body_of(start, tmp_path), 0)
        for start in ("random", "pretrained", "documentation")
    }
    heads = [model.head.weight for model in models.values()]
    assert all(torch.equal(head, heads[0]) for head in heads)
    assert not torch.equal(heads[0], transfer.classifier(None, 1).head.weight)
    sizes = {sum(p.numel() for p in model.parameters() if p.requires_grad) for model in models.values()}
    assert len(sizes) == 1, "all weights are trained, from every start"
    ids = torch.tensor([[101, 1996, 5722, 102]])
    checkpoints = {"pretrained": "encoder", "documentation": "masked-language-model"}
    with torch.inference_mode():
        for start, name in checkpoints.items():
            same = AutoModel.from_pretrained(resources.checkpoint(name)).eval()
            expected, found = (one(ids).last_hidden_state for one in (same, models[start].body.eval()))
            assert torch.allclose(found, expected, atol=1e-5), start


def test_predictions_are_in_the_order_of_the_rows():
    rows = [[101, *range(2000, 2000 + length), 102] for length in (9, 2, 5, 30, 1) * 9]
    found = transfer.in_batches(lambda ids, mask: mask.sum(dim=1), rows)
    assert found.tolist() == [len(row) for row in rows]


# The record -----------------------------------------------------------------------------------------------


def test_the_record_has_every_run_and_its_choices_are_those_of_validation():
    figures = records.record("transfer")["figures"]
    sizes = transfer.Sizes()
    runs = {(run["start"], run["labels"], run["seed"]): run for run in figures["runs"]}
    assert len(runs) == len(figures["runs"]) == len(STARTS) * len(sizes.steps) * sizes.seeds
    assert figures["settings"]["steps"] == {str(count): steps for count, steps in sizes.steps.items()}
    assert figures["settings"]["wrong_on_purpose"] == {"train": 30, "validation": 20, "test": 0}
    chosen = {entry["start"]: entry for entry in figures["chosen"] if "start" in entry}
    assert chosen.keys() == STARTS
    for entry in figures["chosen"]:
        assert_best(entry)
    for (start, _, _), run in runs.items():
        assert run["learning_rate"] == chosen[start]["learning_rate"]
    pairs = figures["twice_the_steps"]
    for usual, twice in zip(pairs[::2], pairs[1::2], strict=True):
        assert usual["start"] == twice["start"] and usual["steps"] == sizes.steps[usual["labels"]]
        assert twice["steps"] == 2 * usual["steps"]
    assert {run["start"] for run in figures["twice_the_steps"]} == STARTS


def test_the_record_says_of_the_majority_class_what_the_labels_say():
    labels = np.array(emotions.load()["test"]["label"])
    train = np.array(emotions.load()["train"]["label"])
    for one in records.record("transfer")["figures"]["baselines"]:
        if one["name"] == "majority class":
            drawn = train[transfer.drawn(train, one["labels"], one["seed"])]
            assert one["accuracy"] == round((labels == np.bincount(drawn).argmax()).mean(), 4)
