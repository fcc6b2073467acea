"""The docstring corpus: exact on a small package made by hand, well-behaved on real ones."""

import re
from collections import Counter
from importlib import util
from pathlib import Path

import pytest

from chapters_src import resources
from chapters_src.data import docstrings
from chapters_src.data.docstrings import Paragraph

INIT = '''"""Tools for toy boats and for toy trains.

The boats float on *any* water, see :func:`~toy.boats.float_boat` and ``Boat``.

>>> import toy
>>> toy.float_boat("far")
    An indented sentence that is only an output of a doctest.
"""
'''

BOATS = r'''"""Boats that float, as every boat should."""

def float_boat(depth, speed=1.0):
    """Let a boat float for
    as long as   it can [1]_.

    Parameters
    ----------
    depth : float
        Depth of the water in meters, which must be positive.
    speed : float
        How fast the water moves below the boat.

    Returns
    -------
    bool
        Whether the boat is still there afterwards.

    Notes
    -----
    The water must be deeper than the boat, or it will sit on the ground.
    Otherwise nothing can go wrong::

        This block is code, although it looks like a sentence.

    .. math:: depth > draught. This is a formula and not a sentence.

    .. note::
        A note inside of a directive is prose and stays.

    .. plot::
        This would draw a picture of a boat on the water.

    ======  ======
    Boats   Trains of a table are not prose either.
    ======  ======

    - The first item of a list is kept,
      with its second line.
    - So is the second item of the list.

    References
    ----------
    .. [1] A. Boatwright. A long book about all the boats.
    """

class Boat:
    """A boat, which floats on its own.

    Args:
        name: The name of the boat in capital letters.

            It has a second paragraph about the name.

    Boats keep their name for the whole of their life.

    Returns:
        The description of what a class cannot return.
    """

    async def sink(self):
        """Sink the boat to the ground. The mean of :math:`x` is not prose. {template}"""

        def inner():
            """Boats that float, as every boat should."""

    if True:
        def rise(self):
            """Rise again, in spite of everything `Boat.sink` did!"""
'''

