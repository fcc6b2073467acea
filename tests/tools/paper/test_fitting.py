"""Figures that nearly fit are made smaller, text goes before others, and what did not help is undone."""

from types import SimpleNamespace

import pytest

from paper import fitting
from paper.fitting import FOOT, Place

HEIGHT = 842


def marks(room: float, own: float, code_stays: bool = False) -> dict[str, Place]:
    """Marks of a figure that went to the second page and left some room on the first."""
    top, page = 800.0, 0 if code_stays else 1
    above = 0 if code_stays else 20
    return {
        "before-1": Place(0, FOOT + room + (30 if code_stays else 0)),
        "cell-1": Place(page, top if page else FOOT + room + 30),
        "code-1": Place(page, top - 10 if page else FOOT + room),
        "figure-1": Place(1, top - above),
        "after-1": Place(1, top - above - own),
    }


@pytest.mark.parametrize("code_stays", [False, True])
def test_a_figure_that_nearly_fits_is_found_with_the_size_that_fits(code_stays):
    (found,) = fitting.late(marks(250, 280, code_stays), 0.18 * HEIGHT, ())
    assert (found.number, found.room, found.movable) == (1, 250, not code_stays)
    above = 0 if code_stays else 20
    assert above + 280 * found.scale == pytest.approx(250 - fitting.SLACK)


def test_what_stands_below_what_it_follows_is_left_alone():
    placed = {name: Place(1, place.top) for name, place in marks(250, 280).items()}
    assert list(fitting.late(placed, 100, ())) == []
    assert list(fitting.late(marks(250, 280), 300, ())) == [], "little room is left"
    assert list(fitting.late(marks(250, 280), 100, {1})) == []
    assert list(fitting.late(marks(250, 700), 100, (), smallest=0.7)) == [], "it would be too small"


class Printer:
    """A stand-in for the browser: the figure fits below a size, or after its text has moved."""

    def __init__(self, monkeypatch, own: float, fits_at: float = 0.0, text: bool = False):
        self.own, self.fits_at, self.text = own, fits_at, text
        self.scale, self.moved, self.printed = 1.0, False, 0
        monkeypatch.setattr(fitting, "places", lambda pdf: self.marks())

    def marks(self) -> dict[str, Place]:
        made = marks(30 if self.moved else 250, self.own * self.scale)
        if self.scale <= self.fits_at:
            made |= {name: Place(0, 300) for name in made}
        return made

    def fit(self) -> None:
        def printed():
            self.printed += 1
            return SimpleNamespace(pages=[SimpleNamespace(mediabox=SimpleNamespace(height=HEIGHT))])

        def resize(number, scale):
            self.scale = scale

        def postpone(number, room):
            assert number == 1 and room == 250
            self.moved = self.text
            return self.text

        fitting.fit(printed, resize, postpone)


def test_a_figure_is_made_smaller_once(monkeypatch):
    browser = Printer(monkeypatch, own=280, fits_at=0.8)
    browser.fit()
    assert 0.7 < browser.scale < 0.8 and browser.printed == 2


def test_a_figure_that_stays_where_it_was_is_large_again(monkeypatch):
    browser = Printer(monkeypatch, own=280, fits_at=0.1)
    browser.fit()
    assert browser.scale == 1 and browser.printed == 3


def test_text_goes_before_a_figure_that_would_be_too_small(monkeypatch):
    browser = Printer(monkeypatch, own=500, text=True)
    browser.fit()
    assert browser.scale == 1 and browser.moved and browser.printed == 2


def test_without_text_to_move_the_page_stays(monkeypatch):
    browser = Printer(monkeypatch, own=500)
    browser.fit()
    assert browser.scale == 1 and not browser.moved and browser.printed == 1
