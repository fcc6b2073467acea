"""Which notebooks are executed, side by side; what is noted of each; and what of its outputs is compared."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import execute
import inputs
import measure_run

PROGRAMS = {
    "01": 'device, SEED = setup("01")',
    "02": 'device, SEED = setup("02", threads=2)',
    "03": 'device, SEED = setup("03")',
    "04": 'device, SEED = setup("04")',
}


class Shelf:
    """Some notebooks, and a folder for their executed copies; executing one only sleeps."""

    def __init__(self, folder: Path, monkeypatch):
        self.folder, self.executed, self.messages = folder, folder / "executed", []
        self.requirements = folder / "requirements.txt"
        self.requirements.write_text("numpy==2.4.6\n", encoding="utf-8")
        self.started: list[str] = []
        self.stopped: list[str] = []
        self.together: set[frozenset[str]] = set()
        self.seconds, self.failing = 0.1, set()
        self.running: set[str] = set()
        paths = [folder / f"{name}.ipynb" for name in PROGRAMS]
        for path in paths:
            nbformat.write(new_notebook(cells=[new_code_cell(PROGRAMS[path.stem], id="one")]), path)
        monkeypatch.setattr(execute, "notebooks", lambda: paths)
        monkeypatch.setattr(execute, "num_cores", lambda: 2)
        monkeypatch.setattr(execute, "_step_seconds", lambda: 0.5)
        monkeypatch.setattr(execute, "LOOK", 0.02)
        monkeypatch.setattr(execute.Run, "start", lambda run: self._start(run))
        monkeypatch.setattr(execute.Run, "is_over", lambda run: run.seconds() > self.seconds)
        monkeypatch.setattr(execute.Run, "lost_its_port", lambda run: False)
        monkeypatch.setattr(execute.Run, "lost_a_race", lambda run: False)
        monkeypatch.setattr(execute.Run, "finish", lambda run: self._finish(run))
        monkeypatch.setattr(execute.Run, "stop", lambda run: self.stopped.append(run.notebook.stem))

    def _start(self, run: execute.Run) -> None:
        run.started = time.monotonic()
        self.started.append(run.notebook.stem)
        self.running.add(run.notebook.stem)
        self.together.add(frozenset(self.running))

    def _finish(self, run: execute.Run) -> str:
        self.running.remove(run.notebook.stem)
        if run.notebook.stem in self.failing:
            return f"{run.notebook.stem} is broken"
        self.note(run.notebook.stem, run.key)
        return ""

    def note(self, name: str, key: str, seconds: float = 1.0) -> None:
        """Put an executed copy on the shelf, with its record."""
        self.executed.mkdir(exist_ok=True)
        cells = [new_code_cell(PROGRAMS.get(name, ""), id="one", outputs=[new_output("stream", text="42\n")])]
        nbformat.write(new_notebook(cells=cells), self.executed / f"{name}.ipynb")
        text = json.dumps({"key": key, "seconds": seconds})
        (self.executed / f"{name}.json").write_text(text, encoding="utf-8")

    def execute(self, **options) -> list[str]:
        return execute.execute_changed(self.requirements, self.executed, say=self.messages.append, **options)


@pytest.fixture
def shelf(tmp_path, monkeypatch) -> Shelf:
    return Shelf(tmp_path, monkeypatch)


def test_everything_is_executed_once(shelf):
    assert shelf.execute() == ["01", "02", "03", "04"]
    assert sorted(shelf.started) == ["01", "02", "03", "04"]
    assert shelf.execute() == []
    assert shelf.messages[-1] == "notebooks: no code changed, nothing executed"


def test_new_prose_reaches_every_executed_copy_without_an_execution(shelf):
    """But a copy whose notebook has other code by now keeps its prose, which belongs to that code."""
    shelf.execute()
    caption = {"mystnb": {"figure": {"caption": "An answer."}}}
    for name, program in (PROGRAMS | {"03": 'device = setup("03", threads=2)'}).items():
        cells = [new_markdown_cell("Why 42?", id="why"), new_code_cell(program, id="one", metadata=caption)]
        nbformat.write(new_notebook(cells=cells), shelf.folder / f"{name}.ipynb")
    shelf.started.clear()
    assert shelf.execute(only=["02"]) == [] == shelf.started
    copies = {name: nbformat.read(shelf.executed / f"{name}.ipynb", 4).cells for name in PROGRAMS}
    assert [cell.cell_type for cell in copies.pop("03")] == ["code"]
    for prose, code in copies.values():
        assert (prose.source, code.metadata, code.outputs[0].text) == ("Why 42?", caption, "42\n")
    assert {path.suffix for path in shelf.executed.iterdir()} == {".ipynb", ".json"}


def test_one_thread_notebooks_run_side_by_side_and_others_alone(shelf):
    shelf.execute()
    assert max(map(len, shelf.together)) == 2
    assert all(group == {"02"} for group in shelf.together if "02" in group)


def test_the_longest_is_started_first(shelf):
    for name, seconds in {"01": 10, "02": 1, "03": 30, "04": 20}.items():
        shelf.note(name, "another key", seconds)
    shelf.execute()
    assert shelf.started == ["03", "04", "01", "02"]


def test_only_some(shelf):
    assert shelf.execute(only=["03", "01"]) == ["01", "03"]
    with pytest.raises(ValueError, match=r"'3'.*01, 02, 03, 04"):
        shelf.execute(only=["3"])


def test_a_failure_is_told_after_the_others_are_finished(shelf):
    shelf.failing = {"01"}
    with pytest.raises(execute.NotebookFailed, match="01 is broken"):
        shelf.execute()
    assert shelf.execute(only=["02", "03", "04"]) == []
    shelf.failing = set()
    assert shelf.execute() == ["01"]


@pytest.fixture
def preparations(shelf, monkeypatch):
    """Two preparations that note that they ran, and which notebooks had been started by then."""
    notes = shelf.folder / "notes"
    program = f"open({str(notes)!r}, 'a').write({{!r}})"
    monkeypatch.setattr(
        execute,
        "PREPARATIONS",
        tuple(
            preparation._replace(program=program.format(f"{preparation.what}\n"))
            for preparation in execute.PREPARATIONS
        ),
    )
    return lambda: notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []


@pytest.mark.parametrize(
    ("source", "prepared"),
    [
        ("folder = checkpoint('gemma')", ["the checkpoint of Gemma"]),
        (
            'summaries.pairs(); resources.checkpoint("gemma")',
            ["the corpus of docstrings", "the checkpoint of Gemma"],
        ),
        ("paragraphs = docstrings.paragraphs()", ["the corpus of docstrings"]),
        ('resources.checkpoint("encoder")  # not "gemma"', []),
    ],
)
def test_what_takes_long_once_is_made_before_the_notebooks_that_need_it(
    source, prepared, shelf, preparations, monkeypatch
):
    cells = [new_code_cell(f"{PROGRAMS['03']}\n{source}", id="one")]
    nbformat.write(new_notebook(cells=cells), shelf.folder / "03.ipynb")
    monkeypatch.setattr(
        shelf, "_start", lambda run, start=shelf._start: (shelf.messages.append("started"), start(run))
    )
    shelf.execute(only=["01", "02"])
    assert preparations() == []
    shelf.messages.clear()
    shelf.execute()
    assert preparations() == prepared
    for what in prepared:
        told = [i for i, message in enumerate(shelf.messages) if what in message]
        assert len(told) == 2 and told[1] < shelf.messages.index("started")
    shelf.execute()
    assert preparations() == prepared


def test_what_cannot_be_made_is_one_error_and_no_notebook_starts(shelf, monkeypatch, capfd):
    program = "raise resources.ResourceError('the disk is full')"
    monkeypatch.setattr(execute, "PREPARATIONS", (execute.Preparation("setup", program, "the cake"),))
    with pytest.raises(execute.NotebookFailed, match="the cake could not be made"):
        shelf.execute()
    assert shelf.started == [] and capfd.readouterr().err == "the disk is full\n"


def test_an_interrupt_stops_what_runs_and_starts_nothing_more(shelf, monkeypatch):
    def interrupt(run):
        if len(shelf.running) == 2:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(execute.Run, "is_over", interrupt)
    with pytest.raises(KeyboardInterrupt):
        shelf.execute(only=["01", "03", "04"])
    assert len(shelf.started) == 2 and sorted(shelf.stopped) == sorted(shelf.started)


def test_what_is_no_longer_needed_goes_away(shelf):
    shelf.note("99", "key")
    (shelf.executed / "a folder").mkdir()
    (shelf.executed / "a folder" / "file").write_text("", encoding="utf-8")
    shelf.note("01", inputs.key(shelf.folder / "01.ipynb", shelf.requirements))
    assert shelf.execute(only=["01"]) == []
    assert {path.name for path in shelf.executed.iterdir()} == {"01.ipynb", "01.json"}


def test_record_of_an_execution(tmp_path):
    notebook = Path("notebooks/03_tokenization.ipynb")
    path = tmp_path / "03_tokenization.json"
    assert execute.record(notebook, tmp_path) is None
    path.write_text('{"key": "half a rec', encoding="utf-8")
    assert execute.record(notebook, tmp_path) is None
    path.write_text(json.dumps({"key": "abc", "seconds": 1.5}), encoding="utf-8")
    assert execute.record(notebook, tmp_path) == {"key": "abc", "seconds": 1.5}


def test_there_is_at_least_one_core(monkeypatch):
    assert 1 <= execute.num_cores() <= os.cpu_count()
    memory = type("Memory", (), {"total": 1 << 30})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    assert execute.num_cores() == 1, "with little memory, one notebook at a time"


# --- One real run: what it leaves, and what is measured.

WORK = """\
import numpy, time
end = time.process_time() + 1.0
ones = numpy.ones((400, 1 << 17))  # 400 MiB
while time.process_time() < end: pass
"""


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Start nbmake on a notebook with one cell."""

    def start(source: str) -> execute.Run:
        monkeypatch.setattr(execute, "WORK", tmp_path / "work")
        (tmp_path / "executed").mkdir()
        notebook = executed_notebook(tmp_path, new_code_cell(source, id="one"))
        run = execute.Run(notebook, "key", tmp_path / "executed", 0.5)
        run.start()
        return run

    return start


