"""Where in a notebook something stands: the heading above each cell, and its anchor on the site."""

import re
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
    """The section that each cell of a notebook ends in, in the order of the cells."""
    here, found, known = Section("", ""), [], set()
    for cell in notebook.cells:
        for title in headings(cell.source) if cell.cell_type == "markdown" else ():
            anchor, again = slugify(title), 1
            while anchor in known:
                anchor, again = f"{slugify(title)}-{again}", again + 1
            known.add(anchor)
            here = Section(title, anchor)
        found.append(here)
    return found


def headings(markdown: str) -> list[str]:
    """The titles in a Markdown text, as plain text."""
    pairs = pairwise(_MARKDOWN.parse(markdown))
    return [_plain(title) for token, title in pairs if token.type == "heading_open"]


def _plain(inline: Token) -> str:
    return "".join(part.content for part in inline.children or () if part.type in ("text", "code_inline"))


def as_markdown(text: str) -> str:
    """Write plain text so that Markdown shows just that, in a table too."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~&])", r"\\\1", text)
