"""What is laid out for Jupyter Book: notebooks with their links, source pages, and tables."""

from importlib import metadata
from pathlib import Path

import nbformat
import pytest
import yaml
from markdown_it import MarkdownIt
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import render


@pytest.fixture
def notebook(tmp_path, monkeypatch) -> Path:
    """An executed notebook with one Markdown and one code cell, and its record: 12.3 seconds."""
    executed = tmp_path / "executed"
    executed.mkdir()
    monkeypatch.setattr(render, "EXECUTED", executed)
    monkeypatch.setattr(
        render,
        "record",
        lambda notebook: {"key": "k", "seconds": 12.3, "processor_seconds": 9.8, "memory": 3 << 29},
    )
    return executed / "03_tokenization.ipynb"


def as_shown(notebook: Path, prose: str, code: str = "1 + 1") -> nbformat.NotebookNode:
    cells = [new_markdown_cell(prose), new_code_cell(code, metadata={"tags": ["hide-cell"]})]
    nbformat.write(new_notebook(cells=cells), notebook)
    target = notebook.parent.parent / "shown.ipynb"
    render._copy_executed(Path("notebooks") / notebook.name, target)
    return nbformat.read(target, 4)


LINKS = {
    "[`resources`](../chapters_src/resources.py)": "[`resources`](../source/resources.md)",
    "[pairs](../chapters_src/tokenization/byte_pair.py).": "[pairs](../source/tokenization-byte_pair.md).",
    "[all](../chapters_src/tokenization/__init__.py)": "[all](../source/tokenization.md)",
    "[a](../chapters_src/a.py) and [b](../chapters_src/b.py)": "[a](../source/a.md) and [b](../source/b.md)",
    "[`r/a.py`](../recipes/a.py), [card](../chapters_src/data/a.md)": "`r/a.py`, card",
    "[token](../book/glossary.md#token)": "[token](../book/glossary.md#token)",
    "`../chapters_src/resources.py`": "`../chapters_src/resources.py`",
    "[other](https://example.org/../chapters_src/resources.py)": (
        "[other](https://example.org/../chapters_src/resources.py)"
    ),
}


@pytest.mark.parametrize("link", LINKS)
def test_links_to_modules_become_links_to_source_pages(link, notebook):
    assert render.as_on_site(link) == LINKS[link]
    assert as_shown(notebook, link).cells[0].source == LINKS[link]


REPOSITORY = "https://github.com/{}/transformers-taken-apart"
COLAB = "https://colab.research.google.com/github/{}/transformers-taken-apart/blob/v0.1.0/notebooks/03.ipynb"
PAGE = (
    f"# Title\n\n[Open in Colab]({COLAB})\n\nSee [the issues]({REPOSITORY}/issues), or [no](https://a.org).\n"
)


@pytest.mark.parametrize("owner", ["OWNER", "someone"])
def test_what_leads_nowhere_without_an_address_is_not_shown(owner, notebook, monkeypatch):
    monkeypatch.setattr(render.address, "address", lambda: (REPOSITORY.format(owner), "v0.1.0"))
    page = PAGE.replace("{}", owner)
    settings = yaml.safe_load(render.configuration())
    if owner == "OWNER":
        assert render.as_on_site(page) == "# Title\n\nSee the issues, or [no](https://a.org).\n"
        assert settings.keys() & {"repository", "launch_buttons"} == set()
    else:
        assert render.as_on_site(page) == page
        assert settings["launch_buttons"]["colab_url"] and settings["repository"]["url"]
    assert settings["html"]["use_repository_button"] is (owner != "OWNER")
    assert as_shown(notebook, page).cells[0].source == render.as_on_site(page)


def test_both_times_are_filled_in(notebook):
    text = "**Running time** on two CPU cores: [measured at every build](../book/colophon.md#running-times)."
    shown = as_shown(notebook, text).cells[0].source
    assert shown == "**Reading time**: about 1 min. " + text.replace("cores: ", "cores: 12 s, ")


def test_code_and_metadata_of_an_executed_notebook_stay(notebook):
    code = f"# see [resources](../chapters_src/resources.py), {render.TIME_MARK}"
    shown = as_shown(notebook, "prose", code)
    original = nbformat.read(notebook, 4)
    assert shown == original


MODULES = {
    "__init__.py": '"""The package."""\n',
    "plain.py": '"""Plain code.\n\nSecond paragraph.\n"""\n\nx = 1\n',
    "fences.py": '"""Shows ````a fence```` and ``` too."""\n\nTEXT = """\n```{note}\n`````\n"""\n',
    "rooms/__init__.py": '"""Rooms."""\n',
    "rooms/kitchen.py": "y = 2\n",
}


@pytest.fixture
def source_pages(tmp_path, monkeypatch) -> tuple[Path, str]:
    """The folder of source pages of a small package, and the list of its modules."""
    package = tmp_path / "chapters_src"
    for name, text in MODULES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(render, "PACKAGE", package)
    modules = render.write_source_pages(tmp_path / "source")
    return tmp_path / "source", modules


PAGES = {
    "chapters_src.md": ("chapters_src", "__init__.py"),
    "plain.md": ("chapters_src.plain", "plain.py"),
    "fences.md": ("chapters_src.fences", "fences.py"),
    "rooms.md": ("chapters_src.rooms", "rooms/__init__.py"),
    "rooms-kitchen.md": ("chapters_src.rooms.kitchen", "rooms/kitchen.py"),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_source_page_holds_its_module_in_one_block(page, source_pages):
    name, module = PAGES[page]
    tokens = MarkdownIt().parse((source_pages[0] / page).read_text(encoding="utf-8"))
    assert tokens[1].content == f"`{name}`"
    fences = [token for token in tokens if token.type == "fence"]
    assert len(fences) == 1 and tokens[-1] is fences[0]
    assert MODULES[module].strip() in fences[0].content
    assert fences[0].info == "{code-block} python"


def test_the_list_of_modules_names_each_and_its_purpose(source_pages):
    _, modules = source_pages
    assert "- [`chapters_src.plain`](../source/plain.md): Plain code.\n" in modules
    assert "- [`chapters_src.rooms.kitchen`](../source/rooms-kitchen.md): \n" in modules
    assert modules.count(".md)") == len(PAGES)


def test_tables_of_versions_and_running_times(tmp_path, notebook, monkeypatch):
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Tokenization\n\nText.")]), notebook)
    monkeypatch.setattr(render, "notebooks", lambda: [notebook])
    render.write_tables(tmp_path / "generated")
    times = (tmp_path / "generated" / "running_times.md").read_text()
    assert "| [Tokenization](../notebooks/03_tokenization.ipynb) | 12 s | 10 s | 1.5 GiB |" in times
    versions = (tmp_path / "generated" / "versions.md").read_text()
    for package in ("torch", "jupyter-book", "nbmake"):
        assert f"| {package} | {metadata.version(package)} | " in versions
    assert "|  |" not in versions, "a package without a license"
