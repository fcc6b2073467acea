"""Virtual environments: created by uv from the lock, and reused while their inputs do not change.

Standard library only, because this runs before anything is installed. pip installs uv itself, at a pinned
version, into its own folder. An environment is either complete or created again: its stamp, which holds the
hash of its inputs, is written last.
"""

import ast
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from paths import BUILD, ROOT

VENV = ROOT / ".venv"
VENV_NEWEST = ROOT / ".venv-newest"
VENV_COLAB = ROOT / ".venv-colab"
VENV_UV = ROOT / ".venv-uv"

REQUIREMENTS = ROOT / "requirements.txt"
UV_REQUIREMENTS = ROOT / "tools" / "requirements-uv.txt"
COLAB_REQUIREMENTS = ROOT / "tests" / "colab" / "requirements.txt"
COLAB_PYTHON = (3, 13)
NEWEST_REQUIREMENTS = BUILD / "requirements-newest.txt"
STAMP = "installed.json"
LOCK = ROOT / ".lock"  # held by the command that works in this folder
PYTHON_IN_VENV = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
# Not the Python of an environment, which may be about to be created again.
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)
HEADER = """\
# The lock: exact versions with the hashes of their files, for every system and Python that the book runs on.
# Compiled from the ranges in pyproject.toml by `python tools/book.py pins`; do not edit. PyTorch has no
# hashes, because its builds differ (CPU, CUDA, ROCm), and what only some of its builds need is not listed.
"""
# Dependencies of PyTorch builds, which pin the exact versions that they need.
OF_PYTORCH = re.compile(r"(nvidia|cuda|triton)\b")
# uv's variables for pip's settings, which it does not read.
SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
BETWEEN = {"extra-index-url": " ", "find-links": ",", "trusted-host": " "}  # separators of lists
OTHER_SOURCES = ("UV_INDEX", "UV_FIND_LINKS")  # pip takes the best version from all sources


class InstallFailed(Exception):
    """An environment could not be created; the tool that failed has printed why."""


def ensure(extras: Iterable[str], newest: bool = False) -> str:
    """Make sure that the book's environment has the packages of some extras of `pyproject.toml`.

    Args:
        extras: such as "book" and "test". Extras that are already installed stay.
        newest: use the newest versions that `pyproject.toml` allows, in a separate environment.

    Returns:
        The path of the environment's Python.

    Raises:
        InstallFailed: uv or pip failed and has printed why.
    """
    folder, lock = (VENV_NEWEST, NEWEST_REQUIREMENTS) if newest else (VENV, REQUIREMENTS)
    if newest:
        compile_pins(lock, keep_torch=False)
    key = _key(lock)
    had = _stamped(folder, key)
    wanted = sorted({*extras, *(had or [])})
    if had != wanted:
        with _stamping(folder, key, wanted):
            if had is None:
                _create(folder, BASE_PYTHON)
            package = f"{ROOT}[{','.join(wanted)}]"
            # Compiled once, an import takes half as long, also where Python may not write what it compiles.
            options = ["--compile-bytecode", "--python", str(folder), "--constraint", str(lock)]
            _uv("pip", "install", *options, "--editable", package)
    return str(folder / PYTHON_IN_VENV)


def ensure_colab() -> str:
    """Make sure that `.venv-colab` has the packages of a new Colab session, without the helper package.

    Returns:
        The path of the environment's Python.

    Raises:
        InstallFailed: uv or pip failed and has printed why.
    """
    key = _key(COLAB_REQUIREMENTS)
    if _stamped(VENV_COLAB, key) is None:
        with _stamping(VENV_COLAB, key, []):
            _create(VENV_COLAB, _colab_python(), "--seed")  # the set-up cells call pip
            _uv("pip", "install", "--python", str(VENV_COLAB), "-r", str(COLAB_REQUIREMENTS))
    return str(VENV_COLAB / PYTHON_IN_VENV)


def compile_pins(target: Path, keep_torch: bool = True) -> None:
    """Resolve the ranges of `pyproject.toml` with uv, for all systems, and write the lock atomically.

    Args:
        target: the file to write.
        keep_torch: keep PyTorch at the version of the extra `pin`.

    Raises:
        InstallFailed: uv found no compatible versions, or could not reach the index.
    """
    extras = [*_project()["optional-dependencies"]]
    chosen = [f"--extra={extra}" for extra in extras if keep_torch or extra != "pin"]
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    print("resolving the ranges of pyproject.toml", flush=True)
    lowest = _project()["requires-python"].removeprefix(">=")
    options = [
        "--universal",
        f"--python-version={lowest}",
        "--fork-strategy=fewest",
        "--generate-hashes",
        "--no-annotate",
        "--no-header",
    ]
    options += ["--upgrade", "--quiet", "--output-file", str(partial)]
    # Only the index: a local folder has few wheels, and the lock would hold no other hashes.
    without = (*OTHER_SOURCES, "UV_TORCH_BACKEND")
    _uv("pip", "compile", str(ROOT / "pyproject.toml"), *chosen, *options, without=without)
    partial.write_text(HEADER + _as_lock(partial.read_text(encoding="utf-8")), encoding="utf-8")
    partial.replace(target)
    print(f"{len(pins(target))} pins in {target.relative_to(ROOT).as_posix()}")


