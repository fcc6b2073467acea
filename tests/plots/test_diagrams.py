"""What is drawn is read back: as boxes and arrows, and as the SVG that a page gets."""

import inspect
import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
import torch
from color_science import PAGES, VISION, contrast, lab, linear, rgb
from torch import nn

from chapters_src import plots
from chapters_src.attention import CrossAttention, MultiHeadAttention
from chapters_src.plots import diagrams, drawing
from chapters_src.transformer import Config, FeedForward, TransformerLayer

KINDS = {
    f"{draw.__name__}, {'pre' if norm_first else 'post'}-norm": (draw, norm_first)
    for draw in (diagrams.encoder_layer, diagrams.decoder_layer)
    for norm_first in (True, False)
}


@pytest.fixture(params=KINDS)
def kind(request):
    """What to draw, and whether the normalization is first."""
    return KINDS[request.param]


@pytest.fixture
def sheet(kind):
    drawn = kind[0](kind[1])
    assert solid(drawn) and frames(drawn) and drawn.arrows, "nothing to look at"
    return drawn


def solid(sheet):
    return [box for box in sheet.boxes if box.kind != "frame"]


def frames(sheet):
    return [box for box in sheet.boxes if box.kind == "frame"]


def title(box):
    return box.lines[0][0] if box.lines else "+"


def named(sheet, name):
    return [box for box in sheet.boxes if title(box) == name]


def apart(a, b, gap):
    beside = a.right + gap <= b.left or b.right + gap <= a.left
    return beside or a.bottom + gap <= b.top or b.bottom + gap <= a.top


def within(inner, outer, margin):
    across = outer.left + margin <= inner.left and inner.right <= outer.right - margin
    return across and outer.top + margin <= inner.top and inner.bottom <= outer.bottom - margin


def on_border(point, box):
    """Whether a point lies on the outline: of a circle, at one of its four ends."""
    (x, y), (middle_x, middle_y) = point, box.middle
    beside = x in (box.left, box.right) and box.top <= y <= box.bottom
    above = y in (box.top, box.bottom) and box.left <= x <= box.right
    if box.kind == "add":
        return (beside and y == middle_y) or (above and x == middle_x)
    return beside or above


def endpoints(sheet, arrow):
    """Where an arrow comes from and leads to."""
    [source] = [box for box in solid(sheet) if on_border(arrow.points[0], box)]
    [target] = [box for box in solid(sheet) if on_border(arrow.points[-1], box)]
    return source, target


# Geometry -------------------------------------------------------------------------------------------------


def test_boxes_do_not_overlap(sheet):
    for a, b in itertools.combinations(solid(sheet), 2):
        assert apart(a, b, 6), (a, b)
    for a, b in itertools.combinations(frames(sheet), 2):
        assert apart(a, b, 6), (a, b)
    for frame, box in itertools.product(frames(sheet), solid(sheet)):
        assert apart(frame, box, 6) or within(box, frame, 6), (frame, box)


def test_everything_is_on_the_sheet(sheet):
    assert all(box.left >= 4 and box.top >= 4 and box.right <= sheet.width - 4 for box in sheet.boxes)
    assert max(box.bottom for box in sheet.boxes) < sheet.height
    for x, y in itertools.chain(*(arrow.points for arrow in sheet.arrows)):
        assert 0 < x < sheet.width and 0 < y < sheet.height


def test_every_arrow_leads_from_one_box_to_another(sheet):
    for arrow in sheet.arrows:
        source, target = endpoints(sheet, arrow)
        assert source != target
    touched = {id(box) for arrow in sheet.arrows for box in endpoints(sheet, arrow)}
    assert touched == {id(box) for box in solid(sheet)}, "every box has an arrow"


def test_arrows_are_made_of_straight_pieces_and_end_with_room_for_a_head(sheet):
    for arrow in sheet.arrows:
        for (x, y), (to_x, to_y) in itertools.pairwise(arrow.points):
            assert (x == to_x) != (y == to_y), arrow
        (x, y), (to_x, to_y) = arrow.points[-2:]
        assert abs(to_x - x) + abs(to_y - y) >= 12, arrow


def rectangle(x, y, to_x, to_y):
    return drawing.Box("data", min(x, to_x), min(y, to_y), abs(to_x - x), abs(to_y - y))


def test_no_arrow_goes_through_a_box(sheet):
    for arrow in sheet.arrows:
        pieces = [rectangle(*start, *end) for start, end in itertools.pairwise(arrow.points)]
        for piece, box in itertools.product(pieces, solid(sheet)):
            assert apart(piece, box, 0), (arrow, box)


