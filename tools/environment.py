"""The virtual environment: made once, installed from the pins, left alone while they stay the same.

Standard library only, because this runs before anything is installed.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from paths import BUILD, ROOT

VENV = ROOT / ".venv"
VENV_NEWEST = ROOT / ".venv-newest"
VENV_COLAB = ROOT / ".venv-colab"

REQUIREMENTS = ROOT / "requirements.txt"
COLAB_REQUIREMENTS = ROOT / "tests" / "colab" / "requirements.txt"
COLAB_PYTHON = (3, 13)
NEWEST_REQUIREMENTS = BUILD / "requirements-newest.txt"
HEADER = """\
# Exact pins, compiled from the ranges in pyproject.toml by `python tools/book.py pins`. Do not edit.
"""


def ensure(newest: bool = False) -> str | None:
    """Make sure that the virtual environment holds the wanted packages.

    Args:
        newest: take the newest versions that `pyproject.toml` allows, in an environment of its own.

    Returns:
        The path of the environment's Python, or None where installing failed (pip has said why).
    """
    folder, requirements = (VENV_NEWEST, NEWEST_REQUIREMENTS) if newest else (VENV, REQUIREMENTS)
    if newest and compile_pins(requirements, keep_torch=False) != 0:
        return None
    return _ensure(folder, requirements, lambda: sys.executable, with_package=True)


def ensure_colab() -> str | None:
    """Make sure that `.venv-colab` holds what a Colab session starts with: not the helper package.

    Returns:
        The path of the environment's Python, or None where installing failed (pip has said why).
    """
    return _ensure(VENV_COLAB, COLAB_REQUIREMENTS, _colab_python, with_package=False)


def _ensure(folder: Path, requirements: Path, base: Callable[[], str], with_package: bool) -> str | None:
    """Create and install what is missing; `base` chooses the Python that a new environment gets."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp, wanted = folder / "installed", _key(requirements)
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return str(python)
    stamp.unlink(missing_ok=True)
    if not python.exists() and not _create(folder, base()):
        return None
    if not _install(str(python), requirements, with_package):
        return None
    stamp.write_text(wanted)
    return str(python)


def compile_pins(target: Path, keep_torch: bool = True) -> int:
    """Let pip resolve the ranges of `pyproject.toml`, and write `name==version` lines atomically.

    Args:
        target: the file to write.
        keep_torch: hold PyTorch at the version of the extra `pin`.

    Returns:
        pip's exit code.
    """
    extras = "book,test,pin" if keep_torch else "book,test"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        print("resolving the ranges of pyproject.toml (about two minutes)", flush=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        code = subprocess.call([*command, "--report", str(report), f"{ROOT}[{extras}]"])
        if code != 0:
            return code
        packages = [item["metadata"] for item in json.loads(report.read_text())["install"]]
    lines = sorted(
        f"{package['name'].lower().replace('_', '-')}=={package['version'].split('+')[0]}\n"
        for package in packages
        if package["name"] != "transformers-taken-apart"
    )
    partial = target.with_suffix(".partial")
    partial.write_text(HEADER + "".join(lines))
    partial.replace(target)
    print(f"{len(lines)} pins in {target.relative_to(ROOT)}")
    return 0


def clean() -> int:
    """Remove the environments and everything that was built."""
    for folder in (VENV, VENV_NEWEST, VENV_COLAB, BUILD):
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _key(requirements: Path) -> str:
    """What an installed environment depends on, as one hash."""
    parts = (requirements.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), sys.version.encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _colab_python() -> str:
    """A Python of Colab's version if this machine has one, else the one that runs this."""
    wanted = ".".join(map(str, COLAB_PYTHON))
    if sys.version_info[:2] == COLAB_PYTHON:
        return sys.executable
    found = shutil.which(f"python{wanted}")
    # A version manager may put a command on the path that only says that it is not active: ask it.
    if found and subprocess.run([found, "-c", "import venv"], capture_output=True).returncode == 0:
        return found
    print(
        f"no Python {wanted}, which Colab has, on this machine: taking {sys.version.split()[0]}", flush=True
    )
    return sys.executable


def _create(folder: Path, base: str) -> bool:
    print(f"creating {folder.name}", flush=True)
    if subprocess.call([base, "-m", "venv", "--clear", str(folder)]) == 0:
        return True
    print("python -m venv failed; on Debian and Ubuntu, `apt install python3-venv` helps", file=sys.stderr)
    return False


def _install(python: str, requirements: Path, with_package: bool) -> bool:
    """Install the pins, then perhaps the helper package itself, with progress at the terminal."""
    total = sum("==" in line for line in requirements.read_text().splitlines())
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    start = time.monotonic()
    with subprocess.Popen(
        [*pip, "-r", str(requirements)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        tail, seen = [], 0
        for line in process.stdout:
            tail = [*tail[-30:], line]
            if re.match(r"Collecting |Requirement already", line):
                seen += 1
                of_total = f" of {total}" if seen <= total else ""  # more, where they are not all listed
                _progress(f"  {seen}{of_total} packages found", seen, total)
            elif line.startswith("Installing collected"):
                print(f"\n  installing {line.count(',') + 1} packages (a minute or two)", flush=True)
    if process.returncode != 0:
        print("".join(tail), file=sys.stderr)
        return False
    if with_package and subprocess.call([*pip, "--quiet", "--no-deps", "--editable", str(ROOT)]) != 0:
        return False
    print(f"  installed in {time.monotonic() - start:.0f} s", flush=True)
    return True


def _progress(text: str, seen: int, total: int) -> None:
    """Overwrite one line at a terminal; elsewhere print a line now and then."""
    if sys.stdout.isatty():
        print(f"\r{text}", end="", flush=True)
    elif seen % 50 == 0 or seen == total:
        print(text, flush=True)
