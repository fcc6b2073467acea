"""Prose from the docstrings of the installed scientific packages: a real corpus that needs no download.

Every reader of this book has several megabytes of careful technical English on disk already: the
documentation inside the source files of NumPy, pandas, PyTorch and the others. This module reads those files
with `ast` (nothing of them is imported), keeps the paragraphs that are prose, and leaves out doctests,
parameter lists, tables, code and formulas. Chapter 03 trains its tokenizers on it.

What the corpus is, its licence and its limits stand in its card, `docstrings.md`, beside this file.
"""

import ast
import hashlib
import inspect
import json
import re
import sys
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import NamedTuple

from chapters_src import resources

PACKAGES = (
    "datasets",
    "matplotlib",
    "networkx",
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "sympy",
    "torch",
    "transformers",
)

_DISTRIBUTIONS = {"sklearn": "scikit-learn"}  # Where the name to install differs from the name to import.
_ADD_DOCSTRING = re.compile(r"_?add_(new)?doc(str)?\w*")  # Such as add_newdoc("numpy", "cos", "...").
_MIN_WORDS = 5  # Shorter paragraphs are mostly labels.
_NOT_OURS = {"tests", "test", "_tests", "externals", "_external", "_vendor", "_vendored", "third_party"}


class Paragraph(NamedTuple):
    """One paragraph of prose and where it stands."""

    text: str  # One line, whitespace normalised.
    package: str  # Name to import, such as "sklearn".
    module: str  # Dotted name of the module whose source holds it.


class Harvest(NamedTuple):
    """What one package gave."""

    paragraphs: list[Paragraph]  # Distinct, sorted by module, then in the order of the file.
    files: int  # Source files read.
    skipped: list[str]  # Modules that this Python cannot parse, or whose encoding is broken.


def load(packages: Sequence[str] = PACKAGES) -> list[Paragraph]:
    """Load the prose paragraphs of installed packages.

    The first call for a package parses its source, which takes about a second per 5 MB; later calls read the
    cache. The same installed versions and the same rules, those of this file, give the same list.

    Args:
        packages: names to import, in any order, such as `("numpy", "sklearn")`.

    Returns:
        Paragraphs with distinct texts, sorted by package, module and position in the file.

    Raises:
        resources.ResourceError: a package is not installed, or the cache folder cannot be written.
        TypeError: `packages` is one string.
    """
    if isinstance(packages, str):
        raise TypeError(f"packages is the string {packages!r}; pass a sequence of names: ({packages!r},)")
    distinct: dict[str, Paragraph] = {}
    for package in sorted(set(packages)):
        for paragraph in harvest(package).paragraphs:
            distinct.setdefault(paragraph.text, paragraph)
    return list(distinct.values())


def harvest(package: str) -> Harvest:
    """Harvest one installed package, through the cache.

    Args:
        package: name to import, such as "sklearn".

    Returns:
        Its paragraphs, the number of files read, and the modules that were skipped.

    Raises:
        resources.ResourceError: the package is not installed, or the cache folder cannot be written.
    """
    folder = _source_folder(package)
    key = {
        "package": package,
        "version": _distribution(package).version,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "rules": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
    }

    def build(entry: Path) -> None:
        (entry / "harvest.json").write_text(json.dumps(harvest_folder(package, folder)), encoding="utf-8")

    entry = resources.cached("docstrings", key, build)
    paragraphs, files, skipped = json.loads((entry / "harvest.json").read_text(encoding="utf-8"))
    return Harvest([Paragraph(*paragraph) for paragraph in paragraphs], files, skipped)


def harvest_folder(package: str, folder: Path) -> Harvest:
    """Harvest the source files of a folder, without the cache.

    Args:
        package: dotted name of the package whose source the folder holds.
        folder: the folder, which holds `__init__.py`.

    Returns:
        Its paragraphs, the number of files read, and the modules that were skipped.
    """
    modules = {_module_name(package, path.relative_to(folder)): path for path in _source_files(folder)}
    distinct: dict[str, Paragraph] = {}
    skipped = []
    for module, path in sorted(modules.items()):
        try:
            docstrings = list(_docstrings(_parse(path)))
        except (SyntaxError, UnicodeError, ValueError, RecursionError):
            skipped.append(module)
            continue
        for text in (text for docstring in docstrings for text in prose(docstring)):
            distinct.setdefault(text, Paragraph(text, package, module))
    return Harvest(list(distinct.values()), len(modules), skipped)