# Text -----------------------------------------------------------------------------------------------------


def widths(face):
    """Width of each ASCII character in Adobe's metrics of the face, in ems."""
    folder = Path(matplotlib.get_data_path()) / "fonts" / "pdfcorefonts"
    text = (folder / f"{face}.afm").read_text(encoding="latin-1")
    found = re.findall(r"C (\d+) ; WX (\d+) ;", text)
    return {chr(int(code)): int(width) / 1000 for code, width in found if int(code) < 127}


PLAIN, BOLD = widths("Helvetica"), widths("Helvetica-Bold")
WIDER = 1.15  # Some readers' fonts are that much wider than Helvetica.


def text_width(bold, plain):
    space = PLAIN[" "] if bold and plain else 0
    ems = sum(PLAIN.get(c, 0.6) for c in plain) + space
    return WIDER * (drawing.TITLE_SIZE * sum(BOLD.get(c, 0.6) for c in bold) + drawing.SMALL_SIZE * ems)


def text_boxes(box):
    """What the lines of a box cover, by estimate."""
    for (x, y), align, bold, plain in drawing.text_lines(box):
        width = text_width(bold, plain)
        left = x if align == "start" else x - width / 2
        yield drawing.Box("data", left, y - 11, width, 14)  # from the top of an h to the bottom of a p


def test_the_metrics_know_their_letters():
    assert PLAIN["i"] == 0.222 and BOLD["m"] == 0.889 and PLAIN["_"] == 0.556


def test_text_fits_its_box(sheet):
    for box in sheet.boxes:
        for text in text_boxes(box):
            assert within(text, box, 1), (box, text)
        for a, b in itertools.pairwise(text_boxes(box)):
            assert apart(a, b, 0)


def test_the_text_of_frames_is_clear_of_boxes_and_arrows(sheet):
    for text in itertools.chain(*map(text_boxes, frames(sheet))):
        assert all(apart(text, box, 3) for box in solid(sheet)), text
        for arrow in sheet.arrows:
            pieces = itertools.pairwise(arrow.points)
            assert all(apart(text, rectangle(*start, *end), 3) for start, end in pieces), (text, arrow)


def test_text_is_large_enough_on_a_phone():
    shown = 358 / diagrams.encoder_layer().width  # what a phone of 390 pixels leaves to the text column
    assert shown * drawing.SMALL_SIZE >= 9


# Meaning --------------------------------------------------------------------------------------------------

CONFIG = dict(vocab_size=9, d_model=8, num_layers=1, num_heads=2, feed_forward_width=16, max_length=9)


def order_of_the_layer(cross_attention, norm_first):
    """In which order the real layer calls its norms and sublayers."""
    called = []
    layer = TransformerLayer(Config(**CONFIG, norm_first=norm_first, cross_attention=cross_attention))
    names = {nn.LayerNorm: "norm", MultiHeadAttention: "attention", CrossAttention: "attention"}
    names[FeedForward] = "feed_forward"
    for module in layer.modules():
        if type(module) in names:
            name = names[type(module)]
            module.register_forward_hook(lambda *_, name=name: called.append(name))
    states = torch.zeros(1, 3, 8)
    layer(states, None, memory=states if cross_attention else None, memory_mask=None)
    return called


def order_on_the_sheet(sheet, left=0.0):
    """Norms and sublayers from top to bottom; a sublayer counts where its arrow leads back to the stream."""
    links = [endpoints(sheet, arrow) for arrow in sheet.arrows if arrow.kind == "flow"]
    outputs = [source for source, target in links if target.kind == "add"]
    found = [box for box in solid(sheet) if box.kind == "norm" or box in outputs]
    return [box.kind for box in sorted(found, key=lambda box: box.top) if box.left >= left]


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize(
    ("draw", "cross_attention"), [(diagrams.encoder_layer, False), (diagrams.decoder_layer, True)]
)
def test_sublayers_follow_each_other_as_in_the_module(draw, cross_attention, norm_first):
    assert order_on_the_sheet(draw(norm_first)) == order_of_the_layer(cross_attention, norm_first)


def test_each_circle_adds_the_stream_and_what_a_sublayer_made(sheet):
    arriving = {}
    for arrow in sheet.arrows:
        source, target = endpoints(sheet, arrow)
        arriving.setdefault(id(target), []).append((arrow.kind, source.kind))
    circles = [box for box in sheet.boxes if box.kind == "add"]
    assert circles
    for circle in circles:
        [(way, _), (other, sublayer)] = sorted(arriving[id(circle)], reverse=True)
        assert (way, other) == ("residual", "flow") and sublayer in ("attention", "feed_forward")


