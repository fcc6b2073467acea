"""The command line itself: its commands, its help, and its exit codes."""

import re
import shutil
import subprocess
import sys

import pytest

import book
import commands
import environment
from paths import ROOT


def test_help_names_every_command(capsys):
    assert book.main([]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"(?m)^  ([\w-]+)", shown) == list(book.COMMANDS)


def test_make_has_a_target_for_each_command():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"(?m)^\.PHONY: (.+)$", makefile)[1].split()
    assert sorted(targets) == sorted(book.COMMANDS)
    if shutil.which("make") is None:
        pytest.skip("no make on this machine")
    done = subprocess.run(["make", f"PYTHON={sys.executable}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert "execute the notebooks" in done.stdout


def test_an_unknown_command_is_an_error(capsys):
    with pytest.raises(SystemExit) as stopped:
        book.main(["bake"])
    assert stopped.value.code == 2
    assert "bake" in capsys.readouterr().err


def test_an_old_python_is_told_which_is_needed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    assert book.main(["book"]) != 0
    assert "3.11" in capsys.readouterr().err


def test_nothing_goes_on_when_installing_failed(monkeypatch):
    monkeypatch.setattr(environment, "ensure", lambda newest: None)
    monkeypatch.setattr(book, "inside", lambda options: pytest.fail("went on"))
    assert book.main(["book"]) == 1


def test_the_exit_code_of_the_inner_python_is_the_exit_code(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@" > "$(dirname "$0")/called"\nexit 42\n')
    python.chmod(0o755)
    monkeypatch.setattr(environment, "ensure", lambda newest: str(python))
    assert book.main(["test", "--newest"]) == 42
    assert (tmp_path / "called").read_text().split()[1:] == ["test", "--here", "--newest"]


def test_colab_has_an_environment_of_its_own(monkeypatch):
    monkeypatch.setattr(environment, "ensure", lambda newest: pytest.fail("took the book's environment"))
    monkeypatch.setattr(environment, "ensure_colab", lambda: sys.executable)
    monkeypatch.setattr(commands.colab, "run_all", lambda say: say("ran"))
    assert book.main(["test-colab"]) == 0

    def fail(say):
        raise commands.colab.ColabFailed("numpy 2.1.3, now 2.4.6")

    monkeypatch.setattr(commands.colab, "run_all", fail)
    assert book.main(["test-colab"]) == 1


def test_a_failed_step_is_said_and_is_an_exit_code(monkeypatch, capsys):
    def fail(newest):
        raise commands.Failure("the kettle is empty")

    monkeypatch.setattr(commands, "book", fail)
    assert book.main(["book", "--here"]) == 1
    assert "the kettle is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    "failing", ["ruff", "ruff format", "codespell", "nbstripout", "unit tests", "slow tests"]
)
def test_each_step_of_the_test_command_counts(failing, monkeypatch):
    """Every step that ends with an error stops the command, whatever the others say."""

    def call(command, **_):
        step = " ".join(command[2:])
        marks = {
            "ruff": "ruff check",
            "ruff format": "ruff format",
            "codespell": "codespell_lib",
            "nbstripout": "nbstripout",
            "unit tests": "not slow and not site",
            "slow tests": "slow or site",
        }
        return 3 if marks[failing] in step else 0

    monkeypatch.setattr(subprocess, "call", call)
    monkeypatch.setattr(commands.address, "stamp", lambda check_only: [])
    monkeypatch.setattr(commands, "book", lambda newest: 0)
    monkeypatch.delenv("BOOK_REQUIREMENTS", raising=False)
    with pytest.raises(commands.Failure, match="exit code 3"):
        commands.test()
    monkeypatch.delenv("BOOK_REQUIREMENTS", raising=False)


def test_lint_fails_while_an_address_differs(monkeypatch):
    monkeypatch.setattr(commands, "_step", lambda *_: None)
    monkeypatch.setattr(commands.address, "stamp", lambda check_only: ["README.md"])
    with pytest.raises(commands.Failure, match=r"README\.md.*stamp"):
        commands.lint()
