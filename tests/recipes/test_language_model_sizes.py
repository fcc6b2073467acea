"""The sweep over sizes: its records, and that a run which is there is not repeated."""

import json

import pytest

from recipes import language_model, language_model_sizes


@pytest.mark.slow
def test_a_smoke_run_leaves_a_record_for_each_size_and_repeats_nothing(tmp_path, monkeypatch, quiet_library):
    language_model_sizes.main(["--output", str(tmp_path), "--smoke"])
    text = (tmp_path / "sizes.json").read_text(encoding="utf-8")
    small, large = json.loads(text)
    assert (small["width"], small["layers"]) == language_model_sizes.SIZES[0]
    assert small["parameters_of_layers"] < small["parameters"] < large["parameters"]
    assert small["tokens"] == large["tokens"] and small["options"]["kinds"] == "['prose']"
    assert small["figures"]["validation"].keys() == {"this model", "n-grams of order 4"}
    monkeypatch.setattr(language_model, "main", lambda arguments: pytest.fail("it was repeated"))
    language_model_sizes.main(["--output", str(tmp_path), "--smoke"])
    assert (tmp_path / "sizes.json").read_text(encoding="utf-8") == text
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".json" and not path.is_dir()]
