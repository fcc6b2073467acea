"""Execute the notebooks whose inputs changed, each exactly once, through nbmake.

    notebooks/*.ipynb --stage--> build/running --nbmake--> build/executed

Each executed notebook has a record: the key of its inputs (see `inputs`), and the time and memory of the run.
A notebook whose key has not changed is not executed; if its prose has changed, the executed copy is updated.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

import nbformat
import psutil

import inputs
import measure_run
from paths import EXECUTED, ROOT, WORK, notebooks

CELL_TIMEOUT = 600  # seconds
FULL_CELL_TIMEOUT = 4 * 60 * 60  # seconds; with full resources a cell may train a large model on a processor
HEARTBEAT = 20  # seconds without news, after which a line says what is still running
LOOK = 0.3  # seconds between polls of what is running
STARTS = 3  # attempts to start a kernel
ROOM = 3 << 30  # bytes of memory for each notebook that runs in parallel
KERNEL_STARTUP = ROOT / "tools" / "kernel_startup"
STEP_PROGRAM = ROOT / "tools" / "training_step.py"
# Make glibc reuse the memory of large tensors instead of returning it to the system.
ALLOCATION = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
CLAIM_FAILED = (
    "a claim did not hold (its sentence stands above, behind ClaimFailed). Find out why. If the change is "
    "right, let condition and sentence say what holds now: CONTRIBUTING.md, How claims are tested.\n"
)
PREPARE = """\
import sys
from chapters_src import resources
from chapters_src.data import docstrings, summaries
try:
    {program}
except resources.ResourceError as error:
    sys.exit(str(error))
"""


class Preparation(NamedTuple):
    """What takes long, once per computer, and would count for whichever notebook comes first."""

    mention: str  # In a notebook that needs it; a regular expression.
    program: str
    what: str


PREPARATIONS = (
    Preparation(
        r"\b(docstrings\.paragraphs|summaries\.pairs)\(",
        "summaries.pairs(); docstrings.paragraphs()",
        "the corpus of docstrings",
    ),
    Preparation(
        r"""\bcheckpoint\(\\?["']gemma\\?["']""", "resources.checkpoint('gemma')", "the checkpoint of Gemma"
    ),
)


class NotebookFailed(Exception):
    """A notebook raised an error, and the message holds nbmake's report; or what it needs is not there."""


class UnknownNotebook(ValueError):
    """No notebook has the requested name."""


