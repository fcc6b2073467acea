"""The masked-language model's recipe: a smoke run from the data to the card, its parts, what is shipped."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForMaskedLM, AutoTokenizer, pipeline

from chapters_src import resources
from recipes import masked_language_model as recipe
from recipes.corpus import paragraphs
from recipes.masked_language_model import (
    SMOKE,
    AtHidden,
    Hidden,
    Sizes,
    Texts,
    guesses_of,
    hide,
    measured,
    sample,
    with_head,
)

pytestmark = pytest.mark.usefixtures("quiet_library")
SHIPPED = resources.embedded.WEIGHTS_FOLDER / "masked-language-model"
OF_ADAPTER = ["README.md", "adapter_config.json", "adapter_model.safetensors", "config.json", "run.json"]


@pytest.fixture(scope="module")
def folder():
    return resources.checkpoint("encoder")


@pytest.fixture(scope="module")
def texts(folder):
    return Texts(AutoTokenizer.from_pretrained(folder))


@pytest.fixture
def model(folder):
    """A model that was changed wherever training changes one, by numbers that 16 bits can hold."""
    torch.manual_seed(0)
    model = with_head(folder, 2)
    model.get_base_model().set_attn_implementation("sdpa")  # As it will be loaded; training takes another.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.02 * torch.randn_like(parameter)).copy_(parameter.half())
    return model.eval()


# A run ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_smoke_run_goes_from_the_data_to_the_card(tmp_path, capsys, folder, texts):
    result = tmp_path / "new" / "model"
    options = ["--output", str(result), "--smoke", "--epochs", "3", "--rank", "1", "--kinds", "prose"]
    recipe.main(options)
    assert sorted(path.name for path in result.iterdir()) == OF_ADAPTER
    content = (result / "README.md").read_text(encoding="utf-8")
    assert content in capsys.readouterr().out
    assert "a smoke run: these numbers mean nothing" in content and "docstrings of: datasets " in content
    rows = re.findall(r"(?m)^\| (.+?) \| (\d+\.\d)% \| (\d+\.\d)% \| (\d+\.\d{3}) \|$", content)
    assert [name for name, *_ in rows] == [
        "this model",
        "the two neighbors of the token",
        "the encoder without a head",
        "the most frequent tokens",
    ]
    found = paragraphs(SMOKE.packages, ["prose"])["test"][: SMOKE.max_texts]
    held_out = hide(texts.encode([paragraph.text for paragraph in found]), texts.mask)
    base = AutoModelForMaskedLM.from_pretrained(folder)
    read = PeftModel.from_pretrained(base, result).merge_and_unload().eval()  # What a reader may write.
    again = measured(_of_library(read, texts), held_out)
    top1, top5, loss = map(float, rows[0][1:])
    shown = {"loss": loss, "top1": top1 / 100, "top5": top5 / 100}
    assert again == pytest.approx(shown, abs=6e-4), "the card shows what the files give"
    log = json.loads((result / "run.json").read_text(encoding="utf-8"))
    assert log["loss"][-1] < log["loss"][0] - 0.1 and f"seen: {log['tokens'][-1]:,} " in content
    for file in ("adapter_config.json", "config.json"):
        assert folder not in (result / file).read_text(encoding="utf-8"), "no path of this machine"
    with pytest.raises(SystemExit):
        recipe.main(options)
    assert "already exists" in capsys.readouterr().err


def _of_library(model, texts):
    """Let an ordinary model guess: logits of all places of one text at a time, then those that are asked."""

    def guesses(some):
        logits = [model(torch.tensor([text.ids])).logits[0, text.places] for text in some]
        return torch.cat(logits).log_softmax(dim=-1)

    return guesses


@pytest.mark.slow
def test_an_interrupted_run_leaves_checkpoints_and_goes_on_from_them(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("no power")

    result = tmp_path / "model"
    options = ["--output", str(result), "--smoke", "--epochs", "1", "--rank", "1"]
    with monkeypatch.context() as patched:
        patched.setattr(recipe, "card", fail)
        with pytest.raises(RuntimeError, match="no power"):
            recipe.main(options)
    assert [path.name for path in tmp_path.iterdir()] == ["model-checkpoints"]
    monkeypatch.setattr(recipe, "loss_of", fail)  # All steps were done.
    recipe.main(options)
    assert sorted(path.name for path in result.iterdir()) == OF_ADAPTER


# The model ------------------------------------------------------------------------------------------------


def test_what_was_saved_gives_the_same_logits(model, tmp_path, folder, texts):
    recipe.save(model, folder, tmp_path / "adapter")
    ids = texts.tokenizer("The [MASK] of an array.", return_tensors="pt").input_ids
    with torch.no_grad():
        before, again = model(ids).logits, recipe.load(tmp_path / "adapter", folder)(ids).logits
        assert torch.equal(before, again)
        resources.embedded.merge(Path(folder), tmp_path / "adapter", tmp_path / "whole")
        whole = AutoModelForMaskedLM.from_pretrained(tmp_path / "whole").eval()
        torch.testing.assert_close(whole(ids).logits, before, rtol=0, atol=1e-4)
        untouched = AutoModelForMaskedLM.from_pretrained(folder)(ids).logits
    assert (untouched - before).abs().max() > 1, "else equal logits would say nothing"
    assert type(whole).__name__ == "BertForMaskedLM" and not hasattr(whole, "peft_config")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "whole")
    [best, *_] = pipeline("fill-mask", model=whole, tokenizer=tokenizer)("The [MASK] of an array.")
    assert best["token"] == int(before[0, 2].argmax())


def test_the_head_reads_hidden_tokens_only(model, texts):
    rows = texts.encode(["A short text.", "Another text, which is longer than the first one."])
    some = [Hidden(rows[0], [2, 3], rows[0][2:4]), Hidden(rows[1], [5], rows[1][5:6])]
    with torch.no_grad():
        found = guesses_of(AtHidden(model), texts.padding)(some)
        expected = _of_library(model, texts)(some)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_the_head_the_updates_and_biases_are_trained_and_nothing_else(folder):
    model = with_head(folder, 2)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {"lora" in name or "bias" in name or "modules_to_save" in name for name in trained} == {True}
    matrices = {name for name in trained if "lora_A" in name}
    assert len(matrices) == 6 * 6 and not any("cls." in name for name in matrices)
    assert sum("cls.predictions.transform" in name for name in trained) == 4
    assert any(name.endswith("cls.predictions.bias") for name in trained)


# Hidden tokens --------------------------------------------------------------------------------------------


def test_batches_hide_a_share_of_the_tokens(texts):
    torch.manual_seed(0)
    rows = [texts.encode(["word " * 120])[0], texts.encode(["word " * 60])[0]] * 20
    ids = rows[0][1]
    batch = texts.batch(rows, share=0.25, kept=0.2)
    hidden = batch["labels"] != -100
    assert (batch["labels"][hidden] == ids).all()
    assert hidden.sum().item() == pytest.approx(0.25 * 3600, rel=0.1)
    assert batch["attention_mask"][hidden].all() and not hidden[:, 0].any() and not hidden[1, 61:].any()
    shown = batch["ids"][hidden]
    assert (shown == texts.mask).float().mean().item() == pytest.approx(0.8, abs=0.05)
    assert (shown == ids).float().mean().item() == pytest.approx(0.1, abs=0.04)
    assert torch.equal(batch["ids"][~hidden], recipe.pad(rows, padding_id=texts.padding)[0][~hidden])
    all_masks = texts.batch(rows, share=0.25, kept=0.0)
    hidden = all_masks["labels"] != -100
    assert (all_masks["ids"][hidden] == texts.mask).all()
    assert not torch.equal(all_masks["labels"], batch["labels"]), "others in each epoch"


def test_what_is_hidden_of_a_held_out_text_follows_from_the_text(texts):
    rows = texts.encode([f"Text number {i} has some words, and this is the last one." for i in range(200)])
    found = {tuple(row): hide([row], texts.mask) for row in rows}
    together = hide(rows, texts.mask)
    assert together == [text for row in rows for text in found[tuple(row)]]
    for text in together[:20]:
        whole = list(text.ids)
        assert text.places and set(np.array(whole)[text.places]) == {texts.mask}
        for place, token in zip(text.places, text.tokens, strict=True):
            whole[place] = token
        assert whole in rows
    share = sum(len(text.places) for text in together) / sum(len(row) - 2 for row in rows)
    assert share == pytest.approx(0.15, abs=0.02)
    some = sample(rows)
    assert 3 <= len(some) <= 30 and sample(rows[::2]) == [row for row in some if row in rows[::2]]


# Guesses --------------------------------------------------------------------------------------------------


def test_figures_are_those_of_the_guesses():
    probabilities = torch.tensor([0.4, 0.2, 0.15, 0.12, 0.1, 0.03])
    some = [Hidden([0, 1, 2], [1], [0]), Hidden([0, 1], [0, 1], [4, 5]), Hidden([0], [0], [2])]
    figures = measured(lambda of: probabilities.log().expand(sum(len(t.tokens) for t in of), -1), some, 2)
    assert figures["top1"] == 1 / 4 and figures["top5"] == 3 / 4
    expected = -(probabilities[[0, 4, 5, 2]].log().mean())
    assert figures["loss"] == pytest.approx(expected.item())


def test_neighbors_of_both_sides_decide():
    """In a language of "left both right" each neighbor alone leaves four choices for the middle."""
    end, hidden = 24, 25
    rows = [[end, left, 8 + 4 * left + right, 4 + right, end] for left in range(4) for right in range(4)] * 3
    guesses = recipe.neighbors(rows, 26)
    middle = guesses([Hidden([end, 2, hidden, 7, end], [2], [19])])
    assert middle.exp().sum().item() == pytest.approx(1, abs=1e-4)
    assert middle.argmax().item() == 8 + 4 * 2 + 3 and middle.max().exp() > 0.5
    ends = guesses([Hidden([end, hidden, 19, hidden, end], [1, 3], [2, 7])])
    assert ends.argmax(dim=1).tolist() == [2, 7]


def test_frequencies_know_no_special_tokens():
    found = recipe.log_frequencies([[0, 2, 2, 3, 1], [0, 2, 1]], 5).exp()
    assert found.tolist() == pytest.approx(np.array([0.1, 0.1, 3.1, 1.1, 0.1]) / 4.5)


# What is shipped ------------------------------------------------------------------------------------------


def test_what_is_shipped_is_small():
    assert sorted(path.name for path in SHIPPED.iterdir()) == OF_ADAPTER
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 1_000_000


def test_what_is_shipped_fills_masks():
    checkpoint = resources.checkpoint("masked-language-model")
    fill = pipeline(
        "fill-mask",
        model=AutoModelForMaskedLM.from_pretrained(checkpoint),
        tokenizer=AutoTokenizer.from_pretrained(checkpoint),
    )
    found = fill("This function returns the [MASK] of an array.", top_k=3)
    assert [guess["token_str"] for guess in found] != sorted(guess["token_str"] for guess in found)
    assert found[0]["score"] > 0.05


@pytest.mark.full
def test_what_is_shipped_is_as_good_as_its_card_says(texts, card_tolerance):
    log = json.loads((SHIPPED / "run.json").read_text(encoding="utf-8"))
    tolerance = card_tolerance(SHIPPED, Sizes().packages, 0.01, 0.1)
    test = paragraphs(Sizes().packages, ["prose"])["test"]
    held_out = hide(sample(texts.encode([paragraph.text for paragraph in test])), texts.mask)
    model = AutoModelForMaskedLM.from_pretrained(resources.checkpoint("masked-language-model")).eval()
    found = measured(_of_library(model, texts), held_out)
    assert found == pytest.approx(log["sample"], abs=tolerance)
    whole = log["figures"]["this model"]
    assert found["top1"] == pytest.approx(whole["top1"], abs=0.05), "the sample is like the whole"
    [row] = re.findall(r"(?m)^\| this model \|.*$", (SHIPPED / "README.md").read_text(encoding="utf-8"))
    assert f" {whole['top1']:.1%} | {whole['top5']:.1%} | {whole['loss']:.3f} |" in row
