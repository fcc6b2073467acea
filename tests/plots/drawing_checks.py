"""What is wrong with a drawing: with its file, read as XML, and with the picture that a phone shows."""

import io
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import numpy as np
from color_science import TO_XYZ, linear
from PIL import Image
from playwright.sync_api import Browser

from chapters_src.plots.drawings import FOLDER
from paths import NOTEBOOKS, ROOT

PHONE, COLUMN = 390, 358  # CSS pixels: of a common phone, and what it leaves to the text column
LEAST_TEXT = 9  # CSS pixels
LEAST_CONTRAST = 4.5  # between text and what is behind it, WCAG 2.1 AA
CLEAR = 0.95  # the share of the ground behind a text that has to have this contrast: what crosses it has not
FONTS = "Helvetica, Arial, 'Liberation Sans', sans-serif"
STYLES, START_PAGE = (
    (ROOT / "book" / "_static" / f"{name}.css").read_text(encoding="utf-8") for name in ("diagrams", "front")
)
SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {
    *("svg", "title", "desc", "metadata", "g", "a", "text", "tspan"),
    *("rect", "circle", "ellipse", "line", "path", "polyline", "polygon"),
}
PAINTS = {"fill", "stroke"}
UNWANTED = {"style", "color", "opacity", "filter", "mask", "clip-path"} | {
    f"marker-{end}" for end in ("start", "mid", "end")
}


def palette(dark: bool) -> dict[str, str]:
    """Names and values of the colors of drawings in `diagrams.css`."""
    light, in_the_dark = STYLES.split("@media screen")[:2]
    return dict(re.findall(r"--drawing-([a-z-]+): (#[0-9a-f]{6})", in_the_dark if dark else light))


# --- What a drawing says, and what its chapter computes.


def tree(name: str) -> ElementTree.Element:
    return ElementTree.parse(FOLDER / f"{name}.svg").getroot()


def texts_of(name: str) -> list[str]:
    return [said(text) for text in tree(name).iter(f"{SVG}text")]


def said(text: ElementTree.Element) -> str:
    return "".join(text.itertext()).replace("−", "-")


def rows_of(name: str, chosen: Callable[[ElementTree.Element], bool]) -> list[list[str]]:
    """The chosen texts of a drawing in rows, from top to bottom, each from left to right."""
    rows: dict[float, list[str]] = {}
    for text in sorted(tree(name).iter(f"{SVG}text"), key=lambda text: float(text.get("x"))):
        if chosen(text):
            rows.setdefault(float(text.get("y")), []).append(said(text))
    return [rows[y] for y in sorted(rows)]


def in_the_middle(text: ElementTree.Element) -> bool:
    return text.get("text-anchor") == "middle"


def made_by(chapter: str, beginnings: str) -> dict:
    """What the code cells of a chapter make that have a line with one of these beginnings."""
    found = {}
    exec(
        "import collections\nfrom collections import Counter\nfrom itertools import pairwise\n"
        "from math import inf, log\nimport pandas as pd\nimport torch\n"
        "from torch.nn import functional as F\nfrom torch.testing import assert_close",
        found,
    )
    for cell in nbformat.read(NOTEBOOKS / f"{chapter}.ipynb", 4).cells:
        if cell.cell_type == "code" and re.search(f"^({beginnings})", cell.source, re.M):
            exec(cell.source, found)
    return found


# --- The file.


def in_file(text: str, caption: bool = True) -> list[str]:
    """Find what is wrong with a file.

    Args:
        text: the SVG.
        caption: whether it needs one: the drawings of notebooks do.

    Returns:
        Complaints, none for a good drawing.
    """
    root = ElementTree.fromstring(text)
    found = [*_about(root, caption)]
    for element in root.iter():
        name = element.tag.removeprefix(SVG)
        if name not in ELEMENTS:
            found.append(f"<{name}> has no place in a drawing")
        for attribute, value in element.attrib.items():
            found += _attribute(root, name, attribute, value)
    return found


def _about(root: ElementTree.Element, caption: bool):
    for tag, least in {"title": 5, "desc": 200, "metadata": 80 if caption else 0}.items():
        told = " ".join((root.findtext(f"{SVG}{tag}") or "").split())
        if len(told) < least:
            yield f"<{tag}> has {len(told)} characters, and needs {least} to say what there is to say"
    if not re.fullmatch(r"0 0 [\d.]+ [\d.]+", root.get("viewBox", "")):
        yield f"viewBox is {root.get('viewBox')!r}: it begins with 0 0"
    if not root.get("width", "").isdigit():
        yield f"width is {root.get('width')!r}: pixels, where the page has room"
    if root.get("font-family") != FONTS:
        yield f"font-family of <svg> is {root.get('font-family')!r}: {FONTS}"


def _attribute(root: ElementTree.Element, element: str, name: str, value: str):
    if name in PAINTS and value != "none":
        wanted = {f"var(--drawing-{color}, {light})" for color, light in palette(dark=False).items()}
        if value not in wanted:
            yield f"{name} is {value!r}: write a variable of diagrams.css with its light value"
    elif name in UNWANTED or name.startswith("on") or (name == "font-family" and element != "svg"):
        yield f"<{element}> has {name}, which does not go everywhere a drawing goes"
    elif name == "id" and value not in root.get("aria-labelledby", "").split():
        yield f"the id {value!r} would stand twice on a page that shows the drawing twice"
    elif name.endswith("href") and (element != "a" or not re.match(r"\.\./[\w/]+\.html$", value)):
        yield f"<{element}> leads to {value!r}: only links to pages of the book"
    elif "url(" in value or "://" in value:
        yield f"{name} is {value!r}: a drawing needs no other file"


