"""The benchmark of chapter 16: its prompts, what it finds, and a small run beside a tiny Gemma."""

import json
from types import SimpleNamespace

import pytest
import tiny_gemma
import torch
from datasets import Dataset, DatasetDict

from benchmarks import assistant as benchmark
from chapters_src.assistant import REFUSAL
from chapters_src.pretrained import add_low_rank, save_low_rank

pytestmark = pytest.mark.usefixtures("quiet_library")


def rows():
    found = []
    for i in range(8):
        row = {"source": f"s{i}", "passage": f"The value of x{i} is {i}.", "origin": "test"}
        found.append(row | {"kind": "parameter", "question": f"What is x{i}?", "answer": f"`{i}`"})
        found.append(row | {"kind": "refuse", "question": f"Who likes x{i}?", "answer": REFUSAL})
        found.append(row | {"kind": "reply", "question": "Reply.", "answer": f"Dear {i}."})
    return found


def test_examples_are_solved_rows_and_one_of_them_refuses():
    for draw in range(5):
        shown = benchmark.examples(rows(), draw, replies=False)
        assert shown == benchmark.examples(rows(), draw, replies=False)
        assert shown.count("Question:") == shown.count("Answer:") == benchmark.EXAMPLES
        assert shown.count(REFUSAL) == 1 and "Dear" not in shown
        replies = benchmark.examples(rows(), draw, replies=True)
        assert replies.count("Reply: Dear") == benchmark.REPORTS and "Question" not in replies
    assert len({benchmark.examples(rows(), draw, replies=False) for draw in range(5)}) == 5
    open_end = benchmark.solved(rows()[0], answered=False)
    assert open_end == "Text: The value of x0 is 0.\nQuestion: What is x0?\nAnswer:"
    assert benchmark.solved(rows()[0]) == f"{open_end} `0`\n\n"


def test_answers_stand_at_the_rows_that_were_asked(tmp_path):
    options = {"seed": "0", "without_promises": "False", "preferences": "dpo"}
    log = {"stages": {}, "merete": {"text": "", "ended": False}, "on the way": []}
    for kinds, every, is_asked in (
        ("['reply']", 1, lambda i, row: row["kind"] == "reply"),
        ("None", 3, lambda i, row: row["kind"] == "reply" or i % 3 == 0),
    ):
        asked = [row for i, row in enumerate(rows()) if is_asked(i, row)]
        log["answers"] = [{"text": row["answer"], "ended": True} for row in asked]
        log["options"] = options | {"kinds": kinds, "ask_every": str(every)}
        (tmp_path / "run.json").write_text(json.dumps(log))
        run = benchmark._run(tmp_path, rows())
        right = [[row["answer"], True] if row in asked else None for row in rows()]
        assert run["answers"] == right
    assert run["kinds"] is None and run["preferences"] == "dpo" and run["promises"] is True


def test_the_judge_reads_both_orders_of_the_replies_that_were_drawn(monkeypatch):
    monkeypatch.setattr(benchmark, "prefers_a", lambda gemma, tokenizer, report, a, b: len(a) - len(b))
    run = {"answers": [["ours!" if row["kind"] == "reply" else "?", True] for row in rows()]}
    asked = [["their reply", True] if i == 5 else None for i in range(len(rows()))]
    drawn = [{"draw": 1, "answers": asked}, {"draw": 2, "answers": [None] * len(rows())}]
    judged = benchmark._judged(None, None, rows(), run, drawn)
    assert judged == [{"row": 5, "draw": 1, "ours": -6, "theirs": 6, "same": 0}]


@pytest.mark.slow
def test_a_preference_for_a_letter_is_a_difference_of_log_probabilities():
    tokenizer = benchmark.AutoTokenizer.from_pretrained(tiny_gemma.folder())
    model = tiny_gemma.model().eval()
    prompt = "Report: r\n\nReply A: one\n\nReply B: two\n\nThe better reply is reply"
    ids = tokenizer([prompt + " A", prompt + " B"], return_tensors="pt").input_ids
    with torch.no_grad():
        last = model(ids, None)[:, -2].log_softmax(dim=-1)
    expected = last[0, ids[0, -1]] - last[1, ids[1, -1]]
    assert ids[0, -1] != ids[1, -1]
    found = benchmark.prefers_a(model, tokenizer, "r", "one", "two")
    assert found == pytest.approx(expected.item(), abs=1e-4)


