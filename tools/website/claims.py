"""The index of all claims: what the executed notebooks claim, and how it came out in this build.

`claim` (chapters_src/notebook.py) prints a line for each claim. These lines are read from the outputs, so the
index lists what was tested, in the words that were printed. Beside each stands at how many seeds it held, by
the table of `make seeds`.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from paths import EXECUTED, ROOT, notebooks
from website.sections import SOLUTION, Section, as_markdown, sections

HELD = re.compile(r"✓ (?P<sentence>.+)")
OTHERWISE = re.compile(r"✗ here it came out otherwise \((?P<reason>.*?)\): (?P<sentence>.+)")
HEAD = "| chapter | claim | where | status | seeds |\n|---|---|---|---|---|\n"
SEEDS_TABLE = ROOT / "benchmarks" / "seeds.csv"


class Claim(NamedTuple):
    """A claim that a notebook printed."""

    sentence: str
    section: Section
    exercise: str  # "3.2" in a solution, else empty
    timing: bool  # it depends on measured time
    reason: str  # why it may have come out otherwise; empty where it held
    cell: str  # the id of the cell that printed it
    deterministic: bool  # it depends on no draw, says the tag of its cell


class Count(NamedTuple):
    """A row of the table: at how many of how many seeds a claim held; of none where it depends on no draw."""

    chapter: str
    claim: str
    held: int
    of: int


def claims_of(executed: NotebookNode) -> Iterator[Claim]:
    """The claims of an executed notebook, in the order printed."""
    for cell, section in zip(executed.cells, sections(executed), strict=True):
        if cell.cell_type != "code":
            continue
        solution = SOLUTION.match(cell.source)
        tags = cell.metadata.get("tags", [])
        about = section, solution[1] if solution else "", "timing" in tags
        printed = "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")
        for line in printed.split("\n"):
            if found := HELD.fullmatch(line) or OTHERWISE.fullmatch(line):
                parts = found.groupdict()
                reason = parts.get("reason", "")
                yield Claim(parts["sentence"], *about, reason, cell.id, "deterministic" in tags)


def all_claims() -> dict[Path, list[Claim]]:
    """The claims of each notebook that was executed."""
    executed = ((notebook, EXECUTED / notebook.name) for notebook in notebooks())
    return {notebook: list(claims_of(nbformat.read(done, 4))) for notebook, done in executed if done.exists()}


def read_counts(table: Path) -> list[Count]:
    """The rows of the table that `make seeds` writes; none if there is no table."""
    if not table.exists():
        return []
    with table.open(encoding="utf-8", newline="") as lines:
        return [
            Count(row["chapter"], row["claim"], int(row["held"]), int(row["of"]))
            for row in csv.DictReader(lines)
        ]


def index() -> str:
    """The index as Markdown: a sentence with its sums, and a table that readers sort and filter."""
    found = all_claims()
    waiting = read_counts(SEEDS_TABLE)
    rows = [_row(notebook, claim, waiting) for notebook, claims in found.items() for claim in claims]
    held = sum(not claim.reason for claims in found.values() for claim in claims)
    missing = [path.stem for path in notebooks() if path not in found]
    sums = f"**{len(rows)} claims** in {len(found)} notebooks; in this build {held} of them held."
    if missing:
        sums += f" Not executed, and so not listed: {', '.join(map(as_markdown, missing))}."
    table = HEAD + "\n".join(rows)
    return f"{sums}\n\n```{{table}}\n:class: sortable claims\n\n{table}\n```\n"


def _row(notebook: Path, claim: Claim, waiting: list[Count]) -> str:
    """A claim's row; its count is taken from those that wait, because a sentence may be printed twice."""
    link = f"../notebooks/{notebook.name}" + (f"#{claim.section.anchor}" if claim.section.anchor else "")
    where = f"Exercise {claim.exercise}" if claim.exercise else as_markdown(claim.section.title)
    status = f"✗ otherwise: {as_markdown(claim.reason)}" if claim.reason else "✓ held"
    cells = (chapter(notebook), as_markdown(claim.sentence), f"[{where}]({link})")
    same = (chapter(notebook), claim.sentence)
    seeds = "not counted"
    if count := next((count for count in waiting if (count.chapter, count.claim) == same), None):
        waiting.remove(count)
        seeds = f"{count.held} of {count.of}"
    if claim.timing:
        status, seeds = f"{status} (measured time)", "measured"
    elif claim.deterministic:
        seeds = "no draw"
    return f"| {' | '.join(cells)} | {status} | {seeds} |"


def chapter(notebook: Path) -> str:
    """What a notebook is called in a narrow column: the number of a chapter, else the first words."""
    return notebook.name[:2] if notebook.name[:2].isdigit() else notebook.stem.replace("_", " ")
