"""The virtual environment is installed when something changed, and only then. Python and pip are fakes."""

import json
import sys
from pathlib import Path

import pytest

import environment

# A fake python: it writes down how it was called, makes environments that hold a copy of itself, resolves to
# what the test laid out, and fails if the argument that stands in the file `broken` is there.
FAKE_PYTHON = """\
#!{real_python} -S
import pathlib, shutil, sys

folder, arguments = pathlib.Path({folder!r}), sys.argv[1:]
with open(folder / "calls", "a") as calls:
    calls.write(" ".join(arguments) + "\\n")
if (folder / "broken").read_text() in arguments:
    sys.exit(" ".join(["no space left on device", *arguments]))
if arguments[:2] == ["-m", "venv"]:
    target = pathlib.Path(arguments[-1]) / "bin" / "python"
    target.parent.mkdir(parents=True)
    shutil.copy(__file__, target)
if "--report" in arguments:
    shutil.copy(folder / "report.json", arguments[arguments.index("--report") + 1])
print("Collecting numpy")
"""


class Machine:
    """A clone with a fake Python, and what was called on it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.python = folder / "python"
        self.python.write_text(FAKE_PYTHON.format(real_python=sys.executable, folder=str(folder)))
        self.python.chmod(0o755)
        self.break_calls_with(None)
        self.root = folder / "clone"
        self.root.mkdir()
        self.requirements = self.root / "requirements.txt"
        self.requirements.write_text("numpy==2.4.6\npandas==3.1.1\n")
        (self.root / "pyproject.toml").write_text("[project]\n")
        self.colab_requirements = self.root / "colab.txt"
        self.colab_requirements.write_text("numpy==2.1.3\n")
        self.venv = self.root / ".venv"

    def break_calls_with(self, argument: str | None) -> None:
        (self.folder / "broken").write_text(str(argument))

    def resolves_to(self, **versions: str) -> None:
        found = [{"metadata": {"name": name, "version": version}} for name, version in versions.items()]
        (self.folder / "report.json").write_text(json.dumps({"install": found}))

    def calls(self) -> list[str]:
        """What was called since the last time this was asked."""
        path = self.folder / "calls"
        calls = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return calls


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Machine:
    if sys.platform == "win32":
        pytest.skip("the fake python is a script with a first line that Windows does not read")
    machine = Machine(tmp_path)
    monkeypatch.setattr(sys, "executable", str(machine.python))
    monkeypatch.setattr(environment, "ROOT", machine.root)
    monkeypatch.setattr(environment, "VENV", machine.venv)
    monkeypatch.setattr(environment, "VENV_NEWEST", machine.root / ".venv-newest")
    monkeypatch.setattr(environment, "VENV_COLAB", machine.root / ".venv-colab")
    monkeypatch.setattr(environment, "REQUIREMENTS", machine.requirements)
    monkeypatch.setattr(environment, "COLAB_REQUIREMENTS", machine.colab_requirements)
    monkeypatch.setattr(environment, "COLAB_PYTHON", sys.version_info[:2])
    monkeypatch.setattr(
        environment, "NEWEST_REQUIREMENTS", machine.root / "build" / "requirements-newest.txt"
    )
    return machine


def test_first_time_creates_and_installs(machine):
    assert environment.ensure() == str(machine.venv / "bin" / "python")
    create, install, package = machine.calls()
    assert create == f"-m venv --clear {machine.venv}"
    assert install.startswith("-m pip install") and install.endswith(f"-r {machine.requirements}")
    assert package.startswith("-m pip install") and package.endswith(f"--no-deps --editable {machine.root}")


def test_second_time_calls_nothing(machine):
    first = environment.ensure()
    machine.calls()
    assert environment.ensure() == first
    assert machine.calls() == []


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml"])
def test_changed_pins_or_ranges_install_again_without_a_new_environment(machine, name):
    environment.ensure()
    machine.calls()
    with open(machine.root / name, "a") as file:
        file.write("# changed\n")
    environment.ensure()
    assert [call.split()[1] for call in machine.calls()] == ["pip", "pip"]
    environment.ensure()
    assert machine.calls() == []


def test_a_removed_python_is_made_again(machine):
    environment.ensure()
    machine.calls()
    (machine.venv / "bin" / "python").unlink()
    (machine.venv / "bin").rmdir()
    assert environment.ensure() is not None
    assert [call.split()[1] for call in machine.calls()] == ["venv", "pip", "pip"]


@pytest.mark.parametrize("broken", ["venv", "-r", "--editable"])
def test_after_a_failure_there_is_no_stamp_and_the_next_call_tries_again(machine, broken, capfd):
    machine.break_calls_with(broken)
    assert environment.ensure() is None
    assert not (machine.venv / "installed").exists()
    assert "no space left on device" in capfd.readouterr().err
    machine.calls()
    machine.break_calls_with(None)
    assert environment.ensure() is not None
    assert "pip" in machine.calls()[-1]


def test_a_failed_update_removes_the_former_stamp(machine):
    environment.ensure()
    former = machine.requirements.read_text()
    machine.requirements.write_text("numpy==2.4.7\n")
    machine.break_calls_with("-r")
    assert environment.ensure() is None
    machine.break_calls_with(None)
    machine.requirements.write_text(
        former
    )  # pip may have changed half of the packages: the former stamp would lie
    machine.calls()
    assert environment.ensure() is not None
    assert machine.calls() != []


def test_pins_are_exact_and_sorted_and_name_no_build(machine):
    machine.resolves_to(torch="2.13.0+cpu", Jinja2="3.1.6", typing_extensions="4.16.0")
    assert environment.compile_pins(machine.requirements) == 0
    header, *pins = machine.requirements.read_text().splitlines()
    assert header.startswith("# Exact pins")
    assert pins == ["jinja2==3.1.6", "torch==2.13.0", "typing-extensions==4.16.0"]
    assert machine.calls()[0].endswith(f"{machine.root}[book,test,pin]")


def test_the_package_itself_is_no_pin(machine):
    machine.resolves_to(**{"transformers-taken-apart": "0.1.0", "numpy": "2.4.6"})
    environment.compile_pins(machine.requirements)
    assert machine.requirements.read_text().splitlines()[1:] == ["numpy==2.4.6"]


def test_pins_that_cannot_be_resolved_leave_the_former_ones(machine):
    before = machine.requirements.read_text()
    machine.break_calls_with("--dry-run")
    assert environment.compile_pins(machine.requirements) != 0
    assert machine.requirements.read_text() == before


def test_newest_versions_get_an_environment_of_their_own(machine):
    machine.resolves_to(numpy="2.9.0", torch="2.14.0")
    before = machine.requirements.read_text()
    python = environment.ensure(newest=True)
    assert python == str(machine.root / ".venv-newest" / "bin" / "python")
    assert machine.calls()[0].endswith("[book,test]")
    assert "torch==2.14.0" in (machine.root / "build" / "requirements-newest.txt").read_text()
    assert machine.requirements.read_text() == before
    assert not machine.venv.exists()


def test_colab_gets_an_environment_of_its_own_without_the_package(machine):
    python = environment.ensure_colab()
    assert python == str(machine.root / ".venv-colab" / "bin" / "python")
    create, install = machine.calls()
    assert create == f"-m venv --clear {machine.root / '.venv-colab'}"
    assert install.endswith(f"-r {machine.colab_requirements}")
    assert environment.ensure_colab() == python
    assert machine.calls() == [] and not machine.venv.exists()


@pytest.mark.parametrize("works", [True, False])
def test_colab_gets_its_own_version_of_python_where_there_is_one(works, machine, monkeypatch, capfd):
    """A command that a version manager put there may only say that it is not active."""
    other = machine.folder / "python9.8"
    other.write_text(f"#!/bin/sh\nexit {0 if works else 127}\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(machine.folder), prepend=":")
    monkeypatch.setattr(environment, "COLAB_PYTHON", (9, 8))
    taken = []
    monkeypatch.setattr(environment, "_create", lambda folder, base: taken.append(base))
    assert environment.ensure_colab() is None  # because nothing was created
    assert taken == [str(other) if works else sys.executable]
    assert ("no Python 9.8" in capfd.readouterr().out) is not works


def test_clean_removes_what_was_made(machine, monkeypatch):
    build = machine.root / "build"
    (build / "html").mkdir(parents=True)
    monkeypatch.setattr(environment, "BUILD", build)
    environment.ensure()
    environment.ensure_colab()
    assert environment.clean() == 0
    left = {path.name for path in machine.root.iterdir()}
    assert left == {"pyproject.toml", "requirements.txt", "colab.txt"}
    assert environment.clean() == 0
