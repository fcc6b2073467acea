"""Measure the processor time and memory of a process and its descendants, while they run."""

from contextlib import suppress
from dataclasses import dataclass, field

import psutil

GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


@dataclass
class Use:
    """The resources that a family of processes has used so far."""

    processor: dict[int, float] = field(default_factory=dict)  # seconds, by process
    memory: int = 0  # bytes, the peak of a single process

    def look(self, pid: int) -> None:
        """Sample a process and its descendants. Anything after the last sample is missed."""
        for process in family(pid):
            with suppress(*GONE):
                times = process.cpu_times()
                self.processor[process.pid] = times.user + times.system
                self.memory = max(self.memory, _most_memory(process))

    @property
    def processor_seconds(self) -> float:
        """Total seconds on all cores."""
        return sum(self.processor.values())


def family(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants; nothing if it is gone."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except GONE:
        return []


def end(pid: int, patience: float = 5) -> None:
    """End a process and its descendants: politely, and by force after `patience` seconds."""
    processes = family(pid)
    for process in processes:
        with suppress(*GONE):
            process.terminate()
    _, left = psutil.wait_procs(processes, timeout=patience)
    for process in left:
        with suppress(*GONE):
            process.kill()


def _most_memory(process: psutil.Process) -> int:
    """Return the peak memory of a process where the system records it, else its current memory."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        now = process.memory_info()
        return getattr(now, "peak_wset", now.rss)
