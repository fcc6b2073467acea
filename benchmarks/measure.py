"""Shared by the topics of the benchmark: text, a clock, and the type of a result."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from chapters_src.data import docstrings
from chapters_src.evaluation import Interval, bootstrap_interval


@dataclass(frozen=True)
class Result:
    """One line of the table: the same work done in two ways."""

    what: str  # the task and its size
    ours: float  # seconds, or in `unit`
    compared_with: str  # the other way
    theirs: float  # likewise
    unit: str = "s"
    interval: Interval | None = None  # of the ratio, where it was measured in many turns

    @property
    def ratio(self) -> float:
        """The other way's time over ours: in turns the median of their ratios, as in the interval."""
        return self.theirs / self.ours if self.interval is None else self.interval.estimate


def paragraphs(package: str, number_of_bytes: int) -> list[str]:
    """Take paragraphs of a package's docstrings until there is enough text.

    Args:
        package: Name of an installed package.
        number_of_bytes: Size in UTF-8.

    Returns:
        The paragraphs, in a fixed order.

    Raises:
        ValueError: The package has less text.
    """
    taken, size = [], 0
    for paragraph in docstrings.paragraphs(packages=(package,)):
        taken.append(paragraph.text)
        size += len(paragraph.text.encode("utf-8"))
        if size >= number_of_bytes:
            return taken
    raise ValueError(f"{package} has {size} bytes of docstrings, not {number_of_bytes}")


def processor_seconds(
    work: Callable[[Any], Any], prepare: Callable[[], Any] = lambda: None, repetitions: int = 5
) -> tuple[float, Any]:
    """Measure the processor time of a piece of work; other programs affect it less than wall-clock time.

    Args:
        work: What to measure; gets what `prepare` returned.
        prepare: Called before each repetition, not measured.
        repetitions: Number of measurements, of which the shortest counts.

    Returns:
        Seconds, and what the work returned.
    """
    shortest, result = float("inf"), None
    for _ in range(repetitions):
        prepared = prepare()
        begin = time.process_time()
        result = work(prepared)
        shortest = min(shortest, time.process_time() - begin)
    return shortest, result


def taking_turns(
    what: str, ours: Callable[[], object], compared_with: str, theirs: Callable[[], object], turns: int
) -> Result:
    """Measure two ways in turn, so that other load affects both equally.

    Args:
        what: the task.
        ours: does it one way.
        compared_with: the name of the other way.
        theirs: does it the other way.
        turns: number of measurements of each, after one to warm up.

    Returns:
        The median of each, in wall-clock seconds, and the 95% interval of the median ratio (bootstrap over
        the turns).
    """
    seconds: list[list[float]] = [[], []]
    for turn in range(turns + 1):
        for way in (0, 1) if turn % 2 else (1, 0):
            begin = time.perf_counter()
            (ours, theirs)[way]()
            if turn:
                seconds[way].append(time.perf_counter() - begin)
    ratios = [slow / quick for quick, slow in zip(*seconds, strict=True)]
    medians = [statistics.median(times) for times in seconds]
    interval = bootstrap_interval(np.median, ratios)
    return Result(what, medians[0], compared_with, medians[1], interval=interval)
