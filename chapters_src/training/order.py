"""Which batches each step of a run sees: the same whenever it is asked again, shared among the processes.

Data with a length are read in an order that is drawn anew for each epoch, and that follows from the seed and
the number of the epoch alone. A stream (an `IterableDataset`) comes in its own order, one batch at a time. In
both cases process r of n takes each n-th batch of a step, from the r-th on; so a step of two processes is a
step of one that puts twice as many batches into it.
"""

import copy
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import gather_object, set_seed
from torch.utils.data import DataLoader, IterableDataset

from chapters_src.training.launch import preserved_rng_state, run_on_all_ranks

# The batches of one process in one step. Weight 0: a stand-in that lets a process without a batch of its own
# take part in the exchange of gradients.
Step = list[tuple[Any, int]]
_SAMPLES = 16  # Examples that tell one data set from another.


def steps_of(loader: DataLoader, seed: int, accumulation_steps: int, split_stream: bool) -> "Steps | Stream":
    """Make the steps of a run.

    Args:
        loader: of data with a length, or of a stream.
        seed: of the order.
        accumulation_steps: batches of each process in one step.
        split_stream: a stream is the same in all processes, and shared out among them.

    Returns:
        An iterable of steps, without end, with `per_epoch`, `state`, `resume` and `fingerprint`.
    """
    if isinstance(loader.dataset, IterableDataset):
        return Stream(loader, seed, accumulation_steps, split_stream)
    return Steps(loader, seed, accumulation_steps)


class Steps:
    """Steps over data with a length. An epoch that does not fill its last step ends with a smaller one."""

    def __init__(self, loader: DataLoader, seed: int, accumulation_steps: int) -> None:
        self.loader, self.seed, self.first_step = loader, seed, 0
        self.processes = PartialState()
        self.batches_per_step = accumulation_steps * self.processes.num_processes
        self.per_epoch = math.ceil(len(loader) / self.batches_per_step)

    def __iter__(self) -> Iterator[Step]:
        first_epoch, skipped = divmod(self.first_step, self.per_epoch)
        for epoch in itertools.count(first_epoch):
            order = self._order(_seed_of(self.seed, epoch))
            if len(order) != len(self.loader):
                found = f"epoch {epoch + 1} has {len(order)} batches"
                raise ValueError(f"{found}, but the loader says {len(self.loader)}")
            starts = range(skipped * self.batches_per_step, len(order), self.batches_per_step)
            shares = [self._share(order[start : start + self.batches_per_step]) for start in starts]
            mine = [indices for share in shares for indices, _ in share]
            loader = _like(self.loader, self.loader.dataset, _seed_of(self.seed, epoch), batch_sampler=mine)
            loaded = iter(loader)
            for share in shares:
                yield [(next(loaded), weight) for _, weight in share]
            skipped = 0

    def resume(self, step: int, state: None) -> None:
        """Begin after so many steps; nothing of them is loaded."""
        self.first_step = step

    def state(self) -> None:
        """Give what `resume` needs besides the number of steps."""

    def fingerprint(self) -> dict[str, object]:
        """Describe the data: how many, and a hash of some examples, as one seed orders them."""
        order = self._order(0)
        some = np.linspace(0, len(order) - 1, _SAMPLES).astype(int)
        with preserved_rng_state():  # An example may be drawn at random.
            set_seed(0)
            sample = [self.loader.dataset[order[i][0]] for i in sorted({*some})]
        counts = {"examples": len(self.loader.dataset), "batches": len(self.loader)}
        return {**counts, "hash of the data": _hash(sample)}

    def _order(self, seed: int) -> list[Any]:
        """Draw the batches of an epoch, as positions in the data set."""
        with preserved_rng_state():
            set_seed(seed)
            return [list(batch) for batch in self.loader.batch_sampler]

    def _share(self, step: list[Any]) -> Step:
        own = step[self.processes.process_index :: self.processes.num_processes]
        missing = math.ceil(len(step) / self.processes.num_processes) - len(own)
        return [(indices, 1) for indices in own] + [(step[0], 0)] * missing


