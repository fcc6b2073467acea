"""Checks of settings that are integers or booleans. NumPy's count, and become Python's."""

from numbers import Integral

import numpy as np


def as_integer(name: str, value: object, lowest: int = 1, hint: str = "") -> int:
    """Return a setting, an int or an integer of NumPy, as an int. The error ends with `hint`: what to do.

    Raises:
        ValueError: the value is not an integer, or less than `lowest`.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < lowest:
        message = f"{name}={value!r} has to be an integer, at least {lowest}"
        raise ValueError(f"{message}; {hint}" if hint else message)
    return int(value)


def as_boolean(name: str, value: object) -> bool:
    """Return a setting, a bool or a boolean of NumPy, as a bool.

    Raises:
        ValueError: the value is anything else, such as 0 or 1.
    """
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} has to be True or False")
    return bool(value)
