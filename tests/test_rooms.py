"""The rooms of the package are those of the table in CONTRIBUTING.md, and import what it says."""

import re

import pytest

import inputs
from paths import PACKAGE, ROOT

ROW = re.compile(r"(?m)^\| `(\w+)/?` \|[^|]+\|([^|]*)\|$")


def table() -> dict[str, set[str]]:
    """The rooms that CONTRIBUTING.md lists, each with those that it may import."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The helper package")[2]
    return {room: set(re.findall(r"`(\w+)`", may)) for room, may in ROW.findall(text.partition("\n## ")[0])}


def room_of(path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def test_every_room_is_in_the_table():
    there = {room_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__"}
    assert there == set(table()), "a new room goes into the table of CONTRIBUTING.md, The helper package"


@pytest.mark.parametrize("room", table())
def test_a_room_imports_only_what_the_table_says(room):
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if room_of(path) == room:
            found |= {room_of(p) for p in inputs.imported(path.read_text(encoding="utf-8"), path, PACKAGE)}
    assert found - {room, "__init__"} == table()[room]


def test_no_room_leads_back_to_itself():
    rooms = table()

    def above(room: str, path: tuple[str, ...] = ()) -> None:
        assert room not in path, path
        for other in rooms[room]:
            above(other, (*path, room))

    for room in rooms:
        above(room)


def test_every_data_set_has_its_parts():
    """A card, a section of the colophon, and tests."""
    colophon = (ROOT / "book" / "colophon.md").read_text(encoding="utf-8")
    modules = [path for path in (PACKAGE / "data").glob("*.py") if path.stem != "__init__"]
    assert modules
    for module in modules:
        assert module.with_suffix(".md").is_file(), f"{module.stem} has no card"
        assert f"(../chapters_src/data/{module.name})" in colophon, (
            f"the colophon does not tell of {module.stem}"
        )
        assert (ROOT / "tests" / "data" / f"test_{module.stem}.py").is_file(), f"{module.stem} has no tests"
