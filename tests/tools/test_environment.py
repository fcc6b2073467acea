"""An environment is made when something about it changed, and only then. Python, pip and uv are fakes."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import environment
from paths import ROOT

COMPILED = """\
jinja2==3.1.6 \\
    --hash=sha256:11 \\
    --hash=sha256:22
nvidia-cublas==13.1.1.3 ; sys_platform == 'linux' \\
    --hash=sha256:33
nvidia==1 \\
    --hash=sha256:34
torch==2.13.0+cpu \\
    --hash=sha256:44 \\
    --hash=sha256:55
torch-things==1.0 \\
    --hash=sha256:66
triton==3.7.1 ; sys_platform == 'linux' \\
    --hash=sha256:77
"""


class Machine:
    """A clone on a machine whose python, pip and uv only note what they are asked for."""

    def __init__(self, folder: Path, monkeypatch):
        self.python, self.root = folder / "python", folder / "clone"
        self.broken, self.pip = None, ""  # an argument with which a call fails; pip's settings
        self.called: list[str] = []
        self.variables: dict[str, str] = {}  # what uv was told by its variables, in its last call
        (self.root / "build").mkdir(parents=True)
        self.requirements = self.root / "requirements.txt"
        self.requirements.write_text("numpy==2.4.6\npandas==3.1.1\n")
        self.write_project('requires-python = ">=3.11"\ndependencies = ["numpy"]')
        for name in ("colab.txt", "uv.txt"):
            (self.root / name).write_text("numpy==2.1.3\n")
        self.venv = self.root / ".venv"
        changed = {
            "subprocess": self,
            "BASE_PYTHON": str(self.python),
            "ROOT": self.root,
            "BUILD": self.root / "build",
            "REQUIREMENTS": self.requirements,
            "UV_REQUIREMENTS": self.root / "uv.txt",
            "COLAB_REQUIREMENTS": self.root / "colab.txt",
            "COLAB_PYTHON": sys.version_info[:2],
            "NEWEST_REQUIREMENTS": self.root / "build" / "newest.txt",
        }
        for name in ("VENV", "VENV_NEWEST", "VENV_COLAB", "VENV_UV"):
            changed[name] = self.root / ("." + name.lower().replace("_", "-"))
        for name, value in changed.items():
            monkeypatch.setattr(environment, name, value)
        for name in [*environment.SETTINGS.values(), "UV_INDEX_STRATEGY", "UV_TORCH_BACKEND", "UV_CACHE_DIR"]:
            monkeypatch.delenv(name, raising=False)

    def write_project(self, text: str) -> None:
        extras = (
            '[project.optional-dependencies]\nbook = ["nbmake"]\ntest = ["ruff"]\npin = ["torch==2.13.0"]\n'
        )
        (self.root / "pyproject.toml").write_text(f"[project]\n{text}\n{extras}")

    def call(self, command: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> int:
        """Stand in for `subprocess.call`, which shows what a tool prints."""
        arguments = command[1:]
        self.called.append(" ".join([Path(command[0]).name, *arguments]))
        told = env or {}
        self.variables = {k: v for k, v in told.items() if k.startswith("UV_") or k == "SSL_CERT_FILE"}
        if self.broken in arguments:
            return 1
        if "venv" in arguments:
            if "--clear" in arguments:
                shutil.rmtree(arguments[-1], ignore_errors=True)
            python = Path(arguments[-1]) / environment.PYTHON_IN_VENV
            python.parent.mkdir(parents=True)
            python.touch()
        if "--output-file" in arguments:
            Path(arguments[arguments.index("--output-file") + 1]).write_text(COMPILED)
        return 0

    def run(self, command: list[str], **_) -> SimpleNamespace:
        """Stand in for `subprocess.run`: only pip's settings are asked for."""
        assert command[1:] == ["-m", "pip", "config", "list"]
        return SimpleNamespace(stdout=self.pip)

    def calls(self) -> list[str]:
        """What was called since the last time this was asked, without the questions to pip."""
        called, self.called = self.called, []
        return called


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_first_time_creates_and_installs(machine):
    assert environment.ensure(["book"]) == str(machine.venv / environment.PYTHON_IN_VENV)
    uv_environment, uv, create, install = machine.calls()
    assert uv_environment == f"python -m venv --clear {machine.root / '.venv-uv'}"
    assert uv.endswith(f"--require-hashes -r {machine.root / 'uv.txt'}")
    assert create == f"uv venv --quiet --clear --python {machine.python} {machine.venv}"
    assert install == (
        f"uv pip install --compile-bytecode --python {machine.venv} --constraint {machine.requirements} "
        f"--editable {machine.root}[book]"
    )


