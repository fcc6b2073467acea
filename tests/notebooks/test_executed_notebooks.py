"""What the executed notebooks hold, which is what the site shows, and what a second execution gives."""

import difflib
import os
import re
import time
import warnings
from itertools import zip_longest
from pathlib import Path
from statistics import median

import nbformat
import pytest
import torch
from transformers import AutoModel

import execute
from chapters_src import resources
from paths import BUILD, EXECUTED, ROOT, notebooks

pytestmark = [
    pytest.mark.slow,  # `make test` runs these after it has executed the notebooks
    pytest.mark.parametrize("notebook", notebooks(), ids=lambda path: path.stem),
]

# The limits are for the computer they were set on. On one that takes longer over the same step of training,
# everything takes longer in proportion, and so may a notebook; on a faster one the limits stay.
SECONDS = {"05": 240, "09": 240, "12": 240, "14": 240}  # the chapters that train; every other notebook:
OTHER_SECONDS = 120
STEP_SECONDS = 0.33  # fine-tuning step of the encoder there: 32 messages of 24 tokens, two threads
REQUIREMENTS = Path(os.environ.get("BOOK_REQUIREMENTS", ROOT / "requirements.txt"))
PICTURES = {"image/png", "image/jpeg", "image/svg+xml"}


@pytest.fixture
def executed(notebook, absent) -> nbformat.NotebookNode:
    """The executed copy of a notebook."""
    path = EXECUTED / notebook.name
    if not path.exists():
        absent(f"{notebook.name} was not executed: run python tools/book.py book first")
    return nbformat.read(path, 4)


def outputs(executed: nbformat.NotebookNode):
    """Every output, with its cell."""
    return [(cell, out) for cell in executed.cells if cell.cell_type == "code" for out in cell.outputs]


def test_is_what_the_repository_holds(notebook, executed):
    committed = nbformat.read(notebook, 4)
    assert [(cell.id, cell.source) for cell in executed.cells] == [
        (cell.id, cell.source) for cell in committed.cells
    ]
    skipped = [
        cell.id for cell in executed.cells if cell.cell_type == "code" and cell.execution_count is None
    ]
    assert [cell.id for cell in executed.cells if cell.id in skipped and cell.source.strip()] == []


@pytest.fixture(scope="module")
def slowness() -> float:
    """How many times as long as there a training step takes here, now; at least 1."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    model = AutoModel.from_pretrained(resources.checkpoint("encoder")).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(1000, 20_000, (32, 24), generator=torch.Generator().manual_seed(0))
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        model(ids).last_hidden_state.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - start)
    torch.set_num_threads(threads)
    return max(1.0, median(seconds) / STEP_SECONDS)


def test_ran_within_its_budget(notebook, executed, slowness):
    limit = SECONDS.get(notebook.name[:2], OTHER_SECONDS) * slowness
    seconds = execute.record(notebook)["seconds"]
    print(f"{notebook.stem}: {seconds:.0f} of {limit:.0f} s, on a computer {slowness:.1f} times as slow")
    assert seconds <= limit


def test_shows_no_false_claim(notebook, executed):
    false = [line for _, out in outputs(executed) for line in re.findall(r"✗.*", out.get("text", ""))]
    if REQUIREMENTS != ROOT / "requirements.txt" or os.environ.get("BOOK_RESOURCES") == "full":
        for line in false:  # other versions, other resources: results may differ, and somebody should know
            warnings.warn(f"{notebook.stem}: {line}", stacklevel=1)
    else:
        assert false == []


def test_shows_no_error_and_nothing_from_the_error_stream(notebook, executed):
    assert [(cell.id, out) for cell, out in outputs(executed) if out.output_type == "error"] == []
    assert [(cell.id, out.text) for cell, out in outputs(executed) if out.get("name") == "stderr"] == []


def test_shows_no_address_of_an_object(notebook, executed):
    texts = [text for cell in execute.text_outputs(EXECUTED / notebook.name) for text in cell]
    assert [found for text in texts for found in re.findall(r".{0,60}\b0x[0-9a-f]{9,}.{0,20}", text)] == []


def test_holds_no_widgets(notebook, executed):
    """They would show nothing on the site, or ask another host for their code."""
    assert "widgets" not in executed.metadata
    kinds = {kind for _, out in outputs(executed) for kind in out.get("data", {})}
    assert [kind for kind in kinds if "widget" in kind] == []


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


def test_a_second_execution_gives_the_same_text(notebook, executed, executed_again):
    """Only cells with the tag `timing` may print something else."""
    first = execute.text_outputs(EXECUTED / notebook.name)
    second = execute.text_outputs(executed_again / notebook.name)
    differences = []
    for one, other in zip_longest(first, second, fillvalue=[]):
        lines = ["\n".join(texts).splitlines() for texts in (one, other)]
        differences += difflib.unified_diff(*lines, "first execution", "second execution", lineterm="", n=1)
    assert not differences, "\n" + "\n".join(line[:300] for line in differences)
