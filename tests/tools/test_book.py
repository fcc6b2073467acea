"""The command line itself: its commands, its help, its exit codes, and how it is stopped."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from argparse import Namespace
from pathlib import Path

import pytest

import book
import colab
import commands
import environment
import processes
from paths import ROOT

OPTIONS = Namespace(newest=False, only=[], name=None)


@pytest.fixture(autouse=True)
def lock(tmp_path, monkeypatch) -> Path:
    """A lock of the test's own: the book's is held by the command that runs the tests."""
    monkeypatch.setattr(environment, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(processes, "end_like_an_interrupt", lambda: None)
    return tmp_path / "lock"


def test_help_names_every_command(capsys):
    assert book.main([]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"(?m)^  ([\w-]+)", shown) == list(book.COMMANDS)


def test_the_option_help_names_every_command_too(capsys):
    with pytest.raises(SystemExit) as stopped:
        book.main(["--help"])
    shown = capsys.readouterr().out
    assert stopped.value.code == 0
    assert re.findall(r"(?m)^  ([\w-]+) ", shown.split("commands:")[1]) == list(book.COMMANDS)


def test_make_has_a_target_for_each_command():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"(?m)^\.PHONY: (.+)$", makefile)[1].split()
    assert sorted(targets) == sorted(book.COMMANDS)
    if shutil.which("make") is None:
        pytest.skip("no make on this machine")
    done = subprocess.run(["make", f"PYTHON={sys.executable}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert "execute the notebooks" in done.stdout


REFUSED = {"bake": "bake", "book 05": "05", "test --only 05": "--only", "clean build": "build", "new": "new"}


@pytest.mark.parametrize("arguments", REFUSED)
def test_an_unknown_command_or_an_option_of_another_one_is_an_error(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        book.main(arguments.split())
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and "error" in error and REFUSED[arguments] in error


def test_an_old_python_is_told_which_is_needed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    assert book.main(["book"]) != 0
    assert "3.11" in capsys.readouterr().err


def test_nothing_goes_on_when_installing_failed(monkeypatch, capsys):
    def fail(extras, newest):
        raise environment.InstallFailed("no space left on device")

    monkeypatch.setattr(environment, "ensure", fail)
    monkeypatch.setattr(processes, "call", lambda command, **_: pytest.fail("went on"))
    assert book.main(["book"]) == 1
    assert "no space left on device" in capsys.readouterr().err


def test_the_exit_code_of_the_inner_python_is_the_exit_code(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@" > "$(dirname "$0")/called"\nexit 42\n')
    python.chmod(0o755)
    monkeypatch.setattr(environment, "ensure", lambda extras, newest: str(python))
    assert book.main(["test", "--newest"]) == 42
    assert (tmp_path / "called").read_text().split()[1:] == ["test", "--newest", "--here"]


def test_each_command_gets_the_packages_that_it_needs(monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    without = {"help", "clean", "pins", "test-colab", "stamp", "set-address", "check-release"}
    given = {}
    monkeypatch.setattr(environment, "ensure", lambda extras, newest: given.update({command: extras}))
    for command in sorted(set(book.COMMANDS) - without):
        assert book.main([command, "17_some_name"] if command == "new" else [command]) == 0
    assert {extra for extras in given.values() for extra in extras} <= set(project["optional-dependencies"])
    assert given["book"] == ["book"] and given["test"] == ["book", "test"] and given["lab"] == ["book", "lab"]


def test_colab_has_an_environment_of_its_own(monkeypatch):
    monkeypatch.setattr(environment, "ensure", lambda *_, **__: pytest.fail("took the book's environment"))
    monkeypatch.setattr(environment, "ensure_colab", lambda: "a python")
    monkeypatch.setattr(processes, "call", lambda command, **_: 0 if command[0] == "a python" else 1)
    assert book.main(["test-colab"]) == 0
    monkeypatch.setattr(colab, "run_all", lambda say: say("ran"))
    assert book.main(["test-colab", "--here"]) == 0

    def fail(say):
        raise colab.ColabFailed("numpy 2.1.3, now 2.4.6")

    monkeypatch.setattr(colab, "run_all", fail)
    assert book.main(["test-colab", "--here"]) == 1


def test_what_needs_no_packages_is_the_same_here(monkeypatch):
    done = []
    monkeypatch.setattr(environment, "clean", lambda: done.append("clean"))
    monkeypatch.setattr(environment, "compile_pins", lambda target: done.append("pins"))
    assert [book.main([command, "--here"]) for command in ("clean", "pins")] == [0, 0]
    assert done == ["clean", "pins"]


def test_a_failed_step_is_said_and_is_an_exit_code(monkeypatch, capsys):
    def fail(options):
        raise commands.Failure("the kettle is empty")

    monkeypatch.setattr(commands, "book", fail)
    assert book.main(["book", "--here"]) == 1
    assert "the kettle is empty" in capsys.readouterr().err


STEPS = ["ruff check", "ruff format", "codespell_lib", "nbstripout", "-m not slow", "-m (slow or site)"]


@pytest.mark.parametrize("failing", STEPS)
def test_each_step_of_the_test_command_counts(failing, monkeypatch):
    """Every step that ends with an error stops the command, whatever the others say."""
    monkeypatch.setattr(processes, "call", lambda command, **_: 3 if failing in " ".join(command[2:]) else 0)
    monkeypatch.setattr(commands.address, "stamp", lambda check_only: [])
    monkeypatch.setattr(commands, "book", lambda options: 0)
    monkeypatch.delenv("BOOK_REQUIREMENTS", raising=False)
    with pytest.raises(commands.Failure, match="exit code 3"):
        commands.test(OPTIONS)
    monkeypatch.delenv("BOOK_REQUIREMENTS", raising=False)


def test_lint_fails_while_an_address_differs(monkeypatch):
    monkeypatch.setattr(commands, "_step", lambda *_: None)
    monkeypatch.setattr(commands.address, "stamp", lambda check_only: ["README.md"])
    with pytest.raises(commands.Failure, match=r"README\.md.*stamp"):
        commands.lint(OPTIONS)


# --- Stopped, and not alone.

SLEEPER = """\
import subprocess, sys, time
sys.path.insert(0, {tools!r})
import processes
processes.end_like_an_interrupt()
print("ready", flush=True)
try:
    processes.call([sys.executable, "-c", {child!r}])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
