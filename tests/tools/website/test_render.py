"""What is laid out for Jupyter Book: notebooks with their links, and tables."""

from importlib import metadata
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from website import render


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
    "[`registry`](../chapters_src/resources/registry.py)": "[`registry`](../source/resources.md#registry)",
    "[pairs](../chapters_src/tokenization/byte_pair.py).": "[pairs](../source/tokenization.md#byte_pair).",
    "[all](../chapters_src/tokenization/__init__.py)": "[all](../source/tokenization.md)",
    "[a](../chapters_src/a.py) and [b](../chapters_src/b.py)": "[a](../source/a.md) and [b](../source/b.md)",
    "[`r/a.py`](../recipes/a.py), [card](../chapters_src/data/a.md)": "`r/a.py`, card",
    "[b](../benchmarks/b.py)": "b",
    "[model.js](_static/language_model/model.js)": "[model.js](../source/language_model_scripts.md)",
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


RUNNING = "**Running time** on two CPU cores: [measured at every build](../book/colophon.md#running-times)."


TASKS = "## Exercises\n\n**3.1 (warm-up, 45 min)** One.\n\n**3.2 (75 min)** Two."


@pytest.mark.parametrize(("tasks", "solving"), [(TASKS, "**Exercises**: 2 h. "), ("", "")])
def test_times_are_filled_in(notebook, tasks, solving):
    shown = as_shown(notebook, f"{RUNNING}\n\n{'word ' * 590}\n\n{tasks}").cells[0].source
    running = RUNNING.replace("cores: ", "cores: 12 s, ")
    assert shown.startswith(f"**Reading time**: 3 min. {solving}{running}")


def test_code_and_metadata_of_an_executed_notebook_stay(notebook):
    code = f"# see [resources](../chapters_src/resources.py), {render.TIME_MARK}"
    shown = as_shown(notebook, "prose", code)
    original = nbformat.read(notebook, 4)
    assert shown == original


def test_the_site_is_made_from_notebooks_that_were_not_executed_too(notebook, monkeypatch):
    """As after `book --only`. What a reader's own run left in a notebook is not on the site."""
    notebook.parent.rmdir()

    def key(prose: str, output: str = "") -> str:
        outputs = [new_output("stream", text=output)] if output else []
        cells = [new_markdown_cell(prose, id="a"), new_code_cell("1 + 1", id="b", outputs=outputs)]
        committed = notebook.parent.parent / notebook.name
        nbformat.write(new_notebook(cells=cells), committed)
        monkeypatch.setattr(render, "notebooks", lambda: [committed])
        return render._inputs_key()

    assert key("old") == key("old", "2") != key("new")


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
