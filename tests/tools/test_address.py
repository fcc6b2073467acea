"""One address and one version: what `python tools/book.py stamp` changes, and what it must not touch."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest

import address
from paths import NOTEBOOKS, ROOT

NEW_OWNER, NEW_VERSION = "someone-else", "7.8.9"


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A copy of the files that may hold the address, with another address and version in pyproject.toml."""
    for path in ROOT.iterdir():
        if path.is_file() and path.suffix in {".md", ".cff", ".yml", ".toml"}:
            shutil.copyfile(path, tmp_path / path.name)
    for folder in ("book", "notebooks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    text = re.sub(r"github\.com/[\w.-]+/", f"github.com/{NEW_OWNER}/", text)
    text = re.sub(r'(?m)^version = "[^"]+"', f'version = "{NEW_VERSION}"', text)
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(address, "ROOT", tmp_path)
    monkeypatch.setattr(address, "notebooks", lambda: sorted((tmp_path / "notebooks").glob("*.ipynb")))
    return tmp_path


HERE = f"https://github.com/{NEW_OWNER}/transformers-taken-apart"
COLAB = "https://colab.research.google.com/github"
TEXTS = {
    "see https://github.com/OWNER/transformers-taken-apart.": f"see {HERE}.",
    "git+https://github.com/OWNER/transformers-taken-apart@v0.1.0": f"git+{HERE}@v{NEW_VERSION}",
    "git+https://github.com/OWNER/transformers-taken-apart@v0.1.0.post1": f"git+{HERE}@v{NEW_VERSION}",
    f"({COLAB}/OWNER/transformers-taken-apart/blob/v0.1.0/notebooks/03_tokenization.ipynb)": (
        f"({COLAB}/{NEW_OWNER}/transformers-taken-apart/blob/v{NEW_VERSION}/notebooks/03_tokenization.ipynb)"
    ),
    "cff-version: 1.2.0\nversion: 0.1.0\n": f"cff-version: 1.2.0\nversion: {NEW_VERSION}\n",
    "version: 0.1.0 of something else": "version: 0.1.0 of something else",
    "https://github.com/jessevig/bertviz@v0.1.0": "https://github.com/jessevig/bertviz@v0.1.0",
}


@pytest.mark.parametrize("text", TEXTS)
def test_stamped(text, project):
    assert address.stamped(text) == TEXTS[text]
    assert address.stamped(TEXTS[text]) == TEXTS[text]


def test_stamp_leaves_no_former_address_or_version(project):
    owner, version = (
        re.search(r"github\.com/([\w.-]+)/", (ROOT / "pyproject.toml").read_text())[1],
        address_version(),
    )
    changed = address.stamp()
    left = {}
    for path in [path for path in project.rglob("*") if path.suffix in {".md", ".ipynb", ".yml", ".cff"}]:
        text = path.read_text(encoding="utf-8")
        found = re.findall(
            rf".*(?:{re.escape(owner)}/transformers-taken-apart|\bv{re.escape(version)}\b).*", text
        )
        if found:
            left[path.relative_to(project).as_posix()] = found
    assert left == {}
    assert {"README.md", "CITATION.cff", "_config.yml"} <= set(changed)
    assert address.stamp() == [], "a second stamp has nothing to do"


def address_version() -> str:
    return re.search(r'(?m)^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text())[1]


def test_stamp_changes_only_sources_of_notebooks(project):
    address.stamp()
    paths = list((project / "notebooks").glob("*.ipynb"))
    assert len(paths) == len(list(NOTEBOOKS.glob("*.ipynb")))
    for path in paths:
        stamped, original = nbformat.read(path, 4), nbformat.read(NOTEBOOKS / path.name, 4)
        for cell, former in zip(stamped.cells, original.cells, strict=True):
            assert cell.source == address.stamped(former.source)
            former.source = cell.source
        assert stamped == original
        assert path.read_text(encoding="utf-8").endswith("}\n")


def test_check_only_changes_nothing(project):
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    would_change = address.stamp(check_only=True)
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before
    assert would_change == address.stamp()


def test_the_address_stands_nowhere_else():
    """Code that named the address would be missed by `stamp`."""
    folders = (ROOT / "chapters_src", ROOT / "benchmarks", ROOT / ".github", ROOT / ".ci")
    files = [
        path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".yml", ".md"}
    ]
    assert [path for path in files if re.search(address.ANY_ADDRESS, path.read_text(encoding="utf-8"))] == []
