"""The book as one PDF: the browser prints each page of the site, and the results are merged.

A printed page is the site's own, with `book/_static/print.css` and `print.js`. This module adds a cover, a
table of contents, continuous page numbers, bookmarks, links between chapters, an appendix with the solutions
and answers, and the tags that tell screen readers what is a heading, a table or a picture.
"""

import html
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

from playwright.sync_api import Browser, Page
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    BooleanObject,
    DictionaryObject,
    Fit,
    IndirectObject,
    NameObject,
    NumberObject,
    TextStringObject,
)

from address import address
from paper import contents, fitting
from paper.contents import APPENDIX, APPENDIX_TITLE, AUTHOR, LICENSE, MOVE_BACK_MATTER, TITLE, Part
from paths import ROOT

LEVELS = 3  # of headings among the bookmarks: chapters, sections, and what is below these
LISTED = 2  # of headings in the table of contents
ROW = "contents:"  # an address in the table of contents: the number of its row
BACK = "S"  # what the page numbers of the appendix begin with
PRINT_PAGE = (ROOT / "tools" / "paper" / "print_page.js").read_text(encoding="utf-8")
FILL = """({ title, chapters }) => {
  const parts = chapters.map((chapter) => chapter.html);
  document.querySelector("article").innerHTML = `<h1>${title}</h1>${parts.join("")}`;
  const style = document.createElement("style");
  style.textContent = chapters.map((chapter) => chapter.letters).join("\\n");
  document.head.append(style);
}"""
RESIZE = """([number, scale]) => {
  const figure = document.querySelector(`[data-figure="${number}"]`);
  figure.style.zoom = scale * (figure.matches(".diagram") ? 0.78 : 1);
}"""
POSTPONE = """([number, room]) => {
  const cell = document.querySelector(`[data-figure="${number}"]`).closest("div.cell");
  const mark = document.getElementById(`before-${number}`);
  const text = "p:not(.exercise), ul, ol";
  let moved = false;
  for (let next; (next = cell.nextElementSibling)?.matches(text) && room > 0; moved = true) {
    if (next.nextElementSibling?.matches(`:not(${text})`)) break; // it may announce what follows
    cell.before(next);
    next.append(mark);
    room -= 6 + 13 * Math.ceil(next.textContent.length / 115);
  }
  return moved;
}"""
FRONT_STYLE = """
@page { margin: 20mm 24mm; @bottom-center { content: counter(page, lower-roman); font: 8.5pt sans-serif; } }
@page :first { @bottom-center { content: none; } }
body { font: 10.5pt/1.5 sans-serif; font-variant-ligatures: none; color: #111; margin: 0; }
.cover { height: 240mm; display: flex; flex-direction: column; justify-content: center; break-after: page; }
.cover svg { width: 90mm; margin-bottom: 18mm; }
.cover h1 { font-size: 30pt; line-height: 1.15; margin: 0 0 4mm; }
.cover p { margin: 0 0 2mm; color: #444; }
@media screen { .cover { height: 100vh; padding: 0 10%; box-sizing: border-box; } }
nav { columns: 2; column-gap: 10mm; font-size: 9.5pt; line-height: 1.35; }
nav h2 { font-size: 20pt; margin: 0 0 5mm; column-span: all; }
nav p { margin: 0; display: flex; break-inside: avoid; }
nav p.part { font-weight: 700; margin: 4mm 0 1mm; break-after: avoid; }
nav p.chapter { font-weight: 600; margin-top: 1.5mm; break-after: avoid; }
nav p.section { padding-left: 4mm; font-size: 9pt; }
nav a { color: inherit; text-decoration: none; display: flex; flex: 1; align-items: baseline; }
nav a::before { content: ""; order: 1; flex: 1; border-bottom: 0.6pt dotted #888; margin: 0 2mm; }
nav a .number { order: 2; }
"""


@dataclass(frozen=True)
class Row:
    """A line of the table of contents, and a bookmark."""

    level: int  # 0: a part of the book, 1: a chapter, 2: a section, and so on
    title: str
    page: int  # of the book's body, from 0
    top: float  # in points from the lower edge
    label: str  # the page's number, as printed


@dataclass(frozen=True)
class Printed:
    """A page of the site, printed."""

    name: str
    pdf: PdfReader
    first: int  # its first page in the body of the book, from 0


