"""What tests of diagrams that code draws look at: boxes, the ends of arrows, and how wide text is."""

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib

from chapters_src.plots import drawing


def apart(a, b, gap):
    """Whether two boxes are at least `gap` from each other."""
    beside = a.right + gap <= b.left or b.right + gap <= a.left
    return beside or a.bottom + gap <= b.top or b.bottom + gap <= a.top


def within(inner, outer, margin):
    across = outer.left + margin <= inner.left and inner.right <= outer.right - margin
    return across and outer.top + margin <= inner.top and inner.bottom <= outer.bottom - margin


def on_border(point, box):
    (x, y) = point
    beside = x in (box.left, box.right) and box.top <= y <= box.bottom
    return beside or (y in (box.top, box.bottom) and box.left <= x <= box.right)


def endpoints(sheet, arrow):
    """Where an arrow comes from and leads to."""
    [source] = [box for box in sheet.boxes if on_border(arrow[0], box)]
    [target] = [box for box in sheet.boxes if on_border(arrow[-1], box)]
    return source, target


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
    for (x, y), bold, plain in drawing.text_lines(box):
        width = text_width(bold, plain)
        yield drawing.Box("data", x - width / 2, y - 11, width, 14)  # from the top of an h to that of a p


def check_sheet(sheet, gap):
    """Boxes lie apart and hold their text, a phone shows all of it, and the description is in the picture."""
    for a, b in itertools.combinations(sheet.boxes, 2):
        assert apart(a, b, gap), (a, b)
    for box in sheet.boxes:
        assert box.left >= 4 and box.right <= sheet.width - 4 + 1e-6 and box.bottom < sheet.height
        assert all(within(text, box, 1) for text in text_boxes(box)), box
    assert 358 / sheet.width * drawing.SMALL_SIZE >= 9, "readable on a phone"
    root = ElementTree.fromstring(sheet.svg())
    [description] = [part.text for part in root if part.tag.endswith("desc")]
    assert description == sheet.description in repr(sheet)
