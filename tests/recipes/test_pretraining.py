"""The recipe of the starts of a summarizer: a smoke run, the tasks, its decoder against the whole model."""

import json

import pytest
import torch

from chapters_src import records, resources
from chapters_src.data.summaries import Pair
from chapters_src.evaluation import rouge
from chapters_src.pretrained import load
from chapters_src.training import IGNORED
from recipes import pretraining as recipe
from recipes import summarization
from recipes.pretraining import STARTS, Reader, Sizes, Writer
from recipes.summarization import MAX_TARGET, Texts

PARAGRAPHS = [
    "The cat sleeps. The cat and the dog sleep in the house. The dog barks in the house.",
    "An array of numbers is sorted. The sorted array is returned.",
]


@pytest.fixture(scope="module")
def encoder():
    return load(resources.checkpoint("encoder"))


@pytest.fixture(scope="module")
def texts():
    return Texts(resources.checkpoint("encoder"))


@pytest.fixture
def model(encoder, texts):
    """A small one, which writes lines of different lengths."""
    torch.manual_seed(0)
    model = summarization.on_encoder(encoder, summarization.decoder_config(encoder, 32), num_layers=1)
    summarization.start_from_frequencies(model, [texts.target("a model of the end"), [texts.end] * 3])
    return model.eval()


@pytest.fixture
def reader(model, texts):
    return Reader(model.encoder, texts)


@pytest.mark.slow
def test_a_smoke_run_writes_the_record_and_repeats_nothing(tmp_path, monkeypatch):
    recipe.main(["--output", str(tmp_path), "--smoke"])
    content = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    assert_whole(content["figures"], recipe.SMOKE)
    assert not list(tmp_path.glob(".*"))
    monkeypatch.setattr(recipe, "train", lambda *_, **__: pytest.fail("it was repeated"))
    recipe.main(["--output", str(tmp_path), "--smoke"])
    assert json.loads((tmp_path / "record.json").read_text(encoding="utf-8")) == content


def assert_whole(figures, sizes):
    """Every run is there once with equal steps, and the differences are those of the scores."""
    runs = {(run["seed"], run["start"]): run for run in figures["runs"]}
    wanted = [(seed, start) for start, seed in recipe.wanted(sizes)]
    assert list(runs) == wanted and len(figures["runs"]) == len(runs)
    for (_, start), run in runs.items():
        extra = sizes.pretraining_steps if start == "longer" else 0
        assert run["steps"] == sizes.steps + extra and run["losses"][-1] == run["validation_loss"]
        before = 0 if start in ("random", "longer") else sizes.pretraining_steps
        assert run.get("pretraining_steps", 0) == before
        assert run["pretraining_tokens"] <= before * recipe.TOKENS if before else True
        assert run["tokens"] <= run["steps"] * recipe.TOKENS and 0 <= run["unsupported"] <= 1
    for seed in sizes.seeds:
        unread = {runs[seed, start]["losses"][0] for start in ("random", "longer")}
        assert len(unread) == 1, "they start from the same weights"
    pairs = len(recipe.COMPARED) + len(STARTS)
    assert len(figures["differences"]) == pairs * (len(sizes.seeds) + 1)
    first = figures["baselines"]["first sentence"]
    for entry in figures["differences"]:
        for kind in recipe.KINDS:
            seeds = sizes.seeds if entry["seed"] == "mean" else [entry["seed"]]
            found = [
                runs[seed, entry["start"]][kind]
                - (first if entry["minus"] == "first sentence" else runs[seed, entry["minus"]])[kind]
                for seed in seeds
            ]
            mean, low, high = entry[kind]
            assert mean == pytest.approx(sum(found) / len(found), abs=0.02) and low <= mean <= high
    assert {"author", "first sentence", *STARTS} == set(figures["examples"][0])


def test_the_record_is_whole_and_short():
    path = records.FOLDER / "pretraining.json"
    if not path.exists():
        pytest.skip("the record is not there yet")
    assert path.stat().st_size < 60_000
    figures = records.record("pretraining")["figures"]
    assert_whole(figures, Sizes())
    assert figures["sizes"]["pairs"]["test"] == 232


def test_each_task_asks_for_its_own_text(texts):
    tokenizer = texts.tokenizer
    tasks = {start: recipe.task_of(start, PARAGRAPHS, texts) for start in STARTS[1:4]}
    for source, target in tasks["language model"]:
        assert source == [texts.start, texts.end]
        assert target[-1] == texts.end
    assert [tokenizer.decode(target) for _, target in tasks["language model"]] == [
        tokenizer.decode(texts.source(paragraph)) for paragraph in PARAGRAPHS
    ]
    for (source, target), paragraph in zip(tasks["denoising"], PARAGRAPHS, strict=True):
        assert source == texts.source(paragraph) == [texts.start, *target]
    source, target = tasks["gap sentences"][0]
    assert source.count(texts.mask) == 1 and tokenizer.decode(source) == (
        "the cat sleeps. the dog barks in the house."
    )
    assert tokenizer.decode(target) == "the cat and the dog sleep in the house."


