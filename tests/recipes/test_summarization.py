"""The summarizer's recipe: a smoke run from the data to the card, and its parts."""

import math
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from chapters_src import resources
from chapters_src.data import docstrings, summaries
from chapters_src.data.summaries import Pair
from chapters_src.evaluation import rouge
from chapters_src.pretrained import load, load_on_encoder, on_encoder
from chapters_src.training import CheckpointError
from recipes import summarization
from recipes.summarization import MAX_SOURCE, MAX_TARGET, SMOKE, Texts


@pytest.fixture(scope="module")
def encoder():
    return load(resources.checkpoint("encoder"))


@pytest.fixture(scope="module")
def texts():
    return Texts(resources.checkpoint("encoder"))


@pytest.mark.slow
def test_a_smoke_run_goes_from_the_data_to_the_card(tmp_path, encoder, texts, capsys):
    folder = tmp_path / "new" / "summarizer"
    summarization.main(["--output", str(folder), "--smoke", "--rank", "1"])
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    assert {path.name for path in folder.parent.iterdir()} == {"summarizer", "summarizer-checkpoints"}
    content = (folder / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (.+?) \|(?: -?\d+\.\d \(-?\d+\.\d to -?\d+\.\d\) \|){3}$", content)
    assert rows == ["lead-1", "lead-3", "centroid", "this model", "this model minus lead-1"]
    assert "8 train, 8 validation, 8 test" in content and "- pretraining: " in content
    assert "a smoke run: these numbers mean nothing" in content and "docstrings of: peft 0." in content
    assert content in capsys.readouterr().out
    model = load_on_encoder(folder, encoder)
    written = re.findall(r"(?m)^- model: (.*)$", content)
    asked = [pair for pair in _test_pairs() if f"- author: {pair.summary}\n" in content]
    again = summarization.summarize(model, texts, [pair.body for pair in asked])
    assert len(written) == 5 and sorted(written) == sorted(again), "the card shows what the files write"
    with pytest.raises(SystemExit):
        summarization.main(["--output", str(folder), "--smoke"])
    assert "already exists" in capsys.readouterr().err


def _test_pairs():
    found = [pair for pairs in summaries.pairs(SMOKE.packages).splits.values() for pair in pairs]
    return found[2::3][: SMOKE.num_pairs]


def test_what_is_shipped_is_small(encoder, tmp_path):
    decoder = summarization.decoder_config(encoder, summarization.Sizes().feed_forward_width)
    model = on_encoder(encoder, decoder, rank=4)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    assert sum(parameter.numel() for parameter in trained) < 2_400_000
    summarization.save_on_encoder(model, encoder, tmp_path / "model")
    assert sum(path.stat().st_size for path in (tmp_path / "model").iterdir()) < 5_000_000
    assert all(
        tensor.dtype == torch.float16 for tensor in load_file(tmp_path / "model/model.safetensors").values()
    )


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no power")

    command = ["--output", str(tmp_path / "summarizer"), "--smoke", "--rank", "0"]
    with monkeypatch.context() as patch:
        patch.setattr(summarization, "card", fail)
        with pytest.raises(RuntimeError, match="no power"):
            summarization.main(command)
    assert [path.name for path in tmp_path.iterdir()] == ["summarizer-checkpoints"]
    phases = tmp_path / "summarizer-checkpoints"
    assert {path.name for path in phases.iterdir()} == {"pretraining", "training"}
    monkeypatch.setattr(summarization, "plain_texts", lambda *_: [("a", "b")] * 8)  # These would be learned.
    with pytest.raises(CheckpointError):
        summarization.main(command)
    monkeypatch.undo()
    loss_of = summarization.loss_of

    def never_trains(model, *arguments, **keywords):
        assert not model.training
        return loss_of(model, *arguments, **keywords)

    monkeypatch.setattr(summarization, "loss_of", never_trains)
    summarization.main(command)
    assert "- training: " in (tmp_path / "summarizer" / "README.md").read_text(encoding="utf-8")


@pytest.mark.full
def test_the_shipped_summarizer_scores_what_its_card_says(encoder, texts, card_tolerance):
    """Another processor may choose another word now and then; other versions have other texts."""
    folder = Path(resources.checkpoint("summarizer"))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 5_000_000
    test = summaries.pairs().splits["test"]
    written = summarization.summarize(load_on_encoder(folder, encoder), texts, [pair.body for pair in test])
    table = 100 * rouge(written, [pair.summary for pair in test])
    row = re.search(r"(?m)^\| this model \|(.*)$", (folder / "README.md").read_text(encoding="utf-8"))[1]
    on_card = [float(score) for score in re.findall(r"(\d+\.\d) \(", row)]
    assert len(on_card) == 3
    tolerance = card_tolerance(folder, summaries.PACKAGES, 0.3, 3.0)
    assert table[["rouge1", "rouge2", "rougeL"]].mean().tolist() == pytest.approx(on_card, abs=tolerance)


def test_batches_are_what_teacher_forcing_needs(texts):
    batch = texts.batch(
        [(texts.source("one two three"), texts.target("one")), (texts.source("one"), texts.target("one two"))]
    )
    one, two, three = (texts.tokenizer.token_to_id(word) for word in ("one", "two", "three"))
    start, end, padding = texts.start, texts.end, texts.padding
    assert batch["source_ids"].tolist() == [
        [start, one, two, three, end],
        [start, one, end, padding, padding],
    ]
    assert batch["source_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert batch["inputs"][1].tolist() == [start, one, two]
    assert batch["labels"].tolist() == [[one, end, -100], [one, two, end]]
    long = "word " * 500
    assert len(texts.source(long)) == MAX_SOURCE and texts.source(long)[-1] == end
    assert len(texts.target(long)) == MAX_TARGET and texts.target(long)[-1] == end


def test_holes_are_in_words_of_the_source_alone(texts):
    torch.manual_seed(0)
    items = [(texts.source("word " * 100), texts.target("one")), (texts.source("word"), texts.target("two"))]
    whole, with_holes = texts.batch(items), texts.batch_with_holes(items)
    changed = whole["source_ids"] != with_holes["source_ids"]
    assert (with_holes["source_ids"][changed] == texts.mask).all() and 15 <= changed.sum() <= 45
    assert not changed[0, [0, -1]].any() and not changed[1, 2:].any()
    assert all(torch.equal(whole[name], with_holes[name]) for name in ("source_mask", "inputs", "labels"))


def test_the_principal_sentence_shares_most_words_with_the_others():
    paragraph = "The cat sleeps. The cat and the dog sleep in the house. The dog barks in the house."
    assert summarization.principal_sentence(paragraph) == "The cat and the dog sleep in the house."
    assert summarization.principal_sentence("The cat sleeps.") == "The cat sleeps."


def test_plain_texts_are_of_training_modules_and_hold_nothing_of_held_out_pairs(monkeypatch):
    paragraphs = docstrings.paragraphs(("peft",))
    held_out = next(p for p in paragraphs if len(p.text.split()) > 30 and p.module.startswith("peft.tuners"))
    monkeypatch.setattr(
        docstrings, "split_of", lambda module: "train" if module.startswith("peft.tuners") else "test"
    )
    data = {"validation": [Pair(held_out.text, "", "", "")], "test": []}
    found = summarization.plain_texts(("peft",), data, None, seed=0)
    expected = {p.text for p in paragraphs if p.module.startswith("peft.tuners")} - {held_out.text}
    assert 0 < len(found) <= len(expected)
    assert {text for text, _ in found} <= expected and all(sentence in text for text, sentence in found)
    few = [summarization.plain_texts(("peft",), data, 5, seed) for seed in (0, 0, 1)]
    assert few[0] == few[1] != few[2] and len(few[0]) == 5 and set(few[0]) < set(found)


def test_one_beam_is_greedy_and_neighbors_do_not_matter(encoder, texts, monkeypatch):
    """Against the whole model run anew for each token, one text at a time."""
    torch.manual_seed(0)
    model = on_encoder(encoder, summarization.decoder_config(encoder, 32), num_layers=1).eval()
    summarization.start_from_frequencies(model, [texts.target("a model of the end"), [texts.end] * 3])
    bodies = ["The first text.", "Another text, which is longer than the first one.", "Third."]
    expected = []
    for body in bodies:
        ids = [texts.start]
        while len(ids) <= MAX_TARGET and ids[-1] != texts.end:
            logits = model(torch.tensor([texts.source(body)]), None, torch.tensor([ids]), None)
            ids.append(int(logits[0, -1].argmax()))
        expected.append(texts.tokenizer.decode(ids))
    assert summarization.summarize(model, texts, bodies, num_beams=1) == expected
    monkeypatch.setattr(summarization, "BATCH_SIZE", 2)
    several = [summarization.summarize(model, texts, [body])[0] for body in bodies]
    assert summarization.summarize(model, texts, bodies) == several


def test_the_bias_begins_as_frequencies(encoder, texts):
    model = on_encoder(encoder, summarization.decoder_config(encoder, 32))
    summarization.start_from_frequencies(model, [[5, 6, 6], [6]])
    probabilities = model.head.projection.bias.softmax(dim=0)
    total = 4 + 0.1 * len(probabilities)
    assert probabilities[6].item() == pytest.approx(3.1 / total, rel=1e-4)
    assert probabilities[7].item() == pytest.approx(0.1 / total, rel=1e-4)
    assert math.isclose(model.head.projection.bias.exp().sum().item(), 1, rel_tol=1e-4)


def test_the_first_loss_is_that_of_the_frequencies(encoder, texts):
    torch.manual_seed(0)
    model = on_encoder(encoder, summarization.decoder_config(encoder, 32), num_layers=1).eval()
    summaries_of = {f"body {name}": f"return the {name} of the model" for name in ("name", "size", "rank")}
    summarization.start_from_frequencies(model, [texts.target(line) for line in summaries_of.values()])
    batch = next(iter(texts.batches(list(summaries_of.items()), 64, shuffle=False)))
    labels = batch["labels"][batch["labels"] >= 0]
    alone = -model.head.projection.bias.detach().log_softmax(dim=0)[labels].mean().item()
    with torch.no_grad():
        first = summarization.loss_of(model, batch, smoothing=0.0).item() / len(labels)
    assert first == pytest.approx(alone, rel=0.05)


def test_the_centroid_is_the_sentence_that_is_most_like_the_others(encoder, texts):
    body = "A dog barks. The dog barks at the cat. Taxes are due in April. Dogs bark loudly."
    [chosen] = summarization.centroid(encoder, texts, [body])
    assert "bark" in chosen


def test_scores_are_percent_with_intervals():
    pairs = [Pair("", f"number {i} is here", "", "") for i in range(20)]
    references = [pair.summary for pair in pairs]
    table = summarization.scores({"same": references, "none": ["x"] * 20}, references).splitlines()
    assert table[2] == "| same |" + " 100.0 (100.0 to 100.0) |" * 3
    assert table[3] == "| none |" + " 0.0 (0.0 to 0.0) |" * 3
    assert table[4] == "| none minus same |" + " -100.0 (-100.0 to -100.0) |" * 3


def test_invented_words_are_counted():
    pairs = [Pair("Sorted arrays of numbers.", "", "", ""), Pair("A list of boats.", "", "", "")]
    written = ["arrays of boats are sorted", "boats in a list"]
    assert summarization.share_invented(pairs, written) == pytest.approx((1 / 3 + 0) / 2)
