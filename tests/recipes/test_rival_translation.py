"""The recipe of the recurrent rival: its model against loops by hand, its training against `train`."""

import json

import pytest
import torch
from torch import nn

from chapters_src import records
from chapters_src.data import english_german
from chapters_src.data.english_german import HELD_OUT_SPLITS, Pair
from chapters_src.training import Settings, pad, train
from chapters_src.translation import END, START, Texts
from recipes import rival_translation as recipe
from recipes import translation
from recipes.rival_translation import Rival, Run, Sizes


@pytest.fixture(scope="module")
def data():
    return english_german.pairs(translation.SMOKE.num_pairs, num_held_out=translation.SMOKE.num_held_out)


@pytest.fixture(scope="module")
def texts(data):
    return Texts.of(data["train"], translation.SMOKE.vocab_size)


@pytest.fixture
def rival():
    """A small one with large weights, so that it does not write one token for ever."""
    torch.manual_seed(6)
    rival = Rival(20, 6, 5).eval()
    with torch.no_grad():
        for weight in (rival.key.weight, rival.decoder.weight_ih, rival.join.weight):
            weight.mul_(3)
    return rival


SOURCES = [[3, 4, 5, 6, END], [7, 8, END], [9, 3, 9, END]]


def test_a_rival_has_as_many_parameters_as_the_transformer():
    for sizes in (Sizes().small, Sizes().large):
        transformer = translation.new_model(sizes, sizes.vocab_size)
        rival = recipe.new_rival(transformer, sizes.vocab_size, sizes.d_model)
        assert recipe.count(rival) == pytest.approx(recipe.count(transformer), rel=0.03)
        assert sum(parameter.shape[0] == sizes.vocab_size for parameter in rival.parameters()) == 1


@torch.no_grad()
def test_a_rival_reads_in_both_directions_and_looks_as_in_the_paper(rival):
    """One GRU cell for each direction, and the equations of the paper, position by position."""
    ids, target = torch.tensor([SOURCES[0]]), torch.tensor([[START, 4, 5]])
    embedded = rival.tokens(ids[0]) * rival.scale
    readings = []
    for suffix, order in (("", range(5)), ("_reverse", range(4, -1, -1))):
        cell = nn.GRUCell(6, 5)
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        cell.load_state_dict({n: getattr(rival.encoder, f"{n}_l0{suffix}") for n in names})
        state, states = torch.zeros(5), {}
        for i in order:
            states[i] = state = cell(embedded[i], state)
        readings.append(states)
    state = torch.tanh(rival.bridge(readings[1][0]))
    for t, logits in enumerate(rival(ids, None, target, None)[0]):
        annotations = [torch.cat([readings[0][i], readings[1][i]]) for i in range(5)]
        energies = [rival.v(torch.tanh(rival.query(state) + rival.key(one))) for one in annotations]
        weights = torch.cat(energies).softmax(dim=0)
        context = sum(weight * one for weight, one in zip(weights, annotations, strict=True))
        piece = rival.tokens.weight[target[0, t]] * rival.scale
        state = rival.decoder(torch.cat([piece, context]), state)
        joined = torch.tanh(rival.join(torch.cat([piece, state, context])))
        torch.testing.assert_close(logits, rival.tokens.weight @ joined)


@torch.no_grad()
def test_padding_changes_nothing(rival):
    target = [START, 4, 5]
    source_ids, mask = pad(SOURCES, padding_id=0)
    together = rival(source_ids, mask, torch.tensor([target] * 3), None)
    for row, source in zip(together, SOURCES, strict=True):
        alone = rival(torch.tensor([source]), None, torch.tensor([target]), None)[0]
        torch.testing.assert_close(row, alone)


@torch.no_grad()
def test_step_by_step_it_writes_what_it_finds_most_probable(rival):
    found = rival.greedy(SOURCES, 7)
    assert {len(ids) < 7 for ids in found} == {True, False}
    for source, ids in zip(SOURCES, found, strict=True):
        best = rival(torch.tensor([source]), None, torch.tensor([[START, *ids]]), None)[0].argmax(-1).tolist()
        assert best[: len(ids)] == ids and (len(ids) == 7 or best[-1] == END)


def test_with_a_number_of_steps_it_trains_as_the_page_does(data, texts):
    found, facts = recipe.trained(
        Run("transformer", 2, 3e-3), translation.SMOKE, texts, data["train"], steps=9
    )
    torch.manual_seed(2)
    model = translation.new_model(translation.SMOKE, len(texts.tokenizer))
    settings = Settings(
        learning_rate=3e-3, max_steps=9, warmup=0.05, schedule="cosine", betas=(0.9, 0.98), seed=2
    )
    train(
        model,
        texts.batches(data["train"], translation.SMOKE.tokens_per_batch, shuffle=True),
        translation.loss_of,
        settings,
    )
    for name, weights in model.state_dict().items():
        torch.testing.assert_close(found.state_dict()[name], weights, msg=lambda text, name=name: name + text)
    assert facts["steps"] == 9 and facts["parameters"] == recipe.count(model)


