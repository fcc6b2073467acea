"""The rooms of the package are those of the table in its README.md, and import what it says."""

import importlib
import pkgutil
import re

import pandas as pd
import pytest
from datasets import Dataset, DatasetDict

import inputs
from chapters_src.resources import embedded, registry
from paths import PACKAGE, ROOT

ROW = re.compile(r"(?m)^\| `(\w+)/?` \|[^|]+\|([^|]*)\|$")


def table() -> dict[str, set[str]]:
    """The rooms that README.md of the package lists, each with those that it may import."""
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    return {room: set(re.findall(r"`(\w+)`", may)) for room, may in ROW.findall(text)}


def room_of(path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def test_every_room_is_in_the_table():
    there = {room_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__"}
    assert there == set(table()), "a new room goes into the table of chapters_src/README.md"


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


def data_sets() -> list[str]:
    """The modules of `data/`, some of which are folders."""
    return [found.name for found in pkgutil.iter_modules([str(PACKAGE / "data")])]


@pytest.mark.parametrize("name", data_sets())
def test_every_data_set_has_its_parts(name):
    """A card, a section of the colophon, tests, and a place in the registry."""
    folder = PACKAGE / "data" / name
    card, module = folder.with_suffix(".md"), folder.with_suffix(".py")
    module = module if module.is_file() else folder / "__init__.py"
    assert card.is_file(), f"{name} has no card: write {card.relative_to(ROOT)}"
    link = f"(../{module.relative_to(ROOT).as_posix()})"
    colophon = (ROOT / "book" / "colophon.md").read_text(encoding="utf-8")
    assert link in colophon, f"a section of book/colophon.md tells of {name} and links {link}"
    tests = ROOT / "tests" / "data" / f"test_{name}.py"
    assert tests.is_file(), f"{name} has no tests: write {tests.relative_to(ROOT)}"
    registered = registry.DATA_SETS | registry.GENERATED
    assert name.replace("_", "-") in registered, (
        f"resources/registry.toml does not know {name}: see [generated]"
    )


@pytest.mark.parametrize("call", registry.GENERATED.values())
def test_what_makes_a_data_set_is_there(call):
    module, _, function = call.partition("(")[0].rpartition(".")
    assert callable(getattr(importlib.import_module(module), function))


def test_what_loads_a_data_set_returns_a_data_set_or_a_table():
    """Whatever returns anything else says in its name what."""
    modules = [importlib.import_module(f"chapters_src.data.{name}") for name in data_sets()]
    loads = [(module, name) for module in modules for name in vars(module) if name.startswith("load")]
    assert loads
    for module, name in loads:
        found = getattr(module, name)()
        assert isinstance(found, (Dataset, DatasetDict, pd.DataFrame)), (module.__name__, name, type(found))


def test_files_of_a_data_set_are_in_the_folder_of_its_module(tmp_path, monkeypatch):
    """Its name has hyphens, that of its module, and so of the folder, has underscores."""
    monkeypatch.setattr(embedded, "DATA_FOLDER", tmp_path)
    (tmp_path / "english_numbers").mkdir()
    (tmp_path / "english_numbers" / "numbers.tsv").write_text("1\tone\n")
    source = registry.Source("data", None, {}, {}, ("numbers.tsv",))
    assert embedded.data("english-numbers", source) == tmp_path / "english_numbers"
