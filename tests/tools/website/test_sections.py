"""The section of each cell, and text that Markdown shows as it is."""

import pytest
from markdown_it import MarkdownIt
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from website.sections import Section, as_markdown, headings, passages, sections


def test_a_cell_stands_under_the_last_heading_before_it():
    cells = ["# Title\n\n## First\n\ntext", None, "no heading", None, "### Next", None]
    made = [new_code_cell() if text is None else new_markdown_cell(text) for text in cells]
    found = sections(new_notebook(cells=[new_code_cell(), *made]))
    first, after = Section("First", "first"), Section("Next", "next")
    assert found == [Section("", ""), first, first, first, first, after, after]


def test_equal_titles_have_anchors_of_their_own():
    cells = [new_markdown_cell(f"## {title}") for title in ("Heads", "Heads", "Heads 1", "Heads")]
    anchors = [section.anchor for section in sections(new_notebook(cells=cells))]
    assert anchors == ["heads", "heads-1", "heads-1-1", "heads-2"]


def test_the_markdown_is_cut_at_its_headings():
    cells = [
        new_markdown_cell("before\n# T\n\ntext\n## A\nmore"),
        new_code_cell("x"),
        new_markdown_cell("still A"),
    ]
    found = [(section.anchor, text) for section, text in passages(new_notebook(cells=cells))]
    assert found == [("", "before"), ("t", "# T\n\ntext"), ("a", "## A\nmore"), ("a", "still A")]


def test_a_title_is_plain_text_and_code_has_none():
    text = (
        "## A `map` of [links](x.md), *well*\n\n```python\n# no title\n```\n\n    # nor this\n\nSetext\n---\n"
    )
    assert headings(text) == [(0, "A map of links, well"), (8, "Setext")]


@pytest.mark.parametrize("text", ["a | b", "*not* _em_ `code`", "x < y & z > 1", "[a](b) ~~c~~ $d$ #e \\"])
def test_markdown_shows_plain_text_as_it_is(text):
    (inline,) = (
        token
        for token in MarkdownIt("gfm-like", {"linkify": False}).parse(as_markdown(text))
        if token.children
    )
    kinds = {child.type for child in inline.children}
    assert "".join(child.content for child in inline.children) == text and kinds <= {"text", "text_special"}
