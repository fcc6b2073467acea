"""The mechanism of checks: what is printed, what is shown of a reader's error, and what stays as it was."""

import ast
import math
import random
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch
from planted import CHECKED, exercises, judge, starters

from chapters_src.exercises import check, checking
from chapters_src.exercises.checking import (
    Missing,
    Wrong,
    as_choice,
    as_function,
    as_ids,
    as_kind,
    as_number,
    as_numbers,
    compare,
    is_a,
    is_missing,
    sequence_of,
    show,
)
from paths import PACKAGE, ROOT


@pytest.fixture
def register(monkeypatch):
    """Register a check for the time of a test, as number 99.1."""
    monkeypatch.setattr(checking, "_CHECKS", {})
    monkeypatch.setattr(checking.importlib, "import_module", lambda name: None)

    def register(function, takes=""):
        function.__module__ = "chapter_99"
        checking.exercise("99.1", takes)(function)

    return register


# What is printed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("3.9", "There is no such exercise. Chapter 3 has 3.1, 3.2, 3.3, 3.4, 3.5."),
        ("77.1", "Chapter 77 has no checks."),
        (3.1, "number in quotes, as in check(\"3.1\", answer), not 3.1."),
        ("3", "not '3'."),
        ("3.1.2", "not '3.1.2'."),
        (None, "not None."),
    ],
)  # fmt: skip
def test_an_unknown_number_gets_a_sentence(number, message, capsys):
    assert check(number, 5) is None
    assert message in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("answers", "given"), [((), {}), ((1, 2), {}), ((1,), {"tokenizer": 3})])
def test_a_call_that_does_not_fit_says_which_does(answers, given, capsys):
    check("3.1", *answers, **given)
    assert capsys.readouterr().out == '3.1: The call is check("3.1", windows)\n'


def test_long_hints_are_wrapped_and_code_is_not(register, capsys):
    def hint(answer):
        as_function(answer, "answer()")()

    def answer():
        return 1 / 0  # a line that is longer than what fits on the lines of a printed hint, and is kept

    register(hint)
    check("99.1", answer)
    *lines, code = capsys.readouterr().out.splitlines()
    assert (
        " ".join(line.strip() for line in lines)
        == "99.1: not yet. answer() raised ZeroDivisionError: division by zero"
    )
    assert re.fullmatch(r"    line \d+ of your code: return 1 / 0  # a line .* and is kept", code)
    check("99.1", 3)
    check("99.1", "x" * 200)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 90


def test_what_takes_long_is_said_at_the_first_call_too():
    code = "from chapters_src.exercises import check; check('3.5', 1, 2, 3, 4, bpe=[])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("3.5: this takes a few seconds ...\n3.5: not yet. `my_folder` has to be")


def test_what_takes_long_is_said_before_it_begins(register, capsys):
    register(lambda answer: None, takes="a minute")
    check("99.1", None)
    assert "minute" not in capsys.readouterr().out
    check("99.1", 1)
    assert capsys.readouterr().out == "99.1: this takes a minute ...\n99.1: right.\n"


# A reader's error -----------------------------------------------------------------------------------------


def calls(answer):
    return as_function(answer, "answer(ids)")([1, 2])


def test_the_last_line_of_the_reader_is_shown_where_a_library_raises(register):
    def answer(ids):
        return torch.zeros(2) @ torch.zeros(3)

    register(calls)
    verdict = judge("99.1", answer)
    assert verdict.message.startswith("answer([1, 2]) raised RuntimeError: ")
    assert verdict.code.endswith("of your code: return torch.zeros(2) @ torch.zeros(3)")


def test_a_call_that_the_readers_signature_refuses_is_shown(register):
    register(calls)
    verdict = judge("99.1", lambda: 1)
    assert (verdict.kind, verdict.code) == ("raised", "")
    assert "your function([1, 2]) raised TypeError" in verdict.message


def test_a_reader_that_leaves_python_does_not_leave_the_notebook(register):
    register(calls)
    assert judge("99.1", lambda ids: sys.exit(1)).message.startswith(
        "your function([1, 2]) raised SystemExit"
    )


def test_an_endless_recursion_is_an_error_like_others(register):
    def answer(ids):
        return answer(ids)

    register(calls)
    verdict = judge("99.1", answer)
    assert "RecursionError" in verdict.message and verdict.code.endswith("return answer(ids)")


