"""A small book, built with an address and without: what search engines, shared links and others find.

Figures, exercises and folded cells of the same book are looked at in `test_sphinx_reading.py`.
"""

import re
import struct
from xml.etree import ElementTree

import pytest
import yaml
from bs4 import BeautifulSoup
from small_book import BOOK, build

import address
from website import render
from website.sphinx_extension import publishing

SITE = "https://someone.github.io/a-book/"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return build(tmp_path_factory.mktemp("published"), html_baseurl=SITE)


@pytest.fixture(scope="module")
def unpublished(tmp_path_factory):
    return build(tmp_path_factory.mktemp("unpublished"))


def page(folder, name: str) -> BeautifulSoup:
    return BeautifulSoup((folder / name).read_text(encoding="utf-8"), "html.parser")


def head(folder, name: str) -> dict[str, str]:
    """The tags of a page's head, by name or property; none may occur twice."""
    found = [(tag.get("name") or tag["property"], tag["content"]) for tag in page(folder, name).select("meta")
             if tag.get("name", "") not in ("viewport", "docsearch:language", "docsearch:version")
             and (tag.get("name") or tag.get("property"))]  # fmt: skip
    assert len(found) == len(dict(found))
    return dict(found)


PAGES = ["404.html", "genindex.html", "search.html", "start.html"]
PAGES += ["parts/00_zero.html", "parts/03_one.html", "parts/04_two.html"]


@pytest.mark.parametrize("name", [*PAGES, "index.html"])
def test_every_page_has_the_name_of_the_book_and_a_description(published, unpublished, name):
    for folder in (published, unpublished):
        title = page(folder, name).title.get_text()
        assert title.count(BOOK) == 1
        assert 20 < len(head(folder, name)["description"]) <= publishing.LONGEST


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
        assert found["twitter:card"] == "summary_large_image"
    assert head(published, "parts/03_one.html")["og:title"] == "03 One & the other"
    for name in PAGES[:3]:
        assert page(published, name).select("link[rel=canonical]") == []
        assert "og:url" not in head(published, name)


def test_whoever_shares_the_site_itself_shares_its_start(published):
    found = page(published, "index.html")
    assert found.select_one("meta[http-equiv=refresh]")["content"] == "0; url=start.html"
    assert found.select_one("link[rel=canonical]")["href"] == f"{SITE}start.html"
    assert head(published, "index.html")["og:url"] == SITE


def test_the_picture_has_the_size_that_is_told(published):
    picture = (published / publishing.PICTURE).read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) < 200_000
    told = head(published, "start.html")
    assert struct.unpack(">II", picture[16:24]) == (int(told["og:image:width"]), int(told["og:image:height"]))
    assert struct.unpack(">II", picture[16:24]) == (1200, 630)


def test_the_sitemap_lists_every_page_once(published):
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    urls = [place.text for place in ElementTree.parse(published / "sitemap.xml").iter(f"{space}loc")]
    assert urls == [SITE + name for name in sorted(PAGES[3:])]


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


@pytest.mark.parametrize("owner", ["OWNER", "Someone"])
def test_the_address_of_the_site_follows_from_that_of_the_repository(owner, monkeypatch):
    repository = f"https://github.com/{owner}/transformers-taken-apart"
    monkeypatch.setattr(address, "address", lambda: (repository, "v0.1.0"))
    settings = yaml.safe_load(render.configuration())
    if owner == "OWNER":
        assert address.site_address() is None and "baseurl" not in settings["html"]
    else:
        assert settings["html"]["baseurl"] == "https://someone.github.io/transformers-taken-apart/"
    assert settings["title"] == BOOK
    assert re.search(r"[a-z]", settings["html"]["favicon"])
