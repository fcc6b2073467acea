"""What the tests of plots share."""

import matplotlib.pyplot as plt
import pytest

from chapters_src import plots


@pytest.fixture
def style():
    with plt.rc_context():
        plots.use_style()
        yield
    plt.close("all")