ADDED = r'''
from somewhere import add_newdoc, sail

add_newdoc("toy", "row", ("row", """
Row the boat gently down the stream.

Examples
--------
This example would be a whole sentence too.
"""))
anchor = _add_docstr(compiled.anchor, r"""Anchor the boat where it floats now.""")
other = describe("A call of another name is no docstring.")
"""A string that stands alone in the middle is no docstring."""
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Install a package called toy, version 1.0, with a cache of its own."""
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    site = tmp_path / "site"
    files = {
        "toy/__init__.py": INIT.encode(),
        "toy/boats.py": BOATS.encode(),
        "toy/added/__init__.py": ADDED.encode(),
        "toy/latin.py": '# -*- coding: latin-1 -*-\n"""A bar \xe0 la carte on the boat."""'.encode("latin-1"),
        "toy/broken.py": b"def broken(:\n",
        "toy/wrong_encoding.py": b'"""No bar \xe0 la carte here: this file is no UTF-8."""',
        "toy/null.py": b'"""A file with a null byte is no source."""\0',
        "toy/tests/test_boats.py": b'"""Sentences in folders of tests are left out."""',
        "toy/_vendor/trains.py": b'"""Sentences in code of other projects are left out."""',
        "toy/conftest.py": b'"""Sentences in the set-up of tests are left out."""',
        "toy/readme.txt": b'"""Sentences in files of other kinds are left out."""',
        "toy-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n"
        b"Classifier: License :: OSI Approved :: BSD License\n",
    }
    for name, content in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(content)
    monkeypatch.syspath_prepend(str(site))
    return site / "toy"


EXPECTED = [
    ("toy", "Tools for toy boats and for toy trains."),
    ("toy", "The boats float on any water, see toy.boats.float_boat and Boat."),
    ("toy.added", "Row the boat gently down the stream."),
    ("toy.added", "Anchor the boat where it floats now."),
    ("toy.boats", "Boats that float, as every boat should."),
    ("toy.boats", "Let a boat float for as long as it can."),
    ("toy.boats", "The water must be deeper than the boat, or it will sit on the ground."),
    ("toy.boats", "A note inside of a directive is prose and stays."),
    ("toy.boats", "The first item of a list is kept, with its second line."),
    ("toy.boats", "So is the second item of the list."),
    ("toy.boats", "A boat, which floats on its own."),
    ("toy.boats", "Boats keep their name for the whole of their life."),
    ("toy.boats", "Rise again, in spite of everything Boat.sink did!"),
    ("toy.latin", "A bar à la carte on the boat."),
]


def test_a_small_package_gives_exactly_its_prose(toy):
    assert docstrings.paragraphs(("toy",)) == [Paragraph(text, "toy", module) for module, text in EXPECTED]


def test_what_cannot_be_parsed_is_counted(toy):
    harvest = docstrings.harvest("toy")
    assert harvest.skipped == ["toy.broken", "toy.null", "toy.wrong_encoding"]
    assert harvest.files == 7


def test_cached_equals_uncached_and_is_not_harvested_again(toy, monkeypatch):
    uncached = docstrings.harvest_folder("toy", toy)
    first = docstrings.harvest("toy")
    monkeypatch.setattr(docstrings, "harvest_folder", None)
    assert docstrings.harvest("toy") == first == uncached


def test_another_version_is_harvested_again(toy):
    docstrings.paragraphs(("toy",))
    (toy / "boats.py").write_text('"""Boats have changed since the last version."""')
    assert len(docstrings.paragraphs(("toy",))) == len(EXPECTED)
    info = toy.parent / "toy-1.0.dist-info/METADATA"
    info.write_text(info.read_text().replace("Version: 1.0", "Version: 1.1"))
    assert "Boats have changed since the last version." in [p.text for p in docstrings.paragraphs(("toy",))]


def test_other_rules_harvest_again(toy, tmp_path):
    docstrings.paragraphs(("toy",))
    rules, changed = Path(docstrings.__file__).read_text(encoding="utf-8"), tmp_path / "changed_rules.py"
    changed.write_text(re.sub(r"_MIN_WORDS = \d+", "_MIN_WORDS = 9", rules), encoding="utf-8")
    spec = util.spec_from_file_location("changed_rules", changed)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = [paragraph.text for paragraph in module.paragraphs(("toy",))]
    assert found == [text for _, text in EXPECTED if len(text.split()) >= 9] != []


def test_distinct_across_packages_and_in_one_order(toy):
    datasets = docstrings.paragraphs(("datasets",))
    (toy / "boats.py").write_text(f'"""{datasets[7].text}"""')
    others = [paragraph for paragraph in docstrings.paragraphs(("toy",)) if paragraph.module != "toy.boats"]
    assert docstrings.paragraphs(("toy", "datasets", "toy")) == datasets + others


@pytest.mark.parametrize("package", ["numpy", "datasets"])
def test_real_packages_give_clean_prose(package, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path))
    paragraphs = docstrings.paragraphs((package,))
    assert len(paragraphs) > 500
    for text, _, module in paragraphs:
        assert not re.search(r">>>|\s\s|\n|`|----|====|:math:|^\W*$", text), text
        assert re.search(r"[.!?][\"')]?$", text), text
        assert module.split(".")[0] == package
        assert "tests" not in module.split(".")
    assert len({paragraph.text for paragraph in paragraphs}) == len(paragraphs)
    assert [p.module for p in paragraphs] == sorted(p.module for p in paragraphs)


def test_a_sentence_of_numpy_is_found_where_it_stands(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path))
    import numpy as np

    first_line = np.ones.__doc__.strip().splitlines()[0]  # The oracle: what Python itself holds.
    assert Paragraph(first_line, "numpy", "numpy._core.numeric") in docstrings.paragraphs(("numpy",))
    compiled = np.arange.__doc__.split("\n\n")[1].strip()  # Comes from add_newdoc, after the signature.
    assert Paragraph(compiled, "numpy", "numpy._core._add_newdocs") in docstrings.paragraphs(("numpy",))


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("", []),
        ("Short one.", []),
        ("a sentence that starts in the middle of things.", []),
        ("A sentence that stops before the", []),
        ("x = 1; y = 2; z = [3, 4, 5]; w = (6, 7, 8).", []),
        ("See https://example.org for all of the details.", []),
        ("Fill %(name)s in before you read this sentence.", []),
        ("See [the guide](https://example.org) for all of it.", ["See the guide for all of it."]),
        ("Use [`Trainer`] or **nothing** at all, or 2 * 3.", ["Use Trainer or nothing at all, or 2 * 3."]),
        ("The `text <https://example.org>`_ of a link stays here.", ["The text of a link stays here."]),
        ("Some text that stays.\n\n```python\nSome code that is not prose.\n```\n", []),
        ("Two lines that are\none paragraph of prose.", ["Two lines that are one paragraph of prose."]),
        (
            "\nThe term that is explained.\n    Its explanation below it is indented.",
            ["The term that is explained.", "Its explanation below it is indented."],
        ),
        ("The sum of [1, 2, 3, 4] and [5, 6, 7, 8] is [6, 8, 10, 12].", []),
        (
            "    Indented as a whole, without a first line.\n    ",
            ["Indented as a whole, without a first line."],
        ),
    ],
)
def test_prose_of_one_docstring(docstring, expected):
    assert docstrings.prose(docstring) == expected


def test_descriptions_of_parameters_are_a_kind_of_their_own(toy):
    assert [p.text for p in docstrings.paragraphs(("toy",), kinds=("descriptions",))] == [
        "Depth of the water in meters, which must be positive.",
        "How fast the water moves below the boat.",
        "Whether the boat is still there afterwards.",
        "The name of the boat in capital letters.",
        "It has a second paragraph about the name.",
        "The description of what a class cannot return.",
    ]


def test_comments_are_a_kind_of_their_own(toy):
    (toy / "boats.py").write_text(
        "#!/usr/bin/env python\n"
        "x = 1  # A comment beside code is left out.\n"
        "# A comment of two lines\n#   is one paragraph.\n\n    # Another one begins after a gap.\n"
        "\n# y = 2\n"
    )
    assert [p.text for p in docstrings.paragraphs(("toy",), kinds=("comments",))] == [
        "A comment of two lines is one paragraph.",
        "Another one begins after a gap.",
    ]


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        (
            "\nArgs:\n    x (`list[int]`, *optional*): Its first line\n        and its second one.\n"
            "    y: A.\n",
            ["Its first line and its second one."],
        ),
        (
            "\nArgs:\n    x: First, what is on the left.\n\n"
            "        .. versionadded:: 1.0\n            Hidden below.\n"
            "    y: And this is what is right.\n\nAfter it there is prose again.",
            ["First, what is on the left.", "And this is what is right."],
        ),
        (
            "Parameters\n----------\nx : int\n    What it is for::\n\n        Code is hidden here.\n",
            [],
        ),
        ("Note: This is prose and describes nothing.", []),
        ("See Also\n--------\nother : What another function does here.", []),
    ],
)
def test_descriptions_of_one_docstring(docstring, expected):
    assert docstrings.descriptions(docstring) == expected


def test_several_packages_side_by_side_give_the_same_as_one_by_one(toy):
    together = docstrings.paragraphs(("toy", "datasets"), kinds=docstrings.KINDS)
    ones = [docstrings.harvest(package) for package in ("datasets", "toy")]
    texts = [p.text for kind in docstrings.KINDS for harvest in ones for p in getattr(harvest, kind)]
    assert [p.text for p in together] == list(dict.fromkeys(texts))


def test_whole_top_level_modules_are_held_out():
    assert docstrings.split_of("scipy.sparse") == docstrings.split_of("scipy.sparse.linalg._eigen") == "test"
    names = [docstrings.split_of(f"package.module_{i}.part") for i in range(20_000)]
    assert 0.055 < names.count("test") / 20_000 < 0.065
    assert 0.035 < names.count("validation") / 20_000 < 0.045


def test_nothing_that_is_held_out_shares_thirteen_words_with_what_comes_before():
    words = [f"w{i}" for i in range(14)]
    modules = {
        docstrings.split_of(f"package.{name}"): f"package.{name}" for name in "abcdefghijklmnopqrstuvwxyz0123"
    }
    long, short = " ".join(words[:13]), " ".join(words[:12])
    texts = [
        ("train", f"A {long}."),
        ("validation", f"Is: {long.upper()}!"),
        ("validation", f"New {short} x."),
        ("test", f"{short} x? new."),
        ("test", f"Longer {short} x and."),
        ("test", f"Of {short}"),
    ]
    found = docstrings.split(Paragraph(text, "package", modules[name]) for name, text in texts)
    kept = [(name, p.text) for name in docstrings.SPLITS for p in found[name]]
    assert kept == [texts[i] for i in (0, 2, 5)]
    assert docstrings.runs(short) == set()


@pytest.mark.slow
def test_the_real_splits_are_large_mixed_and_new():
    splits = docstrings.split(docstrings.paragraphs())
    sizes = {name: sum(len(p.text) for p in found) for name, found in splits.items()}
    assert 0.04 < sizes["test"] / sum(sizes.values()) < 0.08
    assert 0.03 < sizes["validation"] / sum(sizes.values()) < 0.06
    training = " ".join(" ".join(re.findall("[a-z0-9]+", p.text.lower())) for p in splits["train"])
    for name in ("validation", "test"):
        packages = Counter(p.package for p in splits[name])
        assert len(packages) >= 7
        assert packages.most_common(1)[0][1] < 0.5 * sum(packages.values())
        for paragraph in splits[name][::40]:  # By search in the text instead of hashes.
            words = re.findall("[a-z0-9]+", paragraph.text.lower())
            assert not any(" ".join(words[i : i + 13]) in training for i in range(len(words) - 12))


@pytest.mark.parametrize("package", ["no_such_package", "not a name", "json.tool", "this"])
def test_a_package_that_is_not_installed_is_named(package):
    with pytest.raises(resources.ResourceError, match=f"'{package}'.*pip install"):
        docstrings.paragraphs((package,))


def test_a_package_without_a_version_is_named(toy):
    (toy.parent / "toy-1.0.dist-info/METADATA").unlink()
    (toy.parent / "toy-1.0.dist-info").rmdir()
    with pytest.raises(resources.ResourceError, match="version of 'toy'"):
        docstrings.paragraphs(("toy",))


def test_what_cannot_be_asked_for_is_named():
    with pytest.raises(TypeError, match=r"packages is .*'numpy',"):
        docstrings.paragraphs("numpy")
    with pytest.raises(TypeError, match=r"kinds is .*'prose',"):
        docstrings.paragraphs(("numpy",), "prose")
    with pytest.raises(ValueError, match=r"'poetry'.*prose, descriptions, comments"):
        docstrings.paragraphs(("numpy",), ("poetry",))
