"""What tests of several folders share."""

import os
import re
import warnings
from collections.abc import Callable
from typing import NoReturn

import pytest


def in_ci() -> bool:
    """Whether the variable CI is set, to anything but a no."""
    return os.environ.get("CI", "").strip().lower() not in {"", "0", "false", "no"}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("cuda") and not _has_card():
            item.add_marker(pytest.mark.skip(reason="needs a graphics card"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let slow tests that prepare the same share a process; groups of xdist have no effect in pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class ByWhatTheyPrepare(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if "not slow" in config.option.markexpr else prepared_for(nodeid)

    return ByWhatTheyPrepare(config, log)


def prepared_for(nodeid: str) -> str:
    """What a slow test prepares something for: its page of the site, which is visited once, or its module."""
    page = re.search(r"\[(?:file-|http-)?([\w/]+\.html)", nodeid)
    return page[1] if page else nodeid.partition("::")[0]


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