def test_the_stream_passes_the_norms_of_the_layers_only_with_post_norm(kind, sheet):
    _, norm_first = kind
    links = [endpoints(sheet, arrow) for arrow in sheet.arrows if arrow.kind == "residual"]
    normalized_sums = sum(source.kind == "add" and target.kind == "norm" for source, target in links)
    circles = sum(box.kind == "add" for box in sheet.boxes)
    assert normalized_sums == (0 if norm_first else circles)


@pytest.mark.parametrize("norm_first", [True, False])
def test_cross_attention_makes_key_and_value_of_the_memory(norm_first):
    sheet = diagrams.decoder_layer(norm_first)
    links = {(title(a), title(b), arrow.kind) for arrow in sheet.arrows for a, b in [endpoints(sheet, arrow)]}
    assert {link for link in links if "memory" in link} == {
        ("memory", "key", "memory"),
        ("memory", "value", "memory"),
    }
    [cross] = named(sheet, "Cross-attention")
    inputs = {title(box): box for box in solid(sheet) if within(box, cross, 0)}
    for name, letter in (("query", "T"), ("key", "S"), ("value", "S")):
        assert inputs[name].lines[1][1] == f"(B, H, {letter}, head_dim)"
    own = {id(endpoints(sheet, arrow)[1]) for arrow in sheet.arrows if arrow.kind != "memory"}
    assert id(inputs["query"]) in own and not own & {id(inputs["key"]), id(inputs["value"])}
    assert inputs["attn_weights · value"].lines[0][1] == "(B, H, T, S) · (B, H, S, head_dim)"


@pytest.mark.parametrize("draw", [diagrams.encoder_layer, diagrams.decoder_layer])
def test_sublayers_are_linked_inside_as_they_compute(draw):
    sheet = draw()
    links = [endpoints(sheet, arrow) for arrow in sheet.arrows]
    assert len(frames(sheet)) >= 2
    for frame in frames(sheet):
        inside = [link for link in links if within(link[0], frame, 0) and within(link[1], frame, 0)]
        found = sorted((title(source), title(target)) for source, target in inside)
        wanted = [("activation", "linear"), ("linear", "activation")]
        if "attention" in title(frame):
            wanted = [
                ("attn_weights · value", "join the heads, linear"),
                ("key", "softmax of the scores"),
                ("query", "softmax of the scores"),
                ("softmax of the scores", "attn_weights · value"),
                ("value", "attn_weights · value"),
            ]
        assert found == wanted


def columns(sheet):
    """Titles of the boxes in each column, from top to bottom: what is read, and what is to be predicted."""
    lefts = sorted({box.left for box in sheet.boxes if box.kind == "data"})
    in_column = [[box for box in sheet.boxes if box.kind == "data" and box.left == left] for left in lefts]
    return [[box.lines[-1][0] for box in sorted(boxes, key=lambda box: box.top)] for boxes in in_column]


def test_each_token_is_to_predict_the_next_one():
    sheet = diagrams.next_token_prediction()
    read, predicted = zip(*columns(sheet), strict=True)
    assert read[1:] == predicted[:-1] and len(read) > 3
    assert all(f"after {a}, {b}" in sheet.description for a, b in columns(sheet))


def test_a_translator_has_read_what_stands_before_its_label_and_not_the_label():
    sheet = diagrams.translation()
    [decoder] = named(sheet, "Decoder")
    links = [endpoints(sheet, arrow) for arrow in sheet.arrows]
    inputs = [title(source) for source, target in links if target is decoder and source.kind == "data"]
    labels = [target.lines[-1][0] for source, target in links if title(source) == "Head"]
    inputs.remove("memory")
    assert inputs[0] == "start" and labels[-1] == "end" and inputs[1:] == labels[:-1] and len(inputs) > 5
    assert all(
        f"at {a} it is to predict {b}" in sheet.description for a, b in zip(inputs, labels, strict=True)
    )


@pytest.mark.parametrize("draw", [diagrams.next_token_prediction, diagrams.translation])
@pytest.mark.parametrize(
    "check",
    [
        test_boxes_do_not_overlap,
        test_everything_is_on_the_sheet,
        test_arrows_are_made_of_straight_pieces_and_end_with_room_for_a_head,
        test_every_arrow_leads_from_one_box_to_another,
        test_no_arrow_goes_through_a_box,
        test_text_fits_its_box,
    ],
)
def test_the_drawings_of_training_are_as_neat_as_the_layers(check, draw):
    check(draw())


