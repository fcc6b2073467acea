"""Guesses: what the metadata of a cell may say, and what the executed output has to answer."""

import json
import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from paths import notebooks
from website import guesses

CHOICE = {"options": ["one", "two", "three"], "right": 2, "output": "code", "matches": r"^best: two$"}
NUMBER = {"output": "code", "value": r"took ([\d.,]+) s", "factor": 2}
PRINTED = "best: two\nit took 1,200 s\n"


def executed(guess: dict | None, printed: str | None = PRINTED, tags=(), data: dict | None = None):
    outputs = [new_output("stream", text=printed)] if printed else []
    outputs += [new_output("display_data", data=data)] if data else []
    question = new_markdown_cell("What will it be?", id="ask", metadata={"guess": guess} if guess else {})
    code = new_code_cell("run()", id="code", outputs=outputs, metadata={"tags": [*tags]})
    return new_notebook(cells=[new_code_cell("1", id="first"), question, code, new_code_cell("2", id="last")])


def asked(notebook) -> dict:
    guesses.with_guesses(notebook, "03_tokens")
    [text] = re.findall(
        r'<script type="application/json" class="guess-data">(.*)</script>', notebook.cells[1].source
    )
    return json.loads(text)


def test_a_choice_reaches_the_page_and_the_output_gets_its_tag():
    notebook = executed(CHOICE)
    assert asked(notebook) == {
        "id": "ask", "chapter": "03_tokens", "options": ["one", "two", "three"], "right": 1
    }  # fmt: skip
    assert notebook.cells[1].source.startswith("What will it be?\n\n<script")
    assert [cell.metadata.get("tags") for cell in notebook.cells] == [None, None, ["guessed-ask"], None]


def test_a_number_is_read_from_the_output():
    notebook = executed(NUMBER | {"unit": "seconds"})
    assert asked(notebook)["value"] == 1200
    assert asked(executed({"output": "code", "value": r"took (\S+)", "within": 5}))["within"] == 5


def test_outputs_around_the_answer_wait_too_but_not_folded_ones():
    notebook = executed(CHOICE, tags=["hide-input"])
    shown, printed = new_output("stream", text="on the way"), []
    between = [
        new_code_cell("a", id="a", outputs=[shown]),
        new_code_cell("b", id="b", outputs=printed),
        new_code_cell("c", id="c", outputs=[shown], metadata={"tags": ["hide-cell"]}),
    ]
    notebook.cells[2:2] = between
    claims = new_code_cell("claim()", id="claims", outputs=[shown])
    notebook.cells[-1:-1] = [claims, new_markdown_cell("So it is.")]
    guesses.with_guesses(notebook, "03_tokens")
    tags = {cell.id: [*cell.metadata.get("tags", [])] for cell in notebook.cells if cell.cell_type == "code"}
    ours = "guessed-ask"
    wanted = {"a": [ours], "b": [], "c": ["hide-cell"], "code": ["hide-input", ours]}
    assert tags == {"first": [], **wanted, "claims": [ours], "last": []}


def test_a_text_cannot_leave_its_script():
    notebook = executed(CHOICE | {"options": ["one", "two", "</script><b>"]})
    assert asked(notebook)["options"][2] == "</script><b>"
    assert "</script><b>" not in notebook.cells[1].source


def test_tables_are_read_as_plain_text_and_html_without_its_tags():
    plain = executed(NUMBER, printed=None, data={"text/html": "<td>9</td>", "text/plain": "took 3 s"})
    assert asked(plain)["value"] == 3
    only_html = {"text/html": "<p>took <b>4</b> s</p>", "text/plain": "<IPython.core.display.HTML object>"}
    assert asked(executed(NUMBER | {"value": r"took +(\d+)"}, printed=None, data=only_html))["value"] == 4


def test_a_notebook_that_was_not_executed_asks_nothing():
    notebook = executed(CHOICE, printed=None)
    guesses.with_guesses(notebook, "03_tokens")
    assert notebook.cells[1].source == "What will it be?"


