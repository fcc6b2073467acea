"""Align the columns of data frames, words left, numbers right; mark words that are too long for a line."""

import re
from itertools import zip_longest

TABLE = re.compile(r'<table\b[^>]*class="[^"]*\bdataframe\b.*?</table>', re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL = re.compile(r"<(td|th)\b([^>]*)>(.*?)</\1>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
ENDLESS = re.compile(r"\S{30}")  # may break anywhere, or one cell makes the table wider than the page
WORD = re.compile(r"[^\W\d_]{3,}")  # "12 %", "3 kB" and "1e-05" have none.
NO_WORDS = {"nan", "NaN", "inf", "-inf", "None", "NaT"}


def align_words(page: str) -> str:
    """Add the class "words" to the cells and the title of each column of words, "endless" to endless words.

    Args:
        page: HTML. The last cells of a row are data; the cells before them are the index.
    """
    return TABLE.sub(_aligned, page)


def _aligned(table: re.Match) -> str:
    rows = [CELL.findall(row) for row in ROW.findall(table[0])]
    data = [[content for name, _, content in reversed(row) if name == "td"] for row in rows]
    by_column = [list(filter(None, column)) for column in zip_longest(*data)]  # The last one first.
    of_words = {i for i, column in enumerate(by_column) if any(map(_has_words, column))}

    def marked(row: re.Match) -> str:
        cells = CELL.findall(row[0])
        if any("colspan=" in attributes for _, attributes, _ in cells):
            return row[0]
        numbers = iter(reversed(range(len(cells))))  # As the columns are counted.

        def cell(match: re.Match) -> str:
            name, attributes, content = match.groups()
            if next(numbers) not in of_words:
                return match[0]
            marks = "words endless" if ENDLESS.search(TAG.sub("", content)) else "words"
            return f'<{name} class="{marks}"{attributes}>{content}</{name}>'

        return CELL.sub(cell, row[0])

    return ROW.sub(marked, table[0]) if of_words else table[0]


def _has_words(content: str) -> bool:
    text = TAG.sub("", content).strip()
    return text not in NO_WORDS and bool(WORD.search(text))
