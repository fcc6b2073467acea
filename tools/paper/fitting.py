"""Figures that nearly fit: where one leaves much of a page empty, it is made smaller, or text goes before it.

The browser decides where pages end, and a figure that does not fit goes to the next one. `print_page.js` puts
marks around each cell with a figure; in the PDF they say where it went, and how much room it left.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from pypdf import PdfReader

FOOT = 72.0  # points: where the text of a page ends, in the browser's marks, which lie too high by a margin
MUCH = 0.18  # of a page: what a smaller figure may fill
TOO_MUCH = 0.25  # of a page: what the text that follows may fill, too
SMALLEST = 0.72  # of the size of a figure
SLACK = (
    12.0  # points that a figure is made smaller than it has to be: a margin at the top of a page is left out
)
PASSES = 10  # printings of a page, at the most


@dataclass(frozen=True)
class Place:
    """A place in a PDF: a page, and points from its lower edge."""

    page: int
    top: float


@dataclass(frozen=True)
class Late:
    """A figure that did not fit below what it follows."""

    number: int
    room: float  # points that it left empty
    scale: float  # the part of its size that would have fitted
    movable: bool  # whether it went with its whole cell, so that text can go before it


def places(pdf: PdfReader) -> dict[str, Place]:
    """Return the named places of a PDF."""
    return {
        unquote(name.lstrip("/")): Place(pdf.get_destination_page_number(place), float(place.top or 0))
        for name, place in pdf.named_destinations.items()
    }


def fit(
    printed: Callable[[], PdfReader],
    resize: Callable[[int, float], object],
    postpone: Callable[[int, float], bool],
) -> None:
    """Print a page until its figures fill the pages, as far as this can be had.

    Args:
        printed: prints it.
        resize: gives a figure, by its number, a part of its full size.
        postpone: puts the text that follows a figure before it, as much as fills a number of points; says
            whether there was any.
    """
    former: dict[int, int] = {}  # figures that were made smaller -> the pages on which they stood
    settled: set[int] = set()  # those of them that moved, or that are large again
    followed: set[int] = set()  # figures whose following text was looked at
    for _ in range(PASSES):
        pdf = printed()
        marks = places(pdf)
        height = float(pdf.pages[0].mediabox.height)
        vain = [n for n, page in former.items() if n not in settled and marks[f"figure-{n}"].page >= page]
        settled |= former.keys()
        for number in vain:
            resize(number, 1)
        if vain:
            continue
        found = next(late(marks, MUCH * height, former, smallest=SMALLEST), None)
        if found:
            former[found.number] = marks[f"figure-{found.number}"].page
            resize(found.number, found.scale)
            continue
        for figure in late(marks, TOO_MUCH * height, followed):
            followed.add(figure.number)
            if figure.movable and postpone(figure.number, figure.room):
                break
        else:
            return
    for number in former.keys() - settled:
        resize(number, 1)
    printed()


def late(
    marks: Mapping[str, Place], much: float, apart_from: Collection[int], smallest: float = -1.0
) -> Iterator[Late]:
    """Yield the figures that left much room, in order.

    Args:
        marks: named places, among them five of each figure: `before-N`, the end of what stands above its cell
            and headings; `cell-N`, the beginning of these; `code-N`, the end of its code; `figure-N` and
            `after-N`, its own beginning and the end of its cell.
        much: points.
        apart_from: figures not to look at.
        smallest: the part of its size to which a figure may be reduced.
    """
    numbers = sorted(int(name.removeprefix("figure-")) for name in marks if name.startswith("figure-"))
    for number in numbers:
        before, cell, code, figure, after = (
            marks.get(f"{kind}-{number}") for kind in ("before", "cell", "code", "figure", "after")
        )
        if number in apart_from or not (before and cell and figure and after) or figure.page != after.page:
            continue
        movable = cell.page == after.page and before.page == after.page - 1
        if code and code.page == after.page - 1:
            room, start = code.top - FOOT, figure.top
        elif movable:
            room, start = before.top - FOOT, cell.top
        else:
            continue  # it stands on the page of what it follows
        own = figure.top - after.top
        scale = 1 - (start - after.top - room + SLACK) / own if own > 0 else 0.0
        if room > much and smallest <= scale < 1:
            yield Late(number, room, scale, movable)
