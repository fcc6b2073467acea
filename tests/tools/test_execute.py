"""What decides whether a notebook is executed again, and what of its outputs is compared."""

import json
import os
import subprocess
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import execute


class Inputs:
    """The four things that a notebook depends on, in a folder of their own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.notebook = folder / "notebooks" / "03_tokenization.ipynb"
        self.requirements = folder / "requirements.txt"
        self.package = folder / "chapters_src"
        cells = [new_markdown_cell("A question.", id="prose"), new_code_cell("1 + 1", id="code")]
        self.write("notebooks/03_tokenization.ipynb", nbformat.writes(new_notebook(cells=cells)))
        self.write("requirements.txt", "numpy==2.4.6\n")
        self.write("chapters_src/__init__.py", '"""The package."""\n')
        self.write("chapters_src/data/words.txt", "one\ntwo\n")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def edit_notebook(self, cell: int, source: str) -> None:
        notebook = nbformat.read(self.notebook, 4)
        notebook.cells[cell].source = source
        nbformat.write(notebook, self.notebook)

    def key(self) -> str:
        return execute.key(self.notebook, self.requirements, self.package)


@pytest.fixture
def inputs(tmp_path, monkeypatch) -> Inputs:
    monkeypatch.delenv("BOOK_RESOURCES", raising=False)
    return Inputs(tmp_path / "book")


CHANGES = {
    "prose": lambda inputs: inputs.edit_notebook(0, "Another question."),
    "code": lambda inputs: inputs.edit_notebook(1, "1 + 2"),
    "helper code": lambda inputs: inputs.write("chapters_src/__init__.py", '"""The same package."""\n'),
    "a new module": lambda inputs: inputs.write("chapters_src/more.py", ""),
    "a module moved": lambda inputs: (inputs.package / "__init__.py").rename(
        inputs.package / "data" / "__init__.py"
    ),
    "a data file of the package": lambda inputs: inputs.write("chapters_src/data/words.txt", "one\n"),
    "a removed data file": lambda inputs: (inputs.package / "data" / "words.txt").unlink(),
    "requirements": lambda inputs: inputs.write("requirements.txt", "numpy==2.4.7\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_key_changes_with(change, inputs):
    before = inputs.key()
    CHANGES[change](inputs)
    assert inputs.key() != before


def test_key_changes_with_the_choice_of_resources(inputs, monkeypatch):
    before = inputs.key()
    monkeypatch.setenv("BOOK_RESOURCES", "full")
    assert inputs.key() != before
    assert inputs.key() == execute.key(inputs.notebook, inputs.requirements, inputs.package, resources="full")
    monkeypatch.setenv("BOOK_RESOURCES", "embedded")
    assert inputs.key() == before


OTHER_FILES = [
    "book/index.md",
    "notebooks/04_feature_extraction.ipynb",
    "pyproject.toml",
    "_toc.yml",
    "tests/test_x.py",
    "tools/render.py",
    "chapters_src/__pycache__/x.cpython-311.pyc",
    "chapters_src/data/__pycache__/y.cpython-311.pyc",
]


@pytest.mark.parametrize("name", OTHER_FILES)
def test_key_does_not_depend_on(name, inputs):
    before = inputs.key()
    inputs.write(name, "changed")
    assert inputs.key() == before


def test_key_does_not_depend_on_time_or_place(inputs, tmp_path):
    before = inputs.key()
    os.utime(inputs.notebook, (0, 0))
    assert inputs.key() == before
    assert Inputs(tmp_path / "another" / "clone").key() == before


def test_record_of_an_execution(tmp_path):
    notebook = Path("notebooks/03_tokenization.ipynb")
    path = tmp_path / "03_tokenization.json"
    assert execute.record(notebook, tmp_path) is None
    path.write_text('{"key": "half a rec')
    assert execute.record(notebook, tmp_path) is None
    path.write_text(json.dumps({"key": "abc", "seconds": 1.5}))
    assert execute.record(notebook, tmp_path) == {"key": "abc", "seconds": 1.5}


def test_executed_copies_of_removed_notebooks_go_away(inputs, tmp_path, monkeypatch):
    executed = tmp_path / "executed"
    executed.mkdir()
    (executed / "99_removed.ipynb").write_text("{}")
    (executed / "99_removed.json").write_text("{}")
    kept = [executed / "03_tokenization.ipynb", executed / "03_tokenization.json"]
    kept[0].write_bytes(inputs.notebook.read_bytes())
    key = execute.key(inputs.notebook, inputs.requirements)  # execute_changed looks at the real package
    kept[1].write_text(json.dumps({"key": key, "seconds": 1}))
    monkeypatch.setattr(execute, "notebooks", lambda: [inputs.notebook])
    said = []
    assert execute.execute_changed(inputs.requirements, executed, say=said.append) == []
    assert sorted(executed.iterdir()) == kept
    assert said == ["notebooks: nothing changed, nothing executed"]


def test_a_notebook_with_more_threads_runs_alone(inputs, tmp_path, monkeypatch):
    sources = {
        "01": 'device = setup("01")',
        "02": 'device = setup("02", threads=2)',
        "03": 'device = setup("03")',
    }
    paths = []
    for name, source in sources.items():
        paths.append(tmp_path / f"{name}.ipynb")
        nbformat.write(new_notebook(cells=[new_code_cell(source)]), paths[-1])
    running, seen = set(), {}

    def run(notebook, wanted, folder):
        running.add(notebook.stem)
        time.sleep(0.2)
        seen[notebook.stem] = set(running)
        running.remove(notebook.stem)
        return 0.2, ""

    monkeypatch.setattr(execute, "notebooks", lambda: paths)
    monkeypatch.setattr(execute, "_execute", run)
    names = execute.execute_changed(inputs.requirements, tmp_path / "executed", say=lambda _: None)
    assert names == ["01", "02", "03"]
    assert seen["02"] == {"02"} and {"01", "03"} in seen.values()


def executed_notebook(tmp_path: Path, *cells) -> Path:
    path = tmp_path / "executed.ipynb"
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


def test_text_outputs_are_what_a_cell_prints_or_returns(tmp_path):
    picture = {"text/plain": "<Figure>", "image/png": "iVBORw0KGgo="}
    path = executed_notebook(
        tmp_path,
        new_markdown_cell("prose"),
        new_code_cell("a", outputs=[new_output("stream", name="stdout", text="one\n")]),
        new_code_cell(
            "b", outputs=[new_output("execute_result", {"text/plain": "2", "text/html": "<b>2</b>"})]
        ),
        new_code_cell("c", outputs=[new_output("display_data", picture)]),
        new_code_cell("d"),
    )
    texts = [set(cell) for cell in execute.text_outputs(path)]
    assert texts == [{"one\n"}, {"2", "<b>2</b>"}, {"<Figure>"}, set()]


def test_text_outputs_leave_out_what_may_differ(tmp_path):
    def view(number):
        name = f"bertviz-{number:032x}"
        html = f'<div id="{name}">he</div>'
        return new_output("display_data", {"text/html": html, "application/javascript": f'draw("{name}")'})

    def outputs(number, word="he"):
        time = new_output("stream", text=f"{number} s")
        cells = [
            new_code_cell("slow()", metadata={"tags": ["timing"]}, outputs=[time]),
            new_code_cell("head_view()", outputs=[view(number)]),
            new_code_cell("word", outputs=[new_output("stream", text=word)]),
        ]
        return execute.text_outputs(executed_notebook(tmp_path, *cells))

    assert outputs(7) == outputs(2**127)
    assert outputs(7) != outputs(7, word="she")
    assert len(outputs(7)) == 2


def test_a_print_that_arrives_in_two_parts_is_one_text(tmp_path):
    def written(name: str, *parts: str) -> Path:
        outputs = [nbformat.v4.new_output("stream", name="stdout", text=part) for part in parts]
        cell = nbformat.v4.new_code_cell("print(1)", outputs=outputs)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / name)
        return tmp_path / name

    whole, split = written("whole.ipynb", "a\nb\n"), written("split.ipynb", "a\n", "b\n")
    assert execute.text_outputs(whole) == execute.text_outputs(split) == [["a\nb\n"]]
    assert execute.text_outputs(written("other.ipynb", "a\n", "c\n")) != execute.text_outputs(whole)


@pytest.mark.parametrize("choice", [None, "embedded", "full"])
def test_full_resources_have_hours(choice, tmp_path, monkeypatch):
    """Only then may a cell take longer than any of the book does."""
    commands = []
    monkeypatch.setattr(execute.subprocess, "run", lambda command, **_: commands.append(command) or FAILED)
    monkeypatch.setattr(execute, "WORK", tmp_path / "work")
    monkeypatch.setenv("BOOK_RESOURCES", choice) if choice else monkeypatch.delenv("BOOK_RESOURCES", False)
    notebook = executed_notebook(tmp_path, new_code_cell("1 + 1"))
    execute._execute(notebook, "key", tmp_path / "executed")
    (seconds,) = [int(option.split("=")[1]) for option in commands[0] if "nbmake-timeout" in option]
    assert seconds >= 3600 if choice == "full" else seconds == 600


FAILED = subprocess.CompletedProcess([], 1, "")
