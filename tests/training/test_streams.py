"""Data without a length: read once, shared out, resumed in the middle, never held in memory."""

import itertools
import random
import tracemalloc
from dataclasses import replace

import datasets
import pytest
import torch
from small_run import digest
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset

from chapters_src.training import CheckpointError, PackedDocuments, Settings, order, train

NUM_NUMBERS = 23


class Numbers(IterableDataset):
    """The numbers from 0 up; each pass may have an order of its own."""

    def __init__(self, length=NUM_NUMBERS, first=0):
        self.length, self.first, self.epoch, self.num_read = length, first, 0, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        numbers = list(range(self.first, self.first + self.length))
        random.Random(self.epoch).shuffle(numbers)
        for number in numbers:
            self.num_read += 1
            yield number


class NumbersWithAPlace(Numbers):
    """A stream that can begin in the middle."""

    place = 0

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]

    def __iter__(self):
        for number in itertools.islice(super().__iter__(), self.place, None):
            self.place += 1
            yield number
        self.place = 0


def of_the_library(shuffled):
    rows = datasets.Dataset.from_dict({"number": [*range(NUM_NUMBERS)]}).to_iterable_dataset(num_shards=3)
    return rows.shuffle(seed=3, buffer_size=7) if shuffled else rows


STREAMS = {
    "plain": Numbers,
    "with a place": NumbersWithAPlace,
    "library": lambda: of_the_library(shuffled=False),
    "library, shuffle buffer": lambda: of_the_library(shuffled=True),
}


def collate(examples):
    return torch.tensor([row["number"] if isinstance(row, dict) else row for row in examples])


def loader(data, batch_size=4, **options):
    return DataLoader(data, batch_size, collate_fn=collate, **options)


class Interrupted(Exception):
    """What stops a run."""


def run(data, folder=None, stop_before=None, model_seed=0, batch_size=4, **changes):
    """Train a small regression. Returns the model, the history, and the batches that were used."""
    torch.manual_seed(model_seed)
    model, seen = torch.nn.Sequential(torch.nn.Linear(1, 3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1)), []

    def compute_loss(model, batch):
        if len(seen) == stop_before:
            raise Interrupted
        seen.append(batch.tolist())
        return F.mse_loss(model(batch[:, None] / 10), batch[:, None] / 10, reduction="sum")

    values = {"learning_rate": 0.01, "max_steps": 16, "checkpoint_every": 2 if folder else 0}
    settings = Settings(**{**values, **changes})
    batches = data if isinstance(data, DataLoader) else loader(data, batch_size)
    history = train(model, batches, compute_loss, settings, count_items=len, checkpoint_folder=folder)
    return model, history, seen


