"""The diagrams of chapter 06, read back: the geometry that all diagrams share, and what they say."""

import re
from xml.etree import ElementTree

import pytest
import torch
from test_diagrams import (  # noqa: F401  Their tests and fixtures run here on these drawings.
    endpoints,
    frames,
    root,
    solid,
    test_arrows_are_made_of_straight_pieces_and_end_with_room_for_a_head,
    test_boxes_do_not_overlap,
    test_every_arrow_leads_from_one_box_to_another,
    test_everything_is_on_the_sheet,
    test_it_needs_neither_scripts_nor_other_files_and_repeats_on_a_page,
    test_no_arrow_goes_through_a_box,
    test_printed_it_is_its_description,
    test_text_fits_its_box,
    test_the_svg_shows_each_box_and_each_arrow_once,
    test_the_text_of_frames_is_clear_of_boxes_and_arrows,
    title,
    within,
)

from chapters_src.data import corners
from chapters_src.plots import drawing, recurrent_diagrams

ASKING, STATES = (-1.5, 0.5), ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0))
SHEETS = {
    "unrolled": recurrent_diagrams.unrolled,
    "encoder and decoder": recurrent_diagrams.encoder_decoder,
    "attention": lambda: recurrent_diagrams.attention(ASKING, STATES),
    "octagon": recurrent_diagrams.octagon,
}


@pytest.fixture(params=SHEETS)
def sheet(request):
    drawn = SHEETS[request.param]()
    assert solid(drawn) and drawn.arrows, "nothing to look at"
    return drawn


def links(sheet, kind=None):
    """Titles of what arrows lead from and to."""
    drawn = [arrow for arrow in sheet.arrows if kind in (None, arrow.kind)]
    return [tuple(map(title, endpoints(sheet, arrow))) for arrow in drawn]


def test_text_is_large_enough_on_a_phone(sheet):
    assert 358 / sheet.width * drawing.SMALL_SIZE >= 9


def test_screen_readers_get_a_name_and_all_that_is_named(sheet, root):  # noqa: F811
    assert (root.get("role"), root.get("aria-label")) == ("img", sheet.title)
    assert (root[0].text, root[1].text) == (sheet.title, sheet.description)
    words = sheet.description.lower()
    for box in sheet.boxes:
        for word in re.findall(r"[a-z]{4,}", title(box).lower()):
            assert word in words, (box, word)


def test_each_step_reads_a_point_and_the_state_before():
    sheet = recurrent_diagrams.unrolled()
    steps = sorted((box for box in solid(sheet) if title(box) == "step"), key=lambda box: box.left)
    for t, step in enumerate(steps, 1):
        into = [endpoints(sheet, arrow)[0] for arrow in sheet.arrows if endpoints(sheet, arrow)[1] == step]
        out = [endpoints(sheet, arrow)[1] for arrow in sheet.arrows if endpoints(sheet, arrow)[0] == step]
        sub = "₀₁₂₃₄"
        assert sorted(map(title, into)) == sorted(["x" + sub[t], "h" + sub[t - 1]])
        assert [title(box) for box in out] == ["h" + sub[t]]
    assert len(steps) == 4


def test_only_the_last_state_crosses_from_encoder_to_decoder():
    sheet = recurrent_diagrams.encoder_decoder()
    encoder, decoder = frames(sheet)
    crossing = [
        arrow
        for arrow in sheet.arrows
        if within(endpoints(sheet, arrow)[0], encoder, 0) and within(endpoints(sheet, arrow)[1], decoder, 0)
    ]
    assert [arrow.kind for arrow in crossing] == ["memory"]
    last, first = endpoints(sheet, crossing[0])
    inside = [box for box in solid(sheet) if within(box, encoder, 0)]
    assert last == max(inside, key=lambda box: box.left)
    steps = [box for box in solid(sheet) if within(box, decoder, 0) and title(box) == "GRU step"]
    assert first == min(steps, key=lambda box: box.left)


def test_decoder_reads_and_says_what_the_data_have():
    """What the boxes call corners is what `source_query_target` cuts."""
    source, prefix, target = corners.source_query_target(torch.arange(1, 5)[None], given=2)
    sheet = recurrent_diagrams.encoder_decoder()
    read = [a for a, b in links(sheet) if b == "GRU step" and a != b]
    said = [b for a, b in links(sheet) if a == "head"]
    assert read == [f"corner {i}" for i in [*source[0].tolist(), *prefix[0].tolist()]]
    assert said == [f"corner {i}" for i in target[0].tolist()]


def texts(sheet):
    return {" ".join(filter(None, line)) for box in sheet.boxes for line in box.lines}


def test_attention_computes_what_it_shows():
    asking, states = torch.tensor(ASKING), torch.tensor(STATES)
    scores = states @ asking
    weights = scores.softmax(dim=0)
    sheet = recurrent_diagrams.attention(ASKING, STATES)
    shown = texts(sheet)
    assert {f"score {score:g}" for score in scores.tolist()} <= shown
    assert {f"weight {weight:.2f}" for weight in weights.tolist()} <= shown
    context = ", ".join(f"{x:.2f}" for x in (weights @ states).tolist())
    assert f"context ({context})" in shown and f"({context})" in sheet.description
    other = recurrent_diagrams.attention((0.0, 0.0), STATES)
    assert [text for text in texts(other) if text.startswith("weight")] == ["weight 0.33"]


def test_each_state_is_used_for_its_score_and_for_the_average():
    sheet = recurrent_diagrams.attention(ASKING, STATES)
    names = ["h₁", "h₂", "h₃"]
    wanted = [(name, f"s · {name}") for name in names] + [(name, "average") for name in names]
    assert sorted(links(sheet, "memory")) == sorted(wanted)
    assert {("s", f"s · {name}") for name in names} <= set(links(sheet, "flow"))


@pytest.mark.parametrize("states", [STATES[:2], [(1.0,)] * 3])
def test_attention_refuses_what_does_not_fit(states):
    with pytest.raises(ValueError, match="needs 3 states of 2"):
        recurrent_diagrams.attention(ASKING, states)


def test_the_octagon_says_and_reads_what_the_data_have():
    source, prefix, target = corners.source_query_target(torch.arange(1, 9)[None], given=2)
    sheet = recurrent_diagrams.octagon()
    notes = {title(box): [plain for _, plain in box.lines[1:]] for box in sheet.boxes}
    for number, (said, read) in notes.items():
        corner = int(number.split()[1])
        at = (target[0] == corner).nonzero().flatten().tolist()
        assert said == (f"output {at[0] + 1}" if at else "given")
        at = (prefix[0] == corner).nonzero().flatten().tolist()
        assert read == (f"input {at[0] + 1}" if at else "no input")
    assert links(sheet) == [(f"corner {i}", f"corner {i + 1}") for i in range(1, 8)]
    assert source.tolist() == [[1, 2]]


def test_titles_tell_the_drawings_apart():
    assert len({draw().title for draw in SHEETS.values()}) == len(SHEETS)
    for draw in SHEETS.values():
        ElementTree.fromstring(draw()._repr_html_())
