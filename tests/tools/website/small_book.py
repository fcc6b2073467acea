"""A book of four pages that is built in a second or two, with the extensions of the real one."""

import sys
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from paths import ROOT

BOOK = "Transformers, Taken Apart"
SITE = "https://someone.github.io/a-book/"
REPORTS = "https://github.com/someone/a-book/issues/new"
EXTENSION = ROOT / "tools" / "website" / "sphinx_extension"
START = f"""# {BOOK}

A book that is built by a test, and by nothing else.

```{{toctree}}
parts/00_zero
parts/03_one
parts/04_two
```
"""
# A first page with two figures, so that those of chapter 3 are not the first of the book.
ZERO = """# Before the chapters

This page has no number, but it has figures.

```{figure} dot.svg
:name: a

A dot.
```
```{figure} dot.svg
:name: b

Another.
```
"""
TWO = """---
description: Given in the metadata of the page.
---
# 04 Two

Some text, which is not its description.

```{figure} dot.svg
:name: f

A figure of chapter 4.
```
"""
DOT = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle r="4"/></svg>'
FOLDED = {
    "# @title Set-up: install what is missing\nimport os": "hide-input",
    "# @title Solution 3.2\nx = 2": "hide-cell",
    "# @title Proof: a < b & c\nx = 3": "hide-cell",
    "x = 4": "hide-input",
}
EXERCISES = """## Exercises

**3.1 (5 min)** What is this?

**3.2 (project, 60 min)** And that? See **3.1** again.

**4.1** belongs to another chapter, and **3.3** does not begin a paragraph.
"""


def build(folder: Path, **config) -> Path:
    """Build the book and return the folder of its pages.

    Args:
        folder: an empty folder for sources and pages.
        config: settings of Sphinx beyond those that the book has anyway.
    """
    source = folder / "source"
    (source / "parts").mkdir(parents=True)
    for name, text in {"start.md": START, "parts/00_zero.md": ZERO, "parts/04_two.md": TWO}.items():
        (source / name).write_text(text, encoding="utf-8")
    (source / "parts" / "dot.svg").write_text(DOT, encoding="utf-8")
    nbformat.write(_chapter(), source / "parts" / "03_one.ipynb")
    if str(EXTENSION) not in sys.path:
        sys.path.append(str(EXTENSION))
    settings = {
        "extensions": ["myst_nb", "feedback", "publishing", "reading"],
        "html_theme": "sphinx_book_theme",
        "html_theme_options": {
            "logo": {"text": BOOK, "alt_text": "Start page of"},
            "article_header_start": ["toggle-primary-sidebar.html", "book-name.html"],
        },
        "html_title": BOOK,
        "root_doc": "start",
        "numfig": True,
        "numfig_format": {"figure": "Figure %s"},
        "nb_execution_mode": "off",
    }
    output = folder / "html"
    folders = (source, None, output, folder / "doctrees")
    with patch_docutils(source), docutils_namespace():  # or a second book would find the nodes of the first
        app = Sphinx(*folders, "html", settings | config, status=None, warningiserror=True)
        app.build()
    assert app.statuscode == 0
    return output


def page(folder: Path, name: str) -> BeautifulSoup:
    """Read a page of the book."""
    return BeautifulSoup((folder / name).read_text(encoding="utf-8"), "html.parser")


def _chapter() -> nbformat.NotebookNode:
    opening = (
        "# 03 One & the other\n\n[Open in Colab](https://example.org)\n\n"
        "Words & numbers \\<first>. Then a second sentence."
    )
    figure = {"figure": {"caption": "A figure.", "name": "fig-one"}, "image": {"alt": "A dot."}}
    shown = new_output("display_data", data={"image/svg+xml": DOT})
    drawn = new_code_cell("draw()", metadata={"mystnb": figure}, outputs=[shown])
    printed = new_output("stream", text="a line")
    folded = [
        new_code_cell(code, metadata={"tags": [tag]}, outputs=[printed]) for code, tag in FOLDED.items()
    ]
    cells = [new_markdown_cell(opening), drawn, *folded, new_markdown_cell(EXERCISES)]
    language = {"name": "python", "pygments_lexer": "python"}
    return new_notebook(cells=cells, metadata={"language_info": language})
