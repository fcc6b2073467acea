"""Source pages: one for each room, in which a module is whole and everything public has a heading."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from paths import PACKAGE
from website import source_pages

MODULES = {
    "__init__.py": '"""The package."""\n',
    "plain.py": '"""Plain code.\n\nSecond paragraph.\n"""\n\nx = 1\n',
    "fences.py": '"""Shows ````a fence```` and ``` too."""\n\nTEXT = """\n```{note}\n`````\n"""\n',
    "rooms/__init__.py": '"""Rooms."""\n',
    "rooms/kitchen.py": "y = 2\n",
    "rooms/pantry.py": '''"""What is kept."""

import functools

# Jars come first.
@functools.cache
def jars():
    """All jars.

    # not a comment
    """

    def inner():
        return 1

    return inner


def _shelf():
    return 2
class Basket:
    """A basket."""


    def carry(self):
        return 3


async def fetch(): ...


LAST = 4
''',
}
PAGES = {
    "chapters_src": ["__init__.py"],
    "plain": ["plain.py"],
    "fences": ["fences.py"],
    "rooms": ["rooms/__init__.py", "rooms/kitchen.py", "rooms/pantry.py"],
}


@pytest.fixture
def written(tmp_path) -> tuple[Path, str]:
    """The folder of source pages of a small package, and the list of its rooms and modules."""
    package = tmp_path / "chapters_src"
    for name, text in MODULES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    listed = source_pages.write_source_pages(package, tmp_path / "source")
    return tmp_path / "source", listed


def headings(page: Path) -> list[tuple[str, str]]:
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    return [
        (token.tag, tokens[i + 1].content.strip("`"))
        for i, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


@pytest.mark.parametrize("room", PAGES)
def test_a_page_holds_the_modules_of_its_room_whole(room, written):
    """Every line that is not blank, in its order, with its number."""
    tokens = MarkdownIt().parse((written[0] / f"{room}.md").read_text(encoding="utf-8"))
    fences = [token for token in tokens if token.type == "fence"]
    assert all(fence.info == "{code-block} python" for fence in fences)
    shown = []
    for fence in fences:
        option, code = fence.content.split("\n\n", 1)
        first = int(re.fullmatch(r":lineno-start: (\d+)", option)[1])
        shown += enumerate(code.splitlines(), first)
    lines = [pair for name in PAGES[room] for pair in enumerate(MODULES[name].splitlines(), 1)]
    assert [pair for pair in shown if pair[1].strip()] == [pair for pair in lines if pair[1].strip()]


def test_there_is_one_page_for_each_room(written):
    assert {path.stem for path in written[0].iterdir()} == set(PAGES)


def test_modules_and_public_names_have_headings(written):
    assert headings(written[0] / "plain.md") == [("h1", "chapters_src.plain")]
    assert headings(written[0] / "chapters_src.md") == [("h1", "chapters_src")]
    assert headings(written[0] / "rooms.md") == [
        ("h1", "chapters_src.rooms"),
        ("h2", "kitchen"),
        ("h2", "pantry"),
        ("h3", "pantry.jars"),
        ("h3", "class pantry.Basket"),
        ("h3", "pantry.fetch"),
    ]


def test_a_piece_begins_with_what_is_above_its_name():
    cut = {name: (line, piece) for name, line, piece in source_pages.pieces(MODULES["rooms/pantry.py"])}
    assert list(cut) == [None, "jars", "Basket", "fetch"]
    assert cut["jars"][0] == 5 and cut["jars"][1].startswith("# Jars come first.\n@functools.cache\ndef jars")
    assert cut["jars"][1].endswith("def _shelf():\n    return 2"), "private names stay with what they follow"
    assert cut["fetch"][1].endswith("LAST = 4")


def test_the_list_names_rooms_and_modules_with_their_purpose(written):
    _, listed = written
    assert "- [`plain`](../source/plain.md): Plain code.\n" in listed
    assert "- [`rooms`](../source/rooms.md): Rooms.\n  - [`kitchen`](../source/rooms.md#kitchen):\n" in listed
    assert listed.count(".md") == len(MODULES)


def test_no_two_headings_of_the_package_have_one_anchor(tmp_path):
    """Sphinx would number the second: its address would change with the first."""
    source_pages.write_source_pages(PACKAGE, tmp_path / "source")
    for page in (tmp_path / "source").iterdir():
        anchors = [re.sub(r"[^a-z0-9]+", "-", name.lower()) for _, name in headings(page)]
        assert len(set(anchors)) == len(anchors), page.name
        assert all(re.search("[a-z]", anchor) for anchor in anchors)


SCRIPT = """// What it is for.
// More about it.
(() => {
  // --- Chapter 07: attention.

  // softmax(q)
  const f = (x) => `${x}`;

  // --- The rest

  const g = 1;
})();
"""


def test_the_scripts_of_the_language_model_have_a_page(tmp_path):
    for name in source_pages.SCRIPTS:
        (tmp_path / name).write_text(SCRIPT)
    entry = source_pages.write_scripts_page(tmp_path, tmp_path)
    assert "(../source/language_model_scripts.md)" in entry
    tokens = MarkdownIt().parse((tmp_path / "language_model_scripts.md").read_text())
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    each = [[f"`{name}`", "Chapter 07: attention", "The rest"] for name in source_pages.SCRIPTS]
    assert headings == ["The language model in the page", *(title for titles in each for title in titles)]
    pieces = [token.content for token in tokens if token.type == "fence"][:3]
    lines = [int(re.match(r":lineno-start: (\d+)\n\n", piece)[1]) for piece in pieces]
    assert lines == [2, 4, 9]
    listed = [line for piece in pieces for line in piece.splitlines()[2:] if line]
    assert listed == [line for line in SCRIPT.splitlines()[1:] if line]


def test_the_page_has_scripts_that_are_there():
    from website.language_model import SCRIPTS

    assert set(source_pages.SCRIPTS) <= {path.name for path in SCRIPTS.iterdir()}