def finished(run: execute.Run) -> str:
    while not run.is_over():
        time.sleep(0.05)
    return run.finish()


def test_the_speed_of_the_computer_is_the_mean_of_before_and_after(shelf, monkeypatch):
    measured = iter([0.3, 0.5])
    monkeypatch.setattr(execute, "_step_seconds", lambda: next(measured))
    for name in shelf.execute():
        record = execute.record(Path(name), shelf.executed)
        assert record["step_seconds"] == 0.4 and record["seconds"] == 1.0


def test_a_run_notes_what_it_took(started):
    run = started(WORK)
    assert finished(run) == ""
    record = execute.record(run.notebook, run.folder)
    assert record["key"] == "key" and record["step_seconds"] == 0.5 and record["network"] == []
    assert 400 << 20 < record["memory"] < 2000 << 20
    assert 1.0 < record["processor_seconds"] < 60
    assert nbformat.read(run.folder / run.notebook.name, 4).cells[0].execution_count == 1


def test_a_killed_run_is_a_failure(started):
    """The system kills a process that takes too much memory, and then nothing is reported."""
    run = started("import time; time.sleep(60)")
    for process in measure_run.family(run.process.pid):
        process.kill()
    assert "executed.ipynb: nbmake ended with exit code" in finished(run)
    assert execute.record(run.notebook, run.folder) is None


