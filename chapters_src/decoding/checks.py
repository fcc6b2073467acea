"""Checks that several modules share."""

import torch


def check_generator(generator: object) -> None:
    """Raise a TypeError unless the argument is a generator."""
    if not isinstance(generator, torch.Generator):
        raise TypeError(f"generator={generator!r}: sampling needs a torch.Generator().manual_seed(...)")
