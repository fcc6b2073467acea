"""Sphinx extension: vector pictures of notebooks in two files, one for light and one for dark pages.

The dark file is the same drawing with other ink. The theme hides the one that is not wanted, so a screen
reader reads one of the two. On a narrow screen a drawing shrinks until its smallest text would be too small,
and from there on it scrolls inside its box.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from sphinx.transforms import SphinxTransform

from chapters_src.plots import DARK

SMALLEST_TEXT = 9  # CSS pixels, at the least
NARROW = 312  # CSS pixels: the text column of a narrow phone
ZOOM = 1.2  # of a drawing, where the page has room
POINT = 4 / 3  # CSS pixels
SCALES = re.compile(r"scale\(([\d.]+)")
GLYPHS = 100  # matplotlib draws letters of this size, and scales them
SVG = "{http://www.w3.org/2000/svg}"


class drawing(nodes.Element):  # noqa: N801 - docutils names the method that shows it after the class
    """A box with the same drawing twice, for light and for dark pages."""


class ShowInBothThemes(SphinxTransform):
    """Put a box with two files in the place of every SVG that a code cell shows."""

    default_priority = 500  # before Sphinx collects the pictures of a page

    def apply(self, **_):
        """Replace the pictures of one page."""
        for image in list(self.document.findall(nodes.image)):
            if image.parent.get("mime_type") == "image/svg+xml":
                image.replace_self(self._in_both_themes(image))

    def _in_both_themes(self, image: nodes.image) -> drawing:
        light = Path(self.app.srcdir, image["uri"].lstrip("/"))
        text = light.read_text(encoding="utf-8")
        dark = light.with_name(f"{light.stem}-dark.svg")
        dark.write_text(in_the_dark(text), encoding="utf-8")
        width, least = widths(text)
        box = drawing(style=f"--width: {width}px; --least: {least}px")
        if least > NARROW:  # The keyboard reaches what may have to be scrolled.
            box["attributes"] = {"tabindex": "0", "role": "group", "aria-label": "A wide figure"}
        for theme, path in {"light": light, "dark": dark}.items():
            picture = image.deepcopy()
            picture["uri"] = str(Path(image["uri"]).with_name(path.name).as_posix())
            picture["classes"] = [*image["classes"], f"only-{theme}"]
            box += picture
        return box


def in_the_dark(text: str) -> str:
    """A drawing with the ink of dark pages."""
    inks = {light.lower(): dark.lower() for light, dark in DARK.items()}
    return re.sub(r"#[0-9a-f]{6}\b", lambda color: inks.get(color[0].lower(), color[0]), text, flags=re.I)


def widths(text: str) -> tuple[int, int]:
    """How wide a drawing is shown where there is room, and how wide at the least.

    Args:
        text: an SVG file by matplotlib, letters drawn as paths.

    Returns:
        Two widths in CSS pixels; at the second, the smallest letters are `SMALLEST_TEXT` high.
    """
    root = ElementTree.fromstring(text)
    points = float(root.get("viewBox").split()[2])
    sizes = list(text_sizes(root))
    least = math.ceil(SMALLEST_TEXT / min(sizes) * points) if sizes else 0
    return max(round(points * POINT * ZOOM), least), least


def text_sizes(root: ElementTree.Element) -> Iterator[float]:
    """Yield the sizes of all texts of a drawing, in its own units; exponents are smaller than the rest."""
    for group in root.iter(f"{SVG}g"):
        letters = group.findall(f"{SVG}use")
        if letters and (scale := SCALES.search(group.get("transform", ""))):
            inner = (SCALES.search(letter.get("transform", "")) for letter in letters)
            yield GLYPHS * float(scale[1]) * min(float(found[1]) if found else 1.0 for found in inner)


def _open(writer, node):
    more = node.get("attributes", {})
    writer.body.append(writer.starttag(node, "div", CLASS="drawing", style=node["style"], **more))


def _close(writer, node):
    writer.body.append("</div>\n")


def setup(app):
    """Register the extension with Sphinx."""
    app.add_node(drawing, html=(_open, _close))
    app.add_transform(ShowInBothThemes)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
