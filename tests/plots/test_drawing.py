"""The sheet that diagrams are drawn on: its SVG is read back, its colors are seen as readers see them."""

import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from color_science import PAGES, VISION, contrast, lab, linear, rgb
from sheets import BOLD, PLAIN

from chapters_src.plots import drawing

SVG = "{http://www.w3.org/2000/svg}"
TINTED = {kind: np.array(color) / 255 for kind, color in drawing.TINTS.items() if color}


@pytest.fixture
def sheet():
    """A box of each kind in a row, above one box to which arrows lead, one of them around a corner."""
    made = drawing.Diagram("a < b & c", 'say "<x>"', "<b>bold</b>", width=400)
    boxes = [
        made.box(kind, (4 + 78 * i, 74 + 78 * i), 4, (kind, "<&>")) for i, kind in enumerate(drawing.TINTS)
    ]
    last = made.box("data", (4, 380), 100, ("all", ""), ("", "of them"), height=50)
    for box in boxes:
        made.arrow((box.middle[0], box.bottom), (box.middle[0], last.top))
    made.arrow((boxes[0].left, 20), (2, 20), (2, 125), (last.left, 125))
    return made


@pytest.fixture
def root(sheet):
    return ElementTree.fromstring(sheet.svg())


def test_the_svg_shows_each_box_and_each_arrow_once(sheet, root):
    rectangles = [
        tuple(float(r.get(k)) for k in ("x", "y", "width", "height")) for r in root.iter(f"{SVG}rect")
    ]
    assert rectangles == [(box.left, box.top, box.width, box.height) for box in sheet.boxes]
    tips = [tuple(map(float, p.get("points").split()[0].split(","))) for p in root.iter(f"{SVG}polygon")]
    assert tips == [arrow[-1] for arrow in sheet.arrows]
    texts = ["".join(text.itertext()).replace("\xa0", " ") for text in root.iter(f"{SVG}text")]
    assert texts == [" ".join(filter(None, line)) for box in sheet.boxes for line in box.lines]
    assert float(root.get("viewBox").split()[3]) == sheet.boxes[-1].bottom + 4


def test_lines_of_arrows_start_at_their_box_and_end_at_their_head(sheet, root):
    lines = [path.get("d") for path in root.iter(f"{SVG}path")]
    for arrow, line in zip(sheet.arrows, lines, strict=True):
        points = [tuple(map(float, pair.split())) for pair in line[1:].split("L")]
        assert points[:-1] == list(arrow[:-1])
        before, tip = np.array(arrow[-2:])
        assert points[-1] == tuple(tip + 8 * np.sign(before - tip))


def test_screen_readers_get_a_name_and_a_description_and_text_is_escaped(sheet, root):
    assert root.get("role") == "img" and root.get("aria-label") == sheet.title == "a < b & c"
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
    assert (root[0].text, root[1].text) == (sheet.title, 'say "<x>"')
    assert ElementTree.fromstring(sheet._repr_html_())[1].text == "<b>bold</b>"
    assert repr(sheet) == f"{sheet.title}\n{sheet.description}"


def test_it_needs_neither_scripts_nor_other_files_and_repeats_on_a_page(sheet):
    text = sheet._repr_html_().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"<script|<style|\son\w+=|\sid=|url\(|href|https?:", text)
    assert text.startswith('<figure class="diagram"')


def test_the_metrics_know_their_letters():
    assert PLAIN["i"] == 0.222 and BOLD["m"] == 0.889 and PLAIN["_"] == 0.556


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


def test_the_svg_paints_with_these_colors(root):
    paints = {r.get("stroke") for r in root.iter(f"{SVG}rect")}
    assert paints == {"rgb({},{},{})".format(*color) for color in drawing.TINTS.values() if color} | {
        "currentColor"
    }
    for r in root.iter(f"{SVG}rect"):
        assert float(r.get("fill-opacity")) <= drawing.FILL_OPACITY and r.get("fill") == r.get("stroke")
