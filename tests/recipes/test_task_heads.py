"""The recipe of the three heads: a smoke run of each from data to card, its parts, what is shipped."""

import json
import re

import numpy as np
import pytest
import torch
import transformers
from peft import PeftModel

from chapters_src import resources
from chapters_src.data import entities, question_answers
from chapters_src.data.entities import Sentence
from chapters_src.data.question_answers import Question
from chapters_src.tokenization.sentences import split_sentences
from recipes import heads
from recipes.heads import Answers, Entities, Sentiment, best_spans, blanked, collate, in_its_sentence

pytestmark = pytest.mark.usefixtures("quiet_library")
TASKS = {task.name: task for task in heads.TASKS.values()}
OF_ADAPTER = ["README.md", "adapter_config.json", "adapter_model.safetensors", "config.json", "run.json"]


@pytest.fixture(scope="module")
def folder():
    return resources.checkpoint("encoder")


@pytest.fixture(scope="module", params=heads.TASKS)
def task(request, folder):
    return heads.TASKS[request.param](folder, smoke=True)


@pytest.fixture(scope="module")
def answers(folder):
    return Answers(folder, smoke=True)


# A run ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_smoke_run_goes_from_the_data_to_the_card(task, tmp_path, capsys, folder):
    [name] = [name for name, kind in heads.TASKS.items() if isinstance(task, kind)]
    result = tmp_path / "new" / "model"
    options = [name, "--output", str(result), "--smoke", "--epochs", "2", "--passes", "1"]
    heads.main(options)
    assert sorted(path.name for path in result.iterdir()) == OF_ADAPTER
    content = (result / "README.md").read_text(encoding="utf-8")
    assert content in capsys.readouterr().out
    assert "a smoke run: these numbers mean nothing" in content and "synthetic" in content
    base = getattr(transformers, task.model_class).from_pretrained(
        folder, config=transformers.AutoConfig.from_pretrained(result)
    )
    read = PeftModel.from_pretrained(base, result).merge_and_unload().eval()  # What a reader may write.
    assert tuple(read.config.id2label.values()) == task.labels or not task.labels
    again = task.scores(task.data["test"], task.predict(read, task.data["test"]))
    log = json.loads((result / "run.json").read_text(encoding="utf-8"))
    shown = log["figures"]["this model"]
    assert again == pytest.approx(shown, abs=1e-6, nan_ok=True), "the card shows what the files give"
    for file in ("adapter_config.json", "config.json"):
        assert folder not in (result / file).read_text(encoding="utf-8"), "no path of this machine"
    with pytest.raises(SystemExit):
        heads.main(options)
    assert "already exists" in capsys.readouterr().err


# Its parts ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_questions_made_by_rule_may_be_left_out_and_the_card_says_so(tmp_path, capsys):
    result = tmp_path / "model"
    options = ["answers", "--output", str(result), "--smoke", "--epochs", "1", "--without", "parameters"]
    heads.main(options)
    content = (result / "README.md").read_text(encoding="utf-8")
    [steps] = re.findall(r"(?m)^- training: (.*)$", content)
    assert "on blanks" in steps and "parameters" not in steps
    assert "made by rule: parameters" in content


def test_updates_may_begin_as_those_of_the_masked_language_model(task, folder):
    """So the body gives what the masked model's body gives, which is not what the encoder gives."""
    ids = torch.tensor([[101, 1996, 5722, 102]])
    bodies = {
        start: heads.with_head(task, folder, start).get_base_model().bert.eval() for start in heads.STARTS
    }
    masked = transformers.AutoModelForMaskedLM.from_pretrained(
        resources.checkpoint("masked-language-model")
    ).bert
    plain = transformers.AutoModel.from_pretrained(folder)
    with torch.inference_mode():
        states = {start: body(ids).last_hidden_state for start, body in bodies.items()}
        assert torch.allclose(states["encoder"], plain(ids).last_hidden_state, atol=1e-5)
        assert torch.allclose(states["masked-language-model"], masked(ids).last_hidden_state, atol=1e-3)
        assert not torch.allclose(states["encoder"], states["masked-language-model"], atol=1e-2)


def test_labels_lead_back_to_the_entities(folder):
    task = Entities(folder, smoke=True)
    sentence = Sentence(
        "Ada Moreno uses numpy.", (entities.Entity(0, 10, "PER"), entities.Entity(16, 21, "PACKAGE"))
    )
    [row] = task.rows([sentence])
    assert row.labels[0] == row.labels[-1] == heads.IGNORED
    tokens = task.tokenizer.convert_ids_to_tokens(row.ids)[1:-1]
    labels = [task.labels[label] for label in row.labels[1:-1]]
    named = [(token, label) for token, label in zip(tokens, labels, strict=True) if label != "O"]
    assert named[:2] == [("ada", "B-PER"), ("moreno", "I-PER")]
    assert "".join(token for token, label in named[2:] if "PACKAGE" in label).replace("##", "") == "numpy"


