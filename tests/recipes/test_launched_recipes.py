"""Recipes under a launcher: the same training on any number of processes, and results that can be written."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file

from recipes import language_model, machine

REPOSITORY = Path(language_model.__file__).parents[1]
OPTIONS = ["--smoke", "--epochs", "1", "--dropout", "0", "--precision", "no", "--kinds", "prose"]
FSDP2 = {
    "PRETEND_GPUS": "1",
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_TRANSFORMER_CLS_TO_WRAP": "TransformerLayer",
    "FSDP_CPU_RAM_EFFICIENT_LOADING": "false",
}


@pytest.fixture(autouse=True)
def no_state_of_accelerate(monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


def launch(recipe, output, *options, **environment):
    """Run a recipe in two processes. Returns what it says."""
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **environment}
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    script = str(Path(__file__).with_name("launched_recipe.py"))
    process = subprocess.run(
        [sys.executable, *torchrun, script, recipe, "--output", str(output), *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert process.returncode == 0, process.stderr
    return process.stderr


def result_of(folder):
    log = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    steps = re.search(r"tokens seen: .*", (folder / "README.md").read_text(encoding="utf-8"))
    return {**{name: log[name] for name in ("loss", "tokens", "steps")}, "card": steps.group()}


def assert_same(found, expected):
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-3)
    assert len(found["loss"]) > 5 and found["loss"][-1] < found["loss"][0] - 0.1
    assert {**found, "loss": 0} == {**expected, "loss": 0}, "the same steps, tokens and words on the card"


@pytest.mark.slow
def test_a_run_is_the_same_on_any_number_of_processes(tmp_path, monkeypatch):
    """In one process, with accumulated batches, in two, and sharded over two: a step has 4 blocks."""
    language_model.main([f"--output={tmp_path / 'one'}", *OPTIONS, "--optimizer", "adamw"])
    expected = result_of(tmp_path / "one")
    assert re.search(r" [01]\.\d passes, in \d+ steps of 4 blocks", expected["card"])
    with monkeypatch.context() as patch:
        patch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "2")
        language_model.main([f"--output={tmp_path / 'accumulated'}", *OPTIONS, "--optimizer", "adamw"])
    assert_same(result_of(tmp_path / "accumulated"), expected)
    launch("language_model", tmp_path / "two", *OPTIONS, "--optimizer", "adamw")
    assert_same(result_of(tmp_path / "two"), expected)
    said = launch("language_model", tmp_path / "sharded", *OPTIONS, **FSDP2)
    assert "With FSDP only one optimizer is possible: AdamW without Muon." in said
    assert_same(result_of(tmp_path / "sharded"), expected)
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("one", "sharded")]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=0.02, atol=0.02)  # Of 8 bits.


@pytest.mark.parametrize(
    ("environment", "parts"), [({}, 1), ({"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "3"}, 3)]
)
def test_the_batch_of_a_step_is_divided(monkeypatch, environment, parts):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert machine.rows_per_process(12, "--blocks-per-batch") == 12 // parts
    assert machine.tokens_per_process(1000) == 1000 // parts
    if parts > 1:
        with pytest.raises(ValueError, match=r"--blocks-per-batch 32 is the batch of a whole step .* by 3 "):
            machine.rows_per_process(32, "--blocks-per-batch")


@pytest.mark.parametrize(
    ("mixed_precision", "launched", "expected"),
    [(None, "no", "muon"), ("bf16", "no", "muon"), ("fp16", "no", "adamw"), (None, "fp16", "adamw")],
)
def test_in_fp16_there_is_one_optimizer_and_a_sentence(
    monkeypatch, capsys, mixed_precision, launched, expected
):
    """On a card that does only fp16, such as a T4."""

    class State:
        distributed_type, is_main_process = None, True
        mixed_precision = launched

    monkeypatch.setattr(language_model, "AcceleratorState", State)
    assert language_model.default_optimizer(mixed_precision) == expected
    said = "With fp16 only one optimizer is possible: AdamW without Muon.\n" if expected == "adamw" else ""
    assert capsys.readouterr().err == said
