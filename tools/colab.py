"""Run every notebook as in Colab: on Colab's versions, from the set-up cell.

`.venv-colab` is what a session starts with, and never changes. Each notebook gets its own session: an
environment on top of that one, into which the set-up cell installs. The release that this cell fetches is a
commit of this tree. After the run, every package of `.venv-colab` must still have its version.

Runs inside `.venv-colab`, so it imports only what is installed there.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

import address
from environment import COLAB_PYTHON
from execute import HEARTBEAT
from paths import ROOT, notebooks

# Replaces the book's address, which may not be known yet. No such host exists, so a missing redirect is an
# error, not somebody else's code.
RELEASE = f"https://release.invalid/{address.NAME}"
CELL_TIMEOUT = 1200  # seconds, for a cell that hangs; Colab itself has no such limit
STAND_IN = ROOT / "tests" / "colab" / "stand_in"  # the module google.colab
# The first version of a package on the path is the one that is imported.
LIST_PACKAGES = """\
import json, re
from importlib.metadata import distributions
found = {}
for package in distributions():
    found.setdefault(re.sub("[-_.]+", "-", package.metadata["Name"]).lower(), package.version)
print(json.dumps(found))
"""


class ColabFailed(Exception):
    """A notebook does not run in Colab; the message says which, and why."""


def run_all(say: Callable = print) -> None:
    """Run all notebooks, one after the other, each in a new session.

    Args:
        say: where progress goes.

    Raises:
        ColabFailed: a notebook raised an error, or changed an installed package. All notebooks run first.
    """
    say(f"notebooks: {len(notebooks())}, one after the other, on Python {sys.version.split()[0]}")
    say(f"  {not_shown(sys.version_info[:2])}")
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        variables = environment(local_release(Path(scratch)))
        for notebook in notebooks():
            start = time.monotonic()
            with tempfile.TemporaryDirectory(dir=scratch) as session:
                found = run(notebook, Path(session), variables, say)
            say(f"  {'FAILED' if found else 'done':6} {notebook.stem} in {time.monotonic() - start:.0f} s")
            problems += found
    if problems:
        raise ColabFailed("\n\n".join(problems))


def not_shown(python: tuple[int, int]) -> str:
    """Describe what a run on this Python does not show.

    Args:
        python: major and minor version.

    Returns:
        A line for the log.
    """
    if python == COLAB_PYTHON:
        return "that is Colab's Python; not tested: a GPU, and what Colab has beyond the listed packages"
    version = ".".join(map(str, COLAB_PYTHON))
    return (
        f"Colab has Python {version}: not tested are the notebooks on it, and the packages as they are built "
        f"for it, whose files chapter 03 reads. For that, put python{version} on the path, delete .venv-colab"
    )


def run(notebook: Path, folder: Path, variables: dict[str, str], say: Callable = print) -> list[str]:
    """Run one notebook in a new session.

    Args:
        notebook: the committed notebook.
        folder: an empty folder for the session, away from this tree.
        variables: the environment variables of the session.
        say: where progress, installed packages and false claims go.

    Returns:
        Problems: an error with the cell that raised it, packages that changed; empty if there are none.
    """
    python = start_session(folder)
    before = packages(python)
    error, executed = _execute(notebook, python, folder, variables, say)
    after = packages(python)
    new = [f"{name} {after[name]}" for name in sorted(after.keys() - before.keys())]
    say(f"  {notebook.stem} installed: {', '.join(new) or 'nothing'}")
    for sentence in false_claims(executed):
        say(f"  {notebook.stem}: {sentence}")
    changes = [f"{notebook.stem} changed a package that Colab has: {text}" for text in changed(before, after)]
    return [problem for problem in (error, *changes) if problem]


def start_session(folder: Path) -> str:
    """Create an environment on top of this one, with `google.colab`, for pip to install into.

    Args:
        folder: where to create it.

    Returns:
        The path of its Python.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = Path(_asked(ask))
    below = (sysconfig.get_path("purelib"), str(STAND_IN))
    lines = [f"import site; site.addsitedir({path!r})\n" for path in below]
    (own / "colab.pth").write_text("".join(lines), encoding="utf-8")
    return str(python)


def packages(python: str) -> dict[str, str]:
    """Return all packages that a Python finds, with their versions."""
    return json.loads(_asked([python, "-I", "-c", LIST_PACKAGES]))