def test_labels_lead_back_to_the_answer(answers):
    asked = [one for one in question_answers.questions()["validation"] if " " in one.answer][:5]
    for one, row in zip(asked, answers.rows(asked), strict=True):
        first, last = row.labels
        assert answers.tokenizer.decode(row.ids[first : last + 1]).replace(
            " ", ""
        ) == one.answer.lower().replace(" ", "")
        assert row.types[first] == row.types[last] == 1
    [none] = answers.rows([asked[0]._replace(answer="", start=0, end=0)])
    assert none.labels == [0, 0] and none.ids[0] == answers.tokenizer.cls_token_id


def test_messages_of_surprise_are_left_out_and_planted_errors_set_right(folder):
    task = Sentiment(folder, smoke=False)
    assert {split: len(items) for split, items in task.data.items()} == {
        "train": 1440,
        "validation": 480,
        "test": 960,
    }
    by_text = dict(task.data["train"])
    wrong = heads.emotions.planted_errors().query("split == 'train' and label == 'joy'")
    messages = heads.emotions.load()["train"]
    assert len(wrong) > 0
    for row in wrong["row"]:
        assert by_text[messages[row]["text"]] == 1 and messages[row]["label"] != 1


def test_batches_pad_what_is_short():
    rows = [heads.Row([5, 6, 7], [0, 0, 1], [1, 2, 3]), heads.Row([5], [0], [4])]
    batch = collate(rows)
    assert batch["ids"].tolist() == [[5, 6, 7], [5, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["labels"].tolist() == [[1, 2, 3], [4, heads.IGNORED, heads.IGNORED]]


def test_the_best_span_is_the_best_of_all_pairs_that_are_spans():
    torch.manual_seed(0)
    starts, ends = torch.randn(3, 60), torch.randn(3, 60)
    for row, (score, first, last) in enumerate(best_spans(starts, ends)):
        allowed = [(a, b) for a in range(60) for b in range(a, min(60, a + heads.LONGEST_ANSWER))]
        wanted = max(allowed, key=lambda pair: starts[row, pair[0]] + ends[row, pair[1]])
        assert (first, last) == wanted
        assert score == pytest.approx((starts[row, first] + ends[row, last]).item())


def test_copies_have_other_names_of_the_same_labels_in_the_same_places():
    sentences = entities.sentences()["train"]
    known = {(n, e.label) for one in sentences for n, e in zip(one.names, one.entities, strict=True)}
    named = [one for one in sentences if one.entities]
    copies = heads.with_other_names(sentences, 1)
    assert len(copies) == len(named) and copies == heads.with_other_names(sentences, 1)
    for one, copy in zip(named, copies, strict=True):
        assert [e.label for e in copy.entities] == [e.label for e in one.entities]
        assert {(n, e.label) for n, e in zip(copy.names, copy.entities, strict=True)} <= known
        assert _around(copy) == _around(one)
    assert sum(a.names != b.names for a, b in zip(named, copies, strict=True)) > 0.9 * len(named)


def _around(sentence):
    """A sentence with its names cut out."""
    text = sentence.text
    for start, end, label in reversed(sentence.entities):
        text = f"{text[:start]}[{label}]{text[end:]}"
    return text


def test_in_its_sentence_an_answer_is_the_same_words():
    for one in question_answers.questions()["validation"]:
        short = in_its_sentence(one)
        assert short.context[short.start : short.end] == one.answer == short.answer
        assert short.context in split_sentences(one.context)
    with pytest.raises(ValueError, match="no sentence of a holds"):
        in_its_sentence(Question("a", "One. Two.", "Where?", "x", 99, 100))


def test_the_closest_sentence_holds_the_answer_more_often_than_that_with_the_same_words(answers):
    asked = question_answers.questions()["validation"][:60]
    found = answers.closest(asked)
    blind = answers.closest([one._replace(answer="", start=0, end=0) for one in asked])
    assert found == blind, "it does not look at the answer"
    right = {
        "meaning": [short.context for short in found],
        "words": [question_answers.likeliest_sentence(one.context, one.question) for one in asked],
    }
    held = [in_its_sentence(one).context for one in asked]
    right = {way: sum(a == b for a, b in zip(texts, held, strict=True)) for way, texts in right.items()}
    assert right["meaning"] > right["words"] + 6, right


def test_questions_made_of_a_sentence_ask_for_a_part_of_it_with_words_of_the_rest():
    asked = question_answers.questions()["train"]
    made = blanked(asked)
    assert made == blanked(asked), "the same at every call"
    assert {one.paragraph for one in made} == {one.paragraph for one in asked}
    shares = []
    for one in made:
        assert one.context[one.start : one.end] == one.answer and one.answer
        [sentence] = [
            text for text in split_sentences(one.context) if _begin(one, text) <= one.start < _end(one, text)
        ]
        begin = _begin(one, sentence)
        rest = f"{sentence[: one.start - begin]} {sentence[one.end - begin :]}".split()
        rest = [word.strip(heads.PUNCTUATION) for word in rest]
        words = re.sub("^(How many|[A-Z][a-z]+)", "", one.question[:-1], count=1).split()
        assert all(word in rest for word in words), one
        shares.append(len(words) / max(1, len(rest)))
    assert sum(shares) / len(shares) == pytest.approx(1 - heads.DROPPED, abs=0.05)


def _begin(one, sentence):
    return one.context.index(sentence)


def _end(one, sentence):
    return _begin(one, sentence) + len(sentence)


def test_numbers_and_names_are_asked_for_with_words_that_fit():
    sentence = "In the harbor we met Oriane Tabouret at 6:20."
    found = [(sentence[a:b], words) for a, b, words in heads.cuts(sentence, np.random.default_rng(0))]
    assert found[0] == ("6:20", ("How many", "When", "Which"))
    assert found[1][0] == "Oriane Tabouret" and "Who" in found[1][1]
    assert all("6" not in text or "6:20" in text for text, _ in found), "no number is cut apart"
    assert not any(text.split()[0] in ("the", "at", "we") for text, _ in found)


def test_scores_of_answers_count_silence_apart(answers):
    items = [Question("a", "one two", "?", "one", 0, 3), Question("a", "x", "?", "", 0, 0)]
    found = answers.scores([*items, items[0], items[1]], ["one", "", "", "x"])
    assert found == {"f1": 0.5, "exact match": 0.5, "none said, rightly": 0.5, "none said, wrongly": 0.5}


# What is shipped ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_what_is_shipped_is_small_and_a_model_of_the_library(name):
    shipped = resources.embedded.WEIGHTS_FOLDER / name
    more = {"seeds.json"} if name == "answer-finder" else set()
    assert {path.name for path in shipped.iterdir()} == {*OF_ADAPTER, *more}
    assert sum(path.stat().st_size for path in shipped.iterdir()) < 550_000
    config = transformers.AutoConfig.from_pretrained(resources.checkpoint(name))
    assert config.architectures == [TASKS[name].model_class]


def test_the_seeds_of_the_answers_hold_what_is_shipped():
    folder = resources.embedded.WEIGHTS_FOLDER / "answer-finder"
    runs, shipped = (json.loads((folder / f"{name}.json").read_text("utf-8")) for name in ("seeds", "run"))
    kinds = [(run["questions about parameters"], run["seed"]) for run in runs]
    assert kinds == [(kind, seed) for seed in range(3) for kind in ("with", "without")]
    assert runs[0]["test"] == pytest.approx(shipped["figures"]["this model"]["f1"], abs=1e-4)
    assert runs[0]["validation"] == pytest.approx(shipped["evaluations"][-1]["f1"], abs=1e-4)


@pytest.mark.full
@pytest.mark.parametrize("name", TASKS)
def test_what_is_shipped_is_as_good_as_its_card_says(name, folder):
    shipped = resources.embedded.WEIGHTS_FOLDER / name
    task = TASKS[name](folder, smoke=False)
    kind = getattr(transformers, task.model_class)
    model = kind.from_pretrained(resources.checkpoint(name)).eval()
    test = task.data["test"]
    again = task.scores(test, task.predict(model, test))
    log = json.loads((shipped / "run.json").read_text(encoding="utf-8"))
    assert again == pytest.approx(log["figures"]["this model"], abs=0.01), "rounding may turn an item or two"
    [row] = re.findall(r"(?m)^\| this model \|(.*)\|$", (shipped / "README.md").read_text(encoding="utf-8"))
    on_card = [float(cell) for cell in row.split("|")]
    assert on_card == pytest.approx(list(log["figures"]["this model"].values()), abs=6e-4)
    beaten = [figures for other, figures in log["figures"].items() if not other.startswith("this model")]
    first = next(iter(again))
    assert all(again[first] > figures[first] for figures in beaten), "better than every rule"
