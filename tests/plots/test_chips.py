"""Structure, escapes and contrast of chips are read from their HTML."""

import itertools
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from color_science import PAGES, contrast, rgb

from chapters_src import plots
from chapters_src.plots import token_chips


class Tree(HTMLParser):
    """Reads HTML strictly into (tag, attributes, children); text is a string among the children."""

    def __init__(self, text):
        super().__init__()
        self.root = ("root", {}, [])
        self.open = [self.root]
        self.feed(text)
        self.close()
        assert self.open == [self.root]

    def handle_starttag(self, tag, attrs):
        element = (tag, dict(attrs), [])
        self.open[-1][2].append(element)
        self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        self.open[-1][2].append(data)


def find(element, tag):
    """Yield the elements of a kind, in order."""
    for child in element[2]:
        if not isinstance(child, str):
            if child[0] == tag:
                yield child
            yield from find(child, tag)


def text_of(element):
    return "".join(child if isinstance(child, str) else text_of(child) for child in element[2])


def spoken(element):
    """What a screen reader says: names of images instead of their signs."""
    label = element[1].get("aria-label")
    return label or "".join(child if isinstance(child, str) else spoken(child) for child in element[2])


def parse(tokens):
    return Tree(token_chips({"row": tokens}, "A caption.")._repr_html_()).root


def chips(tokens):
    return list(find(parse(tokens), "li"))


ROWS = {"words": ["Tokenizing", "text", "."], "BPE & Co": ["Token", "izing", "Ġtext", "."], "one": ["x"]}


def test_a_figure_with_a_caption_and_a_labeled_list_for_each_row():
    root = Tree(token_chips(ROWS, "One <sentence>.")._repr_html_()).root
    [figure] = root[2]
    assert figure[0] == "figure"
    assert figure[2][0][0] == "figcaption" and text_of(figure[2][0]) == "One <sentence>."
    assert [text_of(label) for label in find(root, "dt")] == [
        "words · 3 tokens",
        "BPE & Co · 4 tokens",
        "one · 1 token",
    ]
    [definitions] = find(root, "dl")
    assert [child[0] for child in definitions[2]] == ["dt", "dd"] * 3
    lists = list(find(root, "ol"))
    assert [[text_of(item) for item in find(one, "li")] for one in lists] == list(ROWS.values())
    assert all(child[0] == "li" for one in lists for child in one[2])


def test_it_needs_neither_scripts_nor_style_sheets():
    text = token_chips(ROWS, "A caption.")._repr_html_()
    assert not re.search(r"<script|<style|class=|\son\w+=|\sid=|url\(|https?:", text)


def test_it_wraps_on_a_phone():
    text = token_chips(ROWS, "A caption.")._repr_html_()
    assert "flex-wrap:wrap" in text and "overflow-wrap:anywhere" in text
    assert not re.search(r"[;\"](min-)?width:|nowrap", text)


def test_text_is_escaped_everywhere():
    nasty = '<img src=x onerror="alert(1)">&amp;\''
    root = Tree(token_chips({nasty: [nasty]}, nasty)._repr_html_()).root
    assert not list(find(root, "img"))
    assert text_of(next(find(root, "figcaption"))) == nasty
    assert text_of(next(find(root, "dt"))).startswith(nasty)
    assert text_of(next(find(root, "li"))).replace("␣", " ") == nasty


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
    for sign in find(chip, "span"):
        assert sign[1]["role"] == "img", "a name is only allowed on an element with a role"
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
    [row] = find(parse(tokens), "ol")
    assert row[1]["dir"] == direction
    assert all(item[2][0][0] == "bdi" and len(item[2]) == 1 for item in find(row, "li"))


def backgrounds():
    styles = [chip[1]["style"] for chip in chips(["a", "b", "c"])]
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
    styles = [chip[1]["style"] for chip in chips(list("abcdef"))]
    assert all(a != b for a, b in itertools.pairwise(styles))


def test_printed_it_is_plain_text():
    assert repr(token_chips({"BPE": ["a", " b", "\n"], "one": ["x"]}, "A caption.")) == (
        "A caption.\nBPE (3 tokens): a | ␣b | ⏎\none (1 token): x"
    )


def test_a_row_without_tokens_says_so():
    root = parse([])
    assert text_of(next(find(root, "dt"))) == "row · 0 tokens"
    assert not list(find(root, "ol"))


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
        parse(["a"] * 301)