def test_keys_tell_rows_apart():
    assert len({benchmark.key_of(row) for row in rows()}) == 8 * 3


@pytest.mark.slow
def test_the_encoder_finds_a_function_by_what_it_does():
    passages = {
        "numpy.squeeze": "Remove axes of length one from `a`.",
        "numpy.sort": "Return a sorted copy of an array.",
        "pandas.merge": "Merge DataFrame objects with a database-style join.",
    }
    functions = benchmark.Functions(passages)
    assert functions.closest("How do I put numbers in order?", 1) == ["numpy.sort"]
    assert functions.closest("join two tables", 1) == ["pandas.merge"]
    assert torch.allclose(functions.vectors.norm(dim=1), torch.ones(3))


@pytest.mark.slow
def test_a_small_run_writes_all_figures_and_goes_on_where_it_was(tmp_path, monkeypatch):
    asked = [{"question": "How do I sort?", "functions": ["numpy.sort"]}] * 2
    preferred = [{"passage": "p", "question": "q", "chosen": "yes", "rejected": "no"}] * 4
    data = SimpleNamespace(
        load=lambda: DatasetDict(train=Dataset.from_list(rows()), test=Dataset.from_list(rows())),
        load_retrieval=lambda: Dataset.from_list(asked),
        load_preferences=lambda: DatasetDict(test=Dataset.from_list(preferred)),
    )
    monkeypatch.setattr(benchmark, "data", data)
    monkeypatch.setattr(benchmark, "_read", lambda some: ["" for _ in some])
    passages = {"numpy.sort": "Sort an array."} | {f"numpy.f{i}": f"Number {i}." for i in range(5)}
    monkeypatch.setattr(benchmark, "documented", lambda: passages)
    original = benchmark.resources.checkpoint
    monkeypatch.setattr(
        benchmark.resources,
        "checkpoint",
        lambda name: str(tiny_gemma.folder()) if name == "gemma" else original(name),
    )
    folder = tmp_path / "run-3"
    save_low_rank(add_low_rank(tiny_gemma.model(), 2, 4), folder, model_type="gemma3_text", base="b")
    options = {"seed": "3", "without_promises": "True", "preferences": "None", "kinds": "None"}
    log = {
        "options": options | {"ask_every": "1"},
        "stages": {"answers": [{"step": 1, "validation_loss": 2.5}]},
        "answers": [{"text": "a", "ended": True}] * 24,
        "merete": {"text": "Dear Merete", "ended": False},
        "on the way": [],
    }
    (folder / "run.json").write_text(json.dumps(log))
    options = ["--output", str(tmp_path / "parts"), "--runs", str(folder), "--smoke"]
    benchmark.main(options)
    figures = json.loads((tmp_path / "parts" / "record.json").read_text())["figures"]
    assert set(figures) == {
        *("rows", "runs", "few_shot", "zero_shot", "reader", "retrieval", "injected", "margins", "judge")
    }
    assert [len(pair) for pair in figures["margins"]["run-3"]] == [2, 2]
    [run] = figures["runs"]
    assert run["seed"] == 3 and run["promises"] is False and run["preferences"] is None
    assert run["losses"] == [2.5] and len(run["answers"]) == 2 and run["merete"] == ["Dear Merete", False]
    assert len(figures["few_shot"][0]["answers"]) == len(figures["rows"]) == 2
    assert len(figures["zero_shot"]) == 2
    assert {*figures["retrieval"][0]} == {"question", "functions", "ranked", "none", "found", "true"}
    assert {one["wording"] for one in figures["injected"]} == {"", *benchmark.INJECTIONS}
    monkeypatch.setattr(benchmark, "few_shot", None)  # Its part is there already.
    benchmark.main(options)
