"""The language model's recipe: a smoke run from the data to the card, and its parts."""

import argparse
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

from chapters_src import resources
from chapters_src.data import docstrings
from chapters_src.pretrained import load
from chapters_src.transformer import LanguageModel
from recipes import language_model
from recipes.language_model import SMOKE, Shuffled, Sizes, config_of, documents, measured


@pytest.mark.slow
def test_a_smoke_run_goes_from_the_data_to_the_card(tmp_path, capsys, quiet_library):
    folder = tmp_path / "new" / "model"
    language_model.main(["--output", str(folder), "--smoke", "--epochs", "1"])
    content = (folder / "README.md").read_text(encoding="utf-8")
    assert content in capsys.readouterr().out
    assert "a smoke run: these numbers mean nothing" in content and "docstrings of: datasets " in content
    rows = re.findall(r"(?m)^\| (.+?) \| (\d\.\d{3}) \| (\d\.\d{3}) \|$", content)
    assert [name for name, *_ in rows] == ["this model", "n-grams of order 4"]
    texts = documents(SMOKE, docstrings.KINDS)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for text in texts["test"][:3]:
        assert tokenizer.decode(tokenizer(text).input_ids) == text
    encoded = [tokenizer(text).input_ids for text in texts["test"]]
    again = measured(model, encoded, texts["test"], SMOKE.context)
    assert again == pytest.approx(float(rows[0][2]), abs=6e-4), "the card shows what the files give"
    log = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert log["loss"][-1] < log["loss"][0] and log["tokens"] == sorted(log["tokens"])
    assert f"tokens seen: {log['tokens'][-1]:,}," in content
    written = pipeline("text-generation", model=str(folder), device="cpu")("Return the", max_new_tokens=3)
    assert written[0]["generated_text"].startswith("Return the")
    with pytest.raises(SystemExit):
        language_model.main(["--output", str(folder), "--smoke"])
    assert "already exists" in capsys.readouterr().err


def test_what_is_shipped_is_small():
    checkpoint = resources.checkpoint("language-model")
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    assert sum(parameter.numel() for parameter in model.parameters()) < 6_500_000
    shapes = {name: p.shape for name, p in LanguageModel(config_of(Sizes(), 0.1)).named_parameters()}
    ours = {name: p.shape for name, p in load(checkpoint).named_parameters()}
    assert ours == shapes, "the recipe as it stands makes such a model"
    assert sum(path.stat().st_size for path in Path(checkpoint).iterdir()) < 13_500_000


@pytest.mark.full
def test_what_is_shipped_is_as_good_as_its_card_says(card_tolerance):
    """On the whole test split, by the library's class; then a part of it by ours."""
    folder = Path(resources.checkpoint("language-model"))
    figures = json.loads((folder / "run.json").read_text(encoding="utf-8"))["figures"]
    content = (folder / "README.md").read_text(encoding="utf-8")
    for name in ("this model", "n-grams of order 4"):
        of_splits = (figures[split][name] for split in docstrings.SPLITS[1:])
        assert f"| {name} | {' | '.join(format(figure, '.3f') for figure in of_splits)} |" in content
    texts = documents(Sizes(), ["prose"])["test"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoded = [np.array(tokenizer(text).input_ids) for text in texts]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    found = measured(model, encoded, texts, Sizes.context)
    tolerance = card_tolerance(folder, docstrings.PACKAGES, 0.01, 0.05)
    assert found == pytest.approx(figures["test"]["this model"], abs=tolerance)
    assert found < figures["test"]["n-grams of order 4"] - 0.05, "else the model only counts"
    ours = load(folder).eval()
    some = slice(0, 20)
    part = [measured(one, encoded[some], texts[some], Sizes.context) for one in (ours, model)]
    assert part[0] == pytest.approx(part[1], abs=1e-4)


def test_held_out_is_the_same_prose_whatever_is_trained_on():
    sizes = Sizes(packages=("datasets",))
    few, many = documents(sizes, ("prose",)), documents(sizes, docstrings.KINDS)
    assert few["validation"] == many["validation"] and few["test"] == many["test"]
    assert sum(map(len, many["train"])) > 1.2 * sum(map(len, few["train"]))
    lines = {split: [line for text in many[split] for line in text.split("\n")] for split in many}
    training = {run for line in lines["train"] for run in docstrings.runs(line)}
    prose = {paragraph.text for paragraph in docstrings.paragraphs(sizes.packages)}
    for split in ("validation", "test"):
        assert lines[split] and prose.issuperset(lines[split])
        assert all(training.isdisjoint(docstrings.runs(line)) for line in lines[split])


def test_each_epoch_has_the_same_documents_in_another_order():
    encoded = [np.array([i, i]) for i in range(1, 30)]
    shuffled = Shuffled(encoded, 0, seed=1)
    passes = []
    for epoch in (0, 1, 1):
        shuffled.set_epoch(epoch)
        passes.append([ids.tolist() for ids in shuffled])
    assert passes[0] != passes[1] == passes[2]
    assert sorted(passes[0]) == sorted(passes[1]) == [[0, i, i] for i in range(1, 30)]


def test_muon_has_the_matrices_of_the_layers_and_nothing_else():
    model = LanguageModel(config_of(SMOKE, 0.0))
    options = argparse.Namespace(
        optimizer="muon", learning_rate=0.1, muon_learning_rate=0.2, weight_decay=0.3
    )
    muon, rest = language_model.optimizers_for(options)(model)
    names = {parameter: name for name, parameter in model.named_parameters()}
    of_muon = {names[p] for group in muon.param_groups for p in group["params"]}
    assert of_muon == {
        name for name in names.values() if re.search(r"layers.*(attention|feed_forward)\.", name)
    }
    of_rest = {names[p]: group["weight_decay"] for group in rest.param_groups for p in group["params"]}
    assert of_rest.keys() | of_muon == set(names.values()) and not of_rest.keys() & of_muon
    assert {name for name, decay in of_rest.items() if decay} == {"decoder.embedding.tokens.weight"}
    options.optimizer = "adamw"
    assert language_model.optimizers_for(options) is None
