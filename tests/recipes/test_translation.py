"""The translator's recipe: a smoke run from the grammar to the card, its parts, and what is shipped."""

import json
import re

import pytest
import torch
from safetensors.torch import load_file

from chapters_src import resources
from chapters_src import translation as module
from chapters_src.data import english_german
from chapters_src.evaluation import bleu
from chapters_src.pretrained import load, save
from chapters_src.tokenization.byte_pair import BytePairTokenizer
from chapters_src.training import CheckpointError
from chapters_src.translation import END, PADDING, SPECIAL_TOKENS, START, Texts, batch_of
from recipes import translation
from recipes.translation import SMOKE, Sizes

SHIPPED = resources.embedded.WEIGHTS_FOLDER / "translator"
FILES = ["README.md", "config.json", "model.safetensors", "run.json", "tokenizer.json"]


@pytest.fixture(scope="module")
def data():
    return english_german.pairs(SMOKE.num_pairs, num_held_out=SMOKE.num_held_out)


@pytest.fixture(scope="module")
def texts(data):
    return Texts.of(data["train"], SMOKE.vocab_size)


@pytest.fixture(scope="module")
def model(texts):
    """A small model that has learned a little, so that it does not write one token for ever."""
    torch.manual_seed(0)
    model = translation.new_model(SMOKE, len(texts.tokenizer))
    for parameter in model.parameters():
        if parameter.ndim == 2:
            parameter.data.mul_(4)
    return model.eval()


@pytest.mark.slow
def test_a_smoke_run_goes_from_the_grammar_to_the_card(tmp_path, data, capsys):
    folder = tmp_path / "new" / "translator"
    translation.main(["--output", str(folder), "--smoke", "--epochs", "3"])
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert {path.name for path in folder.parent.iterdir()} == {"translator", "translator-checkpoints"}
    content = (folder / "README.md").read_text(encoding="utf-8")
    assert content in capsys.readouterr().out
    assert "a smoke run: these numbers mean nothing" in content
    assert "60 train, 8 validation, 8 combinations, 8 structures, 8 longer, 8 clauses, 8 both" in content
    model, texts = load(folder), Texts(BytePairTokenizer.load(folder / "tokenizer.json"))
    figures = translation.scores(model, texts, data)
    assert translation.table(figures) in content, "the card shows what the files give"
    log = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert log["figures"] == figures and log["loss"][-1] < log["loss"][0]
    assert all(t.dtype == torch.float16 for t in load_file(folder / "model.safetensors").values())
    with pytest.raises(SystemExit):
        translation.main(["--output", str(folder), "--smoke"])
    assert "already exists" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no power")

    command = ["--output", str(tmp_path / "translator"), "--smoke", "--epochs", "2"]
    with monkeypatch.context() as patch:
        patch.setattr(translation, "card", fail)
        with pytest.raises(RuntimeError, match="no power"):
            translation.main(command)
    assert [path.name for path in tmp_path.iterdir()] == ["translator-checkpoints"]
    with pytest.raises(CheckpointError):
        translation.main([*command, "--learning-rate", "1e-3"])
    loss_of = translation.loss_of

    def never_trains(model, *arguments, **keywords):
        assert not model.training
        return loss_of(model, *arguments, **keywords)

    monkeypatch.setattr(translation, "loss_of", never_trains)
    translation.main(command)
    assert "- training: " in (tmp_path / "translator" / "README.md").read_text(encoding="utf-8")


def test_what_is_shipped_is_small(tmp_path):
    model = translation.new_model(Sizes(), Sizes().vocab_size)
    save(model.half(), tmp_path / "model")
    assert sum(path.stat().st_size for path in (tmp_path / "model").iterdir()) < 2_700_000


def test_batches_are_what_teacher_forcing_needs(texts):
    short, long = texts.ids("The dog"), texts.ids("The old dog sleeps")
    assert short[-1] == END and START not in short
    batch = batch_of([(short, long), (long, short)])
    fill = len(long) - len(short)
    assert batch["source_ids"].tolist() == [short + [PADDING] * fill, long]
    assert batch["source_mask"].tolist() == [[1] * len(short) + [0] * fill, [1] * len(long)]
    assert batch["inputs"][0].tolist() == [START, *long[:-1]]
    assert batch["labels"].tolist() == [long, short + [-100] * fill]


