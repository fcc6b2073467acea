"""What tests of several folders share."""

import os
import warnings
from collections.abc import Callable
from typing import NoReturn

import pytest


@pytest.fixture(scope="session")
def absent() -> Callable[[str], NoReturn]:
    """What a test calls if something it needs is not there: a loud skip here, a failure in CI (`CI=true`)."""
    return _absent


def _absent(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason} (a failure, because CI=true)", pytrace=False)
    warnings.warn(f"NOT CHECKED: {reason}", stacklevel=3)
    pytest.skip(reason)
