"""What the executed notebooks hold, which is what the site shows, and what a second execution gives."""

import difflib
import functools
import os
import re
import warnings
from itertools import zip_longest
from pathlib import Path

import nbformat
import pytest

import execute
import inputs
import training_step
from chapters_src.notebook import _MEASURED_HERE
from paths import BUILD, EXECUTED, ROOT, notebooks
from website.claims import SEEDS_TABLE, chapter, claims_of, read_counts

pytestmark = pytest.mark.slow  # `make test` runs these after it has executed the notebooks
every_notebook = pytest.mark.parametrize("notebook", notebooks(), ids=lambda path: path.stem)

# Seconds of both cores of the computer that the limits are written for, see tools/training_step.py. Where a
# training step took longer when a notebook was executed, it may take longer in proportion.
SECONDS = {"04": 45} | dict.fromkeys(("05", "09", "12", "14", "15", "16"), 140)  # every other notebook:
OTHER_SECONDS = 60
ALL_SECONDS = 15 * 60  # for all notebooks together
MEMORY = 6 << 30  # bytes, of one process
REQUIREMENTS = Path(os.environ.get("BOOK_REQUIREMENTS", ROOT / "requirements.txt"))
PICTURES = {"image/png", "image/jpeg", "image/svg+xml"}


@functools.cache
def read(path: Path) -> nbformat.NotebookNode:
    """A notebook, which no test changes."""
    return nbformat.read(path, 4)


@pytest.fixture
def executed(notebook, absent) -> nbformat.NotebookNode:
    """The executed copy of a notebook."""
    path = EXECUTED / notebook.name
    if not path.exists():
        absent(f"{notebook.name} was not executed: run python tools/book.py book first")
    return read(path)


def outputs(executed: nbformat.NotebookNode):
    """Every output, with its cell."""
    return [(cell, out) for cell in executed.cells if cell.cell_type == "code" for out in cell.outputs]


@every_notebook
def test_is_what_the_repository_holds(notebook, executed):
    committed = nbformat.read(notebook, 4)
    assert [(cell.id, cell.source) for cell in executed.cells] == [
        (cell.id, cell.source) for cell in committed.cells
    ]
    skipped = [
        cell.id for cell in executed.cells if cell.cell_type == "code" and cell.execution_count is None
    ]
    assert [cell.id for cell in executed.cells if cell.id in skipped and cell.source.strip()] == []
    assert execute.record(notebook)["key"] == inputs.key(notebook, REQUIREMENTS), (
        f"something that it depends on changed since: run python tools/book.py book --only {notebook.stem}"
    )


@pytest.fixture
def record(notebook, executed) -> dict:
    """What is known of the execution."""
    return execute.record(notebook)


def seconds_there(record: dict) -> float:
    """What a notebook takes on the computer that the limits are written for."""
    slowness = max(1.0, record["step_seconds"] / training_step.REFERENCE)
    return record["processor_seconds"] / 2 / slowness


@every_notebook
def test_ran_within_its_budget(notebook, record):
    seconds, most = seconds_there(record), SECONDS.get(notebook.name[:2], OTHER_SECONDS)
    assert seconds <= most, f"{seconds:.0f} s, at most {most} (CONTRIBUTING.md, Limits): {record}"


@every_notebook
def test_took_no_more_memory_than_promised(notebook, record):
    assert 0 < record["memory"] <= MEMORY, record


@every_notebook
def test_asked_for_no_other_host(notebook, record):
    if os.environ.get("BOOK_RESOURCES") == "full":
        pytest.skip("full resources are on the Hub")
    assert record["network"] == []


def test_all_together_are_within_the_budget(absent):
    records = {notebook.stem: execute.record(notebook) for notebook in notebooks()}
    if None in records.values():
        absent("not every notebook was executed: run python tools/book.py book first")
    total = sum(map(seconds_there, records.values()))
    assert total <= ALL_SECONDS, f"{total:.0f} s, at most {ALL_SECONDS} (CONTRIBUTING.md, Limits): {records}"


@every_notebook
def test_each_claim_is_in_the_table_of_seeds_and_nothing_else(notebook, executed):
    """In the order of the page; of no seeds if it depends on no draw or on measured time."""
    printed = [(claim.sentence, claim.deterministic or claim.timing) for claim in claims_of(executed)]
    of_chapter = [count for count in read_counts(SEEDS_TABLE) if count.chapter == chapter(notebook)]
    counted = [(count.claim, count.of == 0) for count in of_chapter]
    assert printed == counted, f"run python tools/book.py seeds --only {notebook.stem}"


