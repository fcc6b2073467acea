"""The models: every row is whole, can be built, counts what its formula says, and runs when it is tiny."""

import functools

import pandas as pd
import pytest
import torch
import transformers

from chapters_src.data import models

TABLE = models.load()
BUILT = [name for name in TABLE.index if TABLE.loc[name, "model_class"]]


def test_the_family_is_there():
    wanted = (
        "ELMo, Transformer-XL, XLNet, BERT, DistilBERT, RoBERTa, XLM, XLM-R, ALBERT, ELECTRA, DeBERTa, "
        "ModernBERT, GPT, GPT-2, CTRL, GPT-3, GPT-Neo, GPT-J, Llama, Qwen2, Gemma, T5, BART, M2M-100, "
        "PEGASUS, Marian, BigBird, Longformer, ViT, Mixtral, Llama 3, DeepSeek-V3, Qwen3, Gemma 3, gpt-oss"
    )
    assert set(wanted.split(", ")) <= set(TABLE.index)
    assert TABLE.index.is_unique


def test_texts_are_filled_in_and_words_are_those_of_the_card():
    for column in ("family", "paper", "objective", "positions", "norm", "library", "idea"):
        assert (TABLE[column].str.strip() != "").all(), column
    families = {"forerunner", "encoder", "decoder", "encoder-decoder", "long documents", "vision"}
    assert families <= set(TABLE["family"])
    assert set(TABLE["library"]) == {"yes", "dropped", "never"}
    assert TABLE["paper"].str.startswith("https://").all()
    assert (TABLE["source"].str.startswith("https://") == TABLE["paper_parameters"].notna()).all()
    assert TABLE["idea"].str.endswith(".").all()


@pytest.mark.parametrize("fact", ["data", "ranked"])
def test_a_fact_has_a_link_and_an_unknown_one_has_none(fact):
    known = TABLE[fact] != ""
    assert (TABLE[f"{fact}_source"].str.startswith("https://") == known).all()
    assert known.mean() > 0.9


def test_parents_are_in_the_file_and_older():
    for name, row in TABLE.iterrows():
        if row["parent"]:
            assert TABLE.loc[row["parent"], "year"] <= row["year"], name
    assert list(TABLE.index[TABLE["parent"] == ""]) == ["Transformer", "ELMo"]


def test_nobody_descends_from_itself():
    for name in TABLE.index:
        line = [name]
        while parent := TABLE.loc[line[-1], "parent"]:
            assert parent not in line, line
            line.append(parent)


def test_the_library_has_what_the_file_says():
    there = {"Transformer-XL": "TransfoXLModel", "ELMo": "ElmoModel", "GPT-3": "GPT3Model"}
    there |= {"Transformer": "TransformerModel"}
    for name, row in TABLE.iterrows():
        model_class = there.get(name) or row["model_class"]
        has = hasattr(transformers, model_class)
        assert has == (row["library"] == "yes"), f"{name}: the library has {model_class!r}: {has}"


@functools.cache
def published(name):
    with torch.device("meta"):
        return models.build(TABLE.loc[name], "published")


@pytest.mark.parametrize(
    "name", [name for name in BUILT if TABLE.loc[name, "model_class"] in models.FORMULAS]
)
def test_the_count_at_published_size_is_that_of_the_formula(name):
    row, model = TABLE.loc[name], published(name)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert models.count_by_hand(row) == count
    if pd.isna(row["at_work"]):
        assert models.count_by_hand(row, at_work=True) == count
    else:
        assert models.count_by_hand(row, at_work=True) == row["at_work"] < count / 3


@pytest.mark.parametrize("name", BUILT)
def test_a_count_that_differs_from_the_published_one_is_explained(name):
    row = TABLE.loc[name]
    count = sum(parameter.numel() for parameter in published(name).parameters())
    given = row["paper_parameters"]
    if pd.isna(given) or abs(count / given - 1) > 0.01:
        published_number = "no number" if pd.isna(given) else f"{given:,}"
        assert row["gap"], f"{count:,} here, {published_number} published: say why in the column gap"


@pytest.mark.parametrize("name", BUILT)
def test_vocabulary_and_context_are_those_of_the_model(name):
    row, config = TABLE.loc[name], published(name).config
    if name == "ViT":
        assert row["context"] == (config.image_size // config.patch_size) ** 2 + 1
        return
    assert row["vocabulary"] == config.vocab_size, "see the column published"
    reserved = {"RoBERTa": 2, "XLM-R": 2, "Longformer": 2}.get(name, 0)  # Rows that no position uses.
    if name in ("XLNet", "T5", "Qwen2", "Llama", "DeepSeek-V3"):
        return  # No table of positions: the context is the length in training.
    assert row["context"] == config.max_position_embeddings - reserved, (
        "not the number of rows for positions: set max_position_embeddings in the column published, or, if "
        "it has no such rows, name it in the list above"
    )


@pytest.mark.parametrize("name", BUILT)
def test_a_tiny_one_runs(name):
    model = models.build(TABLE.loc[name], "tiny")
    size = sum(parameter.numel() for parameter in model.parameters())
    assert size < 200_000, (
        f"a tiny {name} has {size:,} parameters: make the settings in the column tiny smaller"
    )
    if name == "ViT":
        inputs = {"pixel_values": torch.zeros(2, 3, 8, 8)}
    else:
        inputs = {"input_ids": torch.arange(3, 67).repeat(2, 1)}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = inputs["input_ids"]
    with torch.no_grad():
        output = model(**inputs)[0]
    assert len(output) == 2
    assert torch.isfinite(output).all()


def test_settings_are_read_as_literals():
    row = {"published": "a=1 b=[['x',2]] c=True", "tiny": "a=0.5"}
    assert models.settings(row, "published") == {"a": 1, "b": [["x", 2]], "c": True}
    assert models.settings(row, "tiny") == {"a": 0.5, "b": [["x", 2]], "c": True}


def test_what_cannot_be_done_is_said():
    with pytest.raises(ValueError, match="small"):
        models.settings({"published": ""}, "small")
    with pytest.raises(ValueError, match="'a:1' is not a setting"):
        models.settings({"published": "a:1"}, "published")
    with pytest.raises(ValueError, match="no class for this model of 2019"):
        models.build(TABLE.loc["Transformer-XL"], "tiny")
    with pytest.raises(ValueError, match="no formula for the class 'NoModel'"):
        models.count_by_hand({"model_class": "NoModel"})
