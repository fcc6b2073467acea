"""Structure, escapes and contrast of chips are read from their HTML."""

import itertools
import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest
from color_science import PAGES, contrast, rgb

from chapters_src import plots
from chapters_src.plots import token_chips


def parse(shown) -> Element:
    """Read what a notebook shows, strictly: as XML, which lets no tag stay open."""
    return ElementTree.fromstring(shown._repr_html_())


def text_of(element: Element) -> str:
    return "".join(element.itertext())


def spoken(element: Element) -> str:
    """What a screen reader says: names of images instead of their signs."""
    inside = (element.text or "") + "".join(spoken(child) + (child.tail or "") for child in element)
    return element.get("aria-label") or inside


def row(tokens) -> Element:
    return parse(token_chips({"row": tokens}, "A caption."))


def chips(tokens) -> list[Element]:
    return list(row(tokens).iter("li"))


ROWS = {"words": ["Tokenizing", "text", "."], "BPE & Co": ["Token", "izing", "Ġtext", "."], "one": ["x"]}


def test_a_figure_with_a_caption_and_a_labeled_list_for_each_row():
    figure = parse(token_chips(ROWS, "One <sentence>."))
    assert figure.tag == "figure"
    assert figure[0].tag == "figcaption" and text_of(figure[0]) == "One <sentence>."
    labels = ["words · 3 tokens", "BPE & Co · 4 tokens", "one · 1 token"]
    assert [text_of(label) for label in figure.iter("dt")] == labels
    [definitions] = figure.iter("dl")
    assert [child.tag for child in definitions] == ["dt", "dd"] * 3
    lists = list(figure.iter("ol"))
    assert [[text_of(item) for item in one] for one in lists] == list(ROWS.values())
    assert {child.tag for one in lists for child in one} == {"li"}


def test_it_needs_neither_scripts_nor_style_sheets():
    text = token_chips(ROWS, "A caption.")._repr_html_()
    assert not re.search(r"<script|<style|class=|\son\w+=|\sid=|url\(|https?:", text)


def test_it_wraps_on_a_phone():
    text = token_chips(ROWS, "A caption.")._repr_html_()
    assert "flex-wrap:wrap" in text and "overflow-wrap:anywhere" in text
    assert not re.search(r"[;\"](min-)?width:|nowrap", text)


def test_text_is_escaped_everywhere():
    nasty = '<img src=x onerror="alert(1)">&amp;\''
    root = parse(token_chips({nasty: [nasty]}, nasty))
    assert not list(root.iter("img"))
    assert text_of(next(root.iter("figcaption"))) == nasty
    assert text_of(next(root.iter("dt"))).startswith(nasty)
    assert text_of(next(root.iter("li"))).replace("␣", " ") == nasty


@pytest.mark.parametrize(
    ("token", "shown", "name"),
    [
        (" core", "␣core", "spacecore"),
        ("a\nb", "a⏎b", "anewlineb"),
        ("\t", "⇥", "tab"),
        ("\r", "␍", "carriage return"),
        ("", "∅", "empty token"),
        ("\x07", "⟨U+0007⟩", "u+0007"),
        ("a\u00a0b", "a⟨U+00A0⟩b", "ano-break spaceb"),
        ("\u200b", "⟨U+200B⟩", "zero width space"),
        ("\u202e", "⟨U+202E⟩", "right-to-left override"),
        ("\u200d", "⟨U+200D⟩", "zero width joiner"),
        ("\ufe0f", "⟨U+FE0F⟩", "variation selector-16"),
        ("\ud800", "⟨U+D800⟩", "u+d800"),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
        ("\u2764\ufe0f", "\u2764\ufe0f", "\u2764\ufe0f"),
        ("\u0301", "◌\u0301", "◌\u0301"),
        ("e\u0301", "e\u0301", "e\u0301"),
        ("##ing", "##ing", "##ing"),
        ("日本", "日本", "日本"),
    ],
)
def test_what_cannot_be_seen_gets_a_sign_with_a_name(token, shown, name):
    [chip] = chips([token])
    assert text_of(chip) == shown
    assert spoken(chip) == name
    for sign in chip.iter("span"):
        assert sign.get("role") == "img", "a name is only allowed on an element with a role"
    text_of(chip).encode("utf-8")


@pytest.mark.parametrize(
    ("tokens", "direction"),
    [
        (["hello", "שלום"], "ltr"),
        (["12", " ", "שלום", "hello"], "rtl"),
        (["مرحبا"], "rtl"),
        (["12", "!"], "ltr"),
    ],
)
def test_rows_are_read_in_the_direction_of_their_first_letter(tokens, direction):
    [listed] = row(tokens).iter("ol")
    assert listed.get("dir") == direction
    assert [[child.tag for child in item] for item in listed] == [["bdi"]] * len(tokens)


def backgrounds():
    styles = [chip.get("style") for chip in chips(["a", "b", "c"])]
    assert len(styles) == 3
    for style in styles:
        *color, alpha = map(float, re.search(r"background:rgba\(([^)]*)\)", style)[1].split(","))
        *edge, _ = map(float, re.search(r"solid rgba\(([^)]*)\)", style)[1].split(","))
        assert "color:inherit" in style
        yield np.array(color) / 255, alpha, np.array(edge) / 255


@pytest.mark.parametrize("page", PAGES)
def test_chips_read_on_light_and_dark_pages(page):
    ink, paper = map(rgb, PAGES[page])
    for color, alpha, _ in backgrounds():
        assert contrast(ink, alpha * color + (1 - alpha) * paper) >= 4.5


@pytest.mark.parametrize("page", ["site, light", "site, dark", "JupyterLab, dark"])
def test_borders_of_chips_are_seen(page):
    for _, _, edge in backgrounds():
        assert contrast(edge, rgb(PAGES[page][1])) >= 3


def test_neighbors_differ():
    styles = [chip.get("style") for chip in chips(list("abcdef"))]
    assert all(a != b for a, b in itertools.pairwise(styles))


def test_printed_it_is_plain_text():
    assert repr(token_chips({"BPE": ["a", " b", "\n"], "one": ["x"]}, "A caption.")) == (
        "A caption.\nBPE (3 tokens): a | ␣b | ⏎\none (1 token): x"
    )


def test_a_row_without_tokens_says_so():
    root = row([])
    assert text_of(next(root.iter("dt"))) == "row · 0 tokens"
    assert not list(root.iter("ol"))


def test_later_changes_of_the_rows_do_not_reach_it():
    tokens = ["a"]
    shown = token_chips({"row": tokens}, "A caption.")
    tokens.append("b")
    assert "1 token" in repr(shown)


@pytest.mark.parametrize("bad", ["a string", b"bytes", [1, 2], ["a", None]])
def test_rows_that_are_no_sequences_of_strings_are_refused(bad):
    with pytest.raises(TypeError, match="row 'ids' is not a sequence of strings"):
        token_chips({"ids": bad}, "A caption.")


@pytest.mark.parametrize(("rows", "caption"), [({}, "A caption."), ({"row": ["a"]}, "  ")])
def test_rows_and_a_caption_are_needed(rows, caption):
    with pytest.raises(ValueError, match="need rows and a caption"):
        token_chips(rows, caption)


def test_too_many_tokens_are_refused():
    assert len(chips(["a"] * plots.MAX_CHIPS)) == plots.MAX_CHIPS
    with pytest.raises(ValueError, match=r"'row' has 301 tokens.*shorter text"):
        row(["a"] * 301)
