"""Links back, found from the links there are; and that this book's glossary and references lack none."""

import re
from collections import Counter
from pathlib import Path

import pytest
from mdit_py_plugins.anchors.index import slugify
from nbformat.v4 import new_markdown_cell, new_notebook

from paths import ROOT, notebooks
from website import back_links
from website.claims import chapter
from website.sections import Section

GLOSSARY = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
TERMS = {slugify(entry["title"]): entry[0] for entry in back_links.ENTRY.finditer(GLOSSARY)}
REFERENCES = back_links.of_the_book()
# Addresses of papers; documentation, cards of models and the like are no references.
PAPER = re.compile(r"arxiv\.org/abs/|aclanthology\.org/|doi\.org/|proceedings\.mlr\.press/")


def test_a_term_gets_the_chapters_that_link_to_it():
    home = "→ Chapter 03: [x](../notebooks/03_a.ipynb#x)."
    text = f"# Glossary\n\n## A\n\n### Token\n\nA unit.\n\n{home}\n\n## B\n\n### Word\n\nY.\n"
    paths = [Path(f"notebooks/{name}.ipynb") for name in ("03_a", "04_b", "05_c")]
    uses = {"token": dict.fromkeys(paths, Section("T", "t")), "word": {paths[1]: Section("A_b", "a_b")}}
    links = "Also in [04](../notebooks/04_b.ipynb), [05](../notebooks/05_c.ipynb)."
    wanted = (
        text.replace(home, f"{home} {links}") + "\n→ Chapter 04: [A\\_b](../notebooks/04_b.ipynb#a_b).\n\n"
    )
    assert back_links.glossary(text, uses) == wanted


PAGE = """# References

## One

- Ann One and Bo Two (2017). **First.** ACL. [N1](https://aclanthology.org/N1/).
  What it gave.
- Ann One (2017). **Second.** [arXiv:1](https://arxiv.org/abs/1701.00001v2), [copy](https://www.a.org/b.pdf).
  More.

## Two

- Some Consortium. **Third.** [Page](https://c.org/d/).
  Else.
"""


def test_a_reference_gets_an_anchor_and_the_chapters_that_cite_it():
    first, second, third = back_links.entries(PAGE)
    assert [e.anchor for e in (first, second, third)] == [
        "ref-one-2017",
        "ref-one-2017-2",
        "ref-consortium-undated",
    ]
    assert second.addresses == ("arxiv.org/abs/1701.00001", "a.org/b")
    cited = {
        "a.org/b": [Path("05_c.ipynb")],
        "arxiv.org/abs/1701.00001": [Path("03_a.ipynb"), Path("05_c.ipynb")],
    }
    page = back_links.references(PAGE, cited)
    assert "- (ref-one-2017)=\n  Ann One and Bo Two (2017). **First.**" in page
    assert "  More. Cited in [03](../notebooks/03_a.ipynb), [05](../notebooks/05_c.ipynb).\n\n## Two" in page
    assert page.count("Cited in") == 1 and page.count(")=\n") == 3


@pytest.mark.parametrize(
    "link",
    [
        "http://arxiv.org/pdf/1701.00001v3.pdf",
        "https://www.arxiv.org/abs/1701.00001",
        "https://arxiv.org/abs/1701.00001#s",
    ],
)
def test_links_to_one_paper_have_one_address(link):
    assert back_links.address_of(link) == "arxiv.org/abs/1701.00001"


def test_further_reading_leads_to_the_references():
    lines = "- [First](https://aclanthology.org/N1/): read it.\n- [Else](https://e.org): too.\n"
    reading = f"## Further reading\n\n{lines}"
    notebook = new_notebook(
        cells=[new_markdown_cell("[First](https://aclanthology.org/N1)"), new_markdown_cell(reading)]
    )
    back_links.with_references(notebook, back_links.entries(PAGE))
    assert notebook.cells[1].source == reading.replace("read it.", "read it. [→ references](#ref-one-2017)")
    assert notebook.cells[0].source == "[First](https://aclanthology.org/N1)"


# --- This book.


@pytest.fixture(scope="module")
def uses() -> tuple[dict[str, dict[Path, Section]], dict[str, list[Path]]]:
    return back_links.uses()


def test_every_entry_is_found():
    assert len(TERMS) == len(re.findall(r"(?m)^### ", GLOSSARY)) > 100
    page = (ROOT / "book" / "references.md").read_text(encoding="utf-8")
    assert len(REFERENCES) == len(re.findall(r"(?m)^- ", page)) > 100
    assert all(reference.addresses for reference in REFERENCES)


