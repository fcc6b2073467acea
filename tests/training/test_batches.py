"""Batches against the library, against sequences alone, and against the corpus put together again."""

import random
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader
from transformers.models.bart.modeling_bart import shift_tokens_right as shift_in_bart

from chapters_src.padding import pad
from chapters_src.training.batches import IGNORED, PackedDocuments, TokenBudgetSampler, shift_tokens_right

VOCAB_SIZE, PADDING, START, END = 50, 0, 1, 2


def drawn(seed, count=7, longest=9):
    generator = random.Random(seed)
    return [
        [generator.randrange(3, VOCAB_SIZE) for _ in range(generator.randint(1, longest))]
        for _ in range(count)
    ]


# Targets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_decoder_reads_what_it_reads_in_the_library(seed):
    targets, mask = pad([[*row, END] for row in drawn(seed)], padding_id=PADDING)
    before = targets.clone()
    inputs, labels = shift_tokens_right(targets, mask, START)
    assert torch.equal(inputs, shift_in_bart(targets, PADDING, START)) and torch.equal(targets, before)
    for target, label, row in zip(targets, labels, mask.bool(), strict=True):
        assert torch.equal(label[row], target[row]) and (label[~row] == IGNORED).all()
    full, none = pad([[3, 4, END]], padding_id=PADDING)
    assert [made.tolist() for made in shift_tokens_right(full, none, START)] == [
        [[START, 3, 4]],
        [[3, 4, END]],
    ]


def test_what_cannot_be_shifted_is_refused():
    ids, mask = torch.tensor([[3, 4], [0, 5]]), torch.tensor([[1, 1], [0, 1]])
    with pytest.raises(ValueError, match="row 1 is padded on the left"):
        shift_tokens_right(ids, mask, START)
    with pytest.raises(ValueError, match=r"ids \(2, 2\) and attention_mask \(2, 1\)"):
        shift_tokens_right(ids, mask[:, 1:], START)
    with pytest.raises(ValueError, match=r"ids \(2,\)"):
        shift_tokens_right(ids[0], None, START)


# Packing --------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(3, 49), max_size=9), min_size=1, max_size=6), st.integers(1, 8))
def test_blocks_put_together_are_the_documents(documents, length):
    stream = [token for document in documents for token in [*document, END]]
    follows = [t for d in documents for t in ([*d, END, IGNORED][1:])]
    numbers = [number for number, document in enumerate(documents) for _ in [*document, END]]
    if len(stream) < length:
        with pytest.raises(ValueError, match="do not fill"):
            list(PackedDocuments(documents, length, END))
        return
    blocks = list(PackedDocuments(documents, length, END))
    assert len(blocks) == len(stream) // length
    assert all(value.shape == (length,) for block in blocks for value in block.values())
    ids, labels = (torch.cat([block[name] for block in blocks]).tolist() for name in ("ids", "labels"))
    assert ids == stream[: len(ids)] and labels == follows[: len(ids)]
    for first, block in zip(range(0, len(ids), length), blocks, strict=True):
        inside = numbers[first : first + length]
        expected = [[a == b for b in inside] for a in inside]
        found = block["documents"]
        assert (found[:, None] == found[None]).tolist() == expected, "the same tokens belong together"
        assert found.tolist() == sorted(found.tolist()) and found[0] == 0
        steps = [inside[: place + 1].count(number) - 1 for place, number in enumerate(inside)]
        assert block["positions"].tolist() == steps


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [list, np.array, partial(np.array, dtype=np.uint16), torch.tensor])
@pytest.mark.parametrize("used", range(9))
def test_a_resumed_stream_goes_on_where_it_was_left(used, kind):
    documents = [kind(document) for document in [*drawn(3, count=6, longest=20), [5] * 48]]
    packed = PackedDocuments(documents, 8, END)
    whole = list(packed)
    assert len(whole) > 9
    blocks = iter(packed)
    for _ in range(used):
        next(blocks)
    resumed = PackedDocuments(documents, 8, END)
    resumed.load_state_dict(packed.state_dict())
    rest = list(resumed)
    assert len(rest) == len(whole) - used
    for ours, expected in zip(rest, whole[used:], strict=True):
        assert ours["ids"].equal(expected["ids"]) and ours["labels"].equal(expected["labels"])
    assert len(list(resumed)) == len(whole), "the epoch after it is whole again"


