"""The pipeline as a whole, through the real command line, in small copies of the book.

A copy has one page of prose, a colophon and two tiny notebooks; everything else is the book's own: tools,
package and configuration. It is built once. Each test takes a copy of that, changes something or plants a
fault, and looks at what the command did, what it said, and its exit code.

One hole of nbmake cannot be closed here: a cell with the tag `raises-exception` passes even if nothing is
raised. tests/notebooks forbids the tag; a chapter that shows an error catches it.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import address
import execute
import measure_run
from paths import NPM, ROOT

pytestmark = pytest.mark.slow

FOLDERS = ("tools", "chapters_src", "book/_static")
FILES = (
    "Makefile",
    "_config.yml",
    "pyproject.toml",
    "README.md",
    "CITATION.cff",
    "LICENSE",
)
TOC = """\
format: jb-book
root: book/index
chapters:
  - file: notebooks/one
  - file: notebooks/two
  - file: book/colophon
  - glob: source/*
"""
INDEX = """\
# A small book

The first notebook is [one](../notebooks/one.ipynb), and its end is [there](../notebooks/one.ipynb#the-end).

## A section

Math: $x^2$.
"""
COLOPHON = """\
# Colophon

## Running times

```{include} ../generated/running_times.md
```
"""
COLAB = f"{address.COLAB}OWNER/{address.NAME}/blob/v0/notebooks/one.ipynb"
ONE = (
    f"# One\n\n[Open in Colab]({COLAB})\n\n"
    "Running time: [measured at every build](../book/colophon.md#running-times).",
    '> print("one is executed")',
    "## The end\n\n[`notebook`](../chapters_src/notebook.py) states results.",
)
TWO = ("# Two", '> from chapters_src.notebook import claim\n\nclaim(2 > 1, "two is more than one")')


def _obey_ctrl_c() -> None:
    """In a script's background the signal is ignored, and what is started there inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Copy:
    """A copy of the book in a folder of its own, and its command line."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.site = folder / "build" / "html"
        self.executed = folder / "build" / "executed"

    def clone(self, folder: Path) -> "Copy":
        shutil.copytree(self.folder, folder, symlinks=True)
        return Copy(folder)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def append(self, name: str, text: str) -> None:
        with open(self.folder / name, "a", encoding="utf-8") as file:
            file.write(text)

    def write_notebook(self, name: str, cells: tuple[str, ...]) -> None:
        """Write a notebook; a cell that starts with `> ` is code."""
        made = [
            new_code_cell(text[2:], id=f"cell-{i}")
            if text.startswith("> ")
            else new_markdown_cell(text, id=f"cell-{i}")
            for i, text in enumerate(cells)
        ]
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        notebook = new_notebook(cells=made, metadata={"kernelspec": kernel})
        self.write(f"notebooks/{name}.ipynb", nbformat.writes(notebook) + "\n")

    def set_repository(self, repository: str) -> None:
        """Write the repository's address into pyproject.toml, and from there wherever it stands."""
        path = self.folder / "pyproject.toml"
        text = re.sub(r'(?m)^Repository = ".*"$', f'Repository = "{repository}"', path.read_text("utf-8"))
        path.write_text(text, encoding="utf-8")
        run = self.run("stamp")
        assert run.code == 0, run

    def keep_one_module(self) -> None:
        """Reduce the package to an empty module, which is checked in a moment."""
        shutil.rmtree(self.folder / "chapters_src")
        self.write("chapters_src/__init__.py", '"""The package."""\n')

    def run(self, *arguments: str, **environment: str) -> "Run":
        """Run `python tools/book.py COMMAND --here`, as somebody in a fresh shell would."""
        start = time.monotonic()
        process = self.start(*arguments, **environment)
        output, _ = process.communicate()
        output = re.sub(r"\x1b\[[\d;]*m", "", output)  # IPython colors its errors everywhere
        return Run(process.returncode, output, time.monotonic() - start)

    def start(self, command: str = "book", *options: str, **environment: str) -> subprocess.Popen:
        """Start what `run` runs."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BOOK_", "PYTEST_", "PYTHONPATH"))}
        return subprocess.Popen(
            [sys.executable, "tools/book.py", command, *options, "--here"],
            cwd=self.folder,
            env={**kept, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            start_new_session=True,
            preexec_fn=None if sys.platform == "win32" else _obey_ctrl_c,
        )

    def texts(self, name: str) -> list[list[str]]:
        return execute.text_outputs(self.executed / f"{name}.ipynb")

    def state(self) -> dict[str, bytes]:
        """Every file of the site, by its path."""
        return {
            str(path.relative_to(self.site)): path.read_bytes()
            for path in self.site.rglob("*")
            if path.is_file()
        }


class Run:
    """What a run of the command did."""

    def __init__(self, code: int, output: str, seconds: float):
        self.code, self.output, self.seconds = code, output, seconds
        self.executed = set(re.findall(r"(?m)^  done +(\w+) in", output))
        self.failed = set(re.findall(r"(?m)^  FAILED +(\w+) in", output))
        self.rendered = "site: rendering" in output

    def __repr__(self) -> str:
        return f"exit code {self.code} after {self.seconds:.1f} s\n{self.output}"


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Copy, Run]:
    """A small copy of the book, built once."""
    copy = Copy(tmp_path_factory.mktemp("small") / "book")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copyfile(ROOT / name, copy.folder / name)
    copy.write("tools/training_step.py", '"""The same everywhere, and at once."""\n\nprint(0.33)\n')
    pins = sorted({f"{found.name.lower()}=={found.version}" for found in metadata.distributions()})
    copy.write("requirements.txt", "\n".join(pins) + "\n")  # what is installed, so that claims have to hold
    copy.write("_toc.yml", TOC)
    copy.write("book/index.md", INDEX)
    copy.write("book/colophon.md", COLOPHON)
    copy.write("benchmarks/results.md", "# Speed\n")
    copy.write_notebook("one", ONE)
    copy.write_notebook("two", TWO)
    copy.set_repository(address.PLACEHOLDER)
    if (NPM / "installed").exists():  # else npm is asked, as in a fresh clone
        (copy.folder / "build").mkdir()
        (copy.folder / "build" / "npm").symlink_to(NPM)
    return copy, copy.run()


@pytest.fixture
def copy(built, tmp_path) -> Copy:
    original, run = built
    assert run.code == 0, run
    return original.clone(tmp_path / "book")


def test_a_first_run_executes_everything_and_renders_the_site(built):
    copy, run = built
    assert run.code == 0, run
    assert run.executed == {"one", "two"} and run.rendered
    assert copy.texts("one") == [["one is executed\n"]]
    assert copy.texts("two") == [["✓ two is more than one\n"]]
    assert "build/html/index.html" in run.output
    page = (copy.site / "notebooks" / "one.html").read_text(encoding="utf-8")
    assert "one is executed" in page
    assert 'href="../source/notebook.html"' in page
    assert re.search(r"Running time: \d+ s, <a", page)


def links(page: Path) -> str:
    """Every address that a page has a link, a button or a form for."""
    return "\n".join(re.findall(r'(?:href|action)="([^"]+)"', page.read_text(encoding="utf-8")))


def test_the_site_leads_to_the_repository_once_it_has_an_address(copy):
    """And to Colab: in the text and with a button. Before, nothing leads to an account called OWNER."""
    for page in copy.site.rglob("*.html"):
        assert "OWNER" not in links(page) and "colab" not in links(page), page
    repository = address.PLACEHOLDER.replace("OWNER", "an-account")
    copy.set_repository(repository)
    run = copy.run()
    assert run.code == 0, run
    found = links(copy.site / "notebooks" / "one.html").splitlines()
    assert [link for link in found if link == repository] != []
    colab = [link for link in found if link.startswith(f"{address.COLAB}an-account/{address.NAME}/blob/v")]
    assert len(colab) == 2, "one in the text, one button"


def test_a_second_run_does_nothing_and_is_fast(copy):
    before = copy.state()
    run = copy.run()
    assert run.code == 0, run
    assert run.executed == set() and not run.rendered
    assert run.seconds <= 10, run
    assert copy.state() == before


def test_changed_prose_is_rendered_and_not_executed(copy):
    """And a directive that does not exist fails the command, while the former site stays."""
    before = copy.state()
    copy.write_notebook("one", ("# One, with another title", *ONE[1:]))
    copy.append("book/index.md", "\n```{notte}\nA directive that does not exist.\n```\n")
    run = copy.run()
    assert run.executed == set() and run.rendered
    assert run.code != 0 and "Unknown directive type: 'notte'" in run.output, run
    assert copy.state() == before
    again = copy.run()
    assert again.code != 0, "a second run must not take the failed one for done"
    assert again.executed == set()


def test_changed_helper_code_executes_what_imports_it(copy):
    """And a link to a page that does not exist fails the command."""
    copy.append("chapters_src/notebook.py", "\n# A changed line.\n")
    copy.append("chapters_src/evaluation/intervals.py", "\n# Nobody here imports this.\n")
    copy.append("book/index.md", "\n[nowhere](glosary.md)\n")
    run = copy.run()
    assert run.executed == {"two"}
    assert run.code != 0 and "glosary.md" in run.output, run


def test_changed_requirements_execute_everything(copy):
    """And a link to an anchor that does not exist, in a page, fails the command."""
    copy.append("requirements.txt", "one-more-package==1.0\n")
    copy.append("book/index.md", "\n[nowhere](colophon.md#walking-times)\n")
    run = copy.run()
    assert run.executed == {"one", "two"}
    assert run.code != 0 and "walking-times" in run.output, run


def test_other_resources_execute_everything(copy):
    """And a false claim is none of the build's business with full resources, where results may differ."""
    copy.write_notebook("two", (TWO[0], TWO[1].replace("2 > 1", "2 > 3")))
    run = copy.run(BOOK_RESOURCES="full")
    assert run.executed == {"one", "two"} and run.rendered
    assert run.code == 0, run
    assert "came out otherwise" in copy.texts("two")[0][0]


def test_a_changed_page_renders_the_site_and_executes_nothing(copy):
    copy.append("book/index.md", "\nOne more sentence.\n")
    run = copy.run()
    assert run.code == 0, run
    assert run.executed == set() and run.rendered
    assert "One more sentence." in (copy.site / "book" / "index.html").read_text(encoding="utf-8")


def test_a_link_from_a_notebook_to_a_missing_anchor_fails(copy):
    copy.write_notebook("one", (*ONE, "[nowhere](../book/index.md#another-section)"))
    run = copy.run()
    assert run.executed == set() and run.rendered
    assert run.code != 0 and "another-section" in run.output, run


def test_a_failing_cell_fails_and_keeps_what_is_good(copy):
    """The former site and the former copy of the failed notebook stay; the other notebook is finished."""
    before, former = copy.state(), copy.texts("two")
    copy.write_notebook("one", (*ONE, '> print("one is changed")'))
    copy.write_notebook("two", (*TWO, '> kettle = {}\nkettle["water"]'))
    run = copy.run()
    assert run.code != 0 and "KeyError: 'water'" in run.output, run
    assert run.executed == {"one"} and run.failed == {"two"} and not run.rendered
    assert copy.state() == before
    assert copy.texts("two") == former
    assert copy.texts("one")[-1] == ["one is changed\n"]
    again = copy.run()
    assert again.code != 0 and again.failed == {"two"} and again.executed == set(), again


def test_a_false_claim_fails(copy):
    copy.write_notebook("two", (TWO[0], TWO[1].replace("2 > 1", "2 > 3")))
    run = copy.run()
    assert run.code != 0 and run.failed == {"two"} and not run.rendered
    assert "ClaimFailed" in run.output and "this did not hold: two is more than one" in run.output, run
    assert "CONTRIBUTING.md, How claims are tested" in run.output, run


def test_a_notebook_that_stops_its_kernel_fails(copy):
    copy.write_notebook("two", (*TWO, "> import os\n\nos._exit(0)"))
    run = copy.run()
    assert run.code != 0 and run.failed == {"two"}, run


def test_what_a_system_leaves_in_folders_changes_nothing(copy):
    for folder in ("chapters_src", "chapters_src/data", "book", "tools", "build/executed"):
        copy.write(f"{folder}/.DS_Store", "left by a file manager")
    run = copy.run()
    assert run.code == 0 and run.executed == set() and not run.rendered, run


def test_only_one_notebook(copy):
    """The other one changed too, and stays as it was executed last."""
    copy.write_notebook("one", (*ONE, '> print("changed")'))
    copy.write_notebook("two", (*TWO, '> print("changed")'))
    run = copy.run("book", "--only", "two")
    assert run.code == 0 and run.executed == {"two"} and run.rendered, run
    assert [text for cell in copy.texts("one") for text in cell] == ["one is executed\n"]
    unknown = copy.run("book", "--only", "three")
    assert unknown.code != 0 and "'three'" in unknown.output and "one, two" in unknown.output, unknown


def test_two_commands_at_once(copy):
    """The second waits, and finds that nothing is left to do."""
    copy.write_notebook("one", (*ONE, '> print("changed")'))
    both = [copy.start() for _ in range(2)]
    output = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], output
    assert sorted("done   one" in text for text in output) == [False, True], output
    assert sum("waiting" in text for text in output) == 1, output


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupted_command_leaves_nothing_running(copy):
    """And the next one does what it did not."""
    original = (copy.folder / "notebooks" / "one.ipynb").read_text(encoding="utf-8")
    cell = '> import os, pathlib, time\npathlib.Path("started").write_text(str(os.getpid()))\ntime.sleep(600)'
    copy.write_notebook("one", (*ONE, cell))
    copy.write_notebook("two", (*TWO, cell))
    process = copy.start()
    started = copy.folder / "build" / "running" / "executed" / "started"
    while process.poll() is None and not (started.exists() and started.read_text()):
        time.sleep(0.2)
    family = measure_run.family(process.pid)
    assert int(started.read_text()) in {member.pid for member in family}
    process.send_signal(signal.SIGINT)
    assert "stopped" in process.communicate(timeout=30)[0]
    assert process.returncode == 130
    assert [member for member in family if member.is_running()] == []
    copy.write("notebooks/one.ipynb", original)
    copy.write_notebook("two", (*TWO, '> print("changed")'))
    again = copy.run()
    assert again.code == 0 and again.executed == {"two"}, again


def test_a_failing_unit_test_fails_the_test_command(copy):
    """Before anything is executed or rendered."""
    shutil.rmtree(copy.folder / "build")
    copy.keep_one_module()
    copy.write("tests/test_sums.py", '"""Sums."""\n\n\ndef test_sum():\n    assert 1 + 1 == 3\n')
    run = copy.run("test")
    assert run.code != 0 and "assert (1 + 1) == 3" in run.output, run
    assert "unit tests ended with exit code 1" in run.output
    assert run.executed == set() and not run.rendered


def test_a_wrong_type_in_the_package_fails_lint(copy):
    copy.keep_one_module()
    ones = 'def ones(count: int) -> torch.Tensor:\n    """Return ones."""\n    return torch.ones(count)\n'
    copy.write("chapters_src/ones.py", f'"""Ones."""\n\nimport torch\n\n\n{ones}')
    run = copy.run("lint")
    assert run.code == 0, run
    copy.write("chapters_src/wrong.py", '"""Wrong."""\n\nfrom chapters_src.ones import ones\n\nones("3")\n')
    run = copy.run("lint")
    assert run.code != 0 and "chapters_src/wrong.py:5" in run.output.replace("\\", "/"), run


def test_style_is_checked_without_git(copy):
    """As in a folder that was downloaded, on a machine without git; `build` is left out by configuration."""
    copy.keep_one_module()
    run = copy.run("lint", PATH="")
    assert run.code == 0, run
    copy.write("wrong.py", "import  os\n")
    run = copy.run("lint", PATH="")
    assert run.code != 0 and "wrong.py" in run.output, run