def test_paragraphs_have_several_sentences_and_fit(texts):
    long = "The word is a word. " * 30
    assert recipe.suitable([*PARAGRAPHS, "One sentence alone.", long], texts) == PARAGRAPHS


def test_holes_are_new_each_time_and_spare_both_ends(reader, texts):
    torch.manual_seed(0)
    ids = texts.source("word " * 100)
    found = [reader.with_holes(ids) for _ in range(2)]
    assert found[0] != found[1]
    for holes in found:
        assert (holes[0], holes[-1], len(holes)) == (ids[0], ids[-1], len(ids))
        assert 15 <= holes.count(texts.mask) <= 45
        assert {a for a, b in zip(holes, ids, strict=True) if a != b} == {texts.mask}


def test_only_frequent_tokens_may_be_written(texts):
    pairs = [Pair("cat cat dog", "cat", "", ""), Pair("dog bird", "bird", "", "")]
    names = [texts.tokenizer.id_to_token(id) for id in recipe.writable(pairs, texts)]
    assert set(names) == {"[SEP]", "cat"}


def test_losses_are_those_of_the_whole_model(model, reader, texts):
    """With all tokens writable, and without those that are not."""
    pairs = [(paragraph, f"the {name}") for paragraph, name in zip(PARAGRAPHS, ("cat", "array"), strict=True)]
    items = [(texts.source(body), texts.target(line)) for body, line in pairs]
    everything = Writer(torch.arange(texts.tokenizer.get_vocab_size()), reader)
    batch = texts.batch(items)
    with torch.no_grad():
        expected = summarization.loss_of(model, batch, smoothing=0.1)
        found = everything.loss_of(model, reader.collate(items), smoothing=0.1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    states = list(zip(reader.states([source for source, _ in items]), [t for _, t in items], strict=True))
    assert everything.loss(model, states) == everything.loss(model, items)
    the, end = texts.tokenizer.token_to_id("the"), texts.end
    few = Writer(torch.tensor(sorted([the, end])), reader)
    batch = reader.collate(items)
    assert few.count(batch) == 4 and int((batch["labels"] != IGNORED).sum()) == 6
    with torch.no_grad():
        logits = model(*(texts.batch(items)[name] for name in ("source_ids", "source_mask", "inputs")), None)
        kept = logits[:, :, few.ids].log_softmax(dim=-1)
        place = {id: i for i, id in enumerate(few.ids.tolist())}
        losses = [
            -kept[row, t, place[id]]
            for row, (_, target) in enumerate(items)
            for t, id in enumerate(target)
            if id in place
        ]
        torch.testing.assert_close(
            few.loss_of(model, batch, smoothing=0.0), sum(losses), rtol=1e-4, atol=1e-4
        )


def test_lines_are_what_greedy_decoding_writes(model, reader, texts):
    """Of the whole model, and where the head has few tokens, of a model that finds all others impossible."""
    bodies = [*PARAGRAPHS, "Third."]
    states = reader.states([texts.source(body) for body in bodies])
    few = torch.tensor(sorted(texts.tokenizer.token_to_id(word) for word in ("the", "model", "[SEP]")))
    for ids in (torch.arange(texts.tokenizer.get_vocab_size()), few):
        bias = model.head.projection.bias
        impossible = torch.ones(len(bias), dtype=torch.bool).index_fill(0, ids, False)
        with torch.no_grad():
            bias[impossible] = -torch.inf
        found = Writer(ids, reader).lines(model, states)
        assert found == summarization.summarize(model, texts, bodies, num_beams=1)
        assert all(len(line.split()) <= MAX_TARGET for line in found)
    assert {word for line in found for word in line.split()} <= {"the", "model"}


def test_another_text_is_never_the_same():
    for count in (2, 5, 8):
        found = recipe.another(range(count))
        assert sorted(found) == list(range(count)) and all(a != b for a, b in enumerate(found))
    items = [("a", [1]), ("b", [2])]
    assert recipe.misread(items) == [("b", [1]), ("a", [2])]


def test_scores_know_the_authors(monkeypatch):
    lines = ["sorts an array of numbers", "draws a map", "counts words", "opens files"]
    experiment = recipe.Experiment.__new__(recipe.Experiment)
    experiment.data = {"test": [Pair(f"It {line}. Really.", line, "", "") for line in lines]}
    found = experiment.scores(lines)
    assert (found["rouge1"], found["rougeL"], found["unsupported"], found["different"]) == (100, 100, 0, 4)
    assert found["rouge1_of_another_text"] == pytest.approx(
        100 * rouge(lines, recipe.another(lines))["rouge1"].mean(), abs=0.01
    )
    assert experiment.baselines()["another text's line"] == recipe.another(lines)
