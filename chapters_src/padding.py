"""Sequences of different lengths as one batch, with padding. Training and decoding make their batches here.

A model checks only shapes, so the values of ids are checked where batches are made. A batch without padding
has None as its attention mask, so that attention may use its fastest implementation.

Shapes: B sequences in a batch, T positions in the longest.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

Ids = Sequence[int] | np.ndarray | Tensor


def pad(
    sequences: Sequence[Ids],
    *,
    padding_id: int,
    side: Literal["right", "left"] = "right",
    vocab_size: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Make one batch of B sequences by padding the shorter ones: int64, (B, T), with its attention mask.

    The mask is 1 for a token and 0 for padding, int64, (B, T); None if all have the same length. A decoder
    that continues prompts needs the side "left". Ids have to be below `vocab_size`; None: any that are not
    negative.

    Raises:
        TypeError: a sequence does not consist of whole numbers.
        ValueError: no sequences, an empty one, an id out of range, or an unknown side.
    """
    if side not in ("right", "left"):
        raise ValueError(f"side={side!r} is neither 'right' nor 'left'")
    if len(sequences) == 0:
        raise ValueError("there are no sequences to make a batch of")
    rows = [checked_ids(sequence, f"row {row}", vocab_size) for row, sequence in enumerate(sequences)]
    checked_ids([padding_id], "padding_id", vocab_size)
    ids = pad_sequence(rows, batch_first=True, padding_value=padding_id, padding_side=side)
    lengths = torch.tensor([len(row) for row in rows])
    if (lengths == ids.size(1)).all():
        return ids, None
    mask = (torch.arange(ids.size(1)) < lengths[:, None]).long()  # (B, T)
    return ids, mask if side == "right" else mask.flip(1)


def checked_ids(sequence: Ids, name: str, vocab_size: int | None) -> Tensor:
    """Return the ids of a sequence as int64, (T,).

    Raises:
        TypeError: they are not whole numbers.
        ValueError: there are none, or one is negative or not below `vocab_size`; `name` says of what.
    """
    if len(sequence) == 0:
        raise ValueError(f"{name} is empty: leave it out")
    # A copy, because an array may be read-only, such as a memory-mapped file.
    ids = sequence if isinstance(sequence, Tensor) else torch.tensor(sequence)
    if ids.ndim != 1 or ids.dtype == torch.bool or ids.is_floating_point() or ids.is_complex():
        raise TypeError(f"{name} {tuple(ids.shape)}, {ids.dtype}: a list of whole numbers is needed")
    ids = ids.long()  # PyTorch cannot compare most unsigned types, such as those of tokens on a disk.
    wrong = ids < 0 if vocab_size is None else (ids < 0) | (ids >= vocab_size)
    if wrong.any():
        place = int(wrong.nonzero()[0])
        limit = "0 or more" if vocab_size is None else f"from 0 to {vocab_size - 1}"
        raise ValueError(f"{name}, place {place}: the id {int(ids[place])} is not {limit}")
    return ids
