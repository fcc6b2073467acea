"""How an answer is checked: `check` for readers, and what the checks of a chapter are written with.

A check is a function with the decorator `exercise`. It sees that the reader's answers are of the right kind
(`as_number`, `as_kind`, `as_function`), compares them with an oracle and with what the usual slips give
(`compare`, `check_number`), and raises `Wrong` with a hint where they differ; what it returns is said of a
right answer. It calls the reader's functions as `as_function` gives them to it: a bug in them is shown, with
the line and the input that caused it, and never stops the notebook. Random generators and inputs stay as they
were.
"""

import copy
import dis
import importlib
import inspect
import linecache
import math
import random
import re
import reprlib
import sys
import sysconfig
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from types import UnionType
from typing import Any

Kind = type | UnionType | Callable[[Any], bool]  # What `is_a` compares with.

_CHECKS: dict[str, "Exercise"] = {}
_WIDTH = 84  # characters of a printed line
_LONGEST = 160  # characters of a value that is shown
_AS_WRITTEN = {"break_long_words": False, "break_on_hyphens": False}
_NOT_THE_READERS = tuple(
    [str(Path(__file__).parents[1]), "<frozen"]
    + [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
)
_EMPTY = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}  # all that `...` is compiled to


class Wrong(Exception):
    """An answer is not right; the message is the hint that the reader gets."""


class Missing(Exception):
    """There is no answer yet; the message names it."""


@dataclass(frozen=True)
class Verdict:
    """What a check says about an answer.

    It is "right", "wrong", "raised" (by the reader's code), "missing", or "misused" (no check was made).
    """

    kind: str
    message: str
    code: str = ""  # The reader's line that raised, with its number.


@dataclass(frozen=True)
class Exercise:
    """A check, and what is known of it."""

    number: str
    check: Callable[..., str | None]
    takes: str  # How long, if more than a second.

    def judge(self, answers: Sequence[object], given: Mapping[str, object]) -> Verdict:
        """Return what `check` prints. Nothing that an answer does raises an exception here."""
        try:
            inspect.signature(self.check).bind(*answers, **given)
        except TypeError:
            return Verdict("misused", f"The call is {self.usage()}")
        try:
            with _untouched():
                remark = self.check(*answers, **given)
        except Missing as missing:
            if all(map(is_missing, answers)):
                return Verdict("missing", "nothing to check yet")
            return Verdict("missing", f"{missing} is still missing. Nothing is wrong so far.")
        except _Raised as raised:
            return Verdict("raised", str(raised), raised.code)
        except Wrong as wrong:
            return Verdict("wrong", str(wrong))
        except (Exception, SystemExit) as error:  # An object that is not what it seems to be.
            asked = "Is each argument what its name says?"
            said = f"This could not be checked ({_describe(error)}). {asked} The call is {self.usage()}"
            return Verdict("misused", said)
        return Verdict("right", remark or "")

    def usage(self) -> str:
        """Write the call as it stands in the starter."""
        parameters = inspect.signature(self.check).parameters.values()
        names = (f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name for p in parameters)
        return f'check("{self.number}", {", ".join(names)})'


def check(number: str, *answers: object, **given: object) -> None:
    """Print whether the answer to an exercise, such as "3.1", is right, or what is wrong with it.

    The answers are values or functions. `given` is what the chapter has loaded and the check needs, such as a
    tokenizer.
    """
    try:
        known = find(number)
    except LookupError as error:
        verdict = Verdict("misused", error.args[0])
    else:
        if known.takes and not all(map(is_missing, answers)):
            print(f"{number}: this takes {known.takes} ...", flush=True)
        verdict = known.judge(answers, given)
    starts = {"right": "right. ", "wrong": "not yet. ", "raised": "not yet. "}
    text = f"{number}: {starts.get(verdict.kind, '')}{verdict.message}".strip()
    print(textwrap.fill(text, _WIDTH, subsequent_indent="    ", **_AS_WRITTEN))
    if verdict.code:
        print(f"    {verdict.code}")


