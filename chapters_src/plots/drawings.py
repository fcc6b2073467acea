"""Drawings that a person can edit: each is an SVG file in `chapters_src/drawings`.

Text in them stays text. Every color is a variable whose fallback is right for a light page,
`var(--drawing-ink, #222832)`, so that a file also shows by itself; the site's dark colors are in
`book/_static/diagrams.css`. STYLE.md, "Drawings", says how one is made.
"""

import html
import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

FOLDER = Path(__file__).parents[1] / "drawings"
_SVG = "{http://www.w3.org/2000/svg}"
_FIGURE = (  # In JupyterLab and Colab a panel of paper, whatever their theme; on the site it is the page.
    "margin:1em 0;padding:var(--drawing-margin, 1em);max-width:100%;border-radius:8px;"
    "color:var(--drawing-ink, #222832);background:var(--drawing-paper, #ffffff)"
)


@dataclass(frozen=True)
class Drawing:
    """A drawing that a notebook shows as a picture; printed, it is its description."""

    name: str
    title: str
    description: str  # All that is drawn, in words: for screen readers, and where there are no pictures.
    caption: str
    width: int  # Pixels, where the page has room.
    svg: str

    def _repr_html_(self) -> str:
        look = "padding:0;font-size:.9em;font-style:italic;text-align:start"
        caption = (
            f'<figcaption style="margin:.6em auto 0;max-width:{self.width}px;{look}">'
            f"{html.escape(self.caption)}</figcaption>"
        )
        return f'<figure class="diagram" style="{_FIGURE}">{self.svg}{caption}</figure>'

    def __repr__(self) -> str:
        return f"{self.title}\n{self.description}"


def load_drawing(name: str) -> Drawing:
    """Load a drawing by the name of its file, without `.svg`; as the last line of a cell, this shows it.

    A notebook shows it with its caption, and readers of the site can enlarge it.

    Raises:
        ValueError: there is no such drawing.
    """
    path = FOLDER / f"{name}.svg"
    if not path.is_file():
        names = ", ".join(sorted(each.stem for each in FOLDER.glob("*.svg")))
        raise ValueError(f"no drawing is named {name!r}; there are: {names}")
    return read(path)


def read(path: Path) -> Drawing:
    """Read one file; `load_drawing` finds it by its name.

    It is an SVG file with `<title>`, `<desc>`, its caption as `<metadata>`, and a `width` in pixels. The
    drawing's `svg` is as wide as the page allows, up to that width.
    """
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    title, description, caption = (
        " ".join((root.findtext(f"{_SVG}{tag}") or "").split()) for tag in ("title", "desc", "metadata")
    )
    width = int(root.attrib["width"])
    shown = re.sub(r"(?s)<!--.*?-->|<metadata>.*?</metadata>", "", text[text.index("<svg") :])
    style = f"display:block;width:100%;max-width:{width}px;height:auto;margin:0 auto"
    label = html.escape(title)
    svg = shown.strip().replace("<svg ", f'<svg role="img" aria-label="{label}" style="{style}" ', 1)
    return Drawing(path.stem, title, description, caption, width, svg)
