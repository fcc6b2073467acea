"""Tokens as colored chips, one row per tokenizer. Chapter 03.

Chips have the page's text color and a border, so they work on light and dark pages, and color is never the
only cue.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

MAX_CHIPS = 300  # Most tokens of one row that a reader can still look at one by one.

_CHIP_COLORS = ("46,134,193", "214,108,20", "20,150,110")  # Red, green, blue; the background mixes them in.
_FIGURE = "margin:1em 0;padding:0;max-width:100%;color:inherit"
_CAPTION = "margin:0;padding:0;text-align:start;font-style:italic;color:inherit"
_LABEL = "margin:.7em 0 .25em;padding:0;font-weight:bold;color:inherit"
_ROW = (
    "display:flex;flex-wrap:wrap;gap:.3em .25em;margin:0;padding:0;list-style:none;overflow-wrap:anywhere;"
    "font:.9em/1.5 ui-monospace,Menlo,Consolas,monospace"
)
_CHIP = (
    "box-sizing:border-box;max-width:100%;margin:0;padding:.1em .4em;border-radius:.3em;color:inherit;"
    "border:1px solid rgba({0},.9);background:rgba({0},.16)"
)
_STAND_INS = {" ": ("␣", "space"), "\n": ("⏎", "newline"), "\t": ("⇥", "tab"), "\r": ("␍", "carriage return")}
_JOINING = re.compile("[\u200c\u200d\ufe00-\ufe0f\U000e0020-\U000e007f]")  # Joiners, variants, flag letters.
_INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}  # Unicode categories of invisible characters.


@dataclass(frozen=True)
class TokenChips:
    """One text split by several tokenizers, for display in a notebook. Made by `token_chips`."""

    rows: Mapping[str, Sequence[str]]  # Name of the tokenizer -> its tokens.
    caption: str

    def _repr_html_(self) -> str:
        rows = "".join(_row(name, tokens) for name, tokens in self.rows.items())
        caption = f'<figcaption style="{_CAPTION}">{html.escape(self.caption)}</figcaption>'
        return f'<figure style="{_FIGURE}">{caption}<dl style="margin:0;padding:0">{rows}</dl></figure>'

    def __repr__(self) -> str:
        rows = (f"{name} ({_count(tokens)}): {_as_text(tokens)}" for name, tokens in self.rows.items())
        return "\n".join([self.caption, *rows])


def token_chips(rows: Mapping[str, Sequence[str]], caption: str) -> TokenChips:
    """Show one text through several tokenizers, each token a chip. Chapter 03.

    White space and invisible characters get a visible sign, which has a name for screen readers. A row has
    the tokens as in the vocabulary of its tokenizer; the caption is a sentence. In a notebook it displays as
    HTML, else as plain text.

    Raises:
        TypeError: a row is not a sequence of strings.
        ValueError: there are no rows or no caption, or a row has more than `MAX_CHIPS` tokens.
    """
    if not rows or not caption.strip():
        raise ValueError(f"chips need rows and a caption, not rows={rows!r} and caption={caption!r}")
    for name, tokens in rows.items():
        if isinstance(tokens, str | bytes) or not all(isinstance(token, str) for token in tokens):
            raise TypeError(f"row {name!r} is not a sequence of strings: {str(tokens)[:60]}")
        if len(tokens) > MAX_CHIPS:
            raise ValueError(
                f"row {name!r} has {len(tokens)} tokens, more than the limit of {MAX_CHIPS}: "
                "show a shorter text"
            )
    return TokenChips({name: tuple(tokens) for name, tokens in rows.items()}, caption)


def _row(name: str, tokens: Sequence[str]) -> str:
    label = f'{html.escape(name)} <span style="font-weight:normal">· {_count(tokens)}</span>'
    chips = "".join(_chip(token, _CHIP_COLORS[i % len(_CHIP_COLORS)]) for i, token in enumerate(tokens))
    row = f'<ol role="list" dir="{_direction(tokens)}" style="{_ROW}">{chips}</ol>' if tokens else ""
    return f'<dt style="{_LABEL}">{label}</dt><dd style="margin:0;padding:0">{row}</dd>'


def _chip(token: str, color: str) -> str:
    signs = "".join(
        f'<span role="img" aria-label="{spoken}">{sign}</span>' if spoken else html.escape(sign)
        for sign, spoken in _signs(token)
    )
    return f'<li style="{_CHIP.format(color)}"><bdi>{signs}</bdi></li>'


def _count(tokens: Sequence[str]) -> str:
    return "1 token" if len(tokens) == 1 else f"{len(tokens)} tokens"


def _as_text(tokens: Sequence[str]) -> str:
    return " | ".join("".join(sign for sign, _ in _signs(token)) for token in tokens)


def _signs(token: str) -> Iterator[tuple[str, str]]:
    """Yield the text to draw for each character and, for a stand-in, the name to speak."""
    if not token:
        yield "∅", "empty token"
    for before, character in zip(" " + token, token, strict=False):
        if character in _STAND_INS:
            yield _STAND_INS[character]
        elif _draws_nothing(character, alone=before.isspace()):
            code = f"U+{ord(character):04X}"
            yield f"⟨{code}⟩", unicodedata.name(character, code).lower()
        elif before.isspace() and unicodedata.category(character).startswith("M"):
            yield f"◌{character}", ""  # A combining mark needs a base character.
        else:
            yield character, ""


def _draws_nothing(character: str, alone: bool) -> bool:
    """Return whether a character needs a stand-in; one that modifies its neighbor does only when alone."""
    return alone if _JOINING.match(character) else unicodedata.category(character) in _INVISIBLE


def _direction(tokens: Sequence[str]) -> str:
    """Return the reading direction of a row: the direction of its first character that has one."""
    classes = (unicodedata.bidirectional(character) for character in "".join(tokens))
    return "ltr" if next((kind for kind in classes if kind in ("L", "R", "AL")), "L") == "L" else "rtl"
