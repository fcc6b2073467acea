"""The sweeps: their records, and that a run which is there is not repeated."""

import json

import pytest

from recipes import language_model, language_model_sweeps


@pytest.mark.slow
def test_a_smoke_run_leaves_a_record_for_each_run_and_repeats_nothing(tmp_path, monkeypatch, quiet_library):
    language_model_sweeps.main(["--output", str(tmp_path), "--smoke"])
    text = (tmp_path / "sweeps.json").read_text(encoding="utf-8")
    records = json.loads(text)
    small, large = records["sizes"]
    assert small["width"] == 64 and large["width"] == 128
    assert small["parameters_of_layers"] < small["parameters"] < large["parameters"]
    assert small["tokens"] == large["tokens"] and small["options"]["kinds"] == "['prose']"
    assert small["figures"]["validation"].keys() == {"this model", "n-grams of order 4"}
    slow, quick = records["optimizers"]
    assert slow["parameters"] == quick["parameters"] == small["parameters"]
    assert slow["optimizer"] == "adamw" and slow["learning-rate"] < quick["learning-rate"]
    assert slow["loss"] != quick["loss"]
    monkeypatch.setattr(language_model, "main", lambda arguments: pytest.fail("it was repeated"))
    language_model_sweeps.main(["--output", str(tmp_path), "--smoke"])
    assert (tmp_path / "sweeps.json").read_text(encoding="utf-8") == text
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".json" and not path.is_dir()]
