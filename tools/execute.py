"""Execute the notebooks whose inputs changed, each exactly once, through nbmake.

    notebooks/*.ipynb --stage--> build/running --nbmake--> build/executed

A notebook depends on four things: its own source, the helper package as a whole, the requirements and the
chosen resources. `key` is the hash of the four; a notebook whose executed copy has that key is left alone.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

import nbformat

from paths import EXECUTED, PACKAGE, ROOT, WORK, notebooks

CELL_TIMEOUT = 600  # seconds
FULL_CELL_TIMEOUT = 4 * 60 * 60  # seconds; with full resources a cell may train a large model on a processor
HEARTBEAT = 20  # seconds without news, after which a line says what is still running
PROCESSES = 2  # notebooks at a time, those that run on one thread


class NotebookFailed(Exception):
    """A notebook raised an error; the message holds nbmake's report."""


def key(notebook: Path, requirements: Path, package: Path = PACKAGE, resources: str | None = None) -> str:
    """The hash that decides whether a notebook is executed again.

    Args:
        notebook: the committed notebook.
        requirements: the pins in use.
        package: the folder of the helper package.
        resources: the choice of resources; by default that of the variable BOOK_RESOURCES.

    Returns:
        A SHA-256 digest in hexadecimal.
    """
    digest = hashlib.sha256()
    sources = sorted(
        path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    for path in [notebook, requirements, *sources]:
        name = path.relative_to(package).as_posix() if path.is_relative_to(package) else path.name
        digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    digest.update((resources or os.environ.get("BOOK_RESOURCES", "embedded")).encode())
    return digest.hexdigest()


def record(notebook: Path, folder: Path = EXECUTED) -> dict | None:
    """Key and seconds of the last execution without an error; None if there was none."""
    try:
        return json.loads((folder / f"{notebook.stem}.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def execute_changed(requirements: Path, folder: Path = EXECUTED, say: Callable = print) -> list[str]:
    """Execute every notebook whose key differs from that of its executed copy in `folder`.

    Args:
        requirements: the pins in use, a part of the key.
        folder: where executed notebooks go; a notebook arrives there only if it ran without an error.
        say: where progress goes.

    Returns:
        The names of the notebooks that were executed.

    Raises:
        NotebookFailed: if any raised an error. The others are finished and kept first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    keys = {notebook: key(notebook, requirements) for notebook in notebooks()}
    _forget_removed(folder, {notebook.stem for notebook in keys})
    stale = [
        n for n in keys if (record(n, folder) or {}).get("key") != keys[n] or not (folder / n.name).exists()
    ]
    if not stale:
        say("notebooks: nothing changed, nothing executed")
        return []
    alone = [notebook for notebook in stale if takes_all_cores(notebook)]
    side_by_side = [notebook for notebook in stale if notebook not in alone]
    say(f"notebooks: executing {len(stale)} of {len(keys)}, {PROCESSES} at a time")
    failures, start = [], time.monotonic()
    for batch, processes in ((side_by_side, PROCESSES), (alone, 1)):
        failures += _execute_all(
            {notebook: keys[notebook] for notebook in batch}, processes, folder, start, say
        )
    if failures:
        raise NotebookFailed("\n".join(failures))
    return [notebook.stem for notebook in stale]


def takes_all_cores(notebook: Path) -> bool:
    """Whether a notebook asks for more than one thread: then nothing runs beside it, or both would crawl."""
    return re.search(r"device = setup\([^)]*threads=", notebook.read_text(encoding="utf-8")) is not None


def _execute_all(
    wanted: dict[Path, str], processes: int, folder: Path, start: float, say: Callable
) -> list[str]:
    """Run notebooks, so many at a time; the reports of those that failed."""
    failures = []
    with ThreadPoolExecutor(processes) as pool:
        running = {
            pool.submit(_execute, notebook, wanted[notebook], folder): notebook.stem for notebook in wanted
        }
        while running:
            finished, _ = wait(running, timeout=HEARTBEAT, return_when=FIRST_COMPLETED)
            if not finished:
                names = ", ".join(sorted(running.values()))
                say(f"  after {time.monotonic() - start:.0f} s, still to come: {names}")
            for future in finished:
                name, (seconds, failure) = running.pop(future), future.result()
                say(f"  {'FAILED' if failure else 'done':6} {name} in {seconds:.0f} s")
                failures += [failure] if failure else []
    return failures


def text_outputs(executed: Path) -> list[list[str]]:
    """The text that each code cell printed or returned, cells with the tag `timing` left out.

    What a cell printed is one text, in however many parts the kernel sent it. BertViz draws a new random
    identifier for each view; it is made the same everywhere.
    """
    outputs = []
    for cell in nbformat.read(executed, 4).cells:
        if cell.cell_type == "code" and "timing" not in cell.metadata.get("tags", []):
            printed = "".join(output["text"] for output in cell.outputs if output["output_type"] == "stream")
            texts = [text for output in cell.outputs for text in _texts(output)]
            outputs.append([_normal(text) for text in [printed, *texts] if text])
    return outputs


def _texts(output: dict) -> Iterable[str]:
    for kind, data in output.get("data", {}).items():
        if kind.startswith("text/") or kind == "application/javascript":
            yield data


def _normal(text: str) -> str:
    return re.sub(r"bertviz-[0-9a-f]{32}", "bertviz-ID", text)


def _execute(notebook: Path, wanted: str, folder: Path) -> tuple[float, str]:
    """Run one notebook; its seconds, and nbmake's report where it failed (else an empty text)."""
    work = WORK / folder.name / notebook.name
    work.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(notebook, work)
    timeout = FULL_CELL_TIMEOUT if os.environ.get("BOOK_RESOURCES") == "full" else CELL_TIMEOUT
    command = [sys.executable, "-m", "pytest", "--nbmake", "--overwrite", f"--nbmake-timeout={timeout}"]
    options = ["-q", "-p", "no:cacheprovider", "--color=no", f"--rootdir={work.parent}", "-c", os.devnull]
    start = time.monotonic()
    run = subprocess.run(
        [*command, *options, str(work)],
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    seconds = time.monotonic() - start
    if run.returncode != 0:
        return seconds, run.stdout
    (folder / f"{notebook.stem}.json").unlink(
        missing_ok=True
    )  # a kill between the next two lines must not match
    work.replace(folder / notebook.name)
    partial = folder / f"{notebook.stem}.partial"
    partial.write_text(json.dumps({"key": wanted, "seconds": round(seconds, 1)}))
    partial.replace(folder / f"{notebook.stem}.json")
    return seconds, ""


def _environment() -> dict[str, str]:
    """The package from this tree, no progress bars on the page, and kernels of this environment only."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "BOOK_BUILD": "1",
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _forget_removed(folder: Path, names: set[str]) -> None:
    for path in folder.iterdir():
        if path.stem not in names:
            path.unlink()