@pytest.mark.parametrize("draw", [diagrams.pytorch_transformer, diagrams.vision_transformer])
@pytest.mark.parametrize(
    "check",
    [
        test_boxes_do_not_overlap,
        test_everything_is_on_the_sheet,
        test_every_arrow_leads_from_one_box_to_another,
        test_arrows_are_made_of_straight_pieces_and_end_with_room_for_a_head,
        test_no_arrow_goes_through_a_box,
        test_text_fits_its_box,
        test_the_text_of_frames_is_clear_of_boxes_and_arrows,
    ],
)
def test_the_drawings_of_chapter_10_are_as_neat(draw, check):
    check(draw())


def test_the_masks_of_pytorch_stand_where_its_arguments_act():
    sheet = diagrams.pytorch_transformer()
    [own, others] = named(sheet, "Self-attention"), named(sheet, "Cross-attention")
    drawn = {
        prefix: [note for _, note in box.lines[1:]]
        for prefix, box in zip(("src", "tgt", "memory"), [*own, *others], strict=True)
    }
    arguments = inspect.signature(nn.Transformer.forward).parameters
    masks = [name for name in arguments if name.endswith("_mask")]
    assert sorted(itertools.chain(*drawn.values())) == sorted(masks) and len(masks) == 6
    for prefix, names in drawn.items():
        assert all(name.startswith(f"{prefix}_") and name in sheet.description for name in names)
    [(source, target)] = [endpoints(sheet, arrow) for arrow in sheet.arrows if arrow.kind == "memory"]
    assert (title(source), title(target)) == ("memory", "Cross-attention")


def test_pytorchs_norms_and_sublayers_are_drawn_in_the_order_in_which_they_run():
    model, ran = nn.Transformer(8, 2, 1, 1, 16, batch_first=True), []
    kinds = {nn.LayerNorm: "norm", nn.MultiheadAttention: "attention", nn.Linear: "feed_forward"}
    for name, module in model.named_modules():
        if type(module) in kinds and not name.endswith("linear1"):  # The second layer ends a sublayer.
            kind = kinds[type(module)]
            module.register_forward_hook(lambda *_, kind=kind: ran.append(kind))
    model(torch.zeros(1, 3, 8), torch.zeros(1, 3, 8))
    sheet = diagrams.pytorch_transformer()
    decoder = order_on_the_sheet(sheet, 200)
    encoder = sorted(set(solid(sheet)), key=lambda box: box.top)
    encoder = [box.kind for box in encoder if box.right < 200 and box.kind in kinds.values()]
    assert encoder + decoder == ran


def test_only_the_state_of_the_class_token_reaches_the_head():
    sheet = diagrams.vision_transformer()
    links = [endpoints(sheet, arrow) for arrow in sheet.arrows]
    [read] = [source for source, target in links if title(target) == "Head"]
    [class_token] = [box for box in sheet.boxes if box.lines[0][1] == "class token"]
    assert (read.left, read.right) == (class_token.left, class_token.right)
    cut = [target for source, target in links if title(source) == "picture"]
    assert class_token not in cut and {target.lines[0][1][:5] for target in cut} == {"patch", "…"}
    into_linear = [source for source, target in links if title(target) == "linear"]
    assert into_linear == cut, "the class token is no patch: nothing is computed of it before the encoder"


# SVG ------------------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def root(sheet):
    return ElementTree.fromstring(sheet.svg())


def test_the_svg_shows_each_box_and_each_arrow_once(sheet, root):
    rectangles = [
        tuple(float(r.get(k)) for k in ("x", "y", "width", "height")) for r in root.iter(f"{SVG}rect")
    ]
    wanted = [(box.left, box.top, box.width, box.height) for box in sheet.boxes if box.kind != "add"]
    assert np.array(sorted(rectangles)) == pytest.approx(np.array(sorted(wanted)), abs=1e-3)
    circles = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(f"{SVG}circle")]
    assert circles == [box.middle for box in sheet.boxes if box.kind == "add"]
    tips = [tuple(map(float, p.get("points").split()[0].split(","))) for p in root.iter(f"{SVG}polygon")]
    assert np.array(tips) == pytest.approx(np.array([arrow.points[-1] for arrow in sheet.arrows]), abs=1e-3)
    texts = ["".join(text.itertext()).replace("\xa0", " ") for text in root.iter(f"{SVG}text")]
    lines = [" ".join(filter(None, line)) for box in sheet.boxes for line in box.lines]
    assert sorted(texts) == sorted(lines)


