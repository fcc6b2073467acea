"""Pairs of text and summary: exact on a package made by hand, well-behaved on a real one."""

import re

import pytest

from chapters_src import resources
from chapters_src.data import docstrings, summaries
from chapters_src.data.summaries import FILTERS, Pair, Pairs
from chapters_src.tokenization.sentences import split_sentences

BODY = """The boat is rowed down the stream, at the speed that its oars allow.

    Rowing against the stream takes longer than that, and it is harder for the rower by far. See the guide."""
BOATS = f'''"""Test boats of all kinds in rivers.

{BODY.replace("rowed", "tested")}"""

def row():
    """Row the boat *gently* down a stream

    {BODY}

    Parameters
    ----------
    boat : Boat
        This sentence about a parameter is none of the body.
    """

def short():
    """Row the boat for a short time.

    The boat is rowed. It is short."""

def unrelated():
    """Paint a house green and yellow.

    {BODY}"""

def repeated():
    """The boat is rowed down the stream.

    {BODY.replace("speed", "pace")}
    The boat is rowed down the stream."""

def again():
    """Row the boat *gently* down a stream.

    {BODY.replace("speed", "pace")}"""

def several():
    """Row the boat. And row it again, please.

    {BODY}"""

def long():
    """Row the boat {"very, very, " * 8} gently down the long and winding stream.

    {BODY}"""
'''
PLAIN = "Boats of wood that are painted in spring last for more than ten years, as all rowers know."
OTHERS = "Others rot away much sooner, all of them that I saw."
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
COPY = '''
def copy():
    """Copy boat number {w} to the river.

    The {w} boat is copied. See the manual. Whoever copies the {w} boat to a river has {w} more boats than
    before, and {w} rowers fewer at home."""
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Install a package called toy, version 1.0, with a cache of its own; one module for each split."""
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # Another process would not know where toy is.
    files = {
        "toy/__init__.py": "",
        "toy/boats.py": BOATS,
        "toy/copies.py": "".join(COPY.format(w=number) for number in NUMBERS),
        "toy/other.py": f'"""Row the other boat down the stream.\n\n{BODY.replace("longer", "more time")}"""',
        "toy/plain.py": f'"""{PLAIN}"""',
        "toy/wood.py": f'"""Paint boats of wood in spring.\n\n{PLAIN} {OTHERS}"""',
        "toy/test_boats.py": BOATS,
        "toy-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
    }
    for name, content in files.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    held_out = {"toy.boats": "validation", "toy.wood": "validation", "toy.other": "test"}
    monkeypatch.setattr(docstrings, "split_of", lambda module: held_out.get(module, "train"))
    return tmp_path / "site" / "toy"


def test_a_small_package_gives_exactly_its_pairs(toy):
    splits, candidates, dropped = summaries.pairs(("toy",))
    paragraphs = " ".join(BODY.split("\n\n")[0].split()), " ".join(BODY.split("\n\n")[1].split())
    assert splits["validation"] == [
        Pair("\n\n".join(paragraphs), "Row the boat gently down a stream.", "toy", "toy.boats")
    ]
    assert [pair.summary.split()[3] for pair in splits["train"]] == NUMBERS
    assert splits["test"] == [], "13 words in a row are those of a pair in the split before"
    assert dropped[FILTERS[5]] == 2, "with the one that repeats the prose of a training module"
    assert candidates == sum(map(len, splits.values())) + sum(dropped.values())
    assert list(dropped) == list(FILTERS) and min(dropped.values()) >= 1


def test_sentences_that_stand_everywhere_are_left_out(toy):
    bodies = [pair.body for pair in summaries.pairs(("toy",)).splits["train"]]
    assert len(bodies) == 10 and not any("See the manual." in body for body in bodies)
    assert all("boat is copied." in body for body in bodies)


def test_what_is_cached_is_what_was_harvested(toy, monkeypatch):
    first = summaries.pairs(("toy",))
    monkeypatch.setattr(docstrings, "each_docstring", None)
    assert summaries.pairs(("toy",)) == first


def test_the_order_of_packages_does_not_matter(toy, monkeypatch):
    monkeypatch.setattr(docstrings, "split_of", lambda module: "train")
    assert summaries.pairs(("toy", "peft")) == summaries.pairs(("peft", "toy", "toy"))


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("", None),
        ("Only a summary stands here.", None),
        ("First sentence of two. Second one.\n\nThe body of it is here.", None),
        ("No body\n\nParameters\n----------\nx : int\n    A number of something.", None),
        (
            "Give a value for *every* key\n\nThe body of `it` is here.",
            ("Give a value for every key.", ["The body of it is here."]),
        ),
        (
            "get(key, default=None) -> Any\n\nGive a value for every key.\n\nThe body of it is here.",
            ("Give a value for every key.", ["The body of it is here."]),
        ),
        ("It can be used to:\n\nThe body of it is here.", None),
        (
            "Give a value for every\nkey.\n\nThe body of it is here.\n\nIt goes on down here.",
            ("Give a value for every key.", ["The body of it is here.", "It goes on down here."]),
        ),
    ],
)
def test_summary_and_body_of_one_docstring(docstring, expected):
    assert summaries.pair_of(docstring) == expected


def test_overlap_of_an_example_worked_out_by_hand():
    pair = Pair("Sorted arrays are fast.", "Return the sorted array of a list.", "toy", "toy")
    assert summaries.overlap(pair) == pytest.approx(2 / 3), "sorted and arrays, but not fast"
    assert summaries.overlap(pair._replace(summary="Use it.")) == 0


def test_a_real_package_gives_clean_pairs_and_no_split_shares_a_run_with_another(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path))
    halves = {"numpy.linalg": "test", "numpy.ma": "validation"}
    monkeypatch.setattr(
        docstrings, "split_of", lambda module: halves.get(".".join(module.split(".")[:2]), "train")
    )
    found: Pairs = summaries.pairs(("numpy",))
    runs = {}
    for split, pairs in found.splits.items():
        assert len(pairs) >= 5
        runs[split] = set()
        for pair in pairs:
            assert len(split_sentences(pair.summary)) == 1 and 5 <= len(pair.summary.split()) <= 20
            assert len(split_sentences(pair.body)) >= 2 and summaries.overlap(pair) >= 0.5
            assert pair.summary not in pair.body and not re.search(r">>>|\S\n\S|`|----", pair.body)
            words = re.findall("[a-z0-9]+", f"{pair.summary} {pair.body}".lower())
            runs[split] |= {tuple(words[i : i + 13]) for i in range(len(words) - 12)}
    assert not runs["train"] & runs["validation"] and not (runs["train"] | runs["validation"]) & runs["test"]
    texts = [pair.body for pairs in found.splits.values() for pair in pairs]
    assert len(set(texts)) == len(texts)


def test_what_cannot_be_had_is_named():
    with pytest.raises(TypeError, match="'numpy',"):
        summaries.pairs("numpy")
    with pytest.raises(resources.ResourceError, match=r"'no_such_package'.*pip install"):
        summaries.pairs(("no_such_package",))