def test_every_term_leads_to_where_it_is_built(uses):
    """By a line of its own (that the section exists is tested below), or by a chapter that links to it."""
    place = r"\[.+\]\((?:\.\./notebooks/\w+\.ipynb|how_to_use\.md)#[\w-]+\)"
    line = rf"(?m)^→ (?:Chapter \d\d: |Attention view: )?{place}\.?$"
    lost = [term for term, entry in TERMS.items() if not re.search(line, entry) and term not in uses[0]]
    assert lost == []
    assert [term for term, entry in TERMS.items() if "→" in entry and not re.search(line, entry)] == []


def test_links_of_the_pages_lead_to_sections_with_their_titles():
    """Sphinx looks at the anchors of the whole site; this needs no site, and names the page."""
    wrong = []
    for page in sorted((ROOT / "book").glob("*.md")):
        for title, name, anchor in re.findall(
            r"\[([^\]]+)\]\(\.\./notebooks/(\w+)\.ipynb#([\w-]+)\)", page.read_text(encoding="utf-8")
        ):
            headings = re.findall(r"(?m)^#+ (.+)$", back_links.prose(ROOT / "notebooks" / f"{name}.ipynb"))
            if anchor not in {slugify(re.sub(r"[*`]|\$[^$]*\$", "", heading)) for heading in headings}:
                wrong.append(f"{page.name}: {title}: {name} has no section {anchor}")
            elif page.stem == "glossary" and title not in headings:
                wrong.append(f"{page.name}: the section {anchor} of {name} is not called {title!r}")
    assert wrong == []


def test_every_reference_is_cited(uses):
    pages = (p for p in (ROOT / "book").glob("*.md") if p.stem != "references")
    on_pages = {
        back_links.address_of(link)
        for page in pages
        for link in back_links.LINK.findall(page.read_text("utf-8"))
    }
    cited = on_pages | uses[1].keys()
    assert [reference.text for reference in REFERENCES if not cited.intersection(reference.addresses)] == []


def test_every_paper_that_a_chapter_cites_is_a_reference(uses):
    known = {address for reference in REFERENCES for address in reference.addresses}
    papers = {address: paths for address, paths in uses[1].items() if PAPER.match(address)}
    assert len(papers) > 50
    assert {address: paths for address, paths in papers.items() if address not in known} == {}


def test_no_reference_stands_twice():
    counts = Counter(address for reference in REFERENCES for address in reference.addresses)
    assert [address for address, number in counts.items() if number > 1] == []


# A chapter that uses a term so often, before its exercises, links it once; the one that builds it need not.
OFTEN = 4
# Words that mean something else there than the glossary does.
OTHER_MEANING = {
    "01": {"probe"},  # of bias
    "03": {"split"},
    "07": {"head"},  # an attention head
    "08": {"normalization", "offset"},  # of vectors; what a norm adds
    "10": {"split"},
    "13": {"n-gram-model"},  # the runs of words that are blocked
    "14": {"body"},  # of a docstring
    "attention view": {"head"},
}


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_chapter_links_the_terms_that_it_uses_often(path):
    body = re.split(r"\n## (?:Five questions|Exercises)", back_links.prose(path))[0]
    linked = set(back_links.TERM_LINK.findall(body))
    plain = re.sub(r"(?ms)^```.*?^```|^#+ .*?$|\$\$.*?\$\$|`[^`]+`|\$[^$\n]+\$|\]\([^)]*\)", " ", body)
    missing = set()
    for term, entry in TERMS.items():
        title = re.match("### (.+)", entry)[1]
        name = title if title[1:2].isupper() else title[0].lower() + title[1:]
        used = len(re.findall(rf"(?<![\w-]){re.escape(name)}s?(?![\w-])", plain))
        if used >= OFTEN and term not in linked and f"/{path.name}#" not in entry:
            missing.add(term)
    assert missing - OTHER_MEANING.get(chapter(path), set()) - {"word", "claim"} == set()


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_chapter_links_the_chapters_that_it_names(path):
    text = back_links.prose(path)
    named = re.findall(r"[Cc]hapters? (\d\d(?:(?:, | and | to )\d\d)*)", text)
    linked = set(re.findall(r"\]\((\d\d)_\w+\.ipynb", text))
    there = {other.name[:2] for other in notebooks()} - {path.name[:2]}
    missing = {number for numbers in named for number in re.findall(r"\d\d", numbers)} & there - linked
    assert {(path.name[:2], number) for number in missing} == set()