def record(notebook: Path, folder: Path = EXECUTED) -> dict | None:
    """Return the record of the last successful execution, or None.

    It has "key", "seconds" (wall-clock), "processor_seconds" (of all cores), "step_seconds" (of a training
    step, see `training_step`, the mean of one before and one after all runs), "memory" (bytes, peak of one
    process) and "network" (other hosts that it tried to reach).
    """
    try:
        return json.loads((folder / f"{notebook.stem}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write_record(notebook: Path, content: dict, folder: Path) -> None:
    target = folder / f"{notebook.stem}.json"
    partial = target.with_suffix(".partial")
    partial.write_text(json.dumps(content), encoding="utf-8")
    partial.replace(target)


def execute_changed(
    requirements: Path, folder: Path = EXECUTED, only: Collection[str] = (), say: Callable = print
) -> list[str]:
    """Execute every notebook whose key differs from that of its executed copy in `folder`.

    Args:
        requirements: the pins in use, part of the key.
        folder: where executed notebooks go, if they ran without an error.
        only: prefixes of names, such as "05": execute no others.
        say: where progress goes.

    Returns:
        The names of the notebooks that were executed.

    Raises:
        UnknownNotebook: no notebook has one of the prefixes.
        NotebookFailed: a notebook raised an error, and the others are finished and kept first; or what one of
            them needs cannot be made, and none is executed.
    """
    selected = chosen(only)
    folder.mkdir(parents=True, exist_ok=True)
    everything = notebooks()
    _forget_removed(folder, {notebook.stem for notebook in everything})
    keys = {notebook: inputs.key(notebook, requirements) for notebook in everything}
    stale = []
    for notebook, key in keys.items():
        if _has_key(notebook, key, folder):
            _refresh_prose(notebook, folder / notebook.name)
        elif notebook in selected:
            stale.append(notebook)
    if not stale:
        say("notebooks: no code changed, nothing executed")
        return []
    stale.sort(key=lambda notebook: _expected_seconds(notebook, folder), reverse=True)
    _prepare(stale, say)
    step_seconds = _step_seconds()
    say(f"notebooks: executing {len(stale)} of {len(everything)}; a training step takes {step_seconds:.2f} s")
    failures = _run_all([Run(notebook, keys[notebook], folder, step_seconds) for notebook in stale], say)
    if failures:
        raise NotebookFailed("\n".join(failures))
    between = (step_seconds + _step_seconds()) / 2  # other work on this computer may have begun or ended
    for notebook in stale:
        _write_record(notebook, {**record(notebook, folder), "step_seconds": round(between, 3)}, folder)
    return sorted(notebook.stem for notebook in stale)


def chosen(only: Collection[str] = ()) -> list[Path]:
    """Return the notebooks whose names begin with one of `only`, or all if it is empty.

    Raises:
        UnknownNotebook: no notebook has one of the prefixes.
    """
    everything = notebooks()
    for beginning in only:
        if not any(notebook.name.startswith(beginning) for notebook in everything):
            names = ", ".join(notebook.stem for notebook in everything)
            raise UnknownNotebook(f"no notebook begins with {beginning!r}; there are {names}")
    return [notebook for notebook in everything if not only or notebook.name.startswith(tuple(only))]


def is_current(notebook: Path, requirements: Path, folder: Path = EXECUTED) -> bool:
    """Return whether the executed copy in a folder has the current code, data, versions and choices."""
    return _has_key(notebook, inputs.key(notebook, requirements), folder)


def _has_key(notebook: Path, key: str, folder: Path) -> bool:
    return (record(notebook, folder) or {}).get("key") == key and (folder / notebook.name).exists()


def _refresh_prose(notebook: Path, executed: Path) -> None:
    """Update an executed copy from its notebook, except for outputs: prose, captions, tags."""
    new, old = nbformat.read(notebook, 4), nbformat.read(executed, 4)
    code = [[cell for cell in book.cells if cell.cell_type == "code"] for book in (new, old)]
    for cell, ran in zip(*code, strict=True):
        cell.outputs, cell.execution_count = ran.outputs, ran.execution_count
        cell.metadata |= {name: ran.metadata[name] for name in ran.metadata if name == "execution"}
    if new.cells != old.cells:
        new.metadata = old.metadata | new.metadata  # nbmake notes the language
        partial = executed.with_suffix(".partial")
        nbformat.write(new, partial)
        partial.replace(executed)


def _prepare(chosen: Iterable[Path], say: Callable) -> None:
    """Make what is made once per computer, such as the corpus of docstrings, if a notebook needs it."""
    sources = [notebook.read_text(encoding="utf-8") for notebook in chosen]
    for mention, program, what in PREPARATIONS:
        if not any(re.search(mention, source) for source in sources):
            continue
        say(f"notebooks: {what}, which is made once on a computer")
        began = time.monotonic()
        code = PREPARE.format(program=program)
        if subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode != 0:
            raise NotebookFailed(f"{what} could not be made (see above), and a notebook needs it")
        say(f"notebooks: {what} is there after {time.monotonic() - began:.0f} s")


def num_threads(notebook: Path) -> int:
    """Return the number of threads that a notebook requests in `setup`."""
    asked = re.search(r"device, SEED = setup\([^)]*threads=(\d+)", notebook.read_text(encoding="utf-8"))
    return int(asked[1]) if asked else 1


def num_cores() -> int:
    """Return the number of usable cores, each with enough memory for a notebook."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(allowed, psutil.virtual_memory().total // ROOM))


@dataclass
class Run:
    """One execution of one notebook."""

    notebook: Path
    key: str
    folder: Path  # where it goes on success
    step_seconds: float
    use: measure_run.Use = field(default_factory=measure_run.Use)
    process: subprocess.Popen | None = None
    report: IO[str] | None = None
    started: float = 0.0
    starts: int = 0
    raced: bool = False  # whether it has had its second measurement of time

    @property
    def work(self) -> Path:
        """The copy that is executed."""
        return WORK / self.folder.name / self.notebook.name

    @property
    def network(self) -> Path:
        """The log of other hosts that the run tried to reach."""
        return self.work.with_suffix(".network")

    def start(self) -> None:
        """Start nbmake on a copy, detached from the terminal, so that Ctrl-C reaches this process only."""
        self.work.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.notebook, self.work)
        self.network.unlink(missing_ok=True)
        full = os.environ.get("BOOK_RESOURCES") == "full"
        command = [sys.executable, "-m", "pytest", "--disable-plugin-autoload", "-p", "nbmake.pytest_plugin"]
        command += ["--nbmake", "--overwrite"]
        command += [f"--nbmake-timeout={FULL_CELL_TIMEOUT if full else CELL_TIMEOUT}"]
        command += ["-q", "-p", "no:cacheprovider", "--color=no"]
        settings = self.work.parent / "pytest.ini"  # not the settings of the book's own tests
        settings.write_text("[pytest]\n", encoding="utf-8")
        command += [f"--rootdir={self.work.parent}", "-c", str(settings), str(self.work)]
        variables = _environment() | ALLOCATION | ({} if full else {"BOOK_NETWORK_LOG": str(self.network)})
        self.report = self.work.with_suffix(".report").open("w+", encoding="utf-8", errors="replace")
        self.started = time.monotonic()
        self.starts += 1
        self.process = subprocess.Popen(
            command, env=variables, stdout=self.report, stderr=subprocess.STDOUT, **_group_of_its_own()
        )

    def is_over(self) -> bool:
        """Sample its resources, and return whether it has ended."""
        self.use.look(self.process.pid)
        return self.process.poll() is not None

    def seconds(self) -> float:
        """Return the wall-clock time since the start."""
        return time.monotonic() - self.started

    def said(self) -> str:
        """Return nbmake's report so far."""
        self.report.seek(0)
        return self.report.read()

    def lost_its_port(self) -> bool:
        """Return whether it ended before its first cell because another process took the kernel's port.

        Jupyter picks free ports before the kernel opens them; another process may take one in between.
        """
        failed = self.process.returncode != 0 and self.starts < STARTS
        return failed and all(sign in self.said() for sign in ("before replying", "Address already in use"))

    def lost_a_race(self) -> bool:
        """Return whether it ended at a claim about measured time, for the first time.

        Beside other notebooks such a claim may be false without anything being wrong.
        """
        if self.process.returncode == 0 or self.raced or "ClaimFailed" not in self.said():
            return False
        try:
            cells = nbformat.read(self.work, 4).cells
        except (OSError, ValueError):  # a copy that was not written whole
            return False
        failed = [
            cell for cell in cells if any(out.output_type == "error" for out in cell.get("outputs", ()))
        ]
        return bool(failed) and "timing" in failed[0].metadata.get("tags", ())

    def finish(self) -> str:
        """Keep the result with its record; return nbmake's report on failure."""
        said = self.said()
        self.report.close()
        if self.process.returncode != 0:
            if "ClaimFailed" in said:
                said = f"{said.rstrip()}\n\n{CLAIM_FAILED}"
            return said or f"{self.notebook.name}: nbmake ended with exit code {self.process.returncode}"
        target = self.folder / self.notebook.name
        # A kill between the next lines must not leave a record that does not belong to the notebook.
        target.with_suffix(".json").unlink(missing_ok=True)
        self.work.replace(target)
        _write_record(target, self.as_record(), self.folder)
        return ""

    def as_record(self) -> dict:
        """Return what `record` reads later."""
        asked = self.network.read_text(encoding="utf-8").split() if self.network.exists() else []
        return {
            "key": self.key,
            "seconds": round(self.seconds(), 1),
            "processor_seconds": round(self.use.processor_seconds, 1),
            "step_seconds": round(self.step_seconds, 3),
            "memory": self.use.memory,
            "network": sorted(set(asked)),
        }

    def stop(self) -> None:
        """End it and its child processes."""
        if self.process is not None:  # else it was about to start
            measure_run.end(self.process.pid)
            self.process.wait()
        if self.report is not None:
            self.report.close()


def _run_all(waiting: list[Run], say: Callable) -> list[str]:
    """Run notebooks in parallel, one thread per core, in order; return the reports of failures.

    A notebook in which a claim about measured time was false is run once more at the end, with nothing beside
    it.
    """
    cores, running, failures, alone = num_cores(), [], [], []
    start = said = time.monotonic()
    try:
        while waiting or running or alone:
            if alone and not (waiting or running):  # one at a time, with nothing beside it
                run = alone.pop(0)
                running.append(run)
                run.start()
            for run in [run for run in running if run.is_over()]:
                if run.lost_its_port():
                    run.report.close()
                    run.start()
                    continue
                running.remove(run)
                if run.lost_a_race():
                    say(f"  again  {run.notebook.stem}, later and alone: a claim about time was false")
                    run.report.close()
                    run.raced, run.use = True, measure_run.Use()
                    alone.append(run)
                    continue
                failure = run.finish()
                say(f"  {'FAILED' if failure else 'done':6} {run.notebook.stem} in {run.seconds():.0f} s")
                failures += [failure] if failure else []
                said = time.monotonic()
            for run in list(waiting):
                busy = sum(min(cores, num_threads(other.notebook)) for other in running)
                if busy + min(cores, num_threads(run.notebook)) <= cores:
                    waiting.remove(run)
                    running.append(run)
                    run.start()
            if time.monotonic() - said > HEARTBEAT:
                said = time.monotonic()
                names = ", ".join(sorted(run.notebook.stem for run in running))
                later = f"; {len(waiting)} wait" if waiting else ""
                say(f"  after {said - start:.0f} s, running: {names}{later}")
            time.sleep(LOOK if running else 0)
    finally:
        for run in running:
            run.stop()
    return failures


def _expected_seconds(notebook: Path, folder: Path) -> float:
    """Return the last running time of a notebook, else an estimate from its threads and file size."""
    known = record(notebook, folder) or record(notebook) or {}
    return known.get("seconds", num_threads(notebook) * notebook.stat().st_size / 1000)


def _step_seconds() -> float:
    """Measure the time of a training step on this computer."""
    run = subprocess.run(
        [sys.executable, str(STEP_PROGRAM)],
        env=_environment() | {"BOOK_RESOURCES": "embedded", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if run.returncode != 0:
        raise NotebookFailed(f"a training step, which calibrates the time limits, failed:\n{run.stderr}")
    return float(run.stdout)


def _group_of_its_own() -> dict:
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def text_outputs(executed: Path) -> list[list[str]]:
    """Return the text that each code cell printed or returned, without cells tagged `timing`."""
    return [
        texts_of(cell)
        for cell in nbformat.read(executed, 4).cells
        if cell.cell_type == "code" and "timing" not in cell.metadata.get("tags", [])
    ]


def texts_of(cell: nbformat.NotebookNode) -> list[str]:
    """Return the text that a code cell printed or returned.

    Printed output is one text, however many parts the kernel sent. BertViz's random identifiers are replaced
    by a fixed one.
    """
    printed = "".join(output["text"] for output in cell.outputs if output["output_type"] == "stream")
    texts = [text for output in cell.outputs for text in _texts(output)]
    return [_normal(text) for text in [printed, *texts] if text]


def _texts(output: dict) -> Iterable[str]:
    for kind, data in output.get("data", {}).items():
        if kind.startswith("text/") or kind == "application/javascript":
            yield data


def _normal(text: str) -> str:
    return re.sub(r"bertviz-[0-9a-f]{32}", "bertviz-ID", text)


def _environment() -> dict[str, str]:
    """Return variables for the package from this tree, no progress bars, and this environment's kernels."""
    full = os.environ.get("BOOK_RESOURCES") == "full"
    # A local proxy would reach other hosts.
    inherited = {k: v for k, v in os.environ.items() if full or not k.lower().endswith("_proxy")}
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(KERNEL_STARTUP))),
        "PYTHONUTF8": "1",
        "BOOK_BUILD": "1",
        "HF_HUB_OFFLINE": "0" if full else "1",
        "OMP_WAIT_POLICY": "PASSIVE",  # a thread that waits leaves its core to others
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _forget_removed(folder: Path, names: set[str]) -> None:
    for path in folder.iterdir():
        if path.stem not in names:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
