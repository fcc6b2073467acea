"""Prose from the docstrings of the installed scientific packages: a real corpus that needs no download.

Every reader of this book already has several megabytes of careful technical English on disk: the
documentation inside the source files of NumPy, pandas, PyTorch and the others. This module parses those files
with `ast` (it imports none of them), keeps the paragraphs that are prose, and leaves out doctests, tables,
code and formulas. Descriptions of single parameters, and comments, are separate kinds. Chapter 03 trains its
tokenizers on the prose, and chapter 12 a language model.

The card beside this file, `docstrings.md`, describes the corpus, its license and its limits.
"""

import ast
import hashlib
import inspect
import itertools
import json
import re
import sys
import tokenize
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import NamedTuple, TypeVar

import joblib
from tqdm.auto import tqdm

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

Item = TypeVar("Item")
KINDS = ("prose", "descriptions", "comments")
SPLITS = ("train", "validation", "test")
RUN = 13  # Two texts with so many words in a row in common share more than a phrase.


class Paragraph(NamedTuple):
    """One paragraph of prose and where it comes from."""

    text: str  # One line, whitespace normalized.
    package: str  # Name to import, such as "sklearn".
    module: str  # Dotted name of the module whose source holds it.


class Harvest(NamedTuple):
    """The paragraphs of one package: distinct texts, sorted by module and position in the file."""

    prose: list[Paragraph]  # From docstrings.
    descriptions: list[Paragraph]  # Of single parameters, attributes, results and errors.
    comments: list[Paragraph]  # Full sentences from comments.
    files: int  # Source files read.
    skipped: list[str]  # Modules that this Python cannot parse, or whose encoding is broken.


def paragraphs(packages: Sequence[str] = PACKAGES, kinds: Sequence[str] = ("prose",)) -> list[Paragraph]:
    """Load the paragraphs of installed packages, with distinct texts.

    They are sorted by kind, package, module and position in the file. `packages` are names to import, such as
    `("numpy", "sklearn")`, and `kinds` any of `KINDS`, both in any order.

    The first call for a package parses its source, which takes about a second per 5 MB; several packages are
    parsed in parallel. Later calls read the cache. The list depends only on the installed versions and on the
    rules in this file.

    Raises:
        resources.ResourceError: a package is not installed, or the cache folder cannot be written.
        TypeError: `packages` or `kinds` is a string.
        ValueError: a kind is unknown.
    """
    for name, value in (("packages", packages), ("kinds", kinds)):
        if isinstance(value, str):
            raise TypeError(f"{name} is the string {value!r}; pass a sequence of names: ({value!r},)")
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"unknown kind {kind!r}: choose from {', '.join(KINDS)}")
    chosen = sorted(set(packages))
    _fill_cache([one for one in chosen if not resources.is_cached("docstrings", cache_key(one))])
    harvests = [harvest(package) for package in chosen]
    distinct: dict[str, Paragraph] = {}
    for kind in KINDS:
        for found in harvests if kind in kinds else ():
            for paragraph in getattr(found, kind):
                distinct.setdefault(paragraph.text, paragraph)
    return list(distinct.values())


def harvest(package: str) -> Harvest:
    """Harvest one installed package, named as one imports it, through the cache.

    Raises:
        resources.ResourceError: the package is not installed, or the cache folder cannot be written.
    """
    entry = _entry(package, lambda: harvest_folder(package, _source_folder(package)))
    found = json.loads((entry / "harvest.json").read_text(encoding="utf-8"))
    return Harvest(**found | {kind: [Paragraph(*paragraph) for paragraph in found[kind]] for kind in KINDS})


def _entry(package: str, make: Callable[[], Harvest]) -> Path:
    def build(entry: Path) -> None:
        (entry / "harvest.json").write_text(json.dumps(make()._asdict()), encoding="utf-8")

    return resources.cached("docstrings", cache_key(package), build)


