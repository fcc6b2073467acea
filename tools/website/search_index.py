"""The search index: every section of every page, read from the rendered pages.

It is a script, because a site that is opened as files may load scripts but not data. The browser loads it on
the first search (`book/_static/search.js`), together with MiniSearch.
"""

import json
import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

SYNONYMS = Path(__file__).with_name("synonyms.txt")
INDEX = "_static/search_index.js"
POINTER = re.compile(r" ?→ Chapter \d\d: [^→]*$")  # at the end of a glossary entry, not part of it
NO_ANSWERS = {"five-questions"}  # sections: what a wrong option says is not what the book says
NOT_SEARCHED = {"search.html", "genindex.html", "index.html", "404.html"}
# Pages that come last: listings, lists, and tables from the build.
REFERENCE = re.compile(r"(source/|benchmarks/|book/(references|colophon|claims|helper_package)\.html)")
VOID = {"br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
SKIPPED_TAGS = {"script", "style", "svg", "button", "select", "summary", "noscript", "mjx-math"}
SKIPPED_CLASSES = {
    "claim-mark",
    "feedback",
    "headerlink",
    "linenos",
    "cell_output",
    "onlyprint",
    "prev-next-footer",
}
INLINE = {"a", "abbr", "b", "code", "em", "i", "span", "strong", "sub", "sup", "mark"}
IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,}")
WORD_IN_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass
class Section:
    """A section of a page: where it is, its title, its prose, and the names in its code."""

    anchor: str
    title: str = ""
    text: str = ""
    code: str = ""


@dataclass
class _Open:
    """An open element, and the destination of its text."""

    tag: str
    into: str
    section: Section | None


@dataclass
class PageReader(HTMLParser):
    """Parser for the sections of one page, in order; text of subsections is separate."""

    sections: list[Section] = field(default_factory=list)
    _open: list[_Open] = field(default_factory=list)

    def __post_init__(self):
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag, attributes):
        """Enter an element: its classes and its tag decide what its text is."""
        if tag in VOID:
            self.handle_data(" ")
            return
        about = dict(attributes)
        classes = set((about.get("class") or "").split())
        outer = self._open[-1] if self._open else _Open("", "nothing", None)
        into, section = outer.into, outer.section
        if tag == "article":
            into = "text"
        elif tag == "section" and into == "text":
            section = Section(about.get("id") or "" if self.sections else "")
            self.sections.append(section)
        elif tag in SKIPPED_TAGS or classes & SKIPPED_CLASSES:
            into = "shown" if "cell_output" in classes else "nothing"
        elif into == "shown" and (tag == "figcaption" or "claim" in classes):
            into = "text"
        elif re.fullmatch(r"h\d", tag) and section and not section.title:
            into = "title"
        elif "highlight" in classes and tag == "div" and into == "text":
            into = "code"
        elif into == "code" and "sd" in classes:  # a line of a docstring; what ends it stands outside
            into = "text"
            self._add(into, section, " ")
        if tag not in INLINE:
            self._add(outer.into, section, " ")
        self._open.append(_Open(tag, into, section))

    def handle_endtag(self, tag):
        """Leave an element, and anything left open in it."""
        if tag in VOID or not any(element.tag == tag for element in self._open):
            return
        while (closed := self._open.pop()).tag != tag:
            pass
        if closed.tag == "p" and self._open and (closed.into, self._open[-1].into) == ("text", "shown"):
            self._add(closed.into, closed.section, ".")  # a claim has no full stop
        if tag not in INLINE:
            self._add(closed.into, closed.section, " ")

    def handle_data(self, data):
        """Record text."""
        if self._open:
            self._add(self._open[-1].into, self._open[-1].section, data)

    @staticmethod
    def _add(into: str, section: Section | None, data: str) -> None:
        if section and into in ("title", "text", "code"):
            setattr(section, into, getattr(section, into) + data)


def sections_of(page: str) -> list[Section]:
    """Return the sections of a page, with normalized spaces, and only the names of code, each once."""
    reader = PageReader()
    reader.feed(page)
    for section in reader.sections:
        section.title = " ".join(section.title.split())
        section.text = POINTER.sub("", " ".join(section.text.replace('"""', " ").split()))
        section.code = " ".join(names_in(section.code))
    return [section for section in reader.sections if section.title and section.anchor not in NO_ANSWERS]


def names_in(code: str) -> Iterable[str]:
    """Return the names in code, each once, plus Byte and Pair for `BytePair`; search splits at "_"."""
    names = dict.fromkeys(name for name in IDENTIFIER.findall(code) if not keyword.iskeyword(name))
    words = (WORD_IN_NAME.findall(part) for name in names for part in name.split("_"))
    return dict.fromkeys([*names, *(word for found in words if len(found) > 1 for word in found)])


def synonyms(text: str) -> list[list[str]]:
    """Parse groups of names, in the format of `synonyms.txt`."""
    lines = (line for line in text.splitlines() if line.strip() and line[0] != "#")
    return [[name.strip() for name in line.split("=")] for line in lines if "->" not in line]


def german(text: str) -> list[list[str]]:
    """Parse German words and the English terms that stand for them, in the format of `synonyms.txt`."""
    pairs = (line.split("->") for line in text.splitlines() if "->" in line and line[0] != "#")
    return [[word.strip(), term.strip()] for words, term in pairs for word in words.split("=")]


def write_index(site: Path) -> None:
    """Write the index of a rendered site into it."""
    pages, sections = [], []
    for path in sorted(site.rglob("*.html")):
        address = path.relative_to(site).as_posix()
        if address in NOT_SEARCHED or address.startswith("_static/"):
            continue
        found = sections_of(path.read_text(encoding="utf-8"))
        if found:
            number = len(pages)
            pages.append([address, found[0].title, int(bool(REFERENCE.match(address)))])
            sections += [[number, s.anchor, s.title, s.text, s.code] for s in found]
    names = SYNONYMS.read_text(encoding="utf-8")
    known = {"synonyms": synonyms(names), "german": german(names)}
    index = json.dumps({"pages": pages, "sections": sections, **known}, ensure_ascii=False)
    (site / INDEX).write_text(f"window.bookIndex = {index};\n", encoding="utf-8")
