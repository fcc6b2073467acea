"""One address, one version, one list of notebooks: what is written from them, and what stays untouched."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import address
import book
from paths import NOTEBOOKS, ROOT

FORMER, FORMER_TAG = address.address()
NEW_OWNER, NEW_VERSION = "someone-else", "7.8.9"


@pytest.fixture
def renamed(tmp_path, monkeypatch) -> Path:
    """A folder with pyproject.toml, in which address and version are others."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    text = re.sub(r"github\.com/[\w.-]+/", f"github.com/{NEW_OWNER}/", text)
    text = re.sub(r'(?m)^version = "[^"]+"', f'version = "{NEW_VERSION}"', text)
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(address, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def project(renamed, monkeypatch) -> Path:
    """With the files that may hold the former ones."""
    for path in ROOT.iterdir():
        if path.is_file() and path.suffix in {".md", ".cff", ".yml"}:
            shutil.copyfile(path, renamed / path.name)
    for folder in ("book", "notebooks"):
        shutil.copytree(ROOT / folder, renamed / folder)
    monkeypatch.setattr(address, "notebooks", lambda: sorted((renamed / "notebooks").glob("*.ipynb")))
    return renamed


HERE = f"https://github.com/{NEW_OWNER}/transformers-taken-apart"
COLAB = "https://colab.research.google.com/github"
TEXTS = {
    "see https://github.com/OWNER/transformers-taken-apart.": f"see {HERE}.",
    "git+https://github.com/OWNER/transformers-taken-apart@v0.1.0": f"git+{HERE}@v{NEW_VERSION}",
    "git+https://github.com/OWNER/transformers-taken-apart@v0.1.0.post1": f"git+{HERE}@v{NEW_VERSION}",
    f"({COLAB}/OWNER/transformers-taken-apart/blob/v0.1.0/notebooks/03_tokenization.ipynb)": (
        f"({COLAB}/{NEW_OWNER}/transformers-taken-apart/blob/v{NEW_VERSION}/notebooks/03_tokenization.ipynb)"
    ),
    f"({COLAB}/someone/tricks/blob/main/notebooks/one.ipynb)": (
        f"({COLAB}/someone/tricks/blob/main/notebooks/one.ipynb)"
    ),
    "cff-version: 1.2.0\nversion: 0.1.0\n": f"cff-version: 1.2.0\nversion: {NEW_VERSION}\n",
    "version: 0.1.0 of something else": "version: 0.1.0 of something else",
    "https://github.com/jessevig/bertviz@v0.1.0": "https://github.com/jessevig/bertviz@v0.1.0",
    "https://github.com/OWNER/transformers-taken-apart-2": "https://github.com/OWNER/transformers-taken-apart-2",
}


@pytest.mark.parametrize("text", TEXTS)
def test_stamped(text, renamed):
    assert address.stamped(text) == TEXTS[text]
    assert address.stamped(TEXTS[text]) == TEXTS[text]


def test_stamp_leaves_no_former_address_or_version_and_changes_nothing_else(project):
    before = contents(project)
    would_change = address.stamp(check_only=True)
    assert contents(project) == before
    changed = address.stamp()
    assert changed == would_change and {"README.md", "CITATION.cff", "_config.yml"} <= set(changed)
    assert address.stamp(check_only=True) == [], "a second stamp has nothing to do"
    former = rf".*(?:{FORMER.removeprefix('https://github.com/')}|\b{re.escape(FORMER_TAG)}\b).*"
    texts = {path: path.read_text("utf-8") for path in project.rglob("*.*") if path.suffix in STAMPED}
    assert {path: found for path, text in texts.items() if (found := re.findall(former, text))} == {}
    paths = list((project / "notebooks").glob("*.ipynb"))
    assert len(paths) == len(list(NOTEBOOKS.glob("*.ipynb")))
    for path in paths:
        stamped, original = nbformat.read(path, 4), nbformat.read(NOTEBOOKS / path.name, 4)
        for cell, committed in zip(stamped.cells, original.cells, strict=True):
            assert cell.source == address.stamped(committed.source)
            committed.source = cell.source
        assert stamped == original
        assert texts[path].endswith("}\n")


STAMPED = {".md", ".ipynb", ".yml", ".cff"}


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_address_stands_nowhere_else():
    """Code that named the address would be missed by `stamp`."""
    folders = (ROOT / "chapters_src", ROOT / "benchmarks", ROOT / ".github", ROOT / ".ci")
    files = [
        path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".yml", ".md"}
    ]
    assert [path for path in files if re.search(address.ANY_ADDRESS, path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "wrong",
    [
        "https://gitlab.com/someone/transformers-taken-apart",
        "https://github.com/someone/another-book",
        "https://github.com/someone/transformers-taken-apart.git",
        "https://github.com/someone/transformers-taken-apart/",
        "http://github.com/someone/transformers-taken-apart",
    ],
)
def test_an_address_that_would_not_be_found_again_is_refused(wrong, project, capsys):
    """`stamp` once replaced the address by such a one, and never found it again."""
    before = (project / "README.md").read_bytes()
    path = project / "pyproject.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(HERE, wrong), encoding="utf-8")
    with pytest.raises(address.AddressError, match=re.escape(repr(wrong))):
        address.stamp()
    assert (project / "README.md").read_bytes() == before
    assert address.run("stamp") == 1 and wrong in capsys.readouterr().err


# --- The list of notebooks.


def rows(text: str) -> list[tuple[str, str]]:
    """Title and file in each line of the list."""
    return re.findall(r"(?m)^\| ([^|]+?) \| \[notebook\]\(([^)]+)\) \|", text)


def test_the_list_follows_the_table_of_contents(project):
    assert [name for _, name in rows((ROOT / "README.md").read_text(encoding="utf-8"))] == address.listed()
    toc = project / "_toc.yml"
    lines = toc.read_text(encoding="utf-8").splitlines(keepends=True)
    lines = [line for line in lines if "04_" not in line]
    last = next(line for line in reversed(lines) if "notebooks/" in line)
    lines.remove(last)
    lines.insert(next(i for i, line in enumerate(lines) if "notebooks/" in line), last)
    toc.write_text("".join(lines), encoding="utf-8")
    assert "README.md" in address.stamp(check_only=True)
    address.stamp()
    found = rows((project / "README.md").read_text(encoding="utf-8"))
    assert [name for _, name in found] == address.listed()
    assert found[0][1] == f"{last.split()[-1]}.ipynb" and not any("04_" in name for _, name in found)
    assert ("03 Tokenization", "notebooks/03_tokenization.ipynb") in found


def test_a_list_that_cannot_be_written_is_an_error(project):
    toc, readme = project / "_toc.yml", project / "README.md"
    text = toc.read_text(encoding="utf-8")
    toc.write_text(text.replace("03_tokenization", "03_missing"), encoding="utf-8")
    with pytest.raises(address.AddressError, match=r"03_missing\.ipynb"):
        address.stamp()
    toc.write_text(text, encoding="utf-8")
    text = readme.read_text(encoding="utf-8")
    readme.write_text(text.replace(address.LIST_END, ""), encoding="utf-8")
    with pytest.raises(address.AddressError, match="End of the list"):
        address.stamp()


# --- The address from the git remote.


@pytest.mark.parametrize(
    "remote",
    [
        "https://github.com/an-account/transformers-taken-apart",
        "https://github.com/an-account/transformers-taken-apart.git",
        "https://github.com/an-account/transformers-taken-apart/",
        "https://user:secret@github.com/an-account/transformers-taken-apart.git",
        "https://GitHub.com/an-account/transformers-taken-apart",
        "git@github.com:an-account/transformers-taken-apart.git",
        "github.com:an-account/transformers-taken-apart",
        "ssh://git@github.com/an-account/transformers-taken-apart.git",
        "ssh://git@ssh.github.com:443/an-account/transformers-taken-apart.git",
        "git://github.com/an-account/transformers-taken-apart.git",
    ],
)
def test_every_form_of_a_remote(remote):
    assert address.https_form(remote) == "https://github.com/an-account/transformers-taken-apart"


@pytest.mark.parametrize(
    ("remote", "reason"),
    [
        ("https://gitlab.com/an-account/transformers-taken-apart.git", "not on github.com"),
        ("git@example.org:an-account/transformers-taken-apart.git", "not on github.com"),
        ("https://github.com.example.org/an-account/transformers-taken-apart", "not on github.com"),
        ("/srv/git/transformers-taken-apart", "not on github.com"),
        ("file:///srv/git/transformers-taken-apart", "not on github.com"),
        ("https://github.com/an-account/another-book", "called transformers-taken-apart"),
        ("https://github.com/OWNER/transformers-taken-apart", "a real account"),
        ("", "not on github.com"),
    ],
)
def test_another_host_or_name_is_an_error(remote, reason):
    with pytest.raises(address.AddressError, match=reason):
        address.https_form(remote)


def test_no_message_shows_a_password():
    with pytest.raises(address.AddressError) as refused:
        address.https_form("https://user:secret@gitlab.com/an-account/transformers-taken-apart.git")
    assert "secret" not in str(refused.value) and "gitlab.com/an-account" in str(refused.value)


@pytest.fixture
def clone(project, absent) -> Path:
    """The copy, as a git repository without a remote, for which nobody has set an address."""
    if shutil.which("git") is None:
        absent("no git on this computer")
    path = project / "pyproject.toml"
    text = path.read_text(encoding="utf-8").replace(HERE, address.PLACEHOLDER)
    path.write_text(text, encoding="utf-8")
    address.stamp()
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    return project


def test_one_command_takes_the_address_from_the_remote(clone, capsys):
    remote = ["git", "remote", "add", "origin", f"git@github.com:{NEW_OWNER}/transformers-taken-apart.git"]
    subprocess.run(remote, cwd=clone, check=True)
    assert not address.has_address()
    assert book.main(["set-address"]) == 0
    changed = capsys.readouterr().out.split()
    assert {"pyproject.toml", "README.md", "_config.yml", "notebooks/03_tokenization.ipynb"} <= set(changed)
    assert address.has_address() and address.address()[0] == HERE
    assert address.stamp() == []
    assert "OWNER/" not in (clone / "README.md").read_text(encoding="utf-8")
    assert address.set_address() == [], "a second time there is nothing to do"


def test_without_a_remote_or_git_it_says_what_to_do(clone, monkeypatch, capsys):
    before = contents(clone)
    assert book.main(["set-address"]) == 1
    assert "git remote add origin" in capsys.readouterr().err
    monkeypatch.setenv("PATH", "")
    assert book.main(["set-address"]) == 1
    assert "no git on this computer" in capsys.readouterr().err
    assert contents(clone) == before


def test_it_needs_nothing_installed():
    """A stranger sets the address, and CI checks a release, before anything is installed."""
    ask = [sys.executable, "-S", "-c", "import sys; sys.path.insert(0, 'tools'); import address"]
    subprocess.run(ask, cwd=ROOT, check=True)


# --- What may be published.


@pytest.fixture
def ready(project, monkeypatch) -> Path:
    """The copy, ready to be published."""
    monkeypatch.delenv("GITHUB_REF_TYPE", raising=False)
    changes = project / "CHANGELOG.md"
    text = re.sub(r"(?m)^## .*$", f"## {NEW_VERSION} - 2031-02-03", changes.read_text("utf-8"), count=1)
    changes.write_text(text, encoding="utf-8")
    address.stamp()
    return project


def test_what_is_complete_can_be_published(ready, monkeypatch, capsys):
    assert book.main(["check-release"]) == 0
    monkeypatch.setenv("GITHUB_REF_TYPE", "tag")
    monkeypatch.setenv("GITHUB_REF_NAME", f"v{NEW_VERSION}")
    assert book.main(["check-release"]) == 0
    assert f"v{NEW_VERSION} can be published" in capsys.readouterr().out


def spoil(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_publishing_refuses_a_book_without_an_address(ready, capsys):
    spoil(ready / "pyproject.toml", HERE, address.PLACEHOLDER)
    address.stamp()
    assert book.main(["check-release"]) == 1
    assert "set-address" in capsys.readouterr().err


def test_publishing_refuses_another_tag_an_old_stamp_and_no_changes(ready, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_REF_TYPE", "tag")
    monkeypatch.setenv("GITHUB_REF_NAME", "v7.8.8")
    spoil(ready / "_config.yml", f"v{NEW_VERSION}", "v7.8.8")
    spoil(ready / "CHANGELOG.md", "2031-02-03", "unreleased")
    assert book.main(["check-release"]) == 1
    message = capsys.readouterr().err
    assert "the tag is v7.8.8" in message and "_config.yml" in message and "CHANGELOG.md" in message
    assert "set-address" not in message
