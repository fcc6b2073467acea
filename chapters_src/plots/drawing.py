"""What diagrams are drawn with: boxes, arrows, and a sheet that puts them into one vector picture.

Lines and text take the text color of the page, and boxes are tinted with colors that show on light and on
dark paper; what a box is also stands in it. Nothing has an id, so a page can show the same diagram twice. On
the site, `book/_static/diagrams.js` lets readers zoom.
"""

import html
from collections.abc import Iterator
from dataclasses import dataclass, field

Point = tuple[float, float]  # To the right and down, in the units of the sheet: about a pixel each.
Span = tuple[float, float]  # From left to right.
Line = tuple[str, str]  # Of text: a bold part, then a plain one; each may be empty.

TINTS = {  # Red, green and blue of borders; a box is filled with a little of the same.
    "data": None,  # The color of the text.
    "norm": (212, 92, 16),
    "attention": (0, 110, 209),
    "feed_forward": (43, 166, 115),
    "lookup": (196, 70, 160),
}
FILL_OPACITY = 0.15
TITLE_SIZE, SMALL_SIZE = 13, 11
LINE_HEIGHT = 15
_ZOOM = 1.12  # The most pixels for a unit, where the page has room.
_FONTS = "Helvetica, Arial, 'Liberation Sans', sans-serif"


@dataclass(frozen=True)
class Box:
    """A rectangle with centered lines of text, each a bold and a plain part."""

    kind: str
    left: float
    top: float
    width: float
    height: float
    lines: tuple[Line, ...] = ()

    @property
    def right(self) -> float:
        """Where its right side is."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Where its lower side is."""
        return self.top + self.height

    @property
    def middle(self) -> Point:
        """Its center."""
        return self.left + self.width / 2, self.top + self.height / 2


@dataclass
class Diagram:
    """A drawing of boxes and arrows. A notebook shows it as a picture; printed, it is its description."""

    title: str
    description: str  # All that is drawn, in words: for screen readers, and where there are no pictures.
    caption: str
    width: float
    boxes: list[Box] = field(default_factory=list)
    arrows: list[tuple[Point, ...]] = field(default_factory=list)

    @property
    def height(self) -> float:
        """How far down the drawing goes, with a margin."""
        return max(box.bottom for box in self.boxes) + 4

    def box(self, kind: str, span: Span, top: float, *lines: Line, height: float = 0) -> Box:
        """Put a box on the sheet, of a kind that `TINTS` has, with these lines of text.

        Its left and its right side are those of the span, and `top` is where its upper side is. Without a
        height it is as high as its text needs.
        """
        height = height or LINE_HEIGHT * len(lines) + 14
        made = Box(kind, span[0], top, span[1] - span[0], height, lines)
        self.boxes.append(made)
        return made

    def arrow(self, *points: Point) -> None:
        """Put an arrow on the sheet: straight pieces through these points, a head at its end."""
        self.arrows.append(points)

    def svg(self) -> str:
        """Return the drawing as an SVG element, as wide as the page allows."""
        name, size = html.escape(self.title), f"{self.width:g} {self.height:g}"
        parts = [*map(_draw_box, self.boxes), *map(_draw_arrow, self.arrows)]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" aria-label="{name}" '
            f'style="display:block;width:100%;max-width:{_ZOOM * self.width:.0f}px;margin:0 auto" '
            f'font-family="{_FONTS}" fill="none" stroke-linejoin="round">'
            f"<title>{name}</title><desc>{html.escape(self.description)}</desc>{''.join(parts)}</svg>"
        )

    def _repr_html_(self) -> str:
        style = f"margin:.6em auto 0;padding:0;max-width:{_ZOOM * self.width:.0f}px;"
        style += "font-size:.9em;font-style:italic;text-align:start"
        caption = f'<figcaption style="{style}">{html.escape(self.caption)}</figcaption>'
        style = "margin:1em 0;padding:0;max-width:100%;color:inherit"
        return f'<figure class="diagram" style="{style}">{self.svg()}{caption}</figure>'

    def __repr__(self) -> str:
        return f"{self.title}\n{self.description}"


def text_lines(box: Box) -> Iterator[tuple[Point, str, str]]:
    """Yield for each line of a box the middle of its baseline, and its two parts."""
    middle, first = box.middle, box.middle[1] + 4.5 - LINE_HEIGHT * (len(box.lines) - 1) / 2
    for i, (bold, plain) in enumerate(box.lines):
        yield (middle[0], first + i * LINE_HEIGHT), bold, plain


def _draw_box(box: Box) -> str:
    color = TINTS[box.kind]
    paint = "currentColor" if color is None else "rgb({},{},{})".format(*color)
    opacity = 0.07 if box.kind == "data" else FILL_OPACITY
    size = f'x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" height="{box.height:g}"'
    look = f'fill="{paint}" fill-opacity="{opacity}" stroke="{paint}" stroke-width="1.4"'
    return f'<rect {size} rx="6" {look}/>{"".join(_draw_text(*line) for line in text_lines(box))}'


def _draw_text(anchor: Point, bold: str, plain: str) -> str:
    title = f'<tspan font-weight="bold" font-size="{TITLE_SIZE}">{html.escape(bold)}</tspan>' if bold else ""
    between = "&#160;" if bold and plain else ""
    return (
        f'<text x="{anchor[0]:g}" y="{anchor[1]:g}" text-anchor="middle" font-size="{SMALL_SIZE}" '
        f'fill="currentColor">{title}{between}{html.escape(plain)}</text>'
    )


def _draw_arrow(points: tuple[Point, ...]) -> str:
    (from_x, from_y), (x, y) = points[-2:]
    across, down = (x > from_x) - (x < from_x), (y > from_y) - (y < from_y)  # The direction at its end.
    length, half = 8, 4.5
    neck = (x - across * length, y - down * length)
    line = "L".join(f"{a:g} {b:g}" for a, b in (*points[:-1], neck))
    wings = [(neck[0] + sign * half * down, neck[1] + sign * half * across) for sign in (-1, 1)]
    head = " ".join(f"{a:g},{b:g}" for a, b in ((x, y), *wings))
    return (
        f'<path d="M{line}" stroke="currentColor" stroke-width="1.4"/>'
        f'<polygon points="{head}" fill="currentColor"/>'
    )