def test_a_run_that_never_started_can_be_stopped(tmp_path):
    execute.Run(tmp_path / "one.ipynb", "key", tmp_path, 0.5).stop()


@pytest.mark.parametrize(
    "attempt",
    [
        'socket.create_connection(("192.0.2.1", 80))',
        'socket.getaddrinfo("example.org", 443)',
        'socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", ("192.0.2.1", 53))',
        'urllib.request.urlopen("http://example.org/")',
    ],
)
def test_a_run_reaches_no_other_host(attempt, tmp_path):
    """The audit hook raises before anything is sent, in a child of the kernel as well."""
    log = tmp_path / "log"
    program = f"import socket, urllib.request\n{attempt}"
    startup = {**os.environ, "PYTHONPATH": str(execute.KERNEL_STARTUP), "BOOK_NETWORK_LOG": str(log)}
    child = [sys.executable, "-c", program]
    done = subprocess.run(child, env=startup, capture_output=True, text=True)
    assert "is another host" in done.stderr and done.returncode != 0
    assert log.read_text(encoding="utf-8").strip() in ("192.0.2.1", "example.org")


def test_a_run_may_talk_to_itself(tmp_path):
    program = (
        "import socket; server = socket.create_server(('127.0.0.1', 0)); "
        "socket.create_connection(('localhost', server.getsockname()[1]))"
    )
    startup = {"PYTHONPATH": str(execute.KERNEL_STARTUP), "BOOK_NETWORK_LOG": str(tmp_path / "log")}
    subprocess.run([sys.executable, "-c", program], env={**os.environ, **startup}, check=True)
    assert not (tmp_path / "log").exists()


