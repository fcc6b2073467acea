"""The recipe of Gemma's lines of chapter 14: prompts, controls, the record beside the page; without Gemma."""

import json
import re
from types import SimpleNamespace

import nbformat
import pytest

from chapters_src import records
from chapters_src.data.summaries import Pair
from paths import notebooks
from recipes import gemma_summaries as recipe
from recipes.gemma_summaries import MESSAGES, NUM_DRAWS, NUM_EXAMPLES

PAIRS = [Pair(f"Body {i} is short.\nIt has two lines.", f"Line {i}.", "package", "module") for i in range(9)]
LONG = Pair("word " * (recipe.LONGEST_EXAMPLE + 1), "A long one.", "package", "module")
WAYS = ["line break", "TL;DR", "form"]
WAYS += [f"{kind} {draw}" for draw in range(NUM_DRAWS) for kind in ("examples", "mixed up")] + ["messages"]


@pytest.fixture
def prompts():
    return recipe.ways(["First text.", "Second text.", "Third text."], [*PAIRS, LONG])


def test_every_way_has_a_prompt_for_each_of_its_documents(prompts):
    assert list(prompts) == WAYS
    for way, some in prompts.items():
        whole = way in WAYS[:5]
        texts = ["First text.", "Second text.", "Third text."][:: 1 if whole else 2]
        assert len(some) == len(texts)
        assert all(text in prompt for text, prompt in zip(texts, some, strict=True))


def test_prompts_without_examples_are_a_text_and_how_it_is_asked(prompts):
    assert prompts["line break"][0] == "First text.\n"
    assert prompts["TL;DR"][0] == "First text.\nTL;DR:"
    assert prompts["form"][0] == "Text: First text.\nIn one line:"


def test_examples_stand_before_the_text_in_the_form(prompts):
    examples = [("One body.", "One line."), ("Two bodies.", "Two lines.")]
    assert recipe.by_example(examples, "A text.") == (
        "Text: One body.\nIn one line: One line.\n\nText: Two bodies.\nIn one line: Two lines.\n\n"
        "Text: A text.\nIn one line:"
    )
    assert prompts["messages"][0] == recipe.by_example(MESSAGES, "First text.")
    for draw in range(NUM_DRAWS):
        assert len(shown(prompts[f"examples {draw}"][0])) == NUM_EXAMPLES


def shown(prompt):
    """The examples of a prompt, texts with their lines."""
    return re.findall(r"Text: (.*)\nIn one line: (.*)\n", prompt)


def test_the_control_has_the_same_texts_and_lines_and_no_right_pair(prompts):
    right = {(recipe.plain(pair.body), pair.summary) for pair in PAIRS}
    for draw in range(NUM_DRAWS):
        own, mixed = (shown(prompts[f"{kind} {draw}"][0]) for kind in ("examples", "mixed up"))
        assert set(own) <= right and not set(mixed) & right
        for place in (0, 1):
            assert {pair[place] for pair in own} == {pair[place] for pair in mixed}


def test_draws_are_short_different_and_the_same_each_time():
    draws = [recipe.drawn([LONG, *PAIRS], draw) for draw in range(NUM_DRAWS)]
    assert draws == [recipe.drawn([LONG, *PAIRS], draw) for draw in range(NUM_DRAWS)]
    assert all(len(set(draw)) == NUM_EXAMPLES and LONG not in draw for draw in draws)
    assert len({frozenset(draw) for draw in draws}) > 1


def test_texts_are_one_line_and_keys_tell_pairs_apart():
    assert recipe.plain("a\n b\n\nc") == "a b c"
    assert len(recipe.plain("word " * 500).split()) == recipe.MOST_WORDS
    keys = {recipe.key_of(pair) for pair in [*PAIRS, LONG]}
    assert len(keys) == len(PAIRS) + 1 and all(re.fullmatch("[0-9a-f]{12}", key) for key in keys)


@pytest.fixture
def without_gemma(monkeypatch):
    """Documents of nine words, and a writer that repeats the last word."""
    data = SimpleNamespace(splits={"test": PAIRS * 3, "train": [*PAIRS, LONG]})
    monkeypatch.setattr(recipe.summaries, "pairs", lambda: data)
    monkeypatch.setattr(recipe.resources, "checkpoint", lambda name: name)
    model = SimpleNamespace(eval=lambda: None)
    monkeypatch.setattr(recipe.pretrained, "load", lambda folder: model)
    monkeypatch.setattr(recipe.AutoTokenizer, "from_pretrained", lambda folder: None)
    monkeypatch.setattr(recipe, "written", lambda *those: [prompt.split()[-1] for prompt in those[-1]])


def test_a_smoke_run_writes_the_record_and_repeats_nothing(tmp_path, monkeypatch, without_gemma):
    recipe.main(["--output", str(tmp_path), "--smoke"])
    figures = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))["figures"]
    assert list(figures["lines"]) == WAYS[:2]
    assert [len(lines) for lines in figures["lines"].values()] == [2, 2]
    assert figures["documents"] == [recipe.key_of(PAIRS[i]) for i in (0, 5)]
    monkeypatch.setattr(recipe, "written", lambda *_: pytest.fail("it was repeated"))
    recipe.main(["--output", str(tmp_path), "--smoke"])


def test_a_whole_run_writes_every_way(tmp_path, without_gemma):
    recipe.main(["--output", str(tmp_path), "--record", str(tmp_path / "whole.json")])
    assert_whole(json.loads((tmp_path / "whole.json").read_text(encoding="utf-8"))["figures"])


def assert_whole(figures):
    """Every way has a line for each of its documents."""
    count = len(figures["documents"])
    assert list(figures["lines"]) == WAYS
    for way, lines in figures["lines"].items():
        assert len(lines) == (count if way in WAYS[:5] else -(-count // 2))
        assert not any("\n" in line for line in lines)
    assert [len(keys) for keys in figures["draws"]] == [NUM_EXAMPLES] * NUM_DRAWS
    assert figures["messages"] == [list(pair) for pair in MESSAGES]


def test_the_record_is_whole_and_has_what_the_page_reads():
    figures = records.record("gemma_summaries")["figures"]
    assert_whole(figures)
    path = next(path for path in notebooks() if path.name.startswith("14_"))
    code = "\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code")
    assert set(re.findall(r'\brecorded\["(\w+)"\]', code)) == set(figures)
    named = set(re.findall(r'\b(?:against|share_of|of_way)\("([^"{}]+)"', code))
    assert named <= {*WAYS, "lead-1", "summarizer"}


def test_the_page_asks_as_the_recipe_did():
    """Its prompts and keys are made by code of its own."""
    path = next(path for path in notebooks() if path.name.startswith("14_"))
    code = "\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code")
    known = {"hashlib": recipe.hashlib}
    for name in ("by_example", "plain", "key_of", "mixed_up"):
        source = re.search(rf"(?ms)^def {name}\(.*?(?=^\S|\Z)", code)[0]
        exec(source, known)
    examples = [(pair.body, pair.summary) for pair in PAIRS[:3]]
    assert known["by_example"](examples, "A text.") == recipe.by_example(examples, "A text.")
    assert known["mixed_up"](examples) == recipe.mixed_up(examples)
    assert known["key_of"](LONG) == recipe.key_of(LONG)
    assert known["plain"]("word\n " * 500) == recipe.plain("word\n " * 500)
