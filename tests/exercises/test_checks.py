"""Every check of every chapter: the solution passes, the starter does not, each error gets its hint."""

import importlib
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from planted import CHECKED, PLANTED, Planted, exercises, judge, starters

from chapters_src.exercises import check

EXERCISES = exercises()
every_exercise = pytest.mark.parametrize("number", EXERCISES)


@pytest.fixture(scope="module")
def cases() -> dict[str, Planted]:
    for chapter in CHECKED:
        if (Path(__file__).parent / f"planted_{chapter:02}.py").exists():  # else `case` says what is missing
            importlib.import_module(f"planted_{chapter:02}")
    return {number: make() for number, make in PLANTED.items()}


@pytest.fixture
def case(number, cases) -> Planted:
    file = f"tests/exercises/planted_{int(number.split('.')[0]):02}.py"
    assert number in cases, f'no planted answers: write @planted("{number}") in {file}, as in its neighbors'
    return cases[number]


@pytest.fixture(autouse=True)
def nothing_drawn():
    """The global generators are as they were, whatever a check draws."""
    before = random.getstate(), np.random.get_state(), torch.get_rng_state(), torch.is_grad_enabled()
    yield
    assert random.getstate() == before[0]
    np.testing.assert_equal(np.random.get_state(), before[1])
    assert torch.equal(torch.get_rng_state(), before[2])
    assert torch.is_grad_enabled() == before[3]


@every_exercise
def test_the_solution_is_right(number, case):
    for answers in (case.right, *case.also_right):
        verdict = judge(number, *answers, **case.given)
        assert verdict.kind == "right", verdict.message
        assert verdict.message.endswith((".", "?"))


@every_exercise
def test_the_starter_is_no_answer(number, case, capsys):
    starter = starters(int(number.split(".")[0]))[number]
    exec(compile(starter, number, "exec"), {"check": check, **case.given, **renamed(starter, case.given)})
    assert capsys.readouterr().out == f"{number}: nothing to check yet\n"


def renamed(starter: str, given: dict) -> dict:
    """What a starter hands over under another name, such as `prose=held_out`."""
    return {
        variable: given[name] for name, variable in re.findall(r"\b(\w+)=(\w+)", starter) if name in given
    }


@every_exercise
def test_planted_errors_get_their_own_hints(number, case):
    assert len(case.wrong) >= 2
    hints = set()
    for words, answers in case.wrong.items():
        verdict = judge(number, *answers, **case.given)
        assert verdict.kind in ("wrong", "raised"), (words, verdict)
        assert words.lower() in verdict.message.lower(), (words, verdict.message)
        assert re.search(r"0x[0-9a-f]{6}", verdict.message) is None, "the address of an object helps nobody"
        hints.add(verdict.message)
    assert len(hints) == len(case.wrong)


@every_exercise
def test_no_hint_gives_the_answer_away(number, case):
    for answers in case.wrong.values():
        message = judge(number, *answers, **case.given).message
        told = [
            secret for secret in case.secrets if re.search(rf"(?<![\w.]){re.escape(secret)}(?![\w])", message)
        ]
        assert told == [], message
    assert case.secrets


def boom(*inputs):
    raise RuntimeError("boom")


class Broken:
    """What it is asked for raises."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise RuntimeError("repr")


JUNK = [0, -1.5, float("nan"), True, "text", b"x", [], {}, {"a": 1}, [None, 1], print, int]
JUNK += [object(), Broken(), Broken, torch.zeros(2), np.ones(3)]
JUNK += [lambda: 1, lambda *inputs: object(), lambda *inputs: [], boom]


@every_exercise
@pytest.mark.parametrize("place", range(4))
def test_whatever_an_answer_is_nothing_is_raised(number, case, place):
    """Each answer in turn is exchanged, beside others that are right."""
    if place >= len(case.right):
        return
    for junk in JUNK:
        answers = [*case.right[:place], junk, *case.right[place + 1 :]]
        assert judge(number, *answers, **case.given).kind != "right", junk


@every_exercise
def test_an_error_of_the_reader_is_shown_with_its_line(number, case):
    for place, right in enumerate(case.right):
        if callable(right) and not hasattr(right, "encode") and not isinstance(right, torch.nn.Module):
            answers = [*case.right[:place], boom, *case.right[place + 1 :]]
            verdict = judge(number, *answers, **case.given)
            assert verdict.kind == "raised"
            assert re.search(r"^boom\(.*\) raised RuntimeError: boom", verdict.message)
            assert verdict.code.endswith('of your code: raise RuntimeError("boom")')


@every_exercise
def test_an_answer_that_is_still_missing_is_named(number, case):
    for place in range(1, len(case.right)):
        answers = [*case.right[:place], None, *case.right[place + 1 :]]
        verdict = judge(number, *answers, **case.given)
        assert verdict.kind == "missing" and "is still missing. Nothing is wrong so far." in verdict.message


@every_exercise
def test_what_is_checked_stays_as_it_was(number, case):
    """Twice the same verdict, also from what a first check has gone through."""
    answers = next(iter(case.wrong.values()))
    assert judge(number, *answers, **case.given) == judge(number, *answers, **case.given)
