"""The diagrams of attention are read back: their numbers, their shapes, their masks, and what is linked."""

import itertools

import pytest
import torch
from test_diagrams import apart, endpoints, named, rectangle, solid, text_boxes, title, within

from chapters_src.attention import causal_mask, padding_mask
from chapters_src.plots import attention_diagrams as diagrams

KINDS = {
    "heads": lambda: diagrams.head_split(16, 4),
    "masks": diagrams.mask_grids,
}


@pytest.fixture(params=KINDS)
def sheet(request):
    return KINDS[request.param]()


def test_boxes_keep_clear_of_each_other_and_lie_on_the_sheet(sheet):
    for a, b in itertools.combinations(sheet.boxes, 2):
        assert apart(a, b, 0), (a, b)
    assert all(box.left >= 4 and box.top >= 4 and box.right <= sheet.width - 4 for box in sheet.boxes)


def test_text_fits_its_box(sheet):
    for box in sheet.boxes:
        for text in text_boxes(box):
            assert within(text, box, 1), (box, text)


def test_arrows_lead_from_box_to_box_and_through_none(sheet):
    for arrow in sheet.arrows:
        source, target = endpoints(sheet, arrow)
        assert source != target
        for piece in itertools.pairwise(arrow.points):
            assert all(apart(rectangle(*piece[0], *piece[1]), box, 0) for box in sheet.boxes), arrow


def test_screen_readers_get_a_description_and_a_caption(sheet):
    assert len(sheet.description) > 200 and len(sheet.caption) > 80
    assert f'aria-label="{sheet.title}"' in sheet.svg()


def test_the_heads_share_the_width():
    sheet = diagrams.head_split(12, 3)
    heads = [box for box in solid(sheet) if title(box).startswith("head ")]
    assert len(heads) == 3 and all("(T, 4)" in head.lines[2][1] for head in heads)
    [join] = named(sheet, "join")
    assert sum(endpoints(sheet, arrow)[1] is join for arrow in sheet.arrows) == 3


def test_the_grids_show_the_masks_that_attention_takes():
    sheet = diagrams.mask_grids()
    padding = padding_mask(torch.tensor([[1, 1, 1, 1, 0]]))[0, 0]
    wanted = [padding.expand(5, 5), causal_mask(5), causal_mask(5) & padding, padding.expand(2, 5)]
    cells = [box for box in sheet.boxes if (title(box), box.width) in (("✓", 32), ("+", 32))]
    assert len(cells) == sum(mask.numel() for mask in wanted)
    for mask in wanted:
        drawn, cells = cells[: mask.numel()], cells[mask.numel() :]
        assert [title(box) == "✓" for box in drawn] == mask.flatten().tolist()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: diagrams.head_split(16, 3),
        lambda: diagrams.head_split(16, 8),
    ],
)
def test_what_does_not_fit_is_refused(draw):
    with pytest.raises(ValueError, match=r"\d"):
        draw()
