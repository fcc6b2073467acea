"""What several modules refuse: numbers that count nothing, and generators that are none."""

import torch


def check_count(name: str, value: object, way_out: str = "") -> None:
    """Raise a ValueError for what is no whole number from 1.

    Args:
        name: of the setting.
        value: of the setting.
        way_out: what to do instead, if there is something.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r} has to be a whole number from 1" + f"; {way_out}" * bool(way_out))


def check_generator(generator: object) -> None:
    """Raise a TypeError for what is no generator."""
    if not isinstance(generator, torch.Generator):
        raise TypeError(f"generator={generator!r}: a torch.Generator().manual_seed(...) is needed to draw")
