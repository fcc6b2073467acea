"""Write the repository's address and the release tag wherever they stand; pyproject.toml alone holds them."""

import re
import tomllib
from pathlib import Path

import nbformat

from paths import ROOT, notebooks

ANY_ADDRESS = r"https://github\.com/[\w.-]+/transformers-taken-apart"


def address() -> tuple[str, str]:
    """The repository's address and the tag of the release, such as `v0.1.0`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project["urls"]["Repository"], "v" + project["version"]


def stamped(text: str) -> str:
    """A text with today's address, and today's tag in Colab links, set-up lines and configuration."""
    repository, tag = address()
    name = repository.removeprefix("https://github.com/")
    text = re.sub(ANY_ADDRESS + r"(@v[\w.]+)?", lambda m: repository + (f"@{tag}" if m[1] else ""), text)
    colab = r"(colab\.research\.google\.com/github/)[\w.-]+/[\w.-]+/blob/[\w.-]+/"
    text = re.sub(colab, rf"\g<1>{name}/blob/{tag}/", text)
    text = re.sub(r"(?m)^  branch: v\S+$", f"  branch: {tag}", text)
    return re.sub(r"(?m)^version: \S+$", f"version: {tag[1:]}", text)


def stamp(check_only: bool = False) -> list[str]:
    """Stamp all files that name the address or the version.

    Args:
        check_only: change nothing.

    Returns:
        The files that were, or would be, changed, relative to the root.
    """
    changed = []
    plain = [ROOT / name for name in ("README.md", "CITATION.cff", "_config.yml", "CONTRIBUTING.md")]
    for path in [*plain, *sorted((ROOT / "book").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        if stamped(text) != text:
            changed.append(path.relative_to(ROOT).as_posix())
            if not check_only:
                _write(path, stamped(text))
    return changed + [name for name in map(lambda p: _stamp_notebook(p, check_only), notebooks()) if name]


def _stamp_notebook(path: Path, check_only: bool) -> str | None:
    notebook = nbformat.read(path, 4)
    before = [cell.source for cell in notebook.cells]
    for cell in notebook.cells:
        cell.source = stamped(cell.source)
    if [cell.source for cell in notebook.cells] == before:
        return None
    if not check_only:
        _write(path, nbformat.writes(notebook) + "\n")
    return path.relative_to(ROOT).as_posix()


def _write(path: Path, text: str) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
