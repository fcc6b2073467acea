"""The whole book as one PDF and as one EPUB."""

from collections.abc import Iterator

import pytest
from printed_book import (
    Package,
    bookmarks,
    check_appendix,
    check_package,
    check_with_epubcheck,
    exercises_of,
    printing_with,
)
from pypdf import PdfReader

from paper import contents, epub, printing

pytestmark = pytest.mark.full

MOST = 100_000_000  # bytes of a file
MOST_PAGES = 400  # of the PDF


@pytest.fixture
def chapters(site, browser) -> Iterator[list[str]]:
    """The pages of the book, with a browser to print them."""
    with printing_with(browser):
        yield [name for part in contents.parts() for name in part.pages]


def test_the_whole_book_as_pdf(chapters, tmp_path):
    printing.make_pdf(tmp_path / "book.pdf", contents.parts())
    pdf = PdfReader(tmp_path / "book.pdf")
    first = [title for level, title, _ in bookmarks(pdf) if level < 2]
    captions = [part.caption for part in contents.parts() if part.caption]
    assert [title for level, title, _ in bookmarks(pdf) if level == 0][1:] == [
        *captions,
        contents.APPENDIX_TITLE,
    ]
    assert len(first) >= len(chapters) + len(captions)
    assert 10 * len(chapters) < len(pdf.pages) <= MOST_PAGES
    exercises = [
        exercise for name in chapters if name.startswith("notebooks/") for exercise in exercises_of(name)
    ]
    assert len(exercises) > 90
    check_appendix(pdf, exercises)
    links = [a.get_object() for page in pdf.pages for a in page.get("/Annots", [])]
    assert not any(str(link.get("/A", {}).get("/URI", "")).startswith("file:") for link in links)
    assert (tmp_path / "book.pdf").stat().st_size < MOST


def test_the_whole_book_as_epub(chapters, tmp_path):
    epub.make_epub(tmp_path / "book.epub", contents.parts())
    package = Package(tmp_path / "book.epub")
    assert {name.replace("/", "-") + ".xhtml" for name in chapters} <= package.pages.keys()
    check_package(package)
    assert package.path.stat().st_size < MOST
    check_with_epubcheck(package.path)
