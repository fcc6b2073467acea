"""The recipe of the recurrent translators: a smoke run, its batches and words, and the shipped weights."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from chapters_src import records, resources
from recipes import recurrent_translation as recipe
from recipes.recurrent_translation import END, IGNORED, START, UNKNOWN, Words

PAIRS = [(f"The cat sees {n} dogs.", f"Die Katze sieht {n} Hunde.") for n in ("two", "ten", "six", "no")] * 3


@pytest.fixture
def words():
    return Words.of(pair[0] for pair in PAIRS)


def test_sentences_come_back_from_their_ids(words):
    for text in ("The cat sees two dogs.", "Two dogs, no cat."):
        ids = words.ids(text)
        assert ids[-1] == END
        assert words.text(ids) == text if UNKNOWN not in ids else "<unknown>" in words.text(ids)


def test_batches_have_sources_of_one_length_and_hold_every_sentence_once_per_pass(words):
    target = Words.of(pair[1] for pair in PAIRS)
    items = recipe.items_of([*PAIRS, ("No cat.", "Keine Katze sieht Hunde.")], words, target)
    drawn = recipe.batches(items, 4, torch.Generator().manual_seed(0))
    seen = []
    while len(seen) < len(items):
        source, prefix, labels = next(drawn)
        seen += source.tolist()
        assert (prefix[:, 0] == START).all() and prefix.shape == labels.shape
        known = labels[:, :-1] != IGNORED
        assert torch.equal(prefix[:, 1:][known], labels[:, :-1][known]), "teacher forcing: one position late"
    assert sorted(seen) == sorted(source for source, _ in items)


@pytest.mark.parametrize("kind", recipe.KINDS)
def test_step_by_step_it_writes_what_it_finds_most_probable(kind):
    torch.manual_seed(0)
    model = recipe.KINDS[kind](12, 9, 8).eval()
    sources = [[3, 4, 5, END], [6, 7, END], [5, 5, 5, END]]
    for source, written in zip(sources, recipe.translated(model, sources, 6), strict=True):
        prefix = torch.tensor([[START, *written]])
        best = model(torch.tensor([source]), prefix)[0].argmax(dim=-1).tolist()
        assert best[: len(written)] == written and (len(written) == 6 or best[-1] == END)


def test_a_trained_one_repeats_what_it_has_learned():
    generator = torch.Generator().manual_seed(0)
    items = [(row := [*torch.randint(3, 8, (3,), generator=generator).tolist(), END], row) for _ in range(50)]
    sizes = recipe.Sizes(steps=300, width=16, batch_size=16, learning_rate=1e-2)
    model, facts = recipe.trained("attention", items, 8, 8, sizes, 0)
    found = recipe.translated(model, [source for source, _ in items])
    assert sum([*ids, END] == target for ids, (_, target) in zip(found, items, strict=True)) > 40
    assert facts["steps"] == 300 and facts["loss"] < 0.5


def test_it_can_be_trained_by_the_clock():
    items = [([3, 4, END], [5, END])] * 8
    _, facts = recipe.trained("one vector", items, 6, 6, recipe.SMOKE, 0, seconds=0.2)
    assert 0.2 <= facts["seconds"] < 2 and facts["steps"] > recipe.SMOKE.steps


@pytest.mark.slow
def test_a_smoke_run_writes_weights_a_card_and_the_record(tmp_path, monkeypatch):
    corpus = tmp_path / "pairs.tsv"
    lines = [f"{english}\t{german}" for english, german in PAIRS]
    corpus.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    arguments = ["--output", str(tmp_path / "runs"), "--smoke", "--corpus", str(corpus)]
    recipe.main([*arguments, "--ship", str(tmp_path / "shipped")])
    figures = json.loads((tmp_path / "runs" / "record.json").read_text(encoding="utf-8"))["figures"]
    keys = {(run["kind"], run["seed"], run["steps"]) for run in figures["runs"]}
    assert keys == {(kind, seed, 2) for kind in recipe.KINDS for seed in range(4)} | {("one vector", 0, 4)}
    assert len(figures["alignment"]["weights"]) == len(figures["alignment"]["german"])
    assert (tmp_path / "shipped" / "README.md").is_file()
    monkeypatch.setattr(recipe, "trained", None)  # All was trained.
    recipe.main(arguments)


def test_the_shipped_weights_are_those_of_the_record():
    folder = Path(resources.checkpoint("recurrent-translator"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    source, target = Words(config["source_words"]), Words(config["target_words"])
    model = recipe.LookingBack(len(source), len(target), config["width"])
    model.load_state_dict(load_file(folder / "model.safetensors"))
    figures = records.record("recurrent_translation")["figures"]
    (run,) = (run for run in figures["runs"] if (run["kind"], run["seed"]) == ("attention", 0))
    assert run["weights"] == sum(p.numel() for p in model.parameters())
    seen = figures["alignment"]
    ids = source.ids(recipe.SHOWN[0])
    assert [source.words[i] for i in ids] == seen["english"]
    (written,) = recipe.translated(model, [ids])
    assert [target.words[i] for i in [*written, END]] == seen["german"]