def _fill_cache(packages: Sequence[str]) -> None:
    """Harvest packages in parallel, with a progress bar in interactive sessions."""
    tasks = [joblib.delayed(harvest_folder)(package, _source_folder(package)) for package in packages]
    if len(packages) > 1:
        harvests = joblib.Parallel(n_jobs=min(len(packages), joblib.cpu_count()), return_as="generator")(
            tasks
        )
        watched = tqdm(harvests, "reading packages", len(packages), disable=not sys.stderr.isatty())
        for package, found in zip(packages, watched, strict=True):
            _entry(package, lambda found=found: found)


def of_each(packages: Sequence[str], harvest: Callable[[str], list[Item]]) -> list[list[Item]]:
    """Make something else of the docstrings of packages, several at a time, in order of their names.

    `harvest` takes the name of a package, as one imports it; it is a function of a module, since other
    processes call it.

    Raises:
        resources.ResourceError: a package is not installed.
        TypeError: `packages` is a string.
    """
    if isinstance(packages, str):
        raise TypeError(f"packages is the string {packages!r}; pass a sequence of names: ({packages!r},)")
    chosen = sorted(set(packages))
    for package in chosen:
        cache_key(package)  # Raises here rather than in a worker process.
    tasks = (joblib.delayed(harvest)(package) for package in chosen)
    return joblib.Parallel(n_jobs=min(len(chosen), joblib.cpu_count()))(tasks) if chosen else []


def cache_key(package: str) -> dict[str, str]:
    """Return everything that the harvest of a package depends on.

    Raises:
        resources.ResourceError: the package is not installed, or has no version.
    """
    _source_folder(package)
    return {
        "package": package,
        "version": _distribution(package).version,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "rules": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
    }


def split_of(module: str) -> str:
    """Return the split of a module: entire top-level modules are held out, such as `scipy.sparse`.

    It is "test" for about 6% of the modules, "validation" for 4%, else "train". The first two parts of the
    dotted name alone decide.
    """
    unit = ".".join(module.split(".")[:2])
    # The salt was chosen by sizes alone: with it, no package makes up more than half of a split.
    place = int(hashlib.sha256(f"657 {unit}".encode()).hexdigest(), 16) % 100
    return "test" if place < 6 else "validation" if place < 10 else "train"


def split(paragraphs: Iterable[Paragraph]) -> dict[str, list[Paragraph]]:
    """Split paragraphs of any kind by module, and drop held-out ones that overlap with earlier splits.

    Validation shares no run of 13 words with training, and test none with either (see `SPLITS`).
    """
    splits: dict[str, list[Paragraph]] = {name: [] for name in SPLITS}
    for paragraph in paragraphs:
        splits[split_of(paragraph.module)].append(paragraph)
    before: set[int] = set()
    for name in SPLITS:
        if name != "train":
            splits[name] = [one for one in splits[name] if before.isdisjoint(runs(one.text))]
        before.update(run for one in splits[name] for run in runs(one.text))
    return splits


def runs(text: str) -> set[int]:
    """Return the 13-word runs of a text: copied texts have some in common. Shorter texts have none.

    Only letters a to z and digits count, in lower case. A run is a hash, stable within one process.
    """
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {hash(tuple(words[i : i + RUN])) for i in range(len(words) - RUN + 1)}


def harvest_folder(package: str, folder: Path) -> Harvest:
    """Harvest the source files of a folder, which holds the `__init__.py` of a package, without the cache."""
    found: dict[str, dict[str, Paragraph]] = {kind: {} for kind in KINDS}
    files, skipped = 0, []
    for module, source, docstrings in _modules(package, folder):
        files += 1
        if source is None:
            skipped.append(module)
            continue
        texts = {
            "prose": (text for docstring in docstrings for text in prose(docstring)),
            "descriptions": (text for docstring in docstrings for text in descriptions(docstring)),
            "comments": (text for comment in _comments(source) for text in prose(comment)),
        }
        for kind in KINDS:
            for text in texts[kind]:
                found[kind].setdefault(text, Paragraph(text, package, module))
    texts_by_kind = {kind: list(found[kind].values()) for kind in KINDS}
    return Harvest(**texts_by_kind, files=files, skipped=skipped)