def test_an_interruption_passes(register):
    def answer(ids):
        raise KeyboardInterrupt

    register(calls)
    with pytest.raises(KeyboardInterrupt):
        check("99.1", answer)


def test_an_error_in_a_check_is_a_sentence_too(register):
    register(lambda answer: answer.text)
    assert judge("99.1", 3).kind == "misused"
    assert "AttributeError: 'int' object has no attribute 'text'" in judge("99.1", 3).message


# What stays as it was -------------------------------------------------------------------------------------


def test_the_readers_own_lists_are_not_handed_to_a_function_that_changes_them(register):
    ours = [3, 1, 2]
    register(lambda answer: as_function(answer, "answer(ids)")(ours))
    assert "changes its argument" in judge("99.1", lambda ids: ids.sort() or ids).message
    assert ours == [3, 1, 2]


def test_global_generators_are_not_consumed(register):
    def draws(answer):
        random.random(), np.random.rand(), torch.rand(1)
        raise Wrong("no")

    register(draws)
    seeds = random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = random.random(), np.random.rand(), torch.rand(1)
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(1)
    judge("99.1", 0)
    assert (random.random(), np.random.rand(), torch.rand(1)) == expected, seeds


def test_check_imports_nothing_until_it_is_called():
    code = (
        "import sys; from chapters_src.exercises import check\n"
        "print(sorted({'numpy', 'torch'} & set(sys.modules)),"
        " [name for name in sys.modules if '.chapter_' in name])\n"
        "check('13.1', 0.5)\n"
        "print([name for name in sys.modules if '.chapter_' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    before, said, after = done.stdout.splitlines()
    assert before == "[] []"
    assert said == "13.1: right. It is the same whatever the other tokens are."
    assert after == "['chapters_src.exercises.chapter_13']"


# What checks are written with -----------------------------------------------------------------------------


def with_docstring(a):
    """Return it."""
    ...


def with_pass(a, *, b=1):
    pass


def gives_its_input(a):
    return a


def a_generator(a):
    yield


EMPTY = [None, ..., with_docstring, with_pass, lambda a: None, {"a": None, "b": ...}, [None], (with_pass,)]
FULL = [0, "", [], {}, False, {"a": None, "b": 0}, gives_its_input, a_generator, print, int, lambda a: 0, [0]]


@pytest.mark.parametrize("answer", EMPTY)
def test_what_the_starter_has_is_missing(answer):
    assert is_missing(answer)


@pytest.mark.parametrize("answer", FULL)
def test_what_somebody_wrote_is_not(answer):
    assert not is_missing(answer)


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float32(2), np.int64(2), torch.tensor(2), np.array(2.0)], ids=repr
)
def test_numbers_of_all_libraries_are_numbers(value):
    assert as_number(value, "x") == 2


@pytest.mark.parametrize("value", [True, "2", [2], float("nan"), torch.tensor([2.0, 1.0]), object(), 1j])
def test_other_things_are_no_numbers(value):
    with pytest.raises(Wrong, match=r"`x` has to be a number, not "):
        as_number(value, "x")


@pytest.mark.parametrize("value", [[1, 2], (1, 2), np.array([1, 2]), torch.tensor([1, 2])], ids=repr)
def test_ids_of_all_libraries_are_ids(value):
    assert as_ids(value, "x") == [1, 2]


@pytest.mark.parametrize("value", [1, "12", [1.0], [[1]], [True], torch.tensor([[1]]), None], ids=repr)
def test_other_things_are_no_ids(value):
    with pytest.raises(Wrong, match=r"x gives .*; wanted a list of ids"):
        as_ids(value, "x")


OTHER_KINDS = [
    (lambda: as_kind(1, "x", str, "a text"), "`x` has to be a text, not 1."),
    (lambda: as_choice("c", "x", ["a", "b"]), "`x` has to be one of 'a', 'b', not 'c'."),
    (lambda: as_numbers([1], "x", 2), "`x` has to be 2 numbers, not [1]."),
    (lambda: as_function(len, "f(a)").gives(str, "a text", [1]), "len([1]) gives 1; wanted a text."),
    (lambda: as_function(np.ones, "f(a)").tensor((3,), 2), "wanted a tensor of shape (3,)."),
]


