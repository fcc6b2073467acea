"""What the tests of all recipes share."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from recipes.machine import versions
from recipes.output import harvested


@pytest.fixture(scope="session")
def card_tolerance() -> Callable[[Path, Sequence[str], float, float], float]:
    """Say how far a figure may be from the card's: little where nothing moved, more, with a warning, else."""

    def tolerance(folder: Path, packages: Sequence[str], same: float, moved: float) -> float:
        card = (folder / "README.md").read_text(encoding="utf-8")
        missing = [here for here in (harvested(packages), versions()) if here not in card]
        if missing:
            warnings.warn(
                f"the card in {folder} is of other versions than these, so its figure may be off by {moved}: "
                + "; ".join(missing),
                stacklevel=2,
            )
        return moved if missing else same

    return tolerance
