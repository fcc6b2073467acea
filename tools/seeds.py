"""Count at how many seeds each claim holds: `make seeds`.

    notebooks/*.ipynb --BOOK_SEED=1, 2, 3--> build/seeds/1, 2, 3 --and build/executed--> benchmarks/seeds.csv

The published book, whose BOOK_SEED is 0, is the fourth seed and supplies the sentences. Claims at two seeds
are the same if the same cell prints them, in the same place among its claims: sentences may contain numbers.
"""

import csv
import io
import json
import os
import platform
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import nbformat

import execute
from paths import BUILD, EXECUTED, ROOT, notebooks
from website.claims import SEEDS_TABLE as TABLE
from website.claims import Claim, Count, chapter, claims_of, read_counts

SEEDS = (1, 2, 3)  # besides 0, the published book
FOLDER = BUILD / "seeds"
VERSIONS = TABLE.with_suffix(".json")  # by chapter: with which versions its claims were counted
KNOWN = ROOT / "benchmarks" / "seeds_known.csv"  # claims that are known not to hold at every seed
PACKAGES = ("gensim", "numpy", "scikit-learn", "torch", "transformers", "umap-learn")


class NotPublished(Exception):
    """The published book, which supplies the sentences, is not there or not of today."""


def count(requirements: Path, only: Collection[str] = (), say: Callable = print) -> list[str]:
    """Execute what changed at each seed, then write the table.

    Args:
        requirements: the pins in use.
        only: beginnings of names, such as "05"; the rows of all other notebooks stay.
        say: where progress goes.

    Returns:
        What is wrong, each a line or more: a notebook that failed, a claim that does not hold at each seed
        and is not known for it, a known one that holds, and a deterministic one in a cell that does not print
        the same at each.

    Raises:
        NotPublished: the executed copy of a notebook is not of today.
        UnknownNotebook: there is none with one of the beginnings.
    """
    chosen = execute.chosen(only)
    with _book(0):
        stale = [n.stem for n in chosen if not execute.is_current(n, requirements, EXECUTED)]
    if stale:
        raise NotPublished(f"executed copies of {', '.join(stale)} are not of today: run `make book` first")
    problems = []
    folders: dict[Path, list[Path]] = {notebook: [EXECUTED] for notebook in chosen}
    for seed in SEEDS:
        say(f"BOOK_SEED={seed}")
        with _book(seed):
            try:
                execute.execute_changed(requirements, FOLDER / str(seed), only, say)
            except execute.NotebookFailed as failed:
                problems.append(f"BOOK_SEED={seed}: {failed}")
            for notebook in chosen:
                if execute.is_current(notebook, requirements, FOLDER / str(seed)):
                    folders[notebook].append(FOLDER / str(seed))
    return problems + write_table(folders)


def write_table(folders: dict[Path, list[Path]]) -> list[str]:
    """Write the table and its versions, each in one step; the rows of other notebooks stay.

    Args:
        folders: where the executed copies of each notebook lie, the published one first.

    Returns:
        What is wrong with the counts, one line each.
    """
    problems, counts = [], {chapter(notebook): [] for notebook in notebooks()}
    for former in read_counts(TABLE):
        counts.setdefault(former.chapter, []).append(former)
    versions = json.loads(VERSIONS.read_text(encoding="utf-8")) if VERSIONS.exists() else {}
    for notebook, places in folders.items():
        name, copies = chapter(notebook), [nbformat.read(place / notebook.name, 4) for place in places]
        counts[name], found = _counts(name, copies)
        versions[name] = _versions()
        problems += found + _surprises(name, counts[name])
    in_the_book = [chapter(notebook) for notebook in notebooks()]
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerows([Count._fields, *(row for name in in_the_book for row in counts[name])])
    _write(TABLE, rows.getvalue())
    versions = {name: versions[name] for name in in_the_book if name in versions}
    _write(VERSIONS, json.dumps(versions, indent=1) + "\n")
    return problems


def _surprises(name: str, counts: list[Count]) -> list[str]:
    """How the counts of a chapter differ from what is known."""
    failing = {count.claim for count in counts if count.held < count.of}
    known = {claim for chapter, claim in known_claims() if chapter == name}
    return [
        *(f"{name}: does not hold at every seed: {claim}" for claim in sorted(failing - known)),
        *(
            f"{name}: is on {KNOWN.name}, but holds at every seed: {claim}"
            for claim in sorted(known - failing)
        ),
    ]


def known_claims() -> set[tuple[str, str]]:
    """The chapter and sentence of each claim that is known not to hold at every seed."""
    with KNOWN.open(encoding="utf-8", newline="") as lines:
        return {(row["chapter"], row["claim"]) for row in csv.DictReader(lines)}


def _counts(name: str, copies: list[nbformat.NotebookNode]) -> tuple[list[Count], list[str]]:
    """The rows of one notebook, and what is wrong with them."""
    published, *others = [_by_cell(copy) for copy in copies]
    rows, problems = [], []
    for cell, claims in published.items():
        same_cells = [other.get(cell, []) for other in others]
        for place, claim in enumerate(claims):
            if claim.timing or claim.deterministic:
                rows.append(Count(name, claim.sentence, 0, 0))
                continue
            came_out = [claim, *(found[place] for found in same_cells if place < len(found))]
            held = sum(not each.reason for each in came_out)
            rows.append(Count(name, claim.sentence, held, len(copies)))
        if any(len(found) != len(claims) for found in same_cells):
            numbers = [len(found) for found in same_cells]
            problems.append(f"{name}, cell {cell}: prints {len(claims)} claims, at the other seeds {numbers}")
    return rows, problems + _changed(name, copies)


def _by_cell(executed: nbformat.NotebookNode) -> dict[str, list[Claim]]:
    found: dict[str, list[Claim]] = {}
    for claim in claims_of(executed):
        found.setdefault(claim.cell, []).append(claim)
    return found


def _changed(name: str, copies: list[nbformat.NotebookNode]) -> list[str]:
    """Cells with a deterministic claim that do not print the same at each seed."""
    published, *others = [{c.id: c for c in copy.cells if c.cell_type == "code"} for copy in copies]
    cells = {claim.cell for claim in claims_of(copies[0]) if claim.deterministic}
    return [
        f"{name}, cell {cell}: has a deterministic claim, but does not print the same at each seed"
        for cell, first in published.items()
        if cell in cells and any(execute.texts_of(first) != execute.texts_of(other[cell]) for other in others)
    ]


@contextmanager
def _book(number: int) -> Iterator[None]:
    """Choose a book by its BOOK_SEED, and put back afterwards what was chosen."""
    before = os.environ.get("BOOK_SEED")
    os.environ["BOOK_SEED"] = str(number)
    try:
        yield
    finally:
        if before is None:
            del os.environ["BOOK_SEED"]
        else:
            os.environ["BOOK_SEED"] = before


def _versions() -> str:
    packages = (f"{package} {metadata.version(package)}" for package in PACKAGES)
    return ", ".join((f"Python {platform.python_version()}", *packages))


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8", newline="")
    partial.replace(path)