def find(number: str) -> Exercise:
    """Find the check of an exercise, or raise a LookupError that says which there are."""
    if not isinstance(number, str) or not re.fullmatch(r"\d{1,2}\.\d{1,2}", number):
        raise LookupError(
            f'Exercises are named by their number in quotes, as in check("3.1", answer), not {show(number)}.'
        )
    chapter = int(number.split(".")[0])
    module = f"{__package__}.chapter_{chapter:02}"
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise LookupError(f"Chapter {chapter} has no checks.") from None
    if number not in _CHECKS:
        there = [name for name in _CHECKS if int(name.split(".")[0]) == chapter]
        raise LookupError(f"There is no such exercise. Chapter {chapter} has {', '.join(there)}.")
    return _CHECKS[number]


def exercise(number: str, takes: str = "") -> Callable[[Callable], Callable]:
    """Register a check; `takes` says how long it runs where that is more than a second: "a few seconds".

    What is decorated takes the reader's answers (its positional parameters, named as in the starter) and what
    the chapter hands over (keyword-only), and raises `Wrong` with a hint. It returns what is said of a right
    answer, or None.
    """

    def register(check: Callable) -> Callable:
        own = f"chapter_{int(number.split('.')[0]):02}"
        if number in _CHECKS or check.__module__.split(".")[-1] != own:
            raise ValueError(f"exercise {number} has a check already, or {check.__module__} is not {own}")
        _CHECKS[number] = Exercise(number, check, takes)
        return check

    return register


# What checks are written with ------------------------------------------------------------------------------


def is_missing(answer: object) -> bool:
    """Say whether an answer is still what the starter has: None, `...`, or a function without a body."""
    if isinstance(answer, dict | list | tuple) and answer:
        return all(map(is_missing, answer.values() if isinstance(answer, dict) else answer))
    if answer is None or answer is ...:
        return True
    if not inspect.isfunction(answer) or answer.__code__.co_flags & inspect.CO_GENERATOR:
        return False
    steps = list(dis.get_instructions(answer))
    consts = [step.argval for step in steps if step.opname in ("LOAD_CONST", "RETURN_CONST")]
    return all(step.opname in _EMPTY for step in steps) and consts == [None]


def required(answer: Any, name: str) -> Any:
    """Return an answer, or raise `Missing` with its name in the starter."""
    if is_missing(answer):
        raise Missing(f"`{name}`")
    return answer


def is_a(value: object, kind: Kind) -> bool:
    """Say whether a value is of a type, or a function accepts it."""
    return isinstance(value, kind) if isinstance(kind, type | UnionType) else bool(kind(value))


def is_text(value: object) -> bool:
    """Say whether a value is a string, and not blank."""
    return isinstance(value, str) and bool(value.strip())


def sequence_of(kind: Kind = object, length: int | None = None) -> Callable[[object], bool]:
    """Make a kind: lists, tuples or arrays whose elements are of a kind, and as many as said."""

    def accepts(value: Any) -> bool:
        plain = value.tolist() if hasattr(value, "tolist") else value
        is_sequence = isinstance(plain, list | tuple) and length in (None, len(plain))
        return is_sequence and all(is_a(each, kind) for each in plain)

    return accepts


def mapping_with(keys: Sequence[object]) -> Callable[[object], bool]:
    """Make a kind: mappings with these keys and no others."""
    return lambda value: isinstance(value, Mapping) and set(value) == set(keys)


def mapping_of(keys: Kind, values: Kind) -> Callable[[object], bool]:
    """Make a kind: dictionaries whose keys and values are of a kind each."""
    return lambda value: (
        isinstance(value, dict) and all(is_a(key, keys) and is_a(each, values) for key, each in value.items())
    )


def as_kind(answer: object, name: str, kind: Kind, wanted: str) -> Any:
    """Take an answer of a kind, which `wanted` says in words, such as "a list of two strings".

    `name` is what the answer is called in the starter. `kind` is a type, or a function that says whether it
    accepts a value, such as `sequence_of(str, 2)`.

    Raises:
        Missing: there is none yet.
        Wrong: it is something else.
    """
    if not is_a(required(answer, name), kind):
        raise Wrong(f"`{name}` has to be {wanted}, not {show(answer)}.")
    return answer


