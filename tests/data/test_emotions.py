"""The emotions data: read exactly from a folder made by hand, and from a Hub on this computer."""

import csv
import re

import datasets
import loopback_hub
import pandas as pd
import pytest

from chapters_src import resources
from chapters_src.data import emotions

FILES = {
    "train.csv": "i feel so low, today;sadness\nwhat a day!;joy\nétranger à moi-même;fear\n",
    "validation.csv": "you are my sunshine;love\n",
    "test.csv": "how dare they;anger\nwell, i never;surprise\n",
    "planted.csv": "split,row,label\ntrain,2,sadness\ntest,0,joy\n",
    "second_readings.csv": "row,label,second_label\n0,anger,anger\n1,surprise,joy\n",
    "ambiguous.csv": "split,row,second_label\nvalidation,0,joy\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files above in place of those of the package."""
    monkeypatch.delenv("BOOK_RESOURCES", raising=False)
    monkeypatch.setattr(resources.embedded, "DATA_FOLDER", tmp_path)
    (tmp_path / "emotions").mkdir()
    for file, text in FILES.items():
        (tmp_path / "emotions" / file).write_text(text, encoding="utf-8")
    return tmp_path / "emotions"


def test_splits_columns_and_rows(folder):
    messages = emotions.load()
    assert isinstance(messages, datasets.DatasetDict)
    assert list(messages) == ["train", "validation", "test"]
    for split in messages.values():
        assert split.features == {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=list(emotions.LABELS)),
        }
    assert messages["train"].to_list() == [
        {"text": "i feel so low, today", "label": 0},
        {"text": "what a day!", "label": 1},
        {"text": "étranger à moi-même", "label": 4},
    ]
    assert messages["validation"].to_list() == [{"text": "you are my sunshine", "label": 2}]
    assert messages["test"]["label"][:] == [3, 5]


def test_what_pandas_takes_for_missing_is_text(folder):
    (folder / "test.csv").write_text('NA;joy\nnull;fear\n"so, what;anger\n  two blanks ;joy\n')
    assert emotions.load()["test"]["text"][:] == ["NA", "null", '"so, what', "  two blanks "]


@pytest.mark.parametrize("file", ["planted.csv", "second_readings.csv", "ambiguous.csv"])
def test_tables_are_those_of_the_file(file, folder):
    with (folder / file).open(encoding="utf-8", newline="") as lines:
        rows = [{**row, "row": int(row["row"])} for row in csv.DictReader(lines)]
    table = TABLES[file]()
    assert table.to_dict("records") == rows and table.index.tolist() == list(range(len(rows)))


TABLES = {
    "planted.csv": emotions.planted_errors,
    "second_readings.csv": emotions.second_readings,
    "ambiguous.csv": emotions.ambiguous,
}


def test_lines_may_end_as_on_windows(folder):
    expected = emotions.load()["train"].to_list(), emotions.planted_errors()
    for file in ("train.csv", "planted.csv"):
        (folder / file).write_bytes((folder / file).read_bytes().replace(b"\n", b"\r\n"))
    assert emotions.load()["train"].to_list() == expected[0]
    pd.testing.assert_frame_equal(emotions.planted_errors(), expected[1])


def test_two_loads_have_one_fingerprint(folder):
    """So that what `map` computes for a data set is found again in the library's cache."""
    assert emotions.load()["train"]._fingerprint == emotions.load()["train"]._fingerprint


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file(file, folder):
    (folder / file).unlink()
    with pytest.raises(resources.ResourceError, match=rf"{re.escape(str(folder))} has no {file}"):
        emotions.load()


DAMAGES = [  # File, line that is damaged, what stands there, what the message says of it.
    ("train.csv", 2, b"what a day!", "1 fields"),
    ("train.csv", 2, b"what; a day!;joy", "3 fields"),
    ("train.csv", 2, b"what; a day!;it;is;joy", "(saw 5|3 fields)"),
    ("train.csv", 1, b"what; a day!;joy", "3 fields"),
    ("train.csv", 2, b"what a day!;joy;", "3 fields"),
    ("train.csv", 2, b"", "0 fields"),
    ("train.csv", 3, b" ;joy", "the text is empty"),
    ("test.csv", 2, b"what a day!;happiness", "'happiness'.*sadness, joy, love, anger, fear, surprise"),
    ("validation.csv", 1, b"what a day!;1", "'1'"),
    ("train.csv", 1, b"what a \xff day!;joy", "UTF-8"),
    ("planted.csv", 1, b"split,row", "split,row,label"),
    ("planted.csv", 2, b"train,2", "2 fields"),
    ("planted.csv", 3, b"dev,2,joy", "'dev'.*train, validation, test"),
    ("planted.csv", 3, b"test,-1,joy", "'-1'"),
    ("second_readings.csv", 2, b"0.5,joy,joy", "'0.5'"),
    ("second_readings.csv", 2, b"0,joy,delight", "'delight'"),
    ("ambiguous.csv", 2, b"validation,0,", "''"),
]


@pytest.mark.parametrize(("file", "line", "content", "problem"), DAMAGES)
def test_a_damaged_line_is_named(file, line, content, problem, folder):
    lines = (folder / file).read_bytes().split(b"\n")
    lines[line - 1] = content
    (folder / file).write_bytes(b"\n".join(lines))
    where = re.escape(f"{folder / file}, ") + rf".*line {line}\b"
    with pytest.raises(resources.ResourceError, match=f"{where}.*{problem}"):
        TABLES.get(file, emotions.load)()


@pytest.mark.parametrize("file", FILES)
def test_an_empty_file(file, folder):
    (folder / file).write_bytes(b"")
    with pytest.raises(resources.ResourceError, match=f"{file}, line 1: the file is empty"):
        TABLES.get(file, emotions.load)()


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A Hub on this computer that has the data set, chosen as the source."""
    folder = loopback_hub.make_emotion(tmp_path / "published")
    with loopback_hub.LoopbackHub({loopback_hub.EMOTION: folder}) as hub:
        loopback_hub.use(hub, tmp_path / "home", monkeypatch)
        yield folder


def test_the_published_data_set_has_the_same_form(published):
    messages = emotions.load()
    assert list(messages) == ["train", "validation", "test"]
    for name, split in messages.items():
        assert split.features["label"] == datasets.ClassLabel(names=list(emotions.LABELS))
        assert split.features["text"] == datasets.Value("string")
        written = pd.read_parquet(published / "split" / f"{name}-00000-of-00001.parquet")
        assert split[:]["text"] == written["text"].tolist()
        assert split[:]["label"] == written["label"].tolist()


def test_other_labels_than_the_published_ones_are_refused(published):
    card = published / "README.md"
    card.write_text(card.read_text().replace('"0": "sadness"', '"0": "sorrow"'))
    with pytest.raises(resources.ResourceError, match=r"'sorrow'.*expects \('sadness'"):
        emotions.load()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_only_our_own_messages_have_tables(table, published):
    with pytest.raises(
        resources.ResourceError, match=r"the published data set has none.*resources.choice\(\)"
    ):
        table()