@pytest.mark.parametrize(("ask", "hint"), OTHER_KINDS, ids=[hint for _, hint in OTHER_KINDS])
def test_an_answer_of_another_kind_is_told_what_is_wanted(ask, hint):
    with pytest.raises(Wrong, match=re.escape(hint)):
        ask()


def test_the_first_slip_that_gives_the_same_names_the_hint():
    slips = {"one": 1.0, "a few": lambda found: found < 9, "two": 2.0}
    for found, hint in ((1.001, "at: one"), (2.0, "at: a few"), (10.0, "at: other"), (math.nan, "at: other")):
        with pytest.raises(Wrong, match=f"^{hint}$"):
            compare(found, 5.0, slips, "other", start="at: ", within=0.01)
    compare(torch.tensor([5.0, 100.0]), (5, 101), slips, "other", relative=0.01)
    with pytest.raises(Wrong, match="other"):
        compare([5.0, 5.0], [5.0], {}, "other", within=1)


@pytest.mark.parametrize(
    ("value", "is_pair"),
    [(["a", "b"], True), (np.array(["a", "b"]), True), ("ab", False), (["a"], False), (["a", 1], False)],
)
def test_a_kind_is_a_type_or_a_function(value, is_pair):
    assert is_a(value, sequence_of(str, 2)) is is_pair
    assert is_a(value, str) is isinstance(value, str)


@pytest.mark.parametrize("given", [torch.zeros(2), np.zeros(2), [0, 0]])
def test_a_function_that_changes_what_it_gets_is_refused(given):
    def change(values):
        values[0] = 1
        return values

    with pytest.raises(Wrong, match="changes its argument"):
        as_function(change, "change(values)")(given)
    assert list(given) == [0, 0]


def test_a_function_is_wanted_and_not_its_result():
    with pytest.raises(Missing, match="`f`"):
        as_function(None, "f(a)")
    with pytest.raises(Wrong, match=r"Wanted a function, f\(a\), not 3"):
        as_function(3, "f(a)")
    with pytest.raises(Wrong, match="Does it end with a `return`"):
        as_function(lambda a: None if a else 1, "f(a)")(1)
    assert as_function(lambda a: None if a else 1, "f(a)", may_give_none=True)(1) is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.23456, "1.235"),
        (np.float64(2), "2"),
        (torch.zeros(2, 3), "a Tensor of shape (2, 3)"),
        ([torch.zeros(2), 0.12345, None], "[a Tensor of shape (2,), 0.1235, None]"),
        (random.Random(0), "a Random"),
        ({1: object()}, "{1: an object}"),
        (gives_its_input, "the function gives_its_input"),
        (True, "True"),
        (range(3), "range(0, 3)"),
        (Counter("ab"), "a Counter"),
        (torch.zeros(2, 3).max(dim=1), "a max"),
        ([Counter("ab"), {1, 2}, (), False], "[a Counter, {1, 2}, (), False]"),
    ],
)
def test_values_are_shown_in_a_few_words(value, shown):
    assert show(value) == shown


def test_long_values_are_cut():
    for value in ("x" * 1000, list(range(1000)), [["x" * 1000] * 100] * 100, {i: i for i in range(1000)}):
        assert len(show(value)) < 400


def test_a_number_has_one_check_in_the_module_of_its_chapter(register):
    register(lambda answer: None)
    with pytest.raises(ValueError, match="has a check already"):
        register(lambda answer: None)
    with pytest.raises(ValueError, match="is not chapter_07"):
        checking.exercise("7.1")(lambda answer: None)


def test_every_check_is_finished():
    for path in (PACKAGE / "exercises").glob("*.py"):
        assert "TBD" not in path.read_text(encoding="utf-8"), path.name


# Notebooks and checks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", CHECKED)
def test_starters_call_the_checks_that_there_are(chapter):
    """With the names of its parameters; what a chapter has under another name may be handed over by it."""
    found = exercises()
    own = [number for number in found if int(number.split(".")[0]) == chapter]
    assert list(starters(chapter)) == own, "every exercise has a check, and the other way around"
    for number, starter in starters(chapter).items():
        call = ast.parse(starter).body[-1].value
        call.keywords = [ast.keyword(word.arg, ast.Name(word.arg)) for word in call.keywords]
        assert ast.unparse(call).replace("'", '"') == found[number].usage()
