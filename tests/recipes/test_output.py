"""What all recipes share: the options, the folder that is complete or absent, the facts, the precision."""

import pytest
import torch

from recipes.machine import precision
from recipes.output import listed, options_from, parser_for, whole_folder


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    output = tmp_path / "new" / "model"
    with pytest.raises(RuntimeError, match="no power"), whole_folder(output) as place:
        place.mkdir()
        (place / "weights").write_text("half", encoding="utf-8")
        raise RuntimeError("no power")
    assert list(output.parent.iterdir()) == []
    with whole_folder(output) as place:
        place.mkdir()
        (place / "weights").write_text("all", encoding="utf-8")
        assert not output.exists()
    assert (output / "weights").read_text(encoding="utf-8") == "all"
    assert list(output.parent.iterdir()) == [output]


def test_an_output_that_is_there_is_refused(tmp_path, capsys):
    parser = parser_for("A recipe.")
    options = options_from(parser, ["--output", str(tmp_path / "new"), "--smoke"])
    assert options.smoke and options.seed == 0 and options.output == tmp_path / "new"
    with pytest.raises(SystemExit):
        options_from(parser, ["--output", str(tmp_path)])
    assert f"{tmp_path} already exists" in capsys.readouterr().err


def test_facts_tell_of_a_smoke_run():
    assert listed({"seed": "1", "time": "2 s"}, smoke=False) == "- seed: 1\n- time: 2 s"
    assert listed({"seed": "1"}, smoke=True) == "- seed: 1\n- a smoke run: these numbers mean nothing"


def test_the_launcher_decides_on_the_precision(monkeypatch):
    monkeypatch.delenv("ACCELERATE_MIXED_PRECISION", raising=False)
    assert precision(torch.device("cpu")) in ("no", "bf16")
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "fp16")
    assert precision(torch.device("cpu")) is None
