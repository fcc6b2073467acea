"""The diagrams of chapter 01 are read back: boxes, arrows, and the words for screen readers."""

import pytest
from sheets import check_sheet, endpoints

from chapters_src.data import models
from chapters_src.plots import tour_diagrams
from chapters_src.plots.tour_diagrams import Head

HEADS = [
    Head("sentiment", "[CLS]", "384 × 2", "a label"),
    Head("entities", "each token", "384 × 11", "labels"),
    Head("answers", "each token", "384 × 2", "two places"),
    Head("blanks", "[MASK]", "384 × 30,522", "a token"),
    Head("search", "the mean", "no weights", "a vector"),
]


def sheets():
    return {
        "timeline": tour_diagrams.timeline(models.load()),
        "one_body": tour_diagrams.one_body("encoder", "6 layers, 384 wide", HEADS),
        "ecosystem": tour_diagrams.ecosystem(models.libraries()),
    }


@pytest.fixture(params=["timeline", "one_body", "ecosystem"])
def sheet(request):
    return sheets()[request.param]


def texts(sheet):
    return [plain or bold for box in sheet.boxes for bold, plain in box.lines]


def test_a_sheet_is_in_order(sheet):
    check_sheet(sheet, gap=3)


def test_each_model_stands_in_the_row_of_its_year_and_the_column_of_its_family():
    table, sheet = models.load(), sheets()["timeline"]
    gray = [box for box in sheet.boxes if box.kind == "data"]
    years = {int(box.lines[0][1]): box for box in gray if box.top > 4}
    assert list(years) == list(range(table.year.min(), table.year.max() + 1))
    headings = {box.lines[0][1]: box.left for box in gray if box.top == 4}
    named = {box.lines[0][1]: box for box in sheet.boxes if box.kind != "data"}
    assert named.keys() == set(table.index)
    for name, row in table.iterrows():
        box, below = named[name], [y.top for year, y in years.items() if year > row["year"]]
        assert years[row["year"]].top <= box.top and all(box.bottom < top for top in below), name
        column = row["family"] if row["family"] in headings else "other"
        assert box.left == headings[column], name
        assert f"{name} ({row['family']})" in sheet.description


def test_every_head_hangs_on_the_body():
    sheet = sheets()["one_body"]
    pairs = [tuple(box.kind for box in endpoints(sheet, arrow)) for arrow in sheet.arrows]
    assert pairs.count(("attention", "feed_forward")) == pairs.count(("feed_forward", "data")) == len(HEADS)
    for head in HEADS:
        assert {head.task, head.reads, head.shape, head.gives} <= set(texts(sheet))
        assert head.shape in sheet.description
    assert "has no weights and" in sheet.description


def test_arrows_are_those_of_the_file():
    table, sheet = models.libraries(), sheets()["ecosystem"]
    drawn = {tuple(box.lines[0][0] for box in endpoints(sheet, arrow)) for arrow in sheet.arrows}
    assert drawn == {(name, other) for name, row in table.iterrows() for other in row["gives_to"].split()}
    assert {"Hub", "Tokenizers", "Datasets", "Transformers", "Accelerate"} <= set(table.index)


def test_what_cannot_be_drawn_is_refused():
    table = models.libraries()
    table.loc["Hub", "gives_to"] = "PyTorch"
    with pytest.raises(ValueError, match="Hub gives to 'PyTorch'"):
        tour_diagrams.ecosystem(table)
    with pytest.raises(ValueError, match="6 heads"):
        tour_diagrams.one_body("encoder", "", [*HEADS, HEADS[0]])
    with pytest.raises(ValueError, match="no models"):
        tour_diagrams.timeline(models.load().iloc[:0])