def pins(lock: Path) -> list[str]:
    """Return the pins of a lock without hashes: lines of `name==version` with environment markers."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [line.rstrip(" \\") for line in lines if re.match(r"[A-Za-z0-9]", line)]


def clean() -> None:
    """Remove the environments and all build outputs."""
    for folder in (VENV, VENV_NEWEST, VENV_COLAB, VENV_UV, BUILD):
        shutil.rmtree(folder, ignore_errors=True)


def _key(lock: Path) -> str:
    """Return the hash of an environment's inputs: packages, Python, location and PyTorch build."""
    python = (sys.version, sys.base_prefix, platform.machine())
    wanted = [lock.read_text(encoding="utf-8"), python, str(ROOT)]
    if lock != UV_REQUIREMENTS:
        wanted.append(os.environ.get("UV_TORCH_BACKEND", ""))
    if lock not in (UV_REQUIREMENTS, COLAB_REQUIREMENTS):
        project = _project()
        wanted += [project["dependencies"], project["optional-dependencies"]]
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _stamped(folder: Path, key: str) -> list[str] | None:
    """Return the extras of an environment that is complete and up to date, else None."""
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        return stamp["extras"] if stamp["key"] == key and (folder / PYTHON_IN_VENV).exists() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def _stamping(folder: Path, key: str, extras: list[str]) -> Iterator[None]:
    """Remove the stamp while an environment changes, and write a new one on success."""
    start = time.monotonic()
    (folder / STAMP).unlink(missing_ok=True)
    yield
    partial = folder / f"{STAMP}.partial"
    partial.write_text(json.dumps({"key": key, "extras": extras}), encoding="utf-8")
    partial.replace(folder / STAMP)
    print(f"installed in {time.monotonic() - start:.0f} s", flush=True)


def _create(folder: Path, base: str, *options: str) -> None:
    print(f"creating {folder.name}", flush=True)
    _uv("venv", "--quiet", "--clear", *options, "--python", base, str(folder))


def _uv(*arguments: str, without: Iterable[str] = ()) -> None:
    """Run the pinned uv, with pip's settings as defaults, and without some variables."""
    python = _uv_environment()
    known = {**_settings_of_pip(python), **os.environ}
    for name in without:
        known.pop(name, None)
    if any(known.get(name) for name in OTHER_SOURCES):
        known.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")  # as pip does
    command = [str(python.with_name("uv")), *arguments]
    code = subprocess.call(command, cwd=ROOT, env=known)
    if code != 0:
        raise InstallFailed(f"uv {' '.join(arguments[:2])} ended with exit code {code}")


def _uv_environment() -> Path:
    """Return the Python of the small environment that holds only uv."""
    python, stamp = VENV_UV / PYTHON_IN_VENV, VENV_UV / STAMP
    key = _key(UV_REQUIREMENTS)
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == key:
        return python
    print("installing uv, which installs the packages", flush=True)
    if subprocess.call([BASE_PYTHON, "-m", "venv", "--clear", str(VENV_UV)]) != 0:
        raise InstallFailed("python -m venv failed; on Debian and Ubuntu, `apt install python3-venv` helps")
    options = ["--quiet", "--disable-pip-version-check", "--require-hashes", "-r", str(UV_REQUIREMENTS)]
    if subprocess.call([str(python), "-m", "pip", "install", *options]) != 0:
        raise InstallFailed("pip could not install uv")
    stamp.write_text(key, encoding="utf-8")
    return python


def _settings_of_pip(python: Path) -> dict[str, str]:
    """Return the user's package sources in pip's settings, as variables for uv."""
    ask = [str(python), "-m", "pip", "config", "list"]
    listed = subprocess.run(ask, capture_output=True, text=True, encoding="utf-8")
    found = {}
    # Later lines win: `global.` for all commands, `install.` for this one, `:env:.` for variables.
    order = {"global": 0, "install": 1, ":env:": 2}
    lines = [line.partition("=") for line in listed.stdout.splitlines()]
    for name, _, value in sorted(lines, key=lambda line: order.get(line[0].rpartition(".")[0], -1)):
        section, _, setting = name.rpartition(".")
        if section in order and setting in SETTINGS:
            text = ast.literal_eval(value)
            found[SETTINGS[setting]] = BETWEEN[setting].join(text.split()) if setting in BETWEEN else text
    return found


def _as_lock(compiled: str) -> str:
    """Remove PyTorch's hashes, and packages that only some of its builds need, from uv's output."""
    entries = re.split(r"(?m)^(?=\S)", compiled)
    kept = [entry for entry in entries if not OF_PYTORCH.match(entry)]
    return "".join(re.sub(r"^(torch==[^\s;\\+]+).*", r"\1\n", entry, flags=re.DOTALL) for entry in kept)


def _colab_python() -> str:
    """Return a Python of Colab's version on this machine, if uv finds one, else the current one."""
    if sys.version_info[:2] == COLAB_PYTHON:
        return BASE_PYTHON
    ask = [
        str(_uv_environment().with_name("uv")),
        "python",
        "find",
        "--system",
        ".".join(map(str, COLAB_PYTHON)),
    ]
    found = subprocess.run(ask, capture_output=True, text=True, encoding="utf-8")
    return found.stdout.strip() if found.returncode == 0 else BASE_PYTHON
