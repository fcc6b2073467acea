"""Source pages of the helper package: one per module or folder, with an anchor for each module and name.

The listing of a module is split where a public function or class begins, and each piece has a heading. So
everything public has an anchor, an entry in the page's contents, and a search result. The pieces concatenate
to the module. One more page has the scripts that run the language model in a page.
"""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

# The scripts of the language model, in the order in which they are read; and the title of a part of one.
SCRIPTS = {
    "model.js": "javascript",
    "decoding.js": "javascript",
    "tokenizer.js": "javascript",
    "checkpoint.js": "javascript",
    "kernels.js": "javascript",
    "kernels.ts": "typescript",
}
SCRIPTS_PAGE = "language_model_scripts"
SCRIPTS_TITLE = "The language model in the page"
PART = re.compile(r"^ *// --- (.+?)\.?$")
# Links to a module: on GitHub they open the file, on the site its place on a source page.
MODULE_LINK = re.compile(r"\]\(\.\./chapters_src/([\w/]+?)\.py\)")
SCRIPT_LINK = re.compile(r"\]\(_static/language_model/\w+\.js\)")


def link_to_pages(text: str) -> str:
    """Point the links to modules and scripts in a text at their source pages."""
    text = SCRIPT_LINK.sub(f"](../source/{SCRIPTS_PAGE}.md)", text)
    return MODULE_LINK.sub(lambda match: f"]({_address(tuple(match[1].split('/')))})", text)


def write_source_pages(package: Path, folder: Path) -> str:
    """Write one page for each module or folder of a package.

    Args:
        package: the folder of the package.
        folder: where the pages go; it must not exist yet.

    Returns:
        A Markdown list of the modules, each with its purpose and a link.
    """
    folder.mkdir(parents=True)
    pages, entries = {}, []
    files = package.rglob("*.py")
    modules = {_place(path.relative_to(package).with_suffix("").parts): path for path in files}
    for parts, module in sorted(modules.items()):
        text = module.read_text(encoding="utf-8")
        purpose = (ast.get_docstring(ast.parse(text)) or "").split("\n")[0]
        name = ".".join(parts[1:])
        pages.setdefault(parts[0], []).append(_section(parts, purpose, text))
        indent = "  " * bool(name)
        entries.append(f"{indent}- [`{name or parts[0]}`]({_address(parts)}): {purpose}".rstrip() + "\n")
    for room, sections in pages.items():
        (folder / f"{room}.md").write_text("\n".join(sections), encoding="utf-8")
    return "".join(entries)


def write_scripts_page(scripts: Path, folder: Path) -> str:
    """Write the page with the scripts that run the language model in a page.

    Args:
        scripts: the folder of the scripts.
        folder: where the page goes.

    Returns:
        An entry for the list of modules.
    """
    blocks = [
        f"# {SCRIPTS_TITLE}",
        "These scripts run the language model of chapter 12 in a page, in plain JavaScript. Begin with "
        "`model.js`: its functions have the names of chapters 07, 08 and 12. Those of `decoding.js` are of "
        "chapter 13, and `tokenizer.js` does what chapter 03 builds.",
    ]
    for name, language in SCRIPTS.items():
        first, *lines = (scripts / name).read_text(encoding="utf-8").splitlines()
        blocks += [f"## `{name}`", first.removeprefix("// ")]
        starts = [0, *(n for n, line in enumerate(lines) if PART.match(line)), len(lines)]
        for start, end in itertools.pairwise(starts):
            piece = "\n".join(lines[start:end]).strip("\n")
            if part := PART.match(lines[start]):
                blocks.append(f"### {part[1]}")
            blocks.append(_listing(piece, language, start + 2))
    (folder / f"{SCRIPTS_PAGE}.md").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return f"\n[{SCRIPTS_TITLE}](../source/{SCRIPTS_PAGE}.md): the scripts that run it, in JavaScript.\n"


def pieces(text: str) -> Iterator[tuple[str | None, int, str]]:
    """Split a module where its public functions and classes begin.

    Args:
        text: the source of a module.

    Yields:
        The name of a piece (None before the first public name), the number of its first line, and its lines,
        without blank lines at the ends. Private names stay with the preceding public one.
    """
    lines = text.splitlines()
    starts = [(0, None)]
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            while first and lines[first - 1].startswith("#"):
                first -= 1
            starts.append((first, node.name))
    for (start, name), (end, _) in zip(starts, [*starts[1:], (len(lines), None)], strict=True):
        while start < end and not lines[start].strip():
            start += 1
        piece = "\n".join(lines[start:end]).rstrip()
        if piece:
            yield name, start + 1, piece


def _section(parts: tuple[str, ...], purpose: str, text: str) -> str:
    """Return the section of a page for one module."""
    dotted = ".".join(parts[1:])
    title = f"## `{dotted}`" if dotted else f"# `{'.'.join(dict.fromkeys(('chapters_src', *parts)))}`"
    blocks = [title, *([purpose] if purpose else [])]
    for name, line, piece in pieces(text):
        if name:
            # `model` and `Model` need two anchors.
            what = "class " * bool(re.search(rf"(?m)^class {name}\b", piece))
            blocks.append(f"{'###' if dotted else '##'} `{what}{dotted or parts[0]}.{name}`")
        blocks.append(_listing(piece, "python", line))
    return "\n\n".join(blocks) + "\n"


def _listing(piece: str, language: str, line: int) -> str:
    """Return a piece of code as a block whose first line has this number."""
    fence = "`" * (max([2, *map(len, re.findall(r"`+", piece))]) + 1)
    return f"{fence}{{code-block}} {language}\n:lineno-start: {line}\n\n{piece}\n{fence}"


def _place(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Room, and names below it, of a path: `("tokenization", "byte_pair")`. The package itself is a room."""
    return (parts[:-1] if parts[-1] == "__init__" else parts) or ("chapters_src",)


def _address(parts: tuple[str, ...]) -> str:
    """Return the link target of a module, from a page of the book."""
    room, *names = _place(parts)
    return f"../source/{room}.md" + (f"#{'.'.join(names).replace('.', '')}" if names else "")
