"""The book as an EPUB: each page of the site is simplified in the browser (`epub_page.js`) and packed.

The EPUB shows what a page shows after its scripts ran, without scripts: formulas as MathML, attention views
as pictures, folds as on paper, solutions and answers at its end. The package follows EPUB 3.3,
https://www.w3.org/TR/epub-33/.
"""

import datetime
import html
import mimetypes
import re
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

from playwright.sync_api import Browser, Page

from address import address
from paper import contents
from paper.contents import APPENDIX_TITLE, AUTHOR, LICENSE, MOVE_BACK_MATTER, TITLE, Part
from paper.printing import cover
from paths import HTML, ROOT

WIDTH = 700  # CSS pixels of the text, when views are drawn
VIEWS = 'article [id^="bertviz-"]'
MAKE_PLAIN = (ROOT / "tools" / "paper" / "epub_page.js").read_text(encoding="utf-8")
# Pictures replace views. Each view gets a number and a description.
NUMBER_VIEWS = """views => [...document.querySelectorAll(views)].map((view, number) => {
  view.dataset.still = number;
  return view.querySelector("svg").getAttribute("aria-label");
})"""
COLORS = re.compile(r'(?m)^html\[data-theme="light"\] (\.highlight \.[^{]*\{[^}]*\})')
CONTAINER = """<?xml version="1.0" encoding="UTF-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/></rootfiles></container>
"""


@dataclass
class File:
    """A file of the package, with its manifest entry."""

    name: str
    content: bytes
    properties: set[str] = field(default_factory=set)

    @property
    def media_type(self) -> str:
        """The media type of the file."""
        known = {".xhtml": "application/xhtml+xml", ".svg": "image/svg+xml", ".css": "text/css"}
        suffix = Path(self.name).suffix
        return known.get(suffix) or mimetypes.guess_type(self.name)[0]


@dataclass
class Chapter:
    """A page of the site as a chapter of the book."""

    file: File
    title: str
    sections: list[tuple[str, str]]  # where they are in the file, and their titles


def make_epub(target: Path, book: list[Part], say: Callable = print) -> None:
    """Write the book as one EPUB, atomically.

    Args:
        target: the file.
        book: the parts returned by `contents.parts`.
        say: where progress goes.

    Raises:
        contents.NoBrowser: there is no browser to draw views with.
    """
    kept = {contents.address_of(name): _file_name(name) for part in book for name in part.pages}
    kept |= {_back(address): _back(file) for address, file in kept.items()}
    pictures: dict[str, File] = {}
    made: list[tuple[str, list[Chapter]]] = []
    back: list[Chapter] = []
    with contents.browser() as running:
        picture = File("images/cover.png", _cover(running), {"cover-image"})
        for part in book:
            chapters = []
            for name in part.pages:
                say(f"writing {name}")
                chapter, *solutions = _chapters(running, name, kept, pictures)
                chapters.append(chapter)
                back += solutions
            made.append((part.caption, chapters))
    if back:
        made.append((APPENDIX_TITLE, back))
    image = f'<p class="cover"><img src="{picture.name}" alt="Cover: {TITLE}"/></p>'
    front = File("cover.xhtml", _page("Cover", image))
    every = [chapter for _, chapters in made for chapter in chapters]
    documents = [front, File("contents.xhtml", _navigation(made), {"nav"}), *(c.file for c in every)]
    style = File("book.css", _style().encode())
    _pack(target, documents, [style, picture, *pictures.values()])


def _chapters(
    running: Browser, name: str, kept: dict[str, str], pictures: dict[str, File]
) -> Iterator[Chapter]:
    """Convert one page of the site to a file of the book, and its solutions and answers to another.

    Their pictures are added to `pictures`.
    """
    own = contents.address_of(name)
    size = {"width": WIDTH, "height": 1000}
    with contents.opened(running, own, viewport=size, device_scale_factor=2) as page:
        roots = {"article": own}
        if page.evaluate(MOVE_BACK_MATTER, {"appendix": _back(own)}):
            roots["#back-matter"] = _back(own)
        page.emulate_media(media="print")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        stills = list(_stills(page, Path(name).name))
        files = [
            {"selector": f'[data-still="{i}"]', "name": Path(file.name).name, "alt": alt}
            for i, (file, alt) in enumerate(stills)
        ]
        pictures |= {file.name: file for file, _ in stills}
        for root, address in roots.items():
            told = {"kept": kept, "own": address, "files": files, "root": root}
            yield _chapter(kept[address], page.evaluate(MAKE_PLAIN, told), pictures)


