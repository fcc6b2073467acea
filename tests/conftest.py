"""What tests of several folders share."""

import os
import warnings
from collections.abc import Callable
from typing import NoReturn

import pytest


def in_ci() -> bool:
    """Whether the variable CI is set, to anything but a no."""
    return os.environ.get("CI", "").strip().lower() not in {"", "0", "false", "no"}


def pytest_collection_modifyitems(items):
    """Where tests run in several processes, those of a slow module share one, with what they prepare."""
    for item in items:
        is_slow = any(item.get_closest_marker(name) for name in ("slow", "site", "full"))
        if item.get_closest_marker("cuda") and not _has_card():
            item.add_marker(pytest.mark.skip(reason="needs a graphics card"))
        if is_slow and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def _has_card() -> bool:
    import torch  # Here, because it takes seconds, and most tests do without it.

    return torch.cuda.is_available()


@pytest.fixture(scope="session")
def absent() -> Callable[[str], NoReturn]:
    """What a test calls if something it needs is not there: a loud skip here, a failure in CI."""
    return _absent


def _absent(reason: str) -> NoReturn:
    if in_ci():
        pytest.fail(f"{reason} (a failure, because CI={os.environ['CI']})", pytrace=False)
    warnings.warn(f"NOT CHECKED: {reason}", stacklevel=3)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def quiet_library():
    """The Transformers library writes about ids that tiny vocabularies do not have."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    yield
    logging.set_verbosity(before)
