"""The road through the chapters: what builds on what, three ways through the book, and what they take.

The start page shows it. All of it is read from `_toc.yml`, from the notebooks and from the records of their
execution; only the ways are chosen here.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import nbformat
import yaml

from execute import record
from paths import ROOT
from website.reading_time import exercise_minutes, minutes, total

WAYS = {  # name of a way through the book: for whom, and its chapters, of which those that exist are taken
    "use": ("You want models to do a task, and to know when to trust them.", "01 03 04 05 13 14 15"),
    "understand": ("You want to know what happens inside, and why.", "01 02 03 06 07 08 11"),
    "build": ("You want to write, train and run transformers of your own.", "03 07 08 09 12 13 15"),
}
ROW, PART = 40, 34  # heights in the drawing of the road: of a chapter, of the name of a part
LINE = 29  # letters of a title that fit into a line of the drawing
TILTED = 20  # room above and on the right for the names of the ways, which are tilted


class Chapter(NamedTuple):
    """A chapter as the start page shows it."""

    number: str
    title: str  # without the number
    page: str  # relative to book/
    part: str
    needs: tuple[str, ...]  # numbers of the earlier chapters that it names under "You need"
    reading: float  # minutes
    exercises: int  # minutes, by their own estimates
    running: float | None  # minutes, None if it was not executed


def chapters() -> list[Chapter]:
    """The chapters of `_toc.yml`, in its order."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    found = []
    for part in contents["parts"]:
        for entry in part["chapters"]:
            path = ROOT / f"{entry['file']}.ipynb"
            if entry["file"].startswith("notebooks/") and path.name[:2].isdigit():
                found.append(_chapter(path, part["caption"]))
    return found


def _chapter(path: Path, part: str) -> Chapter:
    notebook, known = nbformat.read(path, 4), record(path)
    opening, number = notebook.cells[0].source, path.name[:2]
    title = re.search(r"(?m)^# (?:\d\d )?(.+)$", opening)[1]
    needs = re.search(r"(?ms)^\*\*You need\*\*.*?(?=^$|\Z)", opening)
    named = re.findall(r"\]\((\d\d)_\w+\.ipynb", needs[0] if needs else "")
    earlier = tuple(sorted({other for other in named if other < number}))
    running = known["seconds"] / 60 if known else None
    page = f"../notebooks/{path.stem}.html"
    reading, exercises = minutes(notebook), exercise_minutes(notebook)
    return Chapter(number, title, page, part, earlier, reading, exercises, running)


def road(book: Sequence[Chapter]) -> str:
    """A drawing of all chapters and the three ways, with the list of the ways beside it."""
    places, y, names, part = {}, 40, [], ""
    for chapter in book:
        if chapter.part != part:
            part, y = chapter.part, y + PART
            names.append(f'<text class="front-part" x="104" y="{y - 24}">{escape(part)}</text>')
        places[chapter.number] = y
        y += ROW
    rail = f'<line class="front-rail" x1="84" x2="84" y1="{40 + PART}" y2="{y - ROW}"/>'
    back = [(c.number, other) for c in book for other in c.needs if other in places]
    arcs = [_arc(places[other], places[number]) for number, other in back]
    lanes = [_way(i, name, places) for i, name in enumerate(WAYS)]
    stations = [_station(chapter, places[chapter.number]) for chapter in book]
    said = " ".join(f"{c.number} refers to {' and '.join(c.needs)}." for c in book if c.needs)
    drawing = (
        f'<svg class="front-road" viewBox="0 -{TILTED} {366 + TILTED} {y - ROW + 24 + TILTED}" role="group" '
        f'aria-labelledby="road-title road-said"><title id="road-title">The road through the chapters</title>'
        f'<desc id="road-said">{said}</desc>{"".join([rail, *names, *arcs, *lanes, *stations])}</svg>'
    )
    around = raw(f'<div class="front-along">{drawing}<div>'), raw("</div></div>")
    return f"{around[0]}\n{ways(book)}\n{around[1]}"


def _arc(top: int, bottom: int) -> str:
    reach = min(74, 16 + (bottom - top) * 0.17)
    return (
        f'<path class="front-arc" d="M76 {top + 5} C {76 - reach:.0f} {top + 5}, '
        f'{76 - reach:.0f} {bottom - 5}, 76 {bottom - 5}"/>'
    )


def _way(number: int, name: str, places: Mapping[str, int]) -> str:
    stops = [places[chapter] for chapter in WAYS[name][1].split() if chapter in places]
    x = 306 + 20 * number
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="5"/>' for y in stops)
    line = f'<line x1="{x}" x2="{x}" y1="{stops[0]}" y2="{stops[-1]}"/>' if stops else ""
    label = f'<text x="{x + 4}" y="52" transform="rotate(-55 {x + 4} 52)">{name}</text>'
    return f'<g class="front-way front-way-{number}" aria-hidden="true">{line}{dots}{label}</g>'


def _station(chapter: Chapter, y: int) -> str:
    lines = _wrapped(chapter.title, LINE)
    start = y + 4 - 7 * (len(lines) - 1)
    number = f'<tspan class="front-number" x="86" y="{y + 4}">{chapter.number}</tspan>'
    title = [f'<tspan x="104" y="{start + 15 * i}">{escape(line)}</tspan>' for i, line in enumerate(lines)]
    return (
        f'<a href="{chapter.page}"><rect x="70" y="{y - 18}" width="226" height="36" rx="6"/>'
        f'<circle cx="84" cy="{y}" r="13"/><text>{" ".join([number, *title])}</text></a>'
    )


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def ways(book: Sequence[Chapter]) -> str:
    """The three ways as a list: for whom each is, its chapters, and the time that it takes."""
    lines = []
    for name, (purpose, listed) in WAYS.items():
        along = [chapter for chapter in book if chapter.number in listed.split()]
        lines.append(f"- **{name.capitalize()}.** {purpose} {_along(along)}\n")
    return "".join([*lines, f"- **All of it**, in order. {_along(book)}\n"])


def _along(book: Sequence[Chapter]) -> str:
    links = ", ".join(f"[{c.number}]({c.page.replace('.html', '.ipynb')})" for c in book)
    known = [chapter.running for chapter in book if chapter.running is not None]
    running = f"{total(known)} of running" if len(known) == len(book) else "not all of it executed yet"
    reading, exercises = total(c.reading for c in book), total(c.exercises for c in book)
    return f"{links}: {reading} of reading, {exercises} of exercises, {running}."


def raw(html: str) -> str:
    """HTML for the site, inside Markdown."""
    return f"```{{raw}} html\n{html}\n```\n"