def make_pdf(target: Path, book: list[Part], say: Callable = print) -> None:
    """Print the book into one file, atomically.

    Args:
        target: the file.
        book: the parts returned by `contents.parts`.
        say: where progress goes.

    Raises:
        contents.NoBrowser: there is no browser to print with.
    """
    kept = [name for part in book for name in part.pages]
    with tempfile.TemporaryDirectory() as folder, contents.browser() as running:
        back, titles = _print_appendix(running, Path(folder) / "back.pdf", kept, say)
        printed, rows = _print_all(running, Path(folder), book, _sheets(back), say)
        if back:
            printed.append(Printed(APPENDIX, back, sum(len(part.pdf.pages) for part in printed)))
            rows.append(Row(0, APPENDIX_TITLE, printed[-1].first, 0, f"{BACK}1"))
            rows += _headings(printed[-1], titles, BACK)[1:]
        front = Path(folder) / "front.html"
        front.write_text(cover(_contents(rows)), encoding="utf-8")
        with contents.opened(running, front.as_uri()) as page:
            page.pdf(path=front.with_suffix(".pdf"), format="A4", print_background=True, tagged=True)
        _put_together(PdfReader(front.with_suffix(".pdf")), printed, rows, target)


def _print_appendix(
    running: Browser, target: Path, kept: list[str], say: Callable
) -> tuple[PdfReader | None, list[str]]:
    """Collect solutions and answers from all pages, and print them; return their headings, too."""
    found = []
    for name in filter(contents.has_back_matter, kept):
        say(f"collecting the solutions of {name}")
        with contents.opened(running, contents.address_of(name)) as page:
            found.append(page.evaluate(MOVE_BACK_MATTER, {"appendix": contents.address_of(APPENDIX)}))
    if not found:
        return None, []
    say("printing the solutions")
    with contents.opened(running, contents.address_of(APPENDIX)) as page:
        page.evaluate(FILL, {"title": APPENDIX_TITLE, "chapters": found})
        page.evaluate(contents.READY)
        titles = _print(page, target, kept, number=1, prefix=BACK)
    return PdfReader(target), titles


def _sheets(back: PdfReader | None) -> dict[str, str]:
    """Return the page number of every named place in the appendix."""
    if back is None:
        return {}
    return {name: f"{BACK}{place.page + 1}" for name, place in fitting.places(back).items()}


def _print_all(
    running: Browser, folder: Path, book: list[Part], sheets: Mapping[str, str], say: Callable
) -> tuple[list[Printed], list[Row]]:
    """Print every page of the book, with continuous page numbers."""
    printed: list[Printed] = []
    rows: list[Row] = []
    kept = [name for part in book for name in part.pages]
    number = 0
    for part in book:
        if part.caption:
            rows.append(Row(0, part.caption, number, 0, str(number + 1)))
        for name in part.pages:
            say(f"printing {name}")
            path = folder / f"{len(printed)}.pdf"
            titles = print_page(running, name, path, kept=kept, number=number + 1, sheets=sheets)
            printed.append(Printed(name, PdfReader(path), number))
            rows += _headings(printed[-1], titles)
            number += len(printed[-1].pdf.pages)
    return printed, rows


def print_page(
    running: Browser,
    name: str,
    target: Path,
    kept: Iterable[str] = (),
    number: int = 1,
    sheets: Mapping[str, str] | None = None,
) -> list[str]:
    """Print one page of the site, without the solutions and answers that stand in the appendix.

    Args:
        running: a browser.
        name: the page, such as "notebooks/03_tokenization".
        target: the file.
        kept: the pages that links may lead to; other links into the site become plain text.
        number: the number of its first sheet.
        sheets: names of places in the appendix, such as "solution-3-1" -> their page numbers.

    Returns:
        Its headings, in order.
    """
    with contents.opened(running, contents.address_of(name)) as page:
        if contents.has_back_matter(name):
            page.evaluate(
                MOVE_BACK_MATTER, {"appendix": contents.address_of(APPENDIX), "sheets": dict(sheets or {})}
            )
        return _print(page, target, kept, number)


def _print(page: Page, target: Path, kept: Iterable[str], number: int, prefix: str = "") -> list[str]:
    """Print what a browser shows; return its headings."""
    known = [contents.address_of(other) for other in (*kept, APPENDIX)]
    titles = page.evaluate(PRINT_PAGE, {"kept": known, "number": number, "prefix": prefix})

    def made() -> PdfReader:
        page.pdf(path=target, format="A4", print_background=True, outline=True, tagged=True)
        return PdfReader(target)

    fitting.fit(
        made,
        resize=lambda number, scale: page.evaluate(RESIZE, [number, scale]),
        postpone=lambda number, room: page.evaluate(POSTPONE, [number, room]),
    )
    return titles