def test_lines_of_arrows_start_at_their_box_and_end_at_their_head(sheet, root):
    lines = [p.get("d") for p in root.iter(f"{SVG}path") if "v" not in p.get("d")]
    for arrow, line in zip(sheet.arrows, lines, strict=True):
        points = [tuple(map(float, pair.split())) for pair in line[1:].split("L")]
        assert points[0] == pytest.approx(arrow.points[0], abs=1e-3)
        head = 11 if arrow.kind == "residual" else 8
        before, tip = np.array(arrow.points[-2:])
        neck = tip + head * np.sign(before - tip)
        assert points[-1] == pytest.approx(tuple(neck), abs=1e-3)


def test_kinds_of_arrows_differ_by_more_than_color():
    looks = list(drawing._STROKES.values())
    assert len({look.split("stroke-dasharray")[0] for look in looks}) == len(looks)
    assert "dasharray" in drawing._STROKES["memory"]


def test_screen_readers_get_a_name_and_a_description(sheet, root):
    assert root.get("role") == "img" and root.get("aria-label") == sheet.title
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
    assert (root[0].text, root[1].text) == (sheet.title, sheet.description)
    for name in ("B, T", "d_model", "residual stream"):
        assert name in sheet.description
    for part in {title(box).lower() for box in sheet.boxes if box.kind in ("frame", "attention")}:
        words = re.sub(r"attn_weights.*|softmax.*|join.*", "", part)
        assert words in sheet.description.lower(), part


def test_titles_tell_the_drawings_apart():
    titles = {draw(norm_first).title for draw, norm_first in KINDS.values()}
    assert len(titles) == len(KINDS)


def test_it_needs_neither_scripts_nor_other_files_and_repeats_on_a_page(sheet):
    text = sheet._repr_html_().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"<script|<style|\son\w+=|\sid=|url\(|href|https?:", text)
    assert text.startswith('<figure class="diagram"') and sheet.caption in text
    ElementTree.fromstring(text)


def test_text_is_escaped():
    sheet = drawing.Diagram("a < b & c", 'say "<x>"', "<b>bold</b>", width=100)
    sheet.box("norm", (4, 96), 4, ("<&>", "'\""))
    root = ElementTree.fromstring(sheet._repr_html_())
    assert root[0].get("aria-label") == "a < b & c" and root[0][1].text == 'say "<x>"'
    assert root[1].text == "<b>bold</b>"
    assert "".join(next(root.iter(f"{SVG}text")).itertext()) == "<&>\xa0'\""


def test_printed_it_is_its_description(sheet):
    assert repr(sheet) == f"{sheet.title}\n{sheet.description}"


def test_two_drawings_are_the_same_text(kind):
    draw, norm_first = kind
    assert draw(norm_first)._repr_html_() == draw(norm_first)._repr_html_()
    assert draw()._repr_html_() == draw(True)._repr_html_()
    assert plots.diagrams is diagrams


# Colors --------------------------------------------------------------------------------------------------

TINTED = {kind: np.array(color) / 255 for kind, color in drawing.TINTS.items() if color}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("kind", TINTED)
def test_text_reads_on_every_box(kind, page):
    ink, paper = map(rgb, PAGES[page])
    fill = drawing.FILL_OPACITY * TINTED[kind] + (1 - drawing.FILL_OPACITY) * paper
    assert contrast(ink, fill) >= 4.5


@pytest.mark.parametrize("page", ["site, light", "site, dark", "JupyterLab, dark"])
@pytest.mark.parametrize("kind", TINTED)
def test_borders_are_seen(kind, page):
    assert contrast(TINTED[kind], rgb(PAGES[page][1])) >= 3


@pytest.mark.parametrize("vision", VISION)
def test_kinds_of_boxes_stay_apart(vision):
    seen = {kind: lab(VISION[vision] @ linear(color)) for kind, color in TINTED.items()}
    for a, b in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 20, (a, b)


def test_the_svg_paints_with_these_colors(sheet, root):
    paints = {r.get("stroke") for r in root.iter(f"{SVG}rect")} | {
        t.get("fill") for t in root.iter(f"{SVG}text")
    }
    tints = {"rgb({},{},{})".format(*color) for color in drawing.TINTS.values() if color}
    assert "currentColor" in paints and paints <= tints | {"currentColor"}
    for r in root.iter(f"{SVG}rect"):
        assert float(r.get("fill-opacity")) <= drawing.FILL_OPACITY
        assert r.get("fill") == r.get("stroke")
