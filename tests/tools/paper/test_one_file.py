"""`make pdf` and `make epub`: what they make is whole or not there, and made once."""

from argparse import Namespace

import pytest

import address
import browsers
import commands
from paper import contents, epub, printing
from website import downloads, render

OPTIONS = Namespace(newest=False, only=[], name=None)


@pytest.fixture
def build(tmp_path, monkeypatch):
    """A folder with a site that has just been rendered."""
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    monkeypatch.setattr(commands, "BUILD", tmp_path)
    monkeypatch.setattr(commands, "HTML", tmp_path)
    monkeypatch.setattr(downloads, "BUILD", tmp_path)
    monkeypatch.setattr(commands, "book", lambda options: 0)
    monkeypatch.setattr(render, "STAMP", tmp_path / "rendered")
    render.STAMP.write_text("one")
    (tmp_path / "_static").mkdir()
    return tmp_path


def test_a_file_is_named_after_the_version_and_made_again_when_the_site_was(build):
    calls = []

    def make(target, parts, say):
        calls.append(target.name)
        target.write_text("book")

    for site in ("one", "one", "two", "two"):
        render.STAMP.write_text(site)
        assert commands._in_one_file(OPTIONS, "pdf", make) == 0
    version = address.address()[1].removeprefix("v")
    assert calls == [f"transformers-taken-apart-{version}.pdf"] * 2


def test_both_commands_find_what_makes_their_file(monkeypatch):
    found = []
    monkeypatch.setattr(commands, "_in_one_file", lambda options, kind, make: found.append((kind, make)) or 0)
    assert commands.pdf(OPTIONS) == commands.epub(OPTIONS) == 0
    assert found == [("pdf", printing.make_pdf), ("epub", epub.make_epub)]


def test_what_failed_is_made_again(build):
    def fail(target, parts, say):
        raise contents.NoBrowser("nothing to print with")

    def make(target, parts, say):
        target.write_text("book")

    with pytest.raises(commands.Failure, match="nothing to print with"):
        commands._in_one_file(OPTIONS, "epub", fail)
    assert not list(build.glob("*.epub"))
    commands._in_one_file(OPTIONS, "epub", make)
    assert list(build.glob("*.epub"))


def test_without_a_browser_the_way_out_is_told(monkeypatch):
    monkeypatch.setattr(contents, "find_browser", lambda: None)
    with pytest.raises(contents.NoBrowser, match="install Chromium"), contents.browser():
        pass
    assert browsers.FLAGS


def test_the_book_holds_every_page_of_the_contents_but_the_listings():
    pages = [page for part in contents.parts() for page in part.pages]
    assert "book/colophon" in pages and not {*contents.ON_SITE_ONLY} & {*pages}
    assert pages[0] == "book/index"
    assert {name.removesuffix(".ipynb") for name in address.listed()} <= {*pages}
    assert not any(page.startswith("source/") for page in pages)
    assert contents.parts()[1].caption == "Before you start"
