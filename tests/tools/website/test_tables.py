"""Columns of words begin at the left, numbers end at the right."""

import re

import numpy as np
import pandas as pd

from website import tables


def marked(frame: pd.DataFrame) -> list[str]:
    """What stands in the cells that are marked."""
    return re.findall(r'<t[dh] class="words"[^>]*>(.*?)</t[dh]>', tables.align_words(frame.to_html()))


def test_a_column_of_words_is_marked_with_its_title_and_no_other():
    frame = pd.DataFrame(
        {"share": ["12 %", "3 kB"], "guess": ["dog", "4"], "n": [1.5, np.nan]}, ["tree", "node"]
    )
    assert marked(frame) == ["guess", "dog", "4"]


def test_columns_are_found_behind_an_index_of_several_levels():
    index = pd.MultiIndex.from_product([["axis", "tree"], ["numpy", "torch"]], names=["word", "library"])
    frame = pd.DataFrame({"words": ["above", "below", "left", "right"], "count": range(4)}, index)
    assert marked(frame) == ["words", "", "above", "below", "left", "right"]


def test_numbers_alone_and_other_tables_stay_as_they_are():
    numbers = pd.DataFrame(np.eye(3), list("abc")).to_html(na_rep="nan")
    other = "<table><tr><td>some words</td></tr></table>"
    assert tables.align_words(numbers + other) == numbers + other


def test_titles_over_several_columns_are_left_alone():
    columns = pd.MultiIndex.from_product([["before", "after"], ["guess", "score"]])
    frame = pd.DataFrame([["dog", 1, "cat", 2]], columns=columns)
    assert marked(frame) == ["guess", "guess", "dog", "cat"]


def test_a_word_without_an_end_may_break_and_others_may_not():
    frame = pd.DataFrame({"written": ["round and " * 8, "round" * 6, "<b>" + "r" * 29 + "</b>"]})
    page = tables.align_words(frame.to_html(escape=False))
    assert re.findall(r'<td class="words endless">(\w+)</td>', page) == ["round" * 6]
    assert page.count('"words"') == 3  # the title and the other two