# --- The picture.


def in_picture(browser: Browser, shown: str, dark: bool, picture: Path | None = None) -> list[str]:
    """Find what is wrong with a drawing on the page of a phone.

    Args:
        browser: Chromium.
        shown: HTML with one drawing in it.
        dark: whether the page is.
        picture: where to leave what was seen, for a person to look at.

    Returns:
        Complaints, none for a good drawing.
    """
    theme = "dark" if dark else "light"
    page = browser.new_page(viewport={"width": PHONE, "height": 800}, device_scale_factor=2)
    page.set_content(
        f'<!doctype html><html data-theme="{theme}"><style>{STYLES}{START_PAGE}</style><body style="margin:0;'
        f'background:var(--drawing-paper)"><main style="width:{COLUMN}px;margin:0 16px">{shown}</main>'
    )
    seen = page.evaluate(LOOK)
    if picture:
        page.screenshot(path=picture, full_page=True)
    page.add_style_tag(content="text { visibility: hidden }")
    ground = np.asarray(Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")) / 255
    page.close()
    found = [f"{what} is missing" for what in seen["missing"]]
    found += [f"the page is {seen['page']} pixels wide"] if seen["page"] > PHONE else []
    left, top, right, bottom = seen["frame"]
    for text in seen["texts"]:
        a, b, c, d = text["box"]
        if a < left - 0.5 or b < top - 0.5 or c > right + 0.5 or d > bottom + 0.5:
            found.append(f"{text['text']!r} is not all inside the picture")
    for one, other in combinations(seen["texts"], 2):
        if _overlap(one["box"], other["box"]):
            found.append(f"{one['text']!r} and {other['text']!r} overlap")
    for part in seen["parts"]:
        if part["size"] < LEAST_TEXT - 0.01:
            found.append(f"{part['text']!r} has {part['size']:.1f} pixels on a phone")
        clear = _clear(ground, part)
        if clear < CLEAR:
            found.append(
                f"{part['text']!r} does not show: {clear:.0%} of its ground has the contrast, {theme}"
            )
    return found


def _overlap(one: list[float], other: list[float]) -> bool:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return across > 0.5 and down > 0.5


def _clear(ground: np.ndarray, part: dict) -> float:
    """The share of pixels behind a text from which its color stands out."""
    left, top, right, bottom = (max(0, round(2 * edge)) for edge in part["box"])
    behind = ground[top:bottom, left:right]
    if not behind.size:
        return 0.0
    ink, paper = (linear(np.array(color)) @ TO_XYZ[1] for color in (part["color"], behind))
    ratio = (np.maximum(ink, paper) + 0.05) / (np.minimum(ink, paper) + 0.05)
    return float((ratio >= LEAST_CONTRAST).mean())


# A line is a <text>, or each <tspan> that has a place of its own; a part of it has one look. Boxes reach from
# the top of an h to the bottom of a p, whatever room a font wants above and below.
LOOK = """() => {
  const svg = document.querySelector('svg'), box = ({left, top, right, bottom}) => [left, top, right, bottom];
  const said = node => node.textContent.replace(/\\s+/g, ' ').trim();
  const look = (node, element) => {
    const range = document.createRange(), style = getComputedStyle(element), place = element.getScreenCTM();
    range.selectNodeContents(node);
    const {left, right} = range.getBoundingClientRect();
    const size = parseFloat(style.fontSize) * Math.hypot(place.a, place.b);
    const baseline = element.getStartPositionOfChar(0).matrixTransform(place).y;
    const color = style.fill.match(/[\\d.]+/g)?.slice(0, 3).map(value => value / 255) ?? [0.5, 0.5, 0.5];
    const [top, bottom] = [baseline - 0.75 * size, baseline + 0.22 * size];
    return {text: said(node), box: [left, top, right, bottom], size, color};
  };
  const lines = [...svg.querySelectorAll('text, tspan[x]')].filter(line => !line.querySelector('tspan[x]'));
  const leaves = [...svg.querySelectorAll('text, text *')].flatMap(element => [...element.childNodes])
    .filter(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const labels = svg.getAttribute('aria-labelledby')?.split(' ').map(id => document.getElementById(id));
  const name = svg.getAttribute('aria-label') ?? labels?.map(label => label?.textContent).join(' ') ?? '';
  const missing = {
    'the name for screen readers': !name.includes(svg.querySelector('title').textContent),
    'the role': !['img', 'group'].includes(svg.getAttribute('role')),
    'a text': !lines.length,
  };
  return {
    missing: Object.keys(missing).filter(what => missing[what]),
    page: document.scrollingElement.scrollWidth,
    frame: box(svg.getBoundingClientRect()),
    texts: lines.map(line => look(line, line)),
    parts: leaves.map(leaf => look(leaf, leaf.parentElement)),
  };
}"""
