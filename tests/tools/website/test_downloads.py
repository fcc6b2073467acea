"""The book in one file, offered by the menu: of the release, or where it was made."""

import json

import pytest

import address
from website import downloads

REPOSITORY = "https://github.com/{}/transformers-taken-apart"


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "BUILD", tmp_path)
    return tmp_path


def owned_by(owner: str, monkeypatch) -> None:
    monkeypatch.setattr(address, "address", lambda: (REPOSITORY.format(owner), "v0.1.0"))


def test_a_release_has_both(made, monkeypatch):
    owned_by("someone", monkeypatch)
    start = REPOSITORY.format("someone") + "/releases/download/v0.1.0/transformers-taken-apart-0.1.0."
    assert [(one["name"], one["address"]) for one in downloads.offered()] == [
        ("The book as PDF", f"{start}pdf"),
        ("The book as EPUB", f"{start}epub"),
    ]


def test_without_an_address_what_was_made_is_offered_where_it_is(made, monkeypatch):
    owned_by("OWNER", monkeypatch)
    assert downloads.offered() == []
    downloads.file_of("epub").write_text("")
    site = made / "html" / "_static"
    site.mkdir(parents=True)
    downloads.write(site)
    script = (site / "downloads.js").read_text(encoding="utf-8")
    (one,) = json.loads(script.removeprefix("window.bookDownloads = ").removesuffix(";\n"))
    assert one["name"] == "The book as EPUB"
    assert (site.parent / one["address"]).resolve() == downloads.file_of("epub").resolve()
