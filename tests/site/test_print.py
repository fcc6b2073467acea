"""Pages on paper: folds as their cells say, nothing cut off, no navigation; chapters and a book as PDF."""

import re
from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Page, expect
from printed_book import bookmarks, cells_of, check_appendix, exercises_of, printing_with, words
from pypdf import PdfReader
from site_visits import NO_SITE

from paper import contents, printing
from paper.contents import Part
from paths import HTML

pytestmark = pytest.mark.site

PAPER = 665  # CSS pixels: A4 without its margins, the narrower of the two common kinds of paper
UNPRINTED = ("search.html", "genindex.html", "404.html")
CHAPTER = "notebooks/14_summarization"
WITH_VIEWS = "notebooks/attention_view"
MOST_LINES = 14  # of code that stays on one page
SHEETS = {"solution-14-1": "S7"}  # where a solution stands in the appendix of a book


def printed(page: Page, theme: str = "dark") -> dict:
    """Put a page on paper, and look at it."""
    page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    page.emulate_media(media="print")
    page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    two_frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(two_frames)  # until then, scripts have heard of it
    return page.evaluate(LOOK)


# Letters inside a formula or a drawing have boxes of their own; what counts is the formula or the drawing.
LOOK = """() => {
  const article = document.querySelector('article'), paper = document.documentElement.clientWidth;
  const box = element => element.getBoundingClientRect();
  const seen = element => element.checkVisibility({visibilityProperty: true, opacityProperty: true})
    && box(element).width > 1 && box(element).height > 1;
  const style = element => getComputedStyle(element);
  const name = e => `${e.tagName}.${e.getAttribute('class')}: ${e.textContent.trim().slice(0, 60)}`;
  const told = list => list.map(name);
  const letters = 'mjx-math, mjx-assistive-mml, svg *';
  const inside = [...article.querySelectorAll('*')].filter(e => seen(e) && !e.closest(letters));
  const light = color => Math.min(...color.match(/[\\d.]+/g).slice(0, 3).map(Number)) > 200;
  return {
    folds: told([...article.querySelectorAll('details')].filter(fold =>
      !fold.closest('.set-up, .model-view') && (
        fold.open !== fold.matches('.tag_print-open > details') || !seen(fold.querySelector('summary'))))),
    set_up: told([...article.querySelectorAll('.set-up')].filter(seen)),
    elsewhere: told([...document.body.querySelectorAll('*')]
      .filter(e => seen(e) && !article.contains(e) && !e.contains(article))),
    controls: told(inside.filter(e =>
      e.matches('input, button:not(.front-chip *), .headerlink, .copybtn')
      || e.matches('.front-picture :is(label, select)'))),
    too_wide: told(inside.filter(e => box(e).right > paper + 1 || box(e).left < -1)),
    cut_off: told(inside.filter(e => style(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1)),
    orphaned: told(inside.filter(e => /^h[1-6]$/.test(e.localName) && style(e).breakAfter !== 'avoid')),
    dark: told([document.body, article, ...inside.filter(e => e.matches('pre, td, figure'))]
      .filter(e => style(e).backgroundColor !== 'rgba(0, 0, 0, 0)' && !light(style(e).backgroundColor)))
      .concat([...article.querySelectorAll('img.only-dark')].filter(seen).map(image => image.src)),
    undrawn: [...article.querySelectorAll('[id^="bertviz-"]')]
      .filter(view => !view.querySelector('svg[aria-label] line')).map(view => view.id),
    titles: [...article.querySelectorAll('h1')].filter(seen).length,
  };
}"""


def test_a_page_is_whole_on_paper_whatever_its_mode(open_tab, name):
    if name in (NO_SITE, *UNPRINTED):
        pytest.skip(name)
    tab = open_tab("file", name, viewport={"width": PAPER, "height": 1000})
    found = printed(tab.page)
    assert found.pop("titles") == 1
    assert {what: wrong for what, wrong in found.items() if wrong} == {}