class Stream:
    """Steps over a stream. All steps are equally large: where the stream ends, it begins again."""

    per_epoch = None

    def __init__(self, loader: DataLoader, seed: int, accumulation_steps: int, is_shared: bool) -> None:
        self.loader, self.seed, self.is_shared = loader, seed, is_shared
        processes = PartialState()
        self.rank, self.num_shares = (
            (processes.process_index, processes.num_processes) if is_shared else (0, 1)
        )
        self.batches_per_step = accumulation_steps * self.num_shares
        self.epoch = self.num_read = 0  # Batches of this epoch that were read, those of other processes too.
        self.data_state: object = None

    def __iter__(self) -> Iterator[Step]:
        batches = self._batches()
        while True:
            step = enumerate(itertools.islice(batches, self.batches_per_step))
            yield [(batch, 1) for i, batch in step if i % self.num_shares == self.rank]

    def _batches(self) -> Iterator[Any]:
        while True:
            for batch in self._open(self.loader.dataset):
                self.num_read += 1
                yield batch
            if self.num_read == 0:
                raise ValueError("the stream has no batches")
            self.epoch, self.num_read = self.epoch + 1, 0

    def _open(self, data: IterableDataset) -> Iterator[Any]:
        """Begin to read where the run is."""
        if hasattr(data, "set_epoch"):
            data.set_epoch(self.epoch)
        if self.data_state is not None:
            data.load_state_dict(self.data_state)
        batches = iter(_like(self.loader, data, _seed_of(self.seed, self.epoch)))
        if self.data_state is None and self.num_read:
            with preserved_rng_state():
                next(itertools.islice(batches, self.num_read - 1, None), None)
        self.data_state = None
        return batches

    def resume(self, step: int, state: dict[str, Any]) -> None:
        """Begin where `state` was read: at once if the data set can, else by reading up to there."""
        self.epoch, self.num_read, self.data_state = state["epoch"], state["read"], state["data_set"]

    def state(self) -> dict[str, Any]:
        """Give what `resume` needs."""
        data_state = self.loader.dataset.state_dict() if self._knows_its_place() else None
        return {"epoch": self.epoch, "read": self.num_read, "data_set": data_state}

    def fingerprint(self) -> dict[str, object]:
        """Describe the data: a hash of the first batch; if each process brings a stream, of all of theirs."""
        first = run_on_all_ranks(self._hash_of_first_batch)
        return {"hash of the data": first if self.is_shared else gather_object([first])}

    def _hash_of_first_batch(self) -> str:
        """Read it from a copy of the stream, so that the run begins where it would have begun."""
        with preserved_rng_state():
            set_seed(0)
            return _hash(next(self._open(copy.copy(self.loader.dataset)), None))

    def _knows_its_place(self) -> bool:
        """Whether the data set's own state is exact. In a worker it is out of reach."""
        data = self.loader.dataset
        has_state = hasattr(data, "state_dict") and hasattr(data, "load_state_dict")
        return has_state and self.loader.num_workers == 0 and not _has_shuffle_buffer(data)


def _has_shuffle_buffer(data: object) -> bool:
    """Whether it is a stream of the Datasets library that holds examples back, which its state leaves out."""
    parts = [getattr(data, "_ex_iterable", None)]
    for part in parts:
        if "BufferShuffled" in type(part).__name__:
            return True
        inside = [getattr(part, "ex_iterable", None), *getattr(part, "ex_iterables", [])]
        parts += [inner for inner in inside if inner is not None]
    return False


def _like(loader: DataLoader, data: Any, seed: int, **order: Any) -> DataLoader:
    """Make a loader like another. Its workers are seeded; it draws from no global generator."""
    if not order:
        order = {"batch_size": loader.batch_size}
        if loader.batch_size is not None:
            order["drop_last"] = loader.drop_last
    return DataLoader(
        data,
        **order,
        collate_fn=loader.collate_fn,
        num_workers=loader.num_workers,
        prefetch_factor=loader.prefetch_factor,
        multiprocessing_context=loader.multiprocessing_context,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        generator=torch.Generator().manual_seed(seed),
    )


def _seed_of(seed: int, epoch: int) -> int:
    return int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])


def _hash(examples: object) -> str:
    from datasets.fingerprint import Hasher  # Here, because only runs with checkpoints need it.

    return Hasher.hash(examples)
