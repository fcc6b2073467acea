"""A small book, built once with an address and once without, for all tests that look at its pages."""

from pathlib import Path

import pytest
from small_book import REPORTS, SITE, build


@pytest.fixture(scope="session")
def published(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("published"), html_baseurl=SITE, feedback_address=REPORTS)


@pytest.fixture(scope="session")
def unpublished(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("unpublished"))