def test_after_printing_a_page_is_as_it_was(open_tab):
    tab = open_tab("file", f"{CHAPTER}.html")
    state = """() => [document.documentElement.dataset.theme, document.querySelector('article').innerHTML]"""
    tab.page.locator("div.cell:has(> details)").last.evaluate("cell => cell.classList.add('tag_print-open')")
    before = settled(tab.page, state)
    found = printed(tab.page, theme=before[0])
    assert found["folds"] == []
    expect(tab.page.locator("article details[open]")).to_have_count(1)
    assert tab.page.evaluate(state) != before
    tab.page.emulate_media(media="screen")
    tab.page.wait_for_function("!document.querySelector('article details[open]')")
    assert settled(tab.page, state) == before


def settled(page, state: str):
    """Return what a script tells once it tells the same twice: other scripts look at a new size, too."""
    told = None
    while told != (told := page.evaluate(state)):
        page.evaluate("new Promise(done => setTimeout(done, 300))")
    return told


def test_a_cell_of_code_stays_on_one_page(open_tab):
    tab = open_tab("file", f"{CHAPTER}.html")
    tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    cells = tab.page.evaluate("""() => [...document.querySelectorAll("article .cell_input pre")]
      .map(code => [code.textContent.trimEnd().split("\\n").length, !!code.closest(".printed-whole")])""")
    assert max(lines for lines, _ in cells) >= 25
    assert [lines for lines, whole in cells if not whole and lines <= MOST_LINES] == []


def test_a_closed_fold_says_on_paper_where_to_open_it(open_tab):
    tab = open_tab("file", f"{CHAPTER}.html")
    closed = tab.page.locator("article details > summary").first
    added = "summary => getComputedStyle(summary, '::after').content"
    assert closed.evaluate(added) == "none"
    tab.page.emulate_media(media="print")
    assert "on the site" in closed.evaluate(added)
    closed.evaluate("summary => { summary.parentElement.open = true; }")  # as a reader may do before printing
    assert closed.evaluate(added) == "none"


def test_links_to_other_sites_say_where_they_lead(open_tab):
    tab = open_tab("file", f"{WITH_VIEWS}.html")
    link = tab.page.locator("article a.external[href^=http]").first
    added = "link => getComputedStyle(link, '::after').content"
    assert link.evaluate(added) == "none"
    tab.page.emulate_media(media="print")
    assert link.get_attribute("href") in link.evaluate(added)


# --- A chapter as PDF, and a small book.


@pytest.fixture(scope="module")
def chapter(browser, site, tmp_path_factory) -> tuple[PdfReader, list[str], list[str]]:
    """A chapter printed as the book's pages 41 and after, its headings, and the text of each page."""
    target = tmp_path_factory.mktemp("chapter") / "chapter.pdf"
    titles = printing.print_page(
        browser, CHAPTER, target, kept=[CHAPTER, WITH_VIEWS], number=41, sheets=SHEETS
    )
    pdf = PdfReader(target)
    return pdf, titles, [page.extract_text() for page in pdf.pages]


def shown(output: nbformat.NotebookNode) -> str:
    """The text of an output, as printed or as a table."""
    return output.get("text", "") + output.get("data", {}).get("text/plain", "")


def test_a_printed_chapter_has_its_open_code_and_the_titles_of_its_folds(chapter):
    text = words("".join(chapter[2]))
    code = cells_of(CHAPTER, "code")
    folded = [cell.source.splitlines() for cell in code if cell.source.startswith("# @title")]
    lines = [
        line for cell in code if not cell.source.startswith("# @title") for line in cell.source.splitlines()
    ]
    missing = [line for line in lines if words(line) not in text]
    assert len(missing) <= 0.02 * len(lines), missing  # a line that goes on over the end of a page
    titles = [title.removeprefix("# @title ") for title, *_ in folded]
    elsewhere = [title for title in titles if title.startswith(("Solution ", "Set-up:"))]
    assert len(elsewhere) > 4 and [title for title in elsewhere if words(f"{title} (on") in text] == []
    stay = [title for title in titles if title not in elsewhere]
    assert [title for title in stay if words(f"{title} (on the site)") not in text] == []
    outputs = "".join(shown(output) for cell in code for output in cell.outputs)
    elsewhere = words("".join(lines) + outputs)  # a message that a folded cell holds and prints
    hidden = {line.strip() for _, *rest in folded for line in rest if len(line.strip()) > 20}
    hidden = {line for line in hidden if words(line) not in elsewhere}
    assert len(hidden) > 100
    assert [line for line in hidden if words(line) in text] == []


