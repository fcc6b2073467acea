"""Padding against the sequences it was made of, and what is no batch."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chapters_src.padding import pad

SEQUENCES = st.lists(st.lists(st.integers(0, 49), min_size=1, max_size=9), min_size=1, max_size=5)
SIDES = st.sampled_from(["right", "left"])


def stored(sequence):
    """Two bytes for each id, not to be written to: what `np.memmap` gives of a file of tokens."""
    ids = np.array(sequence, np.uint16)
    ids.flags.writeable = False
    return ids


@given(SEQUENCES, SIDES, st.sampled_from([list, np.array, stored, torch.tensor]))
def test_padding_taken_off_again_leaves_the_sequences(sequences, side, kind):
    ids, mask = pad([kind(sequence) for sequence in sequences], padding_id=7, side=side)
    longest = max(map(len, sequences))
    assert ids.dtype == torch.int64 and ids.shape == (len(sequences), longest)
    if mask is None:
        assert ids.tolist() == sequences
        return
    assert mask.dtype == torch.int64 and min(map(len, sequences)) < longest
    for row, kept, sequence in zip(ids, mask.bool(), sequences, strict=True):
        assert row[kept].tolist() == sequence and (row[~kept] == 7).all()
        assert kept[0 if side == "right" else -1], f"the {side} side is padded"


def test_a_batch_of_equal_lengths_has_no_mask():
    assert pad([[1, 2], [3, 4]], padding_id=0)[1] is None
    assert pad([[1, 2], [3]], padding_id=0)[1].tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize(
    ("sequences", "options", "error", "message"),
    [
        ([], {}, ValueError, "no sequences"),
        ([[1], []], {}, ValueError, "row 1 is empty"),
        ([[1, 2], [3, -1, 4]], {}, ValueError, "row 1, place 1: the id -1 is not 0 or more"),
        ([[1, 49], [3, 4, 50]], {"vocab_size": 50}, ValueError, "row 1, place 2: the id 50 .* 0 to 49"),
        ([[1.0, 2.5]], {}, TypeError, "row 0 .2,., torch.float32: a list of whole numbers"),
        ([torch.tensor([True])], {}, TypeError, "row 0 .*torch.bool"),
        ([[[1, 2]]], {}, TypeError, r"row 0 .1, 2."),
        ([stored([1, 50])], {"vocab_size": 50}, ValueError, "row 0, place 1: the id 50 .* 0 to 49"),
        ([[1]], {"padding_id": 50, "vocab_size": 50}, ValueError, "padding_id, place 0: the id 50"),
        ([[1]], {"side": "both"}, ValueError, "side='both'"),
    ],
)
def test_what_is_no_batch_is_refused(sequences, options, error, message):
    with pytest.raises(error, match=message):
        pad(sequences, **{"padding_id": 0, **options})