def test_second_time_calls_nothing(machine):
    first = environment.ensure(["book"])
    machine.calls()
    assert environment.ensure(["book"]) == first
    assert machine.calls() == []


def test_a_command_that_needs_more_adds_to_what_is_there(machine):
    environment.ensure(["book"])
    machine.calls()
    environment.ensure(["book", "test"])
    (install,) = machine.calls()
    assert install.endswith(f"{machine.root}[book,test]")
    environment.ensure(["book"])
    assert machine.calls() == [], "what was added stays"


CHANGES = {
    "the lock": lambda machine, _: machine.requirements.write_text("numpy==2.4.7\n"),
    "the ranges": lambda machine, _: machine.write_project('dependencies = ["numpy>2"]'),
    "Python": lambda _, patch: patch.setattr(sys, "version", "3.99.0"),
    "the wanted build of PyTorch": lambda _, patch: patch.setenv("UV_TORCH_BACKEND", "cpu"),
    "a half-made environment": lambda machine, _: (machine.venv / "installed.json").unlink(),
    "a half-written stamp": lambda machine, _: (machine.venv / "installed.json").write_text('{"key"'),
    "no Python in it": lambda machine, _: (machine.venv / environment.PYTHON_IN_VENV).unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_makes_the_environment_again_from_nothing(machine, monkeypatch, change):
    environment.ensure(["book"])
    (machine.venv / "left_over").write_text("")
    machine.calls()
    CHANGES[change](machine, monkeypatch)
    environment.ensure(["book"])
    assert [call.split()[1] for call in machine.calls() if call.startswith("uv ")] == ["venv", "pip"]
    assert not (machine.venv / "left_over").exists()
    environment.ensure(["book"])
    assert machine.calls() == []


def test_a_change_that_is_none_of_its_business_changes_nothing(machine, monkeypatch):
    def ensure_both():
        environment.ensure(["book"])
        environment.ensure_colab()
        return machine.calls()

    ensure_both()
    with open(machine.root / "pyproject.toml", "a") as file:
        file.write("[tool.ruff]\nline-length = 110\n")
    assert ensure_both() == []
    machine.write_project('version = "9.9"\nrequires-python = ">=3.11"\ndependencies = ["numpy"]')
    assert ensure_both() == [], "a release has another version"
    machine.requirements.write_text("numpy==2.4.7\n")
    calls = ensure_both()
    assert calls and not any(".venv-uv" in call or ".venv-colab" in call for call in calls)


@pytest.mark.parametrize("broken", ["-m", "--require-hashes", "venv", "--editable"])
def test_after_a_failure_there_is_no_stamp_and_the_next_call_tries_again(machine, broken):
    machine.broken = broken
    with pytest.raises(environment.InstallFailed):
        environment.ensure(["book"])
    assert not (machine.venv / "installed.json").exists()
    machine.calls()
    machine.broken = None
    environment.ensure(["book"])
    assert "install" in machine.calls()[-1]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", {}),
        (
            "global.index-url='https://example.org/simple'\nglobal.cert='/c.pem'",
            {"UV_DEFAULT_INDEX": "https://example.org/simple", "SSL_CERT_FILE": "/c.pem"},
        ),
        (
            ":env:.find-links='/wheels'\nglobal.find-links='/other'\ninstall.extra-index-url='a b'",
            {"UV_FIND_LINKS": "/wheels", "UV_INDEX": "a b", "UV_INDEX_STRATEGY": "unsafe-best-match"},
        ),
        (
            "global.find-links='\\n/wheels\\n/more'\nfreeze.find-links='/no'\nglobal.timeout='9'",
            {"UV_FIND_LINKS": "/wheels,/more", "UV_INDEX_STRATEGY": "unsafe-best-match"},
        ),
        ("global.cert='C:\\\\new folder\\\\c.pem'", {"SSL_CERT_FILE": "C:\\new folder\\c.pem"}),
    ],
)
def test_uv_is_told_what_pip_was_told(machine, settings, expected):
    machine.pip = settings
    environment.ensure(["book"])
    assert machine.variables == expected