def as_choice(answer: object, name: str, choices: Sequence[str]) -> str:
    """Take an answer that has to be one of some strings."""
    wanted = f"one of {', '.join(map(repr, choices))}"
    return as_kind(answer, name, lambda value: isinstance(value, str) and value in choices, wanted)


def as_function(answer: Any, usage: str, *, may_give_none: bool = False) -> "Asked":
    """Take an answer that has to be a function; `usage` is its call, such as "likeness(a, b)".

    With `may_give_none`, None is a result like others, not a forgotten `return`.
    """
    if not callable(required(answer, usage.split("(")[0])):
        raise Wrong(f"Wanted a function, {usage}, not {show(answer)}. Pass it without calling it.")
    return Asked(answer, may_give_none)


def as_number(answer: Any, name: str) -> float:
    """Take an answer that has to be a number of Python or NumPy, or a tensor without dimensions."""
    required(answer, name)
    plain = answer.item() if getattr(answer, "shape", None) == () else answer
    if isinstance(plain, bool) or not isinstance(plain, Real) or math.isnan(plain):
        raise Wrong(f"`{name}` has to be a number, not {show(answer)}.")
    return float(plain)


def as_numbers(answer: Any, name: str, count: int) -> list[float]:
    """Take an answer that has to be a list, a tuple, an array or a tensor of so many numbers."""
    as_kind(answer, name, sequence_of(length=count), f"{count} numbers")
    return [as_number(number, name) for number in answer]


def as_ids(value: Any, name: str) -> list[int]:
    """Take a value that has to be the ids of one sequence: a list, a tuple, an array or a tensor."""
    if not sequence_of(lambda each: type(each) is int)(value):
        raise Wrong(f"{name} gives {show(value)}; wanted a list of ids, which are whole numbers.")
    return list(value.tolist() if hasattr(value, "tolist") else value)


def is_near(found: Any, other: Any, within: float = 0.0, relative: float = 0.0) -> bool:
    """Compare two numbers, or the numbers of two lists, arrays or tensors, which need the same shape.

    They may be apart by `within`, and besides by `relative` as a part of the other.
    """
    import numpy as np  # Here, because `check` in a first cell imports nothing.

    plain = (each.detach().cpu() if hasattr(each, "detach") else each for each in (found, other))
    a, b = (np.asarray(each, dtype=float) for each in plain)
    return a.shape == b.shape and bool((abs(a - b) <= within + relative * abs(b)).all())


def compare(
    found: Any, right: Any, slips: Mapping[str, Any], otherwise: str, *, start: str = "", **near: float
) -> None:
    """Refuse what is not right, with the hint of the first slip that gives the same, else with `otherwise`.

    Numbers, lists, arrays and tensors are compared by `is_near`, with `near`. `slips` are from a hint to what
    the slip gives, or to a function that knows the slip by what was found. Each hint begins with `start`.
    """
    if is_near(found, right, **near):
        return
    for hint, slip in slips.items():
        if slip(found) if callable(slip) else is_near(found, slip, **near):
            raise Wrong(start + hint)
    raise Wrong(start + otherwise)


def check_number(
    answer: Any, name: str, right: float, slips: Mapping[str, Any], otherwise: str, **near: float
) -> float:
    """Take a number and `compare` it; each hint begins with its name and value."""
    found = as_number(answer, name)
    compare(found, right, slips, otherwise, start=f"`{name}` is {show(answer)}. ", **near)
    return found


