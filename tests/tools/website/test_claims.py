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
        new_markdown_cell("## Exercises"),
        printed("✓ twice as fast\n", tags=["timing"]),
        printed("✓ it holds\n", "# @title Solution 3.2\nclaim(True, 'it holds')"),
        printed("this ✓ is no claim, and ✗ neither\n"),
    ]
)


def test_a_claim_has_its_sentence_section_and_kind():
    bytes_, exercises = Section("Bytes", "bytes"), Section("Exercises", "exercises")
    assert list(claims_of(EXECUTED)) == [
        ("a | b is *less* than c", bytes_, "", False, ""),
        ("and so is d", bytes_, "", False, ""),
        ("twice as fast", exercises, "", True, ""),
        ("it holds", exercises, "3.2", False, ""),
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
    names = ("03_tokenization.ipynb", "04_features.ipynb")
    monkeypatch.setattr(claims, "notebooks", lambda: [Path("notebooks") / name for name in names])


def test_the_index_has_a_row_for_each_claim(book):
    text = index()
    assert text.startswith("**4 claims** in 1 notebooks; in this build 4 of them held.")
    assert "not listed: 04\\_features." in text
    table = text.split(":class: sortable claims\n\n")[1].split("\n```")[0]
    tokens = MarkdownIt("commonmark").enable("table").parse(table)
    cells = [token.children for token in tokens if token.type == "inline"]
    texts = ["".join(child.content for child in cell) for cell in cells]
    rows = [texts[i : i + 4] for i in range(0, len(texts), 4)]
    assert rows == [
        ["chapter", "claim", "where", "status"],
        ["03", "a | b is *less* than c", "Bytes", "✓ held"],
        ["03", "and so is d", "Bytes", "✓ held"],
        ["03", "twice as fast", "Exercises", "✓ held (measured time)"],
        ["03", "it holds", "Exercise 3.2", "✓ held"],
    ]
    links = [child.attrs["href"] for cell in cells for child in cell if child.type == "link_open"]
    assert links[::2] == [
        "../notebooks/03_tokenization.ipynb#bytes",
        "../notebooks/03_tokenization.ipynb#exercises",
    ]