CHILD = """\
import pathlib, sys, time
sys.path.insert(0, {tools!r})
import processes
processes.end_like_an_interrupt()
try:
    print("child", flush=True)
    time.sleep(60)
finally:
    time.sleep(0.6)  # putting things away takes longer than subprocess.call would wait
    print("put away", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("how", ["Ctrl-C", "told to end", "terminal closed"])
def test_what_was_started_ends_first(how):
    """Ctrl-C reaches all processes of a terminal; a service that stops a command tells the first one only."""
    tools = str(ROOT / "tools")
    program = SLEEPER.format(tools=tools, child=CHILD.format(tools=tools))

    def obey() -> None:  # Under nohup and in a script's background, the first or the second is ignored.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=obey,
    ) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "child\n"]
        if how == "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGTERM if how == "told to end" else signal.SIGHUP)
        assert process.stdout.read().split("\n")[:2] == ["put away", "interrupted"]


def test_an_interrupt_is_an_exit_code(monkeypatch, capsys):
    def interrupt(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "book", interrupt)
    assert book.main(["book", "--here"]) == 130
    assert "stopped" in capsys.readouterr().err


def at_work(lock: Path, seconds: float) -> subprocess.Popen:
    """Another command, which works under a lock for some seconds."""
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); import pathlib, processes, time\n"
        f"with processes.alone(pathlib.Path({str(lock)!r}), say=lambda text: print(text, flush=True)):\n"
        f"    print('works', flush=True); time.sleep({seconds})"
    )
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


def test_two_commands_do_not_work_in_one_folder_at_the_same_time(lock):
    with processes.alone(lock, say=pytest.fail):
        other = at_work(lock, 0)
        assert "waiting" in other.stdout.readline()
        time.sleep(0.5)
        assert other.poll() is None
    assert other.communicate(timeout=20)[0] == "works\n"


def test_the_inner_python_works_under_the_lock_of_the_outer_one(lock, monkeypatch):
    """Between the two nobody else may come, or the environment could change."""
    monkeypatch.setattr(environment, "ensure", lambda extras, newest: "python")
    monkeypatch.setattr(commands, "book", lambda options: 7)
    held = []

    def call(command, env):
        with lock.open("a") as file:
            held.append(not processes._locked(file.fileno()))
        monkeypatch.setenv(book.UNDER_LOCK, env[book.UNDER_LOCK])
        return book.main(["book", "--here"])

    monkeypatch.setattr(processes, "call", call)
    assert book.main(["book"]) == 7 and held == [True]
    assert book.UNDER_LOCK not in os.environ, "what the command starts takes locks of its own"


def test_a_killed_command_leaves_no_lock(lock):
    other = at_work(lock, 60)
    assert other.stdout.readline() == "works\n"
    other.kill()
    other.wait()
    with processes.alone(lock, say=pytest.fail):
        pass


def test_serving_keeps_nobody_from_working(monkeypatch, lock):
    monkeypatch.setattr(commands, "serve", lambda options: 0)
    with processes.alone(lock, say=pytest.fail):
        assert book.main(["serve", "--here"]) == 0