def prose() -> str:
    return "\n".join(cell.source for cell in cells_of(CHAPTER, "markdown"))


def test_a_printed_chapter_leaves_solutions_and_installing_out(chapter):
    text = words("".join(chapter[2]))
    hints = re.findall(r"<summary>Hint</summary>\s*(\w+ \w+ \w+)", prose())
    assert len(hints) > 2 and text.count("Hint:") > 4
    assert [hint for hint in hints if words(f"Hint: {hint}") not in text] == []
    assert "Solution14.1,pageS7" in text and "Solution14.2" in text
    assert "nothingtocheckyet" not in text
    assert "git+https" not in text and "Colab" not in text


def test_a_printed_chapter_has_bookmarks_and_numbers(chapter):
    pdf, titles, texts = chapter
    headings = re.findall(r"(?m)^#{1,6} (.+)$", prose())
    assert len(headings) == len(titles) == len(list(bookmarks(pdf)))
    for number, text in enumerate(texts, 41):
        assert str(number) in text.split()
    for (_, _, page), title in zip(bookmarks(pdf), titles, strict=True):
        assert words(title) in words(texts[page])


@pytest.fixture(scope="module")
def small_book(browser, site, tmp_path_factory) -> PdfReader:
    """A book of two parts."""
    target = tmp_path_factory.mktemp("book") / "book.pdf"
    parts = [
        Part("", ("book/index", "book/how_to_use")),
        Part("Views & words", (WITH_VIEWS, CHAPTER, "book/glossary")),
    ]
    with printing_with(browser):
        printing.make_pdf(target, parts, say=lambda _: None)
    assert [path.name for path in target.parent.iterdir()] == ["book.pdf"]
    return PdfReader(target)


def test_the_contents_of_a_book_name_the_pages(small_book):
    found = list(bookmarks(small_book))
    assert [(level, title) for level, title, _ in found if level == 0] == [
        (0, "Transformers, Taken Apart"),
        (0, "How to use this book"),
        (0, "Views & words"),
        (0, contents.APPENDIX_TITLE),
    ]
    assert (1, "Glossary") in [(level, title) for level, title, _ in found]
    assert small_book.page_labels[:3] == ["i", "ii", "1"]
    listed = words(small_book.pages[1].extract_text())
    for level, title, page in found:
        if title not in ("Views & words", contents.APPENDIX_TITLE) and level < 2:
            assert words(title) + small_book.page_labels[page] in listed
            assert words(title) in words(small_book.pages[page].extract_text())


def test_links_lead_through_a_book_and_out_of_it(small_book):
    inside, outside = [], []
    for page in small_book.pages:
        for annotation in page.get("/Annots", []):
            link = annotation.get_object()
            (inside if "/Dest" in link else outside).append(link)
    assert {str(link["/A"]["/URI"]).split(":")[0] for link in outside} <= {"https", "http"}
    targets = {small_book.get_page_number(link["/Dest"][0].get_object()) for link in inside}
    glossary = next(page for _, title, page in bookmarks(small_book) if title == "Glossary")
    assert any(target >= glossary for target in targets), "terms lead to the glossary"
    assert len(targets) > 5


def test_solutions_and_answers_stand_in_an_appendix(small_book):
    exercises = exercises_of(CHAPTER)
    assert len(exercises) > 4
    check_appendix(small_book, exercises)
    labels = small_book.page_labels
    appendix = [page for page, label in zip(small_book.pages, labels, strict=True) if label.startswith("S")]
    text = words("".join(page.extract_text() for page in appendix))
    solutions = [
        cell.source for cell in cells_of(CHAPTER, "code") if cell.source.startswith("# @title Solution")
    ]
    lines = [line for source in solutions for line in source.splitlines()[1:]]
    missing = [line for line in lines if words(line) not in text]
    assert len(missing) <= 0.02 * len(lines), missing  # a line that goes on over the end of a page


