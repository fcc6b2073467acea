"""What decides whether a notebook is executed again: which files it depends on, and what else."""

import os
import platform
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import inputs
from paths import PACKAGE, notebooks

CODE = """\
%matplotlib inline
from chapters_src.notebook import setup
from chapters_src.rooms import kitchen
"""
FILES = {
    "requirements.txt": "numpy==2.4.6 \\\n    --hash=sha256:00\n",
    "chapters_src/__init__.py": '"""The package."""\n',
    "chapters_src/notebook.py": "from chapters_src import resources\n",
    "chapters_src/resources/__init__.py": 'NAMES = "registry.toml"\n',
    "chapters_src/resources/registry.toml": 'names = ["emotions", "chapters_src.rooms.attic.load()"]\n',
    "chapters_src/rooms/__init__.py": "",
    "chapters_src/rooms/kitchen.py": "from . import cellar\ndef cook():\n    from ..tools.knife import cut\n",
    "chapters_src/rooms/cellar.py": "",
    "chapters_src/rooms/attic.py": "",
    "chapters_src/tools/__init__.py": "",
    "chapters_src/tools/knife.py": 'PROGRAM = "chapters_src.tools.whetstone"\n',
    "chapters_src/tools/whetstone.py": 'LIST = data_set("corners")\n',
    "chapters_src/exercises/__init__.py": "from chapters_src.exercises import checking\n",
    "chapters_src/exercises/checking.py": "",
    "chapters_src/exercises/chapter_03.py": "from chapters_src.rooms import cellar\n",
    "chapters_src/exercises/chapter_13.py": "from chapters_src.rooms import attic\n",
    "chapters_src/data/corners/train.csv": "one\n",
    "chapters_src/data/emotions/train.csv": "one\n",
    "chapters_src/records/letters.json": "{}\n",
    "chapters_src/weights/language-model.safetensors": "00\n",
}


