"""Keep every copy of the address, the version, the list of notebooks and the five questions up to date.

pyproject.toml holds the address and the version, _toc.yml the list, book/questions the questions. Standard
library only, because this runs before anything is installed.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from paths import ROOT, notebooks
from questions import QuestionsError, with_questions

NAME = "transformers-taken-apart"
PLACEHOLDER = f"https://github.com/OWNER/{NAME}"  # until the repository has an address
ANY_ADDRESS = rf"https://github\.com/[\w.-]+/{NAME}(?![\w-])"
COLAB = "https://colab.research.google.com/github/"
REMOTE = "origin"
TEXTS = ("README.md", "CITATION.cff", "_config.yml")
LIST_START = "<!-- The notebooks of _toc.yml, listed by `python tools/book.py stamp`. -->\n"
LIST_END = "<!-- End of the list. -->\n"


class AddressError(Exception):
    """The address is invalid or missing; the message says why, and what to do."""


def run(command: str) -> int:
    """Run `stamp`, `set-address` or `check-release`, and return its exit code."""
    try:
        if command == "check-release":
            print(f"{check_release()} can be published")
        else:
            changed = set_address() if command == "set-address" else stamp()
            print("\n".join(changed) or "nothing to change")
    except (AddressError, QuestionsError) as problem:
        print(f"failed: {problem}", file=sys.stderr)
        return 1
    return 0


def address() -> tuple[str, str]:
    """Return the repository's address and the tag of the release, such as `v0.1.0`.

    Raises:
        AddressError: the address does not have the form that `stamp` can find again.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"]
    if not re.fullmatch(ANY_ADDRESS, repository):
        raise AddressError(
            f"Repository in pyproject.toml is {repository!r}. Write https://github.com/ACCOUNT/{NAME}: Colab "
            "opens notebooks from GitHub only, and this name is how later changes find the address."
        )
    return repository, "v" + project["version"]


def has_address() -> bool:
    """Return whether the repository has an address yet."""
    return address()[0] != PLACEHOLDER


def site_address() -> str | None:
    """Return the address of the published site, on the code host's pages, or None."""
    if not has_address():
        return None
    account = address()[0].removeprefix("https://github.com/").partition("/")[0]
    return f"https://{account.lower()}.github.io/{NAME}/"


def stamped(text: str) -> str:
    """Update the address in a text, and the tag in its Colab links, set-up lines and configuration."""
    repository, tag = address()
    name = repository.removeprefix("https://github.com/")
    text = re.sub(ANY_ADDRESS + r"(@v[\w.]+)?", lambda m: repository + (f"@{tag}" if m[1] else ""), text)
    text = re.sub(rf"{re.escape(COLAB)}[\w.-]+/{NAME}/blob/[\w.-]+/", f"{COLAB}{name}/blob/{tag}/", text)
    text = re.sub(r"(?m)^  branch: v\S+$", f"  branch: {tag}", text)
    return re.sub(r"(?m)^version: \S+$", f"version: {tag[1:]}", text)


def stamp(check_only: bool = False) -> list[str]:
    """Update all files with the address or the version, the list in README.md, and the questions of chapters.

    Args:
        check_only: do not write anything.

    Returns:
        The files that were, or would be, changed, relative to the root.

    Raises:
        AddressError: the address is invalid, or the list cannot be written.
        QuestionsError: the questions of a chapter break a rule.
    """
    changed = []
    plain = [ROOT / name for name in TEXTS]
    for path in [*plain, *sorted((ROOT / "book").glob("*.md")), *notebooks()]:
        text = path.read_text(encoding="utf-8")
        wanted = stamped(with_list(text) if path == ROOT / "README.md" else text)
        if path.suffix == ".ipynb":
            wanted = with_questions(path, wanted)
        if wanted != text:
            changed.append(path.relative_to(ROOT).as_posix())
            if not check_only:
                _write(path, wanted)
    return changed


def with_list(text: str) -> str:
    """Return README.md with the notebooks of `_toc.yml`, in order, between the two marks."""
    before, start, rest = text.partition(LIST_START)
    _, end, after = rest.partition(LIST_END)
    if not start or not end:
        raise AddressError(f"README.md must contain these two lines:\n{LIST_START}{LIST_END}")
    rows = ["| | read the source | run in Colab |", "|---|---|---|"]
    repository, tag = address()
    colab = COLAB + repository.removeprefix("https://github.com/") + f"/blob/{tag}/"
    for name in listed():
        rows.append(f"| {title(name)} | [notebook]({name}) | [open]({colab}{name}) |")
    return before + start + "\n" + "\n".join(rows) + "\n\n" + end + after


