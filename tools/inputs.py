"""The inputs of a notebook, and the hash that decides whether it is executed again.

A notebook depends on its own code (not on its prose), on the modules of the helper package that it imports,
directly or through others, with their data files, on the pinned versions, on Python and the build of PyTorch,
and on the chosen resources, device and seed.
"""

import ast
import functools
import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import environment
from paths import PACKAGE

VARIABLES = ("BOOK_RESOURCES", "BOOK_DEVICE", "BOOK_SEED")  # of the environment, each part of the key
DEFAULTS = ("embedded", "cpu", "0")
CHECK = re.compile(r'\bcheck\(\s*"(\d+)\.\d+"')  # of an exercise, in a notebook
RECORD = re.compile(r'\brecord\(\s*"([\w-]+)"')  # of a long run, in code


def key(notebook: Path, requirements: Path, package: Path = PACKAGE) -> str:
    """Return the hash of everything that a notebook depends on.

    Args:
        notebook: the committed notebook.
        requirements: the lock in use.
        package: the folder of the helper package.

    Returns:
        A SHA-256 digest in hexadecimal.
    """
    files = {path.relative_to(package).as_posix(): digest(path) for path in closure(notebook, package)}
    versions = [environment.pins(requirements), platform.python_version(), metadata.version("torch")]
    chosen = [os.environ.get(name, "") for name in VARIABLES]
    parts = [notebook.name, program(notebook), files, versions, ["" if c in DEFAULTS else c for c in chosen]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def program(notebook: Path) -> list[str]:
    """Return the source of each code cell."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def visible_files(folder: Path) -> Iterator[Path]:
    """Yield every file in a folder and its subfolders, in order, except hidden files and caches."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and "__pycache__" not in parts and not any(p.startswith(".") for p in parts):
            yield path


def closure(notebook: Path, package: Path = PACKAGE) -> list[Path]:
    """Return the files of the helper package on which a notebook depends.

    Args:
        notebook: a notebook; IPython magics are skipped.
        package: the folder of the helper package.

    Returns:
        Modules that it imports, or whose dotted name it has in a string, the checks of its exercises, the
        modules that these import, and so on; and the data files that carry the name of something that any of
        these mentions.
    """
    texts = [re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", source) for source in program(notebook)]
    found: dict[Path, str] = {}
    waiting = [path for text in texts for path in imported(text, None, package)]
    chapters = {f"{package.name}.exercises.chapter_{int(n):02}" for t in texts for n in CHECK.findall(t)}
    waiting += _files(sorted(chapters), package)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = path.read_text(encoding="utf-8")
            waiting += imported(found[path], path, package)
    texts += found.values()
    mentioned = set().union(*map(_words, texts))
    mentioned |= {f"records/{name}" for text in texts for name in RECORD.findall(text)}
    data = (path for path in visible_files(package) if path.suffix != ".py")
    return sorted([*found, *(path for path in data if _name(path, package) in mentioned)])


def imported(text: str, module: Path | None, package: Path) -> Iterator[Path]:
    """Yield the files of the package that a piece of code imports.

    Args:
        text: Python.
        module: its file, for relative imports; None for a notebook.
        package: the folder of the helper package.
    """
    parents = () if module is None else module.relative_to(package.parent).parts
    yield from _files(_names(text, parents, package.name), package)


@functools.cache  # All notebooks import the same modules.
def _names(text: str, parents: tuple[str, ...], package: str) -> tuple[str, ...]:
    """Return the dotted names that code imports or has in a string; `parents` are the folders of its file."""
    if package not in text and "from ." not in text:
        return ()
    names: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = parents[: -node.level] if node.level else ()
            start = ".".join([*above, *([node.module] if node.module else [])])
            names += [start, *(f"{start}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names += re.findall(rf"\b{package}(?:\.\w+)+", node.value)
    return tuple(dict.fromkeys(names))


@functools.cache
def _words(text: str) -> frozenset[str]:
    return frozenset(word.replace("-", "_") for word in re.findall(r"[\w-]+", text))


def _files(names: Iterable[str], package: Path) -> Iterator[Path]:
    """Yield the modules behind dotted names, each with its parent packages."""
    for name in names:
        first, *parts = name.split(".")
        if first != package.name:
            continue
        for i in range(len(parts) + 1):
            path = package.joinpath(*parts[:i])
            yield from (p for p in (path / "__init__.py", path.with_suffix(".py")) if p.is_file())


def _name(path: Path, package: Path) -> str:
    """Return the owner of a data file: "emotions" for `data/emotions/train.csv` and `data/emotions.md`.

    The names of records are everyday words, so that of `records/letters.json` is "records/letters".
    """
    parts = path.relative_to(package).parts
    if parts[0] == "records":
        return f"records/{path.stem}"
    return Path(parts[min(1, len(parts) - 1)]).stem.replace("-", "_")
