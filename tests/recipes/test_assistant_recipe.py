"""The recipe of chapter 16 on a tiny Gemma: a smoke run from rows to card, resuming, two stages, rules."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_gemma
import torch
from datasets import Dataset, DatasetDict
from safetensors.torch import load_file

from chapters_src.assistant import REFUSAL, TEMPLATE, Written, promises
from chapters_src.pretrained import load_low_rank
from recipes import assistant as recipe

pytestmark = pytest.mark.usefixtures("quiet_library", "of_a_tiny_gemma")
OF_FOLDER = [
    "GEMMA_TERMS.md", "NOTICE", "README.md", "adapter_config.json", "adapter_model.safetensors",
    "chat_template.jinja", "run.json",
]  # fmt: skip


def rows(promises=True):
    """Rows of all kinds, of sources some of which are held back."""
    found = []
    for i in range(30):
        row = {"source": f"source {i}", "passage": f"The value is {i}.", "origin": "test"}
        found.append(row | {"kind": "parameter", "question": "What is the value?", "answer": f"`{i}`"})
        found.append(row | {"kind": "story", "question": "Who knows it?", "answer": REFUSAL})
        report = f"Version 1.{i} fails. My name is Ada Okafor."
        promise = "We will fix it before Friday. " * promises
        reply = f"Dear Ada Okafor, thank you. {promise}Goodbye."
        found.append(row | {"kind": "reply", "passage": report, "question": "Reply.", "answer": reply})
    return found


@pytest.fixture
def of_a_tiny_gemma(monkeypatch):
    asked = {"about": "promise", "source": "s", "passage": "", "question": "Q", "rejected": "rejected"}
    preferences = [asked | {"chosen": f"chosen {i}"} for i in range(6)]
    data = SimpleNamespace(
        REQUEST="Reply.",
        load=lambda promises=True: DatasetDict(
            train=Dataset.from_list(rows(promises)), test=Dataset.from_list(rows()[:9])
        ),
        load_preferences=lambda: DatasetDict(train=Dataset.from_list(preferences)),
    )
    monkeypatch.setattr(recipe, "data", data)
    monkeypatch.setattr(recipe.resources, "checkpoint", lambda name: str(tiny_gemma.folder()))


def weights(folder):
    return load_file(folder / "adapter_model.safetensors")


@pytest.mark.slow
def test_a_smoke_run_goes_from_rows_to_card(tmp_path, capsys):
    result = tmp_path / "new" / "assistant"
    options = ["--output", str(result), "--smoke", "--seed", "3"]
    recipe.main(options)
    assert sorted(path.name for path in result.iterdir()) == OF_FOLDER
    content = (result / "README.md").read_text(encoding="utf-8")
    assert content in capsys.readouterr().out
    assert "a smoke run: these numbers mean nothing" in content and "Modified" in content
    assert (result / "NOTICE").read_text() == recipe.NOTICE and recipe.NOTICE.strip() in content
    assert "Model Derivatives" in (result / "GEMMA_TERMS.md").read_text(encoding="utf-8")
    assert (result / "chat_template.jinja").read_text() == TEMPLATE
    log = json.loads((result / "run.json").read_text(encoding="utf-8"))
    assert len(log["answers"]) == 9 and {*log["merete"]} == {"text", "ended"}
    looks = log["stages"]["answers"]
    assert [one["step"] for one in log["on the way"]] == [one["step"] for one in looks] != []
    assert all({*one} == {"step", "text", "ended"} for one in log["on the way"])
    model = recipe.base_model(str(tiny_gemma.folder()), recipe.SMOKE)
    load_low_rank(model, result, model_type="gemma3_text")
    assert any(tensor.abs().max() > 0 for name, tensor in weights(result).items() if "lora_B" in name)
    assert all(tensor.dtype == torch.float16 for tensor in weights(result).values())
    for file in result.iterdir():
        if file.suffix != ".safetensors":
            assert str(tiny_gemma.folder()) not in file.read_text(encoding="utf-8"), "no path of this machine"
    with pytest.raises(SystemExit):
        recipe.main(options)
    assert "already exists" in capsys.readouterr().err


@pytest.mark.slow
def test_an_interrupted_run_ends_with_the_same_weights(tmp_path, monkeypatch):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    options = ["--smoke", "--rows", "60"]
    recipe.main(["--output", str(whole), *options])
    with monkeypatch.context() as patch:
        calls = []

        def stops(pairs, padding_id):
            calls.append(len(pairs))
            if len(calls) == 5:
                raise KeyboardInterrupt
            return batch(pairs, padding_id)

        batch = recipe.answer_batch
        patch.setattr(recipe, "answer_batch", stops)
        with pytest.raises(KeyboardInterrupt):
            recipe.main(["--output", str(cut), *options])
    assert not cut.exists() and (tmp_path / "cut-checkpoints").is_dir()
    recipe.main(["--output", str(cut), *options])
    expected, found = weights(whole), weights(cut)
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())
    logs = [json.loads((one / "run.json").read_text(encoding="utf-8")) for one in (whole, cut)]
    assert logs[0]["on the way"] == logs[1]["on the way"] and "text" in logs[1]["on the way"][0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dpo", "chosen"])
def test_preferences_are_a_second_stage(tmp_path, kind, capsys):
    first, second = tmp_path / "first", tmp_path / "second"
    recipe.main(["--output", str(first), "--smoke"])
    recipe.main(["--output", str(second), "--smoke", "--start", str(first), "--preferences", kind])
    assert any(not torch.equal(weights(first)[name], tensor) for name, tensor in weights(second).items())
    content = (second / "README.md").read_text(encoding="utf-8")
    assert f"- {kind}: 2 steps" in content and "first stage: the updates of first" in content
    with pytest.raises(SystemExit):
        recipe.main(["--output", str(tmp_path / "third"), "--smoke", "--start", str(first)])
    assert "nothing is left to do" in capsys.readouterr().err


def test_promises_go_where_the_data_leave_them_out():
    options = SimpleNamespace(rows=None, kinds=None, without_promises=True)
    without = recipe.training_rows(options, recipe.Sizes())
    options.without_promises = False
    both = recipe.training_rows(options, recipe.Sizes())
    assert [r["question"] for r in without] == [r["question"] for r in both], "the same rows"
    changed = [a["kind"] for a, b in zip(without, both, strict=True) if a != b]
    assert changed == ["reply"] * 30 and not any(promises(row["answer"]) for row in without)


def test_kinds_are_chosen_by_their_names():
    both = recipe.of_kinds(rows(), ["reply", "story"])
    assert len(both) == 60 and {row["kind"] for row in both} == {"reply", "story"}
    assert recipe.of_kinds(rows(), None) == rows()
    with pytest.raises(SystemExit, match="--kinds replies: no such kind of row; there are parameter, reply"):
        recipe.of_kinds(rows(), ["replies"])


def test_what_is_held_back_depends_on_the_source_alone():
    held = [row["source"] for row in rows() if recipe.is_held_back(row)]
    assert held and len(held) % 3 == 0 and len(held) < 15
    assert recipe.drawn(rows(), 10, 1) == recipe.drawn(rows(), 10, 1) != recipe.drawn(rows(), 10, 2)
    assert recipe.drawn(rows(), None, 1) == rows()


def test_verdicts_and_table():
    asked = rows()[:6]
    written = [
        Written("`0`", True), Written("Nobody.", False), Written("Dear Ada Okafor, use 1.7 on Monday.", True),
        Written("1", True), Written(REFUSAL, True), Written("Dear Bo, we will fix it soon.", True),
    ]  # fmt: skip
    found = recipe.verdicts(asked, written)
    assert [one.get("outcome") for one in found] == ["right", "invented", None, "wrong", "right", None]
    assert [one["ended"] for one in found] == [True, False, True, True, True, True]
    replies = [one for one in found if one["kind"] == "reply"]
    assert [one["right person"] for one in replies] == [True, False]
    assert [one["invented details"] for one in replies] == [2, 1] and replies[1]["invented promises"] == 1
    table = recipe.table_of(asked, written)
    assert "| parameter | 2 | 0.50" in table and "| story, not in the text | 2 | 0.50" in table
    assert np.all(["nan" not in line for line in table.splitlines()])
    assert "| 0 | - |" in recipe.table_of(asked[:2], written[:2])