def _chapter(name: str, plain: dict, pictures: dict[str, File]) -> Chapter:
    """Return a chapter from what `epub_page.js` gives, and add its pictures to `pictures`."""
    for image, source in plain["images"].items():
        path = Path(unquote(urlparse(source).path))
        pictures[f"images/{image}"] = File(f"images/{image}", path.read_bytes())
    headings = plain["headings"]
    title = headings[0]["title"]
    properties = {kind for kind, there in (("mathml", plain["math"]), ("svg", plain["svg"])) if there}
    sections = [(h["id"], h["title"]) for h in headings if h["level"] == 2 and h["id"]]
    return Chapter(File(name, _page(title, plain["body"]), properties), title, sections)


def _stills(page: Page, name: str) -> Iterator[tuple[File, str]]:
    """Yield pictures of the views of a page in their initial state, with descriptions."""
    for number, alt in enumerate(page.evaluate(NUMBER_VIEWS, VIEWS)):
        view = page.locator(f'[data-still="{number}"]')
        yield File(f"images/{name}-view-{number}.png", view.screenshot(animations="disabled")), alt


def _cover(running: Browser) -> bytes:
    with contents.opened(
        running, "about:blank", viewport={"width": 600, "height": 900}, device_scale_factor=2
    ) as page:
        page.set_content(cover())
        return page.screenshot()


def _file_name(page: str) -> str:
    return page.replace("/", "-") + ".xhtml"


def _back(name: str) -> str:
    """Return what the solutions and answers of a page are called, as an address or a file."""
    path, dot, suffix = name.rpartition(".")
    return f"{path}-solutions{dot}{suffix}"


def _page(title: str, body: str) -> bytes:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" '
        f'lang="en-US" xml:lang="en-US"><head><title>{html.escape(title)}</title>'
        f'<link rel="stylesheet" type="text/css" href="book.css"/></head><body>{body}</body></html>\n'
    ).encode()


def _navigation(made: list[tuple[str, list[Chapter]]]) -> bytes:
    """Return the table of contents, for readers and reading systems."""

    def entry(link: str, title: str, below: str = "") -> str:
        return f'<li><a href="{link}">{html.escape(title)}</a>{below}</li>'

    def item(chapter: Chapter) -> str:
        name = chapter.file.name
        sections = "".join(entry(f"{name}#{place}", title) for place, title in chapter.sections)
        return entry(name, chapter.title, f"<ol>{sections}</ol>" if sections else "")

    items = []
    for caption, chapters in made:
        inner = "".join(map(item, chapters))
        items.append(f"<li><span>{html.escape(caption)}</span><ol>{inner}</ol></li>" if caption else inner)
    return _page("Contents", f'<nav epub:type="toc"><h1>Contents</h1><ol>{"".join(items)}</ol></nav>')


def _style() -> str:
    """Return our style sheet, with the code colors of the site."""
    code = (HTML / "_static" / "pygments.css").read_text(encoding="utf-8")
    own = (ROOT / "tools" / "paper" / "epub.css").read_text(encoding="utf-8")
    return own + "\n".join(COLORS.findall(code)) + "\n"


def _pack(target: Path, documents: list[File], others: list[File]) -> None:
    """Write the package; the first entry, uncompressed, is the media type."""
    partial = target.with_name(target.name + ".partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        package.writestr("META-INF/container.xml", CONTAINER)
        package.writestr("book/package.opf", _package(documents, others))
        for file in [*documents, *others]:
            package.writestr(f"book/{file.name}", file.content)
    partial.replace(target)


def _package(documents: list[File], others: list[File]) -> str:
    """Return the package document: metadata, files and reading order."""
    identifier = uuid.uuid5(uuid.NAMESPACE_URL, "@".join(address()))
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {
        "schema:accessMode": ["textual", "visual"],
        "schema:accessModeSufficient": ["textual"],
        "schema:accessibilityFeature": [
            "alternativeText", "MathML", "structuralNavigation", "tableOfContents", "readingOrder",
        ],
        "schema:accessibilityHazard": ["none"],
    }  # fmt: skip
    meta = "".join(
        f'<meta property="{name}">{value}</meta>' for name, values in about.items() for value in values
    )
    manifest = "".join(
        f'<item id="file-{i}" href="{html.escape(file.name)}" media-type="{file.media_type}"'
        + (f' properties="{" ".join(sorted(file.properties))}"' if file.properties else "")
        + "/>"
        for i, file in enumerate([*documents, *others])
    )
    spine = "".join(f'<itemref idref="file-{i}"/>' for i in range(len(documents)))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en-US">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f'<dc:identifier id="id">urn:uuid:{identifier}</dc:identifier>'
        f"<dc:title>{TITLE}</dc:title><dc:language>en-US</dc:language><dc:creator>{AUTHOR}</dc:creator>"
        f'<dc:rights>{LICENSE}</dc:rights><meta property="dcterms:modified">{now}</meta>{meta}</metadata>'
        f"<manifest>{manifest}</manifest><spine>{spine}</spine></package>\n"
    )
