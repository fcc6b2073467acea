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
from pathlib import Path

from paths import BUILD, ROOT

VENV = ROOT / ".venv"
VENV_NEWEST = ROOT / ".venv-newest"

REQUIREMENTS = ROOT / "requirements.txt"
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
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp, wanted = folder / "installed", _key(requirements)
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return str(python)
    stamp.unlink(missing_ok=True)
    if not python.exists() and not _create(folder):
        return None
    if not _install(str(python), requirements):
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
    for folder in (VENV, VENV_NEWEST, BUILD):
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _key(requirements: Path) -> str:
    """What an installed environment depends on, as one hash."""
    parts = (requirements.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), sys.version.encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _create(folder: Path) -> bool:
    print(f"creating {folder.name}", flush=True)
    if subprocess.call([sys.executable, "-m", "venv", "--clear", str(folder)]) == 0:
        return True
    print("python -m venv failed; on Debian and Ubuntu, `apt install python3-venv` helps", file=sys.stderr)
    return False


def _install(python: str, requirements: Path) -> bool:
    """Install the pins, then the helper package itself, with progress at the terminal."""
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
                _progress(f"  {min(seen, total)} of {total} packages found", seen, total)
            elif line.startswith("Installing collected"):
                print(f"\n  installing {total} packages (a minute or two)", flush=True)
    if process.returncode != 0:
        print("".join(tail), file=sys.stderr)
        return False
    if subprocess.call([*pip, "--quiet", "--no-deps", "--editable", str(ROOT)]) != 0:
        return False
    print(f"  installed in {time.monotonic() - start:.0f} s", flush=True)
    return True


def _progress(text: str, seen: int, total: int) -> None:
    """Overwrite one line at a terminal; elsewhere print a line now and then."""
    if sys.stdout.isatty():
        print(f"\r{text}", end="", flush=True)
    elif seen % 50 == 0 or seen == total:
        print(text, flush=True)