def test_what_uv_was_told_itself_counts_more(machine, monkeypatch):
    machine.pip = "global.find-links='/wheels'"
    monkeypatch.setenv("UV_FIND_LINKS", "/mine")
    monkeypatch.setenv("UV_INDEX_STRATEGY", "first-index")
    environment.ensure(["book"])
    assert machine.variables == {"UV_FIND_LINKS": "/mine", "UV_INDEX_STRATEGY": "first-index"}


def test_the_lock_has_no_hashes_of_pytorch_and_nothing_of_its_builds(machine, monkeypatch):
    machine.pip = "global.find-links='/wheels'"
    monkeypatch.setenv("UV_TORCH_BACKEND", "cpu")
    environment.compile_pins(machine.requirements)
    text = machine.requirements.read_text()
    assert text.startswith("# The lock")
    assert environment.pins(machine.requirements) == ["jinja2==3.1.6", "torch==2.13.0", "torch-things==1.0"]
    assert [number for number in (11, 22, 33, 34, 44, 55, 66, 77) if f":{number}" in text] == [11, 22, 66]
    (compiling,) = [call for call in machine.calls() if "pip compile" in call]
    assert "--universal" in compiling and "--generate-hashes" in compiling and "--extra=pin" in compiling
    assert "--python-version=3.11" in compiling, "else the lock is for the Python that happens to run"
    assert machine.variables == {}, (
        "wheels of this machine and its build of PyTorch have no place in the lock"
    )


def test_pins_that_cannot_be_resolved_leave_the_former_ones(machine):
    before = machine.requirements.read_text()
    machine.broken = "compile"
    with pytest.raises(environment.InstallFailed, match="uv pip compile ended with exit code 1"):
        environment.compile_pins(machine.requirements)
    assert machine.requirements.read_text() == before


def test_newest_versions_get_an_environment_of_their_own(machine):
    before = machine.requirements.read_text()
    python = environment.ensure(["book", "test"], newest=True)
    assert python == str(machine.root / ".venv-newest" / environment.PYTHON_IN_VENV)
    (compiling,) = [call for call in machine.calls() if "pip compile" in call]
    assert "--extra=book" in compiling and "pin" not in compiling.split("--extra=")[-1]
    assert "torch==2.13.0" in (machine.root / "build" / "newest.txt").read_text()
    assert machine.requirements.read_text() == before
    assert not machine.venv.exists()


def test_colab_gets_an_environment_of_its_own_without_the_package(machine):
    python = environment.ensure_colab()
    assert python == str(machine.root / ".venv-colab" / environment.PYTHON_IN_VENV)
    create, install = machine.calls()[-2:]
    assert create.startswith("uv venv --quiet --clear --seed")
    assert install.endswith(f"-r {machine.root / 'colab.txt'}")
    assert environment.ensure_colab() == python
    assert machine.calls() == [] and not machine.venv.exists()


def test_clean_removes_what_was_made(machine):
    (machine.root / "build" / "html").mkdir()
    environment.ensure(["book"])
    environment.ensure_colab()
    environment.clean()
    left = {path.name for path in machine.root.iterdir()}
    assert left == {"pyproject.toml", "requirements.txt", "colab.txt", "uv.txt"}
    environment.clean()


def test_the_lock_holds_every_requirement_within_its_range():
    """What it did not list, uv would install at any version and without a hash."""
    project, locked = environment._project(), {}
    for pin in map(Requirement, environment.pins(environment.REQUIREMENTS)):
        locked.setdefault(canonicalize_name(pin.name), []).append(next(iter(pin.specifier)).version)
    extras = project["optional-dependencies"].values()
    for requirement in map(Requirement, [*project["dependencies"], *(r for extra in extras for r in extra)]):
        versions = locked.get(canonicalize_name(requirement.name), [])
        assert versions and all(v in requirement.specifier for v in versions), f"{requirement}: make pins"


def test_the_books_own_lock():
    """Every pin has hashes but PyTorch's; none names a build, an address or a companion of one build."""
    text = environment.REQUIREMENTS.read_text(encoding="utf-8")
    names = {pin.split("==")[0] for pin in environment.pins(environment.REQUIREMENTS)}
    assert {"torch", "transformers", "jupyter-book", "playwright", "jupyterlab"} <= names
    assert not any(environment.OF_PYTORCH.match(name) for name in names)
    assert "+cpu" not in text and "://" not in text and str(ROOT) not in text
    without = [entry for entry in text.split("\n") if "==" in entry and not entry.endswith("\\")]
    assert without == ["torch==2.13.0"]
