"""Which batches each step of a run sees: the same whenever the run is repeated, shared among the processes.

Data with a length are read in a new order in each epoch, which follows only from the seed and the number of
the epoch. A stream (an `IterableDataset`) comes in its own order, one batch at a time. In both
cases process r of n takes every n-th batch of a step, starting with the r-th; so a step of two processes is a
step of one process that accumulates twice as many batches.
"""

import copy
import itertools
import math
from collections.abc import Iterator, Sized
from typing import Any, cast

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import gather_object, set_seed
from torch.utils.data import DataLoader, IterableDataset

from chapters_src.training.launch import (
    accumulation_steps,
    batches_per_step,
    preserved_rng_state,
    run_on_all_ranks,
)
from chapters_src.training.settings import Settings

# The batches of one process in one step. Weight 0: a stand-in that lets a process without a batch of its own
# take part in the exchange of gradients.
Step = list[tuple[Any, int]]
_SAMPLES = 16  # Examples that tell one data set from another.


def check_loader(loader: DataLoader, settings: Settings) -> None:
    """Check that the order of a loader's batches follows from the settings alone.

    Raises:
        ValueError: it does not, there are no batches, or the settings are for the other kind of data.
    """
    if isinstance(loader.dataset, IterableDataset):
        if not settings.max_steps:
            raise ValueError("a stream has no length, so its epochs cannot be counted: set max_steps")
        return
    if not settings.split_stream:
        raise ValueError("split_stream=False is for streams, but these data have a length: leave it out")
    if loader.batch_sampler is None:
        raise ValueError(
            "the loader has batch_size=None, so the order of its data is unknown: set a batch_size"
        )
    if not getattr(loader, "in_order", True):
        raise ValueError("the loader has in_order=False, but a run needs a fixed order: leave it out")
    if len(loader) == 0:
        raise ValueError(f"the loader has no batches (its data set has {_num_examples(loader)} examples)")
    samplers = (loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None))
    if any(getattr(part, "generator", None) is not None for part in (loader, *samplers)):
        raise ValueError(
            "the loader has its own generator, so the order would depend on what was drawn before: leave it "
            "out, and choose the order with the seed of the settings"
        )


def steps_of(loader: DataLoader, settings: Settings) -> "Steps | Stream":
    """Make the steps of a run, without end, of a loader that `check_loader` has checked."""
    return (Stream if isinstance(loader.dataset, IterableDataset) else Steps)(loader, settings)


class Steps:
    """Steps over data with a length. An epoch that does not fill its last step ends with a smaller one."""

    is_shared = True

    def __init__(self, loader: DataLoader, settings: Settings) -> None:
        assert loader.batch_sampler is not None, "`check_loader` has checked it"
        self.loader, self.batch_sampler = loader, loader.batch_sampler
        self.seed, self.first_step = settings.seed, 0
        self.processes = PartialState()
        self.batches_per_step = batches_per_step(settings)
        self.per_epoch = math.ceil(len(loader) / self.batches_per_step)
        self.total_steps = settings.max_steps or settings.num_epochs * self.per_epoch

    def __iter__(self) -> Iterator[Step]:
        first_epoch, skipped = divmod(self.first_step, self.per_epoch)
        mine: list[Any] = []  # The batches of this process in one epoch.
        generator = torch.Generator()
        # One loader for all epochs, so that its workers may outlive an epoch.
        persistent = {"persistent_workers": self.loader.persistent_workers}
        loader = _like(self.loader, self.loader.dataset, generator, batch_sampler=mine, **persistent)
        for epoch in itertools.count(first_epoch):
            order = self._order(_epoch_seed(self.seed, epoch))
            if len(order) != len(self.loader):
                found = f"epoch {epoch + 1} has {len(order)} batches"
                raise ValueError(f"{found}, but the loader says {len(self.loader)}")
            starts = range(skipped * self.batches_per_step, len(order), self.batches_per_step)
            shares = [self._share(order[start : start + self.batches_per_step]) for start in starts]
            mine[:] = [indices for share in shares for indices, _ in share]
            generator.manual_seed(_epoch_seed(self.seed, epoch))
            loaded = iter(loader)
            for share in shares:
                yield [(next(loaded), weight) for _, weight in share]
            skipped = 0

    def resume(self, step: int, state: dict[str, Any] | None) -> None:
        """Start after so many steps; their batches are not loaded."""
        self.first_step = step

    def state(self) -> None:
        """Return what `resume` needs besides the number of steps."""

    def fingerprint(self) -> dict[str, object]:
        """Describe the data: their number, the size of a step, and a hash of some examples in one order."""
        order = run_on_all_ranks(lambda: [index for batch in self._order(0) for index in batch])
        counts: dict[str, object] = {
            "examples": _num_examples(self.loader),
            "examples in an epoch": len(order),
        }
        if self.loader.batch_size is None:  # A batch sampler decides, so its number of batches matters, too.
            counts["batches in an epoch"] = len(self.loader)
        size = _step_size(self.loader, self.batches_per_step)
        return {**counts, **size, "hash of the data": run_on_all_ranks(lambda: self._hash_of_some(order))}

    def _hash_of_some(self, order: list[Any]) -> str:
        some = sorted({*np.linspace(0, len(order) - 1, _SAMPLES).astype(int).tolist()})
        with preserved_rng_state():  # An example may be random.
            set_seed(0)
            return _hash([self.loader.dataset[order[i]] for i in some])

    def _order(self, seed: int) -> list[Any]:
        """Draw the batches of an epoch, as positions in the data set."""
        with preserved_rng_state():
            set_seed(seed)
            return [list(batch) for batch in self.batch_sampler]

    def _share(self, step: list[Any]) -> Step:
        own = step[self.processes.process_index :: self.processes.num_processes]
        missing = math.ceil(len(step) / self.processes.num_processes) - len(own)
        return [(indices, 1) for indices in own] + [(step[0], 0)] * missing