class Asked:
    """A reader's function. It gets copies, and what it raises becomes a hint."""

    def __init__(self, answer: Callable, may_give_none: bool = False) -> None:
        self._function, self._may_give_none = answer, may_give_none
        name = getattr(answer, "__name__", "")
        self.name = name if name.isidentifier() else "your function"  # A lambda's is "<lambda>".

    def __call__(self, *inputs: object) -> Any:
        """Call it, and return what it returns.

        Raises:
            Wrong: it raises, changes one of its arguments, or gives None where a result is wanted.
        """
        copies = [_copied(each) for each in inputs]
        try:
            result = self._function(*copies)
        except (Exception, SystemExit) as error:
            raise _Raised(f"{self.called(*inputs)} raised {_describe(error)}", _line(error)) from None
        if any(map(_differ, inputs, copies)):
            raise Wrong(f"{self.called(*inputs)} changes its argument, which the caller still needs.")
        if result is None and not self._may_give_none:
            raise Wrong(f"{self.called(*inputs)} gives None. Does it end with a `return`?")
        return result

    def gives(self, kind: Kind, wanted: str, *inputs: object) -> Any:
        """Call it for a result of a kind; `wanted` is the kind in words."""
        found = self(*inputs)
        if not is_a(found, kind):
            raise Wrong(f"{self.called(*inputs)} gives {show(found)}; wanted {wanted}.")
        return found

    def tensor(self, shape: Sequence[int], *inputs: object) -> Any:
        """Call it for a tensor of this shape; an array will do."""
        import torch

        def accepts(found: Any) -> bool:
            return hasattr(found, "shape") and tuple(found.shape) == tuple(shape)

        return torch.as_tensor(self.gives(accepts, f"a tensor of shape {tuple(shape)}", *inputs)).detach()

    def number(self, *inputs: object) -> float:
        """Call it for a number."""
        return as_number(self(*inputs), self.called(*inputs))

    def called(self, *inputs: object) -> str:
        """Write a call of it, such as "likeness([1], [2])"."""
        return f"{self.name}({', '.join(map(show, inputs))})"


class _Raised(Wrong):
    """The reader's function raised an exception."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def show(value: Any) -> str:
    """Write a value in a few words, without addresses of objects."""
    if getattr(value, "shape", None) == ():
        value = value.item()
    if hasattr(value, "shape"):
        return f"{_article(type(value).__name__)} of shape {tuple(value.shape)}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if type(value) in _PLAIN:  # a subclass, such as a Counter or a named tuple, is shown by its type
        text = _SHORT.repr(value)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    return _article(type(value).__name__)


_PLAIN = (list, tuple, set, frozenset, dict, str, int, bool, range, type(None))


class _Short(reprlib.Repr):
    """The repr of plain values, cut, in which everything else is shown by its type."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = 14
        self.maxstring, self.maxlevel = 80, 3

    def repr_instance(self, x: object, level: int) -> str:
        """Show what is no plain value."""
        return show(x) if hasattr(x, "shape") or not isinstance(x, range | bool | type(None)) else repr(x)

    def repr_float(self, x: float, level: int) -> str:
        """Show a number of four digits."""
        return show(x)


_SHORT = _Short()


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIOUaeiou' or noun.startswith('nd') else 'a'} {noun}"


def _copied(value: Any) -> Any:
    """Copy what a function could change: lists, dictionaries, sets, arrays and tensors."""
    if isinstance(value, list | dict | set) or type(value).__name__ == "ndarray":
        return copy.deepcopy(value)
    return value.clone() if hasattr(value, "clone") else value


def _differ(before: Any, after: Any) -> bool:
    """Say whether a copy differs from what it was made of."""
    if before is after:
        return False
    if hasattr(before, "shape"):
        return before.shape != after.shape or bool((before != after).any())
    return before != after


def _describe(error: BaseException) -> str:
    """Write an exception on one line, as Python ends a traceback."""
    text = " ".join("".join(traceback.format_exception_only(error)).split())
    return textwrap.shorten(text, 300, placeholder=" ...")


def _line(error: BaseException) -> str:
    """Write the last of the reader's own lines that led to an exception; empty if there is none."""
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_NOT_THE_READERS)
    ]
    if not frames:
        return ""
    name, line = frames[-1]
    code = linecache.getline(name, line).strip()
    return f"line {line} of your code: {code}" if code else f"line {line} of your code"


@contextmanager
def _untouched() -> Iterator[None]:
    """Leave the global random generators as they were, of what is imported."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    of_python = random.getstate()
    of_numpy = numpy.random.get_state() if numpy else None
    of_torch = torch.get_rng_state() if torch else None
    of_cards = torch.cuda.get_rng_state_all() if torch and torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        random.setstate(of_python)
        if numpy:
            numpy.random.set_state(of_numpy)
        if torch:
            torch.set_rng_state(of_torch)
        if torch and of_cards:
            torch.cuda.set_rng_state_all(of_cards)
