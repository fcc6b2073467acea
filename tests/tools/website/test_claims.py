"""The index of claims: it lists what `claim` prints, with its place."""

from pathlib import Path

import nbformat
import pytest
from markdown_it import MarkdownIt
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from chapters_src import notebook as package
from website import claims
from website.claims import claims_of, index
from website.sections import Section


def printed(text: str, source: str = "claim(True, 'x')", **metadata) -> nbformat.NotebookNode:
    return new_code_cell(source, outputs=[new_output("stream", name="stdout", text=text)], metadata=metadata)


EXECUTED = new_notebook(
    cells=[
        new_markdown_cell("# 03 Tokenization\n\n## Bytes"),
        printed("seven\n✓ a | b is *less* than c\n✓ and so is d\n"),
        printed("✓ one is odd\n", tags=["deterministic"]),
        new_markdown_cell("## Exercises"),
        printed("✓ twice as fast\n", tags=["timing"]),
        printed("✓ it holds\n✓ it holds\n", "# @title Solution 3.2\nclaim(True, 'it holds')"),
        printed("this ✓ is no claim, and ✗ neither\n"),
    ]
)


def test_a_claim_has_its_sentence_section_and_kind():
    bytes_, exercises = Section("Bytes", "bytes"), Section("Exercises", "exercises")
    first, second, timed, solution = (EXECUTED.cells[i].id for i in (1, 2, 4, 5))
    assert list(claims_of(EXECUTED)) == [
        ("a | b is *less* than c", bytes_, "", False, "", first, False),
        ("and so is d", bytes_, "", False, "", first, False),
        ("one is odd", bytes_, "", False, "", second, True),
        ("twice as fast", exercises, "", True, "", timed, False),
        *[("it holds", exercises, "3.2", False, "", solution, False)] * 2,
    ]


@pytest.mark.parametrize("holds", [True, False])
def test_what_claim_prints_is_read(holds, capsys, monkeypatch):
    monkeypatch.setattr(package, "_why_results_may_differ", lambda timing: "numpy 1.0, the book has 2.0")
    package.claim(holds, "one (of two) beats: the other")
    (found,) = claims_of(new_notebook(cells=[printed(capsys.readouterr().out)]))
    assert found.sentence == "one (of two) beats: the other"
    assert found.reason == ("" if holds else "numpy 1.0, the book has 2.0")


@pytest.fixture
def book(tmp_path, monkeypatch) -> None:
    """Two notebooks, of which one was executed."""
    nbformat.write(EXECUTED, tmp_path / "03_tokenization.ipynb")
    monkeypatch.setattr(claims, "EXECUTED", tmp_path)
    counts = ("a | b is *less* than c,3,4", "it holds,4,4", "it holds,2,4")
    table = "\n".join(["chapter,claim,held,of", "04,it holds,1,4", *(f"03,{count}" for count in counts)])
    (tmp_path / "seeds.csv").write_text(table, encoding="utf-8")
    monkeypatch.setattr(claims, "SEEDS_TABLE", tmp_path / "seeds.csv")
    names = ("03_tokenization.ipynb", "04_features.ipynb")
    monkeypatch.setattr(claims, "notebooks", lambda: [Path("notebooks") / name for name in names])


def test_the_index_has_a_row_for_each_claim(book):
    text = index()
    assert text.startswith("**6 claims** in 1 notebooks; in this build 6 of them held.")
    assert "not listed: 04\\_features." in text
    table = text.split(":class: sortable claims\n\n")[1].split("\n```")[0]
    tokens = MarkdownIt("commonmark").enable("table").parse(table)
    cells = [token.children for token in tokens if token.type == "inline"]
    texts = ["".join(child.content for child in cell) for cell in cells]
    rows = [texts[i : i + 5] for i in range(0, len(texts), 5)]
    assert rows == [
        ["chapter", "claim", "where", "status", "seeds"],
        ["03", "a | b is *less* than c", "Bytes", "✓ held", "3 of 4"],
        ["03", "and so is d", "Bytes", "✓ held", "not counted"],
        ["03", "one is odd", "Bytes", "✓ held", "no draw"],
        ["03", "twice as fast", "Exercises", "✓ held (measured time)", "measured"],
        ["03", "it holds", "Exercise 3.2", "✓ held", "4 of 4"],
        ["03", "it holds", "Exercise 3.2", "✓ held", "2 of 4"],
    ]
    links = [child.attrs["href"] for cell in cells for child in cell if child.type == "link_open"]
    page = "../notebooks/03_tokenization.ipynb"
    assert links == [*[f"{page}#bytes"] * 3, *[f"{page}#exercises"] * 3]
