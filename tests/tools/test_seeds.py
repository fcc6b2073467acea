"""At how many seeds claims hold: what is executed for it, how claims are matched, and what is written."""

import json
import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

import execute
import seeds
from website import claims
from website.claims import Count

OTHERWISE = "✗ here it came out otherwise (BOOK_SEED is 1, the book has 0): "
NAMES = ("03_tokenization", "04_features")


def cell(name: str, text: str, **metadata) -> nbformat.NotebookNode:
    printed = new_output("stream", name="stdout", text=text)
    return new_code_cell("claim(True, 'x')", id=name, outputs=[printed], metadata=metadata)


class Book:
    """Two notebooks with their executed copies; executing one copies what is prepared for a seed."""

    def __init__(self, folder: Path):
        self.folder, self.executed, self.messages = folder, folder / "executed", []
        self.notebooks = [folder / f"{name}.ipynb" for name in NAMES]
        self.prepared: dict[tuple[str, str], list] = {}
        self.failing: set[tuple[str, str]] = set()
        self.chosen: list[tuple[str, list[str]]] = []
        for seed in "0123":
            self.prepare("03_tokenization", seed, [cell("a", "✓ it holds\n")])
            self.prepare("04_features", seed, [cell("b", "✓ 4 is even\n")])
        self.publish()

    def prepare(self, name: str, seed: str, cells: list) -> None:
        self.prepared[name, seed] = cells

    def put(self, name: str, seed: str, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        nbformat.write(new_notebook(cells=self.prepared[name, seed]), place / f"{name}.ipynb")
        (place / f"{name}.json").write_text(json.dumps({"key": seed}), encoding="utf-8")

    def publish(self) -> None:
        for name in NAMES:
            self.put(name, "0", self.executed)

    def execute(self, requirements, folder, only, say) -> list[str]:
        seed = os.environ["BOOK_SEED"]
        self.chosen.append((seed, [notebook.stem for notebook in execute.chosen(only)]))
        failed = []
        for notebook in execute.chosen(only):
            if (notebook.stem, seed) in self.failing:
                failed.append(f"{notebook.stem} is broken")
            else:
                self.put(notebook.stem, seed, folder)
        if failed:
            raise execute.NotebookFailed("\n".join(failed))
        return []

    def count(self, **options) -> list[str]:
        return seeds.count(Path("requirements.txt"), say=self.messages.append, **options)

    def rows(self) -> list[Count]:
        return claims.read_counts(seeds.TABLE)


@pytest.fixture
def book(tmp_path, monkeypatch) -> Book:
    small = Book(tmp_path)
    monkeypatch.delenv("BOOK_SEED", raising=False)
    for module in (execute, seeds):
        monkeypatch.setattr(module, "notebooks", lambda: small.notebooks)
    monkeypatch.setattr(execute.inputs, "key", lambda notebook, requirements: os.environ["BOOK_SEED"])
    monkeypatch.setattr(execute, "execute_changed", small.execute)
    monkeypatch.setattr(seeds, "EXECUTED", small.executed)
    monkeypatch.setattr(seeds, "FOLDER", tmp_path / "seeds")
    monkeypatch.setattr(seeds, "TABLE", tmp_path / "seeds.csv")
    monkeypatch.setattr(seeds, "VERSIONS", tmp_path / "seeds.json")
    monkeypatch.setattr(seeds, "KNOWN", tmp_path / "seeds_known.csv")
    seeds.KNOWN.write_text("chapter,claim\n", encoding="utf-8")
    return small


def test_all_notebooks_are_executed_at_three_more_seeds_in_folders_of_their_own(book):
    assert book.count() == []
    assert book.chosen == [(seed, list(NAMES)) for seed in "123"]
    assert "BOOK_SEED" not in os.environ
    assert sorted(path.name for path in seeds.FOLDER.iterdir()) == ["1", "2", "3"]
    assert book.rows() == [("03", "it holds", 4, 4), ("04", "4 is even", 4, 4)]
    assert seeds.TABLE.read_text(encoding="utf-8").startswith("chapter,claim,held,of\n03,it holds,4,4\n")
    versions = json.loads(seeds.VERSIONS.read_text(encoding="utf-8"))
    assert list(versions) == ["03", "04"] and "torch" in versions["03"] and "Python 3." in versions["03"]
    assert not list(book.folder.glob("*.partial"))


def test_what_was_chosen_is_chosen_again_afterwards(book, monkeypatch):
    monkeypatch.setenv("BOOK_SEED", "7")
    assert book.count() == []
    assert os.environ["BOOK_SEED"] == "7"


def test_the_published_book_has_to_be_of_today(book):
    (book.executed / "04_features.json").unlink()
    with pytest.raises(seeds.NotPublished, match=r"04_features.*make book"):
        book.count()
    assert book.chosen == [] and not seeds.TABLE.exists()
    assert book.count(only=["03"]) == []


def test_a_claim_is_known_by_its_cell_and_place_because_sentences_contain_numbers(book):
    first = [cell("a", "✓ it is 7\nsome text\n✓ so is b\n"), cell("z", "✓ it is 7\n")]
    again = [
        cell("z", f"{OTHERWISE}it is 9\n"),
        cell("new", "✓ nothing\n"),
        cell("a", "✓ it is 9\n✓ so is c\n"),
    ]
    for seed, cells in zip("0123", (first, first, again, again), strict=True):
        book.prepare("03_tokenization", seed, cells)
    book.publish()
    seeds.KNOWN.write_text("chapter,claim\n03,it is 7\n", encoding="utf-8")
    assert book.count(only=["03"]) == []
    assert book.rows() == [("03", "it is 7", 4, 4), ("03", "so is b", 4, 4), ("03", "it is 7", 2, 4)]


def test_a_claim_that_fails_at_a_seed_is_reported_unless_it_is_known(book):
    book.prepare("04_features", "2", [cell("b", f"{OTHERWISE}6 is even\n")])
    assert book.count() == ["04: does not hold at every seed: 4 is even"]
    assert book.rows()[1] == ("04", "4 is even", 3, 4)
    seeds.KNOWN.write_text("chapter,claim\n04,4 is even\n03,it holds\n", encoding="utf-8")
    assert book.count() == ["03: is on seeds_known.csv, but holds at every seed: it holds"]
    assert book.count(only=["04"]) == []


def test_a_notebook_that_fails_at_a_seed_is_reported_and_the_others_are_counted(book):
    book.failing = {("03_tokenization", "2")}
    book.put("03_tokenization", "1", seeds.FOLDER / "2")  # an old copy with another key
    assert book.count() == ["BOOK_SEED=2: 03_tokenization is broken"]
    assert book.rows() == [("03", "it holds", 3, 3), ("04", "4 is even", 4, 4)]


def test_a_cell_that_prints_another_number_of_claims_is_reported(book):
    book.prepare("03_tokenization", "3", [cell("a", "nothing\n")])
    assert book.count() == [
        "03, cell a: prints 1 claims, at the other seeds [1, 1, 0]",
        "03: does not hold at every seed: it holds",
    ]
    assert book.rows()[0] == ("03", "it holds", 3, 4)


def test_a_deterministic_claim_is_not_counted_but_its_cell_has_to_print_the_same(book):
    for seed in "0123":
        book.prepare("03_tokenization", seed, [cell("a", "7\n✓ it holds\n", tags=["deterministic"])])
    book.publish()
    assert book.count() == []
    assert book.rows()[0] == ("03", "it holds", 0, 0)
    book.prepare("03_tokenization", "3", [cell("a", "8\n✓ it holds\n", tags=["deterministic"])])
    assert book.count() == ["03, cell a: has a deterministic claim, but does not print the same at each seed"]


def test_a_claim_about_time_is_not_counted(book):
    for seed in "0123":
        text = f"{OTHERWISE}it is slow\n" if seed == "1" else "✓ it is slow\n"
        book.prepare("03_tokenization", seed, [cell("a", text, tags=["timing"])])
    book.publish()
    assert book.count() == []
    assert book.rows()[0] == ("03", "it is slow", 0, 0)


def test_with_only_the_rows_and_versions_of_other_chapters_stay_and_those_of_no_chapter_go(book):
    seeds.TABLE.write_text(
        "chapter,claim,held,of\n99,of old,4,4\n04,of before,3,4\n03,of before,4,4\n", encoding="utf-8"
    )
    seeds.VERSIONS.write_text('{"04": "torch 1.0", "99": "torch 0.1"}', encoding="utf-8")
    assert book.count(only=["03"]) == []
    assert book.rows() == [("03", "it holds", 4, 4), ("04", "of before", 3, 4)]
    versions = json.loads(seeds.VERSIONS.read_text(encoding="utf-8"))
    assert list(versions) == ["03", "04"] and versions["04"] == "torch 1.0"


# The table that is committed.

KNOWN_AT_MOST = 0  # It may only shrink: mend a claim, or cut it, instead of adding it to the list.


def test_exactly_the_known_claims_do_not_hold_at_every_seed():
    failing = {
        (count.chapter, count.claim) for count in claims.read_counts(seeds.TABLE) if count.held < count.of
    }
    assert failing == seeds.known_claims()
    assert len(failing) <= KNOWN_AT_MOST


def test_every_claim_of_the_table_was_counted_at_all_seeds():
    """A notebook that failed at a seed leaves a row of fewer."""
    wanted = len(seeds.SEEDS) + 1
    short = {count.chapter for count in claims.read_counts(seeds.TABLE) if count.of not in (0, wanted)}
    assert short == set(), f"counted at fewer than {wanted} seeds: run python tools/book.py seeds --only ..."


def test_the_table_names_its_versions():
    versions = json.loads(seeds.VERSIONS.read_text(encoding="utf-8"))
    assert {count.chapter for count in claims.read_counts(seeds.TABLE)} <= versions.keys()