def each_docstring(package: str) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of an installed package, as they stand in its source.

    Args:
        package: name to import, such as "sklearn".

    Yields:
        The dotted name of a module and one of its docstrings: modules in alphabetical order, docstrings in
        that of the file. What cannot be parsed is passed over.

    Raises:
        resources.ResourceError: the package is not installed.
    """
    folder = _source_folder(package)
    modules = {_module_name(package, path.relative_to(folder)): path for path in _source_files(folder)}
    for module, path in sorted(modules.items()):
        try:
            docstrings = list(_docstrings(_parse(path)))
        except (SyntaxError, UnicodeError, ValueError, RecursionError):
            continue
        yield from ((module, docstring) for docstring in docstrings if docstring)


def split_of(module: str) -> str:
    """Stand in until main has it."""
    unit = ".".join(module.split(".")[:2])
    place = int(hashlib.sha256(unit.encode()).hexdigest(), 16) % 100
    return "test" if place < 8 else "validation" if place < 16 else "train"


def cache_key(package: str) -> dict[str, str]:
    """Name all that the harvest of a package depends on."""
    _source_folder(package)
    return {
        "package": package,
        "version": _distribution(package).version,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "rules": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
    }


def _source_folder(package: str) -> Path:
    spec = util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise resources.ResourceError(
            f"The docstrings of {package!r} were asked for, but no installed package has that name. "
            f"Install it (pip install {_DISTRIBUTIONS.get(package, package)}), or leave it out of `packages`."
        )
    return Path(spec.submodule_search_locations[0])


def _distribution(package: str) -> metadata.Distribution:
    name = _DISTRIBUTIONS.get(package, package)
    try:
        return metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        raise resources.ResourceError(
            f"The installed version of {package!r} was asked for, but pip knows no package {name!r}. "
            f"Install it (pip install {name}), or leave it out of `packages`."
        ) from None


def _source_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).parts
        if not _NOT_OURS.intersection(parts) and path.name != "conftest.py":
            yield path


def _module_name(package: str, path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))


def _parse(path: Path) -> ast.Module:
    with tokenize.open(path) as file:  # Honours the file's own encoding line.
        source = file.read()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # About odd backslashes: no concern of the reader's.
        return ast.parse(source)


def _docstrings(node: ast.AST) -> Iterator[str]:
    """Yield docstrings in the order of the file, with those that calls give to compiled functions."""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield ast.get_docstring(node, clean=False) or ""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from _docstrings(child)
        elif isinstance(child, ast.Call) and _ADD_DOCSTRING.fullmatch(_called_name(child)):
            yield from (node.value for node in ast.walk(child) if _is_text(node))


def _called_name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


# From one docstring to its paragraphs of prose ----------------------------------------------------------

# Headings of what is a list, an example or a formula, not prose.
_LISTS = re.compile(
    r"(additional |example |keyword |optional |other )?(args|arguments|kwargs|param(eter)?s?|usage)"
    r"|attributes?|authors|classes|domain|examples?|format|functions|inputs?|link|methods|options|outputs?"
    r"|raises|receives|references?|returns?|see also|shape|todo|warns|yields?"
)
_ADMONITIONS = {"note", "warning", "important", "tip", "hint", "caution", "attention", "danger"}
_UNDERLINE = re.compile(r"([-=~^*#])\1{2,}")
_DIRECTIVE = re.compile(r"\.\. (?:([\w-]+)::$|[\w-]+::|\[|_|\|)")
_BULLET = re.compile(r"(?:[-*+•]|\(?(?:\d{1,2}|[a-zA-Z])[.)]) +")


def prose(docstring: str) -> list[str]:
    """Take the paragraphs of prose out of one docstring.

    Args:
        docstring: as it stands in the source: reStructuredText, Markdown, the styles of NumPy and Google.

    Returns:
        Paragraphs as single lines, inline markup removed, in order. Parameter lists, doctests, code, tables,
        formulas, references and directives are left out, and so is what does not read as a sentence.
    """
    texts = (_plain(" ".join(block)) for block in _blocks(_prose_lines(docstring)))
    return [text for text in texts if _is_prose(text)]


def _prose_lines(docstring: str) -> Iterator[str]:
    """Yield each line that may be prose, and a blank line in place of each that is not."""
    lines = inspect.cleandoc(docstring).expandtabs().split("\n")
    in_fence = in_doctest = in_list = False
    hidden_below = None  # Lines indented by more than this belong to something that is left out.
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        text, indent = line.strip(), _indent(line)
        in_doctest = bool(text) and (in_doctest or text.startswith(">>>"))
        if text.startswith("```"):
            in_fence = not in_fence
        elif not text or in_fence or in_doctest or _UNDERLINE.fullmatch(text):
            pass
        elif _UNDERLINE.fullmatch(following.strip()):
            in_list, hidden_below = _is_list(text), None
        elif in_list or (hidden_below is not None and indent > hidden_below):
            pass
        elif _is_list(text) and text.endswith(":"):
            hidden_below = indent
        elif directive := _DIRECTIVE.match(text):
            hidden_below = None if directive[1] in _ADMONITIONS else indent
        else:
            hidden_below = indent if text.endswith("::") else None
            yield line
            continue
        yield ""


def _is_list(heading: str) -> bool:
    return bool(_LISTS.fullmatch(heading.rstrip(":").strip().lower()))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _blocks(lines: Iterator[str]) -> Iterator[list[str]]:
    """Group lines into paragraphs: a blank line, a bullet and a change of the indent start a new one."""
    block: list[str] = []
    block_indent = 0
    for line in lines:
        text, indent = line.strip(), _indent(line)
        if bullet := _BULLET.match(text):
            text, indent = text[bullet.end() :], indent + bullet.end()
        if block and (not text or bullet or indent != block_indent):
            yield block
            block = []
        if text:
            block, block_indent = [*block, text], indent
    if block:
        yield block


# Inline markup and what stays of it, in the order in which it is removed.
_MARKUP = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r":(?!math)[\w:+-]+:`[~!]?([^`<]+?)(?: *<[^`>]*>)?`", r"\1"),  # :func:`sum`, :ref:`text <target>`
        (r"`([^`<]+?) *<[^`>]*>`__?", r"\1"),  # `text <address>`_
        (r"\[`[~!]?([^`]+)`\]", r"\1"),  # [`Trainer`]
        (r"`~\.?([^`]+)`", r"\1"),  # `~.Axes.plot`
        (r"\[([^]]+)\]\([^)]*\)", r"\1"),  # [text](address)
        (r" ?\[[\w.+-]+\]_", ""),  # [1]_
        (r"(?<!:)(`{1,2})([^`]+)\1", r"\2"),  # `name`, ``name``
        (r"(?<![\w*])(\*{1,2})(?=\w)([^*]*\w[.!?:]?)\1(?![\w*])", r"\2"),  # *word*, **word**
        (r"\s+", " "),
        (r"(?<=\w{3}[.!?]) [^.!?]*:+$", ""),  # The last words before an example, "For instance:".
    )
]
# Formulas, code, templates and addresses.
_NOT_PROSE = re.compile(r"`|:math:|::|\\|\{|\$|\||>>>|<\w|%\(|%s|://")
_SENTENCE = re.compile(r"[\"'(]?[A-Z0-9].*[.!?][\"')]?")


def _plain(text: str) -> str:
    """Remove inline markup, repeated whitespace, and what only announces an example."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text.strip()


def _is_prose(text: str) -> bool:
    """Whether a paragraph reads as sentences: whole, of some length, and of letters rather than symbols."""
    letters = sum(character.isalpha() or character == " " for character in text)
    return (
        len(text.split()) >= _MIN_WORDS
        and letters >= 0.85 * len(text)
        and bool(_SENTENCE.fullmatch(text))
        and not _NOT_PROSE.search(text)
    )
