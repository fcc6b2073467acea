"""The diagram of chapter 04 is read back: as boxes and arrows, and as the words for screen readers."""

import itertools
import re

import pytest
from sheets import check_sheet, endpoints

from chapters_src.plots import feature_diagrams

TOKENS = ["[CLS]", "three", "missed", "calls", "from", "the", "school", "[SEP]"]
IDS = [101, 2093, 4771, 4455, 2013, 1996, 2082, 102]


@pytest.fixture(params=[8, 3, 1])
def sheet(request):
    n = request.param
    return feature_diagrams.body_and_head(TOKENS[:n], IDS[:n], d_model=384, num_layers=6, num_classes=5)


def rows(sheet):
    """The boxes, row by row from the top."""
    in_order = sorted(sheet.boxes, key=lambda box: (box.top, box.left))
    return [list(row) for _, row in itertools.groupby(in_order, key=lambda box: box.top)]


def test_a_sheet_is_in_order(sheet):
    check_sheet(sheet, gap=6)


def test_every_box_has_an_arrow_to_the_next_row_and_nothing_skips_one(sheet):
    levels = {id(box): level for level, row in enumerate(rows(sheet)) for box in row}
    steps = [tuple(levels[id(box)] for box in endpoints(sheet, arrow)) for arrow in sheet.arrows]
    assert all(to == start + 1 for start, to in steps)
    sources = {id(endpoints(sheet, arrow)[0]) for arrow in sheet.arrows}
    assert sources == {id(box) for box in sheet.boxes if levels[id(box)] < len(rows(sheet)) - 1}


def test_each_token_has_its_id_and_its_hidden_state_in_one_column(sheet):
    tokens, _, _, states, *_ = rows(sheet)
    drawn = [[plain for _, plain in box.lines] for box in tokens]
    n = len(tokens)
    assert drawn == [[token, str(i)] for token, i in zip(TOKENS[:n], IDS[:n], strict=True)]
    assert [box.middle[0] for box in states] == [box.middle[0] for box in tokens]
    assert {box.lines for box in states} == {(("", "384"),)}


def test_only_the_head_is_trained():
    sheet = feature_diagrams.body_and_head(TOKENS, IDS, d_model=384, num_layers=6, num_classes=5)
    texts = [" ".join(itertools.chain(*box.lines)) for box in sheet.boxes]
    assert [text for text in texts if "trained" in text] == ["Head: linear classifier 384 × 5, trained"]
    assert sum("frozen" in text for text in texts) == 2


def test_the_description_says_all(sheet):
    for said in ("384 × 5 weights", "6 encoder layers", TOKENS[0], "without padding"):
        assert said in sheet.description


@pytest.mark.parametrize(("n", "ids"), [(0, 0), (9, 9), (3, 2)])
def test_what_it_cannot_draw_is_refused(n, ids):
    with pytest.raises(ValueError, match=re.escape(f"{n} tokens with {ids} ids")):
        feature_diagrams.body_and_head(["a"] * n, [1] * ids, 4, 2, 2)