def test_an_ended_process_takes_its_children_along():
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    process = subprocess.Popen([sys.executable, "-c", program])
    while len(family := measure_run.family(process.pid)) < 2:
        time.sleep(0.02)
    measure_run.end(process.pid)
    process.wait(5)
    assert [child for child in family if child.is_running()] == []


def executed_notebook(tmp_path: Path, *cells) -> Path:
    path = tmp_path / "executed.ipynb"
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


def test_text_outputs_are_what_a_cell_prints_or_returns(tmp_path):
    """A print may arrive in two parts."""
    picture = {"text/plain": "<Figure>", "image/png": "iVBORw0KGgo="}
    path = executed_notebook(
        tmp_path,
        new_markdown_cell("prose"),
        new_code_cell("a", outputs=[new_output("stream", text=part) for part in ("one\n", "two\n")]),
        new_code_cell(
            "b", outputs=[new_output("execute_result", {"text/plain": "2", "text/html": "<b>2</b>"})]
        ),
        new_code_cell("c", outputs=[new_output("display_data", picture)]),
        new_code_cell("d"),
    )
    texts = [set(cell) for cell in execute.text_outputs(path)]
    assert texts == [{"one\ntwo\n"}, {"2", "<b>2</b>"}, {"<Figure>"}, set()]


def test_text_outputs_leave_out_what_may_differ(tmp_path):
    def view(number):
        name = f"bertviz-{number:032x}"
        html = f'<div id="{name}">he</div>'
        return new_output("display_data", {"text/html": html, "application/javascript": f'draw("{name}")'})

    def outputs(number, word="he"):
        time = new_output("stream", text=f"{number} s")
        cells = [
            new_code_cell("slow()", metadata={"tags": ["timing"]}, outputs=[time]),
            new_code_cell("head_view()", outputs=[view(number)]),
            new_code_cell("word", outputs=[new_output("stream", text=word)]),
        ]
        return execute.text_outputs(executed_notebook(tmp_path, *cells))

    assert outputs(7) == outputs(2**127)
    assert outputs(7) != outputs(7, word="she")
    assert len(outputs(7)) == 2


@pytest.mark.parametrize("choice", [None, "embedded", "full"])
def test_full_resources_have_hours_and_the_network(choice, tmp_path, monkeypatch):
    """Only then may a cell take longer than any of the book does, and reach the Hub."""
    called = []
    monkeypatch.setattr(execute.subprocess, "Popen", lambda command, **how: called.append((command, how)))
    monkeypatch.setattr(execute, "WORK", tmp_path / "work")
    monkeypatch.setenv("BOOK_RESOURCES", choice) if choice else monkeypatch.delenv("BOOK_RESOURCES", False)
    notebook = executed_notebook(tmp_path, new_code_cell("1 + 1"))
    execute.Run(notebook, "key", tmp_path / "executed", 0.5).start()
    ((command, how),) = called
    (seconds,) = [int(option.split("=")[1]) for option in command if "nbmake-timeout" in option]
    assert seconds >= 3600 if choice == "full" else seconds == 600
    assert ("BOOK_NETWORK_LOG" in how["env"]) is (choice != "full")


