"""In which order a run sees its examples: drawn anew in each epoch, and the same whenever it is asked again.

The order follows from the seed and the number of the epoch alone. So a run that goes on in the middle of an
epoch sees what it has not seen yet, and several processes share one order.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from torch.utils.data import DataLoader


def batches_of_steps(
    loader: DataLoader, seed: int, batches_per_step: int, first_step: int
) -> Iterator[Iterable[Any]]:
    """Yield for each step, without end, the batches of it that belong to this process.

    A step takes the next batches of the epoch's order, and process r of n each n-th of these from the r-th
    on. Steps before the first are skipped without loading anything.
    """
    processes = PartialState()
    steps_per_epoch = math.ceil(len(loader) / batches_per_step)
    first_epoch, skipped = divmod(first_step, steps_per_epoch)
    for epoch in itertools.count(first_epoch):
        order = _order(loader, seed, epoch)
        starts = range(skipped * batches_per_step, len(order), batches_per_step)
        mine = [
            order[start : start + batches_per_step][processes.process_index :: processes.num_processes]
            for start in starts
        ]
        loaded = iter(_with_order(loader, [*itertools.chain(*mine)], _seed_of(seed, epoch)))
        for step in mine:
            yield itertools.islice(loaded, len(step))
        skipped = 0


def _order(loader: DataLoader, seed: int, epoch: int) -> list[list[int]]:
    """Draw the batches of an epoch, as positions in the data set."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_seed_of(seed, epoch))
        order = [list(batch) for batch in loader.batch_sampler]
    if len(order) != len(loader):
        raise ValueError(f"epoch {epoch + 1} has {len(order)} batches, but the loader says {len(loader)}")
    return order


def _with_order(loader: DataLoader, order: list[list[int]], seed: int) -> DataLoader:
    """Make a loader that gives these batches. Its workers are seeded; it draws from no global generator."""
    return DataLoader(
        loader.dataset,
        batch_sampler=order,
        collate_fn=loader.collate_fn,
        num_workers=loader.num_workers,
        pin_memory=loader.pin_memory,
        worker_init_fn=loader.worker_init_fn,
        generator=torch.Generator().manual_seed(seed),
    )


def _seed_of(seed: int, epoch: int) -> int:
    return int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])