def _headings(printed: Printed, titles: list[str], prefix: str = "") -> list[Row]:
    """Return the positions of the headings, from the browser's bookmarks.

    Page numbers with a prefix begin anew.

    If a heading was moved to the next sheet, the browser's bookmark repeats its words, so the words come from
    the page.
    """

    def walk(items: list, level: int) -> Iterator[tuple[int, Any]]:
        for item in items:
            yield from walk(item, level + 1) if isinstance(item, list) else [(level, item)]

    rows = []
    for (level, item), title in zip(walk(printed.pdf.outline, 1), titles, strict=True):
        sheet = printed.pdf.get_destination_page_number(item)
        page = printed.first + sheet
        label = f"{prefix}{(sheet if prefix else page) + 1}"
        rows.append(Row(level, title, page, float(item.top or 0), label))
    return [row for row in rows if row.level <= LEVELS]


def cover(more: str = "") -> str:
    """Return the cover as HTML, optionally with more content."""
    logo = (ROOT / "book" / "_static" / "logo.svg").read_text(encoding="utf-8")
    lines = (f"Version {address()[1].removeprefix('v')}", AUTHOR, LICENSE)
    told = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
    return (
        f'<!doctype html><html lang="en-US"><head><meta charset="utf-8"><title>{TITLE}</title>'
        f'<style>{FRONT_STYLE}</style></head><body><div class="cover">{logo}<h1>{TITLE}</h1>'
        f"{told}</div>{more}</body></html>"
    )


def _contents(rows: list[Row]) -> str:
    """Return the table of contents as HTML."""
    kinds = ["part", "chapter", "section"]
    lines = []
    for place, row in enumerate(rows):
        title = html.escape(row.title)
        if row.level == 0:
            lines.append(f'<p class="part">{title}</p>')
        elif row.level <= LISTED:
            number = f'<span class="number">{row.label}</span>'
            lines.append(f'<p class="{kinds[row.level]}"><a href="{ROW}{place}">{title}{number}</a></p>')
    return f"<nav><h2>Contents</h2>{''.join(lines)}</nav>"


