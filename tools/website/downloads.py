"""What the menu of downloads offers beside the page itself: the book as PDF and as EPUB.

Once the repository has an address, both are files of the release. Before that, they are offered where they
were made, beside the site's folder. The list is a script of its own, so that making a file needs no new site.
"""

import json
from pathlib import Path

import address
from paths import BUILD

SCRIPT = "downloads.js"
KINDS = {"pdf": "The book as PDF", "epub": "The book as EPUB"}


def file_of(kind: str) -> Path:
    """Return where a file of the whole book is made."""
    return BUILD / f"{address.NAME}-{address.address()[1].removeprefix('v')}.{kind}"


def offered() -> list[dict[str, str]]:
    """Return name and address of each file; one in `build` is relative to the site."""
    repository, tag = address.address()
    found = []
    for kind, name in KINDS.items():
        path = file_of(kind)
        if address.has_address():
            found.append({"name": name, "address": f"{repository}/releases/download/{tag}/{path.name}"})
        elif path.exists():
            found.append({"name": name, "address": f"../{path.name}"})
    return found


def write(static: Path) -> None:
    """Write the list into a folder of scripts, for `book/_static/menu.js`."""
    text = f"window.bookDownloads = {json.dumps(offered())};\n"
    (static / SCRIPT).write_text(text, encoding="utf-8")
