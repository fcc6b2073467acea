"""Short passages about the functions of NumPy, pandas and pyplot, from their docstrings: what is searched.

They come from the installed packages, so another version has other passages.
"""

import functools
import inspect
import re
from collections.abc import Iterator
from typing import Any

MOST_WORDS, MOST_ARGUMENTS = 90, 8

_DIRECTIVE = re.compile(r"(?m)^\.\. .*(?:\n[ \t]+.*)*")
_ROLE = re.compile(r":[\w:]+:`~?([^`<]*)(?: <[^`]*>)?`")


@functools.cache
def documented() -> dict[str, str]:
    """Collect the public functions and methods with a docstring.

    To each full name, such as "numpy.squeeze", belongs a passage: the name with its arguments on the first
    line, and up to 90 words of the docstring's first paragraphs on the second.
    """
    import matplotlib.pyplot
    import numpy
    import pandas

    homes = {
        "numpy": numpy,
        "pandas": pandas,
        "pandas.DataFrame": pandas.DataFrame,
        "pandas.Series": pandas.Series,
        "matplotlib.pyplot": matplotlib.pyplot,
    }
    return {
        f"{home}.{name}": f"{home}.{name}{_arguments(thing)}\n{_beginning(thing, name)}"
        for home, place in homes.items()
        for name, thing in _functions(place)
        if _beginning(thing, name)
    }


def _functions(place: Any) -> Iterator[tuple[str, Any]]:
    for name in sorted(dir(place)):
        if name.startswith("_") or isinstance(inspect.getattr_static(place, name), property):
            continue
        thing = getattr(place, name, None)
        if callable(thing) and not inspect.isclass(thing):
            yield name, thing


def _beginning(thing: Any, name: str) -> str:
    """Return the first paragraphs of a docstring, up to a heading or an example, in one line."""
    text = _ROLE.sub(r"`\1`", _DIRECTIVE.sub("", inspect.getdoc(thing) or "")).replace("``", "`")
    kept: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        if re.search(r"(?m)^[-=]{3,}$|>>>|::\s*$", paragraph):
            break  # A heading, an example, or what leads to one.
        words = paragraph.split()
        if not words or re.match(rf"{re.escape(name)}\(", words[0]):
            continue  # The signature of a function that is written in C.
        if len(kept) + len(words) > MOST_WORDS:
            return " ".join(kept or words[:MOST_WORDS])
        kept += words
    return " ".join(kept)


def _arguments(thing: Any) -> str:
    """Return the arguments with their defaults, without types; empty where they are not known."""
    try:
        given = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ""
    shown = []
    for one in given:
        if one.name in ("self", "cls"):
            continue
        stars = "*" * (one.kind == one.VAR_POSITIONAL) + "**" * (one.kind == one.VAR_KEYWORD)
        default = "" if one.default is one.empty else f"={one.default!r}"
        shown.append(
            f"{stars}{one.name}{default if ' at 0x' not in default and '<' not in default else '=...'}"
        )
    if len(shown) > MOST_ARGUMENTS:
        shown = [*shown[:MOST_ARGUMENTS], "..."]
    return f"({', '.join(shown)})"
