"""What all recipes share: the options, the records, the facts, the precision."""

import pytest
import torch

from chapters_src import records
from paths import ROOT
from recipes.machine import precision
from recipes.output import listed, options_from, parser_for, write_record


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


def test_a_record_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path / "records")
    path = records.FOLDER / "run.json"
    figures = {"scores": [0.5, None, "größer"]}
    write_record(path, "Three scores.", "recipes/run.py", figures)
    found = records.record("run")
    assert found["figures"] == figures and found["script"] == "recipes/run.py"
    assert f"torch {torch.__version__.partition('+')[0]}" in found["versions"] and found["hardware"]
    with pytest.raises(ValueError, match="JSON compliant"):
        write_record(path, "A number that is none.", "recipes/run.py", float("nan"))
    assert records.record("run") == found and list(records.FOLDER.iterdir()) == [path]


def test_what_is_no_record_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"there is no record 'run'\. Records: none"):
        records.record("run")
    (tmp_path / "run.json").write_text('{"what": "Cut off', encoding="utf-8")
    with pytest.raises(ValueError, match=r"run\.json is damaged"):
        records.record("run")
    (tmp_path / "run.json").write_text('{"what": "Half a record", "figures": []}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"run\.json has no script, versions, hardware"):
        records.record("run")


def test_every_shipped_record_is_whole_and_its_script_there():
    for path in records.FOLDER.glob("*.json"):
        assert (ROOT / records.record(path.stem)["script"]).is_file(), path.name
