"""What the topics of the benchmark share: text, a clock, and the form of a result."""

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

    what: str  # what was done, to how much
    ours: float  # seconds, or what `unit` says
    compared_with: str  # the other way
    theirs: float  # likewise
    unit: str = "s"
    interval: Interval | None = None  # of the ratio, where it was measured in many turns

    @property
    def ratio(self) -> float:
        """How many times as much the other way takes."""
        return self.theirs / self.ours


def paragraphs(package: str, number_of_bytes: int) -> list[str]:
    """Take paragraphs of a package's docstrings until there is enough text.

    Args:
        package: Name of an installed package.
        number_of_bytes: Size wanted, in UTF-8.

    Returns:
        The paragraphs, in a fixed order.

    Raises:
        ValueError: The package has less text.
    """
    taken, size = [], 0
    for paragraph in docstrings.load(packages=(package,)):
        taken.append(paragraph.text)
        size += len(paragraph.text.encode("utf-8"))
        if size >= number_of_bytes:
            return taken
    raise ValueError(f"{package} has {size} bytes of docstrings, not {number_of_bytes}")


def processor_seconds(
    work: Callable[[Any], Any], prepare: Callable[[], Any] = lambda: None, repetitions: int = 5
) -> tuple[float, Any]:
    """Measure the processor time of a piece of work; other programs disturb it less than time on the wall.

    Args:
        work: What to measure; gets what `prepare` returned.
        prepare: Called before each repetition, not measured.
        repetitions: The shortest of so many measurements counts.

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
    """Measure two ways turn by turn, so that whatever else the computer does disturbs both alike.

    Args:
        what: what is done.
        ours: one way to do it.
        compared_with: the other way.
        theirs: does it.
        turns: how often each is measured; one turn before them warms up.

    Returns:
        The median of each, in seconds on the wall, and as interval where the median of the turns' ratios lies
        with 95% (bootstrap over the turns).
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