def _put_together(front: PdfReader, printed: list[Printed], rows: list[Row], target: Path) -> None:
    """Merge the printed pages, with links, bookmarks, page labels and tags for screen readers."""
    writer = PdfWriter()
    tags = _Tags(writer)
    start = len(front.pages)
    places: dict[str, tuple[int, float]] = {  # address -> page of the file, and how high
        f"{ROW}{number}": (start + row.page, row.top) for number, row in enumerate(rows)
    }
    for part in printed:
        own = contents.address_of(part.name)
        places[own] = (start + part.first, float(part.pdf.pages[0].mediabox.top))
        for name, place in part.pdf.named_destinations.items():
            page = part.pdf.get_destination_page_number(place)
            places[f"{own}#{unquote(name.lstrip('/'))}"] = (start + part.first + page, float(place.top))
        _name_own_links(part.pdf, own)
    for pdf in [front, *(part.pdf for part in printed)]:
        writer.append(pdf, import_outline=False)
        tags.add(pdf)
    _lead_links(writer, places)
    _add_bookmarks(writer, rows, start)
    writer.set_page_label(0, start - 1, style="/r")
    end = start + sum(len(part.pdf.pages) for part in printed if part.name != APPENDIX)
    writer.set_page_label(start, end - 1, style="/D", start=1)
    if end < len(writer.pages):
        writer.set_page_label(end, len(writer.pages) - 1, style="/D", prefix=BACK, start=1)
    writer.add_metadata({"/Title": TITLE, "/Author": AUTHOR, "/Subject": LICENSE})
    catalog = writer.root_object
    catalog[NameObject("/Lang")] = TextStringObject("en-US")
    catalog[NameObject("/PageMode")] = NameObject("/UseOutlines")
    shown = DictionaryObject({NameObject("/DisplayDocTitle"): BooleanObject(True)})
    catalog[NameObject("/ViewerPreferences")] = shown
    partial = target.with_name(target.name + ".partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("wb") as file:
        writer.write(file)
    partial.replace(target)


def _links(pages: Iterable[Any]) -> Iterator[DictionaryObject]:
    for page in pages:
        for annotation in page.get("/Annots", []):
            if annotation.get_object().get("/Subtype") == "/Link":
                yield annotation.get_object()


def _name_own_links(pdf: PdfReader, own: str) -> None:
    """Give a printed page's links to itself an address, like links to other pages."""
    for link in _links(pdf.pages):
        if "/Dest" in link:
            name = unquote(str(link.pop("/Dest")).lstrip("/"))
            action = {
                NameObject("/S"): NameObject("/URI"),
                NameObject("/URI"): TextStringObject(f"{own}#{name}"),
            }
            link[NameObject("/A")] = DictionaryObject(action)


def _lead_links(writer: PdfWriter, places: dict[str, tuple[int, float]]) -> None:
    """Turn links to addresses in the book into links to its pages."""
    for link in _links(writer.pages):
        uri = str(link.get("/A", {}).get("/URI", ""))
        if not uri.startswith(("file:", ROW)):
            continue
        page, anchor = urldefrag(uri)
        known = places.get(f"{page}#{unquote(anchor)}") or places.get(page)
        if known is None:
            raise ValueError(f"a link leads out of the book: {uri}")
        number, top = known
        reference = writer.pages[number].indirect_reference
        link[NameObject("/Dest")] = ArrayObject([reference, *_upper_left(top)])
        del link["/A"]


def _upper_left(top: float) -> list:
    return [NameObject("/XYZ"), NumberObject(0), NumberObject(round(top)), NumberObject(0)]


def _add_bookmarks(writer: PdfWriter, rows: list[Row], start: int) -> None:
    """Add bookmarks: parts, chapters, sections; pages before the first part are at the top level."""
    above: dict[int, IndirectObject] = {}
    for row in rows:
        parent = next((above[level] for level in range(row.level - 1, -1, -1) if level in above), None)
        top = row.top or float(writer.pages[start + row.page].mediabox.top)
        made = writer.add_outline_item(
            title=row.title,
            page_number=start + row.page,
            parent=parent,
            fit=Fit.xyz(left=0, top=top),
            is_open=row.level == 0,
        )
        above = {level: item for level, item in above.items() if level < row.level} | {row.level: made}


class _Tags:
    """The merged structure trees of PDFs: pypdf merges their pages without these."""

    def __init__(self, writer: PdfWriter):
        self.writer = writer
        self.parts = ArrayObject()
        self.numbers = ArrayObject()  # what pages and links call their place in the structure -> elements
        self.next = 0  # such a number
        self.document = self._new("/StructElem", S=NameObject("/Document"), K=self.parts)
        tree = self._new(None, Nums=self.numbers)
        # The browser uses two kinds of PDF 2.0, which not every reader knows.
        kinds = {NameObject(kind): NameObject("/Span") for kind in ("/Em", "/Strong")}
        root = self._new("/StructTreeRoot", K=self.document, ParentTree=tree, RoleMap=DictionaryObject(kinds))
        self.document.get_object()[NameObject("/P")] = root
        self.root = root.get_object()
        writer.root_object[NameObject("/StructTreeRoot")] = root
        marked = DictionaryObject({NameObject("/Marked"): BooleanObject(True)})
        writer.root_object[NameObject("/MarkInfo")] = marked

    def _new(self, kind: str | None, **entries: Any) -> IndirectObject:
        made = DictionaryObject({NameObject(f"/{name}"): value for name, value in entries.items()})
        if kind:
            made[NameObject("/Type")] = NameObject(kind)
        return self.writer._add_object(made)

    def add(self, pdf: PdfReader) -> None:
        """Add the structure of a PDF whose pages were just appended."""
        copy = pdf.trailer["/Root"]["/StructTreeRoot"].clone(self.writer)
        for child in _as_list(copy["/K"]):
            child.get_object()[NameObject("/P")] = self.document
            child.get_object()[NameObject("/S")] = NameObject("/Part")
            self.parts.append(child)
            _forget_names(child)
        shift = self.next
        for number, element in _numbers(copy["/ParentTree"]):
            self.numbers += [NumberObject(number + shift), element]
            self.next = max(self.next, number + shift + 1)
        self.root[NameObject("/ParentTreeNextKey")] = NumberObject(self.next)
        for page, original in zip(self.writer.pages[-len(pdf.pages) :], pdf.pages, strict=True):
            page[NameObject("/StructParents")] = NumberObject(original["/StructParents"] + shift)
            for link in _links([page]):
                if "/StructParent" in link:
                    link[NameObject("/StructParent")] = NumberObject(link["/StructParent"] + shift)


def _as_list(value: Any) -> list:
    value = value.get_object()
    return list(value) if isinstance(value, ArrayObject) else [value.indirect_reference]


def _forget_names(element: Any) -> None:
    """Remove the ids of table headings, which chapters reuse. Their scope says the same."""
    waiting = [element]
    while waiting:
        entry = waiting.pop().get_object()
        if isinstance(entry, ArrayObject):
            waiting += entry
        elif isinstance(entry, DictionaryObject):
            entry.pop("/ID", None)
            for attributes in entry.get("/A", []):
                attributes.get_object().pop("/Headers", None)
            waiting += [entry["/K"]] if "/K" in entry else []


def _numbers(tree: Any) -> Iterator[tuple[int, Any]]:
    """Yield the entries of a number tree, in order."""
    tree = tree.get_object()
    entries = tree.get("/Nums", [])
    yield from zip((int(key) for key in entries[::2]), entries[1::2], strict=True)
    for child in tree.get("/Kids", []):
        yield from _numbers(child)