def test_after_the_last_block_nothing_is_left_until_the_next_pass():
    """A loader finds the end of the documents before it hands out a last batch that is not full."""
    documents = drawn(3, count=6)
    packed = PackedDocuments(documents, 3, END)
    count = len(list(packed))
    assert packed.state_dict() == {"blocks": count}
    resumed = PackedDocuments(documents, 3, END)
    resumed.load_state_dict(packed.state_dict())
    assert list(resumed) == []
    assert len(list(resumed)) == len(list(packed)) == count


def test_the_number_of_the_pass_reaches_the_documents():
    class Shuffled(list):
        def set_epoch(self, epoch):
            self.epoch = epoch

    documents = Shuffled([[3, 4]])
    PackedDocuments(documents, 2, END).set_epoch(7)
    assert documents.epoch == 7
    PackedDocuments([[3, 4]], 2, END).set_epoch(7)  # A list has no such thing.


class Corpus:
    """Documents made when they are asked for."""

    def __init__(self, count):
        self.count, self.read = count, 0

    def __iter__(self):
        for number in range(self.count):
            self.read += 1
            yield [3 + number % 40] * 5


def test_documents_are_read_only_when_they_are_needed():
    corpus = Corpus(10**9)
    blocks = iter(PackedDocuments(corpus, 12, END))
    for block in range(1, 6):
        next(blocks)
        assert corpus.read <= 12 * block // 6 + 1


@pytest.mark.parametrize(
    ("documents", "options", "error", "message"),
    [
        (iter([[3]]), {}, TypeError, "is an iterator"),
        ([[3]], {"length": 0}, ValueError, "length=0"),
        ([[3]], {"end_id": -2}, ValueError, "end_id, place 0: the id -2 is not 0 or more"),
        ([[3], [4, -5]], {}, ValueError, "document 1, place 1: the id -5"),
        ([[3], [4.5]], {}, TypeError, "document 1"),
        ([[3], [4]], {"length": 5}, ValueError, "do not fill one block of 5 tokens"),
    ],
)
def test_what_cannot_be_packed_is_refused(documents, options, error, message):
    with pytest.raises(error, match=message):
        list(PackedDocuments(documents, **{"length": 2, "end_id": END, **options}))


def test_several_workers_would_read_everything_several_times():
    packed = PackedDocuments(drawn(0, 20), 4, END)
    with pytest.raises(ValueError, match="2 workers would each read"):
        next(iter(DataLoader(packed, num_workers=2)))


# Batches of similar length --------------------------------------------------------------------------------

LENGTHS = np.random.default_rng(0).integers(1, 60, size=500).tolist()


@settings(deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(30, 90), st.booleans())
def test_each_sequence_comes_once_and_no_batch_is_too_large(lengths, tokens_per_batch, shuffle):
    sampler = TokenBudgetSampler(lengths, tokens_per_batch, shuffle=shuffle)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(lengths[row] for row in batch) <= tokens_per_batch for batch in batches)


def test_little_is_padding():
    batches = list(TokenBudgetSampler(LENGTHS, 600))
    padded = sum(len(batch) * max(LENGTHS[row] for row in batch) for batch in batches)
    assert sum(LENGTHS) / padded > 0.95
    assert len(batches) < 1.1 * sum(LENGTHS) / 600 + 1, "and the batches are full"


def test_the_order_follows_from_the_global_generator():
    sampler = TokenBudgetSampler(LENGTHS, 600)

    def epoch(seed):
        torch.manual_seed(seed)
        return list(sampler)

    assert epoch(1) == epoch(1) != epoch(2)
    assert sorted(map(sorted, epoch(1))) != sorted(map(sorted, epoch(2))), "the batches differ too"
    widths = [LENGTHS[batch[0]] for batch in epoch(1)]
    assert abs(np.corrcoef(widths, range(len(widths)))[0, 1]) < 0.5, "long and short ones are mixed"


def test_without_shuffling_the_longest_come_first():
    sampler = TokenBudgetSampler([3, 9, 1, 9, 4], 18, shuffle=False)
    assert list(sampler) == list(sampler) == [[1, 3], [4, 0, 2]]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [([], "no lengths"), ([3, 11], "sequence 1 has 11 tokens"), ([3, 0], "sequence 1 has 0 tokens")],
)
def test_lengths_that_make_no_batches_are_refused(lengths, message):
    with pytest.raises(ValueError, match=message):
        TokenBudgetSampler(lengths, 10)