WRONG = {
    "names its `output`": ["a list"],
    "names its `output`, a cell id": {"options": ["a", "b"]},
    "a choice does not have unit": CHOICE | {"unit": "s"},
    "a number does not have matches": NUMBER | {"matches": "x"},
    "a choice needs `matches`": {k: v for k, v in CHOICE.items() if k != "matches"},
    "a number needs `value`": {"output": "code", "within": 1},
    "is no regular expression": CHOICE | {"matches": "("},
    "two to five texts": CHOICE | {"options": ["one"], "right": 1},
    "are the same": CHOICE | {"options": ["one", "one"], "right": 1},
    "`right` is from 1 to 3, not 0": CHOICE | {"right": 0},
    "`right` is from 1 to 3, not 4": CHOICE | {"right": 4},
    "`value` has one group": NUMBER | {"value": r"\d+"},
    "either `within` or `factor`": NUMBER | {"within": 1},
    "`factor` is above 1": NUMBER | {"factor": 0.5},
    "no code cell 'first' follows": CHOICE | {"output": "first"},
}


@pytest.mark.parametrize("message", WRONG)
def test_bad_metadata_has_an_error_that_names_the_place(message):
    with pytest.raises(guesses.GuessFailed, match=re.escape(message)) as failure:
        guesses.guesses(executed(WRONG[message]), "03_tokens")
    assert "03_tokens, cell ask: " in str(failure.value)


def test_an_answer_is_not_folded_and_only_markdown_asks():
    with pytest.raises(guesses.GuessFailed, match="is folded"):
        guesses.guesses(executed(CHOICE, tags=["hide-cell"]), "03_tokens")
    notebook = executed(None)
    notebook.cells[0].metadata["guess"] = CHOICE
    with pytest.raises(guesses.GuessFailed, match="cell first: only a Markdown cell"):
        guesses.guesses(notebook, "03_tokens")


def test_a_chapter_asks_at_most_four_times():
    notebook = executed(CHOICE)
    more = [new_markdown_cell("?", id=f"ask{i}", metadata={"guess": CHOICE}) for i in range(4)]
    notebook.cells[1:1] = more
    with pytest.raises(guesses.GuessFailed, match="03_tokens has 5 guesses"):
        guesses.guesses(notebook, "03_tokens")


@pytest.mark.parametrize("guess", [CHOICE, NUMBER])
def test_an_output_that_no_longer_answers_stops_the_build(guess, monkeypatch):
    monkeypatch.setattr(guesses, "_results_may_differ", lambda: "")
    with pytest.raises(guesses.GuessFailed) as failure:
        guesses.with_guesses(executed(guess, "best: three\n"), "03_tokens")
    said = str(failure.value)
    pattern = guess.get("matches") or guess["value"]
    assert "03_tokens, cell ask" in said and repr(pattern) in said and "best: three" in said


def test_a_zero_is_not_guessed_by_a_factor(monkeypatch):
    monkeypatch.setattr(guesses, "_results_may_differ", lambda: "")
    with pytest.raises(guesses.GuessFailed, match="no number that can be guessed"):
        guesses.with_guesses(executed(NUMBER, "it took 0.0 s"), "03_tokens")


def test_elsewhere_the_question_stays_as_text(monkeypatch):
    monkeypatch.setattr(guesses, "_results_may_differ", lambda: "full resources")
    notebook = executed(CHOICE, "best: three\n")
    guesses.with_guesses(notebook, "03_tokens")
    assert notebook.cells[1].source == "What will it be?"


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_the_guesses_of_the_book_are_well_formed(path):
    import nbformat

    notebook = nbformat.read(path, 4)
    for guess in guesses.guesses(notebook, path.stem):
        [cell] = [cell for cell in notebook.cells if cell.id == guess.cell]
        assert "?" in cell.source, f"{path.stem}, {guess.cell}: no question"
