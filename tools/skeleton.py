"""The skeleton of a new chapter: the cells that all chapters share, a check, and placeholders for the rest.

Placeholders are marked TBD, which the tests find: no skeleton gets into the book.
"""

import json
import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import address
from paths import NOTEBOOKS, PACKAGE, ROOT, notebooks

NAME = re.compile(r"(\d\d)_([a-z0-9]+(?:_[a-z0-9]+)*)")
OPENING = """\
# {number} {title}

[Open in Colab]({colab})

TBD: the question that this chapter answers, in a paragraph.

**After this chapter you can**

- TBD: things that one can watch somebody do.

**You need** TBD: chapters, or what of them from elsewhere.

**Running time** on two CPU cores: [measured at every build](../book/colophon.md#running-times)."""
SECTION = """\
## TBD: the first idea

TBD: the question that is open. What do you expect before you run the next cell?"""
CHECKED = """\
# TBD: three to ten lines of one idea; then what the sentence says, computed.
claim(1 + 1 == 2, "one and one are two")"""
AFTERWARDS = "TBD: what this shows, and what it does not. What do you expect of the figure?"
FIGURE = """\
# @title Plot: TBD, what opening the fold shows
plt.plot([1, 2, 3], [1, 4, 9])
plt.xlabel("TBD")
plt.ylabel("TBD")
plt.show()"""
OF_FIGURE = {
    "mystnb": {
        "figure": {"caption": "TBD: what the figure shows.", "name": "fig-TBD"},
        "image": {"alt": "TBD: the picture in words, for those who do not see it."},
    }
}
SEEN = "TBD: what the figure shows."
EXERCISE = """\
## Exercises

**{first} (warm-up, 10 min)** TBD: the task.

<details><summary>Hint</summary>

TBD: a push in the right direction, not the solution.

</details>"""
STARTER = """\
answer = None  # TBD: or a function, with its signature and a docstring
check("{first}", answer)"""
SOLUTION = """\
# @title Solution {first}
answer = 1 + 1
check("{first}", answer)"""
CHECKS = '''\
"""Checks of the exercises of chapter {number}, on TBD."""

from chapters_src.exercises.checking import Wrong, as_number, exercise


@exercise("{first}")
def tbd(answer: object) -> str:
    """TBD: what the answer is compared with."""
    if as_number(answer, "answer") != 1 + 1:
        raise Wrong("TBD: what is wrong, without giving the answer away.")
    return "TBD: a sentence for a right answer."
'''
PLANTED = '''\
"""Answers to the exercises of chapter {number}."""

from planted import Planted, planted


@planted("{first}")
def tbd() -> Planted:
    return Planted(
        (1 + 1,),  # TBD: the answers of the solution
        {{  # Words of the hint, to wrong answers that have to get it.
            "TBD: what is wrong": (3,),
            "has to be a number": ("two",),
        }},
        also_right=((2.0,),),
        secrets=("2",),  # What no hint may say.
    )
'''
RIGHT = "ABCAB"  # The letters of the placeholders of questions.
READING = "## Further reading\n\n- TBD: a title with a link, and why to read it."


class SkeletonError(Exception):
    """The chapter is not possible; the message says why."""


def make(name: str | None) -> list[str]:
    """Write the skeleton of a chapter with its checks and questions, and list it in `_toc.yml` in order.

    Args:
        name: number and slug, such as "12_language_model".

    Returns:
        What is left to do, in sentences.

    Raises:
        SkeletonError: the name is not a valid chapter name, or its number is taken.
    """
    match = NAME.fullmatch(name or "")
    if match is None:
        raise SkeletonError(f"a chapter needs a number and a name, such as 12_language_model, not {name!r}")
    number, slug = match.groups()
    chapters = [path.stem for path in notebooks() if NAME.fullmatch(path.stem)]
    taken = [stem for stem in chapters if stem.startswith(number)]
    if taken:
        raise SkeletonError(f"number {number} is already used by notebooks/{taken[0]}.ipynb")
    before = max((stem for stem in chapters if stem < name), default=None)
    title = slug.replace("_", " ").capitalize()
    notebook = _cells(number, title, f"notebooks/{name}.ipynb", before or min(chapters))
    _list(name, f"notebooks/{before}" if before else f"notebooks/{min(chapters)}", after=before is not None)
    (NOTEBOOKS / f"{name}.ipynb").write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    for path, text in _beside(number).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [
        f"notebooks/{name}.ipynb: write what is marked TBD; at least four exercises and three readings",
        f"chapters_src/exercises/chapter_{number}.py: write the check of each exercise",
        f"tests/exercises/planted_{number}.py: the right and wrong answers of each exercise",
        f"book/questions/{number}.json: five questions, which `stamp` writes into the notebook",
        "_toc.yml: move the chapter to its part",
        "book/index.md: a line with its title and a sentence",
        "book/road.svg and WAYS in tools/website/road.py: its place on the road (STYLE.md, Drawings)",
        "book/glossary.md and book/references.md: its terms and papers",
        "then, each after python tools/book.py:",
        *(f"  {step}" for step in ("stamp", f"book --only {number}", f"seeds --only {number}", "lint")),
        "and the tests that concern it (CONTRIBUTING.md, The parts of a chapter)",
    ]