class Stream:
    """Steps over a stream. All steps have the same number of batches: where the stream ends, it restarts."""

    def __init__(self, loader: DataLoader, settings: Settings) -> None:
        self.loader, self.is_shared = loader, settings.split_stream
        self.seed, self.total_steps = settings.seed, settings.max_steps
        self.data: Any = loader.dataset  # It may have `set_epoch`, `state_dict` and `load_state_dict`.
        processes = PartialState()
        self.rank, self.num_shares = (
            (processes.process_index, processes.num_processes) if self.is_shared else (0, 1)
        )
        self.batches_per_step = accumulation_steps(settings) * self.num_shares
        self.epoch = self.num_read = 0  # Batches read in this epoch, including those of other processes.
        self.data_state: object = None

    def __iter__(self) -> Iterator[Step]:
        batches = self._batches()
        while True:
            step = enumerate(itertools.islice(batches, self.batches_per_step))
            yield [(batch, 1) for i, batch in step if i % self.num_shares == self.rank]

    def _batches(self) -> Iterator[Any]:
        num_workers = self.loader.num_workers
        first: list[str] = []  # Hashes of the first batch of each worker.
        while True:
            for batch in self._open(self.data):
                if num_workers > 1 and self.epoch == 0 and self.num_read < num_workers:
                    first.append(_hash(batch))
                    if len(first) == num_workers and len(set(first)) == 1:
                        raise ValueError(
                            f"all {num_workers} workers read the same stream, so each item would be trained "
                            "on several times: let the data set give each worker a part of its own (by "
                            "`torch.utils.data.get_worker_info`), or use num_workers=1"
                        )
                self.num_read += 1
                yield batch
            if self.num_read == 0:
                raise ValueError("the stream has no batches")
            self.epoch, self.num_read = self.epoch + 1, 0

    def _open(self, data: Any) -> Iterator[Any]:
        """Start to read where the run is."""
        if hasattr(data, "set_epoch"):
            data.set_epoch(self.epoch)
        if self.data_state is not None:
            data.load_state_dict(self.data_state)
        generator = torch.Generator().manual_seed(_epoch_seed(self.seed, self.epoch))
        batches = iter(_like(self.loader, data, generator))
        if self.data_state is None and self.num_read:
            with preserved_rng_state():
                next(itertools.islice(batches, self.num_read - 1, None), None)
        self.data_state = None
        return batches

    def resume(self, step: int, state: dict[str, Any] | None) -> None:
        """Start where `state` was read: at once if the data set can, else by reading up to there."""
        assert state is not None, "each checkpoint of a stream has it"
        self.epoch, self.data_state = state["epoch"], state["data_set"]
        self.num_read = state["read"]
        if self.loader.batch_size is not None:  # Other processes may have had batches of another size.
            self.num_read = state["read"] * state["batch_size"] // self.loader.batch_size

    def state(self) -> dict[str, Any]:
        """Return what `resume` needs."""
        data_state = self.data.state_dict() if self._knows_its_place() else None
        place = {"epoch": self.epoch, "read": self.num_read, "batch_size": self.loader.batch_size}
        return {**place, "data_set": data_state}

    def fingerprint(self) -> dict[str, object]:
        """Describe the data by a hash of the first examples; of all processes' if each has its own stream."""
        first = run_on_all_ranks(self._hash_of_first_examples)
        size = _step_size(self.loader, self.batches_per_step)
        return {**size, "hash of the data": first if self.is_shared else gather_object([first])}

    def _hash_of_first_examples(self) -> str:
        """Read them from a copy of the stream, so that the run starts where it would have started."""
        data = copy.copy(self.data)
        with preserved_rng_state():
            set_seed(0)
            if hasattr(data, "set_epoch"):
                data.set_epoch(0)
            return _hash(list(itertools.islice(data, _SAMPLES)))

    def _knows_its_place(self) -> bool:
        """Whether the data set's own state is exact. In a worker it is out of reach."""
        has_state = hasattr(self.data, "state_dict") and hasattr(self.data, "load_state_dict")
        return has_state and self.loader.num_workers == 0 and not _has_shuffle_buffer(self.data)


def _num_examples(loader: DataLoader) -> int:
    return len(cast(Sized, loader.dataset))


def _step_size(loader: DataLoader, batches_per_step: int) -> dict[str, object]:
    """Describe how large a step is, whatever the number of processes that share it."""
    if loader.batch_size is None:
        return {"batches in a step (of all processes, accumulated)": batches_per_step}
    return {"examples in a step (of all processes, accumulated)": loader.batch_size * batches_per_step}


def _has_shuffle_buffer(data: object) -> bool:
    """Whether it is a stream of the Datasets library that holds examples back, which its state leaves out."""
    parts = [getattr(data, "_ex_iterable", None)]
    for part in parts:
        if "BufferShuffled" in type(part).__name__:
            return True
        inside = [getattr(part, "ex_iterable", None), *getattr(part, "ex_iterables", [])]
        parts += [inner for inner in inside if inner is not None]
    return False


def _like(loader: DataLoader, data: Any, generator: torch.Generator, **order: Any) -> DataLoader:
    """Make a loader like another, whose workers a given generator seeds, so it draws from no global one."""
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
        generator=generator,
    )


def _epoch_seed(seed: int, epoch: int) -> int:
    return int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])


def _hash(examples: object) -> str:
    from datasets.fingerprint import Hasher  # Here, because few runs need it.

    return Hasher.hash(examples)