def each_docstring(package: str) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of an installed package, as they stand in its source, each with its module.

    The module comes first, by its dotted name. Modules are in alphabetical order, docstrings in file order.
    Files that cannot be parsed are skipped.

    Raises:
        resources.ResourceError: the package is not installed.
    """
    for module, _, docstrings in _modules(package, _source_folder(package)):
        yield from ((module, docstring) for docstring in docstrings if docstring)


def _source_folder(package: str) -> Path:
    spec = util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise resources.ResourceError(
            f"There are no docstrings of {package!r}: no installed package has that name. "
            f"Install it (pip install {_DISTRIBUTIONS.get(package, package)}), or leave it out of `packages`."
        )
    return Path(spec.submodule_search_locations[0])


def _distribution(package: str) -> metadata.Distribution:
    name = _DISTRIBUTIONS.get(package, package)
    try:
        return metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        raise resources.ResourceError(
            f"There is no version of {package!r}: no distribution {name!r} is installed. "
            f"Install it (pip install {name}), or leave it out of `packages`."
        ) from None


def _modules(package: str, folder: Path) -> Iterator[tuple[str, str | None, list[str]]]:
    """Yield the name, the source and the docstrings of each module; None where it cannot be parsed."""
    paths = {}
    for path in folder.rglob("*.py"):
        *parents, stem = path.relative_to(folder).with_suffix("").parts
        if not _NOT_OURS.intersection(parents) and stem != "conftest":
            paths[".".join((package, *parents, *([] if stem == "__init__" else [stem])))] = path
    for module, path in sorted(paths.items()):
        try:
            with tokenize.open(path) as file:  # Honors the file's own encoding line.
                source = file.read()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Invalid escapes in other people's code.
                docstrings = [*_docstrings(ast.parse(source))]
        except (SyntaxError, UnicodeError, ValueError, RecursionError):
            yield module, None, []
        else:
            yield module, source, docstrings


def _docstrings(node: ast.AST) -> Iterator[str]:
    """Yield docstrings in file order, with those that calls add to compiled functions."""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield ast.get_docstring(node, clean=False) or ""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from _docstrings(child)
        elif isinstance(child, ast.Call) and _ADD_DOCSTRING.fullmatch(_called_name(child)):
            for part in ast.walk(child):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def _called_name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _comments(source: str) -> Iterator[str]:
    """Yield blocks of consecutive comment lines."""
    lines = [re.match(r" *#(?!!) ?(.*)", line) for line in source.splitlines()]
    for _, group in itertools.groupby(lines, bool):
        comment = [line[1] for line in group if line]
        if comment:
            yield "\n".join(comment)


# From one docstring to its paragraphs of prose ----------------------------------------------------------

# Headings of sections that hold a list, an example or a formula, not prose.
_DESCRIBED = (
    r"((additional|keyword|optional|other) )?(args|arguments|kwargs|param(eter)?s?)"
    r"|attributes?|inputs?|outputs?|raises|receives|returns?|warns|yields?"
)
_LISTS = re.compile(
    rf"{_DESCRIBED}|(additional |example |keyword |optional |other )?usage|(additional|example) (args|"
    r"arguments|kwargs|param(eter)?s?)|authors|classes|domain|examples?|format|functions|link|methods|options"
    r"|references?|see also|shape|todo"
)
_ADMONITIONS = {"note", "warning", "important", "tip", "hint", "caution", "attention", "danger"}
_UNDERLINE = re.compile(r"([-=~^*#])\1{2,}")
_DIRECTIVE = re.compile(r"\.\. (?:([\w-]+)::$|[\w-]+::|\[|_|\|)")
_BULLET = re.compile(r"(?:[-*+•]|\(?(?:\d{1,2}|[a-zA-Z])[.)]) +")
_NAME = re.compile(r"\*{0,2}[\w.]+(?: ?\([^()]*(?:\([^()]*\)[^()]*)*\))?: +(?=\S)")  # Google's "x (int): "


def prose(docstring: str) -> list[str]:
    """Extract the paragraphs of prose from one docstring, as single lines without inline markup, in order.

    The source may be reStructuredText, Markdown, or in the styles of NumPy and Google. Parameter lists,
    doctests, code, tables, formulas, references and directives are left out, and so is anything that does not
    read as a sentence.
    """
    return _paragraphs(docstring, "prose")


def descriptions(docstring: str) -> list[str]:
    """Extract the descriptions of single parameters, attributes, results and errors from one docstring.

    They are lines like those of `prose`, without the name and the type, under the same rules.
    """
    return _paragraphs(docstring, "descriptions")


def _paragraphs(docstring: str, kind: str) -> list[str]:
    blocks = _blocks(_lines(docstring, kind), names=kind == "descriptions")
    texts = (_plain(" ".join(block)) for block in blocks)
    return [text for text in texts if _is_prose(text)]


def _lines(docstring: str, wanted: str) -> Iterator[str]:
    """Yield each line that may be of the wanted kind, and a blank line in place of all others."""
    lines = inspect.cleandoc(docstring).expandtabs().split("\n")
    in_fence = in_doctest = False
    section: str | None = "prose"  # The kind of text below the last underlined heading; None: hidden.
    indented: list[tuple[int, str | None]] = []  # An indent, and the kind of text indented by more.
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        text, indent = line.strip(), _indent(line)
        in_doctest = bool(text) and (in_doctest or text.startswith(">>>"))
        while text and indented and indent <= indented[-1][0]:
            indented.pop()
        kind = indented[-1][1] if indented else section
        if text.startswith("```"):
            in_fence = not in_fence
        elif not text or in_fence or in_doctest or _UNDERLINE.fullmatch(text):
            pass
        elif _UNDERLINE.fullmatch(following.strip()):
            section, indented = _kind_below(text), []
        elif kind is None:
            pass
        elif _is_list(text) and text.endswith(":"):
            indented.append((indent, _kind_below(text)))
        elif directive := _DIRECTIVE.match(text):
            if directive[1] not in _ADMONITIONS:
                indented.append((indent, None))
        else:
            if text.endswith("::"):
                indented.append((indent, None))
            if kind == wanted:
                yield line
                continue
        yield ""


def _kind_below(heading: str) -> str | None:
    """Return the kind of text below a heading; None if we want none of it."""
    if re.fullmatch(_DESCRIBED, _bare(heading)):
        return "descriptions"
    return None if _is_list(heading) else "prose"


def _is_list(heading: str) -> bool:
    return bool(_LISTS.fullmatch(_bare(heading)))


def _bare(heading: str) -> str:
    return heading.rstrip(":").strip().lower()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _blocks(lines: Iterator[str], *, names: bool) -> Iterator[list[str]]:
    """Group lines into paragraphs: a blank line, a bullet or a change of indent starts a new one.

    With `names`, "name (type): " at the beginning of a line starts one too, and what follows may be indented.
    """
    block: list[str] = []
    block_indent: int | None = 0  # None: the next line decides.
    for line in lines:
        text, indent = line.strip(), _indent(line)
        bullet, name = _BULLET.match(text), _NAME.match(text) if names else None
        if bullet:
            text, indent = text[bullet.end() :], indent + bullet.end()
        if block and (not text or bullet or name or block_indent not in (None, indent)):
            yield block
            block = []
        if text:
            block, block_indent = [*block, text[name.end() if name else 0 :]], None if name else indent
    if block:
        yield block


# Inline markup and what remains of it, in the order of removal.
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
    """Remove inline markup, repeated whitespace, and phrases that only introduce an example."""
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text.strip()


def _is_prose(text: str) -> bool:
    """Return whether a paragraph reads as sentences: complete, long enough, and mostly letters."""
    letters = sum(character.isalpha() or character == " " for character in text)
    return (
        len(text.split()) >= _MIN_WORDS
        and letters >= 0.85 * len(text)
        and bool(_SENTENCE.fullmatch(text))
        and not _NOT_PROSE.search(text)
    )