def test_by_the_clock_it_learns_and_stops_in_time(data, texts):
    run = Run("recurrent", 0, 1e-2)
    begin = recipe.new_model("recurrent", translation.SMOKE, len(texts.tokenizer), 0)
    model, facts = recipe.trained(run, translation.SMOKE, texts, data["train"], seconds=1.0)
    assert 1 <= facts["seconds"] < 2 and facts["passes"] > 1
    losses = [recipe.validation_loss(one, texts, data["train"], 256) for one in (begin, model)]
    assert losses[1] < losses[0] - 0.3


def test_scores_know_a_perfect_translator(data, monkeypatch):
    german = {pair.english: pair.german for pairs in data.values() for pair in pairs}
    monkeypatch.setattr(recipe, "translate", lambda model, texts, sentences: [german[s] for s in sentences])
    found = recipe.scores(None, None, data, 4)
    assert list(found) == list(HELD_OUT_SPLITS)
    for figures in found.values():
        assert figures == {"bleu": 100, "chrf": 100, "exact": 1}


def test_translations_come_back_in_the_order_of_the_sentences(data, texts, monkeypatch):
    torch.manual_seed(0)
    rival = Rival(len(texts.tokenizer), 16, 16).eval()
    monkeypatch.setattr(recipe, "BATCH_SIZE", 3)
    monkeypatch.setattr(recipe, "MAX_NEW", 8)
    sentences = [pair.english for pair in [*data["longer"][:2], *data["validation"][:3]]]
    alone = [recipe.translate(rival, texts, [sentence])[0] for sentence in sentences]
    assert recipe.translate(rival, texts, sentences) == alone and len(set(alone)) > 1


def test_a_cure_mixes_in_what_its_arm_says_and_nothing_that_is_scored(tmp_path, monkeypatch):
    def pairs(split, number):
        return [Pair(f"{split} {i}", f"{split} {i}", (), frozenset()) for i in range(number)]

    data = {split: pairs(split, 1000) for split in HELD_OUT_SPLITS} | {"train": pairs("train", 3000)}
    runs = recipe.Runs(tmp_path, translation.SMOKE, None, data, 200, cure_steps=7)
    trained_on, untouched = [], nn.Linear(1, 1)

    def trained(run, sizes, texts, pairs, *, steps, model, warmup):
        assert (run.learning_rate, steps) == (1e-3, 7)
        assert model is not untouched
        trained_on.append([pair.english.split() for pair in pairs])
        return model, {}

    monkeypatch.setattr(recipe, "trained", trained)
    monkeypatch.setattr(
        recipe, "translate", lambda model, texts, sentences: [*sentences[:50], *sentences[49:-1]]
    )
    found = runs.cure(Run("recurrent", 0, 3e-3), untouched)
    assert found == {arm: dict.fromkeys(recipe.CURED, 0.25) for arm in recipe.ARMS}
    for arm, mixed in zip(recipe.ARMS, trained_on, strict=True):
        foreign = [(split, int(number)) for split, number in mixed if split != "train"]
        assert len(mixed) == 2400
        assert len(foreign) == (0 if arm == "control" else 600)
        assert {split for split, _ in foreign} == {*recipe.ARMS[arm]}
        assert all(number >= 200 for _, number in foreign)


@pytest.mark.slow
def test_a_smoke_run_writes_the_record_and_repeats_nothing(tmp_path, monkeypatch):
    recipe.main(["--output", str(tmp_path), "--smoke"])
    content = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    assert_whole(content["figures"], recipe.SMOKE)
    assert not list(tmp_path.rglob(".*"))
    monkeypatch.setattr(recipe, "trained", lambda *_, **__: pytest.fail("it was repeated"))
    recipe.main(["--output", str(tmp_path), "--smoke"])
    assert json.loads((tmp_path / "record.json").read_text(encoding="utf-8")) == content


def assert_whole(figures, sizes):
    """Every run is there once, with the learning rate that validation chose and the seconds of its rival."""
    runs = [(run["seed"], run["kind"]) for run in figures["runs"]]
    assert runs == [(seed, kind) for seed in sizes.seeds for kind in ("transformer", "recurrent")]
    tried = figures["rates"]["tried"]
    assert [one["learning_rate"] for one in tried] == list(recipe.RATES)
    assert {one["seed"] for one in tried}.isdisjoint(sizes.seeds)
    best = min(tried, key=lambda one: one["validation_loss"])
    pairs = [figures["runs"][i : i + 2] for i in range(0, len(runs), 2)] + [figures.get("large", [])]
    for transformer, rival in filter(None, pairs):
        assert rival["learning_rate"] == best["learning_rate"] == figures["rates"]["chosen"]
        assert transformer["parameters"] == pytest.approx(rival["parameters"], rel=0.03)
        assert rival["seconds"] == pytest.approx(transformer["seconds"], rel=0.02, abs=0.5)
        for run in (transformer, rival):
            assert list(run["scores"]) == list(HELD_OUT_SPLITS)
            for found in run["scores"].values():
                assert 0 <= found["exact"] <= 1 and 0 <= found["chrf"] <= 100
    for run in figures["runs"]:
        assert list(run["cure"]) == list(recipe.ARMS)
        assert all(list(found) == list(recipe.CURED) for found in run["cure"].values())


def test_the_record_is_whole():
    if not (records.FOLDER / "rival_translation.json").exists():
        pytest.skip("the record is not there yet")
    assert_whole(records.record("rival_translation")["figures"], Sizes())