@every_notebook
def test_shows_no_false_claim(notebook, executed):
    false = [line for _, out in outputs(executed) for line in re.findall(r"✗.*", out.get("text", ""))]
    elsewhere = REQUIREMENTS != ROOT / "requirements.txt" or os.environ.get("BOOK_RESOURCES") == "full"
    # With other versions or resources results may differ, times always may, and somebody should know.
    may_be = [line for line in false if elsewhere or f"({_MEASURED_HERE})" in line]
    for line in may_be:
        warnings.warn(f"{notebook.stem}: {line}", stacklevel=1)
    assert [line for line in false if line not in may_be] == []


@every_notebook
def test_checks_call_the_solutions_right_and_starters_no_answer(notebook, executed):
    for cell in executed.cells:
        if cell.cell_type == "code" and (number := re.search(r'\bcheck\(\s*"(\d+\.\d+)"', cell.source)):
            printed = "".join(out.text for out in cell.outputs if out.get("name") == "stdout")
            if cell.source.startswith("# @title Solution"):
                assert f"\n{number[1]}: right." in f"\n{printed}", printed
            else:
                assert printed == f"{number[1]}: nothing to check yet\n"


@every_notebook
def test_shows_no_error_and_nothing_from_the_error_stream(notebook, executed):
    assert [(cell.id, out) for cell, out in outputs(executed) if out.output_type == "error"] == []
    assert [(cell.id, out.text) for cell, out in outputs(executed) if out.get("name") == "stderr"] == []


@every_notebook
def test_shows_no_address_of_an_object(notebook, executed):
    texts = [text for cell in execute.text_outputs(EXECUTED / notebook.name) for text in cell]
    assert [found for text in texts for found in re.findall(r".{0,60}\b0x[0-9a-f]{9,}.{0,20}", text)] == []


@every_notebook
def test_holds_no_widgets(notebook, executed):
    """They would show nothing on the site, or ask another host for their code."""
    assert "widgets" not in executed.metadata
    kinds = {kind for _, out in outputs(executed) for kind in out.get("data", {})}
    assert [kind for kind in kinds if "widget" in kind] == []


@every_notebook
def test_every_picture_has_a_caption_and_an_alternative_text(notebook, executed):
    wrong = []
    for cell in {
        cell.id: cell for cell, out in outputs(executed) if PICTURES & set(out.get("data", {}))
    }.values():
        about = cell.metadata.get("mystnb", {})
        alt, caption = about.get("image", {}).get("alt", ""), about.get("figure", {}).get("caption", "")
        if len(alt) < 20 or len(caption) < 10:
            wrong.append(f"{cell.id}: alternative text {alt!r}, caption {caption!r}")
    assert wrong == []


@every_notebook
def test_no_line_of_a_drawing_vanishes_on_light_or_dark_pages(notebook, executed):
    drawings = [
        out.data["image/svg+xml"] for _, out in outputs(executed) if "image/svg+xml" in out.get("data", {})
    ]
    colors = {color for drawing in drawings for color in re.findall(r"stroke: (#[0-9a-f]{6})", drawing)}
    assert colors & {"#000000", "#ffffff"} == set(), "use plots.INK and plots.PANEL"


@pytest.fixture(scope="session")
def executed_again(absent) -> Path:
    """All notebooks, executed a second time with the same inputs."""
    folder = BUILD / "executed_again"
    if not EXECUTED.exists():
        absent("nothing was executed a first time: run python tools/book.py book first")
    execute.execute_changed(REQUIREMENTS, folder=folder)
    return folder


@pytest.mark.full
@every_notebook
def test_a_second_execution_gives_the_same_text(notebook, executed, executed_again):
    """Only cells with the tag `timing` may print something else."""
    first = execute.text_outputs(EXECUTED / notebook.name)
    second = execute.text_outputs(executed_again / notebook.name)
    differences = []
    for one, other in zip_longest(first, second, fillvalue=[]):
        lines = ["\n".join(texts).splitlines() for texts in (one, other)]
        differences += difflib.unified_diff(*lines, "first execution", "second execution", lineterm="", n=1)
    assert not differences, "\n" + "\n".join(line[:300] for line in differences)