class Inputs:
    """What a notebook depends on, and what it does not, in a folder of their own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.notebook = folder / "notebooks" / "03_tokenization.ipynb"
        self.requirements = folder / "requirements.txt"
        self.package = folder / "chapters_src"
        cells = [new_markdown_cell("A question about emotions.", id="prose"), new_code_cell(CODE, id="code")]
        self.write("notebooks/03_tokenization.ipynb", nbformat.writes(new_notebook(cells=cells)))
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def edit_notebook(self, cell: int, source: str) -> None:
        notebook = nbformat.read(self.notebook, 4)
        notebook.cells[cell].source = source
        nbformat.write(notebook, self.notebook)

    def key(self) -> str:
        return inputs.key(self.notebook, self.requirements, self.package)

    def closure(self) -> set[str]:
        found = inputs.closure(self.notebook, self.package)
        return {path.relative_to(self.package).as_posix() for path in found}


@pytest.fixture
def small(tmp_path, monkeypatch) -> Inputs:
    for name in inputs.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return Inputs(tmp_path / "book")


def test_closure_follows_imports_and_names(small):
    modules = {"__init__", "notebook", "resources/__init__", "rooms/__init__", "rooms/kitchen"}
    modules |= {"rooms/cellar", "tools/__init__", "tools/knife", "tools/whetstone"}
    data = {"data/corners/train.csv", "resources/registry.toml"}
    assert small.closure() == {f"{name}.py" for name in modules} | data


@pytest.mark.parametrize("call", ['check("3.1", 5)', 'check(\n    "3.12", f, tokenizer=g\n)'])
def test_closure_has_the_checks_of_the_chapter_and_of_no_other(small, call):
    before = small.closure()
    small.edit_notebook(1, f"{CODE}from chapters_src.exercises import check\n{call}\n")
    of_checks = {"exercises/__init__.py", "exercises/checking.py", "exercises/chapter_03.py"}
    assert small.closure() - before == of_checks


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import chapters_src.rooms.attic as a", "rooms/attic.py"),
        ("from chapters_src.rooms.attic import box", "rooms/attic.py"),
        ("if True:\n    !python -m x\n    from chapters_src.rooms import attic", "rooms/attic.py"),
        ('run(["-m", "chapters_src.rooms.attic"])', "rooms/attic.py"),
        ('data_set("emotions")', "data/emotions/train.csv"),
        ('checkpoint("language-model")', "weights/language-model.safetensors"),
        ('record("letters")', "records/letters.json"),
    ],
)
def test_closure_of_one_line(small, code, found):
    assert found not in small.closure()
    small.edit_notebook(1, code)
    assert found in small.closure()


def test_a_record_is_an_input_only_where_it_is_read(small):
    """Its name may be an everyday word."""
    small.edit_notebook(1, f"{CODE}letters = list('record')\n")
    assert "records/letters.json" not in small.closure()


def test_closure_of_the_books_own_notebooks():
    """Each depends on some modules and not on all: else a changed docstring would execute everything."""
    found = {
        path.name[:2]: {p.relative_to(PACKAGE).as_posix() for p in inputs.closure(path)}
        for path in notebooks()
    }
    every = {"__init__.py", "notebook.py", "plots/style.py", "resources/__init__.py"}
    for files in found.values():
        assert every | {"resources/registry.toml"} <= files
        assert len(files) < len([*inputs.visible_files(PACKAGE)])
    emotions = {"data/emotions/train.csv", "data/emotions/validation.csv", "data/emotions/test.csv"}
    assert emotions <= found["04"] and emotions <= found["05"]
    assert "tokenization/wordpiece.py" in found["03"] and "tokenization/wordpiece.py" not in found["08"]


CHANGES = {
    "code": lambda small: small.edit_notebook(1, "1 + 2"),
    "a module it imports": lambda small: small.write("chapters_src/notebook.py", "import re\n"),
    "a module that these import": lambda small: small.write("chapters_src/rooms/cellar.py", "x = 1\n"),
    "a data file": lambda small: small.write("chapters_src/data/corners/train.csv", "one\ntwo\n"),
    "a new data file": lambda small: small.write("chapters_src/data/corners/test.csv", ""),
    "a removed data file": lambda small: (small.package / "data/corners/train.csv").unlink(),
    "versions": lambda small: small.write("requirements.txt", "numpy==2.4.7\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_key_changes_with(change, small):
    before = small.key()
    CHANGES[change](small)
    assert small.key() != before


OTHERS = {
    "prose": lambda small: small.edit_notebook(0, "Another question, with `code`."),
    # A release may gain a file, for another system, without a new version.
    "hashes": lambda small: small.write("requirements.txt", "# new\nnumpy==2.4.6 \\\n    --hash=sha256:11\n"),
    "time": lambda small: os.utime(small.notebook, (0, 0)),
}
OTHER_FILES = [
    "book/index.md",
    "notebooks/04_feature_extraction.ipynb",
    "pyproject.toml",
    "_toc.yml",
    "tests/test_x.py",
    "tools/website/render.py",
    "chapters_src/rooms/attic.py",
    "chapters_src/rooms/garden.py",
    "chapters_src/data/emotions/train.csv",
    "chapters_src/.DS_Store",
    "chapters_src/data/corners/.DS_Store",
    "chapters_src/__pycache__/x.cpython-311.pyc",
    "chapters_src/data/__pycache__/corners.cpython-311.pyc",
]


OTHERS |= {name: lambda small, name=name: small.write(name, "changed = True\n") for name in OTHER_FILES}


@pytest.mark.parametrize("change", OTHERS)
def test_key_does_not_depend_on(change, small):
    before = small.key()
    OTHERS[change](small)
    assert small.key() == before


def test_key_does_not_depend_on_the_place(small, tmp_path):
    assert small.key() == Inputs(tmp_path / "another" / "clone").key()


CHOICES = [("BOOK_RESOURCES", "full"), ("BOOK_DEVICE", "cuda"), ("BOOK_SEED", "1")]


@pytest.mark.parametrize(("name", "value"), CHOICES)
def test_key_changes_with_a_choice(small, monkeypatch, name, value):
    before = small.key()
    monkeypatch.setenv(name, value)
    assert small.key() != before


def test_key_is_that_of_the_default_where_it_is_chosen_in_words(small, monkeypatch):
    before = small.key()
    monkeypatch.setenv("BOOK_RESOURCES", "embedded")
    monkeypatch.setenv("BOOK_DEVICE", "cpu")
    monkeypatch.setenv("BOOK_SEED", "0")
    assert small.key() == before


def test_key_changes_with_python_and_the_build_of_pytorch(small, monkeypatch):
    before = small.key()
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "version", lambda name: "2.13.0+cu130")
        assert small.key() != before
    with monkeypatch.context() as patch:
        patch.setattr(platform, "python_version", lambda: "3.13.0")
        assert small.key() != before
    assert small.key() == before