def test_a_book_is_tagged_for_screen_readers(small_book):
    root = small_book.trailer["/Root"]
    assert root["/Lang"] == "en-US" and root["/MarkInfo"]["/Marked"]
    numbers = root["/StructTreeRoot"]["/ParentTree"]["/Nums"]
    keys = [int(key) for key in numbers[::2]]
    assert keys == sorted(set(keys))
    owners = {int(key): value.get_object() for key, value in zip(keys, numbers[1::2], strict=True)}
    for page in small_book.pages:
        for place, reference in enumerate(owners[page["/StructParents"]]):
            owner = reference.get_object()
            pieces = owner["/K"] if isinstance(owner["/K"], list) else [owner["/K"]]
            marked = [piece.get_object() for piece in pieces]
            whole = [piece for piece in marked if piece == place and owner["/Pg"].get_object() == page]
            parts = [piece for piece in marked if isinstance(piece, dict) and piece.get("/MCID") == place]
            assert whole or any(part["/Pg"].get_object() == page for part in parts), "found again from below"
    told = [str(element.get("/Alt", "")) for element in structure(root["/StructTreeRoot"])]
    assert any(alt.startswith("Attention view") for alt in told)


def structure(root) -> Iterator[dict]:
    waiting = [root["/K"]]
    while waiting:
        entry = waiting.pop().get_object()
        if isinstance(entry, list):
            waiting += entry
        elif isinstance(entry, dict):
            yield entry
            waiting += [entry["/K"]] if "/K" in entry else []


def test_printing_shows_the_site_that_was_made(site):
    """Every page of the book is there to be printed."""
    names = [name for part in contents.parts() for name in part.pages]
    assert [name for name in names if not (HTML / f"{name}.html").exists()] == []


QUESTIONS = """<!DOCTYPE html><title>03</title><article><h1>03 Words<a class="headerlink" href="#words">#</a></h1>
<section id="five-questions"><h2>Five questions</h2><p><strong>1.</strong> Which?</p>
<details class="quiz-answers"><summary>Answer 1</summary><ul><li><b>A is right.</b> It <a href="#five-questions">says</a> so.</li></ul></details>
<p><strong>2.</strong> Why?</p>
<details class="quiz-answers"><summary>Answer 2</summary><ul><li><b>B is right.</b> Because.</li></ul></details>
</section><section id="exercises"><p class="exercise" id="exercise-3-1"><strong>3.1</strong> Do it.</p>
<details><summary>Hint</summary>Think.</details>
<div class="cell"><details><summary>Solution 3.1</summary><pre id="done">done</pre></details></div>
<p><a href="#done">see there</a></p></section></article>"""  # noqa: E501


def test_answers_and_solutions_move_behind_the_article(browser, tmp_path):
    (tmp_path / "03.html").write_text(QUESTIONS, encoding="utf-8")
    own, appendix = (tmp_path / "03.html").as_uri(), "file:///appendix.html"
    page = browser.new_page()
    page.goto(own)
    sheets = {"answers-03": "S4", "solution-3-1": "S5"}
    made = page.evaluate(contents.MOVE_BACK_MATTER, {"appendix": appendix, "sheets": sheets})
    article = page.locator("article")
    assert article.locator("details").count() == 0
    assert "Hint: Think." in article.inner_text()
    lines = article.locator(".to-the-end").all_inner_texts()
    assert lines == ["Answers, page S4", "Solution 3.1, page S5"]
    hrefs = article.locator("a:not(.headerlink)").evaluate_all("links => links.map(link => link.href)")
    assert hrefs == [f"{appendix}#answers-03", f"{appendix}#solution-3-1", f"{appendix}#from-03-done"]
    back = page.locator("#back-matter")
    assert [part.split()[0] for part in made["parts"]] == ["answers-03", "solution-3-1"]
    assert back.locator("h3 a").evaluate_all("links => links.map(link => link.href)") == [
        f"{own}#five-questions",
        f"{own}#exercise-3-1",
    ]
    answers = words(back.locator(".back-answers").text_content())
    assert answers == words(
        "Answers to the questions of chapter 03 1 A is right. It says so. 2 B is right. Because."
    )