def _asked(command: list) -> str:
    """Return what a command prints."""
    command = [command[0], "-X", "utf8", *command[1:]]
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ).stdout.strip()


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """List packages that are gone or have another version: `numpy 2.1.3, now 2.4.6`."""
    return [
        f"{name} {version}, now {after.get(name, 'gone')}"
        for name, version in sorted(before.items())
        if after.get(name) != version
    ]


def false_claims(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what false claims printed: in Colab they report and do not fail."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    printed = "".join(output["text"] for output in outputs if output["output_type"] == "stream")
    return re.findall(r"(?m)^✗ .*$", printed)


def local_release(folder: Path) -> dict[str, str]:
    """Commit this tree as the release, and let git fetch `RELEASE` from there.

    Args:
        folder: where to create the repository. This tree's own repository stays as it is.

    Returns:
        The environment variables that redirect git.

    Raises:
        ColabFailed: git is missing or failed.
    """
    _, tag = address.address()
    bare = folder / "release.git"
    git = ["git", f"--git-dir={bare}", f"--work-tree={ROOT}", "-c", "user.name=book", "-c", "user.email=book"]
    own_settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}  # none of the user's
    try:
        subprocess.run(["git", "init", "--quiet", "--bare", bare], check=True)
        for command in (["add", "--all"], ["commit", "--quiet", "--message", tag], ["tag", tag]):
            subprocess.run([*git, *command], check=True, cwd=ROOT, env={**os.environ, **own_settings})
    except (FileNotFoundError, subprocess.CalledProcessError) as problem:
        raise ColabFailed(f"git cannot commit this tree as a release: {problem}") from problem
    redirect = {"GIT_CONFIG_KEY_0": f"url.{bare.as_uri()}.insteadOf", "GIT_CONFIG_VALUE_0": RELEASE}
    return {"GIT_CONFIG_COUNT": "1", **redirect}


def environment(redirect: dict[str, str]) -> dict[str, str]:
    """Return this process's environment variables, without those of Python, the book and the Hub."""
    not_of_colab = ("PYTHON", "BOOK_", "HF_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(not_of_colab)}
    return {**kept, **redirect, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # the last one silences a warning


def _execute(
    notebook: Path, python: str, folder: Path, variables: dict[str, str], say: Callable
) -> tuple[str, nbformat.NotebookNode]:
    """Execute all cells; return the error with its cell (empty if there was none), and the outputs."""
    content = nbformat.read(notebook, 4)
    for cell in content.cells:
        cell.source = cell.source.replace(address.address()[0], RELEASE)
    work = folder / "content"  # the name of the working folder in Colab
    work.mkdir()
    started, said = [], [time.monotonic()]

    def on_start(cell: nbformat.NotebookNode, cell_index: int) -> None:
        started.append((cell_index, cell))
        if time.monotonic() - said[0] > HEARTBEAT:
            said[0] = time.monotonic()
            say(f"  {notebook.stem}: cell {cell_index + 1} of {len(content.cells)}")

    client = NotebookClient(
        content,
        km=_kernel(python, folder),
        timeout=CELL_TIMEOUT,
        resources={"metadata": {"path": str(work)}},
        on_cell_start=on_start,
    )
    try:
        client.execute(env={**variables, "BOOK_CACHE": str(folder / "cache")}, cleanup_kc=True)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as failure:
        index, cell = started[-1]
        where = f"{notebook.stem}, cell {index + 1} of {len(content.cells)} (id {cell.id})"
        return f"{where}:\n{without_colors(str(failure))}", content
    return "", content


def _kernel(python: str, folder: Path) -> AsyncKernelManager:
    """Return a manager that starts the kernel of a session."""
    colab = folder / "kernels" / "colab"
    colab.mkdir(parents=True)
    command = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    command += ["--IPKernelApp.kernel_class=google.colab.kernel.Kernel"]
    description = {"argv": command, "display_name": "Colab", "language": "python"}
    (colab / "kernel.json").write_text(json.dumps(description), encoding="utf-8")
    specifications = KernelSpecManager(kernel_dirs=[str(colab.parent)])
    return AsyncKernelManager(kernel_name="colab", kernel_spec_manager=specifications)


def without_colors(text: str) -> str:
    """Remove terminal color codes."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)
