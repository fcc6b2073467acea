"""The diagrams of fine-tuning are read back: what is trained, where the gradient goes, LoRA's two paths."""

import itertools

import pytest
from test_attention_diagrams import (  # noqa: F401  These tests run here on these drawings.
    test_arrows_lead_from_box_to_box_and_through_none,
    test_screen_readers_get_a_description_and_a_caption,
    test_text_fits_its_box,
)
from test_diagrams import apart, endpoints, named, title

from chapters_src.plots import fine_tuning_diagrams as diagrams

KINDS = {
    "body and head": lambda: diagrams.body_and_head(6, 6),
    "LoRA": lambda: diagrams.lora(384, 8, 16),
    "LoRA, wide": lambda: diagrams.lora(1024, 16, 32),
}


@pytest.fixture(params=KINDS)
def sheet(request):
    return KINDS[request.param]()


def test_boxes_keep_clear_of_each_other_and_lie_on_the_sheet(sheet):
    for a, b in itertools.combinations(sheet.boxes, 2):
        assert apart(a, b, 6), (a, b)
    assert all(box.left >= 4 and box.top >= 4 and box.right <= sheet.width - 4 for box in sheet.boxes)


def test_the_gradient_reaches_what_is_trained_and_nothing_else():
    sheet = diagrams.body_and_head(6, 6)
    trained = [box for box in sheet.boxes if any("trained" in plain for _, plain in box.lines)]
    assert all((box in trained) == (box.kind == "attention") for box in sheet.boxes)
    reached = [endpoints(sheet, arrow)[1] for arrow in sheet.arrows if arrow.kind == "memory"]
    assert (
        sorted(map(title, reached)) == sorted(map(title, trained)) == ["A, B", "body", "head", "head", "head"]
    )


def test_the_two_paths_of_lora_meet_in_a_sum():
    sheet = diagrams.lora(384, 8, 16)
    links = {(title(a), title(b)) for arrow in sheet.arrows for a, b in [endpoints(sheet, arrow)]}
    assert {("x", "W"), ("x", "A"), ("W", "+")} <= links
    [thin] = [box for box in sheet.boxes if box.lines and box.lines[0][1] == "8 numbers"]
    assert thin.width < named(sheet, "A")[0].width
    assert f"{384 * 384:,}" in sheet.caption and f"{2 * 8 * 384:,}" in sheet.caption