@pytest.mark.parametrize("stream", STREAMS)
def test_each_pass_shows_each_item_once(stream):
    _, history, seen = run(STREAMS[stream](), max_steps=12)
    assert [len(batch) for batch in seen] == [4, 4, 4, 4, 4, 3] * 2
    first, second = ([*itertools.chain(*epoch)] for epoch in (seen[:6], seen[6:]))
    assert sorted(first) == sorted(second) == [*range(NUM_NUMBERS)]
    assert (first != second) == (stream != "library")
    assert history.steps[-1]["items"] == 2 * NUM_NUMBERS


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("options", [{}, {"accumulation_steps": 2}], ids=str)
@pytest.mark.parametrize("stop_at_step", [4, 11])  # In the first pass, and in a later one.
def test_interrupted_and_gone_on_nothing_is_read_twice_or_left_out(tmp_path, stream, options, stop_at_step):
    model, expected, all_seen = run(STREAMS[stream](), tmp_path / "through", **options)
    per_step = options.get("accumulation_steps", 1)
    with pytest.raises(Interrupted):
        run(
            STREAMS[stream](),
            tmp_path / "broken",
            stop_before=stop_at_step * per_step + per_step - 1,
            **options,
        )
    torch.manual_seed(7), random.seed(7)
    again, found, seen = run(STREAMS[stream](), tmp_path / "broken", model_seed=5, **options)
    begins = per_step * 2 * (stop_at_step // 2)
    assert seen == all_seen[begins:]
    assert found == expected and digest(again) == digest(model)


class Packed(PackedDocuments):
    """Seven blocks of three tokens, in another order in each pass."""

    def __init__(self):
        super().__init__([[10 * i + 1, 10 * i + 2] for i in range(7)], 3, 0)

    def set_epoch(self, epoch):
        self.documents = random.Random(epoch).sample(sorted(self.documents), 7)


@pytest.mark.parametrize("stop_before", [3, 4, 5])  # A pass has four batches, the last with one block.
def test_packed_documents_go_on_at_the_end_of_a_pass(tmp_path, stop_before):
    def batches():
        return DataLoader(Packed(), 2, collate_fn=lambda rows: torch.cat([row["ids"] for row in rows]))

    often = {"checkpoint_every": 1, "max_steps": 9}
    model, expected, all_seen = run(batches(), tmp_path / "through", **often)
    with pytest.raises(Interrupted):
        run(batches(), tmp_path / "broken", stop_before=stop_before, **often)
    again, found, seen = run(batches(), tmp_path / "broken", model_seed=5, **often)
    assert seen == all_seen[stop_before:] and found == expected and digest(again) == digest(model)


def test_what_was_read_before_the_run_does_not_move_its_beginning(tmp_path):
    packed = PackedDocuments([[i + 1, i + 2] for i in range(7)], 3, 0)
    batches = DataLoader(packed, 2, collate_fn=lambda rows: torch.cat([row["ids"] for row in rows]))
    _, _, expected = run(batches, max_steps=3)
    next(iter(batches))
    assert run(batches, tmp_path / "begun", max_steps=3)[2] == expected
    list(batches)
    assert run(batches, tmp_path / "finished", max_steps=3)[2] == expected


@pytest.mark.parametrize(("kind", "read_again"), [(Numbers, 20), (NumbersWithAPlace, 0)])
def test_a_stream_that_knows_its_place_is_not_read_again(tmp_path, kind, read_again):
    run(kind(1000), tmp_path, max_steps=5, checkpoint_every=5)
    data = kind(1000)
    steps = order.steps_of(loader(data), Settings(learning_rate=1, max_steps=9))
    state = torch.load(tmp_path / "step-00000005" / "data_0.pt", weights_only=True)
    steps.resume(5, state)
    ((batch, _),) = next(iter(steps))
    assert data.num_read == read_again + 4 + (20 if kind is NumbersWithAPlace else 0)  # Passed over inside.
    assert batch.tolist() == run(kind(1000), max_steps=6)[2][5]


def test_workers_read_a_stream_too(tmp_path):
    """A worker has a copy of the stream, whose place is unknown here."""
    through = run(loader(NumbersWithAPlace(), num_workers=1), tmp_path / "a")
    with pytest.raises(Interrupted):
        run(loader(NumbersWithAPlace(), num_workers=1), tmp_path / "b", stop_before=9)
    again = run(loader(NumbersWithAPlace(), num_workers=1), tmp_path / "b", model_seed=5)
    assert again[2] == through[2][8:] and digest(again[0]) == digest(through[0])


class Halves(Numbers):
    """Numbers of which each worker has a part."""

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        return itertools.islice(super().__iter__(), worker.id, None, worker.num_workers)


def test_workers_that_all_read_the_same_are_refused():
    with pytest.raises(ValueError, match=r"all 2 workers read the same stream.*get_worker_info"):
        run(loader(Numbers(), num_workers=2), max_steps=4)
    _, _, seen = run(loader(Halves(), num_workers=2), max_steps=6)
    assert sorted(itertools.chain(*seen)) == [*range(NUM_NUMBERS)]


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_processes_share_a_stream_or_bring_their_own(monkeypatch, rank):
    class Process:
        num_processes, process_index = 3, rank

    every = run(Numbers(36), max_steps=18)[2]
    monkeypatch.setattr(order, "PartialState", Process)
    settings = Settings(learning_rate=1, max_steps=9, accumulation_steps=2)
    shared = iter(order.steps_of(loader(Numbers(36)), settings))
    own = iter(order.steps_of(loader(Numbers(36)), replace(settings, split_stream=False)))
    for first in (0, 6, 12):
        assert [batch.tolist() for batch, _ in next(shared)] == every[first : first + 6][rank::3]
    for first in (0, 2, 4):
        assert [batch.tolist() for batch, _ in next(own)] == every[first : first + 2]


def test_batches_that_the_stream_makes_itself():
    class Packed(IterableDataset):
        def __iter__(self):
            yield from torch.arange(24).split(5)

    _, _, seen = run(DataLoader(Packed(), batch_size=None), max_steps=6)
    assert [len(batch) for batch in seen] == [5, 5, 5, 5, 4, 5]


def test_memory_does_not_grow_with_the_stream():
    class Long(IterableDataset):
        def __iter__(self):
            return (i % 7 for i in range(10**9))

    peaks, settings = [], Settings(learning_rate=1, max_steps=200, accumulation_steps=5)
    for num_steps in (20, 200):
        tracemalloc.start()
        steps = iter(order.steps_of(loader(Long()), settings))
        for _ in range(num_steps):
            next(steps)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def test_another_stream_is_refused(tmp_path):
    run(Numbers(), tmp_path)
    with pytest.raises(CheckpointError, match="hash of the data was"):
        run(Numbers(first=1), tmp_path)


def test_a_stream_without_batches_is_an_error():
    with pytest.raises(ValueError, match="the stream has no batches"):
        run(Numbers(0))
