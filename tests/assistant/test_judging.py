"""The rules of chapter 16 on answers and replies whose verdict is known."""

import pytest

from chapters_src.assistant import (
    REFUSAL,
    addressee,
    blinded,
    findings,
    holds,
    is_refusal,
    outcome,
    promises,
    wins_of_first,
)

REPORT = """Dear team, since I upgraded to version 2.14 on Tuesday, the window of plot_tides is empty. My name
is Ada Okafor. With version 2.1 all 40 stations were drawn. My colleague Lars Bakken says that it ignores the
time zone. You promised a fix by March. Please answer before Friday."""
REPORT = REPORT.replace("\n", " ")


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("Lars Bakken", "Lars Bakken.", "right"),
        ("the window", "Window", "right"),
        ("The passage does not say.", REFUSAL, "right"),
        ("the passage doesn't say", REFUSAL, "invented"),  # Only the words of the refusal are one.
        (REFUSAL, "40", "refused"),
        ("Ada Okafor.", "Lars Bakken", "wrong"),
        ("Ada Bakken", "Lars Bakken", "invented"),
        ("", "40", "invented"),
        ("the stat", "40", "invented"),  # No part of a word.
    ],
)
def test_what_became_of_a_question(answer, reference, expected):
    assert outcome(answer, reference, REPORT) == expected


def test_code_is_compared_to_the_letter():
    passage = "`axis` : int, default: -1"
    assert outcome("`-1`", "`-1`", passage, to_the_letter=True) == "right"
    assert outcome("1", "`-1`", passage, to_the_letter=True) == "wrong"
    assert outcome("1", "`-1`", passage) == "right", "words alone know no minus"


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("`torchbearer check` prints the settings.", "`torchbearer check`", True),
        ("It is the window, of course.", "The window.", True),
        ("Windows", "window", False),
        ("check torchbearer", "torchbearer check", False),
        ("Anything", "", False),
    ],
)
def test_a_longer_answer_may_hold_the_right_one(answer, reference, expected):
    assert holds(answer, reference) == expected


def test_refusals():
    assert is_refusal("the passage does not say") and not is_refusal("The passage does not say. 3.1")


@pytest.mark.parametrize(
    ("reply", "name"),
    [
        ("Dear Ada Okafor, thank you.", "Ada Okafor"),
        ("Dear Dr. Ada Okafor, thank you.", "Dr. Ada Okafor"),
        ("Dear A. Okafor, thank you.", "A. Okafor"),
        ("Dear Ada. Thank you, Lars.", "Ada"),
        ("Hello Ada!\nYes.", "Ada"),
        ("Thank you, Ada.", ""),
    ],
)
def test_whom_a_reply_greets(reply, name):
    assert addressee(reply) == name


@pytest.mark.parametrize(
    ("sentence", "is_promise"),
    [
        ("We will fix it before Friday.", True),
        ("I'll send you a patch tomorrow.", True),
        ("The fix will be in version 2.15.", True),
        ("A new release will appear next week.", True),
        ("We are going to mend this within two days.", True),
        ("We will look into it.", False),  # No time.
        ("Thank you for writing on Friday.", False),  # No future.
        ("Please go back to version 2.1 until Friday.", False),  # Advice.
        ("You will see it on Friday.", False),  # Nobody of us does anything.
        ("Could you tell us by Friday what you use?", False),
    ],
)
def test_promises_are_sentences_that_say_what_happens_and_when(sentence, is_promise):
    reply = f"Dear Ada Okafor, thank you. {sentence} Goodbye."
    assert [reply[start:end] for start, end in promises(reply)] == [sentence] * is_promise


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Dear Ada Okafor, hello.", [("name", "Ada Okafor", True)]),
        ("Dear Idris Boakye, hello.", [("name", "Idris Boakye", False)]),
        ("Ask Lars Bakken.", [("name", "Lars Bakken", True)]),
        ("Lars Bakken is right.", [("name", "Lars Bakken", True)]),
        ("I thank Lars Bakken's team.", [("name", "Lars Bakken", True)]),
        ("Please use version 2.1.", [("version", "2.1", True)]),
        ("Please use version 2.14.", [("version", "2.14", True)]),
        ("Please use version 2.4.", [("version", "2.4", False)]),  # Not in 2.14.
        ("Please use version 2.", [("number", "2", False)]),
        ("All 40 are there.", [("number", "40", True)]),
        ("All 4 are there.", [("number", "4", False)]),
        ("Set `plot_tides` or plot_tide.", [("code", "`plot_tides`", True), ("code", "plot_tide", False)]),
        ("Call `draw`.", [("code", "`draw`", False)]),
        ("I hope for Tuesday.", [("day", "Tuesday", True)]),
        ("I hope for Monday.", [("day", "Monday", False)]),
        ("We will fix it before Friday.", [("promise", "We will fix it before Friday.", False)]),
        ("We will fix it in March.", [("promise", "We will fix it in March.", True)]),  # It was promised.
        ("The window is empty.", []),
    ],
)
def test_findings(reply, expected):
    assert [(one.kind, one.text, one.supported) for one in findings(reply, REPORT)] == expected


def test_places_are_those_of_the_reply():
    reply = "Dear Ada Okafor, thank you. We will fix it before Friday. Until then use version 2.1."
    found = findings(reply, REPORT)
    assert [one.kind for one in found] == ["name", "promise", "version"]
    assert all(reply[one.start : one.end] == one.text for one in found)


def test_rules_read_texts_with_any_white_space():
    reply = "Dear Ada Okafor,\n\nthank you.\n  We will fix\tit before  Friday.\nYours, Bo\n"
    assert [reply[start:end] for start, end in promises(reply)] == ["We will fix\tit before  Friday."]
    assert [one.kind for one in findings(reply, REPORT)] == ["name", "promise", "name"]


def test_blind_pairs_hide_who_wrote_what_and_the_key_opens_them():
    first, second = [f"first {i}" for i in range(40)], [f"second {i}" for i in range(40)]
    pairs = blinded(first, second, seed=3)
    assert pairs == blinded(first, second, seed=3) != blinded(first, second, seed=4)
    assert 10 < sum(pair.first_is_a for pair in pairs) < 30
    for pair, one, other in zip(pairs, first, second, strict=True):
        assert ((pair.a, pair.b) == (one, other)) == pair.first_is_a and {pair.a, pair.b} == {one, other}
    votes = ["A" if pair.a.startswith("first") else "B" for pair in pairs]
    assert wins_of_first(pairs, votes) == [1.0] * 40
    assert wins_of_first(pairs[:2], ["=", "="]) == [0.5, 0.5]
    assert sum(wins_of_first(pairs, ["A"] * 40)) == sum(pair.first_is_a for pair in pairs)
    with pytest.raises(ValueError, match="for each of the 40 pairs"):
        wins_of_first(pairs, ["A"])
    with pytest.raises(ValueError, match="3 and 40 answers"):
        blinded(first[:3], second, seed=0)
