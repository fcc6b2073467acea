"""The diagrams of chapter 02, read back: the geometry that all diagrams share, and what they say."""

import itertools
import re
from xml.etree import ElementTree

import pytest
import torch
from test_diagrams import (  # noqa: F401  Their tests and fixtures run here on these drawings.
    endpoints,
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
)

from chapters_src.data import wordnet
from chapters_src.plots import drawing, word_diagrams

WORDS = ["sum", "along", "axis", "of", "array"]
VECTOR, OUTPUTS = (0.5, 1.0), ((1.0, 0.5), (-1.0, 0.4), (0.2, -0.8))


def chains():
    book = wordnet.load()
    senses = ("giant_panda.n.01", "fly.n.01", "motel.n.01")
    found = [book.chains(sense)[0] for sense in senses]
    return [[book.synsets[name].words[0] for name in chain] for chain in found]


SHEETS = {
    "tree": lambda: word_diagrams.hypernym_tree(chains()),
    "window": lambda: word_diagrams.window(WORDS),
    "noise": lambda: word_diagrams.guess_against_noise("axis", VECTOR, WORDS[:3], OUTPUTS),
}


@pytest.fixture(params=SHEETS)
def sheet(request):
    drawn = SHEETS[request.param]()
    assert solid(drawn) and drawn.arrows, "nothing to look at"
    return drawn


def links(sheet):
    """Titles of what arrows lead from and to."""
    return [tuple(map(title, endpoints(sheet, arrow))) for arrow in sheet.arrows]


def test_text_is_large_enough_on_a_phone(sheet):
    assert 358 / sheet.width * drawing.SMALL_SIZE >= 9


def test_screen_readers_get_a_name_and_all_that_is_named(sheet, root):  # noqa: F811
    assert (root.get("role"), root.get("aria-label")) == ("img", sheet.title)
    words = sheet.description.lower()
    for box in sheet.boxes:
        for word in re.findall(r"[a-z]{4,}", title(box).lower()):
            assert word in words, (box, word)


def test_the_tree_has_the_links_of_its_chains_and_no_others():
    expected = {(low, high) for chain in chains() for high, low in itertools.pairwise(chain)}
    found = links(SHEETS["tree"]())
    assert set(found) == expected and len(found) == len(expected)


def test_a_chain_inside_another_is_part_of_it():
    long = ["thing", "building", "hotel", "motel"]
    assert len(solid(word_diagrams.hypernym_tree([long, long[:3]]))) == 4


@pytest.mark.parametrize("wrong", [[], [["a", "b"], ["c", "d"]], [["a", letter] for letter in "bcde"]])
def test_the_tree_refuses_what_does_not_fit(wrong):
    with pytest.raises(ValueError, match="1 to 3 with one root"):
        word_diagrams.hypernym_tree(wrong)


def test_who_guesses_whom():
    found = links(SHEETS["window"]())
    around = [word for word in WORDS if word != "axis"]
    assert sorted(found) == sorted(
        [("axis", word) for word in around] + [(word, "mean") for word in around] + [("mean", "axis")]
    )
    with pytest.raises(ValueError, match="room for 5 words, not 4"):
        word_diagrams.window(WORDS[:4])


def test_the_errors_are_the_gradients_of_the_products():
    products = (torch.tensor(OUTPUTS) @ torch.tensor(VECTOR)).requires_grad_()
    log_sigmoid = torch.nn.functional.logsigmoid
    (-log_sigmoid(products[0]) - log_sigmoid(-products[1:]).sum()).backward()
    shown = {" ".join(line) for box in SHEETS["noise"]().boxes for line in box.lines}
    assert {f"error {gradient:+.2f}" for gradient in products.grad.tolist()} <= shown
    with pytest.raises(ValueError, match=r"vectors of 2 numbers; got 3 words with vectors of \[1, 1, 1\]"):
        word_diagrams.guess_against_noise("axis", VECTOR, WORDS[:3], [(1.0,)] * 3)


def test_titles_tell_the_drawings_apart():
    assert len({draw().title for draw in SHEETS.values()}) == len(SHEETS)
    for draw in SHEETS.values():
        ElementTree.fromstring(draw()._repr_html_())
