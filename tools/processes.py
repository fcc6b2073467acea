"""Clean interruption of child processes, and a lock for commands in one folder.

Standard library only, because the command line needs it before anything is installed.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 20  # seconds for an interrupted process to clean up


def call(command: Sequence[str], **options: object) -> int:
    """Run a command and return its exit code; if this process is interrupted, the command ends first.

    `subprocess.call` kills a child a quarter of a second after Ctrl-C. Here it has time to stop its own
    children.

    Args:
        command: the program and its arguments.
        options: options of `subprocess.Popen`.

    Returns:
        The exit code.

    Raises:
        KeyboardInterrupt: the user pressed Ctrl-C, or this process got a signal to end.
    """
    with subprocess.Popen(command, **options) as child:
        try:
            return child.wait()
        except KeyboardInterrupt as interrupt:
            # At a terminal the child gets Ctrl-C too, but not a signal sent to this process alone.
            if isinstance(interrupt, Terminated):
                child.terminate()
            try:
                child.wait(PATIENCE)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                child.kill()
            raise


class Terminated(KeyboardInterrupt):
    """This process got a signal to end, which would otherwise leave its children running."""


def end_like_an_interrupt() -> None:
    """Make signals that end this process act like Ctrl-C, so that its children end with it."""

    def stop(*_: object) -> None:
        raise Terminated

    for name in ("SIGTERM", "SIGHUP", "SIGBREAK"):  # terminate; the terminal was closed
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
            signal.signal(number, stop)


@contextmanager
def alone(lock: Path, say: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock of a folder; other processes wait until this one is done.

    The system releases a lock when its process dies, so a killed command leaves nothing behind.

    Args:
        lock: the lock file, created if needed and never removed.
        say: where to report that this process waits.
    """
    with lock.open("a", encoding="utf-8") as file:
        waiting = False
        while not _locked(file.fileno()):
            if not waiting:
                say("another command is running in this folder; waiting until it is done")
            waiting = True
            time.sleep(0.2)
        yield


if sys.platform == "win32":
    import msvcrt

    def _locked(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _locked(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