def listed() -> list[str]:
    """List the notebooks of the table of contents, in order, such as `notebooks/03_tokenization.ipynb`."""
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    return [f"{name}.ipynb" for name in re.findall(r"(?m)^ *- file: (notebooks/\w+)$", contents)]


def title(name: str) -> str:
    """Return the title of a notebook, such as `03 Tokenization`."""
    try:
        cells = json.loads((ROOT / name).read_text(encoding="utf-8"))["cells"]
    except FileNotFoundError:
        raise AddressError(f"_toc.yml lists {name}, which does not exist") from None
    return "".join(cells[0]["source"]).partition("\n")[0].removeprefix("# ")


def set_address() -> list[str]:
    """Take the address from the git remote `origin`, write it into pyproject.toml, and stamp.

    Returns:
        The files that were changed, relative to the root.

    Raises:
        AddressError: git or the remote is missing, or the book cannot use the remote.
    """
    repository = https_form(_remote())
    path = ROOT / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    wanted, count = re.subn(r'(?m)^Repository = "[^"]*"$', f'Repository = "{repository}"', text)
    if count != 1:
        raise AddressError("pyproject.toml needs one line `Repository = ...` under [project.urls]")
    if wanted != text:
        _write(path, wanted)
    return [path.name] * (wanted != text) + stamp()


def https_form(remote: str) -> str:
    """Convert a git remote to the https address of the repository.

    Args:
        remote: the remote in one of git's forms: `git@github.com:ACCOUNT/NAME.git`, `ssh://git@github.com/ACCOUNT/NAME`,
            `https://github.com/ACCOUNT/NAME.git`.

    Returns:
        `https://github.com/ACCOUNT/NAME`.

    Raises:
        AddressError: it is not on GitHub, or has the wrong name.
    """
    remote = re.sub(r"//[^@/]*@", "//", remote)  # never print a password
    form = r"(?:\w+://|[\w.-]+@)?(?:ssh\.)?([\w.-]+)(?::\d+/|[:/])([\w.-]+)/([\w.-]+?)(?:\.git)?/?"
    match = re.fullmatch(form, remote)
    host, account, name = match.groups() if match else ("", "", "")
    if host.lower() != "github.com":
        raise AddressError(
            f"the git remote {REMOTE} is {remote}, which is not on github.com, and Colab opens notebooks "
            f"from GitHub only. Push the book there, then: git remote set-url {REMOTE} ADDRESS"
        )
    if name != NAME or account == "OWNER":
        raise AddressError(
            f"the git remote {REMOTE} is {remote}: the repository must be called {NAME}, the name that "
            "later changes search for, and belong to a real account. Rename it on GitHub, then: git remote "
            f"set-url {REMOTE} ADDRESS"
        )
    return f"https://github.com/{account}/{name}"


def check_release() -> str:
    """Check that the book is ready to publish; for a tag in CI, also that the tag is the version.

    Returns:
        The tag of the release.

    Raises:
        AddressError: something is missing; the message lists everything.
    """
    repository, tag = address()
    problems = []
    if repository == PLACEHOLDER:
        problems.append("the repository has no address yet: run python tools/book.py set-address")
    if unstamped := stamp(check_only=True):
        problems.append(f"another address, version or list in {', '.join(unstamped)}: run stamp")
    pushed = os.environ.get("GITHUB_REF_NAME") if os.environ.get("GITHUB_REF_TYPE") == "tag" else None
    if pushed not in (None, tag):
        problems.append(f"the tag is {pushed}, the version in pyproject.toml {tag[1:]}")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"(?m)^## {re.escape(tag[1:])} - \d{{4}}-\d\d-\d\d$", changes):
        problems.append(f"CHANGELOG.md has no heading `## {tag[1:]} - YEAR-MONTH-DAY`")
    if problems:
        raise AddressError(f"{tag} cannot be published\n  " + "\n  ".join(problems))
    return tag


def _remote() -> str:
    by_hand = "or write the address into pyproject.toml and run python tools/book.py stamp"
    try:
        asked = subprocess.run(
            ["git", "remote", "get-url", REMOTE],
            cwd=ROOT,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
    except FileNotFoundError:
        raise AddressError(f"there is no git on this computer: install it, {by_hand}") from None
    if asked.returncode != 0:
        raise AddressError(
            f"git knows no remote {REMOTE} here ({asked.stderr.strip()}): "
            f"git remote add {REMOTE} ADDRESS, {by_hand}"
        )
    return asked.stdout.strip()


def _write(path: Path, text: str) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8", newline="\n")
    partial.replace(path)