def test_special_tokens_come_first_and_are_not_in_texts(texts):
    assert [texts.tokenizer.vocabulary[token] for token in SPECIAL_TOKENS] == [PADDING, START, END]
    assert not {PADDING, START, END} & set(texts.tokenizer.encode("<|end|> of <|pad|>"))


def test_smoothed_losses_are_sums_over_target_tokens(model, texts, data):
    pairs = data["train"][:6]
    batches = texts.batches(pairs, 64, shuffle=False)
    assert len(batches) > 1
    together = batch_of([(texts.ids(p.english), texts.ids(p.german)) for p in pairs])
    for smoothing in (0.0, 0.1):
        apart = sum(translation.loss_of(model, batch, smoothing).item() for batch in batches)
        assert apart == pytest.approx(translation.loss_of(model, together, smoothing).item(), rel=1e-4)


def test_translations_are_those_of_one_sentence_at_a_time_in_their_order(model, texts, data, monkeypatch):
    monkeypatch.setattr(module, "MAX_NEW", 12)
    sentences = [pair.english for pair in data["longer"][:3] + data["validation"][:3]]
    for num_beams in (1, 3):
        alone = [translation.translate(model, texts, [s], num_beams)[0] for s in sentences]
        monkeypatch.setattr(module, "BATCH_SIZE", 4)
        assert translation.translate(model, texts, sentences, num_beams) == alone
    assert len(set(alone)) > 1


def test_scores_know_a_perfect_translator_and_the_dictionary(data, monkeypatch):
    german = {pair.english: pair.german for pairs in data.values() for pair in pairs}
    monkeypatch.setattr(
        translation, "translate", lambda model, texts, sentences, num_beams=4: [german[s] for s in sentences]
    )
    found = translation.scores(None, None, data)
    assert list(found) == list(english_german.HELD_OUT_SPLITS)
    for split, figures in found.items():
        assert [figures[name] for name in ("greedy", "beams", "chrf")] == pytest.approx([100] * 3)
        assert figures["exact"] == 1
        words = [english_german.word_by_word(pair.english) for pair in data[split]]
        assert figures["dictionary"] == bleu(words, [pair.german for pair in data[split]]) < 50
    assert "| longer | " in translation.table(found) and "100.0%" in translation.table(found)


# What is shipped ------------------------------------------------------------------------------------------


@pytest.fixture
def shipped():
    if not (SHIPPED / "model.safetensors").exists():
        pytest.skip("the weights are not there yet")
    return load(resources.checkpoint("translator"))


def test_the_folder_of_the_shipped_translator(shipped):
    assert sorted(path.name for path in SHIPPED.iterdir()) == FILES
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 3_000_000
    weights = load_file(SHIPPED / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}


@pytest.mark.full
def test_the_shipped_translator_scores_what_its_card_says(shipped):
    """Another processor may choose another word now and then."""
    data = english_german.pairs(1, num_held_out=Sizes().num_held_out)
    texts = Texts(BytePairTokenizer.load(SHIPPED / "tokenizer.json"))
    content = (SHIPPED / "README.md").read_text(encoding="utf-8")
    log = json.loads((SHIPPED / "run.json").read_text(encoding="utf-8"))["figures"]
    assert translation.table(log) in content
    for split, figures in translation.scores(shipped, texts, data).items():
        for name, figure in figures.items():
            tolerance = 0.005 if name == "exact" else 0.3
            assert figure == pytest.approx(log[split][name], abs=tolerance), (split, name)


@pytest.mark.slow
def test_the_shipped_translator_writes_the_examples_of_its_card(shipped):
    texts = Texts(BytePairTokenizer.load(SHIPPED / "tokenizer.json"))
    content = (SHIPPED / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"(?m)^- (?:\w+): (.*)\n- grammar: .*\n- model: (.*)$", content)
    assert len(examples) == 2 * len(english_german.HELD_OUT_SPLITS)
    again = translation.translate(shipped, texts, [english for english, _ in examples])
    assert sum(a != written for a, (_, written) in zip(again, examples, strict=True)) <= 1