def _first(number: str) -> str:
    return f"{int(number)}.1"  # of chapter 03: 3.1


def _beside(number: str) -> dict[Path, str]:
    """Return the files that belong to a chapter beside its notebook, each with its text."""
    first = _first(number)
    return {
        PACKAGE / "exercises" / f"chapter_{number}.py": CHECKS.format(number=number, first=first),
        ROOT / "tests" / "exercises" / f"planted_{number}.py": PLANTED.format(number=number, first=first),
        ROOT / "book" / "questions" / f"{number}.json": _questions(number),
    }


def _questions(number: str) -> str:
    """Return five placeholders that follow the rules of `questions.faults`."""
    whys = {True: "TBD: the reason, with a link.", False: "TBD: what this option confuses."}
    questions = []
    for place, right in enumerate(RIGHT, 1):
        options = [
            {"text": f"TBD {letter}", "right": letter == right, "why": whys[letter == right]}
            for letter in "ABC"
        ]
        questions.append({"question": f"TBD: question {place} of chapter {number}", "options": options})
    return json.dumps({"questions": questions}, ensure_ascii=False, indent=2) + "\n"


def _cells(number: str, title: str, path: str, model: str) -> nbformat.NotebookNode:
    """Return the notebook, with the set-up cell and metadata of an existing chapter."""
    copied = nbformat.read(NOTEBOOKS / f"{model}.ipynb", 4)
    set_up = next(cell for cell in copied.cells if cell.cell_type == "code")
    repository, tag = address.address()
    colab = f"{address.COLAB}{repository.removeprefix('https://github.com/')}/blob/{tag}/{path}"
    first, folded = _first(number), {"cellView": "form", "jupyter": {"source_hidden": True}}
    cells = [
        new_markdown_cell(OPENING.format(number=number, title=title, colab=colab)),
        new_code_cell(
            re.sub(r'setup\("\d\d".*\)', f'setup("{number}")', set_up.source), metadata=set_up.metadata
        ),
        new_code_cell("import matplotlib.pyplot as plt\n\nfrom chapters_src.exercises import check"),
        new_markdown_cell(SECTION),
        new_code_cell(CHECKED),
        new_markdown_cell(AFTERWARDS),
        new_code_cell(FIGURE, metadata={"tags": ["hide-input"], **folded, **OF_FIGURE}),
        new_markdown_cell(SEEN),
        new_markdown_cell(EXERCISE.format(first=first)),
        new_code_cell(STARTER.format(first=first)),
        new_code_cell(SOLUTION.format(first=first), metadata={"tags": ["hide-cell"], **folded}),
        new_markdown_cell(READING),
    ]
    return new_notebook(cells=cells, metadata=copied.metadata)


def _list(name: str, neighbor: str, after: bool) -> None:
    """Add a chapter to the table of contents, next to an existing one."""
    contents = ROOT / "_toc.yml"
    text = contents.read_text(encoding="utf-8")
    line = re.search(rf"(?m)^( *- file: ){neighbor}\n", text)
    if line is None:
        raise SkeletonError(f"_toc.yml does not list {neighbor}, which should come next to this chapter")
    place = line.end() if after else line.start()
    wanted = f"{text[:place]}{line[1]}notebooks/{name}\n{text[place:]}"
    contents.write_text(wanted, encoding="utf-8")
