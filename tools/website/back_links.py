"""Back links: from the glossary and the references to the chapters, from the chapters to the references.

Authors write links from a chapter to a term or a paper. The build adds the opposite links: each term and each
paper gets the chapters that link to it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import nbformat
from mdit_py_plugins.anchors.index import slugify
from nbformat import NotebookNode

from paths import ROOT, notebooks
from website.claims import chapter
from website.sections import Section, as_markdown, passages

LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
TERM_LINK = re.compile(r"\]\((?:\.\./book/)?glossary\.md#([\w-]+)\)")
ENTRY = re.compile(r"(?ms)^### (?P<title>.+?)\n.*?(?=^#{2,3} |\Z)")
REFERENCE = re.compile(r"(?ms)^- (?P<authors>.+?) ?(?:\((?P<year>\d{4})\))?\. \*\*.+?\*\*.*?\n(?=- |#|\n|\Z)")


class Reference(NamedTuple):
    """An entry of `book/references.md`."""

    text: str
    anchor: str
    addresses: tuple[str, ...]  # of the paper, without what does not tell papers apart


def glossary(text: str, uses: Mapping[str, Mapping[Path, Section]]) -> str:
    """Add to each glossary entry where its term is built and which chapters link to it.

    By default, a term is built in the section that links to it first.

    Args:
        text: `book/glossary.md`.
        uses: to the anchor of a term the notebooks that link to it, with the section that does so first.
    """

    def with_uses(entry: re.Match) -> str:
        own, used = entry[0].rstrip(), uses.get(slugify(entry["title"]), {})
        if "\n→ " not in own and used:
            path, section = next(iter(used.items()))
            name = f"Chapter {chapter(path)}" if path.name[:2].isdigit() else chapter(path).capitalize()
            own += f"\n\n→ {name}: [{as_markdown(section.title)}](../notebooks/{path.name}#{section.anchor})."
        others = [path for path in used if f"../notebooks/{path.name}" not in own]
        return f"{own}{_listed('Also in', others)}\n\n"

    return ENTRY.sub(with_uses, text)


def references(text: str, cited: Mapping[str, Iterable[Path]]) -> str:
    """Add to each reference an anchor and the chapters that link to the paper.

    Args:
        text: `book/references.md`.
        cited: to the address of a paper, as `address_of` gives it, the notebooks that link to it.
    """
    for reference in entries(text):
        chapters = sorted({path for address in reference.addresses for path in cited.get(address, ())})
        first, rest = reference.text.split("\n", 1)
        marked = f"- ({reference.anchor})=\n  {first.removeprefix('- ')}\n{rest.rstrip()}"
        text = text.replace(reference.text, f"{marked}{_listed('Cited in', chapters)}\n")
    return text


def entries(text: str) -> list[Reference]:
    """Parse the entries of the references; the anchor is the first author's last name and the year."""
    found: list[Reference] = []
    for entry in REFERENCE.finditer(text):
        first = re.split(r",| and ", entry["authors"])[0].split()[-1]
        name = slugify(f"ref-{first}-{entry['year'] or 'undated'}")
        again = sum(re.fullmatch(rf"{name}(-\d)?", other.anchor) is not None for other in found)
        addresses = [address_of(link) for link in LINK.findall(entry[0]) if link.startswith("https://")]
        found.append(Reference(entry[0], f"{name}-{again + 1}" if again else name, tuple(addresses)))
    return found


def address_of(link: str) -> str:
    """Normalize a link to a paper: without the scheme, `www.`, and the file format."""
    plain = re.sub(r"^https?://(www\.)?", "", link.split("#")[0]).replace("arxiv.org/pdf/", "arxiv.org/abs/")
    return re.sub(r"(?<=\d)v\d+$", "", plain.rstrip("/").removesuffix(".pdf")).rstrip("/")


def with_references(notebook: NotebookNode, known: Sequence[Reference]) -> None:
    """Add to each entry of a notebook's further reading a link to its place in the references."""
    anchors = {address: reference.anchor for reference in known for address in reference.addresses}
    last = notebook.cells[-1]
    if last.cell_type != "markdown" or "## Further reading" not in last.source:
        return
    lines = []
    for line in last.source.split("\n"):
        here = [anchors[a] for a in map(address_of, LINK.findall(line)) if a in anchors]
        lines.append(f"{line} [→ references](#{here[0]})" if here and re.match("[-*] ", line) else line)
    last.source = "\n".join(lines)


def uses() -> tuple[dict[str, dict[Path, Section]], dict[str, list[Path]]]:
    """Find where notebooks link to each term of the glossary, and to each external address.

    Terms map to notebooks in order, each with the section of its first link.
    """
    terms: dict[str, dict[Path, Section]] = {}
    addresses: dict[str, list[Path]] = {}
    for path in notebooks():
        for section, text in passages(nbformat.read(path, 4)):
            for term in TERM_LINK.findall(text):
                terms.setdefault(term, {}).setdefault(path, section)
            for link in (address_of(link) for link in LINK.findall(text) if "://" in link):
                if path not in addresses.setdefault(link, []):
                    addresses[link].append(path)
    return terms, addresses


def prose(path: Path) -> str:
    """Return the Markdown of a notebook or page."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = nbformat.read(path, 4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def write(folder: Path) -> None:
    """Write the two pages with their back links, if they exist in `folder`."""
    terms, addresses = uses()
    for name, change, known in (("glossary", glossary, terms), ("references", references, addresses)):
        page = folder / f"{name}.md"
        if page.exists():
            page.write_text(change(page.read_text(encoding="utf-8"), known), encoding="utf-8")


def of_the_book() -> list[Reference]:
    """Return the entries of this book's references, none without such a page."""
    page = ROOT / "book" / "references.md"
    return entries(page.read_text(encoding="utf-8")) if page.exists() else []


def _listed(said: str, paths: Iterable[Path]) -> str:
    links = ", ".join(f"[{chapter(path)}](../notebooks/{path.name})" for path in paths)
    return f" {said} {links}." if links else ""