PORT_TAKEN = "Kernel died before replying to kernel_info\nAddress already in use (addr='tcp://127.0.0.1:1')"
CELL_FAILED = "AssertionError: Address already in use"
CLAIM_FAILED = "ClaimFailed: this did not hold: twice as fast"


@pytest.mark.parametrize(
    "reports, tags, starts, failed",
    [
        pytest.param([PORT_TAKEN, ""], [], 2, False, id="a port taken once"),
        pytest.param([PORT_TAKEN] * execute.STARTS, [], execute.STARTS, True, id="a port always taken"),
        pytest.param([CELL_FAILED], [], 1, True, id="a cell that fails"),
        pytest.param([CLAIM_FAILED, ""], ["timing"], 2, False, id="slow beside another"),
        pytest.param([CLAIM_FAILED] * 2, ["timing"], 2, True, id="slow alone, too"),
        pytest.param([CLAIM_FAILED], [], 1, True, id="a claim about something else"),
        pytest.param(["ZeroDivisionError"], ["timing"], 1, True, id="another error in such a cell"),
    ],
)
def test_a_taken_port_gets_another_start_and_a_claim_about_time_one_alone(
    reports, tags, starts, failed, tmp_path, monkeypatch
):
    """Notebook 01 plays the reports, of which an empty one is a notebook that ran; 02 runs beside it."""
    over, played = set(), []

    def start(run):
        report = reports[run.starts] if run.notebook.stem == "01" else ""
        if run.starts and reports[run.starts - 1] == CLAIM_FAILED:
            assert over == {"02"}, "it has the computer for itself"
        played.append(run.notebook.stem)
        run.starts, run.started = run.starts + 1, time.monotonic()
        run.work.parent.mkdir(parents=True, exist_ok=True)
        outputs = [new_output("error", ename="E", evalue="", traceback=[])] if report else []
        cell = new_code_cell("", id="one", outputs=outputs, metadata={"tags": tags})
        nbformat.write(new_notebook(cells=[cell]), run.work)
        run.report = (tmp_path / f"report {run.notebook.stem}").open("w+", encoding="utf-8")
        run.report.write(report)
        wait = 0.3 if run.notebook.stem == "02" else 0
        program = f"import time; time.sleep({wait}); exit({int(bool(report))})"
        run.process = subprocess.Popen([sys.executable, "-c", program])

    def finish(run):
        over.add(run.notebook.stem)
        return keep(run)

    keep = execute.Run.finish
    monkeypatch.setattr(execute, "WORK", tmp_path / "work")
    monkeypatch.setattr(execute, "num_cores", lambda: 2)
    monkeypatch.setattr(execute, "LOOK", 0.02)
    monkeypatch.setattr(execute.Run, "start", start)
    monkeypatch.setattr(execute.Run, "finish", finish)
    folder = tmp_path / "executed"
    folder.mkdir()
    for name in ("01", "02"):
        (tmp_path / f"{name}.ipynb").write_text("{}", encoding="utf-8")
    runs = [execute.Run(tmp_path / f"{name}.ipynb", "key", folder, 0.3) for name in ("01", "02")]
    failures = execute._run_all(runs, lambda line: None)
    assert played.count("01") == starts and played.count("02") == 1
    assert len(failures) == failed
    if failed:
        assert failures[0].startswith(reports[-1])
        assert ("How claims are tested" in failures[0]) == ("ClaimFailed" in reports[-1])
    assert (folder / "01.json").exists() == (not failed)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are those of glibc")
def test_a_notebook_does_not_ask_the_system_again_for_memory_that_it_gave_back():
    program = """if True:
        import resource
        for turn in range(11):
            bytearray(64 << 20)  # zeroed, so that every page of it is touched
            if turn == 0:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    """
    faults = {
        name: int(subprocess.check_output([sys.executable, "-c", program], env={**os.environ, **variables}))
        for name, variables in {"as it is": {}, "in a notebook": execute.ALLOCATION}.items()
    }
    assert faults["in a notebook"] < faults["as it is"] / 10, faults
