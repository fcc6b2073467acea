"""The recipe of chapter 05's recorded runs: a smoke run from data to record, and what its kinds train."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from chapters_src import records
from chapters_src.data import emotions
from chapters_src.evaluation import recall_at_k
from recipes import fine_tuning

pytestmark = pytest.mark.usefixtures("quiet_library")


@pytest.fixture(scope="module")
def data():
    return fine_tuning.load(replace(fine_tuning.SMOKE, most_messages=96))


@pytest.mark.slow
def test_a_smoke_run_goes_from_the_data_to_the_record_and_repeats_nothing(tmp_path, monkeypatch):
    fine_tuning.main(["--output", str(tmp_path), "--smoke"])
    content = json.loads((tmp_path / "fine_tuning.json").read_text(encoding="utf-8"))
    assert content["script"] == "recipes/fine_tuning.py"
    assert_whole(content["figures"], fine_tuning.SMOKE)
    assert not list(tmp_path.rglob(".*"))
    monkeypatch.setattr(fine_tuning, "trained", lambda *_: pytest.fail("it was repeated"))
    fine_tuning.main(["--output", str(tmp_path), "--smoke"])
    assert json.loads((tmp_path / "fine_tuning.json").read_text(encoding="utf-8")) == content


def assert_whole(figures, sizes):
    """Every run is there once, with the learning rate that validation chose."""
    runs = [(run["kind"], run["passes"], run["seed"]) for run in figures["runs"]]
    wanted = {(kind, fine_tuning.PASSES, seed) for kind in fine_tuning.KINDS for seed in sizes.seeds}
    wanted |= {(kind, n, seed) for kind, n in fine_tuning.MORE_PASSES.items() for seed in sizes.seeds}
    wanted |= {(kind, n, sizes.seeds[0]) for kind, n in fine_tuning.CONTROLS.items()}
    assert set(runs) == wanted and len(runs) == len(wanted)
    chosen = {}
    for tried in figures["rates"]:
        assert [one["learning_rate"] for one in tried["tried"]] == list(fine_tuning.RATES[tried["kind"]])
        best = max(tried["tried"], key=lambda one: one["score"])
        assert best["learning_rate"] == tried["chosen"]
        chosen[tried["kind"]] = tried["chosen"]
    for run in figures["runs"]:
        assert run["learning_rate"] == chosen.get(run["kind"], 2e-4)
        for name in fine_tuning.METRICS:
            estimate, low, high = run["gain"][name]
            assert low <= estimate <= high
            assert estimate == pytest.approx(run[name] - figures["baselines"]["probe"][name], abs=2e-4)
    sentences = figures["texts"]["sentences"]
    for run in figures["runs"]:
        if run["kind"] == "fine-tuned":
            assert np.shape(run["of_texts"]) == (len(sentences), len(emotions.LABELS))
            assert np.allclose(np.sum(run["of_texts"], axis=1), 1, atol=0.005)


def test_the_record_is_whole():
    figures = records.record("fine_tuning")["figures"]
    assert_whole(figures, fine_tuning.Sizes())
    assert figures["settings"]["wrong_on_purpose"] == {"train": 30, "validation": 20, "test": 0}
    assert figures["settings"]["messages"] == {"train": 1500, "validation": 500, "test": 1000}
    for run in figures["runs"]:
        passes = run["passes"] if run["kind"] == "fine-tuned" else 1
        assert len(run["after_passes"]) == passes
        assert run["after_passes"][-1]["test"]["accuracy"] == run["accuracy"]
    majority = np.bincount(emotions.load()["test"][:]["label"]).max() / 1000
    assert figures["baselines"]["majority class"]["accuracy"] == pytest.approx(majority, abs=1e-4)


def test_kinds_differ_in_what_they_train(data):
    trained, weights = {}, {}
    for kind in fine_tuning.KINDS:
        model = fine_tuning.new_model(kind, 0)
        trained[kind] = sum(p.numel() for p in model.parameters() if p.requires_grad)
        weights[kind] = fine_tuning.logits_of(model, data, "texts")
    head = 385 * len(emotions.LABELS)
    assert trained["LoRA"] == 6 * 2 * 2 * fine_tuning.RANK * 384 + head
    assert trained["fine-tuned"] == trained["random"] > 20_000_000
    assert not torch.allclose(weights["fine-tuned"], weights["random"])


def test_logits_are_in_the_order_of_the_rows(data):
    model = fine_tuning.new_model("fine-tuned", 0)
    together = fine_tuning.logits_of(model, data, "validation")
    ids = data.encoded["validation"][:]["input_ids"]
    model.eval()
    for row in (0, 17, 95):
        batch = data.tokenizer.pad({"input_ids": [ids[row]]}, return_tensors="pt")
        with torch.inference_mode():
            torch.testing.assert_close(model(**batch)["logits"][0], together[row], atol=1e-4, rtol=1e-4)


def test_corrected_labels_are_the_true_ones_of_the_planted_messages(data):
    planted = emotions.planted_errors()
    for split in ("train", "validation", "test"):
        rows = planted.loc[planted["split"] == split, "row"]
        assert sorted(np.flatnonzero(data.wrong(split))) == sorted(rows[rows < 96])


def test_recall_is_that_of_the_highest_losses():
    losses, wrong = np.arange(100.0), np.arange(100) >= 96
    assert fine_tuning.recalls(losses, wrong) == {"2": 0.5, "5": 1.0, "10": 1.0, "20": 1.0}
    assert recall_at_k(losses, wrong, 1) == 0.25
