"""Sphinx extension: what makes a chapter easier to read than its notebook.

Figures are numbered by chapter, folded cells say what opening them shows, exercises can be linked to, and the
system's dark mode is obeyed before anything is drawn.
"""

import re
from html import escape

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput
from sphinx.transforms import SphinxTransform

CHAPTER = re.compile(r"(\d+) ")  # how the title of a chapter begins
EXERCISE = re.compile(r"(\d+)\.(\d+)\b")  # and an exercise, in bold
TITLE = re.compile(r"# @title (.+)")  # the first line of a cell, which Colab shows in its place
SET_UP = "Set-up:"  # what nobody needs on paper: installing, and imports
# The theme stores a reader's choice, and with it the colors. If the choice is left to the system, these are
# the colors of the last visit; so they are set anew, before the theme reads them.
SYSTEM_COLORS = """<script>try {
  if ((localStorage.getItem("mode") || "auto") === "auto") {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    localStorage.setItem("mode", "auto");
    localStorage.setItem("theme", dark ? "dark" : "light");
  }
} catch { /* what cannot be stored stays as it is */ }</script>
"""


def chapter(document: nodes.document) -> int | None:
    """The number of a chapter, from its title: 7 for `07 Attention from scratch`; None for other pages."""
    title = next(document.findall(nodes.title), None)
    match = CHAPTER.match(title.astext()) if title else None
    return int(match[1]) if match else None


def number_figures(app, env):
    """Number the figures of each chapter: Figure 7.1, 7.2, whatever chapters stand before it."""
    for page, kinds in env.toc_fignumbers.items():
        number = chapter(env.get_doctree(page))
        before = () if number is None else (number,)
        for kind, figures in kinds.items():
            in_order = sorted(figures, key=figures.get)
            kinds[kind] = {name: (*before, i) for i, name in enumerate(in_order, 1)}
    return []  # no page that has to be read again


class TitleFolds(SphinxTransform):
    """Give every folded cell the title that its first line has."""

    default_priority = 500

    def apply(self, **_):
        """Set the titles of one page."""
        for cell in self.document.findall(nodes.container):
            if cell.get("nb_element") == "cell_code" and cell.get("hide_mode"):
                match = TITLE.match(cell.children[0].astext())
                cell["prompt_show"] = match[1].strip() if match else "Code"
                if cell["prompt_show"].startswith(SET_UP):
                    cell["classes"].append("set-up")


def open_fold(translator, node):
    """Begin a folded cell as plain `<details>`, with one title for open and closed."""
    title = escape(node["prompt_show"])
    translator.body.append(f'<details class="fold">\n<summary>{title}</summary>\n')


class LinkExercises(SphinxTransform):
    """Give every exercise of a chapter an anchor, `#exercise-9-3`, and a link that leads to it."""

    default_priority = 500

    def apply(self, **_):
        """Mark the exercises of one page."""
        number = chapter(self.document)
        for paragraph in self.document.findall(nodes.paragraph):
            first = next((child for child in paragraph.children if child.astext()), None)
            match = EXERCISE.match(first.astext()) if isinstance(first, nodes.strong) else None
            if match and int(match[1]) == number:
                name = f"exercise-{number}-{match[2]}"
                paragraph["ids"].append(name)
                paragraph["classes"].append("exercise")
                label = f"Link to exercise {number}.{match[2]}"
                link = f'<a class="exercise-link" href="#{name}" aria-label="{label}" title="{label}">#</a>'
                paragraph.insert(paragraph.index(first) + 1, nodes.raw("", link, format="html"))


def prepare_page(app, pagename, templatename, context, doctree):
    """Let a page begin in the colors of the reader's system."""
    context["metatags"] = context.get("metatags", "") + SYSTEM_COLORS


def setup(app):
    """Register the extension with Sphinx."""
    app.add_transform(TitleFolds)
    app.add_node(HideCodeCellNode, override=True, html=(open_fold, depart_HideCellInput))
    app.add_transform(LinkExercises)
    app.connect("env-get-updated", number_figures, priority=900)
    app.connect("html-page-context", prepare_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
