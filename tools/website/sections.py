"""The sections of a notebook: the heading above each cell, and its anchor on the site."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors.index import slugify
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode

SOLUTION = re.compile(r"# @title Solution (\d+\.\d+)")
_MARKDOWN = MarkdownIt("commonmark").use(dollarmath_plugin)


class Section(NamedTuple):
    """A heading of a notebook."""

    title: str  # as plain text
    anchor: str  # as MyST and code hosts make it; empty above the first heading


def sections(notebook: NotebookNode) -> list[Section]:
    """Return the section at the end of each cell of a notebook, in order."""
    return list({place: section for place, section, _ in _parts(notebook)}.values())


def passages(notebook: NotebookNode) -> Iterator[tuple[Section, str]]:
    """Yield the Markdown of a notebook, split before each heading, with its section."""
    return ((section, text) for _, section, text in _parts(notebook) if text)


def _parts(notebook: NotebookNode) -> Iterator[tuple[int, Section, str]]:
    """Yield cell index, section and Markdown of each part; a code cell is one part without Markdown."""
    here, known = Section("", ""), set()
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type != "markdown":
            yield place, here, ""
            continue
        lines, titles = cell.source.split("\n"), headings(cell.source)
        borders = [line for line, _ in titles] + [len(lines)]
        yield place, here, "\n".join(lines[: borders[0]])
        for (start, title), end in zip(titles, borders[1:], strict=True):
            anchor, again = slugify(title), 1
            while anchor in known:
                anchor, again = f"{slugify(title)}-{again}", again + 1
            known.add(anchor)
            here = Section(title, anchor)
            yield place, here, "\n".join(lines[start:end])


def headings(markdown: str) -> list[tuple[int, str]]:
    """Return the headings of a Markdown text: the line, from 0, and the title as plain text."""
    pairs = pairwise(_MARKDOWN.parse(markdown))
    return [(token.map[0], _plain(title)) for token, title in pairs if token.type == "heading_open"]


def _plain(inline: Token) -> str:
    return "".join(part.content for part in inline.children or () if part.type in ("text", "code_inline"))


def as_markdown(text: str) -> str:
    """Escape plain text for Markdown, in tables too."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~&])", r"\\\1", text)
