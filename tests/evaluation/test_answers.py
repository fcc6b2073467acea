"""Exact match and token F1: cases worked out by hand."""

import pandas as pd
import pytest

from chapters_src.evaluation import answer_scores, answer_tokens, exact_match, token_f1


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        ("The U.S., a state", ["us", "state"]),
        ("an apple  a day\n", ["apple", "day"]),
        ("another theme than Anna's", ["another", "theme", "than", "annas"]),  # no article within a word
        ("state-of-the-art", ["stateoftheart"]),  # punctuation goes first, and leaves no space
        ("£2,500.50", ["£250050"]),  # only ASCII punctuation goes
        ("the", []),
        ("?!", []),
    ],
)
def test_words_that_count(answer, tokens):
    assert answer_tokens(answer) == tokens


@pytest.mark.parametrize(
    ("prediction", "reference", "exact", "f1"),
    [
        ("Eiffel Tower", "the Eiffel tower.", 1, 1),
        ("tower Eiffel", "Eiffel tower", 0, 1),  # F1 does not see the order
        ("in the year 1889", "1889", 0, 2 * (1 / 3) * 1 / (1 / 3 + 1)),  # 1 of 3 words, and 1 of 1
        ("four or five", "five or six", 0, 2 / 3),
        ("no no no", "no", 0, 2 * (1 / 3) * 1 / (1 / 3 + 1)),  # a word counts as often as it is in both
        ("1888", "1889", 0, 0),
        ("", "1889", 0, 0),
        ("1889", "", 0, 0),
        ("", "", 1, 1),  # rightly no answer
        ("the", "", 1, 1),
    ],
)
def test_worked_out_by_hand(prediction, reference, exact, f1):
    assert exact_match(prediction, reference) == exact
    assert token_f1(prediction, reference) == pytest.approx(f1)


def test_the_best_of_several_references_counts_for_each_score_by_itself():
    table = answer_scores(["in 1889", "nobody"], [["1889", "March 1889"], ["", "anybody"]])
    expected = pd.DataFrame({"exact_match": [0.0, 0.0], "f1": [2 / 3, 0.0]})
    pd.testing.assert_frame_equal(table, expected)
    assert answer_scores(["1889"], [["March 1889", "1889"]]).loc[0].tolist() == [1, 1]


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(TypeError, match="list of texts"):
        answer_scores("1889", ["1889"])
    with pytest.raises(ValueError, match="1 predictions and 2 references"):
        answer_scores(["1889"], ["1889", "1890"])
