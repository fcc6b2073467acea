"""A small book with an address and without: what search engines, shared links, readers' reports find.

Figures, exercises and folded cells of the same book are looked at in `test_sphinx_reading.py`.
"""

import itertools
import re
import struct
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pytest
import yaml
from small_book import BOOK, REPORTS, SITE, page

import address
from website import render
from website.sphinx_extension import publishing


def head(folder, name: str) -> dict[str, str]:
    """The tags of a page's head, by name or property; none may occur twice."""
    found = [(tag.get("name") or tag["property"], tag["content"]) for tag in page(folder, name).select("meta")
             if tag.get("name", "") not in ("viewport", "docsearch:language", "docsearch:version")
             and (tag.get("name") or tag.get("property"))]  # fmt: skip
    assert len(found) == len(dict(found))
    return dict(found)


PAGES = ["404.html", "genindex.html", "search.html", "start.html"]
PAGES += ["parts/00_zero.html", "parts/03_one.html", "parts/04_two.html"]


def test_every_page_has_the_name_of_the_book_and_a_description(published, unpublished):
    for folder, name in itertools.product((published, unpublished), [*PAGES, "index.html"]):
        assert page(folder, name).title.get_text().count(BOOK) == 1, name
        about = head(folder, name)["description"]
        assert re.match(r"\w.{20}", about) and len(about) <= publishing.LONGEST, name


def test_descriptions_differ_and_come_from_the_page(published):
    about = {name: head(published, name)["description"] for name in PAGES}
    assert len(set(about.values())) == len(PAGES)
    assert about["parts/03_one.html"] == "Words & numbers <first>. Then a second sentence."
    assert about["parts/04_two.html"] == "Given in the metadata of the page."


LONG = "A first sentence of some length, to begin with. " * 4


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Short.", "Short."),
        (LONG + "And one that is too much.", LONG.strip()),
        ('He said "no." ' + "x" * 200, 'He said "no."'),
        ("word, " * 50, "word, " * 32 + "word…"),
    ],
)
def test_a_description_ends_with_a_sentence_if_it_can(text, wanted):
    assert publishing.shortened(text) == wanted


def test_without_an_address_nothing_is_said_of_one(unpublished):
    for name in [*PAGES, "index.html"]:
        assert list(head(unpublished, name)) == ["description"]
        assert page(unpublished, name).select("link[rel=canonical], base") == []
    assert not (unpublished / "sitemap.xml").exists()
    assert not (unpublished / publishing.PICTURE).exists()


def test_with_an_address_pages_say_where_they_are(published):
    for name in PAGES[3:]:
        (link,) = page(published, name).select("link[rel=canonical]")
        found = head(published, name)
        assert link["href"] == found["og:url"] == SITE + name
        assert found["og:description"] == found["description"]
        assert found["og:image"] == SITE + publishing.PICTURE
        assert found["og:site_name"] == BOOK and found["og:image:alt"].startswith(f"{BOOK}: ")
        assert found["twitter:card"] == "summary_large_image"
    assert head(published, "parts/03_one.html")["og:title"] == "03 One & the other"
    for name in PAGES[:3]:
        assert page(published, name).select("link[rel=canonical]") == []
        assert list(head(published, name)) == ["description"]


def test_whoever_shares_the_site_itself_shares_its_start(published):
    found = page(published, "index.html")
    assert found.select_one("meta[http-equiv=refresh]")["content"] == "0; url=start.html"
    assert found.select_one("link[rel=canonical]")["href"] == f"{SITE}start.html"
    assert head(published, "index.html") == head(published, "start.html")


def test_the_picture_has_the_size_that_is_told(published):
    picture = (published / publishing.PICTURE).read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) < 200_000
    told = head(published, "start.html")
    assert struct.unpack(">II", picture[16:24]) == (int(told["og:image:width"]), int(told["og:image:height"]))
    assert struct.unpack(">II", picture[16:24]) == (1200, 630)


def test_the_sitemap_lists_every_page_once(published):
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    urls = [place.text for place in ElementTree.parse(published / "sitemap.xml").iter(f"{space}loc")]
    assert sorted(urls) == [SITE + name for name in sorted(PAGES[3:])]


def test_the_page_for_wrong_addresses_knows_where_the_site_begins(published, unpublished):
    text = (published / "404.html").read_text(encoding="utf-8")
    assert text.index('const root = "/a-book/"') < min(text.index("<link"), text.index(" src="))
    assert "const root" not in (unpublished / "404.html").read_text(encoding="utf-8")
    for folder in (published, unpublished):
        found = page(folder, "404.html")
        links = {link["href"] for link in found.select("main a[href]")}
        assert {"search.html", "start.html"} <= links
        assert found.select_one(".skip-link a")["href"] == "404.html#main-content"
        assert found.select_one("a.book-name")["href"] == "start.html"


def test_each_section_of_a_chapter_has_a_link_for_reports(published, unpublished):
    def links(folder, name: str) -> list:
        return page(folder, name).select("p.feedback a")

    (link,) = links(published, "parts/03_one.html")
    assert link.find_parent("section")["id"] == "exercises"
    assert link["href"].startswith(f"{REPORTS}?")
    about = parse_qs(urlsplit(link["href"]).query)
    assert about["title"] == ["Chapter 03, Exercises: "]
    assert about["body"][0].startswith(f"{SITE}parts/03_one.html#exercises\n")
    assert links(published, "parts/00_zero.html") == links(published, "start.html") == []
    assert links(unpublished, "parts/03_one.html") == []


@pytest.mark.parametrize("owner", ["OWNER", "Someone"])
def test_the_addresses_of_site_and_reports_follow_from_that_of_the_repository(owner, monkeypatch):
    repository = f"https://github.com/{owner}/transformers-taken-apart"
    monkeypatch.setattr(address, "address", lambda: (repository, "v0.1.0"))
    settings = yaml.safe_load(render.configuration())
    if owner == "OWNER":
        assert address.site_address() is None and "baseurl" not in settings["html"]
        assert settings["sphinx"]["config"].get("feedback_address") is None
    else:
        assert settings["html"]["baseurl"] == "https://someone.github.io/transformers-taken-apart/"
        assert settings["sphinx"]["config"]["feedback_address"] == f"{repository}/issues/new"
    assert settings["title"] == BOOK
    assert re.search(r"[a-z]", settings["html"]["favicon"])
