"""What the checks of exercises are tried with: committed solutions, empty starters, planted errors."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from chapters_src.exercises import checking
from paths import PACKAGE, notebooks

CHECKED = sorted(int(path.stem[-2:]) for path in (PACKAGE / "exercises").glob("chapter_*.py"))


@dataclass
class Planted:
    """An exercise: the solution's answers, and wrong ones, each with words of the hint that it has to get."""

    right: tuple
    wrong: dict[str, tuple]  # Words of the hint, to the answers.
    given: dict[str, object] = field(default_factory=dict)  # What the chapter hands over, here in small.
    also_right: tuple[tuple, ...] = ()
    secrets: tuple[str, ...] = ()  # What no hint may say.


PLANTED: dict[str, Callable[[], Planted]] = {}


def planted(number: str) -> Callable:
    """Register what makes the planted answers of an exercise."""
    return lambda make: PLANTED.setdefault(number, make)


def notebook_of(chapter: int) -> Path:
    return next(path for path in notebooks() if path.name.startswith(f"{chapter:02}_"))


def code_of(chapter: int) -> list[str]:
    return [cell.source for cell in nbformat.read(notebook_of(chapter), 4).cells if cell.cell_type == "code"]


def starters(chapter: int) -> dict[str, str]:
    """The cells to try in, each before its solution, by the number of the exercise."""
    code = code_of(chapter)
    titles = [source.partition("\n")[0].removeprefix("# @title Solution ") for source in code]
    return {title: code[i - 1] for i, title in enumerate(titles) if title[0].isdigit()}


def defined(chapter: int, *names: str, **known: object) -> list:
    """What a notebook defines under these names, the last of each: that of the solution, where it has one.

    Args:
        chapter: its number.
        *names: of functions and variables; they are defined in the order of the notebook.
        **known: what the definitions need besides.

    Returns:
        The values.
    """
    for source in code_of(chapter):
        for node in ast.parse(source).body:
            targets = [ast.unparse(target) for target in getattr(node, "targets", [])]
            if getattr(node, "name", None) in names or set(targets) & set(names):
                exec(compile(ast.Module([node], []), "solution", "exec"), known)
    return [known[name] for name in names]


def judge(number: str, *answers: object, **given: object) -> checking.Verdict:
    """What is found, before it is printed."""
    return checking.find(number).judge(answers, given)


def exercises() -> dict[str, Callable]:
    """All registered checks."""
    for chapter in CHECKED:
        checking.find(f"{chapter}.1")
    return dict(checking._CHECKS)
